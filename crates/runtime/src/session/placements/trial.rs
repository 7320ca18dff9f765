//! Measures the ways of a session, so that runs take the one that is the fastest and not the one that was
//! thought to be.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_graph::{Datum, converted};
use galatea_tensor::{DataType, Tensor};

use super::super::{CompiledPartitions, OutputMask, Session, lock};
use super::split::share;
use super::{Placement, PlacementRecipe, PlacementSet, PlacementState};
use crate::binding::bind;
use crate::device_selector::{PlacementCost, PlacementEstimate, PlanSegment, ShapeBucket};
use crate::error::RuntimeError;

/// Runs of a way in a trial, beside the one that prepares it.
const SAMPLES: usize = 5;
/// A way leaves a trial when its fastest run takes so many times as long as the fastest of all.
const HOPELESS: f64 = 1.5;
/// A way stays compiled where it takes at most so many times as long as the best: then it is worth something when
/// the other's units have much to do.
pub(super) const WORTHWHILE: f64 = 3.0;

/// Nanoseconds to begin a second thread, to cut inputs and to join outputs.
const DIVIDING_NS: f64 = 30_000.0;
/// Rows are divided where that is expected to take at most this share of the time without.
const PROMISING: f64 = 0.9;

/// Work that was found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningStep {
    /// Nothing: the ways are measured for the shapes that runs had.
    Settled,
    /// Some ways were measured.
    Measured,
}

/// A way of running a model with some shapes, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementReport {
    /// The providers of its parts, in running order.
    pub providers: Vec<&'static str>,
    /// Time of a run with all units free: measured, or predicted and corrected by what was measured otherwise.
    pub time: Duration,
    /// True if the placement was measured.
    pub measured: bool,
    /// Reason why it is not used, if any.
    pub failed: Option<String>,
}

/// A way in a trial.
struct TrialEntrant {
    way: usize,
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

impl Session {
    /// Measures, for inputs like these, the ways that may be the fastest, until all are measured or `limit` is over.
    /// Does nothing in a session whose runs are not divided between units.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`].
    pub fn settle(
        &self,
        inputs: &[(&str, Tensor)],
        limit: Duration,
    ) -> Result<TuningStep, RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        let bucket = ShapeBucket::of_inputs(&inputs);
        let begin = Instant::now();
        let mut found = TuningStep::Settled;
        // What one way was found to take corrects what others are worth.
        while let Some(left) = limit.checked_sub(begin.elapsed()) {
            self.route(&inputs, None, true)?;
            if self.trial(&bucket, &inputs, left)? == TuningStep::Settled {
                break;
            }
            found = TuningStep::Measured;
        }
        Ok(found)
    }

    /// Measures the ways that may be the fastest for the shapes that runs had most often, with inputs of zeros, and
    /// masks that show everything; for `limit` at most, or as long as one run takes. For times at which nobody waits.
    ///
    /// # Errors
    /// Fails when the model cannot run with zeros. The shapes are not tried again.
    pub fn tune_placements(&self, limit: Duration) -> Result<TuningStep, RuntimeError> {
        let Some(routes) = &self.routes else { return Ok(TuningStep::Settled) };
        let Some((bucket, inputs)) = routes.untried() else { return Ok(TuningStep::Settled) };
        let masks: HashSet<usize> = self
            .longer
            .iter()
            .flatten()
            .flat_map(|longer| longer.masks().iter().copied())
            .collect();
        let made = inputs.iter().enumerate().map(|(at, (dtype, shape))| {
            let made = match masks.contains(&at) {
                true => ones(*dtype, shape),
                false => Tensor::zeros(*dtype, shape).map_err(|error| error.to_string()),
            };
            made.map(Datum::Tensor)
        });
        let made: Result<Vec<Datum>, String> = made.collect();
        let made = made.map_err(RuntimeError::Input);
        let tried = made.and_then(|inputs| self.trial(&bucket, &inputs, limit));
        if tried.is_err() {
            lock(&routes.inner).seen.remove(&bucket);
        }
        tried
    }

