//! The CPU: kernels from `galatea-kernels` where a row of [`KERNELS`] takes the node, the
//! reference evaluation elsewhere, so that every model runs.
//!
//! Compiling packs weights once. For each set of input shapes a schedule is made and kept: shapes
//! are inferred, results that are then known are constants, views share bytes, every other value
//! gets its place in an arena, and each kernel is bound to its shapes. A run takes an arena from a
//! pool and walks the steps. Where lengths follow from values, a run has several stages, and each
//! has a schedule of its own.

mod body;
mod executable;
mod halved;
mod halves;
mod kernel;
mod late;
mod packing;
mod route;
mod rows;
mod schedule;
mod single;
mod stage;
mod tune;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_graph::{Graph, infer, rewrite};
use galatea_kernels::{Isa, MAX_POOL_THREADS, ThreadPool};
use galatea_runtime::cost::UnitCost;
use galatea_runtime::{
    ClaimRefusal, ClaimRequest, CompileRequest, Executable, ExecutionProvider, MAX_SESSION_THREADS,
    NodeClaim, OptimiseLevel, Precision, ProviderClaims, ProviderTraits, RuntimeError,
    SessionOptions,
};

use executable::CpuExecutable;
pub use kernel::{
    Bf16Operands, CpuBuildContext, CpuKernel, CpuKernelRow, CpuKernels, CpuNodeView, CpuStep,
    KernelChoices, StepCall, StepFunction, StepOutput, WeightBytes,
};
pub use packing::LAYOUTS;
pub use route::{BlasRoute, ProductCosts};
pub use rows::KERNELS;
use single::SingleFacts;
pub use single::in_single;

pub(crate) use galatea_runtime::NodeShapes;

use crate::cores::HostCores;
use crate::cost;
use crate::reference;

/// The provider's name.
pub const NAME: &str = "cpu";

/// Kernel name of operators with subgraphs in profiles and reports; the kernels inside do the work.
const BODIES: &str = "bodies";

/// The CPU provider.
#[derive(Debug)]
pub struct CpuProvider {
    isa: Isa,
    /// The libraries that multiply matrices beside the kernels.
    blas: Option<BlasRoute>,
    /// The speeds from which times of nodes are predicted.
    cost: UnitCost,
}

impl Default for CpuProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuProvider {
    /// The CPU with the best instruction set that it has.
    #[must_use]
    pub fn new() -> Self {
        let blas = BlasRoute::system();
        let isa = Isa::detect();
        Self { isa, blas, cost: cost::of_host(isa) }
    }

    /// The same with times predicted from other facts, such as those that were measured on this host.
    #[must_use]
    pub fn with_cost(self, cost: UnitCost) -> Self {
        Self { cost, ..self }
    }

    /// The same with the kernels of another instruction set of this processor.
    #[must_use]
    pub fn with_isa(self, isa: Isa) -> Self {
        Self { isa, cost: cost::of_host(isa), ..self }
    }

    /// The same with products routed to this library, or to none.
    #[must_use]
    pub fn with_blas(self, blas: Option<BlasRoute>) -> Self {
        Self { blas, ..self }
    }
}

/// The pools of the process: all share their workers, of which there are as many as the largest has,
/// whoever asked for it.
static POOLS: Mutex<Vec<Weak<ThreadPool>>> = Mutex::new(Vec::new());

// What a session may be given, its pool has.
const _: () = assert!(MAX_SESSION_THREADS <= MAX_POOL_THREADS);

/// A pool of so many threads; 0 are as many as there are fast cores.
pub(crate) fn pool(threads: usize) -> Arc<ThreadPool> {
    let threads =
        if threads == 0 { HostCores::detect().fast } else { threads.min(MAX_POOL_THREADS) };
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    let live: Vec<Arc<ThreadPool>> = pools.iter().filter_map(Weak::upgrade).collect();
    if let Some(pool) = live.iter().find(|pool| pool.threads() == threads) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(match live.first() {
        Some(other) => other.sharing(threads),
        None => ThreadPool::with_hooks(threads, HostCores::prefer_fast, executable::take_class),
    });
    pools.push(Arc::downgrade(&pool));
    pool
}

