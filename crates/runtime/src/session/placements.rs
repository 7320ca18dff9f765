//! Placements of a graph on several devices, and the choice of one for each run.

mod corrections;
mod hybrid;
mod kept;
mod plan;
mod split;
mod trial;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_graph::Datum;
use galatea_tensor::DataType;

use super::{CompiledPartitions, OutputMask, RunOptions, Session, lock};
use crate::device_selector::{
    ComputeDevice, DeviceSelector, OccupiedDevice, PlacementCost, ShapeBucket,
};
use crate::error::RuntimeError;
use crate::options::PlacementOptions;
use crate::partition::Partition;
use crate::provider::ProfileRow;
use corrections::OperatorCorrections;
use hybrid::HybridGraph;
use kept::PlacementKey;
use plan::{PlacementPlan, cost};
use split::{DivisibleRows, SplitRun, share};
use trial::WORTHWHILE;
pub use trial::{PlacementReport, TuningStep};

/// Ways that a session remembers beside those that a provider stands for; the first is how it was planned without
/// any run's shapes.
const MAX_WAYS: usize = 8;
/// Buckets whose shapes are remembered for trials.
const MAX_SEEN: usize = 256;

/// One way of running a graph.
pub(super) struct Placement {
    pub(super) partitions: Vec<Partition>,
    /// The providers for whose sake it was made: each runs whatever it can.
    locations: Vec<usize>,
    /// Compiled form; of the first placement it is the session's own.
    compiled: Option<Arc<CompiledPartitions>>,
    /// Reason why it is not to be used.
    failed: Option<String>,
    /// The two ways that its rows are divided between, where they are; then it has no partitions of its own.
    split: Option<[usize; 2]>,
    /// The graph that its partitions are of, where products are divided between units.
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
    inputs: Vec<(DataType, Vec<usize>)>,
    runs: u64,
}

/// The ways of a session.
pub(super) struct PlacementSet {
    routing: PlacementOptions,
    /// The rows that may be divided.
    rows: Option<DivisibleRows>,
    /// Times of placements in earlier sessions.
    kept: Option<PlacementKey>,
    inner: Mutex<PlacementState>,
}

struct PlacementState {
    router: DeviceSelector,
    ways: Vec<Placement>,
    seen: HashMap<ShapeBucket, SeenInputs>,
    /// Buckets for which it was examined whether to divide rows or matrix multiplications.
    looked: HashSet<ShapeBucket>,
    corrections: OperatorCorrections,
}

/// Placement that a run takes.
pub(super) struct ChosenPlacement {
    way: usize,
    runner: PlacementRunner,
    bucket: ShapeBucket,
    /// Devices that the parts run on, and the expected time of each.
    parts: Vec<(Arc<ComputeDevice>, Duration)>,
    /// True if no other run used these devices when it began.
    alone: bool,
    begin: Instant,
    /// Deadline of the run.
    deadline: Option<Instant>,
    /// True if a part had to wait for its turn.
    waited: AtomicBool,
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
        self.way == 0
    }

    /// Hands a part to its unit when its turn has come, for as long as what is given back lives.
    pub(super) fn acquire(&self, part: usize) -> Option<OccupiedDevice> {
        let (unit, time) = self.parts.get(part)?;
        let occupied = unit.enter(*time, self.deadline);
        if occupied.waited() {
            self.waited.store(true, Ordering::Relaxed);
        }
        Some(occupied)
    }

    /// Runs a way that is not the first one.
    pub(super) fn run(
        &self,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let occupy = |part: usize| self.acquire(part);
        match &self.runner {
            PlacementRunner::Whole(compiled) => {
                let ran = compiled.run_watched(inputs.to_vec(), wanted, rows, &occupy);
                ran.map_err(|failure| failure.error)
            }
            PlacementRunner::Split(split) => split.run(inputs, &occupy),
        }
    }

    fn is_alone(&self) -> bool {
        !self.waited.load(Ordering::Relaxed) && self.parts.iter().all(|(unit, _)| !unit.is_busy())
    }
}

