//! A model that is ready to run.

mod compiled;
mod compiled_graph;
mod explained;
mod fallback;
mod kernel_tuning;
mod log;
mod made_inputs;
mod open;
mod padded;
mod parts;
mod pipeline;
mod placements;
mod prepared;
mod recover;
mod required;
mod run;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use galatea_graph::{Dim, Fact, Graph, Node};
use galatea_tensor::{MappedFileSet, Tensor};

use crate::binding::{BindingFailure, IoInfo};
use crate::device_selector::ComputeDevice;
use crate::error::RuntimeError;
use crate::executable::PartitionReport;
use crate::explain::SessionExplanation;
use crate::options::{OptimiseLevel, SessionOptions};
use crate::provider::ExecutionProvider;
use crate::tune::TuningProblem;
use compiled::{CompiledPart, CompiledPartitions, PartFailure};
use compiled_graph::CompiledGraph;
pub use fallback::{compile_fallback, predict_fallback_ns};
use kernel_tuning::RunShapes;
pub use kernel_tuning::{KernelTuningLimits, KernelTuningReport, SessionGate, TuningInput};
use open::OpenSession;
use pipeline::RunPipeline;
use placements::PlacementSet;
pub use placements::{PlacementReport, TuningStep};
pub use prepared::PreparedGraph;
pub use run::{OutputMask, Run, RunInputs, RunResult};

/// A graph split between providers, compiled, and ready to run from any number of threads.
pub struct Session {
    compiled: Arc<CompiledGraph>,
    inputs: Vec<IoInfo>,
    outputs: Arc<[IoInfo]>,
    /// Placements of the graph, where runs are divided between devices.
    placements: Option<PlacementSet>,
    /// The device of each provider, where runs wait for their turns.
    devices: Option<Vec<Arc<ComputeDevice>>>,
    /// Session for runs that are not as the model declares, once there was one.
    open: OnceLock<Option<OpenSession>>,
    shapes: RunShapes,
    /// Files that constants may lie in, mapped.
    files: MappedFileSet,
}

