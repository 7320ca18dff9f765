//! Interface of execution providers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use galatea_graph::{Datum, Fact, Graph};
use galatea_tensor::{DataType, Tensor};

use crate::device_selector::DeviceLanes;
use crate::error::RuntimeError;
use crate::explain::PlacedOperator;
use crate::fallback_providers::FallbackProviders;
use crate::options::{OptimiseLevel, SessionOptions};
use crate::roofline::ArithmeticUnit;
use crate::tune::TuningProblem;
use crate::work::ArithmeticWork;

/// Nodes that a provider can run.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeClaim {
    /// Positions in [`Graph::nodes`].
    pub nodes: Vec<usize>,
    /// Predicted time for all of them, in nanoseconds, for the shapes that are known.
    pub cost_ns: f64,
    /// Name of the code that runs them, such as the kernel's name; for people.
    pub kernel: String,
}

/// Reason why a provider leaves a node to others, or runs it without a kernel of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRefusal {
    /// Position in [`Graph::nodes`].
    pub node: usize,
    /// The reason, for people.
    pub reason: String,
}

/// A provider's answer about a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderClaims {
    /// Nodes that the provider can run. A node in several claims counts with the first.
    pub claims: Vec<NodeClaim>,
    /// Nodes that the provider cannot run, with reasons.
    pub refusals: Vec<ClaimRefusal>,
    /// Time to start one partition, in nanoseconds.
    pub launch_ns: f64,
    /// Time to bring one byte to or from this provider, in nanoseconds; 0 where memory is shared.
    pub transfer_ns_per_byte: f64,
}

impl ProviderClaims {
    /// Takes claims on some nodes back.
    pub fn withdraw(&mut self, nodes: &Range<usize>) {
        for claim in &mut self.claims {
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let each = claim.cost_ns / claim.nodes.len().max(1) as f64;
            claim.nodes.retain(|node| !nodes.contains(node));
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let left = claim.nodes.len() as f64;
            claim.cost_ns = each * left;
        }
        self.claims.retain(|claim| !claim.nodes.is_empty());
    }
}

/// Something that runs nodes: the CPU, a GPU, the Neural Engine.
pub trait ExecutionProvider: Send + Sync + fmt::Debug {
    /// The name that options and messages use, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Returns what the packed form of weights depends on here besides the weights and the names of forms, such
    /// as the instruction set.
    fn packing(&self) -> String {
        String::new()
    }

    /// Takes settings of its own by name, as a model's configuration has them.
    ///
    /// # Errors
    /// Names the setting, what was found and what was expected.
    fn configure(&self, settings: &BTreeMap<String, String>) -> Result<(), String> {
        match settings.keys().next() {
            Some(name) => Err(format!("'{name}' found, '{}' has no settings", self.name())),
            None => Ok(()),
        }
    }

    /// A provider like this one with settings of its own, as one model's configuration has them. None where settings
    /// are those of a device that models share: [`ExecutionProvider::configure`] has taken them.
    ///
    /// # Errors
    /// Returns the same errors as [`ExecutionProvider::configure`].
    fn configured(
        &self,
        settings: &BTreeMap<String, String>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        self.configure(settings).map(|()| None)
    }

    /// Returns the default level of graph rewriting for a model that prefers this provider.
    fn usual_level(&self) -> OptimiseLevel {
        OptimiseLevel::default()
    }

    /// The provider for somebody who asked for it by name: it claims whatever it can run, however soon another one
    /// would be done. None where it cannot be preferred so.
    fn forced(&self) -> Option<Arc<dyn ExecutionProvider>> {
        None
    }

    /// Returns whether the provider is only a fallback for nodes that no other provider can run. No runs are
    /// sent to such a provider for its own sake.
    fn is_fallback(&self) -> bool {
        false
    }

    /// Returns the number of runs that it can usefully execute at a time, of all sessions together.
    fn lanes(&self) -> DeviceLanes {
        DeviceLanes::default()
    }

