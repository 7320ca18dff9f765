//! Chooses among the ways of a model.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::compute_device::ComputeDevice;
use super::objective::{EnergyPolicy, ExecutionGoal};
use super::shape_bucket::ShapeBucket;
use crate::power::UnitChoice;

/// Buckets that are remembered; beyond that the one goes that was asked for the longest time ago.
const MAX_BUCKETS: usize = 1024;
/// Runs that a mean is of at most, so that it follows what changes.
const MEMORY: u32 = 16;
/// A prediction is believed to be off by this factor at most when it is decided whether a way is worth a trial.
const DOUBT: f64 = 4.0;
/// The least and greatest factor by which predictions of a unit are corrected.
const CORRECTION: [f64; 2] = [1e-4, 1e4];

/// A part of a way on one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanSegment {
    /// The unit, by its place among the router's.
    pub unit: usize,
    /// Predicted nanoseconds of the work, which are as far off as others of that unit.
    pub ns: f64,
    /// Nanoseconds to begin and to end: its start and what crosses its borders, which are known better.
    pub start_ns: f64,
}

impl PlanSegment {
    /// A part that begins at once.
    #[must_use]
    pub fn new(unit: usize, ns: f64) -> Self {
        Self { unit, ns, start_ns: 0.0 }
    }
}

/// Predicted cost of a placement: stages that follow each other, each of one part or of several parts that run
/// on different devices at the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementCost(Vec<Vec<PlanSegment>>);

impl PlacementCost {
    /// Parts that follow each other.
    #[must_use]
    pub fn of_sequence(stops: impl IntoIterator<Item = PlanSegment>) -> Self {
        Self(stops.into_iter().map(|stop| vec![stop]).collect())
    }

    /// Parts at the same time.
    #[must_use]
    pub fn of_parallel(stops: Vec<PlanSegment>) -> Self {
        Self(vec![stops])
    }

    /// Stages that follow each other, each of parts at the same time.
    #[must_use]
    pub fn of_stages(stages: Vec<Vec<PlanSegment>>) -> Self {
        Self(stages)
    }

    /// Returns the cost of a placement that is not to be used.
    #[must_use]
    pub fn unusable() -> Self {
        Self::of_sequence([PlanSegment::new(usize::MAX, f64::INFINITY)])
    }

    /// All parts.
    pub fn stops(&self) -> impl Iterator<Item = &PlanSegment> {
        self.0.iter().flatten()
    }

    /// The one unit that runs all of it, if there is one.
    fn only_unit(&self) -> Option<usize> {
        let mut units = self.stops().map(|stop| stop.unit);
        let first = units.next()?;
        units.all(|unit| unit == first).then_some(first)
    }

    /// Nanoseconds from now to its end, where each unit is free after its `wait` and each part takes its `time`.
    fn end(&self, wait: impl Fn(usize) -> f64, time: impl Fn(&PlanSegment) -> f64) -> f64 {
        self.0.iter().fold(0.0, |begin, stage| {
            let end = |stop: &PlanSegment| begin.max(wait(stop.unit)) + time(stop);
            stage.iter().map(end).fold(begin, f64::max)
        })
    }
}

/// A way that is to end in time is predicted to need this share of the time that is left at most.
const SAFE: f64 = 0.8;

/// Criteria by which a placement is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objective {
    /// Goal of the user.
    pub goal: ExecutionGoal,
    /// Choice of devices that the machine's power allows.
    pub power: UnitChoice,
    /// Deadline of the run, and the time left until then.
    pub deadline: Option<(Instant, Duration)>,
}

/// Expected time of a placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementEstimate {
    /// The way, by its place.
    pub way: usize,
    /// Nanoseconds of a run with all units free.
    pub ns: f64,
    /// Nanoseconds from now to the end of a run that begins now.
    pub end_ns: f64,
    /// True if runs of that placement were measured in this bucket.
    pub measured: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct KnownPlacement {
    mean: f64,
    runs: u32,
}

#[derive(Clone, Debug)]
struct BucketTimes {
    cost: PlacementCost,
    known: KnownPlacement,
}

#[derive(Debug, Default)]
struct PlacementTable {
    rows: Vec<BucketTimes>,
    used: u64,
}

/// Knows what the ways of a model take, and chooses among them.
#[derive(Debug)]
pub struct DeviceSelector {
    units: Vec<Arc<ComputeDevice>>,
    /// By which factor predictions of a unit were off, and from how many runs that is known.
    corrections: Vec<(f64, u32)>,
    tables: HashMap<ShapeBucket, PlacementTable>,
    clock: u64,
}