impl CpuProvider {
    /// Prepares a graph and, inside it, the bodies of control-flow operators.
    fn prepare(
        &self,
        graph: Arc<Graph>,
        options: &SessionOptions,
        pool: &Arc<ThreadPool>,
    ) -> Result<CpuExecutable, RuntimeError> {
        let graph =
            if options.optimise >= OptimiseLevel::O3 { arranged(graph, options) } else { graph };
        let (graph, bodies) =
            body::prepared(graph, &mut |inner| self.prepare(inner, options, pool));
        let facts = infer::facts(&graph, &HashMap::new())?;
        let packed = options.packed.0.as_deref();
        let choices = options.choices.0.as_deref();
        let build = |node| -> executable::BuiltCpuKernel {
            let graph = &*graph;
            let facts = &facts[..];
            let isa = self.isa;
            let precision = options.precision;
            let blas = self.blas;
            let device = CpuBuildContext { isa, packed, choices, blas };
            let view = CpuNodeView { graph, node, facts, precision, device };
            let Ok(row) = KERNELS.find(&view) else { return (None, reference::NAME) };
            match (row.build)(&view) {
                Ok(kernel) => (Some(kernel), row.name),
                Err(reason) => {
                    tracing::debug!(node = %node.name, row = row.name, %reason, "runs by reference");
                    (None, reference::NAME)
                }
            }
        };
        let kernels: Vec<executable::BuiltCpuKernel> = graph.nodes.iter().map(build).collect();
        let open = graph.nodes.iter().zip(&kernels);
        let open = open.map(|(node, (kernel, _))| kernel.is_none() && late::is_open(node, &facts));
        let open = open.collect();
        let pool = Arc::clone(pool);
        let built = executable::BuiltGraph { graph, kernels, open, bodies };
        Ok(CpuExecutable::new(built, self.isa, self.blas, pool, options))
    }
}

/// The graph as kernels want it: what takes long in FP16 computed in FP32, convolutions with channels last,
/// so that no image is turned around, and those around depthwise ones in chains; the graph as it was where
/// that fails.
fn arranged(graph: Arc<Graph>, options: &SessionOptions) -> Arc<Graph> {
    let mut rewritten = (*graph).clone();
    // A chain computes in FP32; in BF16 its convolutions have kernels of their own.
    let chains = options.precision == Precision::Fp32;
    let done = in_single(&mut rewritten).and_then(|wide| {
        let mut count = wide + rewrite::channels_last(&mut rewritten)?;
        rewritten.sort()?;
        if chains {
            count += rewrite::conv_chains(&mut rewritten)?;
        }
        Ok(count)
    });
    match done {
        Ok(0) => graph,
        Ok(_) => Arc::new(rewritten),
        Err(error) => {
            tracing::warn!(graph = %graph.name, %error, "it is computed as it is written");
            graph
        }
    }
}

impl CpuProvider {
    /// Returns the claim on a node, and why it runs by reference where it does.
    fn claim_node(
        &self,
        request: &ClaimRequest<'_>,
        single: Option<&SingleFacts>,
        index: usize,
    ) -> (NodeClaim, Option<ClaimRefusal>) {
        let ClaimRequest { graph, facts, typical, precision, .. } = *request;
        let node = &graph.nodes[index];
        // What a session computes in changes no claim: a node that one row takes another takes too.
        let packed = None;
        let choices = None;
        let isa = self.isa;
        let blas = None;
        let device = CpuBuildContext { isa, packed, choices, blas };
        let view = CpuNodeView { graph, node, facts, precision, device };
        let demand = cost::demand(node, typical);
        let operations = demand.operations;
        let kernel_ns = || self.cost.seconds(operations, demand.bytes, demand.product) * 1e9;
        let claim = |cost_ns: f64, kernel: &str| NodeClaim {
            nodes: vec![index],
            cost_ns,
            kernel: kernel.into(),
        };
        if node.is_view() {
            return (claim(0.0, "view"), None);
        }
        if !node.operator.bodies().is_empty() {
            return (claim(kernel_ns(), BODIES), None);
        }
        let widened = || single.and_then(|single| single.row(graph, node, facts));
        match KERNELS.find(&view).or_else(|reason| widened().ok_or(reason)) {
            Ok(row) => {
                let why = wide_reason(&view, row.name);
                let refusal = why.map(|reason| ClaimRefusal { node: index, reason });
                (claim(kernel_ns(), row.name), refusal)
            }
            Err(reason) => {
                let ns = operations * reference::OPERATION_NS + self.cost.each * 1e9;
                let reason = format!("runs by reference: {reason}");
                (claim(ns, reference::NAME), Some(ClaimRefusal { node: index, reason }))
            }
        }
    }
}

/// Returns why a node is computed in FP32 where the session wants less and there are kernels for that.
fn wide_reason(view: &CpuNodeView<'_>, found: &str) -> Option<String> {
    let wanted = match view.precision {
        Precision::Bf16 => "-bf16-",
        Precision::Fp16 => "-fp16-",
        _ => return None,
    };
    if found.contains(wanted) {
        return None;
    }
    let reasons = KERNELS.refusals(view, wanted);
    (!reasons.is_empty()).then(|| format!("computes in FP32: {}", reasons.join("; ")))
}

impl ExecutionProvider for CpuProvider {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits {
            packing: format!("{} {LAYOUTS}", self.isa.name()),
            lanes: HostCores::lanes(),
            ..ProviderTraits::named(NAME)
        }
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let mut claims = ProviderClaims::default();
        let single = SingleFacts::of(request.facts);
        for index in 0..request.graph.nodes.len() {
            let (claim, refusal) = self.claim_node(request, single.as_ref(), index);
            claims.claims.push(claim);
            claims.refusals.extend(refusal);
        }
        claims
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let pool = pool(request.options.threads);
        Ok(Box::new(self.prepare(request.graph, request.options, &pool)?))
    }
}
