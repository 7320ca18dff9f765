//! `galatea selftest`: what this machine can do, subject by subject, as a report that can be sent in.
//!
//! Each subject runs on each unit in a process of its own. One that crashes or hangs is a line of the report,
//! and the lines before it are on disk.

mod apple;
mod catalog;
mod compare;
mod core_ml;
mod gpu;
mod host;
mod kernels;
mod language;
mod line;
mod packages;
mod page;
mod products;
mod runner;
mod suite;
mod task;
mod units;
mod workers;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use galatea_coreml::NeuralEngine;
use galatea_providers::HostCapabilities;
use serde_json::json;

use super::arguments::{NamedLength, named_length, path, time};
use super::{USAGE, chip, complain, say};
use catalog::PlannedSubject;
use line::{SelftestLine, SelftestVerdict};
use runner::ScratchFolder;
pub(super) use runner::{SUBJECT, SWEEPER};
use task::{SelftestEffort, SubjectLength, SubjectTask};

/// Longest time of a subject, unless another one is asked for.
const LIMIT: Duration = Duration::from_secs(60);

/// Command line of `galatea selftest`.
#[derive(Debug, Args)]
pub(super) struct SelftestArguments {
    #[arg(long, help = "test what takes seconds [default]")]
    quick: bool,
    #[arg(long, help = "test more shapes, longer")]
    full: bool,
    #[arg(
        long,
        value_name = "FILE.jsonl",
        value_parser = path,
        help = "write each line of the report there as soon as it is known"
    )]
    output: Option<PathBuf>,
    #[arg(long, value_name = "FILE", value_parser = path, help = "write the report as a page of HTML there")]
    html: Option<PathBuf>,
    #[arg(long, value_name = "FILE", value_parser = path, help = "write the whole report there too")]
    json: Option<PathBuf>,
    #[arg(
        long,
        value_names = ["A.jsonl", "B.jsonl"],
        num_args = 2,
        action = clap::ArgAction::Set,
        value_parser = path,
        help = "test nothing: show two reports beside each other"
    )]
    compare: Vec<PathBuf>,
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
    #[arg(long = "subject", value_name = "NAME", help = "test this subject only; repeatable")]
    subjects: Vec<String>,
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time,
        help = "end a subject that takes longer [60]"
    )]
    limit: Option<Duration>,
}