    /// The ways of running the model with inputs like these, the fastest first; nothing where runs are not divided.
    ///
    /// # Errors
    /// Returns the errors of [`Session::run`] for wrong inputs.
    pub fn ways(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<PlacementReport>, RuntimeError> {
        let Some(routes) = &self.routes else { return Ok(Vec::new()) };
        let inputs = bind(&self.inputs, inputs)?;
        self.route(&inputs, None, true)?;
        let inner = lock(&routes.inner);
        let mut all = inner.router.estimates(&ShapeBucket::of_inputs(&inputs));
        all.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        let report = |one: &PlacementEstimate| {
            let way = inner.ways.get(one.way)?;
            Some(PlacementReport {
                providers: inner.providers(way).map(|one| self.providers[one].name()).collect(),
                time: Duration::try_from_secs_f64(one.ns / 1e9).ok()?,
                measured: one.measured,
                failed: way.failed.clone(),
            })
        };
        Ok(all.iter().filter_map(report).collect())
    }

    /// Measures ways in turns. Those that are far behind after a round leave.
    fn trial(
        &self,
        bucket: &ShapeBucket,
        inputs: &[Datum],
        limit: Duration,
    ) -> Result<TuningStep, RuntimeError> {
        let Some(routes) = &self.routes else { return Ok(TuningStep::Settled) };
        let mut entrants = self.entrants(routes, bucket);
        if entrants.is_empty() {
            lock(&routes.inner).looked.insert(bucket.clone());
            return Ok(TuningStep::Settled);
        }
        let begin = Instant::now();
        for round in 0..=SAMPLES {
            let mut failed = Vec::new();
            for (at, one) in entrants.iter_mut().enumerate() {
                let _permit = self.options.pace.enter();
                let before = Instant::now();
                match one.compiled.run(inputs.to_vec(), OutputMask::All, &mut None) {
                    Ok(_) if round == 0 => {}
                    Ok(_) => one.times.push(before.elapsed()),
                    // The way that was planned first is what all else falls back to: others take what it
                    // cannot run, and then all ways are new.
                    Err(_) if one.way == 0 => {
                        self.run_planned(inputs, OutputMask::All, &mut None, &|_| None)?;
                        return Ok(TuningStep::Measured);
                    }
                    Err(failure) => failed.push((at, failure.error)),
                }
            }
            for (at, error) in failed.into_iter().rev() {
                routes.fail(entrants.remove(at).way, &error);
            }
            let best = entrants.iter().filter_map(TrialEntrant::best).min();
            if let Some(best) = best {
                let (stay, go): (Vec<_>, Vec<_>) = entrants
                    .into_iter()
                    .partition(|one| one.best().is_none_or(|own| own <= best.mul_f64(HOPELESS)));
                routes.measured(bucket, &go);
                entrants = stay;
            }
            if (begin.elapsed() > limit && round > 0) || entrants.len() < 2 && round > 1 {
                break;
            }
        }
        routes.measured(bucket, &entrants);
        self.look_closer(routes, bucket, inputs, &entrants);
        lock(&routes.inner).looked.insert(bucket.clone());
        self.try_split(routes, bucket, inputs)?;
        routes.prune();
        if let Some(kept) = &routes.kept {
            let times = kept.measured(&lock(&routes.inner), bucket);
            kept.keep(bucket, &times);
        }
        Ok(TuningStep::Measured)
    }

    /// Profiles ways of one provider of which nothing is known yet, and plans anew with what is known now.
    fn look_closer(
        &self,
        routes: &PlacementSet,
        bucket: &ShapeBucket,
        inputs: &[Datum],
        entrants: &[TrialEntrant],
    ) {
        let new: Vec<(usize, &TrialEntrant)> = {
            let inner = lock(&routes.inner);
            let own = |one: &TrialEntrant| {
                let first = one.compiled.parts.first()?.provider;
                let alone = one.compiled.parts.iter().all(|part| part.provider == first);
                (alone && inner.corrections.lacks(first)).then_some(first)
            };
            entrants.iter().filter_map(|one| Some((own(one)?, one))).collect()
        };
        let mut plan = self.plan(inputs);
        let learnt = !new.is_empty();
        for (provider, one) in new {
            let mut rows = Some(Vec::new());
            let _permit = self.options.pace.enter();
            let ran = one.compiled.run(inputs.to_vec(), OutputMask::All, &mut rows);
            if let (Ok(_), Some(rows), Some(claims)) = (ran, rows, plan.claims.get(provider)) {
                let named = (provider, self.providers[provider].name());
                lock(&routes.inner).corrections.learn(&self.graph, named, claims, &rows);
            }
        }
        if learnt {
            plan = self.plan(inputs);
        }
        lock(&routes.inner).extend(bucket, &plan);
        self.add_hybrid(routes, bucket, &plan);
    }

    /// Measures a run whose rows are divided between the two fastest units, where that promises to be faster.
    fn try_split(
        &self,
        routes: &PlacementSet,
        bucket: &ShapeBucket,
        inputs: &[Datum],
    ) -> Result<(), RuntimeError> {
        let Some(count) = routes.rows.as_ref().and_then(|rows| rows.count(inputs)) else {
            return Ok(());
        };
        let Some(way) = lock(&routes.inner).divide(bucket, count) else { return Ok(()) };
        let run = {
            let mut inner = lock(&routes.inner);
            self.split_run(routes, &mut inner, bucket, way, inputs)
        };
        let Some(run) = run else { return Ok(()) };
        let mut times = Vec::new();
        for round in 0..=SAMPLES {
            let _permit = self.options.pace.enter();
            let before = Instant::now();
            if let Err(error) = run.run(inputs, &|_| None) {
                routes.fail(way, &error);
                return Ok(());
            }
            if round > 0 {
                times.push(before.elapsed());
            }
        }
        times.sort_unstable();
        if let Some(&median) = times.get(times.len() / 2) {
            lock(&routes.inner).router.measured(bucket, way, median);
        }
        Ok(())
    }

    /// The ways that are worth a trial, with the best of those that were measured to compare them with, compiled.
    fn entrants(&self, routes: &PlacementSet, bucket: &ShapeBucket) -> Vec<TrialEntrant> {
        let chosen: Vec<(usize, Result<Arc<CompiledPartitions>, PlacementRecipe>)> = {
            let mut inner = lock(&routes.inner);
            let usable = |inner: &PlacementState, way: usize| {
                inner.ways.get(way).is_some_and(|own| own.failed.is_none())
            };
            let mut ways = inner.router.worth_a_trial(bucket);
            ways.retain(|&way| usable(&inner, way));
            if ways.is_empty() && inner.looked.contains(bucket) {
                return Vec::new();
            }
            let measured = inner.router.estimates(bucket);
            let measured = measured.iter().filter(|one| one.measured && usable(&inner, one.way));
            ways.extend(measured.min_by(|a, b| a.ns.total_cmp(&b.ns)).map(|one| one.way));
            ways.into_iter().map(|way| (way, self.ready(&mut inner, way))).collect()
        };
        let made = chosen.into_iter().filter_map(|(way, compiled)| {
            let compiled = match compiled {
                Ok(compiled) => compiled,
                Err(recipe) => self.make_ready(routes, way, &recipe).ok()?,
            };
            Some(TrialEntrant { way, compiled, times: Vec::new() })
        });
        made.collect()
    }
}

/// A mask that hides nothing.
fn ones(dtype: DataType, shape: &[usize]) -> Result<Tensor, String> {
    let one = converted(&Tensor::scalar(1.0_f32), dtype).map_err(|error| error.to_string())?;
    let ones = one.broadcast_to(shape).and_then(|ones| ones.contiguous());
    ones.map_err(|error| error.to_string())
}

impl PlacementState {
    /// The providers that a way runs on, in running order.
    fn providers<'i>(&'i self, way: &'i Placement) -> Box<dyn Iterator<Item = usize> + 'i> {
        let Some(both) = way.split else {
            return Box::new(way.partitions.iter().map(|part| part.provider));
        };
        let ways = both.into_iter().filter_map(|one| self.ways.get(one));
        Box::new(ways.flat_map(|way| way.partitions.iter().map(|part| part.provider)))
    }

