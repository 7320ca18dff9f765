//! The provider: which nodes a device takes, and how they are compiled.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockGather, BlockMatMul};
use galatea_graph::{Dim, Fact, Graph, Node, infer};
use galatea_runtime::{
    ClaimRefusal, ClaimRequest, CompileRequest, DevicePeaks, Executable, ExecutionProvider,
    NodeClaim, OptimiseLevel, Precision, ProviderClaims, ProviderTraits, ProviderWish,
    RuntimeError, SessionOptions,
};

use galatea_tensor::DataType;

use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::executable::{BuiltKernel, GpuExecutable};
use crate::fuse::fused;
use crate::kernel::GpuNodeView;
use crate::memory::PoolConfig;
use crate::recurrent::sequence;
use crate::stream::ConstantPages;
use crate::throughput::ThroughputModel;

/// A GPU as a provider.
#[derive(Debug)]
pub struct GpuProvider {
    device: Arc<GpuDevice>,
    /// Peaks of the device, as far as they are known from elsewhere.
    stated: DevicePeaks,
    /// True if it claims every node that it can run, whatever the cost.
    forced: bool,
}

impl GpuProvider {
    /// The provider on the device with this number among [`crate::devices`].
    ///
    /// # Errors
    /// Returns the same errors as [`GpuDevice::open`].
    pub fn open(index: usize) -> Result<Self, GpuError> {
        Ok(Self::on(GpuDevice::open(index)?))
    }

    /// The provider on a device that is open.
    #[must_use]
    pub fn on(device: Arc<GpuDevice>) -> Self {
        Self { device, stated: DevicePeaks::default(), forced: false }
    }

    /// The same with what is known of what the device reaches at most. Predicted times come from what was measured
    /// here, where something was, then from this, and else from what any device of its kind reaches.
    #[must_use]
    pub fn with_stated(self, stated: DevicePeaks) -> Self {
        Self { stated, ..self }
    }

    /// The device that it was given. Where that one is lost, partitions are compiled on the one that is opened in
    /// its place.
    #[must_use]
    pub fn device(&self) -> &Arc<GpuDevice> {
        &self.device
    }

    fn view<'a>(
        &'a self,
        graph: &'a Graph,
        node: &'a Node,
        facts: &'a [Option<Fact>],
        precision: Precision,
    ) -> GpuNodeView<'a> {
        GpuNodeView { graph, node, facts, device: &self.device, precision }
    }
}

/// Returns whether weights of so many bytes leave too little of a device's memory for runs.
fn is_beyond(device: &GpuDevice, bytes: u64) -> bool {
    let memory = device.memory();
    let left = memory.budget_bytes.map(|budget| budget.saturating_sub(memory.used_bytes));
    left.is_some_and(|left| bytes > left - left / 8)
}

/// Refuses a graph of whose constants not even the largest has room, which is on the device whole while it is used.
fn check_room(device: &GpuDevice, graph: &Graph, halves: bool) -> Result<(), GpuError> {
    let bytes = constant_bytes(graph, halves).max().unwrap_or(0);
    match device.memory().budget_bytes {
        Some(budget) if bytes > budget => Err(GpuError::Memory {
            bytes,
            reason: format!("a constant takes more than all of the {budget} that may be taken"),
        }),
        _ => Ok(()),
    }
}

/// Bytes of each of a graph's constants on a device.
fn constant_bytes(graph: &Graph, halves: bool) -> impl Iterator<Item = u64> {
    let constants = graph.values().iter().filter_map(|value| value.initializer.as_ref());
    constants.map(move |tensor| {
        let narrow = halves && tensor.dtype() == DataType::Fp32;
        let element = if narrow { 2 } else { tensor.dtype().size_bytes().unwrap_or(0) };
        (tensor.elements() * element) as u64
    })
}

