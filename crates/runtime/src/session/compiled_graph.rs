//! A graph, the providers that claim its nodes, and the partitions that are compiled of it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use galatea_graph::{Fact, Graph, Node, infer};

use super::compiled::{
    CompiledPart, CompiledPartitions, MovingAverage, SlotOutput, ValueSlots, last_use,
};
use super::padded::PaddedAxes;
use crate::error::RuntimeError;
use crate::explain::reasons;
use crate::options::{Precision, SessionOptions};
use crate::partition::{Partition, live_bytes, partition};
use crate::provider::{
    ClaimRefusal, ClaimRequest, CompileRequest, ExecutionProvider, FallbackProviders,
    ProviderClaims,
};
use crate::subgraph;
use crate::typical_shapes::{sized, typical_shapes};

/// A graph, the providers that claim its nodes, and the partitions that are compiled of it.
pub(super) struct CompiledGraph {
    pub(super) graph: Graph,
    pub(super) facts: Vec<Option<Fact>>,
    pub(super) providers: Vec<Arc<dyn ExecutionProvider>>,
    /// The providers' names.
    pub(super) names: Vec<&'static str>,
    pub(super) options: SessionOptions,
    /// For each provider, the axes that are padded for it, where it wants few lengths.
    pub(super) padded: Vec<Option<Arc<PaddedAxes>>>,
    /// Claims of the providers, less those that failed.
    pub(super) claims: Mutex<ClaimSet>,
    /// Held while partitions are compiled again that were lost with a device.
    pub(super) recompiling: Mutex<()>,
    /// Bytes that live before each node, and behind the last one.
    live: Vec<f64>,
    compiled: RwLock<Arc<CompiledPartitions>>,
    /// Number of times that the partitions were replaced.
    generation: AtomicU64,
}

/// Claims of the providers of a session.
#[derive(Clone)]
pub(super) struct ClaimSet {
    pub(super) claims: Vec<ProviderClaims>,
    /// Failures, for people.
    pub(super) notes: Vec<String>,
    /// Nodes that providers failed on, with the provider.
    pub(super) failed: Vec<(usize, Range<usize>)>,
}

/// A graph to compile, which computes the same as the session's.
#[derive(Clone, Copy)]
pub(super) struct AnalysedGraph<'g> {
    pub(super) graph: &'g Graph,
    pub(super) facts: &'g [Option<Fact>],
}

/// A partition that its provider could not compile.
pub(super) struct CompileFailure {
    partition: Partition,
    pub(super) error: RuntimeError,
}