    /// Lengths that inputs had best be padded up to, as each new length is compiled anew; none where any will do. Only
    /// axes are padded whose padding is known to change nothing.
    fn padded_lengths(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns whether its results lie on a device and must be copied back before the host reads them. A model
    /// then gains from keeping its outputs small.
    fn reads_back(&self) -> bool {
        false
    }

    /// A running order of the nodes, by their places, in which those that this provider takes lie together. None
    /// where any order will do. The first of a session's providers is asked.
    fn order(&self, _graph: &Graph, _facts: &[Option<Fact>]) -> Option<Vec<usize>> {
        None
    }

    /// Returns the nodes that this provider can run, with their costs. `facts` is indexed by
    /// [`galatea_graph::ValueId::index`].
    fn claim(&self, graph: &Graph, facts: &[Option<Fact>]) -> ProviderClaims;

    /// Works like [`ExecutionProvider::claim`], with the cost of runs of usual lengths. `usual` equals `facts`,
    /// with a number for every length for which fitting numbers were found.
    fn claim_usual(
        &self,
        graph: &Graph,
        facts: &[Option<Fact>],
        _usual: &[Option<Fact>],
    ) -> ProviderClaims {
        self.claim(graph, facts)
    }

    /// Prepares a partition: a graph of claimed nodes only.
    ///
    /// # Errors
    /// Fails when it cannot be run after all; its nodes then go to another provider.
    fn compile(
        &self,
        graph: Arc<Graph>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Executable>, RuntimeError>;

    /// Works like [`ExecutionProvider::compile`], for a provider that may take long to compile. The `others` of
    /// the session can run the partition meanwhile.
    ///
    /// # Errors
    /// Returns the same errors as [`ExecutionProvider::compile`].
    fn compile_ahead(
        &self,
        graph: Arc<Graph>,
        options: &SessionOptions,
        _others: &FallbackProviders,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        self.compile(graph, options)
    }
}

/// Memory that a session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Bytes of weights in memory of this process alone, packed copies included.
    pub initializer_bytes: usize,
    /// Bytes of weights, packed ones too, in mapped files: they take memory only as far as they are
    /// used, once for all processes.
    pub mapped_bytes: usize,
    /// Bytes of the arenas for intermediate values that exist now.
    pub arena_bytes: usize,
}

/// Statistics of run plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Number of sets of input shapes with a plan at present.
    pub plans: usize,
    /// Number of plans that were made since the start, including those that were evicted.
    pub made: usize,
    /// Time that making them took.
    pub time: Duration,
    /// Bytes of the arena in the plan that was used last.
    pub arena_bytes: usize,
    /// The most bytes that live at once in that plan: no arena can be smaller.
    pub live_bytes: usize,
    /// Multiplications and additions of products and convolutions in all runs so far.
    pub operations: u64,
}

impl PlanReport {
    /// Both together: arenas are held at the same time.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            plans: self.plans + other.plans,
            made: self.made + other.made,
            time: self.time + other.time,
            arena_bytes: self.arena_bytes + other.arena_bytes,
            live_bytes: self.live_bytes + other.live_bytes,
            operations: self.operations.saturating_add(other.operations),
        }
    }
}

/// Time of one step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileRow {
    /// The node's name, or that of its first output where it has none.
    pub node: String,
    /// The operator.
    pub op: String,
    /// Name of the code that ran it, such as the kernel's name.
    pub kernel: String,
    /// The provider.
    pub provider: &'static str,
    /// The time.
    pub time: Duration,
    /// Least work that it had to do.
    pub work: ArithmeticWork,
    /// Kind of instructions that multiplied and added.
    pub unit: ArithmeticUnit,
}

/// A compiled partition. Several threads may submit at the same time.
pub trait Executable: Send + Sync {
    /// Starts a run with the partition's inputs, in the order of its graph.
    fn submit(&self, inputs: Vec<Datum>) -> RunFence;

