//! A GPU that is open: its queue, its compiled kernels and what it can do.

mod allocation;
mod budget;
mod capabilities;
mod captured;
mod copy_marks;
mod fault;
mod imagined;
mod life;
mod line;
mod pipelines;
mod request;
mod uploads;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use capabilities::{CooperativeMatrix, GpuCapabilities};
pub use fault::DeviceFault;
pub(crate) use line::QueuedSubmission;
pub(crate) use pipelines::KernelPipeline;
pub use pipelines::KernelShader;
use request::OpenedDevice;
use wgpu::{Backends, DeviceType, ErrorFilter, Features};

use galatea_runtime::DevicePeaks;

use crate::buffers::{
    self, BufferPool, DeviceKeeper, MemoryStatistics, PoolConfig, ResidencyPolicy, SharedBuffer,
    StreamStatistics,
};
use crate::capture::RunCapture;
use crate::error::GpuError;
use crate::timers::{DeviceClock, DeviceUsage, ObserverSlot, StampPool, UsageMeter};

/// Time that work which failed half-way may take to its end.
const SETTLED: std::time::Duration = std::time::Duration::from_secs(120);

/// Predicted time of one submission at most, on a device that shares memory and display with the host: such
/// systems end work that keeps the device busy for long.
pub(crate) const SUBMISSION_BOUND: std::time::Duration = std::time::Duration::from_millis(150);

/// Features that kernels can use.
const WANTED: Features = Features::SHADER_F16
    .union(Features::SHADER_INT64)
    .union(Features::SUBGROUP)
    .union(Features::TIMESTAMP_QUERY)
    .union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
    .union(Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    .union(Features::MAPPABLE_PRIMARY_BUFFERS)
    .union(Features::PIPELINE_CACHE)
    .union(Features::PASSTHROUGH_SHADERS)
    .union(Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// Counters of a device since it was opened.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    /// Kernels started.
    pub dispatches: AtomicU64,
    /// Command buffers handed over.
    pub submits: AtomicU64,
    /// Bytes that were brought to the device, by commands or by the processor.
    pub upload_bytes: AtomicU64,
    /// Bytes that were brought back likewise; outputs in place are none.
    pub download_bytes: AtomicU64,
    /// Copy commands, both ways, and on the device.
    pub copies: AtomicU64,
    /// Copies that the processor made from and to memory which the device addresses too.
    pub host_copies: AtomicU64,
    /// Bytes of mapped files that kernels read where they lie.
    pub imported_bytes: AtomicU64,
    /// Outputs that were handed out where the device wrote them, without a copy.
    pub outputs_in_place: AtomicU64,
    /// Inputs that lay on another device and came through the host.
    pub peer_copies: AtomicU64,
    /// Bytes of them.
    pub peer_copy_bytes: AtomicU64,
    /// Runs that were reported as done though a part of them did not come to its end, on this device or on those
    /// in whose place it was opened.
    pub lost_runs: AtomicU64,
}

impl DeviceCounters {
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

/// Commands of a run, in pieces that are handed over one after the other.
#[derive(Debug)]
pub(crate) struct RunCommands {
    pub(crate) before: Vec<wgpu::CommandBuffer>,
    pub(crate) last: wgpu::CommandBuffer,
}

/// An open device. Clones of its parts are cheap handles; it is shared by `Arc`.
pub struct GpuDevice {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    capabilities: GpuCapabilities,
    pipelines: pipelines::PipelineCache,
    pub(crate) pool: Arc<BufferPool<SharedBuffer>>,
    pub(crate) shelves: ResidencyPolicy,
    /// Keeper of its memory, where the system has residency sets.
    pub(crate) residents: Option<Arc<DeviceKeeper>>,
    life: life::DeviceLife,
    uploads: uploads::PendingUploads,
    copy_marks: copy_marks::CopyMarks,
    fault: fault::ActedFault,
    /// True if it reads mapped files in place.
    takes_pages: bool,
    /// Buffers of at most so many bytes are addressed by the processor too, where memory is shared.
    unified_bytes: AtomicU64,
    /// Counters since the device was opened.
    pub counters: DeviceCounters,
    /// The device's number.
    pub(crate) index: usize,
    pub(crate) stamps: StampPool,
    pub(crate) meter: UsageMeter,
    pub(crate) observers: ObserverSlot,
    pub(crate) capture: RunCapture,
    pub(crate) clock: DeviceClock,
    /// Nanoseconds that one submission is to take at most; 0 without a bound.
    submission_ns: AtomicU64,
    /// The least that configurations of models asked for.
    submission_asked_ns: AtomicU64,
    /// True once a timestamp was no reading of the clock.
    stamps_doubted: AtomicBool,
    pub(crate) peaks: OnceLock<DevicePeaks>,
}

impl std::fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.capabilities.name).finish_non_exhaustive()
    }
}

