//! A model that is ready to run.

mod inner;
mod located;
mod output_mask;
mod padded;
mod placements;
mod recover;
mod run_options;
mod running;
mod tell;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use galatea_graph::{Datum, Dim, Fact, Graph, GraphError, Node, ValueId, infer, rewrite};
use galatea_tensor::Tensor;

use crate::binding::{IoInfo, bind, check_ordered};
use crate::device_selector::{ComputeDevice, OccupiedDevice};
use crate::error::RuntimeError;
use crate::explain::{NodeExplanation, SessionExplanation, reasons};
use crate::fallback_providers::FallbackProviders;
use crate::options::{OptimiseLevel, SessionOptions};
use crate::partition::{Partition, costs, live_bytes, partition};
use crate::power::BusyTime;
use crate::provider::{
    ClaimRefusal, Executable, ExecutionProvider, MemoryReport, PlanReport, ProfileRow,
    ProviderClaims,
};
use crate::subgraph;
use crate::tune::TuningProblem;
use crate::typical_shapes::{sized, typical_shapes};
use crate::watch::WatchSource;
use output_mask::OutputMask;
use padded::PaddedAxes;
use placements::PlacementSet;
pub use placements::{PlacementReport, TuningStep};
pub use run_options::RunOptions;
use run_options::{MovingAverage, units};

/// A graph split between providers, compiled, and ready to run from any number of threads.
pub struct Session {
    graph: Graph,
    facts: Vec<Option<Fact>>,
    live: Vec<f64>,
    inputs: Vec<IoInfo>,
    outputs: Vec<IoInfo>,
    providers: Vec<Arc<dyn ExecutionProvider>>,
    options: SessionOptions,
    /// Claims of the providers, less those that failed.
    offers: Mutex<ClaimSet>,
    compiled: RwLock<Arc<CompiledPartitions>>,
    /// Held by who compiles anew what was lost with a device.
    mending: Mutex<()>,
    /// Other ways of running the graph, where runs are divided between units.
    routes: Option<PlacementSet>,
    /// The unit of each provider, where runs wait for their turns.
    units: Option<Vec<Arc<ComputeDevice>>>,
    /// For each provider, the axes that are made longer for it, where it wants few lengths.
    longer: Vec<Option<Arc<PaddedAxes>>>,
}

#[derive(Clone)]
struct ClaimSet {
    claims: Vec<ProviderClaims>,
    notes: Vec<String>,
    /// The nodes that providers failed on.
    failed: Vec<(usize, Range<usize>)>,
}

/// A graph that is rewritten, and what a run of it takes and gives.
#[derive(Clone, Debug)]
pub struct PreparedGraph {
    /// The graph, in running order.
    pub graph: Graph,
    /// Inputs that a run must be given.
    pub inputs: Vec<IoInfo>,
    /// Outputs that a run returns.
    pub outputs: Vec<IoInfo>,
}

impl PreparedGraph {
    /// Rewrites a graph as far as a level says.
    ///
    /// # Errors
    /// Fails when the graph is wrong.
    pub fn new(mut graph: Graph, level: OptimiseLevel) -> Result<Self, RuntimeError> {
        graph.sort()?;
        let facts = infer::facts(&graph, &HashMap::new())?;
        let inputs = describe(&graph, &facts, &graph.inputs)?;
        let outputs = describe(&graph, &facts, &graph.outputs)?;
        if level != OptimiseLevel::O0 {
            let report = rewrite::optimise(&mut graph, level)?;
            tracing::debug!(model = %graph.name, %level, ?report, "rewrote the graph");
            graph.sort()?;
        }
        Ok(Self { graph, inputs, outputs })
    }
}

/// The partitions of one way to run the graph.
struct CompiledPartitions {
    parts: Vec<CompiledPart>,
    /// Values that cross partitions, each with a slot; the model's inputs come first.
    slots: usize,
    /// The last partition that takes each of them; none for what the model gives.
    last_use: Vec<usize>,
    /// Outputs of the model: a slot, or a constant.
    outputs: Vec<SlotOutput>,
    /// The axes that are made longer, where a part's provider wants few lengths.
    longer: Option<Arc<PaddedAxes>>,
    /// Observer that is told of its runs.
    watch: WatchSource,
}

enum SlotOutput {
    Slot(usize),
    Constant(Tensor),
}

