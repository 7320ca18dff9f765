//! Placements of a graph on several devices, and the choice of one for each run.

mod compile;
mod corrections;
mod hybrid;
mod plan;
mod record;
mod report;
mod select;
mod split;
mod trial;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::TuningInput;
use super::compiled::CompiledPartitions;
use super::compiled_graph::{CompiledGraph, lock};
use super::parts::PartsRun;
use super::run::PartsResult;
use crate::device_selector::{
    ComputeDevice, DeviceSelector, OccupiedDevice, PlacementCost, ShapeBucket,
};
use crate::error::RuntimeError;
use crate::options::PlacementOptions;
use crate::partition::Partition;
use corrections::OperatorCorrections;
use galatea_graph::Datum;
use hybrid::HybridGraph;
use plan::{GraphDivision, PlacementPlan, cost};
use record::{PlacementKey, RecordedPlacement};
pub use report::{PlacementReport, TuningStep};
pub(super) use select::SelectionTerms;
use split::{DivisibleRows, SplitRun};
use trial::WORTHWHILE;

/// Placements that a session remembers beside those that a provider stands for; the first is how it was planned
/// without any run's shapes.
const MAX_PLACEMENTS: usize = 8;
/// Buckets whose shapes are remembered for trials.
const MAX_SEEN: usize = 256;

/// One placement of a graph.
pub(super) struct Placement {
    pub(super) partitions: Vec<Partition>,
    /// The providers for whose sake it was made: each runs whatever it can.
    locations: Vec<usize>,
    /// Compiled form; of the first placement it is the session's own.
    compiled: Option<Arc<CompiledPartitions>>,
    /// Reason why it is not to be used.
    failed: Option<String>,
    /// The two placements that its rows are divided between, if any; then it has no partitions of its own.
    split: Option<[usize; 2]>,
    /// The graph that its partitions are of, where matrix products are divided between devices.
    hybrid: Option<Arc<HybridGraph>>,
}

/// Parts of a placement, from which it can be compiled.
#[derive(Clone)]
struct PlacementRecipe {
    partitions: Vec<Partition>,
    hybrid: Option<Arc<HybridGraph>>,
}

/// Inputs that runs in a bucket were given.
struct SeenInputs {
    inputs: Vec<TuningInput>,
    runs: u64,
}

/// The placements of a session.
pub(super) struct PlacementSet {
    graph: Arc<CompiledGraph>,
    options: PlacementOptions,
    /// The rows that may be divided.
    rows: Option<DivisibleRows>,
    /// Times of placements in earlier sessions.
    recorded: Option<PlacementKey>,
    state: Mutex<PlacementState>,
}

struct PlacementState {
    /// [`CompiledGraph::generation`] that the placements were made for.
    generation: u64,
    selector: DeviceSelector,
    placements: Vec<Placement>,
    seen: HashMap<ShapeBucket, SeenInputs>,
    /// Buckets for which it was examined whether to divide rows or matrix multiplications.
    looked: HashSet<ShapeBucket>,
    corrections: OperatorCorrections,
}

/// Placement that a run takes.
pub(super) struct ChosenPlacement {
    /// Its place among the session's.
    number: usize,
    runner: PlacementRunner,
    bucket: ShapeBucket,
    parts: Vec<ExpectedPart>,
    /// True if no other run used these devices when it began.
    alone: bool,
    begin: Instant,
    /// Deadline of the run.
    deadline: Option<Instant>,
    /// True if a part had to wait for its turn.
    waited: AtomicBool,
}

/// Device that a part runs on, and its expected time there.
struct ExpectedPart {
    device: Arc<ComputeDevice>,
    time: Duration,
}

/// Compiled form that runs a placement.
enum PlacementRunner {
    Whole(Arc<CompiledPartitions>),
    Split(SplitRun),
}

impl Placement {
    fn new(partitions: Vec<Partition>) -> Self {
        Self {
            partitions,
            locations: Vec::new(),
            compiled: None,
            failed: None,
            split: None,
            hybrid: None,
        }
    }

    /// Returns whether neither rows nor matrix multiplications are divided.
    fn is_whole(&self) -> bool {
        self.split.is_none() && self.hybrid.is_none()
    }

    /// Returns whether it is this division of the unchanged graph.
    fn divides(&self, partitions: &[Partition]) -> bool {
        self.is_whole() && self.partitions == partitions
    }
}

impl ChosenPlacement {
    /// Returns whether it is the placement that the session was planned with.
    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// Acquires the device of a part, for as long as the returned guard lives.
    pub(super) fn acquire(&self, part: usize) -> Option<OccupiedDevice> {
        let ExpectedPart { device, time } = self.parts.get(part)?;
        let occupied = device.enter(*time, self.deadline);
        if occupied.waited() {
            self.waited.store(true, Ordering::Relaxed);
        }
        Some(occupied)
    }

    /// Runs a placement that is not the first one.
    pub(super) fn run(&self, run: PartsRun<'_>) -> Result<PartsResult, RuntimeError> {
        let acquire = |part: usize| self.acquire(part);
        match &self.runner {
            PlacementRunner::Whole(compiled) => {
                compiled.run(run, &acquire).map_err(|failure| failure.error)
            }
            PlacementRunner::Split(split) => {
                let outputs = split.run(&run.inputs, &acquire)?;
                Ok(PartsResult { outputs, rows: Vec::new() })
            }
        }
    }

    fn is_alone(&self) -> bool {
        !self.waited.load(Ordering::Relaxed) && self.parts.iter().all(|part| !part.device.is_busy())
    }
}