fn instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = Backends::METAL | Backends::VULKAN;
    wgpu::Instance::new(descriptor)
}

/// Real GPUs first, the processor playing one last; otherwise as the system lists them.
fn adapters(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    let mut found = pollster::block_on(instance.enumerate_adapters(Backends::all()));
    found.sort_by_key(|adapter| match adapter.get_info().device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu | DeviceType::Other => 2,
        DeviceType::Cpu => 3,
    });
    found
}

/// Returns the capabilities of this host's devices, in the order of their numbers.
#[must_use]
pub fn devices() -> Vec<GpuCapabilities> {
    let of = |adapter: &wgpu::Adapter| {
        GpuCapabilities::of(adapter, adapter.features() & WANTED, &adapter.limits())
    };
    adapters(&instance()).iter().map(of).collect()
}

impl GpuDevice {
    /// Opens the device with this number among [`devices`].
    ///
    /// # Errors
    /// Fails when there is none, or the system refuses it.
    pub fn open(index: usize) -> Result<Arc<Self>, GpuError> {
        Self::open_with(index, &PoolConfig::default())
    }

    /// Works like [`GpuDevice::open`], with the memory configuration `pool`.
    ///
    /// # Errors
    /// Returns the same errors as [`GpuDevice::open`], and fails when there is no memory for the buffers to
    /// allocate at the start.
    pub fn open_with(index: usize, pool: &PoolConfig) -> Result<Arc<Self>, GpuError> {
        let instance = instance();
        let mut all = adapters(&instance);
        if index >= all.len() {
            let names: Vec<String> = all.iter().map(|one| one.get_info().name).collect();
            return Err(GpuError::NoDevice { index, found: format!("there are {names:?}") });
        }
        let adapter = all.swap_remove(index);
        let features = adapter.features() & WANTED;
        let mut limits = adapter.limits();
        let most = &mut limits.max_storage_buffer_binding_size;
        *most = pool.binding_bytes(*most);
        let capabilities = GpuCapabilities::of(&adapter, features, &limits);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("galatea"),
            required_features: features,
            required_limits: limits,
            // SAFETY: the one experimental feature is cooperative matrices; kernels that use them keep to
            // the shapes that the device lists, and their results are compared with the reference.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let opened = request::request(&adapter, &descriptor, capabilities.unified);
        let opened = opened.map_err(|error| GpuError::Refused {
            name: capabilities.name.clone(),
            reason: error.to_string(),
        })?;
        let budget = pool.budget_bytes(budget::recommended(&opened.device))?;
        let origin = life::DeviceOrigin::Number(index, pool.clone());
        Self::of(index, opened, capabilities, pool, budget, origin)
    }