struct CompiledPart {
    provider: usize,
    /// The provider's name.
    name: &'static str,
    nodes: Range<usize>,
    executable: Box<dyn Executable>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// True once a run has succeeded.
    proven: AtomicBool,
    /// True if it runs at the same time as the one before it.
    beside: bool,
    /// Counter of the time of its runs.
    spent: BusyTime,
    /// Usual time of its runs, of whatever shapes.
    usual: MovingAverage,
}

/// A graph, and what is known of its values.
type AnalysedGraph<'g> = (&'g Graph, &'g [Option<Fact>]);

/// A failed partition of a run.
struct PartFailure {
    part: usize,
    error: RuntimeError,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Prepares a graph: rewrites it, splits it between the providers, compiles the partitions.
    ///
    /// # Errors
    /// Fails when the graph is wrong, a provider named in the options is not given, or a node is run by
    /// no provider.
    pub fn new(
        graph: Graph,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
    ) -> Result<Self, RuntimeError> {
        Self::of_prepared(PreparedGraph::new(graph, options.optimise)?, providers, options)
    }

    /// Works like [`Session::new`], with a graph that was rewritten before.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::new`].
    pub fn of_prepared(
        prepared: PreparedGraph,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
    ) -> Result<Self, RuntimeError> {
        let providers = select(providers, &options.providers)?;
        let PreparedGraph { mut graph, inputs, outputs } = prepared;
        let facts = infer::facts(&graph, &HashMap::new())?;
        if let Some(order) = providers.first().and_then(|first| first.order(&graph, &facts)) {
            let mut old: Vec<Option<Node>> = graph.nodes.drain(..).map(Some).collect();
            graph.nodes = order.iter().filter_map(|&node| old.get_mut(node)?.take()).collect();
            graph.nodes.extend(old.into_iter().flatten());
        }
        // Where there is no choice nothing is compared.
        let usual = match providers.len() {
            1 => None,
            _ => typical_shapes(&graph, &facts, &[]),
        };
        let usual = usual.unwrap_or_else(|| sized(&facts));
        let claim =
            |provider: &Arc<dyn ExecutionProvider>| provider.claim_usual(&graph, &facts, &usual);
        let claims = providers.iter().map(claim).collect();
        let mut session = Self {
            live: live_bytes(&graph, &usual),
            units: units(&providers, options),
            graph,
            facts,
            inputs,
            outputs,
            providers,
            options: options.clone(),
            offers: Mutex::new(ClaimSet { claims, notes: Vec::new(), failed: Vec::new() }),
            compiled: RwLock::new(Arc::new(CompiledPartitions {
                parts: Vec::new(),
                slots: 0,
                last_use: Vec::new(),
                outputs: Vec::new(),
                longer: None,
                watch: WatchSource::default(),
            })),
            mending: Mutex::new(()),
            routes: None,
            longer: Vec::new(),
        };
        session.longer = session.lengthened();
        let mut offers = lock(&session.offers).clone();
        let compiled = session.compile(&mut offers)?;
        session.tell_parts(&compiled);
        session.offers = Mutex::new(offers);
        session.compiled = RwLock::new(Arc::new(compiled));
        session.routes = PlacementSet::new(&session);
        Ok(session)
    }

    /// The axes that are made longer for each provider that wants few lengths.
    fn lengthened(&self) -> Vec<Option<Arc<PaddedAxes>>> {
        let of = |provider: &Arc<dyn ExecutionProvider>| {
            let lengths = provider.padded_lengths();
            if lengths.is_empty() {
                return None;
            }
            let model = &self.graph.name;
            let provider = provider.name();
            match PaddedAxes::of(&self.graph, &self.facts, &lengths) {
                Ok(longer) => {
                    let name = longer.name();
                    tracing::debug!(%model, provider, length = name, ?lengths, "inputs are padded");
                    Some(Arc::new(longer))
                }
                Err(reason) => {
                    tracing::debug!(%model, provider, "inputs are not padded: {reason}");
                    None
                }
            }
        };
        self.providers.iter().map(of).collect()
    }

    /// Returns the inputs that a run must be given.
    #[must_use]
    pub fn inputs(&self) -> &[IoInfo] {
        &self.inputs
    }

    /// Returns the outputs of a run, in this order.
    #[must_use]
    pub fn outputs(&self) -> &[IoInfo] {
        &self.outputs
    }

    /// Returns the level to which the graph was rewritten.
    #[must_use]
    pub fn optimise_level(&self) -> OptimiseLevel {
        self.options.optimise
    }