impl DeviceSelector {
    /// A router between these units, which are named by their places.
    #[must_use]
    pub fn new(units: Vec<Arc<ComputeDevice>>) -> Self {
        let corrections = vec![(1.0, 0); units.len()];
        Self { units, corrections, tables: HashMap::new(), clock: 0 }
    }

    /// The units, in their order.
    #[must_use]
    pub fn units(&self) -> &[Arc<ComputeDevice>] {
        &self.units
    }

    /// Returns whether there are predictions for the placements in a bucket.
    #[must_use]
    pub fn knows(&self, bucket: &ShapeBucket) -> bool {
        self.tables.contains_key(bucket)
    }

    /// Says what each way is predicted to take in a bucket; what was measured there stays. Parts on units that the
    /// router does not have make a way unusable.
    pub fn predict(&mut self, bucket: ShapeBucket, costs: Vec<PlacementCost>) {
        self.clock += 1;
        if !self.tables.contains_key(&bucket) && self.tables.len() >= MAX_BUCKETS {
            let oldest = self.tables.iter().min_by_key(|(_, table)| table.used);
            if let Some(oldest) = oldest.map(|(bucket, _)| bucket.clone()) {
                self.tables.remove(&oldest);
            }
        }
        let table = self.tables.entry(bucket).or_default();
        table.used = self.clock;
        let old = std::mem::take(&mut table.rows);
        let mut old = old.into_iter().map(|row| row.known);
        let row = |cost| BucketTimes { cost, known: old.next().unwrap_or_default() };
        table.rows = costs.into_iter().map(row).collect();
    }

    /// Says what one way is predicted to take in a bucket that has predictions; what was measured of it is forgotten.
    pub fn set_cost(&mut self, bucket: &ShapeBucket, way: usize, cost: PlacementCost) {
        let Some(table) = self.tables.get_mut(bucket) else { return };
        while table.rows.len() <= way {
            table.rows.push(BucketTimes {
                cost: PlacementCost::unusable(),
                known: KnownPlacement::default(),
            });
        }
        if let Some(row) = table.rows.get_mut(way) {
            *row = BucketTimes { cost, known: KnownPlacement::default() };
        }
    }

    /// Takes note of a run of a way that had its units for itself. The first run in a bucket prepares what later
    /// ones find, and says nothing.
    pub fn learn(&mut self, bucket: &ShapeBucket, way: usize, took: Duration) {
        let ns = took.as_secs_f64() * 1e9;
        let Some(row) = self.tables.get_mut(bucket).and_then(|table| table.rows.get_mut(way))
        else {
            return;
        };
        row.known.runs = row.known.runs.saturating_add(1);
        if row.known.runs == 1 {
            return;
        }
        let weight = 1.0 / f64::from((row.known.runs - 1).min(MEMORY));
        row.known.mean += (ns - row.known.mean) * weight;
        let work: f64 = row.cost.stops().map(|stop| stop.ns).sum();
        let starts: f64 = row.cost.stops().map(|stop| stop.start_ns).sum();
        let Some(unit) = row.cost.only_unit().filter(|_| work > 0.0) else { return };
        // What it took longer is the work's; where it was faster, the starts were faster as well.
        let worked = (ns - starts).max(ns * work / (work + starts));
        if let Some((factor, runs)) = self.corrections.get_mut(unit) {
            *runs = runs.saturating_add(1);
            let weight = 1.0 / f64::from((*runs).min(MEMORY));
            let off = (worked / work).clamp(CORRECTION[0], CORRECTION[1]);
            *factor = (factor.ln() + (off.ln() - factor.ln()) * weight).exp();
        }
    }

    /// Takes what a trial measured in the place of all runs of a way before it.
    pub fn measured(&mut self, bucket: &ShapeBucket, way: usize, took: Duration) {
        if let Some(row) = self.tables.get_mut(bucket).and_then(|table| table.rows.get_mut(way)) {
            row.known = KnownPlacement { mean: 0.0, runs: 1 };
        }
        self.learn(bucket, way, took);
    }

    /// The unit of each part of a way, and how long it is expected to take in a bucket.
    #[must_use]
    pub fn part_times(
        &self,
        bucket: &ShapeBucket,
        way: usize,
    ) -> Vec<(Arc<ComputeDevice>, Duration)> {
        let row = self.tables.get(bucket).and_then(|table| table.rows.get(way));
        let part = |row: &BucketTimes, stop: &PlanSegment| {
            let ns = self.stop_ns(stop) * self.scale(row);
            let time = Duration::try_from_secs_f64(ns / 1e9).unwrap_or_default();
            Some((Arc::clone(self.units.get(stop.unit)?), time))
        };
        row.into_iter()
            .flat_map(|row| row.cost.stops().filter_map(move |stop| part(row, stop)))
            .collect()
    }