impl Session {
    /// Prepares a graph: rewrites it, splits it between the providers, compiles the partitions. Runs fail once one of
    /// the files was written to that the calling thread has mapped for this purpose
    /// ([`galatea_tensor::collect_mapped_files`]), as long as it is mapped.
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
        let devices = devices(&providers, options);
        let PreparedGraph { graph, inputs, outputs } = prepared;
        let compiled = Arc::new(CompiledGraph::new(graph, providers, options.clone())?);
        compiled.log_parts();
        let placements = PlacementSet::new(&compiled, devices.as_deref());
        let (outputs, shapes, open) = (outputs.into(), RunShapes::default(), OnceLock::new());
        let files = MappedFileSet::opened_so_far();
        Ok(Self { compiled, inputs, outputs, placements, devices, open, shapes, files })
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
        self.compiled.options.optimise
    }

    /// Returns the graph after rewriting.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.compiled.graph
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
            && self.compiled.facts.iter().flatten().all(shaped)
            && !self.compiled.graph.nodes.iter().any(repeats)
    }

    /// Returns whether runs are divided between devices.
    #[must_use]
    pub fn divides(&self) -> bool {
        self.placements.is_some()
    }

    /// Returns the names of the providers that run the partitions, in running order.
    #[must_use]
    pub fn partition_providers(&self) -> Vec<&'static str> {
        self.compiled.current().parts.iter().map(|part| part.name).collect()
    }

    /// Runs the model.
    ///
    /// # Errors
    /// [`RuntimeError::Input`] when a name, type or shape is not what the model takes, the mask of outputs has
    /// another length, or the placement is unknown; else what failed inside. So is a run in which two lengths
    /// under one symbol differ, where the session has no [`crate::SessionOptions::source`]. In a session whose runs are not divided between devices, a placement must run some of the model.
    pub fn run(&self, run: Run<'_>) -> Result<RunResult, RuntimeError> {
        let wanted = run.outputs;
        let again = run.to_repeat();
        let bound = match (run.bind(&self.inputs, self.outputs.len()), again) {
            (Err(BindingFailure::Undeclared(error)), Some(again)) => {
                return self.run_undeclared(&again, error);
            }
            (bound, _) => bound?,
        };
        self.shapes.note(&bound.inputs);
        self.check_files()?;
        let ran = pipeline(self).run(bound);
        // Whatever was computed meanwhile, and whatever error came of it, may be of bytes that changed.
        self.check_files()?;
        Ok(RunResult::new(ran?, wanted, &self.outputs))
    }

    /// Checks that the constants are those that the session was made with.
    ///
    /// # Errors
    /// [`RuntimeError::ChangedFile`] where a mapped file of the model was written to.
    fn check_files(&self) -> Result<(), RuntimeError> {
        self.files.check().map_err(|error| RuntimeError::ChangedFile(error.to_string()))
    }

    /// Works like [`Session::run`], for models whose outputs are tensors.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`], and names an output that is no tensor.
    pub fn run_tensors(&self, run: Run<'_>) -> Result<Vec<Tensor>, RuntimeError> {
        self.run(run)?.tensors()
    }

    /// Takes an output back that nobody reads any more: a later run may write the same output into its
    /// memory, which large outputs are spared to ask the system for. `output` is its place in
    /// [`Session::outputs`].
    pub fn return_buffer(&self, output: usize, tensor: Tensor) {
        let compiled = self.compiled.current();
        let Some(slot) = compiled.output_slot(output) else { return };
        for part in &compiled.parts {
            if let Some(at) = part.outputs.iter().position(|&own| own == slot) {
                if let Some(buffers) = part.executable.traits().buffers {
                    buffers.return_buffer(at, tensor);
                }
                return;
            }
        }
    }

    /// Returns a tensor of zeros for an input that runs take and give back, in memory where its one user keeps it
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
        let allocate = |compiled: &CompiledPartitions| {
            let users = compiled.parts.iter().enumerate();
            let mut users = users.filter_map(|(index, part)| Some((index, part, own(part)?)));
            let (Some((index, part, at)), None) = (users.next(), users.next()) else {
                return Ok(None);
            };
            let Some(buffers) = part.executable.traits().buffers else { return Ok(None) };
            let allocated = buffers.allocate_input(at, info.dtype, shape);
            allocated.map_err(|error| PartFailure { part: index, error })
        };
        let current = self.compiled.current();
        match allocate(&current) {
            Ok(allocated) => Ok(allocated),
            Err(failure) => match self.compiled.recompile(&current, &failure) {
                Some(mended) => allocate(&mended).map_err(|failure| failure.error),
                None => Err(failure.error),
            },
        }
    }

    /// Returns whether an output is computed on a device and copied back from there. `output` is its index in
    /// [`Session::outputs`].
    #[must_use]
    pub fn reads_back(&self, output: usize) -> bool {
        let compiled = self.compiled.current();
        let Some(slot) = compiled.output_slot(output) else { return false };
        let part = compiled.parts.iter().find(|part| part.outputs.contains(&slot));
        part.is_some_and(|part| self.compiled.providers[part.provider].traits().reads_back)
    }

    /// Returns the problems with several possible kernels for inputs of these shapes, each family of kernels
    /// and bucket of lengths once.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`], which it calls first.
    pub fn problems(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<TuningProblem>, RuntimeError> {
        let bound = Run::named(inputs).bind(&self.inputs, self.outputs.len())?;
        let inputs = bound.inputs.clone();
        pipeline(self).run(bound)?;
        self.compiled.problems(&inputs, &|| {})
    }

    /// Returns the memory held now and statistics of the run plans, of all partitions together.
    #[must_use]
    pub fn report(&self) -> PartitionReport {
        let mut all = PartitionReport::default();
        for part in &self.compiled.current().parts {
            let PartitionReport { memory, plans, placed } = part.executable.report();
            all.memory = all.memory.plus(memory);
            all.plans = all.plans.plus(plans);
            all.placed.extend(placed);
        }
        all
    }

    /// Explains which provider runs each node, and why the others do not.
    #[must_use]
    pub fn explain(&self) -> SessionExplanation {
        self.compiled.explain()
    }

    /// Measures, for inputs like these, the placements that may be the fastest, until all are measured or `limit` is
    /// over. Does nothing in a session whose runs are not divided between devices.
    ///
    /// # Errors
    /// Returns the errors of [`Session::run`] for wrong inputs, and fails when the planned partitions fail.
    pub fn try_placements(
        &self,
        inputs: &[(&str, Tensor)],
        limit: Duration,
    ) -> Result<TuningStep, RuntimeError> {
        let Some(placements) = &self.placements else { return Ok(TuningStep::Settled) };
        let bound = Run::named(inputs).bind(&self.inputs, self.outputs.len())?;
        placements.try_all(&bound.inputs, limit)
    }

    /// Measures the placements that may be the fastest for the shapes that runs had most often, with inputs of zeros,
    /// and masks that show everything; for `limit` at most, or as long as one run takes. For times at which nobody
    /// waits.
    ///
    /// # Errors
    /// Fails when the model cannot run with zeros. The shapes are not tried again.
    pub fn tune_placements(&self, limit: Duration) -> Result<TuningStep, RuntimeError> {
        match &self.placements {
            Some(placements) => placements.tune(limit),
            None => Ok(TuningStep::Settled),
        }
    }

    /// Returns the placements for inputs like these, the fastest first; none where runs are not divided.
    ///
    /// # Errors
    /// Returns the errors of [`Session::run`] for wrong inputs.
    pub fn placements(
        &self,
        inputs: &[(&str, Tensor)],
    ) -> Result<Vec<PlacementReport>, RuntimeError> {
        let Some(placements) = &self.placements else { return Ok(Vec::new()) };
        let bound = Run::named(inputs).bind(&self.inputs, self.outputs.len())?;
        placements.reports(&bound.inputs)
    }
}

/// Returns the parts of a session that a run passes through.
fn pipeline(session: &Session) -> RunPipeline<'_> {
    RunPipeline {
        graph: &session.compiled,
        placements: session.placements.as_ref(),
        devices: session.devices.as_deref(),
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("model", &self.compiled.graph.name)
            .field("nodes", &self.compiled.graph.nodes.len())
            .field("providers", &self.partition_providers())
            .finish_non_exhaustive()
    }
}

/// Returns the providers that the options name, in that order; all of them when none is named.
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
            let text = format!("there is no such provider; there are {}", known.join(", "));
            RuntimeError::provider(name, text)
        })
    };
    names.iter().map(find).collect()
}

/// Returns the devices of providers, where runs of a session wait for turns.
fn devices(
    providers: &[Arc<dyn ExecutionProvider>],
    options: &SessionOptions,
) -> Option<Vec<Arc<ComputeDevice>>> {
    let routed = options.routing.as_ref().map(|routing| &routing.units);
    let all = routed.or(options.turns.0.as_ref())?;
    let device = |provider: &Arc<dyn ExecutionProvider>| {
        let traits = provider.traits();
        let device = all.named(traits.name);
        device.set_lanes(traits.lanes);
        device
    };
    Some(providers.iter().map(device).collect())
}