    /// The graph after rewriting.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns whether the time of a run depends on the shapes of its inputs alone. Then every length in the
    /// graph is fixed or one of theirs, and no operator runs a graph of its own, such as a loop.
    #[must_use]
    pub fn time_follows_shapes(&self) -> bool {
        let named: HashSet<String> =
            self.inputs.iter().flat_map(|input| &input.dims).flat_map(Dim::names).collect();
        let follows = |dim: &Dim| match dim {
            Dim::Known(_) => true,
            Dim::Symbol(_) => dim.names().iter().all(|name| named.contains(name)),
            Dim::Unknown => false,
        };
        let shaped = |fact: &Fact| fact.shape.as_ref().is_some_and(|dims| dims.iter().all(follows));
        let repeats = |node: &Node| !node.operator.bodies().is_empty();
        self.inputs.iter().all(|input| input.ranked)
            && self.facts.iter().flatten().all(shaped)
            && !self.graph.nodes.iter().any(repeats)
    }

    /// Returns whether runs are divided between devices.
    #[must_use]
    pub fn divides(&self) -> bool {
        self.routes.is_some()
    }

    /// Names of the providers that run the partitions, in running order.
    #[must_use]
    pub fn partition_providers(&self) -> Vec<&'static str> {
        let compiled = self.current();
        compiled.parts.iter().map(|part| self.providers[part.provider].name()).collect()
    }

    /// Computes the outputs, in the order of [`Session::outputs`], from named inputs in any order.
    ///
    /// # Errors
    /// [`RuntimeError::Input`] when a name, type or shape is not what the model takes, or two
    /// lengths under one symbol differ; else what failed inside.
    pub fn run(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<Tensor>, RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        let outputs = self.run_or_demote(&inputs, OutputMask::All, &mut None)?;
        self.tensors(outputs, OutputMask::All)
    }

    /// Works like [`Session::run`], with the inputs in the order of [`Session::inputs`]. Inputs that are not
    /// shared may be overwritten: a cache that a step takes and returns stays in place. A failed run loses such
    /// inputs.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`].
    pub fn run_owned(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, RuntimeError> {
        let outputs = self.owned(inputs, OutputMask::All)?;
        self.tensors(outputs, OutputMask::All)
    }

    fn owned(
        &self,
        inputs: Vec<Tensor>,
        wanted: OutputMask<'_>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        check_ordered(&self.inputs, &inputs)?;
        self.owned_values(inputs.into_iter().map(Datum::Tensor).collect(), wanted)
    }

    /// Runs with what was checked before.
    fn owned_values(
        &self,
        inputs: Vec<Datum>,
        wanted: OutputMask<'_>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let _permit = self.options.pace.enter();
        let compiled = self.current();
        let kept = self.may_demote(&compiled) && inputs.iter().all(recover::is_light);
        let kept = kept.then(|| inputs.clone());
        match (compiled.run(inputs, wanted, &mut None), kept) {
            (Ok(outputs), _) => Ok(outputs),
            (Err(failure), Some(inputs)) => {
                self.run_elsewhere(compiled, failure, &inputs, wanted, &mut None)
            }
            (Err(failure), None) => {
                self.fall_back(&compiled, &failure);
                Err(failure.error)
            }
        }
    }

    /// Takes an output back that nobody reads any more: a later run may write the same output into its
    /// memory, which large outputs are spared to ask the system for. `output` is its place in
    /// [`Session::outputs`].
    pub fn return_buffer(&self, output: usize, tensor: Tensor) {
        let compiled = self.current();
        let Some(SlotOutput::Slot(slot)) = compiled.outputs.get(output) else { return };
        for part in &compiled.parts {
            if let Some(at) = part.outputs.iter().position(|own| own == slot) {
                part.executable.return_buffer(at, tensor);
                return;
            }
        }
    }

    /// A tensor of zeros for an input that runs take and give back, in memory where its one user keeps it
    /// without a copy; `None` where that is the host's memory. `input` is its place in
    /// [`Session::inputs`].
    ///
    /// # Errors
    /// Fails when there is no memory for it.
    pub fn allocate_input(
        &self,
        input: usize,
        shape: &[usize],
    ) -> Result<Option<Tensor>, RuntimeError> {
        let Some(info) = self.inputs.get(input) else { return Ok(None) };
        // The first slots are those of the inputs.
        let own = |part: &CompiledPart| part.inputs.iter().position(|&slot| slot == input);
        let place = |compiled: &CompiledPartitions| {
            let users = compiled.parts.iter().enumerate();
            let mut users = users.filter_map(|(index, part)| Some((index, part, own(part)?)));
            match (users.next(), users.next()) {
                (Some((index, part, at)), None) => part
                    .executable
                    .allocate_input(at, info.dtype, shape)
                    .map_err(|error| PartFailure { part: index, error }),
                _ => Ok(None),
            }
        };
        let compiled = self.current();
        match place(&compiled) {
            Ok(placed) => Ok(placed),
            Err(failure) => match self.recompile(&compiled, &failure) {
                Some(mended) => place(&mended).map_err(|failure| failure.error),
                None => Err(failure.error),
            },
        }
    }

    /// Works like [`Session::run`], for models whose inputs or outputs are sequences or optional values.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`].
    pub fn run_values(&self, inputs: &[(&str, Datum)]) -> Result<Vec<Datum>, RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        self.run_or_demote(&inputs, OutputMask::All, &mut None)
    }

    /// The outputs of a run as tensors.
    fn tensors(
        &self,
        outputs: Vec<Datum>,
        wanted: OutputMask<'_>,
    ) -> Result<Vec<Tensor>, RuntimeError> {
        let tensor = |(info, datum): (&IoInfo, Datum)| {
            datum.into_tensor().map_err(|error| {
                GraphError::structure(format!("output '{}': {error}", info.name)).into()
            })
        };
        wanted.of(&self.outputs).zip(outputs).map(tensor).collect()
    }

    /// Works like [`Session::run`], and also returns the time of each step.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`].
    pub fn profile(
        &self,
        inputs: &[(&str, Tensor)],
    ) -> Result<(Vec<Tensor>, Vec<ProfileRow>), RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        let mut rows = Some(Vec::new());
        let outputs = self.run_or_demote(&inputs, OutputMask::All, &mut rows)?;
        Ok((self.tensors(outputs, OutputMask::All)?, rows.unwrap_or_default()))
    }

    /// Returns the problems with several possible kernels for inputs of these shapes, each family of kernels
    /// and bucket of lengths once.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`], which it calls first.
    pub fn problems(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<TuningProblem>, RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        self.run_or_demote(&inputs, OutputMask::All, &mut None)?;
        self.problems_inner(&inputs)
    }

    /// Works like [`Session::problems`], after a run with these inputs.
    pub(crate) fn problems_inner(
        &self,
        inputs: &[Datum],
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let mut problems = Vec::new();
        self.current().walk(inputs, &mut |executable, given| {
            problems.extend(executable.problems(given)?);
            Ok(())
        })?;
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert((problem.family.clone(), problem.bucket.clone())));
        Ok(problems)
    }

    /// Memory held now.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        let mut sum = MemoryReport::default();
        for part in &self.current().parts {
            let memory = part.executable.memory();
            sum.initializer_bytes += memory.initializer_bytes;
            sum.mapped_bytes += memory.mapped_bytes;
            sum.arena_bytes += memory.arena_bytes;
        }
        sum
    }

    /// Returns statistics of the run plans.
    #[must_use]
    pub fn plans(&self) -> PlanReport {
        let none = PlanReport::default();
        self.current().parts.iter().fold(none, |sum, part| sum.plus(part.executable.plans()))
    }

    /// Explains which provider runs each node, and why the others do not.
    #[must_use]
    pub fn explain(&self) -> SessionExplanation {
        let offers = lock(&self.offers).clone();
        let names: Vec<String> = self.providers.iter().map(|p| p.name().to_owned()).collect();
        let refusals: Vec<Vec<ClaimRefusal>> =
            offers.claims.iter().map(|claims| claims.refusals.clone()).collect();
        let explain = |provider: usize, node: usize| {
            let claim = offers.claims[provider].claims.iter().find(|c| c.nodes.contains(&node));
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let share = |nodes: usize| 1.0 / nodes.max(1) as f64;
            NodeExplanation {
                node: self.graph.place(node).to_string(),
                op: self.graph.nodes[node].operator_name(),
                provider: names[provider].clone(),
                kernel: claim.map_or_else(String::new, |claim| claim.kernel.clone()),
                cost_ns: claim.map_or(0.0, |claim| claim.cost_ns * share(claim.nodes.len())),
                refusals: reasons(&names, &refusals, node),
            }
        };
        let current = self.current();
        let parts = &current.parts;
        let nodes =
            |part: &CompiledPart| part.nodes.clone().map(|n| explain(part.provider, n)).collect();
        SessionExplanation {
            partitions: parts.iter().map(nodes).collect(),
            times: parts.iter().map(|part| self.times(&offers, part)).collect(),
            placed: parts.iter().map(|part| part.executable.placed()).collect(),
            notes: offers.notes.clone(),
        }
    }

    /// Returns the predicted time of each provider that claims all of a part, its own provider first.
    fn times(&self, offers: &ClaimSet, part: &CompiledPart) -> Vec<(String, f64)> {
        let table = costs(self.graph.nodes.len(), &offers.claims);
        let time = |provider: usize| {
            let all = table.get(part.nodes.clone()).into_iter().flatten();
            let sum: f64 = all.map(|row| row[provider]).sum();
            let start = offers.claims[provider].launch_ns.max(0.0);
            sum.is_finite().then(|| (self.providers[provider].name().to_owned(), sum + start))
        };
        let others = (0..self.providers.len()).filter(|&other| other != part.provider);
        std::iter::once(part.provider).chain(others).filter_map(time).collect()
    }

    fn current(&self) -> Arc<CompiledPartitions> {
        Arc::clone(&self.compiled.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compiles the cheapest partitions, without the claims that turn out not to compile.
    fn compile(&self, offers: &mut ClaimSet) -> Result<CompiledPartitions, RuntimeError> {
        loop {
            let nodes = self.graph.nodes.len();
            let partitions =
                partition(nodes, &offers.claims, &self.live, self.options.max_partitions)
                    .map_err(|node| self.unclaimed(offers, node))?;
            let (chosen, error) = match self.compile_partitions(&partitions) {
                Ok(compiled) => return Ok(compiled),
                Err(failed) => failed,
            };
            self.withdraw(offers, chosen.provider, chosen.nodes, &error.to_string());
        }
    }

    /// Compiles partitions; the one that failed, and why.
    fn compile_partitions(
        &self,
        partitions: &[Partition],
    ) -> Result<CompiledPartitions, (Partition, RuntimeError)> {
        self.compile_of((&self.graph, &self.facts), partitions)
    }

    /// Works like [`Session::compile_partitions`], for a graph that computes the same.
    fn compile_of(
        &self,
        (graph, facts): AnalysedGraph<'_>,
        partitions: &[Partition],
    ) -> Result<CompiledPartitions, (Partition, RuntimeError)> {
        let mut parts = Vec::with_capacity(partitions.len());
        let mut slots = ValueSlots::new(&graph.inputs);
        for chosen in partitions {
            let part = self.compile_part((graph, facts), chosen, &mut slots);
            parts.push(part.map_err(|error| (chosen.clone(), error))?);
        }
        let outputs = graph.outputs.iter().map(|&id| match graph.constant(id) {
            Some(tensor) => SlotOutput::Constant(tensor.clone()),
            None => SlotOutput::Slot(slots.of(id)),
        });
        let outputs: Vec<SlotOutput> = outputs.collect();
        let last_use = last_use(&parts, &outputs, slots.count());
        let wish = |part: &CompiledPart| self.longer.get(part.provider)?.clone();
        let longer = parts.iter().find_map(wish);
        let watch = self.options.watch.clone();
        Ok(CompiledPartitions { parts, slots: slots.count(), last_use, outputs, longer, watch })
    }

    fn compile_part(
        &self,
        (graph, facts): AnalysedGraph<'_>,
        chosen: &Partition,
        slots: &mut ValueSlots,
    ) -> Result<CompiledPart, RuntimeError> {
        let Partition { provider, nodes } = chosen.clone();
        let sub = subgraph::extract(graph, facts, nodes.clone());
        let (before, behind) = self.providers.split_at(provider);
        let others = FallbackProviders::new(behind.iter().skip(1).chain(before).cloned().collect());
        let graph = Arc::new(sub.graph);
        let executable = self.providers[provider].compile_ahead(graph, &self.options, &others)?;
        Ok(CompiledPart {
            provider,
            name: self.providers[provider].name(),
            nodes,
            executable,
            inputs: sub.inputs.iter().map(|&id| slots.of(id)).collect(),
            outputs: sub.outputs.iter().map(|&id| slots.of(id)).collect(),
            proven: AtomicBool::new(false),
            beside: false,
            spent: self.options.pace.counting(self.providers[provider].name()),
            usual: MovingAverage::default(),
        })
    }

    /// Takes a failed provider's claims on some nodes away, and notes it.
    fn withdraw(&self, offers: &mut ClaimSet, provider: usize, nodes: Range<usize>, error: &str) {
        let name = self.providers[provider].name();
        let note = format!(
            "provider '{name}' failed on nodes {}..{} and leaves them to others: {error}",
            nodes.start, nodes.end
        );
        tracing::warn!(model = %self.graph.name, "{note}");
        offers.notes.push(note);
        offers.failed.push((provider, nodes.clone()));
        let claims = &mut offers.claims[provider];
        claims.withdraw(&nodes);
        let reason = format!("failed: {error}");
        claims.refusals.extend(nodes.map(|node| ClaimRefusal { node, reason: reason.clone() }));
    }

    fn unclaimed(&self, offers: &ClaimSet, node: usize) -> RuntimeError {
        let names: Vec<String> = self.providers.iter().map(|p| p.name().to_owned()).collect();
        let refusals: Vec<Vec<ClaimRefusal>> =
            offers.claims.iter().map(|claims| claims.refusals.clone()).collect();
        let all = reasons(&names, &refusals, node);
        let texts: Vec<String> = all.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        RuntimeError::Unclaimed {
            node: self.graph.place(node).to_string(),
            reasons: if texts.is_empty() {
                "no provider claims it".into()
            } else {
                texts.join("; ")
            },
        }
    }
}

/// Hands a part of a way to its unit while it runs, when its turn has come.
type DeviceHandover<'o> = dyn Fn(usize) -> Option<OccupiedDevice> + Sync + 'o;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("model", &self.graph.name)
            .field("nodes", &self.graph.nodes.len())
            .field("providers", &self.partition_providers())
            .finish_non_exhaustive()
    }
}

