//! `galatea tune`: measures the choices that a model has on this machine, and keeps what is fastest.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_runtime::tune::{
    ChoiceSource, MachineTuning, MeasuredCandidate, SearchLimits, StrategyKind, TuningDatabase,
    TuningOutcome, TuningProblem, TuningRecord, TuningSearch,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::plot::{self, PlotCurve, PlotPanel};
use super::tune_arguments::TuneArguments;
use super::tune_subject::TuneSubject;
use super::{say, tune_compare, write_chip};
use crate::table::table;
use galatea::tuning;

/// Samples of each of two candidates that are compared.
const COMPARED: usize = 30;

/// Candidates up to which every one is measured.
const FEW: usize = 16;

/// Tunes a model, or looks at records.
pub(super) fn tune(arguments: &TuneArguments) -> Result<ExitCode, String> {
    let TuneArguments { strategy, trials, time, json, .. } = *arguments;
    if arguments.merge {
        return merge(arguments);
    }
    if let Some(file) = &arguments.write_chip {
        arguments.without_files()?;
        return write_chip::write(file).map(|()| ExitCode::SUCCESS);
    }
    if let Some(file) = &arguments.inspect {
        arguments.without_files()?;
        let database = tuning::load(file)?;
        print(&database, json);
        return Ok(ExitCode::SUCCESS);
    }
    let usual = SearchLimits::default();
    let samples = arguments.samples.unwrap_or(usual.samples);
    let limits = SearchLimits { trials, samples, ..usual };
    let subject = TuneSubject::find(arguments.model()?)?;
    let file = match &arguments.database {
        Some(file) => file.clone(),
        None => tuning::usual_file().ok_or("--database FILE is missing: there is no usual one")?,
    };
    let known = if file.exists() { tuning::load(&file)? } else { TuningDatabase::default() };
    let file = file.as_path();
    let curves = Vec::new();
    let left_out = 0;
    let mut work = TuneWork { arguments, subject, strategy, limits, known, file, curves, left_out };
    if arguments.list || arguments.compare.is_some() {
        let mut problems = work.problems(&tuning::machine())?;
        match &arguments.compare {
            None => tune_compare::list(&problems, json),
            Some(names) => {
                let samples = arguments.samples.unwrap_or(COMPARED);
                tune_compare::compare(&mut problems, names, samples, time, json)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let found = work.run(time)?;
    tuning::save(&work.known, file)?;
    if let Some(file) = &arguments.plot {
        let text = plot::svg(&[panel(work.curves)])?;
        fs::write(file, text)
            .map_err(|error| format!("'{}' cannot be written: {error}", file.display()))?;
    }
    print(&found, json);
    if !json {
        if work.left_out > 0 {
            let count = work.left_out;
            say(&format!("{count} choices have a record already: --again measures them too"));
        }
        say(&format!("{} records in {}", work.known.len(), file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn merge(arguments: &TuneArguments) -> Result<ExitCode, String> {
    // The command line's own rules say first that this or files are missing.
    let output = arguments.output.as_ref().ok_or("--output is missing")?;
    let mut merged = TuningDatabase::default();
    for file in &arguments.files {
        merged.merge(tuning::load(file)?);
    }
    tuning::save(&merged, output)?;
    say(&format!("{} records in {}", merged.len(), output.display()));
    Ok(ExitCode::SUCCESS)
}

struct TuneWork<'a> {
    arguments: &'a TuneArguments,
    subject: TuneSubject,
    strategy: Option<StrategyKind>,
    limits: SearchLimits,
    /// All records, those found included.
    known: TuningDatabase,
    /// File that keeps the records.
    file: &'a Path,
    /// The best time so far over the candidates, for each choice.
    curves: Vec<PlotCurve>,
    /// Choices that were not measured, as they have a record.
    left_out: usize,
}

/// The most curves of a picture that can be told apart.
const MAX_CURVES: usize = 12;

/// The choices that gained most.
fn panel(mut curves: Vec<PlotCurve>) -> PlotPanel {
    let gain = |curve: &PlotCurve| curve.points.last().map_or(1.0, |&(_, share)| share);
    curves.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    curves.truncate(MAX_CURVES);
    PlotPanel {
        title: "the best so far, as a share of the default's time".to_owned(),
        axes: ("candidates".to_owned(), "share of the default's time".to_owned()),
        curves,
    }
}

/// The best time after each candidate, as a share of the default's.
fn best_so_far(outcome: &TuningOutcome) -> Vec<(f64, f64)> {
    let mut best = f64::INFINITY;
    let after = |(at, trial): (usize, &MeasuredCandidate)| {
        best = best.min(trial.time_ns.unwrap_or(f64::INFINITY));
        best.is_finite().then_some(((at + 1) as f64, best / outcome.default_ns.max(1e-9)))
    };
    outcome.trials.iter().enumerate().filter_map(after).collect()
}

impl TuneWork<'_> {
    /// Measures all choices of the model in two rounds: how kernels compute is settled before on how
    /// many threads they do. Gives the new records, which are kept as they come.
    fn run(&mut self, time: Duration) -> Result<TuningDatabase, String> {
        let start = Instant::now();
        let machine = tuning::machine();
        let mut found = TuningDatabase::default();
        for (round, share) in [(TuneRound::Algorithms, 0.5), (TuneRound::Threads, 1.0)] {
            let mut problems = self.problems(&machine)?;
            // Where nothing is left for the second round, the first has all the time.
            let last = round == TuneRound::Threads || problems.iter().all(|one| round.has(one));
            let deadline = time.mul_f64(if last { 1.0 } else { share });
            problems.retain(|problem| round.has(problem));
            let all = problems.len();
            let again = self.arguments.again;
            problems.retain(|one| again || self.known.get(&one.key(&machine)).is_none());
            self.left_out += all - problems.len();
            self.measure(problems, &machine, &mut found, &mut || {
                deadline.saturating_sub(start.elapsed())
            })?;
            if last {
                break;
            }
        }
        Ok(found)
    }

    /// Measures some choices, for as long as there is time.
    fn measure(
        &mut self,
        problems: Vec<TuningProblem>,
        machine: &str,
        found: &mut TuningDatabase,
        left: &mut dyn FnMut() -> Duration,
    ) -> Result<(), String> {
        let bar = bar(problems.len(), self.arguments.json);
        let count = problems.len();
        for (index, mut problem) in problems.into_iter().enumerate() {
            bar.set_position(u64::try_from(index).unwrap_or(u64::MAX));
            bar.set_message(format!("{} {}", problem.family, problem.bucket));
            let left = left();
            if left.is_zero() {
                break;
            }
            // Twice its share at most: what is large must not take the time of all others.
            let share = left.div_f64((count - index) as f64 / 2.0).min(left);
            let outcome = match self.search(&mut problem, share) {
                Ok(outcome) => outcome,
                // A driver may refuse what another one compiles: the other choices do not suffer.
                Err(error) if problem.unit.is_some() => {
                    tracing::warn!("{} {} is left out: {error}", problem.family, problem.bucket);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let name = format!("{} {}", problem.family, problem.bucket);
            self.curves.push(PlotCurve { name, points: best_so_far(&outcome) });
            let key = problem.key(machine);
            let record = TuningRecord::new(&problem.space, &outcome);
            found.insert(key.clone(), record.clone());
            self.known.insert(key, record);
            if problem.unit.is_some() {
                tuning::save(&self.known, self.file)?;
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// The choices that `--family` lets through.
    fn problems(&self, machine: &str) -> Result<Vec<TuningProblem>, String> {
        let tuning = MachineTuning { database: self.known.clone(), machine: machine.to_owned() };
        let choices = ChoiceSource(Some(Arc::new(tuning)));
        let mut problems = self.subject.problems(&self.arguments.subject, choices)?;
        let families = &self.arguments.families;
        let wanted = |problem: &TuningProblem| {
            families.is_empty() || families.iter().any(|text| problem.family.contains(text))
        };
        problems.retain(wanted);
        Ok(problems)
    }

    fn search(&self, problem: &mut TuningProblem, left: Duration) -> Result<TuningOutcome, String> {
        // A list of names has no neighbours that a model could learn from.
        let list =
            problem.space.axes().len() == 1 && problem.space.axes().iter().all(|a| !a.ordered);
        let few = problem.space.len() <= FEW || list;
        let usual = if few { StrategyKind::Exhaustive } else { StrategyKind::Adaptive };
        let start = Instant::now();
        let search = TuningSearch {
            space: &problem.space,
            device: &mut *problem.device,
            limits: SearchLimits { time: left, ..self.limits },
            clock: &mut || start.elapsed(),
            progress: &mut |_, _| {},
        };
        let outcome = search.run(&mut *self.strategy.unwrap_or(usual).start(1));
        outcome.map_err(|error| format!("{}: {error}", problem.node))
    }
}

/// Kind of problems that are measured together.
#[derive(Clone, Copy, PartialEq)]
enum TuneRound {
    Algorithms,
    Threads,
}

impl TuneRound {
    fn has(self, problem: &TuningProblem) -> bool {
        problem.is_about_threads() == (self == Self::Threads)
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

fn print(database: &TuningDatabase, as_json: bool) {
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
        let trial = |candidate, time_ns| MeasuredCandidate { candidate, time_ns };
        let outcome = TuningOutcome {
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
            ended: galatea_runtime::tune::SearchEnd::Searched,
        };
        let points = best_so_far(&outcome);
        assert_eq!(points, [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 0.5)]);
        let flat = PlotCurve { name: "flat".to_owned(), points: vec![(1.0, 1.0)] };
        let falling = PlotCurve { name: "falling".to_owned(), points };
        let found = panel(vec![flat, falling]);
        assert_eq!(found.curves[0].name, "falling");
    }
}