impl PlacementSet {
    /// The ways of a session, where its options say that runs are divided.
    pub(super) fn new(session: &Session) -> Option<Self> {
        let routing = session.options.routing.clone()?;
        let units = session.units.clone()?;
        units.iter().for_each(|unit| unit.set_divided());
        let inner = PlacementState {
            router: DeviceSelector::new(units),
            ways: Vec::new(),
            seen: HashMap::new(),
            looked: HashSet::new(),
            corrections: OperatorCorrections::default(),
        };
        let rows = DivisibleRows::of(&session.graph, &session.facts);
        let kept = PlacementKey::of(session);
        Some(Self { routing, rows, kept, inner: Mutex::new(inner) })
    }

    /// Forgets the ways: what providers can run is not what it was.
    pub(super) fn forget(&self) {
        let inner = &mut *lock(&self.inner);
        let units = inner.router.units().to_vec();
        inner.router = DeviceSelector::new(units);
        inner.ways.clear();
        inner.looked.clear();
    }

    /// Takes note of a run that went well.
    pub(super) fn learn(&self, route: &ChosenPlacement) {
        let took = route.begin.elapsed();
        if route.alone && route.is_alone() {
            lock(&self.inner).router.learn(&route.bucket, route.way, took);
        }
    }

    /// Uses a way no more.
    pub(super) fn give_up(&self, route: &ChosenPlacement, error: &RuntimeError) {
        let mut inner = lock(&self.inner);
        if let Some(way) = inner.ways.get_mut(route.way) {
            way.compiled = None;
            way.failed = Some(error.to_string());
        }
    }
}

impl PlacementState {
    /// Learns what the ways take in a bucket, and of ways that are new: planned ones, and those `known` from before,
    /// with what they took.
    fn open(
        &mut self,
        bucket: ShapeBucket,
        plan: PlacementPlan,
        first: Vec<Partition>,
        known: Vec<(Vec<Partition>, Duration)>,
    ) {
        if self.ways.is_empty() {
            self.ways.push(Placement::new(first));
        }
        for (location, partitions) in plan.divisions {
            let own = self.ways.iter().position(|way| way.divides(&partitions));
            let fits = self.ways.len() < MAX_WAYS || location.is_some();
            if own.is_none() && fits {
                self.ways.push(Placement::new(partitions));
            }
            let own = own.or_else(|| self.ways.len().checked_sub(1).filter(|_| fits));
            if let Some(way) = own.and_then(|own| self.ways.get_mut(own)) {
                way.locations.extend(location);
            }
        }
        let best = known.iter().map(|(_, took)| *took).min().unwrap_or_default();
        for (partitions, _) in known.iter().filter(|(_, took)| *took <= best.mul_f64(WORTHWHILE)) {
            if self.ways.len() < MAX_WAYS && !self.ways.iter().any(|way| way.divides(partitions)) {
                self.ways.push(Placement::new(partitions.clone()));
            }
        }
        let costs = self.ways.iter().map(|way| match way.is_whole() {
            // It is worth something when the ways it is made of were measured.
            false => PlacementCost::unusable(),
            true => cost(&plan.claims, &plan.live, &way.partitions),
        });
        let costs = costs.collect();
        self.router.predict(bucket.clone(), costs);
        for (partitions, took) in known {
            if let Some(way) = self.ways.iter().position(|way| way.divides(&partitions)) {
                self.router.measured(&bucket, way, took);
            }
        }
    }

    /// Adds the division that is predicted to be the fastest by what is known now, if it is a new one.
    fn extend(&mut self, bucket: &ShapeBucket, plan: &PlacementPlan) {
        let fastest = plan.divisions.iter().find(|(location, _)| location.is_none());
        let Some((_, partitions)) = fastest else { return };
        let known = self.ways.iter().any(|way| way.divides(partitions));
        if known || self.ways.len() >= MAX_WAYS {
            return;
        }
        let at = self.ways.len();
        self.router.set_cost(bucket, at, cost(&plan.claims, &plan.live, partitions));
        let all = self.router.estimates(bucket);
        let measured = all.iter().filter(|one| one.measured).map(|one| one.ns);
        let best = measured.fold(f64::INFINITY, f64::min);
        match all.get(at).is_some_and(|one| one.ns < best) {
            true => self.ways.push(Placement::new(partitions.clone())),
            false => self.router.set_cost(bucket, at, PlacementCost::unusable()),
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
            datum.as_tensor().map(|tensor| (tensor.dtype(), tensor.shape().to_vec()))
        };
        let inputs: Option<Vec<_>> = inputs.iter().map(shape).collect();
        if let Some(inputs) = inputs {
            self.seen.insert(bucket.clone(), SeenInputs { inputs, runs: 1 });
        }
    }