/// About how many bytes of a graph's weights lie on a device.
fn weight_bytes(graph: &Graph, halves: bool) -> u64 {
    let mut seen = HashSet::new();
    let blocks = graph.nodes.iter().flat_map(|node| {
        let product = node.operator::<BlockMatMul>().map(BlockMatMul::weights);
        let table = node.operator::<BlockGather>().map(|op| std::slice::from_ref(op.weights()));
        product.or(table).unwrap_or_default()
    });
    let new = |weights: &&Arc<dyn BlockWeights>| {
        weights.source().is_none_or(|source| seen.insert(source))
    };
    let blocks = blocks.filter(new).map(|weights| weights.size_bytes() as u64).sum::<u64>();
    constant_bytes(graph, halves).sum::<u64>() + blocks
}

/// Checks the conditions on every node: all its values are tensors whose number of axes is known, and whose
/// lengths depend on those of the inputs alone.
fn shaped(view: &GpuNodeView<'_>) -> Result<(), String> {
    let inputs = view.node.inputs.iter().enumerate().map(|(at, id)| (id, Some(at)));
    let outputs = view.node.outputs.iter().map(|id| (id, None));
    for (id, input) in inputs.chain(outputs) {
        let Some(id) = id else { continue };
        let name = &view.graph.value(*id).name;
        let fact = view.facts[id.index()].as_ref();
        let fact = fact.ok_or_else(|| format!("nothing is known of '{name}'"))?;
        if !fact.is_tensor() {
            return Err(format!("'{name}' is no tensor"));
        }
        if fact.dtype.size_bytes().is_none() {
            return Err(format!("'{name}' is {}", fact.dtype));
        }
        let able = view.device.capabilities();
        let bytes = fact.value.as_ref().map_or(0, |value| {
            value.elements() as u64 * fact.dtype.size_bytes().unwrap_or(0) as u64
        });
        let limit = able.binding_bytes;
        if bytes > limit {
            let beyond = |why: String| {
                format!("'{name}' has {bytes} bytes, a kernel sees at most {limit}{why}")
            };
            let input = input.ok_or_else(|| beyond(String::new()))?;
            crate::oversized::supports(view, input).map_err(|why| beyond(format!(": {why}")))?;
            if bytes > able.buffer_bytes {
                return Err(beyond(format!(", and a buffer has {} at most", able.buffer_bytes)));
            }
        }
        match &fact.shape {
            Some(dims) if !dims.contains(&Dim::Unknown) => {}
            _ => return Err(format!("the shape of '{name}' is known only in a run")),
        }
    }
    Ok(())
}

impl ExecutionProvider for GpuProvider {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits { reads_back: true, ..ProviderTraits::named(crate::NAME) }
    }

    fn variant(
        &self,
        wish: &ProviderWish<'_>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        if let Some(settings) = wish.settings {
            let fields = settings.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            let pool = PoolConfig::from_fields(fields)?;
            self.device.configure(&pool).map_err(|error| error.to_string())?;
        }
        let forced = || -> Arc<dyn ExecutionProvider> {
            let device = Arc::clone(&self.device);
            Arc::new(Self { device, stated: self.stated, forced: true })
        };
        Ok(wish.forced.then(forced))
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let ClaimRequest { graph, facts, typical, .. } = *request;
        let pace = (!self.forced).then(|| ThroughputModel::of(&self.device, &self.stated));
        let cost_ns = |node: &Node| {
            pace.map_or(0.0, |pace| pace.node_ns(node, typical, sequence(node, typical)))
        };
        // Bytes that live at a border are mostly caches and weights, which do not cross it.
        let launch_ns = pace.map_or(0.0, |pace| pace.launch_ns);
        let mut claims = ProviderClaims { launch_ns, ..ProviderClaims::default() };
        for (index, node) in graph.nodes.iter().enumerate() {
            let view = self.view(graph, node, facts, Precision::default());
            let kernel = shaped(&view).and_then(|()| match node.is_view() {
                true if view.is_known(1) => Ok("view"),
                true => Err("its shape is known only in a run".to_owned()),
                false => crate::KERNELS.find(&view).map(|row| row.name),
            });
            match kernel {
                Ok(kernel) => claims.claims.push(NodeClaim {
                    nodes: vec![index],
                    cost_ns: if node.is_view() { 0.0 } else { cost_ns(node) },
                    kernel: kernel.into(),
                }),
                Err(reason) => claims.refusals.push(ClaimRefusal { node: index, reason }),
            }
        }
        claims
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let device = self.device.living()?;
        let pace = ThroughputModel::of(&device, &self.stated);
        let made = compiled(&device, request.graph, request.options, pace);
        // Whatever fails on a device that goes away fails for that reason.
        let made = made.map_err(|error| device.alive().map_or_else(Into::into, |()| error));
        Ok(Box::new(made?))
    }
}