impl PlacementSet {
    /// Returns the placements of a session, if its options say that runs are divided between these devices.
    pub(super) fn new(
        graph: &Arc<CompiledGraph>,
        devices: Option<&[Arc<ComputeDevice>]>,
    ) -> Option<Self> {
        let options = graph.options.routing.clone()?;
        let devices = devices?.to_vec();
        devices.iter().for_each(|device| device.set_divided());
        let state = PlacementState {
            generation: graph.generation(),
            selector: DeviceSelector::new(devices),
            placements: Vec::new(),
            seen: HashMap::new(),
            looked: HashSet::new(),
            corrections: OperatorCorrections::default(),
        };
        let rows = DivisibleRows::of(&graph.graph, &graph.facts);
        let recorded = PlacementKey::of(graph);
        let graph = Arc::clone(graph);
        Some(Self { graph, options, rows, recorded, state: Mutex::new(state) })
    }

    /// Locks the placements. Those that were made before the session's partitions were replaced are forgotten: what
    /// providers can run is not what it was.
    fn state(&self) -> MutexGuard<'_, PlacementState> {
        let mut state = lock(&self.state);
        let generation = self.graph.generation();
        if state.generation != generation {
            state.generation = generation;
            let devices = state.selector.units().to_vec();
            state.selector = DeviceSelector::new(devices);
            state.placements.clear();
            state.looked.clear();
        }
        state
    }

    /// Takes note of a run that went well.
    pub(super) fn learn(&self, chosen: &ChosenPlacement) {
        let took = chosen.begin.elapsed();
        if chosen.alone && chosen.is_alone() {
            self.state().selector.learn(&chosen.bucket, chosen.number, took);
        }
    }

    /// Uses a placement no more.
    pub(super) fn give_up(&self, chosen: &ChosenPlacement, error: &RuntimeError) {
        self.fail(chosen.number, error);
    }

    fn fail(&self, number: usize, error: &RuntimeError) {
        if let Some(own) = self.state().placements.get_mut(number) {
            own.compiled = None;
            own.failed = Some(error.to_string());
        }
    }
}

impl PlacementState {
    /// Opens a bucket: predicts the time of each placement, and adds new ones. These are the planned ones, and those
    /// that were measured in `recorded` sessions.
    fn open(
        &mut self,
        bucket: ShapeBucket,
        plan: PlacementPlan,
        first: Vec<Partition>,
        recorded: Vec<RecordedPlacement>,
    ) {
        if self.placements.is_empty() {
            self.placements.push(Placement::new(first));
        }
        for GraphDivision { location, partitions } in plan.divisions {
            let own = self.placements.iter().position(|own| own.divides(&partitions));
            let fits = self.placements.len() < MAX_PLACEMENTS || location.is_some();
            if own.is_none() && fits {
                self.placements.push(Placement::new(partitions));
            }
            let own = own.or_else(|| self.placements.len().checked_sub(1).filter(|_| fits));
            if let Some(own) = own.and_then(|own| self.placements.get_mut(own)) {
                own.locations.extend(location);
            }
        }
        let best = recorded.iter().map(|one| one.time).min().unwrap_or_default();
        for one in recorded.iter().filter(|one| one.time <= best.mul_f64(WORTHWHILE)) {
            let known = self.placements.iter().any(|own| own.divides(&one.partitions));
            if self.placements.len() < MAX_PLACEMENTS && !known {
                self.placements.push(Placement::new(one.partitions.clone()));
            }
        }
        let costs = self.placements.iter().map(|own| match own.is_whole() {
            // It is worth something when the placements it is made of were measured.
            false => PlacementCost::unusable(),
            true => cost(&plan.claims, &plan.live, &own.partitions),
        });
        let costs = costs.collect();
        self.selector.predict(bucket.clone(), costs);
        for one in recorded {
            let own = self.placements.iter().position(|own| own.divides(&one.partitions));
            if let Some(own) = own {
                self.selector.measured(&bucket, own, one.time);
            }
        }
    }

    /// Adds the division that is predicted to be the fastest by what is known now, if it is a new one.
    fn extend(&mut self, bucket: &ShapeBucket, plan: &PlacementPlan) {
        let fastest = plan.divisions.iter().find(|division| division.location.is_none());
        let Some(GraphDivision { partitions, .. }) = fastest else { return };
        let known = self.placements.iter().any(|own| own.divides(partitions));
        if known || self.placements.len() >= MAX_PLACEMENTS {
            return;
        }
        let at = self.placements.len();
        self.selector.set_cost(bucket, at, cost(&plan.claims, &plan.live, partitions));
        let all = self.selector.estimates(bucket);
        let measured = all.iter().filter(|one| one.measured).map(|one| one.ns);
        let best = measured.fold(f64::INFINITY, f64::min);
        match all.get(at).is_some_and(|one| one.ns < best) {
            true => self.placements.push(Placement::new(partitions.clone())),
            false => self.selector.set_cost(bucket, at, PlacementCost::unusable()),
        }
    }

    /// Remembers what a run is given, to make more of the same.
    fn note(&mut self, bucket: &ShapeBucket, inputs: &[Datum]) {
        if let Some(seen) = self.seen.get_mut(bucket) {
            seen.runs += 1;
            return;
        }
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        let shape = |datum: &Datum| {
            let tensor = datum.as_tensor()?;
            Some(TuningInput { dtype: tensor.dtype(), shape: tensor.shape().to_vec() })
        };
        let inputs: Option<Vec<_>> = inputs.iter().map(shape).collect();
        if let Some(inputs) = inputs {
            self.seen.insert(bucket.clone(), SeenInputs { inputs, runs: 1 });
        }
    }

    /// Returns the placement that stands for a provider; the first where it has none of its own.
    fn located(&self, provider: usize) -> usize {
        let mine = |own: &Placement| own.locations.contains(&provider) && own.failed.is_none();
        self.placements.iter().position(mine).unwrap_or(0)
    }
}