/// Tests this machine and prints the report. The exit status says whether anything failed.
pub(super) fn selftest(arguments: &SelftestArguments) -> Result<ExitCode, String> {
    if let [one, other] = arguments.compare.as_slice() {
        say(&compare::compare(one, other)?);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.quick && arguments.full {
        return Ok(usage("--quick and --full exclude each other"));
    }
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| format!("this program's own file is unknown: {error}"))?;
    let mut file = arguments.output.as_deref().map(ReportFile::create).transpose()?;
    let folder = ScratchFolder::new(&program)?;
    let run = SelftestRun { program, folder: folder.path(), arguments };
    let units = run.units();
    let all = run.planned(&units)?;
    let all = match chosen(all, arguments) {
        Ok(all) => all,
        Err(error) => return Ok(usage(&error)),
    };
    let found = HostCapabilities::detect();
    say(&chip::as_text(&found, NeuralEngine::of_host().as_ref()));
    say(&format!("Galatea           {} on {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS));
    let mut lines = Vec::with_capacity(all.len());
    for (number, subject) in all.iter().enumerate() {
        let line = run.line(subject, &format!("{number}"));
        say(&line.as_text());
        if let Some(file) = &mut file {
            file.add(&line)?;
        }
        lines.push(line);
    }
    say(&page::text(&lines, arguments.output.as_deref()));
    if let Some(file) = &arguments.json {
        write(file, &format!("{:#}\n", run.whole(&units, &lines, &found)))?;
    }
    if let Some(file) = &arguments.html {
        write(file, &page::html(&lines, &chip::as_text(&found, NeuralEngine::of_host().as_ref())))?;
    }
    let failed = lines.iter().any(|line| line.report.outcome.is_failure());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Tests the subject that the run of this process's parent names.
pub(super) fn test_subject(task: Option<&str>) -> Result<ExitCode, String> {
    let refused = || format!("'{SUBJECT}' is started by galatea itself");
    let task: SubjectTask =
        serde_json::from_str(task.ok_or_else(refused)?).map_err(|_| refused())?;
    runner::end_with_owner();
    let report = catalog::test(&task).unwrap_or_else(line::SubjectReport::failed);
    runner::write_result(&task.folder, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the files of a run once that has ended.
pub(super) fn sweep(folder: Option<&str>) -> Result<ExitCode, String> {
    runner::sweep(Path::new(folder.unwrap_or_default()))?;
    Ok(ExitCode::SUCCESS)
}

fn usage(text: &str) -> ExitCode {
    complain(&format!("Error: {text}; 'galatea selftest --help' shows its options"));
    ExitCode::from(USAGE)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &Path, error: &std::io::Error) -> String {
    format!("the report cannot be written to '{}': {error}", file.display())
}

/// A report that grows line by line.
struct ReportFile {
    path: PathBuf,
    file: File,
}

impl ReportFile {
    fn create(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(path);
        Ok(Self { file: file.map_err(|error| unwritten(path, &error))?, path: path.to_owned() })
    }

    fn add(&mut self, line: &SelftestLine) -> Result<(), String> {
        let mut text = serde_json::to_string(line).map_err(|error| error.to_string())?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|error| unwritten(&self.path, &error))
    }
}

/// A run of the test.
struct SelftestRun<'r> {
    program: PathBuf,
    folder: &'r Path,
    arguments: &'r SelftestArguments,
}

impl SelftestRun<'_> {
    /// Tests a subject in a process, in a folder of that name.
    fn line(&self, subject: &PlannedSubject, folder: &str) -> SelftestLine {
        let lengths = self.arguments.lengths.iter();
        let lengths = lengths
            .map(|one| SubjectLength { name: one.name.clone(), length: one.length })
            .collect();
        let effort = if self.arguments.full { SelftestEffort::Full } else { SelftestEffort::Quick };
        let task = SubjectTask {
            subject: subject.name.clone(),
            unit: subject.unit.clone(),
            folder: self.folder.join(folder),
            effort,
            file: subject.file.clone(),
            lengths,
        };
        runner::run(&self.program, &task, self.arguments.limit.unwrap_or(LIMIT))
    }

    /// Asks a process for the units of this machine: looking for them may crash.
    fn units(&self) -> Vec<String> {
        let asked = PlannedSubject::of(catalog::UNITS, catalog::HOST);
        let line = self.line(&asked, catalog::UNITS);
        let found = line.report.facts.get(catalog::UNITS);
        let names = found.map(|names| names.split(' ').map(ToOwned::to_owned).collect());
        names.unwrap_or_else(|| {
            say(&line.as_text());
            ["reference", "cpu"].map(ToOwned::to_owned).to_vec()
        })
    }

    fn planned(&self, units: &[String]) -> Result<Vec<PlannedSubject>, String> {
        let mut all = Vec::new();
        if let Some(from) = &self.arguments.packages {
            all.extend(catalog::of_files(&suite::ending(from, "mlpackage")?, units));
        }
        if let Some(from) = &self.arguments.models {
            all.extend(catalog::of_files(&suite::ending(from, "onnx")?, units));
        }
        if self.arguments.packages.is_none() && self.arguments.models.is_none() {
            all = catalog::planned(units);
        }
        match all.is_empty() {
            true => {
                Err("there is nothing to test: no packages and no models were found".to_owned())
            }
            false => Ok(all),
        }
    }

    /// Renders the whole report of `--json`. Rows of packages are apart from the other subjects.
    fn whole(
        &self,
        units: &[String],
        lines: &[SelftestLine],
        found: &HostCapabilities,
    ) -> serde_json::Value {
        let count = |wanted: fn(SelftestVerdict) -> bool| {
            lines.iter().filter(|line| wanted(line.report.outcome)).count()
        };
        json!({
            "galatea": env!("CARGO_PKG_VERSION"),
            "system": std::env::consts::OS,
            "machine": chip::as_json(found, NeuralEngine::of_host().as_ref()),
            "units": units,
            "results": lines.iter().filter_map(packages::row).collect::<Vec<_>>(),
            "subjects": lines.iter().filter(|line| packages::row(line).is_none()).collect::<Vec<_>>(),
            "passed": count(|outcome| !outcome.is_failure() && outcome != SelftestVerdict::Skipped),
            "skipped": count(|outcome| outcome == SelftestVerdict::Skipped),
            "failed": count(SelftestVerdict::is_failure),
        })
    }
}

/// Selects the units and subjects that are named; all where none is.
fn chosen(
    all: Vec<PlannedSubject>,
    arguments: &SelftestArguments,
) -> Result<Vec<PlannedSubject>, String> {
    let units = names(&all, |subject| &subject.unit);
    let unknown = |given: &[String], known: &[String]| {
        given.iter().find(|name| !known.contains(name)).cloned()
    };
    if let Some(name) = unknown(&arguments.units, &units) {
        return Err(format!("--unit: there is no '{name}' here; there are {}", units.join(", ")));
    }
    let subjects = names(&all, |subject| &subject.name);
    let hidden = arguments.subjects.iter().filter(|name| catalog::is_hidden(name));
    let hidden: Vec<PlannedSubject> =
        hidden.map(|name| PlannedSubject::of(name, catalog::HOST)).collect();
    let named: Vec<String> =
        arguments.subjects.iter().filter(|name| !catalog::is_hidden(name)).cloned().collect();
    if let Some(name) = unknown(&named, &subjects) {
        let known = subjects.join(", ");
        return Err(format!("--subject: there is no '{name}' here; there are {known}"));
    }
    let has = |given: &[String], name: &String| given.is_empty() || given.contains(name);
    let wanted = all.into_iter().filter(|subject| {
        has(&arguments.units, &subject.unit) && has(&arguments.subjects, &subject.name)
    });
    Ok(wanted.chain(hidden).collect())
}

/// Lists what subjects have, each once.
fn names(all: &[PlannedSubject], of: fn(&PlannedSubject) -> &String) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in all.iter().map(of) {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests;