/// Locks a mutex, also after a panic of another holder.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CompiledGraph {
    /// Asks the providers for claims and compiles the cheapest partitions.
    ///
    /// # Errors
    /// Fails when a node is run by no provider.
    pub(super) fn new(
        mut graph: Graph,
        providers: Vec<Arc<dyn ExecutionProvider>>,
        options: SessionOptions,
    ) -> Result<Self, RuntimeError> {
        let facts = infer::facts(&graph, &HashMap::new())?;
        // Where there is no choice nothing is compared.
        let typical = match providers.len() {
            1 => None,
            _ => typical_shapes(&graph, &facts, &[]),
        };
        let typical = typical.unwrap_or_else(|| sized(&facts));
        let claims = all_claims(&mut graph, &facts, &typical, &providers, options.precision);
        let mut set = ClaimSet { claims, notes: Vec::new(), failed: Vec::new() };
        let made = Self {
            live: live_bytes(&graph, &typical),
            padded: padded_axes(&graph, &facts, &providers),
            names: providers.iter().map(|provider| provider.name()).collect(),
            graph,
            facts,
            providers,
            options,
            claims: Mutex::new(set.clone()),
            compiled: RwLock::new(Arc::new(CompiledPartitions::none())),
            recompiling: Mutex::new(()),
            generation: AtomicU64::new(0),
        };
        let compiled = made.compile(&mut set)?;
        made.keep(set, &Arc::new(compiled));
        Ok(made)
    }

    /// Returns the graph and what is known of its values.
    pub(super) fn analysed(&self) -> AnalysedGraph<'_> {
        AnalysedGraph { graph: &self.graph, facts: &self.facts }
    }

    /// Returns the partitions that were planned first, or that replaced them after a failure.
    pub(super) fn current(&self) -> Arc<CompiledPartitions> {
        Arc::clone(&self.compiled.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of times that the partitions were replaced: what providers can run changes with it.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lets later runs take these partitions.
    pub(super) fn keep(&self, claims: ClaimSet, compiled: &Arc<CompiledPartitions>) {
        *lock(&self.claims) = claims;
        *self.compiled.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(compiled);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Compiles the cheapest partitions, without the claims that turn out not to compile.
    pub(super) fn compile(
        &self,
        claims: &mut ClaimSet,
    ) -> Result<CompiledPartitions, RuntimeError> {
        loop {
            let nodes = self.graph.nodes.len();
            let partitions =
                partition(nodes, &claims.claims, &self.live, self.options.max_partitions)
                    .map_err(|node| self.unclaimed(claims, node))?;
            let failure = match self.compile_partitions(self.analysed(), &partitions) {
                Ok(compiled) => return Ok(compiled),
                Err(failure) => failure,
            };
            let Partition { provider, nodes } = failure.partition;
            self.withdraw(claims, provider, nodes, &failure.error.to_string());
        }
    }

    /// Compiles partitions of a graph that computes the same as the session's.
    pub(super) fn compile_partitions(
        &self,
        analysed: AnalysedGraph<'_>,
        partitions: &[Partition],
    ) -> Result<CompiledPartitions, CompileFailure> {
        let graph = analysed.graph;
        let mut parts = Vec::with_capacity(partitions.len());
        let mut slots = ValueSlots::new(&graph.inputs);
        for chosen in partitions {
            let part = self.compile_part(analysed, chosen, &mut slots);
            parts.push(part.map_err(|error| CompileFailure { partition: chosen.clone(), error })?);
        }
        let outputs = graph.outputs.iter().map(|&id| match graph.constant(id) {
            Some(tensor) => SlotOutput::Constant(tensor.clone()),
            None => SlotOutput::Slot(slots.of(id)),
        });
        let outputs: Vec<SlotOutput> = outputs.collect();
        let last_use = last_use(&parts, &outputs, slots.count());
        let wanted = |part: &CompiledPart| self.padded.get(part.provider)?.clone();
        let padded = parts.iter().find_map(wanted);
        let watch = self.options.watch.clone();
        Ok(CompiledPartitions { parts, slots: slots.count(), last_use, outputs, padded, watch })
    }

    fn compile_part(
        &self,
        analysed: AnalysedGraph<'_>,
        chosen: &Partition,
        slots: &mut ValueSlots,
    ) -> Result<CompiledPart, RuntimeError> {
        let Partition { provider, nodes } = chosen.clone();
        let sub = subgraph::extract(analysed.graph, analysed.facts, nodes.clone());
        let (before, behind) = self.providers.split_at(provider);
        let executable = self.providers[provider].compile(CompileRequest {
            graph: Arc::new(sub.graph),
            options: &self.options,
            others: FallbackProviders(behind.iter().skip(1).chain(before).cloned().collect()),
        })?;
        let name = self.names[provider];
        Ok(CompiledPart {
            provider,
            name,
            nodes,
            executable,
            inputs: sub.inputs.iter().map(|&id| slots.of(id)).collect(),
            outputs: sub.outputs.iter().map(|&id| slots.of(id)).collect(),
            proven: AtomicBool::new(false),
            beside: false,
            spent: self.options.pace.counting(name),
            typical: MovingAverage::default(),
        })
    }

    /// Takes a failed provider's claims on some nodes away, and notes it.
    pub(super) fn withdraw(
        &self,
        claims: &mut ClaimSet,
        provider: usize,
        nodes: Range<usize>,
        error: &str,
    ) {
        let name = self.names[provider];
        let note = format!(
            "provider '{name}' failed on nodes {}..{} and leaves them to others: {error}",
            nodes.start, nodes.end
        );
        tracing::warn!(model = %self.graph.name, "{note}");
        claims.notes.push(note);
        claims.failed.push((provider, nodes.clone()));
        let own = &mut claims.claims[provider];
        own.withdraw(&nodes);
        let reason = format!("failed: {error}");
        own.refusals.extend(nodes.map(|node| ClaimRefusal { node, reason: reason.clone() }));
    }

    fn unclaimed(&self, claims: &ClaimSet, node: usize) -> RuntimeError {
        let names: Vec<String> = self.names.iter().map(|&name| name.to_owned()).collect();
        let refusals: Vec<Vec<ClaimRefusal>> =
            claims.claims.iter().map(|claims| claims.refusals.clone()).collect();
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

/// Asks all providers for claims, after the nodes were brought into the order that the first one wants.
fn all_claims(
    graph: &mut Graph,
    facts: &[Option<Fact>],
    typical: &[Option<Fact>],
    providers: &[Arc<dyn ExecutionProvider>],
    precision: Precision,
) -> Vec<ProviderClaims> {
    let ask = |graph: &Graph, provider: &Arc<dyn ExecutionProvider>, with_order: bool| {
        provider.claim(&ClaimRequest { graph, facts, typical, with_order, precision })
    };
    let mut first = providers.first().map(|first| ask(graph, first, true));
    if let Some(order) = first.as_mut().and_then(|first| first.order.take()) {
        let mut old: Vec<Option<Node>> = graph.nodes.drain(..).map(Some).collect();
        graph.nodes = order.iter().filter_map(|&node| old.get_mut(node)?.take()).collect();
        graph.nodes.extend(old.into_iter().flatten());
        // Claims name nodes by their places.
        first = None;
    }
    let graph = &*graph;
    let mut claims = Vec::with_capacity(providers.len());
    for provider in providers {
        claims.push(first.take().unwrap_or_else(|| ask(graph, provider, false)));
    }
    claims
}

/// Returns the axes that are padded for each provider that wants few lengths.
fn padded_axes(
    graph: &Graph,
    facts: &[Option<Fact>],
    providers: &[Arc<dyn ExecutionProvider>],
) -> Vec<Option<Arc<PaddedAxes>>> {
    let of = |provider: &Arc<dyn ExecutionProvider>| {
        let traits = provider.traits();
        if traits.padded_lengths.is_empty() {
            return None;
        }
        let model = &graph.name;
        let provider = traits.name;
        match PaddedAxes::of(graph, facts, &traits.padded_lengths) {
            Ok(padded) => {
                let name = padded.name();
                tracing::debug!(%model, provider, length = name, ?padded, "inputs are padded");
                Some(Arc::new(padded))
            }
            Err(reason) => {
                tracing::debug!(%model, provider, "inputs are not padded: {reason}");
                None
            }
        }
    };
    providers.iter().map(of).collect()
}