    /// The way that stands for a provider; the first where it has none of its own.
    fn located(&self, provider: usize) -> usize {
        let mine = |way: &Placement| way.locations.contains(&provider) && way.failed.is_none();
        self.ways.iter().position(mine).unwrap_or(0)
    }
}

/// Returns whether a run may take a placement once it is compiled.
fn is_sound(ways: &[Placement], at: usize) -> bool {
    ways.get(at).is_some_and(|way| way.failed.is_none() && way.split.is_none())
}

/// Returns whether a run may take a placement at once.
fn is_ready(ways: &[Placement], at: usize, whole: bool) -> bool {
    let Some(way) = ways.get(at).filter(|way| way.failed.is_none()) else { return false };
    match way.split {
        Some(both) => !whole && both.iter().all(|&one| is_ready(ways, one, true)),
        None => at == 0 || way.compiled.is_some(),
    }
}

impl Session {
    /// Works like [`Session::route_by`], for a run without a deadline.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::route_by`].
    pub(super) fn route(
        &self,
        inputs: &[Datum],
        location: Option<&str>,
        whole: bool,
    ) -> Result<Option<ChosenPlacement>, RuntimeError> {
        self.route_by(inputs, RunOptions { location, ..RunOptions::default() }, whole)
    }

    /// Chooses the placement of a run, if the session divides runs. It is one of those that are ready, or the
    /// one that gives every possible node to the provider named in the terms. The rows of a `whole` run are not
    /// divided.
    ///
    /// # Errors
    /// Returns [`RuntimeError::Input`] when there is no such provider, or the error of compiling a placement.
    pub(super) fn route_by(
        &self,
        inputs: &[Datum],
        terms: RunOptions<'_>,
        whole: bool,
    ) -> Result<Option<ChosenPlacement>, RuntimeError> {
        let Some(routes) = &self.routes else { return Ok(None) };
        let location = terms.location.map(|name| self.provider_named(name)).transpose()?;
        let bucket = ShapeBucket::of_inputs(inputs);
        let mut inner = lock(&routes.inner);
        if !inner.router.knows(&bucket) {
            // Who asks meanwhile in another bucket need not wait.
            drop(inner);
            let plan = self.plan(inputs);
            let known = routes.kept.as_ref().map(|kept| kept.find(&bucket)).unwrap_or_default();
            inner = lock(&routes.inner);
            inner.open(bucket.clone(), plan, self.partitions(), known);
        }
        inner.note(&bucket, inputs);
        let way = match location {
            Some(provider) => inner.located(provider),
            None => {
                let aim = terms.aim(routes.routing.goal, routes.routing.units.preference());
                let PlacementState { router, ways, .. } = &mut *inner;
                let usable = |at: usize| is_ready(ways, at, whole);
                // Where all failed, the first is tried again.
                let chosen = router.choose(&bucket, aim, usable);
                let chosen = chosen.map_or(0, |estimate| estimate.way);
                let chosen = match router.takes_work(&bucket, chosen) {
                    true => chosen,
                    // A way that is not compiled is better than a unit that is to have no work.
                    false => {
                        let sound = |at: usize| is_ready(ways, at, whole) || is_sound(ways, at);
                        let other = router.choose(&bucket, aim, sound);
                        other.map_or(chosen, |estimate| estimate.way)
                    }
                };
                self.tell_way(router, &bucket, (chosen, ways.get(chosen)));
                chosen
            }
        };
        let runner = match self.split_run(routes, &mut inner, &bucket, way, inputs) {
            Some(split) => PlacementRunner::Split(split),
            None => match self.ready(&mut inner, way) {
                Ok(compiled) => PlacementRunner::Whole(compiled),
                Err(recipe) => {
                    drop(inner);
                    let compiled = self.make_ready(routes, way, &recipe)?;
                    inner = lock(&routes.inner);
                    PlacementRunner::Whole(compiled)
                }
            },
        };
        let parts = inner.router.part_times(&bucket, way);
        let alone = parts.iter().all(|(unit, _)| !unit.is_busy());
        let deadline = terms.deadline;
        let waited = AtomicBool::new(false);
        let begin = Instant::now();
        Ok(Some(ChosenPlacement { way, runner, bucket, parts, alone, begin, deadline, waited }))
    }

