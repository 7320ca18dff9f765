//! `galatea selftest`: packages on every compute unit of this machine, as a report that can be sent in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use galatea_apple::coreml::{CoreMlDevice, CoreMlPlannedOperator};
use galatea_coreml::NeuralEngine;
use galatea_providers::HostCapabilities;
use serde_json::{Map, Value, json};

use super::arguments::{NamedLength, named_length, path};
use super::selftest_suite::{self as suite, SelftestSubject};
use super::selftest_units::{self as units, SelftestOutcome, SelftestPackage, SelftestUnit};
use super::{chip, say};

/// Command line of `galatea selftest`.
#[derive(Debug, Args)]
pub(super) struct SelftestArguments {
    #[arg(long, value_name = "FILE", value_parser = path, help = "write the report there too")]
    json: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        value_parser = path,
        help = "run its packages, not the suite; NAME.inputs.npz and NAME.outputs.npz may lie beside"
    )]
    packages: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        value_parser = path,
        help = "convert and run its ONNX models, not the suite"
    )]
    models: Option<PathBuf>,
    #[arg(
        long = "length",
        value_name = "NAME=N",
        value_parser = named_length,
        help = "number that a named length of the models is [1]; repeatable"
    )]
    lengths: Vec<NamedLength>,
    #[arg(long = "unit", value_name = "NAME", help = "run on this unit only; repeatable")]
    units: Vec<String>,
}