    /// By which factor predictions of a unit were off so far; 1 where nothing was measured.
    #[must_use]
    pub fn correction(&self, unit: usize) -> f64 {
        self.corrections.get(unit).map_or(1.0, |(factor, _)| *factor)
    }

    /// The way for a run in a bucket, of those that are `usable`: on units that take work, if any way has such units
    /// only. None in a bucket without predictions. With a deadline, of the ways that are predicted to end in time the
    /// one that needs the least energy where that is asked for, otherwise the one that takes the least from others;
    /// where none does the one that ends first.
    #[must_use]
    pub fn choose(
        &mut self,
        bucket: &ShapeBucket,
        aim: Objective,
        usable: impl Fn(usize) -> bool,
    ) -> Option<PlacementEstimate> {
        self.clock += 1;
        let clock = self.clock;
        let table = self.tables.get_mut(bucket)?;
        table.used = clock;
        let table = self.tables.get(bucket)?;
        let fits = |way: &usize| {
            let known = |stop: &PlanSegment| stop.unit < self.units.len() && stop.ns.is_finite();
            usable(*way) && table.rows.get(*way).is_some_and(|row| row.cost.stops().all(known))
        };
        let ways: Vec<usize> = (0..table.rows.len()).filter(fits).collect();
        let open = |way: &usize| self.is_open(&table.rows[*way]);
        let any_open = ways.iter().any(open);
        let kept = ways.iter().filter(|way| !any_open || open(way));
        let due = aim.deadline.map(|(due, _)| due);
        let kept = kept.map(|&way| self.estimate(way, &table.rows[way], due));
        if let Some((_, left)) = aim.deadline {
            return self.in_time(table, aim, left, &kept.collect::<Vec<PlacementEstimate>>());
        }
        let scored =
            |one: PlacementEstimate| (one, self.score(aim.goal, &table.rows[one.way], &one));
        let all: Vec<(PlacementEstimate, f64)> = kept.map(scored).collect();
        let least =
            |a: &&(PlacementEstimate, f64), b: &&(PlacementEstimate, f64)| a.1.total_cmp(&b.1);
        let fastest = all.iter().min_by(least)?.0;
        let Some(thrift) = EnergyPolicy::of(aim.goal, aim.power) else { return Some(fastest) };
        let energy = |one: &PlacementEstimate| self.energy(&table.rows[one.way]);
        let Some(usual) = energy(&fastest) else { return Some(fastest) };
        let thrifty = all
            .iter()
            .map(|(one, _)| *one)
            .filter(|one| one.end_ns <= fastest.end_ns * thrift.longer)
            .filter_map(|one| Some((one, energy(&one)?)))
            .filter(|(_, needs)| *needs <= usual * thrift.energy)
            .min_by(|a, b| a.1.total_cmp(&b.1));
        Some(thrifty.map_or(fastest, |(one, _)| one))
    }