    /// Returns the division of the rows of these inputs by a placement, if it divides them.
    fn split_run(
        &self,
        routes: &PlacementSet,
        inner: &mut PlacementState,
        bucket: &ShapeBucket,
        way: usize,
        inputs: &[Datum],
    ) -> Option<SplitRun> {
        let ways = inner.ways.get(way)?.split?;
        let rows = routes.rows.clone()?;
        let all = inner.router.estimates(bucket);
        let ns = ways.map(|way| all.get(way).map_or(f64::INFINITY, |one| one.ns));
        let first = share(rows.count(inputs)?, ns)?;
        let [one, two] = ways.map(|way| self.ready(inner, way).ok());
        Some(SplitRun { rows, ways: [one?, two?], first })
    }

    /// A way on none of the units of one that failed, ready to run.
    pub(super) fn way_without(&self, failed: &ChosenPlacement) -> Option<Arc<CompiledPartitions>> {
        let routes = self.routes.as_ref()?;
        let gone: Vec<usize> = match &failed.runner {
            PlacementRunner::Whole(compiled) => {
                compiled.parts.iter().map(|part| part.provider).collect()
            }
            PlacementRunner::Split(_) => return None,
        };
        let mut inner = lock(&routes.inner);
        let fits = |way: &Placement| {
            let whole = way.failed.is_none() && way.is_whole();
            whole && way.partitions.iter().all(|part| !gone.contains(&part.provider))
        };
        let way = inner.ways.iter().position(fits)?;
        let ready = self.ready(&mut inner, way);
        drop(inner);
        ready.or_else(|recipe| self.make_ready(routes, way, &recipe)).ok()
    }

    /// Returns the compiled form of a placement, or the recipe for compiling it.
    fn ready(
        &self,
        inner: &mut PlacementState,
        way: usize,
    ) -> Result<Arc<CompiledPartitions>, PlacementRecipe> {
        match inner.ways.get(way) {
            Some(Placement { compiled: Some(compiled), .. }) => Ok(Arc::clone(compiled)),
            Some(own) if way > 0 => Err(PlacementRecipe {
                partitions: own.partitions.clone(),
                hybrid: own.hybrid.clone(),
            }),
            _ => Ok(self.current()),
        }
    }

    /// Compiles a way and keeps it for later runs.
    fn make_ready(
        &self,
        routes: &PlacementSet,
        way: usize,
        recipe: &PlacementRecipe,
    ) -> Result<Arc<CompiledPartitions>, RuntimeError> {
        let made = self.compile_recipe(recipe);
        let mut inner = lock(&routes.inner);
        let own = inner.ways.get_mut(way).filter(|own| {
            let same = own.hybrid.is_some() == recipe.hybrid.is_some();
            same && own.partitions == recipe.partitions
        });
        match made {
            Ok(compiled) => {
                let compiled = Arc::new(compiled);
                if let Some(own) = own {
                    own.compiled = Some(Arc::clone(&compiled));
                }
                Ok(compiled)
            }
            Err(error) => {
                tracing::warn!(model = %self.graph.name, way, "a way is not used: {error}");
                if let Some(own) = own {
                    own.failed = Some(error.to_string());
                }
                Err(error)
            }
        }
    }

    /// The place of a provider among those of the session.
    fn provider_named(&self, name: &str) -> Result<usize, RuntimeError> {
        let all = || self.providers.iter().map(|provider| provider.name());
        all().position(|own| own == name).ok_or_else(|| {
            let known: Vec<&str> = all().collect();
            let known = known.join(", ");
            RuntimeError::Input(format!("there is no unit '{name}' here, there are {known}"))
        })
    }

    /// Returns the session's present division of the graph.
    fn partitions(&self) -> Vec<Partition> {
        let parts = &self.current().parts;
        let of = parts.iter();
        of.map(|part| Partition { provider: part.provider, nodes: part.nodes.clone() }).collect()
    }
}
