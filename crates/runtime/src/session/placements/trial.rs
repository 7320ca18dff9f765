//! Trials of placements, so that runs take the one that is the fastest and not the one that was thought to be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_graph::Datum;

use super::super::TuningInput;
use super::super::compiled::CompiledPartitions;
use super::super::parts::PartsRun;
use super::split::share;
use super::{Placement, PlacementRecipe, PlacementSet, PlacementState, SelectionTerms, TuningStep};
use crate::device_selector::{PlacementCost, PlacementEstimate, PlanSegment, ShapeBucket};
use crate::error::RuntimeError;

/// Runs of a placement in a trial, beside the one that prepares it.
const SAMPLES: usize = 5;
/// A placement leaves a trial when its fastest run takes so many times as long as the fastest of all.
const HOPELESS: f64 = 1.5;
/// A placement stays compiled where it takes at most so many times as long as the best: then it is worth something
/// when the other's devices have much to do.
pub(super) const WORTHWHILE: f64 = 3.0;

/// Nanoseconds to begin a second thread, to cut inputs and to join outputs.
const DIVIDING_NS: f64 = 30_000.0;
/// Rows are divided where that is expected to take at most this share of the time without.
const PROMISING: f64 = 0.9;

/// A placement in a trial.
struct TrialEntrant {
    /// Its place among the session's.
    number: usize,
    compiled: Arc<CompiledPartitions>,
    times: Vec<Duration>,
}

impl TrialEntrant {
    fn best(&self) -> Option<Duration> {
        self.times.iter().min().copied()
    }

    fn median(&self) -> Option<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

/// Outcome of one round of a trial.
enum TrialRound {
    /// All entrants ran, or left.
    Done,
    /// The planned partitions failed and were replaced: all placements are new.
    Replaced,
}

impl PlacementSet {
    /// Measures the placements that may be the fastest for inputs like these, until all are measured or `limit` is
    /// over.
    ///
    /// # Errors
    /// Fails when the planned partitions fail.
    pub(in super::super) fn try_all(
        &self,
        inputs: &[Datum],
        limit: Duration,
    ) -> Result<TuningStep, RuntimeError> {
        let bucket = ShapeBucket::of_inputs(inputs);
        let begin = Instant::now();
        let mut found = TuningStep::Settled;
        // The time of one placement corrects what others are worth.
        while let Some(left) = limit.checked_sub(begin.elapsed()) {
            self.select(inputs, SelectionTerms { whole: true, ..SelectionTerms::default() })?;
            if self.trial(&bucket, inputs, left)? == TuningStep::Settled {
                break;
            }
            found = TuningStep::Measured;
        }
        Ok(found)
    }

    /// Measures the placements that may be the fastest for the shapes that runs had most often, with inputs of zeros,
    /// and masks that show everything.
    ///
    /// # Errors
    /// Fails when the model cannot run with zeros. The shapes are not tried again.
    pub(in super::super) fn tune(&self, limit: Duration) -> Result<TuningStep, RuntimeError> {
        let Some(UntriedShapes { bucket, inputs }) = self.untried() else {
            return Ok(TuningStep::Settled);
        };
        let made = self.graph.made_inputs(&inputs);
        let tried = made.and_then(|inputs| self.trial(&bucket, &inputs, limit));
        if tried.is_err() {
            self.state().seen.remove(&bucket);
        }
        tried
    }

    /// Measures placements by turns. Those that are far behind after a round leave.
    fn trial(
        &self,
        bucket: &ShapeBucket,
        inputs: &[Datum],
        limit: Duration,
    ) -> Result<TuningStep, RuntimeError> {
        let mut entrants = self.entrants(bucket);
        if entrants.is_empty() {
            self.state().looked.insert(bucket.clone());
            return Ok(TuningStep::Settled);
        }
        let begin = Instant::now();
        for round in 0..=SAMPLES {
            if let TrialRound::Replaced = self.trial_round(&mut entrants, inputs, round > 0)? {
                return Ok(TuningStep::Measured);
            }
            let best = entrants.iter().filter_map(TrialEntrant::best).min();
            if let Some(best) = best {
                let (stay, go): (Vec<_>, Vec<_>) = entrants
                    .into_iter()
                    .partition(|one| one.best().is_none_or(|own| own <= best.mul_f64(HOPELESS)));
                self.note_times(bucket, &go);
                entrants = stay;
            }
            if (begin.elapsed() > limit && round > 0) || entrants.len() < 2 && round > 1 {
                break;
            }
        }
        self.note_times(bucket, &entrants);
        self.look_closer(bucket, inputs, &entrants);
        self.state().looked.insert(bucket.clone());
        self.try_split(bucket, inputs)?;
        self.prune();
        if let Some(recorded) = &self.recorded {
            let times = recorded.measured(&self.state(), bucket);
            recorded.keep(bucket, &times);
        }
        Ok(TuningStep::Measured)
    }