    /// The way that divides so many rows between the two fastest of the ways that have a unit each, with what it is
    /// expected to take; none where that is not much less than without.
    fn divide(&mut self, bucket: &ShapeBucket, count: usize) -> Option<usize> {
        let all = self.router.estimates(bucket);
        let single = |one: &&PlacementEstimate| {
            let way = self.ways.get(one.way)?;
            let first = way.partitions.first()?.provider;
            let alone = way.partitions.iter().all(|part| part.provider == first);
            (one.measured && way.failed.is_none() && way.is_whole() && alone).then_some(first)
        };
        let mut singles: Vec<(usize, &PlacementEstimate)> =
            all.iter().filter_map(|one| Some((single(&one)?, one))).collect();
        singles.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
        let (unit, best) = *singles.first()?;
        let (other, next) = *singles.iter().find(|(other, _)| *other != unit)?;
        let first = share(count, [best.ns, next.ns])?;
        #[allow(clippy::cast_precision_loss, reason = "a share of rows")]
        let part = first as f64 / count as f64;
        let ns = [best.ns * part, next.ns * (1.0 - part)];
        if ns[0].max(ns[1]) + DIVIDING_NS > best.ns * PROMISING {
            return None;
        }
        let ways = [best.way, next.way];
        let at = self.ways.iter().position(|way| way.split == Some(ways));
        let at = at.unwrap_or_else(|| {
            self.ways.push(Placement { split: Some(ways), ..Placement::new(Vec::new()) });
            self.ways.len() - 1
        });
        // Both are shares of what was measured.
        let stop = |unit, start_ns| PlanSegment { unit, ns: 0.0, start_ns };
        let stops = vec![stop(unit, ns[0]), stop(other, ns[1] + DIVIDING_NS)];
        self.router.set_cost(bucket, at, PlacementCost::of_parallel(stops));
        Some(at)
    }
}

/// Shapes of inputs, each with its element type.
type TypedShapes = Vec<(DataType, Vec<usize>)>;

impl PlacementSet {
    /// The bucket with the most runs of which not all ways are measured that should be.
    fn untried(&self) -> Option<(ShapeBucket, TypedShapes)> {
        let inner = lock(&self.inner);
        let usable = |way: &usize| inner.ways.get(*way).is_some_and(|own| own.failed.is_none());
        let open = inner.seen.iter().filter(|(bucket, _)| {
            let untold = !inner.looked.contains(*bucket);
            untold || inner.router.worth_a_trial(bucket).iter().any(usable)
        });
        let (bucket, seen) = open.max_by_key(|(_, seen)| seen.runs)?;
        Some((bucket.clone(), seen.inputs.clone()))
    }

