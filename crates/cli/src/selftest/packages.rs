//! Subjects that are packages: of the suite, of a folder, or made of ONNX models.

use std::path::Path;

use galatea_apple::coreml::{CoreMlDevice, CoreMlPlannedOperator};
use serde_json::{Map, Value};

use super::line::{SelftestLine, SelftestVerdict, SubjectOutcome, SubjectReport};
use super::suite::{self, SelftestSubject};
use super::task::SubjectTask;
use super::units::{self, SelftestOutcome, SelftestPackage, SelftestUnit};

/// Tests a package of the suite on the task's unit.
pub(super) fn test(task: &SubjectTask) -> SubjectOutcome {
    tested(task, &suite::embedded(&task.folder, &task.subject)?)
}

/// Tests a package of a folder, or an ONNX model.
pub(super) fn test_file(task: &SubjectTask, file: &Path) -> SubjectOutcome {
    let subject = match file.extension().is_some_and(|end| end == "onnx") {
        true => suite::model(file, &task.folder, &task.lengths)?,
        false => suite::package(file)?,
    };
    tested(task, &subject)
}

fn tested(task: &SubjectTask, subject: &SelftestSubject) -> SubjectOutcome {
    let unit = units::find(&task.unit, task.effort)?;
    let into = task.folder.join(format!("{}.mlmodelc", subject.name));
    let is_core_ml = matches!(unit, SelftestUnit::CoreMl { .. });
    let compiled = is_core_ml.then(|| units::compile(&subject.package, &into));
    let outcome = units::run(&unit, subject, compiled.as_ref());
    Ok(report(subject, compiled.as_ref(), &outcome))
}

fn report(
    subject: &SelftestSubject,
    compiled: Option<&SelftestPackage>,
    outcome: &SelftestOutcome,
) -> SubjectReport {
    let mut report = SubjectReport::passed()
        .figure("tolerance", subject.tolerance)
        .figure("difference", outcome.difference)
        .figure("compile_ms", compiled.map(|compiled| compiled.ms))
        .figure("load_ms", outcome.load_ms)
        .figure("first_ms", outcome.first_ms)
        .figure("later_ms", outcome.later_ms)
        .checked(outcome.error.clone());
    let devices = devices(&outcome.plan);
    if !devices.is_empty() {
        let counts = devices.iter().map(|(device, count)| format!("{count} on {device}"));
        report = report.fact("plan", counts.collect::<Vec<_>>().join(", "));
    }
    let mut row = Map::new();
    if !outcome.plan.is_empty() {
        row.insert("plan".to_owned(), plan(&outcome.plan));
    }
    report.row = Some(Value::Object(row));
    report
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

fn plan(plan: &[CoreMlPlannedOperator]) -> Value {
    let told = plan.iter().filter_map(|operator| {
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
    told.collect()
}

/// Returns the row of `--json` for a line that is a package's. A process that crashed has left no row, but has a
/// name of the suite.
pub(super) fn row(line: &SelftestLine) -> Option<Value> {
    let report = &line.report;
    if report.row.is_none() && !suite::names().any(|name| name == line.subject) {
        return None;
    }
    let mut row = Map::new();
    row.insert("package".to_owned(), line.subject.clone().into());
    row.insert("unit".to_owned(), line.unit.clone().into());
    row.insert("passed".to_owned(), (report.outcome == SelftestVerdict::Passed).into());
    row.insert("outcome".to_owned(), report.outcome.word().into());
    if let Some(reason) = &report.reason {
        row.insert("error".to_owned(), reason.clone().into());
    }
    let figures = report.figures.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
    row.extend(figures);
    if let Some(Value::Object(more)) = &report.row {
        row.extend(more.clone());
    }
    Some(Value::Object(row))
}
