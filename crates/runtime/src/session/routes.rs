//! The ways of running a graph on several units, and which one a run takes.

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

use super::{Compiled, RunTerms, Session, Wanted, lock};
use crate::error::RuntimeError;
use crate::options::Routing;
use crate::partition::Partition;
use crate::provider::ProfileRow;
use crate::route::{Bucket, Cost, Occupied, Router, Unit};
use corrections::Corrections;
use hybrid::Hybrid;
use kept::Kept;
use plan::{Plan, cost};
use split::{Rows, SplitRun, share};
use trial::WORTHWHILE;
pub use trial::{Tended, WayReport};

/// Ways that a session remembers beside those that a provider stands for; the first is how it was planned without
/// any run's shapes.
const MOST_WAYS: usize = 8;
/// Buckets whose shapes are remembered for trials.
const MOST_SEEN: usize = 256;

/// One way of running a graph.
pub(super) struct Way {
    pub(super) partitions: Vec<Partition>,
    /// The providers for whose sake it was made: each runs whatever it can.
    locations: Vec<usize>,
    /// What runs it; of the first way that is what the session has.
    compiled: Option<Arc<Compiled>>,
    /// Why it is not to be used.
    failed: Option<String>,
    /// The two ways that its rows are divided between, where they are; then it has no partitions of its own.
    split: Option<[usize; 2]>,
    /// The graph that its partitions are of, where products are divided between units.
    hybrid: Option<Arc<Hybrid>>,
}

/// What a way is made of.
#[derive(Clone)]
struct Recipe {
    partitions: Vec<Partition>,
    hybrid: Option<Arc<Hybrid>>,
}

/// What runs in a bucket were given.
struct Seen {
    inputs: Vec<(DataType, Vec<usize>)>,
    runs: u64,
}

/// The ways of a session.
pub(super) struct Routes {
    routing: Routing,
    /// The rows that may be divided.
    rows: Option<Rows>,
    /// What ways took in sessions before this one.
    kept: Option<Kept>,
    inner: Mutex<Inner>,
}

struct Inner {
    router: Router,
    ways: Vec<Way>,
    seen: HashMap<Bucket, Seen>,
    /// Where it was looked whether rows or products had better be divided.
    looked: HashSet<Bucket>,
    corrections: Corrections,
}

/// Which way a run goes.
pub(super) struct Route {
    way: usize,
    runner: Runner,
    bucket: Bucket,
    /// What the parts run on, and how long each is expected to take.
    parts: Vec<(Arc<Unit>, Duration)>,
    /// Whether nobody else used these units when it began.
    alone: bool,
    begin: Instant,
    /// When it is to be done.
    deadline: Option<Instant>,
    /// Whether a part had to wait for its turn.
    waited: AtomicBool,
}

/// What runs a way.
enum Runner {
    Whole(Arc<Compiled>),
    Split(SplitRun),
}

impl Way {
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

    /// Whether neither rows nor products are divided.
    fn is_whole(&self) -> bool {
        self.split.is_none() && self.hybrid.is_none()
    }

    /// Whether it is this division of the graph as it is.
    fn divides(&self, partitions: &[Partition]) -> bool {
        self.is_whole() && self.partitions == partitions
    }
}

impl Route {
    /// Whether it is the way that the session was planned with.
    pub(super) fn is_first(&self) -> bool {
        self.way == 0
    }

    /// Hands a part to its unit when its turn has come, for as long as what is given back lives.
    pub(super) fn occupy(&self, part: usize) -> Option<Occupied> {
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
        wanted: Wanted<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let occupy = |part: usize| self.occupy(part);
        match &self.runner {
            Runner::Whole(compiled) => {
                let ran = compiled.run_watched(inputs.to_vec(), wanted, rows, &occupy);
                ran.map_err(|failure| failure.error)
            }
            Runner::Split(split) => split.run(inputs, &occupy),
        }
    }

    fn is_alone(&self) -> bool {
        !self.waited.load(Ordering::Relaxed) && self.parts.iter().all(|(unit, _)| !unit.is_busy())
    }
}

impl Routes {
    /// The ways of a session, where its options say that runs are divided.
    pub(super) fn new(session: &Session) -> Option<Self> {
        let routing = session.options.routing.clone()?;
        let units = session.units.clone()?;
        units.iter().for_each(|unit| unit.set_divided());
        let inner = Inner {
            router: Router::new(units),
            ways: Vec::new(),
            seen: HashMap::new(),
            looked: HashSet::new(),
            corrections: Corrections::default(),
        };
        let rows = Rows::of(&session.graph, &session.facts);
        let kept = Kept::of(session);
        Some(Self { routing, rows, kept, inner: Mutex::new(inner) })
    }