    /// Works like [`Executable::submit`], and returns only the outputs that are wanted, in their order:
    /// `wanted` has an entry for each output. Values that they do not depend on need not be computed, and
    /// unwanted outputs need not be copied back.
    fn submit_wanted(&self, inputs: Vec<Datum>, wanted: &[bool]) -> RunFence {
        let fence = self.submit(inputs);
        let wanted = wanted.to_vec();
        RunFence::pending(move || Ok(picked(fence.wait()?, &wanted)))
    }

    /// Runs to the end and says what took how long; without rows where the provider cannot tell.
    ///
    /// # Errors
    /// Returns the same errors as [`RunFence::wait`].
    fn profile(&self, inputs: Vec<Datum>) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        Ok((self.submit(inputs).wait()?, Vec::new()))
    }

    /// Works like [`Executable::profile`], for a run that returns only the outputs that are wanted.
    ///
    /// # Errors
    /// Returns the same errors as [`RunFence::wait`].
    fn profile_wanted(
        &self,
        inputs: Vec<Datum>,
        wanted: &[bool],
    ) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        let (outputs, rows) = self.profile(inputs)?;
        Ok((picked(outputs, wanted), rows))
    }

    /// Returns whether [`Executable::profile`] runs once and costs little more than [`Executable::submit`],
    /// which allows it to replace a plain run while someone watches.
    fn times_steps(&self) -> bool {
        false
    }

    /// Takes an output back that nobody reads any more, so that a later run may write that output into
    /// its memory. `output` is its place among those of the partition's graph.
    fn return_buffer(&self, _output: usize, _tensor: Tensor) {}

    /// A tensor of zeros in memory where runs find and keep this input without a copy, such as a
    /// device's; `None` where that is the host's memory. `input` is its place among those of the
    /// partition's graph.
    ///
    /// # Errors
    /// Fails when there is no memory for it.
    fn allocate_input(
        &self,
        _input: usize,
        _dtype: DataType,
        _shape: &[usize],
    ) -> Result<Option<Tensor>, RuntimeError> {
        Ok(None)
    }

    /// Memory held now.
    fn memory(&self) -> MemoryReport;

    /// Returns the problems with several possible kernels for inputs of these shapes, to be measured.
    ///
    /// # Errors
    /// Fails when the shapes are refused.
    fn problems(&self, _inputs: &[Datum]) -> Result<Vec<TuningProblem>, RuntimeError> {
        Ok(Vec::new())
    }

    /// Returns the device that an underlying framework means to use for each operator; empty if it does not
    /// report this.
    fn placed(&self) -> Vec<PlacedOperator> {
        Vec::new()
    }

    /// Returns statistics of its run plans; all zero if the provider makes no plans.
    fn plans(&self) -> PlanReport {
        PlanReport::default()
    }
}

/// The outputs that are wanted, of all of them.
fn picked(outputs: Vec<Datum>, wanted: &[bool]) -> Vec<Datum> {
    let both = outputs.into_iter().zip(wanted);
    both.filter_map(|(output, wanted)| wanted.then_some(output)).collect()
}

/// The end of a run, to be waited for.
pub struct RunFence(Box<dyn FnOnce() -> Result<Vec<Datum>, RuntimeError> + Send>);

impl RunFence {
    /// A run that is over.
    #[must_use]
    pub fn ready(result: Result<Vec<Datum>, RuntimeError>) -> Self {
        Self(Box::new(move || result))
    }

    /// A run that goes on; `wait` blocks until its end.
    #[must_use]
    pub fn pending(
        wait: impl FnOnce() -> Result<Vec<Datum>, RuntimeError> + Send + 'static,
    ) -> Self {
        Self(Box::new(wait))
    }

    /// Waits for the outputs, in the order of the partition's graph.
    ///
    /// # Errors
    /// Fails when the run failed.
    pub fn wait(self) -> Result<Vec<Datum>, RuntimeError> {
        (self.0)()
    }
}

impl fmt::Debug for RunFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence")
    }
}