    /// Runs each entrant once, and takes its time where this is no round that prepares.
    fn trial_round(
        &self,
        entrants: &mut Vec<TrialEntrant>,
        inputs: &[Datum],
        timed: bool,
    ) -> Result<TrialRound, RuntimeError> {
        let mut failed = Vec::new();
        for (at, one) in entrants.iter_mut().enumerate() {
            let _permit = self.graph.options.pace.enter();
            let before = Instant::now();
            match one.compiled.run(trial_run(inputs), &|_| None) {
                Ok(_) if timed => one.times.push(before.elapsed()),
                Ok(_) => {}
                // All others fall back to the planned partitions: other providers take what those cannot run.
                Err(_) if one.number == 0 => {
                    self.graph.run_planned(trial_run(inputs))?;
                    return Ok(TrialRound::Replaced);
                }
                Err(failure) => failed.push((at, failure.error)),
            }
        }
        for (at, error) in failed.into_iter().rev() {
            self.fail(entrants.remove(at).number, &error);
        }
        Ok(TrialRound::Done)
    }

    /// Profiles placements of one provider of which nothing is known yet, and plans again with what is known now.
    fn look_closer(&self, bucket: &ShapeBucket, inputs: &[Datum], entrants: &[TrialEntrant]) {
        let new: Vec<(usize, &TrialEntrant)> = {
            let state = self.state();
            let own = |one: &TrialEntrant| {
                let first = one.compiled.parts.first()?.provider;
                let alone = one.compiled.parts.iter().all(|part| part.provider == first);
                (alone && state.corrections.lacks(first)).then_some(first)
            };
            entrants.iter().filter_map(|one| Some((own(one)?, one))).collect()
        };
        let mut plan = self.plan(inputs);
        let learnt = !new.is_empty();
        for (provider, one) in new {
            let _permit = self.graph.options.pace.enter();
            let run = PartsRun { profile: true, ..trial_run(inputs) };
            let ran = one.compiled.run(run, &|_| None);
            if let (Ok(ran), Some(claims)) = (ran, plan.claims.get(provider)) {
                let name = self.graph.names[provider];
                let rows: Vec<_> = ran.rows.iter().filter(|row| row.provider == name).collect();
                let graph = &self.graph.graph;
                self.state().corrections.learn(graph, provider, claims, &rows);
            }
        }
        if learnt {
            plan = self.plan(inputs);
        }
        self.state().extend(bucket, &plan);
        self.add_hybrid(bucket, &plan);
    }

    /// Measures a run whose rows are divided between the two fastest devices, where that promises to be faster.
    fn try_split(&self, bucket: &ShapeBucket, inputs: &[Datum]) -> Result<(), RuntimeError> {
        let Some(count) = self.rows.as_ref().and_then(|rows| rows.count(inputs)) else {
            return Ok(());
        };
        let Some(number) = self.state().divide(bucket, count) else { return Ok(()) };
        let run = self.split_run(&self.state(), bucket, number, inputs);
        let Some(run) = run else { return Ok(()) };
        let mut times = Vec::new();
        for round in 0..=SAMPLES {
            let _permit = self.graph.options.pace.enter();
            let before = Instant::now();
            if let Err(error) = run.run(inputs, &|_| None) {
                self.fail(number, &error);
                return Ok(());
            }
            if round > 0 {
                times.push(before.elapsed());
            }
        }
        times.sort_unstable();
        if let Some(&median) = times.get(times.len() / 2) {
            self.state().selector.measured(bucket, number, median);
        }
        Ok(())
    }

    /// Returns the placements that are worth a trial, with the best of those that were measured to compare them with,
    /// compiled.
    fn entrants(&self, bucket: &ShapeBucket) -> Vec<TrialEntrant> {
        let chosen: Vec<(usize, Result<Arc<CompiledPartitions>, PlacementRecipe>)> = {
            let state = self.state();
            let usable = |number: usize| {
                state.placements.get(number).is_some_and(|own| own.failed.is_none())
            };
            let mut numbers = state.selector.worth_a_trial(bucket);
            numbers.retain(|&number| usable(number));
            if numbers.is_empty() && state.looked.contains(bucket) {
                return Vec::new();
            }
            let measured = state.selector.estimates(bucket);
            let measured = measured.iter().filter(|one| one.measured && usable(one.way));
            numbers.extend(measured.min_by(|a, b| a.ns.total_cmp(&b.ns)).map(|one| one.way));
            numbers.into_iter().map(|number| (number, self.ready(&state, number))).collect()
        };
        let made = chosen.into_iter().filter_map(|(number, compiled)| {
            let compiled = match compiled {
                Ok(compiled) => compiled,
                Err(recipe) => self.make_ready(number, &recipe).ok()?,
            };
            Some(TrialEntrant { number, compiled, times: Vec::new() })
        });
        made.collect()
    }
}

/// Returns a run with these inputs that computes all outputs.
fn trial_run(inputs: &[Datum]) -> PartsRun<'static> {
    PartsRun { inputs: inputs.to_vec(), ..PartsRun::default() }
}

