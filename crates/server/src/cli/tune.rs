//! `galatea tune`: measures the choices that a model has on this machine, and keeps what is fastest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_runtime::tune::{
    ChoiceSource, Database, Key, Limits, Outcome, Problem, Record, Search, StrategyKind, Trial,
    Tuning,
};
use galatea_runtime::{Session, SessionOptions};
use galatea_tensor::Tensor;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::arguments::{Arguments, Choice, help};
use super::plot::{self, Curve, Panel};
use super::{generate, model, say};
use crate::table::table;
use crate::tuning;
use crate::units;

const CHOICES: &[Choice] = &[
    Choice { name: "batch", value: "N", sentence: "length of the batch axis [1]" },
    Choice { name: "shape", value: "NAME=D,D…", sentence: "shape of an input; repeatable" },
    Choice { name: "threads", value: "N", sentence: "threads inside an operator [all cores]" },
    Choice {
        name: "strategy",
        value: "NAME",
        sentence: "exhaustive, grid, adaptive or genetic [exhaustive up to 16 candidates, else adaptive]",
    },
    Choice { name: "trials", value: "N", sentence: "the most candidates of a choice [64]" },
    Choice { name: "samples", value: "N", sentence: "times that a candidate is run [9]" },
    Choice { name: "seconds", value: "S", sentence: "the most time for all choices [60]" },
    Choice {
        name: "database",
        value: "FILE",
        sentence: "add the records to this file [the one that sessions look at]",
    },
    Choice { name: "merge", value: "", sentence: "put the records of FILE … into --output" },
    Choice { name: "output", value: "FILE", sentence: "where --merge writes" },
    Choice { name: "inspect", value: "FILE", sentence: "print the records of a file" },
    Choice {
        name: "plot",
        value: "FILE.svg",
        sentence: "draw the best time so far over the candidates of each choice",
    },
    Choice { name: "json", value: "", sentence: "print one line of JSON for each record" },
    Choice { name: "help", value: "", sentence: "print this" },
];

/// Candidates up to which every one is measured.
const FEW: usize = 16;

