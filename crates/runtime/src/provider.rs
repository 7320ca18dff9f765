//! Interface of execution providers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use galatea_graph::{Fact, Graph};
use galatea_tensor::OrderedMap;

use crate::device_selector::DeviceLanes;
use crate::error::RuntimeError;
use crate::executable::Executable;
use crate::options::{OptimiseLevel, Precision, SessionOptions};

/// Something that runs nodes: the CPU, a GPU, the Neural Engine.
pub trait ExecutionProvider: Send + Sync + fmt::Debug {
    /// Returns the facts about the provider that no graph changes.
    fn traits(&self) -> ProviderTraits;

    /// Returns the provider as a model's configuration wants it. None where the provider itself will do, such as a
    /// device that models share and that has taken the settings.
    ///
    /// # Errors
    /// Names the setting, what was found and what was expected.
    fn variant(
        &self,
        wish: &ProviderWish<'_>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        match wish.settings.and_then(|settings| settings.keys().next()) {
            Some(name) => Err(format!("'{name}' found, '{}' has no settings", self.traits().name)),
            None => Ok(None),
        }
    }

    /// Returns the nodes that this provider can run, with their costs.
    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims;

    /// Prepares a partition: a graph of claimed nodes only.
    ///
    /// # Errors
    /// Fails when it cannot be run after all; its nodes then go to another provider.
    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError>;
}

impl dyn ExecutionProvider + '_ {
    /// Returns the name that options and messages use, such as `cpu`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.traits().name
    }

    /// Returns the provider for somebody who asked for it by name, or None where it has no such variant.
    /// See [`ProviderWish::forced`].
    #[must_use]
    pub fn forced(&self) -> Option<Arc<dyn ExecutionProvider>> {
        self.variant(&ProviderWish { settings: None, forced: true }).ok().flatten()
    }
}

/// Facts about a provider that no graph changes.
#[derive(Clone, Debug)]
pub struct ProviderTraits {
    /// The name that options and messages use, such as `cpu`.
    pub name: &'static str,
    /// Everything that the packed form of weights depends on here besides the weights and the names of forms, such as the
    /// instruction set.
    pub packing: String,
    /// Default level of graph rewriting for a model that prefers this provider.
    pub optimise: OptimiseLevel,
    /// True if the provider only runs nodes that no other one can. No runs are sent to it for its own sake.
    pub is_fallback: bool,
    /// Number of runs that it can usefully execute at a time, of all sessions together.
    pub lanes: DeviceLanes,
    /// Lengths that inputs had best be padded up to, as each new length is compiled anew; none where any will do.
    /// Only axes are padded whose padding is known to change nothing.
    pub padded_lengths: Vec<usize>,
    /// True if results lie on a device and must be copied back before the host reads them. A model then gains
    /// from keeping its outputs small.
    pub reads_back: bool,
}

impl ProviderTraits {
    /// Returns the traits of a provider on the host that does nothing out of the ordinary.
    #[must_use]
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            packing: String::new(),
            optimise: OptimiseLevel::default(),
            is_fallback: false,
            lanes: DeviceLanes::default(),
            padded_lengths: Vec::new(),
            reads_back: false,
        }
    }
}

/// Wish of a model's configuration for a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProviderWish<'w> {
    /// Settings of the provider's own by name; None leaves them as they are.
    pub settings: Option<&'w OrderedMap<String, String>>,
    /// True for somebody who asked for the provider by name: it claims whatever it can run, however soon another
    /// one would be done.
    pub forced: bool,
}

/// A graph for which a provider is asked what it can run.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// Facts that hold in every run, by [`galatea_graph::ValueId::index`].
    pub facts: &'g [Option<Fact>],
    /// The same facts with a number for every length for which fitting ones were found: costs are those of runs of
    /// these lengths.
    pub typical: &'g [Option<Fact>],
    /// True to ask for [`ProviderClaims::order`] as well.
    pub with_order: bool,
    /// The precision of matrix multiplications and convolutions: it chooses kernels, never who can run a node.
    pub precision: Precision,
}

impl<'g> ClaimRequest<'g> {
    /// Creates the request for a graph whose lengths are typical as far as they are known.
    #[must_use]
    pub fn new(graph: &'g Graph, facts: &'g [Option<Fact>]) -> Self {
        Self { graph, facts, typical: facts, with_order: false, precision: Precision::default() }
    }
}

/// A partition to compile.
#[derive(Clone, Debug)]
pub struct CompileRequest<'g> {
    /// The partition: claimed nodes only.
    pub graph: Arc<Graph>,
    /// Options of the session.
    pub options: &'g SessionOptions,
    /// Other providers of the session, which can run the partition while it compiles or when it fails.
    pub others: FallbackProviders,
}

impl<'g> CompileRequest<'g> {
    /// Creates the request for a graph that no other provider runs.
    #[must_use]
    pub fn alone(graph: Arc<Graph>, options: &'g SessionOptions) -> Self {
        Self { graph, options, others: FallbackProviders::default() }
    }
}

/// The other providers of a session than the one that a partition is given to: they can run it in its place, such as
/// while it is being compiled. Those behind that one in the session's list come first.
#[derive(Clone, Debug, Default)]
pub struct FallbackProviders(pub Vec<Arc<dyn ExecutionProvider>>);

impl FallbackProviders {
    /// Returns whether there are no other providers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

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
    /// Running order of the nodes, by their positions, in which those that the provider runs lie together. None
    /// where any order will do, or the request did not ask. The first of a session's providers is asked.
    pub order: Option<Vec<usize>>,
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