    /// The way for a run that is to be done in the time that is left.
    fn in_time(
        &self,
        table: &PlacementTable,
        aim: Objective,
        left: Duration,
        all: &[PlacementEstimate],
    ) -> Option<PlacementEstimate> {
        let limit = left.as_secs_f64() * 1e9 * SAFE;
        let fits = || all.iter().filter(|one| one.end_ns <= limit);
        if EnergyPolicy::of(aim.goal, aim.power).is_some() {
            let energy =
                |one: &PlacementEstimate| Some((*one, self.energy(table.rows.get(one.way)?)?));
            let known: Option<Vec<(PlacementEstimate, f64)>> = fits().map(energy).collect();
            let least = known.into_iter().flatten().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((least, _)) = least {
                return Some(least);
            }
        }
        let owed = |unit: &usize| self.wait_ns(*unit, None);
        let busiest = (0..self.units.len()).filter(|unit| owed(unit) > 0.0);
        let busiest = busiest.max_by(|a, b| owed(a).total_cmp(&owed(b)));
        let taken = |one: &PlacementEstimate| {
            let row = &table.rows[one.way];
            let scale = self.scale(row);
            let time = |stop: &PlanSegment| self.stop_ns(stop) * scale;
            let own = row.cost.stops().filter(|stop| Some(stop.unit) == busiest);
            [own.map(time).sum(), row.cost.stops().map(time).sum(), one.end_ns]
        };
        let order = |a: &&PlacementEstimate, b: &&PlacementEstimate| {
            let pairs =
                taken(a).into_iter().zip(taken(b)).map(|(a, b): (f64, f64)| a.total_cmp(&b));
            pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        let soonest = all.iter().min_by(|a, b| a.end_ns.total_cmp(&b.end_ns));
        fits().min_by(order).or(soonest).copied()
    }

    /// Returns whether all devices of a placement take work; false in a bucket without predictions.
    #[must_use]
    pub fn takes_work(&self, bucket: &ShapeBucket, way: usize) -> bool {
        let row = self.tables.get(bucket).and_then(|table| table.rows.get(way));
        row.is_some_and(|row| self.is_open(row))
    }

    /// Returns the expected time of each placement in a bucket, in their order; empty without predictions.
    #[must_use]
    pub fn estimates(&self, bucket: &ShapeBucket) -> Vec<PlacementEstimate> {
        let rows = self.tables.get(bucket).map_or(&[][..], |table| &table.rows);
        rows.iter().enumerate().map(|(way, row)| self.estimate(way, row, None)).collect()
    }

    /// The ways whose time in a bucket is not measured and that may well be the fastest, the best prediction first.
    #[must_use]
    pub fn worth_a_trial(&self, bucket: &ShapeBucket) -> Vec<usize> {
        let all = self.estimates(bucket);
        let best = all.iter().map(|one| one.ns).fold(f64::INFINITY, f64::min);
        let mut open: Vec<&PlacementEstimate> =
            all.iter().filter(|one| !one.measured && one.ns <= best * DOUBT).collect();
        open.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        open.into_iter().map(|one| one.way).collect()
    }

    fn is_open(&self, row: &BucketTimes) -> bool {
        row.cost.stops().all(|stop| self.units.get(stop.unit).is_some_and(|unit| unit.is_open()))
    }

    /// Returns the time that a run with the deadline `due`, if any, waits for a device.
    fn wait_ns(&self, unit: usize, due: Option<Instant>) -> f64 {
        let wait = |unit: &Arc<ComputeDevice>| match due {
            None => unit.wait(),
            due => unit.wait_until(due),
        };
        self.units.get(unit).map_or(0.0, |unit| wait(unit).as_secs_f64() * 1e9)
    }

    fn slowness(&self, unit: usize) -> f64 {
        self.units.get(unit).map_or(1.0, |unit| unit.slowness())
    }

    /// Returns the expected time of a part, from what is known of its device.
    fn stop_ns(&self, stop: &PlanSegment) -> f64 {
        (stop.start_ns + stop.ns * self.correction(stop.unit)) * self.slowness(stop.unit)
    }

    /// Returns the ratio of the measured time of a row's parts together to the sum of their expected times.
    fn scale(&self, row: &BucketTimes) -> f64 {
        if row.known.runs < 2 {
            return 1.0;
        }
        let usual = |stop: &PlanSegment| stop.start_ns + stop.ns * self.correction(stop.unit);
        let expected = row.cost.end(|_| 0.0, usual);
        if expected > 0.0 { row.known.mean / expected } else { 1.0 }
    }

    fn estimate(&self, way: usize, row: &BucketTimes, due: Option<Instant>) -> PlacementEstimate {
        let scale = self.scale(row);
        let time = |stop: &PlanSegment| self.stop_ns(stop) * scale;
        let end_ns = row.cost.end(|unit| self.wait_ns(unit, due), time);
        PlacementEstimate {
            way,
            ns: row.cost.end(|_| 0.0, time),
            end_ns,
            measured: row.known.runs > 1,
        }
    }

    fn score(&self, goal: ExecutionGoal, row: &BucketTimes, estimate: &PlacementEstimate) -> f64 {
        if goal != ExecutionGoal::Throughput {
            return estimate.end_ns;
        }
        let scale = self.scale(row);
        let busy = row.cost.stops().map(|stop| {
            let of_unit = row.cost.stops().filter(|one| one.unit == stop.unit);
            let own: f64 = of_unit.map(|one| self.stop_ns(one)).sum();
            self.wait_ns(stop.unit, None) + own * scale
        });
        busy.fold(0.0, f64::max)
    }

    /// Joules of a run, in units of a watt for a nanosecond; none where a unit's power is not known.
    fn energy(&self, row: &BucketTimes) -> Option<f64> {
        let scale = self.scale(row);
        let of = |stop: &PlanSegment| {
            let watts = self.units.get(stop.unit)?.watts()?;
            Some(watts * self.stop_ns(stop) * scale)
        };
        row.cost.stops().map(of).sum()
    }
}