/// A folder that goes away with its owner.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("galatea-selftest-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs the suite and prints the report. The exit status says whether everything passed.
pub(super) fn selftest(arguments: &SelftestArguments) -> Result<ExitCode, String> {
    let units = chosen(units::all(), &arguments.units)?;
    let folder = ScratchFolder::new()?;
    let subjects = subjects(arguments, &folder.0)?;
    let found = HostCapabilities::detect();
    say(&chip::as_text(&found, NeuralEngine::of_host().as_ref()));
    say(&format!("Galatea           {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS));
    say("");
    say(&format!(
        "{:20} {:16} {:>6} {:>10} {:>10} {:>10} {:>10}",
        "package", "unit", "", "difference", "load ms", "first ms", "later ms"
    ));
    let mut rows = Vec::new();
    for subject in subjects {
        match subject {
            Ok(subject) => rows.extend(tested(&subject, &units, &folder.0)),
            Err(error) => {
                say(&error);
                rows.push(json!({"passed": false, "error": error}));
            }
        }
    }
    let passed = rows.iter().filter(|row| row.get("passed") == Some(&Value::Bool(true))).count();
    let failed = rows.len() - passed;
    say(&format!("\n{passed} passed, {failed} failed"));
    if let Some(file) = &arguments.json {
        let names: Vec<&str> = units.iter().map(SelftestUnit::name).collect();
        let report = json!({
            "galatea": env!("CARGO_PKG_VERSION"),
            "system": std::env::consts::OS,
            "machine": chip::as_json(&found, NeuralEngine::of_host().as_ref()),
            "units": names,
            "results": rows,
            "passed": passed,
            "failed": failed,
        });
        std::fs::write(file, format!("{report:#}\n"))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The units of these names, in their own order; all without names.
fn chosen(all: Vec<SelftestUnit>, names: &[String]) -> Result<Vec<SelftestUnit>, String> {
    let known: Vec<String> = all.iter().map(|unit| unit.name().to_owned()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("--unit: there is no '{name}' here; there are {}", known.join(", ")));
    }
    let wanted =
        |unit: &SelftestUnit| names.is_empty() || names.iter().any(|name| name == unit.name());
    Ok(all.into_iter().filter(wanted).collect())
}

type SelftestSubjects = Vec<Result<SelftestSubject, String>>;

fn subjects(arguments: &SelftestArguments, folder: &Path) -> Result<SelftestSubjects, String> {
    let mut all = SelftestSubjects::new();
    if let Some(from) = &arguments.packages {
        all.extend(suite::packages(from)?);
    }
    if let Some(from) = &arguments.models {
        all.extend(suite::models(from, folder, &arguments.lengths)?);
    }
    if arguments.packages.is_none() && arguments.models.is_none() {
        all.extend(suite::embedded(folder)?.into_iter().map(Ok));
    }
    match all.is_empty() {
        true => Err("there is nothing to test: no packages and no models were found".to_owned()),
        false => Ok(all),
    }
}

/// Runs a package on every unit, telling each result at once: what crashes is told by what comes before.
fn tested(subject: &SelftestSubject, units: &[SelftestUnit], folder: &Path) -> Vec<Value> {
    let core_ml = units.iter().any(|unit| matches!(unit, SelftestUnit::CoreMl { .. }));
    let into = folder.join(format!("{}.mlmodelc", subject.name));
    let compiled = core_ml.then(|| units::compile(&subject.package, &into));
    let each = units.iter().map(|unit| {
        let outcome = units::run(unit, subject, compiled.as_ref());
        say(&line(subject, unit, &outcome));
        row(subject, unit, compiled.as_ref(), &outcome)
    });
    each.collect()
}

/// One line of the report.
fn line(subject: &SelftestSubject, unit: &SelftestUnit, outcome: &SelftestOutcome) -> String {
    let number = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    let difference = outcome.difference.map(|off| format!("{off:.1e}")).unwrap_or_default();
    let mut text = format!(
        "{:20} {:16} {:>6} {:>10} {:>10} {:>10} {:>10}",
        subject.name,
        unit.name(),
        if outcome.passed() { "ok" } else { "FAILED" },
        difference,
        number(outcome.load_ms),
        number(outcome.first_ms),
        number(outcome.later_ms)
    );
    let devices = devices(&outcome.plan);
    if !devices.is_empty() {
        let counts = devices.iter().map(|(device, count)| format!("{count} on {device}"));
        text.push_str(&format!("  {}", counts.collect::<Vec<_>>().join(", ")));
    }
    if let Some(error) = &outcome.error {
        text.push_str(&format!("\n    {error}"));
    }
    text
}

/// Counts the operators that Core ML plans to run on each device.
fn devices(plan: &[CoreMlPlannedOperator]) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for device in plan.iter().filter_map(|operator| operator.preferred.as_ref()) {
        let name = word(device);
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => found.push((name, 1)),
        }
    }
    found
}

fn word(device: &CoreMlDevice) -> String {
    match device {
        CoreMlDevice::Gpu { .. } => "GPU".to_owned(),
        CoreMlDevice::NeuralEngine { .. } => "Neural Engine".to_owned(),
        other => other.to_string(),
    }
}

/// The same for programs. What is not known is not there.
fn row(
    subject: &SelftestSubject,
    unit: &SelftestUnit,
    compiled: Option<&SelftestPackage>,
    outcome: &SelftestOutcome,
) -> Value {
    let mut row = Map::new();
    row.insert("package".to_owned(), subject.name.clone().into());
    row.insert("unit".to_owned(), unit.name().into());
    row.insert("passed".to_owned(), outcome.passed().into());
    row.insert("tolerance".to_owned(), subject.tolerance.into());
    if let Some(error) = &outcome.error {
        row.insert("error".to_owned(), error.clone().into());
    }
    let compile_ms = compiled.filter(|_| matches!(unit, SelftestUnit::CoreMl { .. }));
    let numbers = [
        ("difference", outcome.difference),
        ("compile_ms", compile_ms.map(|compiled| compiled.ms)),
        ("load_ms", outcome.load_ms),
        ("first_ms", outcome.first_ms),
        ("later_ms", outcome.later_ms),
    ];
    for (name, value) in numbers {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            row.insert(name.to_owned(), value.into());
        }
    }
    if !outcome.plan.is_empty() {
        let plan = outcome.plan.iter().filter_map(|operator| {
            let preferred = operator.preferred.as_ref()?;
            let mut told = Map::new();
            told.insert("operator".to_owned(), operator.operator.clone().into());
            told.insert("outputs".to_owned(), operator.outputs.clone().into());
            told.insert("preferred".to_owned(), word(preferred).into());
            let supported: Vec<String> = operator.supported.iter().map(word).collect();
            told.insert("supported".to_owned(), supported.into());
            if let Some(weight) = operator.weight {
                told.insert("cost".to_owned(), weight.into());
            }
            Some(Value::Object(told))
        });
        row.insert("plan".to_owned(), plan.collect());
    }
    Value::Object(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_passes_on_the_processor() {
        let folder = tempfile::tempdir().unwrap();
        let units = chosen(units::all(), &["reference".to_owned(), "cpu".to_owned()]).unwrap();
        let subjects = suite::embedded(folder.path()).unwrap();
        assert!(subjects.len() >= 9);
        for subject in &subjects {
            for row in tested(subject, &units, folder.path()) {
                assert_eq!(row["passed"], true, "{row}");
                assert!(row["load_ms"].is_number() && row["later_ms"].is_number(), "{row}");
                assert!(row.get("compile_ms").is_none() && row.get("plan").is_none(), "{row}");
            }
        }
    }

    #[test]
    fn packages_of_a_folder_are_compared_with_the_results_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let made = suite::embedded(folder.path()).unwrap();
        let first = &made[0];
        let beside = |end: &str| folder.path().join(format!("{}.{end}.npz", first.name));
        let named = |all: &[(String, galatea_tensor::Tensor)]| {
            all.iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect::<Vec<_>>()
        };
        let write = |path: &Path, all: &[(String, galatea_tensor::Tensor)]| {
            let all = named(all);
            let each = all.iter().map(|(name, tensor)| (name.as_str(), tensor));
            galatea_formats::npy::write_npz(path, each).unwrap();
        };
        write(&beside("inputs"), &first.inputs);
        let wrong: Vec<_> = first
            .expected
            .iter()
            .map(|(name, tensor)| {
                let shape = tensor.shape().to_vec();
                let ones = vec![7.0_f32; tensor.elements()];
                (name.clone(), galatea_tensor::Tensor::from_vec(&shape, ones).unwrap())
            })
            .collect();
        write(&beside("outputs"), &wrong);
        let units = chosen(units::all(), &["cpu".to_owned()]).unwrap();
        let all = suite::packages(folder.path()).unwrap();
        assert_eq!(all.len(), made.len());
        for subject in all {
            let subject = subject.unwrap();
            let rows = tested(&subject, &units, folder.path());
            assert_eq!(rows[0]["passed"], subject.name != first.name, "{}", rows[0]);
        }
    }

    #[test]
    fn an_unknown_unit_is_refused_with_those_that_there_are() {
        let error = chosen(units::all(), &["npu".to_owned()]).err().unwrap();
        assert!(error.contains("'npu'") && error.contains("cpu"), "{error}");
    }
}