    fn of(
        index: usize,
        opened: OpenedDevice,
        capabilities: GpuCapabilities,
        config: &PoolConfig,
        budget: Option<u64>,
        origin: life::DeviceOrigin,
    ) -> Result<Arc<Self>, GpuError> {
        let OpenedDevice { device, queue } = opened;
        let computes = !matches!(origin, life::DeviceOrigin::Imagined(_));
        let residents = buffers::keeper(&device);
        let copy_marks = copy_marks::CopyMarks::new(&device, computes)?;
        let life = life::DeviceLife::of(&device, capabilities.software, origin);
        let pipelines = pipelines::PipelineCache::default();
        let counters = DeviceCounters::default();
        let unified = capabilities.unified && capabilities.mappable;
        let unified_bytes = if unified { config.unified_bytes() } else { 0 };
        let bound = (capabilities.unified && !capabilities.software).then_some(SUBMISSION_BOUND);
        let bound = config.submission().or(bound).unwrap_or_default();
        let submission_ns = life::nanoseconds(bound);
        let shelves = config.shelves(budget);
        let takes_pages = unified && buffers::takes_pages(&device);
        let pool = Arc::new(BufferPool::new(config, budget, unified));
        let opened = Self {
            device,
            queue,
            capabilities,
            pipelines,
            pool,
            shelves,
            residents,
            life,
            uploads: uploads::PendingUploads::default(),
            copy_marks,
            fault: fault::ActedFault::default(),
            takes_pages,
            unified_bytes: AtomicU64::new(unified_bytes),
            counters,
            index,
            stamps: StampPool::default(),
            meter: UsageMeter::default(),
            observers: ObserverSlot::default(),
            capture: RunCapture::default(),
            clock: DeviceClock::default(),
            submission_ns: AtomicU64::new(submission_ns),
            submission_asked_ns: AtomicU64::new(u64::MAX),
            stamps_doubted: AtomicBool::new(false),
            peaks: OnceLock::new(),
        };
        opened.fill_pool()?;
        opened.tell();
        Ok(Arc::new(opened))
    }

    /// The same device as one that tells the time between passes only, as Apple's do.
    #[cfg(test)]
    pub(crate) fn timed_between_passes(mut self: Arc<Self>) -> Option<Arc<Self>> {
        Arc::get_mut(&mut self)?.capabilities.timestamps = false;
        Some(self)
    }

    /// Says what was opened.
    fn tell(&self) {
        let able = &self.capabilities;
        tracing::debug!(
            gpu = self.index,
            name = able.name,
            software = able.software,
            unified = able.unified,
            f16 = able.f16,
            budget = self.pool.statistics().budget_bytes,
            binding = able.binding_bytes,
            "opened a GPU"
        );
    }