/// Tunes a model, or looks at records.
pub(super) fn tune(arguments: &[String]) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(arguments, CHOICES)?;
    if arguments.has("help") {
        let usage = "galatea tune MODEL [--database FILE] … | --merge FILE … --output FILE | --inspect FILE";
        say(&help(usage, CHOICES));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.has("merge") {
        return merge(&arguments);
    }
    if let Some(file) = arguments.last("inspect") {
        arguments.none()?;
        let database = tuning::load(Path::new(file))?;
        print(&database, arguments.has("json"));
        return Ok(ExitCode::SUCCESS);
    }
    let strategy = strategy(&arguments)?;
    let limits = Limits {
        trials: arguments.number("trials", Limits::default().trials)?,
        samples: arguments.number("samples", Limits::default().samples)?,
        ..Limits::default()
    };
    let seconds: f64 = arguments.number("seconds", 60.0)?;
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("--seconds expects a time, got '{seconds}'"))?;
    let path = model::find(arguments.only("MODEL")?)?;
    let file = match arguments.last("database") {
        Some(file) => PathBuf::from(file),
        None => tuning::usual_file().ok_or("--database FILE is missing: there is no usual one")?,
    };
    let known = if file.exists() { tuning::load(&file)? } else { Database::default() };
    let curves = Vec::new();
    let mut work = Work { arguments: &arguments, path: &path, strategy, limits, known, curves };
    let found = work.run(time)?;
    tuning::save(&work.known, &file)?;
    if let Some(file) = arguments.last("plot") {
        let text = plot::svg(&[panel(work.curves)])?;
        fs::write(file, text).map_err(|error| format!("'{file}' cannot be written: {error}"))?;
    }
    print(&found, arguments.has("json"));
    if !arguments.has("json") {
        say(&format!("{} records in {}", work.known.len(), file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn strategy(arguments: &Arguments) -> Result<Option<StrategyKind>, String> {
    let Some(given) = arguments.last("strategy") else { return Ok(None) };
    let found = StrategyKind::ALL.iter().find(|(name, _)| *name == given);
    found.map(|(_, kind)| Some(*kind)).ok_or_else(|| {
        let names: Vec<&str> = StrategyKind::ALL.iter().map(|(name, _)| *name).collect();
        format!("--strategy expects one of {}, got '{given}'", names.join(", "))
    })
}

fn merge(arguments: &Arguments) -> Result<ExitCode, String> {
    let output = arguments.last("output").ok_or("--output FILE is missing")?;
    if arguments.values().is_empty() {
        return Err("--merge needs files".to_owned());
    }
    let mut merged = Database::default();
    for file in arguments.values() {
        merged.merge(tuning::load(Path::new(file))?);
    }
    tuning::save(&merged, Path::new(output))?;
    say(&format!("{} records in {output}", merged.len()));
    Ok(ExitCode::SUCCESS)
}

struct Work<'a> {
    arguments: &'a Arguments,
    path: &'a Path,
    strategy: Option<StrategyKind>,
    limits: Limits,
    /// All records, those found included.
    known: Database,
    /// The best time so far over the candidates, for each choice.
    curves: Vec<Curve>,
}

/// The most curves of a picture that can be told apart.
const MOST_CURVES: usize = 12;

/// The choices that gained most.
fn panel(mut curves: Vec<Curve>) -> Panel {
    let gain = |curve: &Curve| curve.points.last().map_or(1.0, |&(_, share)| share);
    curves.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    curves.truncate(MOST_CURVES);
    Panel {
        title: "the best so far, as a share of the default's time".to_owned(),
        axes: ("candidates".to_owned(), "share of the default's time".to_owned()),
        curves,
    }
}

/// The best time after each candidate, as a share of the default's.
fn best_so_far(outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut best = f64::INFINITY;
    let after = |(at, trial): (usize, &Trial)| {
        best = best.min(trial.time_ns.unwrap_or(f64::INFINITY));
        best.is_finite().then_some(((at + 1) as f64, best / outcome.default_ns.max(1e-9)))
    };
    outcome.trials.iter().enumerate().filter_map(after).collect()
}

impl Work<'_> {
    /// Measures all choices of the model in two rounds: how kernels compute is settled before on how
    /// many threads they do. Gives the new records.
    fn run(&mut self, time: Duration) -> Result<Database, String> {
        let start = Instant::now();
        let machine = galatea_providers::machine();
        let mut found = Database::default();
        for (round, share) in [(Round::Algorithms, 0.5), (Round::Threads, 1.0)] {
            let session = self.session(&machine)?;
            let shapes = generate::parse_shapes(self.arguments.all("shape"))?;
            let batch = self.arguments.number("batch", 1)?;
            let lengths = generate::Lengths { batch, sequence: None };
            let made = generate::inputs(&session, lengths, &shapes)?;
            let named: Vec<(&str, Tensor)> =
                made.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
            let problems = session.problems(&named).map_err(|error| error.to_string())?;
            let problems: Vec<Problem> =
                problems.into_iter().filter(|problem| round.has(problem)).collect();
            let deadline = time.mul_f64(share);
            let bar = bar(problems.len(), self.arguments.has("json"));
            for (index, mut problem) in problems.into_iter().enumerate() {
                bar.set_position(u64::try_from(index).unwrap_or(u64::MAX));
                bar.set_message(format!("{} {}", problem.family, problem.bucket));
                let left = deadline.saturating_sub(start.elapsed());
                if left.is_zero() {
                    break;
                }
                let outcome = self.search(&mut problem, left)?;
                let Problem { family, bucket, space, .. } = problem;
                let name = format!("{family} {bucket}");
                self.curves.push(Curve { name, points: best_so_far(&outcome) });
                let key = Key::new(&family, bucket, &machine, &space);
                let record = Record::new(&space, &outcome);
                found.insert(key.clone(), record.clone());
                self.known.insert(key, record);
            }
            bar.finish_and_clear();
        }
        Ok(found)
    }

    fn session(&self, machine: &str) -> Result<Session, String> {
        let tuning = Tuning { database: self.known.clone(), machine: machine.to_owned() };
        let options = SessionOptions {
            threads: self.arguments.number("threads", 0)?,
            choices: ChoiceSource(Some(Arc::new(tuning))),
            ..SessionOptions::default()
        };
        let graph = model::load(self.path)?.graph;
        let session = Session::new(graph, &units::all(), &options);
        session.map_err(|error| error.to_string())
    }

    fn search(&self, problem: &mut Problem, left: Duration) -> Result<Outcome, String> {
        let few = problem.space.len() <= FEW;
        let usual = if few { StrategyKind::Exhaustive } else { StrategyKind::Adaptive };
        let start = Instant::now();
        let search = Search {
            space: &problem.space,
            device: &mut *problem.device,
            limits: Limits { time: left, ..self.limits },
            clock: &mut || start.elapsed(),
            progress: &mut |_, _| {},
        };
        let outcome = search.run(&mut *self.strategy.unwrap_or(usual).start(1));
        outcome.map_err(|error| format!("{}: {error}", problem.node))
    }
}

/// What is measured together.
#[derive(Clone, Copy, PartialEq)]
enum Round {
    Algorithms,
    Threads,
}

impl Round {
    fn has(self, problem: &Problem) -> bool {
        problem.family.starts_with("threads ") == (self == Self::Threads)
    }
}

fn bar(length: usize, quiet: bool) -> ProgressBar {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(length) };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn print(database: &Database, as_json: bool) {
    if as_json {
        for (key, record) in database.iter() {
            let line = json!({
                "family": key.family, "bucket": key.bucket, "machine": key.machine,
                "choice": record.choice, "time_ns": record.time_ns,
                "default_ns": record.default_ns, "trials": record.trials,
                "refused": record.refused,
            });
            say(&line.to_string());
        }
        return;
    }
    let micros = |ns: f64| format!("{:.1}", ns / 1e3);
    let rows = database.iter().map(|(key, record)| {
        vec![
            key.family.clone(),
            key.bucket.clone(),
            record.choice.clone(),
            micros(record.time_ns),
            micros(record.default_ns),
            format!("{:.2}", record.default_ns / record.time_ns.max(1e-9)),
            record.trials.to_string(),
            record
                .refused
                .iter()
                .map(|(name, why)| format!("{name}: {why}"))
                .collect::<Vec<_>>()
                .join("\n"),
        ]
    });
    let head = ["Family", "Lengths", "Choice", "µs", "Default µs", "Gain", "Trials", "Refused"];
    say(&table(&head, rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_fall_from_the_default_to_the_best() {
        let trial = |candidate, time_ns| Trial { candidate, time_ns };
        let outcome = Outcome {
            best: 3,
            best_ns: 50.0,
            default_ns: 100.0,
            trials: vec![
                trial(0, Some(100.0)),
                trial(1, Some(130.0)),
                trial(2, None),
                trial(3, Some(50.0)),
            ],
            refused: Vec::new(),
            ended: galatea_runtime::tune::Ended::Searched,
        };
        let points = best_so_far(&outcome);
        assert_eq!(points, [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 0.5)]);
        let flat = Curve { name: "flat".to_owned(), points: vec![(1.0, 1.0)] };
        let falling = Curve { name: "falling".to_owned(), points };
        let found = panel(vec![flat, falling]);
        assert_eq!(found.curves[0].name, "falling");
    }
}