    /// Forgets the ways: what providers can run is not what it was.
    pub(super) fn forget(&self) {
        let inner = &mut *lock(&self.inner);
        let units = inner.router.units().to_vec();
        inner.router = Router::new(units);
        inner.ways.clear();
        inner.looked.clear();
    }

    /// Takes note of a run that went well.
    pub(super) fn learn(&self, route: &Route) {
        let took = route.begin.elapsed();
        if route.alone && route.is_alone() {
            lock(&self.inner).router.learn(&route.bucket, route.way, took);
        }
    }

    /// Uses a way no more.
    pub(super) fn give_up(&self, route: &Route, error: &RuntimeError) {
        let mut inner = lock(&self.inner);
        if let Some(way) = inner.ways.get_mut(route.way) {
            way.compiled = None;
            way.failed = Some(error.to_string());
        }
    }
}

impl Inner {
    /// Learns what the ways take in a bucket, and of ways that are new: planned ones, and those `known` from before,
    /// with what they took.
    fn open(
        &mut self,
        bucket: Bucket,
        plan: Plan,
        first: Vec<Partition>,
        known: Vec<(Vec<Partition>, Duration)>,
    ) {
        if self.ways.is_empty() {
            self.ways.push(Way::new(first));
        }
        for (location, partitions) in plan.divisions {
            let own = self.ways.iter().position(|way| way.divides(&partitions));
            let fits = self.ways.len() < MOST_WAYS || location.is_some();
            if own.is_none() && fits {
                self.ways.push(Way::new(partitions));
            }
            let own = own.or_else(|| self.ways.len().checked_sub(1).filter(|_| fits));
            if let Some(way) = own.and_then(|own| self.ways.get_mut(own)) {
                way.locations.extend(location);
            }
        }
        let best = known.iter().map(|(_, took)| *took).min().unwrap_or_default();
        for (partitions, _) in known.iter().filter(|(_, took)| *took <= best.mul_f64(WORTHWHILE)) {
            if self.ways.len() < MOST_WAYS && !self.ways.iter().any(|way| way.divides(partitions)) {
                self.ways.push(Way::new(partitions.clone()));
            }
        }
        let costs = self.ways.iter().map(|way| match way.is_whole() {
            // It is worth something when the ways it is made of were measured.
            false => Cost::unusable(),
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
    fn extend(&mut self, bucket: &Bucket, plan: &Plan) {
        let fastest = plan.divisions.iter().find(|(location, _)| location.is_none());
        let Some((_, partitions)) = fastest else { return };
        let known = self.ways.iter().any(|way| way.divides(partitions));
        if known || self.ways.len() >= MOST_WAYS {
            return;
        }
        let at = self.ways.len();
        self.router.set_cost(bucket, at, cost(&plan.claims, &plan.live, partitions));
        let all = self.router.estimates(bucket);
        let measured = all.iter().filter(|one| one.measured).map(|one| one.ns);
        let best = measured.fold(f64::INFINITY, f64::min);
        match all.get(at).is_some_and(|one| one.ns < best) {
            true => self.ways.push(Way::new(partitions.clone())),
            false => self.router.set_cost(bucket, at, Cost::unusable()),
        }
    }

    /// Remembers what a run is given, to make more of the same.
    fn note(&mut self, bucket: &Bucket, inputs: &[Datum]) {
        if let Some(seen) = self.seen.get_mut(bucket) {
            seen.runs += 1;
            return;
        }
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        let shape = |datum: &Datum| {
            datum.as_tensor().map(|tensor| (tensor.dtype(), tensor.shape().to_vec()))
        };
        let inputs: Option<Vec<_>> = inputs.iter().map(shape).collect();
        if let Some(inputs) = inputs {
            self.seen.insert(bucket.clone(), Seen { inputs, runs: 1 });
        }
    }

    /// The way that stands for a provider; the first where it has none of its own.
    fn located(&self, provider: usize) -> usize {
        let mine = |way: &Way| way.locations.contains(&provider) && way.failed.is_none();
        self.ways.iter().position(mine).unwrap_or(0)
    }
}

/// Whether a run may take a way once it is compiled.
fn is_sound(ways: &[Way], at: usize) -> bool {
    ways.get(at).is_some_and(|way| way.failed.is_none() && way.split.is_none())
}

/// Whether a run may take a way at once.
fn is_ready(ways: &[Way], at: usize, whole: bool) -> bool {
    let Some(way) = ways.get(at).filter(|way| way.failed.is_none()) else { return false };
    match way.split {
        Some(both) => !whole && both.iter().all(|&one| is_ready(ways, one, true)),
        None => at == 0 || way.compiled.is_some(),
    }
}

impl Session {
    /// As [`Session::route_by`], of a run that is due at no time.
    ///
    /// # Errors
    /// As [`Session::route_by`].
    pub(super) fn route(
        &self,
        inputs: &[Datum],
        location: Option<&str>,
        whole: bool,
    ) -> Result<Option<Route>, RuntimeError> {
        self.route_by(inputs, RunTerms { location, ..RunTerms::default() }, whole)
    }

    /// Which way a run goes, where the session may choose: of those that are ready, or the one on which the
    /// provider that its terms name runs whatever it can. The rows of a `whole` run are not divided.
    ///
    /// # Errors
    /// [`RuntimeError::Input`] when there is no such provider; what failed when a way is compiled.
    pub(super) fn route_by(
        &self,
        inputs: &[Datum],
        terms: RunTerms<'_>,
        whole: bool,
    ) -> Result<Option<Route>, RuntimeError> {
        let Some(routes) = &self.routes else { return Ok(None) };
        let location = terms.location.map(|name| self.provider_named(name)).transpose()?;
        let bucket = Bucket::of_inputs(inputs);
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
                let Inner { router, ways, .. } = &mut *inner;
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
            Some(split) => Runner::Split(split),
            None => match self.ready(&mut inner, way) {
                Ok(compiled) => Runner::Whole(compiled),
                Err(recipe) => {
                    drop(inner);
                    let compiled = self.make_ready(routes, way, &recipe)?;
                    inner = lock(&routes.inner);
                    Runner::Whole(compiled)
                }
            },
        };
        let parts = inner.router.part_times(&bucket, way);
        let alone = parts.iter().all(|(unit, _)| !unit.is_busy());
        let (deadline, waited) = (terms.deadline, AtomicBool::new(false));
        let begin = Instant::now();
        Ok(Some(Route { way, runner, bucket, parts, alone, begin, deadline, waited }))
    }

    /// How a way divides the rows of these inputs, if it does.
    fn split_run(
        &self,
        routes: &Routes,
        inner: &mut Inner,
        bucket: &Bucket,
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
    pub(super) fn way_without(&self, failed: &Route) -> Option<Arc<Compiled>> {
        let routes = self.routes.as_ref()?;
        let gone: Vec<usize> = match &failed.runner {
            Runner::Whole(compiled) => compiled.parts.iter().map(|part| part.provider).collect(),
            Runner::Split(_) => return None,
        };
        let mut inner = lock(&routes.inner);
        let fits = |way: &Way| {
            let whole = way.failed.is_none() && way.is_whole();
            whole && way.partitions.iter().all(|part| !gone.contains(&part.provider))
        };
        let way = inner.ways.iter().position(fits)?;
        let ready = self.ready(&mut inner, way);
        drop(inner);
        ready.or_else(|recipe| self.make_ready(routes, way, &recipe)).ok()
    }

    /// What runs a way, or what it is to be made of.
    fn ready(&self, inner: &mut Inner, way: usize) -> Result<Arc<Compiled>, Recipe> {
        match inner.ways.get(way) {
            Some(Way { compiled: Some(compiled), .. }) => Ok(Arc::clone(compiled)),
            Some(own) if way > 0 => {
                Err(Recipe { partitions: own.partitions.clone(), hybrid: own.hybrid.clone() })
            }
            _ => Ok(self.current()),
        }
    }

    /// Compiles a way and keeps it for later runs.
    fn make_ready(
        &self,
        routes: &Routes,
        way: usize,
        recipe: &Recipe,
    ) -> Result<Arc<Compiled>, RuntimeError> {
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

    /// How the session divides the graph now.
    fn partitions(&self) -> Vec<Partition> {
        let parts = &self.current().parts;
        let of = parts.iter();
        of.map(|part| Partition { provider: part.provider, nodes: part.nodes.clone() }).collect()
    }
}