/// Threads that prepare nodes with much weight: while one waits, for a file or the device, others pack.
const BUILDERS: usize = 4;
/// Weights of fewer bytes are packed before another thread has begun.
const FEW_BYTES: u64 = 1 << 20;

/// All nodes of a graph prepared by `build`, which some threads call in about the order of the nodes.
fn all_built(
    graph: &Graph,
    device: &GpuDevice,
    threads: usize,
    build: impl Fn(&Node) -> Result<BuiltKernel, RuntimeError> + Sync,
) -> Result<Vec<BuiltKernel>, RuntimeError> {
    let pages = Mutex::new(ConstantPages::new(graph, device));
    let slots: Vec<Mutex<Option<BuiltKernel>>> =
        graph.nodes.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), RuntimeError> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(node) = graph.nodes.get(number) else { return Ok(()) };
            pages.lock().unwrap_or_else(PoisonError::into_inner).reach(number);
            let made = device.alive().map_err(RuntimeError::from).and_then(|()| build(node));
            // After an error nobody begins another node.
            let made = made.inspect_err(|_| next.store(slots.len(), Ordering::Relaxed))?;
            *slots[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let helpers = 1..threads.min(processors).min(slots.len());
        let running: Vec<_> = helpers.map(|_| scope.spawn(work)).collect();
        let own = work();
        let lost = || RuntimeError::provider(crate::NAME, "a thread that prepares nodes failed");
        let joined = running.into_iter().map(|thread| thread.join().map_err(|_| lost())?);
        joined.fold(own, Result::and)
    })?;
    let made =
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    let missing = || RuntimeError::provider(crate::NAME, "a node was not prepared");
    made.map(|made| made.ok_or_else(missing)).collect()
}

fn compiled(
    device: &Arc<GpuDevice>,
    graph: Arc<Graph>,
    options: &SessionOptions,
    pace: ThroughputModel,
) -> Result<GpuExecutable, RuntimeError> {
    let facts = infer::facts(&graph, &HashMap::new())?;
    let graph = match options.optimise >= OptimiseLevel::O2 {
        true => fused(&graph, &facts)?,
        // Nodes are to stay as they are.
        false => graph,
    };
    let halves = options.precision == Precision::Fp16 && device.capabilities().f16;
    check_room(device, &graph, halves)?;
    let bytes = weight_bytes(&graph, halves);
    let beyond = is_beyond(device, bytes);
    let _beyond = beyond.then(|| device.shelves.begin());
    let facts = &facts;
    let precision = options.precision;
    let build = |node: &Node| -> Result<BuiltKernel, RuntimeError> {
        if node.is_view() {
            return Ok((None, "view"));
        }
        let view = GpuNodeView { graph: &graph, node, facts, device, precision };
        let refused = |reason: String| {
            RuntimeError::provider(crate::NAME, format!("{}: {reason}", node.operator_name()))
        };
        let row = crate::KERNELS.find(&view).map_err(refused)?;
        let kernel = (row.build)(&view).map_err(refused)?;
        Ok((Some(kernel), row.name))
    };
    let threads = if bytes < FEW_BYTES { 1 } else { BUILDERS };
    let built = all_built(&graph, device, threads, build)?;
    Ok(GpuExecutable::new(device, Arc::clone(&graph), built, options, pace))
}