/// The last part that takes the value of each slot, where the model does not give it.
fn last_use(parts: &[CompiledPart], outputs: &[SlotOutput], slots: usize) -> Vec<usize> {
    let mut last_use = vec![usize::MAX; slots];
    for (index, part) in parts.iter().enumerate() {
        for &slot in &part.inputs {
            last_use[slot] = index;
        }
    }
    for output in outputs {
        if let SlotOutput::Slot(slot) = output {
            last_use[*slot] = usize::MAX;
        }
    }
    last_use
}

/// Slots of the values that cross partitions.
struct ValueSlots(HashMap<ValueId, usize>);

impl ValueSlots {
    fn new(inputs: &[ValueId]) -> Self {
        Self(inputs.iter().enumerate().map(|(slot, &id)| (id, slot)).collect())
    }

    fn of(&mut self, id: ValueId) -> usize {
        let next = self.0.len();
        *self.0.entry(id).or_insert(next)
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// The providers that the options name, in that order; all of them when none is named.
fn select(
    given: &[Arc<dyn ExecutionProvider>],
    names: &[String],
) -> Result<Vec<Arc<dyn ExecutionProvider>>, RuntimeError> {
    if names.is_empty() {
        return Ok(given.to_vec());
    }
    let find = |name: &String| {
        given.iter().find(|provider| provider.name() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = given.iter().map(|provider| provider.name()).collect();
            RuntimeError::provider(name, format!("there is no such provider; there are {known:?}"))
        })
    };
    names.iter().map(find).collect()
}

fn describe(
    graph: &Graph,
    facts: &[Option<Fact>],
    ids: &[ValueId],
) -> Result<Vec<IoInfo>, RuntimeError> {
    let describe = |&id: &ValueId| {
        let value = graph.value(id);
        let inferred = facts[id.index()].as_ref();
        let Some(fact) = inferred.or(value.declared.as_ref()) else {
            let text = format!("nothing says what type '{}' has", value.name);
            return Err(GraphError::structure(text).into());
        };
        let declared = value.declared.as_ref().and_then(|fact| fact.shape.as_ref());
        Ok(IoInfo::of(
            graph,
            id,
            &Fact { shape: merge(fact.shape.as_ref(), declared), ..fact.clone() },
        ))
    };
    ids.iter().map(describe).collect()
}

/// The inferred axes with the model's own names where inference knows no number.
fn merge(inferred: Option<&Vec<Dim>>, declared: Option<&Vec<Dim>>) -> Option<Vec<Dim>> {
    match (inferred, declared) {
        (Some(inferred), Some(declared)) if inferred.len() == declared.len() => {
            let pick = |(found, said): (&Dim, &Dim)| match (found, said) {
                (Dim::Known(_), _) | (_, Dim::Unknown) => found.clone(),
                _ => said.clone(),
            };
            Some(inferred.iter().zip(declared).map(pick).collect())
        }
        (Some(inferred), _) => Some(inferred.clone()),
        (None, declared) => declared.cloned(),
    }
}