    /// Returns the device's capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &GpuCapabilities {
        &self.capabilities
    }

    /// Keeps memory as a model's configuration says besides: more classes of buffers, unified memory for
    /// smaller buffers only, fewer bytes in all, and shorter submissions. What runs already keeps what it has.
    ///
    /// # Errors
    /// Fails when there is no memory for the buffers to allocate at the start.
    pub fn configure(&self, pool: &PoolConfig) -> Result<(), GpuError> {
        self.unified_bytes.fetch_min(pool.unified_bytes(), Ordering::Relaxed);
        if let Some(bytes) = pool.limit_bytes() {
            self.pool.limit(bytes);
            self.shelves.limit(bytes);
        }
        if let Some(bound) = pool.submission() {
            let asked = life::nanoseconds(bound);
            let least = self.submission_asked_ns.fetch_min(asked, Ordering::Relaxed).min(asked);
            self.submission_ns.store(least, Ordering::Relaxed);
        }
        self.pool.extend(pool);
        let unified = self.unified_bytes.load(Ordering::Relaxed);
        let budget = self.pool.statistics().budget_bytes;
        tracing::debug!(gpu = self.index, sizes = ?pool.sizes(), unified, budget, "keeps memory by a model's configuration");
        self.fill_pool()
    }

    /// Memory in use and kept.
    #[must_use]
    pub fn memory(&self) -> MemoryStatistics {
        self.pool.statistics()
    }

    /// Returns statistics of the weights that are streamed to the device for lack of room, including sessions
    /// that are gone.
    #[must_use]
    pub fn streams(&self) -> StreamStatistics {
        self.shelves.stream_statistics()
    }

    /// Returns whether kernels read weights from mapped files in place.
    #[must_use]
    pub fn reads_pages(&self) -> bool {
        self.takes_pages
    }

    /// Gives memory back that is only kept for reuse, and says how many bytes that were.
    pub fn trim(&self) -> u64 {
        self.pool.trim()
    }

    /// Measures how busy the device is from now on. A run has two stamps of the device's clock then.
    /// Nothing happens on a device that has no such clock.
    pub fn measure_use(&self) {
        if self.trusts_stamps() {
            self.meter.start();
        }
    }

    /// Returns whether the device has a clock that work is timed by: not once it gave a stamp that was no reading.
    #[must_use]
    pub fn trusts_stamps(&self) -> bool {
        self.capabilities.pass_timestamps && !self.stamps_doubted.load(Ordering::Relaxed)
    }

    /// Notes that a stamp was no reading of the clock, after which the host's clock is used.
    pub(crate) fn doubt_stamps(&self) {
        if !self.stamps_doubted.swap(true, Ordering::Relaxed) {
            let name = &self.capabilities.name;
            tracing::warn!(
                name,
                "the GPU gives timestamps that are no time; they are used no more"
            );
        }
    }

    /// Returns the use of the device since [`GpuDevice::measure_use`]; `None` if that is not measured, or its
    /// timestamps are not to be trusted.
    #[must_use]
    pub fn usage(&self) -> Option<DeviceUsage> {
        self.meter.usage().filter(|_| self.trusts_stamps())
    }

    /// Ticks of the device's clock in nanoseconds.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        let period = f64::from(self.queue.get_timestamp_period());
        if period == 1.0 {
            return ticks;
        }
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clocks count months, not millennia"
        )]
        let nanoseconds = (ticks as f64 * period) as u64;
        nanoseconds
    }

    /// The compiled form of a shader, made the first time.
    ///
    /// # Errors
    /// Fails when the compiler refuses it.
    pub fn pipeline(&self, shader: &KernelShader) -> Result<Arc<KernelPipeline>, GpuError> {
        self.alive()?;
        self.pipelines.get(&self.device, shader)
    }

    /// The shaders that were compiled so far, in the order in which they were asked for.
    #[must_use]
    pub fn shaders(&self) -> Vec<KernelShader> {
        self.pipelines.shaders()
    }

    /// Does something and gives what the device refused of it.
    pub(crate) fn checked<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        let memory = self.device.push_error_scope(ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(ErrorFilter::Validation);
        let value = work();
        let refused = pollster::block_on(validation.pop());
        let memory = pollster::block_on(memory.pop());
        match (memory, refused) {
            (Some(error), _) => Err(GpuError::Memory { bytes: 0, reason: error.to_string() }),
            (None, Some(error)) => Err(GpuError::Refusal(error.to_string())),
            (None, None) => Ok(value),
        }
    }

    /// Bounds the predicted time of one submission, for plans that are made from now on; zero is no bound. The bound
    /// is 150 ms at first on a device that shares the host's memory, and none on others.
    pub fn set_submission_bound(&self, bound: std::time::Duration) {
        self.submission_ns.store(life::nanoseconds(bound), Ordering::Relaxed);
    }

    /// Returns the nanoseconds that one submission is to take at most, if there is a bound.
    pub(crate) fn submission_bound_ns(&self) -> Option<u64> {
        Some(self.submission_ns.load(Ordering::Relaxed)).filter(|bound| *bound > 0)
    }

    /// Hands the pieces of a run over, which is done when the last one is.
    pub(crate) fn submit_pieces(&self, run: RunCommands) -> QueuedSubmission {
        let mut pieces = run.before.into_iter().chain([run.last]);
        let first = pieces.next().map(|piece| self.submit(piece));
        let last = pieces.map(|piece| self.submit(piece)).last();
        match (first, last) {
            (Some(first), Some(last)) => last.since(&first),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => self.submit_some(None),
        }
    }

    /// Hands commands over.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) -> QueuedSubmission {
        DeviceCounters::add(&self.counters.submits, 1);
        self.uploads.handed_over();
        if let Some(residents) = &self.residents {
            residents.used();
        }
        self.submit_some(Some(commands))
    }

    /// Waits for whatever was handed over, done or not: before its memory goes to others.
    pub(crate) fn settle(&self) {
        let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(SETTLED) };
        if let Err(error) = self.device.poll(wait) {
            tracing::warn!(%error, "the GPU does not come to rest");
        }
    }
}