    fn fail(&self, way: usize, error: &RuntimeError) {
        if let Some(own) = lock(&self.inner).ways.get_mut(way) {
            own.compiled = None;
            own.failed = Some(error.to_string());
        }
    }

    fn measured(&self, bucket: &ShapeBucket, entrants: &[TrialEntrant]) {
        let mut inner = lock(&self.inner);
        for one in entrants {
            if let Some(time) = one.median() {
                inner.router.measured(bucket, one.way, time);
            }
        }
    }

    /// Gives back what compiled ways hold that are far behind for all shapes.
    fn prune(&self) {
        let mut inner = lock(&self.inner);
        let mut worth = vec![false; inner.ways.len()];
        for bucket in inner.seen.keys() {
            let all = inner.router.estimates(bucket);
            // A way that failed, or that was never measured, makes no other one worthless.
            let sound = |one: &&PlacementEstimate| {
                one.measured && inner.ways.get(one.way).is_some_and(|way| way.failed.is_none())
            };
            let best = all.iter().filter(sound).map(|one| one.ns).fold(f64::INFINITY, f64::min);
            for one in all.iter().filter(|one| one.ns <= best * WORTHWHILE) {
                if let Some(worth) = worth.get_mut(one.way) {
                    *worth = true;
                }
            }
        }
        // Rows that are divided need both ways.
        let divided: Vec<usize> = inner
            .ways
            .iter()
            .zip(&worth)
            .filter_map(|(way, &worth)| way.split.filter(|_| worth))
            .flatten()
            .collect();
        for way in divided {
            worth[way] = true;
        }
        for (way, worth) in inner.ways.iter_mut().zip(worth) {
            if !worth {
                way.compiled = None;
            }
        }
    }
}
