//! `galatea tune`: measures the choices that a model has on this machine, and keeps what is fastest.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_runtime::tune::{
    ChoiceSource, MachineTuning, MeasuredCandidate, SearchEnd, SearchLimits, StrategyKind,
    TuningDatabase, TuningOutcome, TuningProblem, TuningRecord, TuningSearch,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::plot::{self, PlotCurve, PlotPanel};
use super::progress::ProgressLine;
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
    let mut work = TuneWork {
        arguments,
        subject,
        strategy,
        limits,
        known,
        file,
        curves,
        left_out: 0,
        unsettled: 0,
    };
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
    let nothing = found.is_empty() && work.left_out == 0;
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
        if work.unsettled > 0 {
            let count = work.unsettled;
            say(&format!("{count} choices have no record: there was no time for them"));
        }
        say(&format!("{} records in {}", work.known.len(), file.display()));
    }
    match nothing && work.unsettled > 0 {
        true => Err(format!(
            "nothing was measured in {:.1} s; give more time by --seconds, or fewer choices by --family",
            time.as_secs_f64()
        )),
        false => Ok(ExitCode::SUCCESS),
    }
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
    /// Choices without a record, for which there was no time.
    unsettled: usize,
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
    /// many threads they do. Gives the new records, which are kept as they come. The time is that of measuring: it
    /// begins when the model is prepared, and what prepares it again counts.
    fn run(&mut self, time: Duration) -> Result<TuningDatabase, String> {
        let begun = Instant::now();
        let machine = tuning::machine();
        let mut found = TuningDatabase::default();
        let mut problems = self.problems(&machine)?;
        let preparation = begun.elapsed();
        let start = Instant::now();
        for (round, share) in [(TuneRound::Algorithms, 0.5), (TuneRound::Threads, 1.0)] {
            if round == TuneRound::Threads {
                if time.saturating_sub(start.elapsed()) < preparation {
                    self.unsettled += problems.iter().filter(|one| round.has(one)).count();
                    break;
                }
                problems = self.problems(&machine)?;
            }
            let others = problems.iter().any(|one| !round.has(one));
            // Where nothing is left for the second round, the first has all the time.
            let last = round == TuneRound::Threads || !others;
            let deadline = time.mul_f64(if last { 1.0 } else { share });
            let (mut mine, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut problems).into_iter().partition(|problem| round.has(problem));
            problems = rest;
            let all = mine.len();
            let again = self.arguments.again;
            mine.retain(|one| again || self.known.get(&one.key(&machine)).is_none());
            self.left_out += all - mine.len();
            self.measure(mine, &machine, &mut found, &mut || {
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
                self.unsettled += count - index;
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
            let Some(outcome) = settled(&mut problem, outcome)? else {
                self.unsettled += 1;
                continue;
            };
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
        let line = ProgressLine::start("Preparing the model");
        let mut problems = self.subject.problems(&self.arguments.subject, choices)?;
        drop(line);
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

/// Pairs of samples by which a gain is confirmed.
const PAIRS: usize = 7;
/// Candidates of a choice that are measured at least where time runs out.
const LEAST_TRIALS: usize = 3;
/// Pairs that the fastest candidate must win of them: by chance it does so in 1 of 16 cases.
const WON: usize = 6;

/// Returns what a search has settled; nothing where time ran out before that. The fastest candidate must be faster than
/// the default a second time, in samples that alternate: a load on the machine during one of few samples looks like a
/// gain of many times. Otherwise the default stays.
fn settled(
    problem: &mut TuningProblem,
    outcome: TuningOutcome,
) -> Result<Option<TuningOutcome>, String> {
    // Two candidates of many say nothing about the others.
    if outcome.ended == SearchEnd::Time
        && outcome.trials.len() < problem.space.len().min(LEAST_TRIALS)
    {
        return Ok(None);
    }
    let default = outcome.trials.iter().find(|trial| trial.candidate == 0);
    if outcome.best == 0 || default.is_none_or(|default| default.time_ns.is_none()) {
        return Ok(Some(outcome));
    }
    let TuningProblem { node, device, .. } = problem;
    let mut sample =
        |candidate: usize| device.sample(candidate).map_err(|error| format!("{node}: {error}"));
    let mut won = 0;
    for pair in 0..PAIRS {
        // Whoever comes second may find warmer caches.
        let (default, best) = if pair % 2 == 0 {
            let default = sample(0)?;
            (default, sample(outcome.best)?)
        } else {
            let best = sample(outcome.best)?;
            (sample(0)?, best)
        };
        won += usize::from(best < default);
        // No later pair can change it.
        if won >= WON || pair + 1 - won > PAIRS - WON {
            break;
        }
    }
    Ok(Some(match won >= WON {
        true => outcome,
        false => TuningOutcome { best: 0, best_ns: outcome.default_ns, ..outcome },
    }))
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
    use galatea_runtime::tune::{ConfigAxis, ConfigSpace, TuningTarget};

    use super::*;

    /// A device whose samples of each candidate come from a list, the last of which stays.
    struct ListedTimes(Vec<Vec<f64>>);

    impl TuningTarget for ListedTimes {
        fn compute(&mut self, _candidate: usize) -> Result<Vec<f32>, String> {
            Ok(vec![1.0])
        }

        fn sample(&mut self, candidate: usize) -> Result<f64, String> {
            let times = &mut self.0[candidate];
            Ok(if times.len() > 1 { times.remove(0) } else { times[0] })
        }
    }

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

    #[test]
    fn gains_that_a_load_made_are_not_kept() {
        let trial = |candidate, time_ns| MeasuredCandidate { candidate, time_ns: Some(time_ns) };
        let outcome = |ended, trials| TuningOutcome {
            best: 1,
            best_ns: 10.0,
            default_ns: 80.0,
            trials,
            refused: Vec::new(),
            ended,
        };
        let all = || vec![trial(0, 80.0), trial(1, 10.0), trial(2, 90.0)];
        let problem = |times: Vec<Vec<f64>>| TuningProblem {
            node: "n".to_owned(),
            unit: None,
            family: "f".to_owned(),
            bucket: "b".to_owned(),
            space: ConfigSpace::new(vec![ConfigAxis::names("way", &["a", "b", "c", "d"])]),
            device: Box::new(ListedTimes(times)),
        };
        // The default had a slow moment while it was measured first.
        let equal = || vec![vec![10.0], vec![10.0, 11.0, 10.0], vec![90.0]];
        let found = settled(&mut problem(equal()), outcome(SearchEnd::Searched, all())).unwrap();
        assert_eq!(found.unwrap().best, 0);
        let faster = vec![vec![20.0], vec![10.0, 25.0, 10.0], vec![90.0]];
        let found = settled(&mut problem(faster), outcome(SearchEnd::Searched, all())).unwrap();
        assert_eq!(found.unwrap().best, 1, "one slow moment of the fastest does not decide");
        let two = vec![trial(0, 80.0), trial(1, 10.0)];
        let found = settled(&mut problem(equal()), outcome(SearchEnd::Time, two)).unwrap();
        assert_eq!(found, None, "two of four candidates");
    }
}