impl PlacementState {
    /// Returns the placement that divides so many rows between the two fastest of those that have a device each; none
    /// where that is not expected to take much less time than without.
    fn divide(&mut self, bucket: &ShapeBucket, count: usize) -> Option<usize> {
        let all = self.selector.estimates(bucket);
        let single = |one: &&PlacementEstimate| {
            let own = self.placements.get(one.way)?;
            let first = own.partitions.first()?.provider;
            let alone = own.partitions.iter().all(|part| part.provider == first);
            (one.measured && own.failed.is_none() && own.is_whole() && alone).then_some(first)
        };
        let mut singles: Vec<(usize, &PlacementEstimate)> =
            all.iter().filter_map(|one| Some((single(&one)?, one))).collect();
        singles.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
        let (device, best) = *singles.first()?;
        let (other, next) = *singles.iter().find(|(other, _)| *other != device)?;
        let first = share(count, [best.ns, next.ns])?;
        #[allow(clippy::cast_precision_loss, reason = "a share of rows")]
        let part = first as f64 / count as f64;
        let ns = [best.ns * part, next.ns * (1.0 - part)];
        if ns[0].max(ns[1]) + DIVIDING_NS > best.ns * PROMISING {
            return None;
        }
        let both = [best.way, next.way];
        let at = self.placements.iter().position(|own| own.split == Some(both));
        let at = at.unwrap_or_else(|| {
            self.placements.push(Placement { split: Some(both), ..Placement::new(Vec::new()) });
            self.placements.len() - 1
        });
        // Both are shares of what was measured.
        let stop = |unit, start_ns| PlanSegment { unit, ns: 0.0, start_ns };
        let stops = vec![stop(device, ns[0]), stop(other, ns[1] + DIVIDING_NS)];
        self.selector.set_cost(bucket, at, PlacementCost::of_parallel(stops));
        Some(at)
    }
}

/// Shapes of which not all placements are measured that should be.
struct UntriedShapes {
    bucket: ShapeBucket,
    inputs: Vec<TuningInput>,
}

impl PlacementSet {
    /// Returns the untried shapes with the most runs.
    fn untried(&self) -> Option<UntriedShapes> {
        let state = self.state();
        let usable =
            |number: &usize| state.placements.get(*number).is_some_and(|own| own.failed.is_none());
        let open = state.seen.iter().filter(|(bucket, _)| {
            let new = !state.looked.contains(*bucket);
            new || state.selector.worth_a_trial(bucket).iter().any(usable)
        });
        let (bucket, seen) = open.max_by_key(|(_, seen)| seen.runs)?;
        Some(UntriedShapes { bucket: bucket.clone(), inputs: seen.inputs.clone() })
    }

    fn note_times(&self, bucket: &ShapeBucket, entrants: &[TrialEntrant]) {
        let mut state = self.state();
        for one in entrants {
            if let Some(time) = one.median() {
                state.selector.measured(bucket, one.number, time);
            }
        }
    }

    /// Gives back what compiled placements hold that are far behind for all shapes.
    fn prune(&self) {
        let mut state = self.state();
        let mut worth = vec![false; state.placements.len()];
        for bucket in state.seen.keys() {
            let all = state.selector.estimates(bucket);
            // A placement that failed, or that was never measured, makes no other one worthless.
            let sound = |one: &&PlacementEstimate| {
                let own = state.placements.get(one.way);
                one.measured && own.is_some_and(|own| own.failed.is_none())
            };
            let best = all.iter().filter(sound).map(|one| one.ns).fold(f64::INFINITY, f64::min);
            for one in all.iter().filter(|one| one.ns <= best * WORTHWHILE) {
                if let Some(worth) = worth.get_mut(one.way) {
                    *worth = true;
                }
            }
        }
        // Rows that are divided need both placements.
        let divided: Vec<usize> = state
            .placements
            .iter()
            .zip(&worth)
            .filter_map(|(own, &worth)| own.split.filter(|_| worth))
            .flatten()
            .collect();
        for number in divided {
            worth[number] = true;
        }
        for (own, worth) in state.placements.iter_mut().zip(worth) {
            if !worth {
                own.compiled = None;
            }
        }
    }
}
