//! A GPU that is open: its queue, its compiled kernels and what it can do.

mod budget;
mod capabilities;
mod imagined;
mod pipelines;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub use capabilities::{Capabilities, CooperativeMatrix};
pub(crate) use pipelines::Pipeline;
pub use pipelines::Shader;
use wgpu::{Backends, DeviceType, ErrorFilter, Features, PollType, SubmissionIndex};

use crate::error::GpuError;
use crate::memory::{Block, MemoryStatistics, Pool, PoolConfig};

/// How long work may take before the device counts as hung. Software devices are slow, and the work of
/// one step is not.
const WATCHDOG: Duration = Duration::from_secs(120);

/// What kernels can make use of.
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

/// What was done on a device since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Kernels started.
    pub dispatches: AtomicU64,
    /// Command buffers handed over.
    pub submits: AtomicU64,
    /// Bytes that copy commands or writes brought to the device.
    pub upload_bytes: AtomicU64,
    /// Bytes that copy commands brought back.
    pub download_bytes: AtomicU64,
    /// Copy commands, both ways.
    pub copies: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

/// An open device. Clones of its parts are cheap handles; it is shared by `Arc`.
pub struct Device {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    capabilities: Capabilities,
    pipelines: pipelines::Pipelines,
    pub(crate) pool: Arc<Pool<wgpu::Buffer>>,
    /// Why the device is gone, once it is.
    lost: Arc<OnceLock<String>>,
    /// The latest error that no scope caught.
    uncaught: Arc<Mutex<Option<String>>>,
    /// What was done.
    pub counters: Counters,
}

impl std::fmt::Debug for Device {
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

/// What the devices of this host can do, in the order of their numbers.
#[must_use]
pub fn devices() -> Vec<Capabilities> {
    let of = |adapter: &wgpu::Adapter| {
        Capabilities::of(adapter, adapter.features() & WANTED, &adapter.limits())
    };
    adapters(&instance()).iter().map(of).collect()
}

impl Device {
    /// Opens the device with this number among [`devices`].
    ///
    /// # Errors
    /// When there is none, or the system refuses it.
    pub fn open(index: usize) -> Result<Arc<Self>, GpuError> {
        Self::open_with(index, &PoolConfig::default())
    }

    /// As [`Device::open`], with memory kept as a configuration says.
    ///
    /// # Errors
    /// As there, and when there is no memory for what is to be made from the start.
    pub fn open_with(index: usize, pool: &PoolConfig) -> Result<Arc<Self>, GpuError> {
        let instance = instance();
        let mut all = adapters(&instance);
        if index >= all.len() {
            let names: Vec<String> = all.iter().map(|one| one.get_info().name).collect();
            return Err(GpuError::NoDevice { index, found: format!("there are {names:?}") });
        }
        let adapter = all.swap_remove(index);
        let features = adapter.features() & WANTED;
        let limits = adapter.limits();
        let capabilities = Capabilities::of(&adapter, features, &limits);
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
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| GpuError::Refused {
            name: capabilities.name.clone(),
            reason: error.to_string(),
        })?;
        let budget = pool.budget_bytes().or_else(|| budget::recommended(&device));
        Self::of((device, queue), capabilities, Pool::new(pool, budget))
    }

    fn of(
        (device, queue): (wgpu::Device, wgpu::Queue),
        capabilities: Capabilities,
        pool: Pool<wgpu::Buffer>,
    ) -> Result<Arc<Self>, GpuError> {
        let (lost, uncaught) = (Arc::new(OnceLock::new()), Arc::new(Mutex::new(None)));
        watch(&device, &lost, &uncaught);
        let pipelines = pipelines::Pipelines::default();
        let counters = Counters::default();
        let pool = Arc::new(pool);
        let opened =
            Self { device, queue, capabilities, pipelines, pool, lost, uncaught, counters };
        Block::fill(&opened)?;
        Ok(Arc::new(opened))
    }

    /// What the device can do.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Memory in use and kept.
    #[must_use]
    pub fn memory(&self) -> MemoryStatistics {
        self.pool.statistics()
    }

    /// Gives memory back that is only kept for reuse, and says how many bytes that were.
    pub fn trim(&self) -> u64 {
        self.pool.trim()
    }

    /// The compiled form of a shader, made the first time.
    ///
    /// # Errors
    /// When the compiler refuses it.
    pub fn pipeline(&self, shader: &Shader) -> Result<Arc<Pipeline>, GpuError> {
        self.alive()?;
        self.pipelines.get(&self.device, shader)
    }

    /// The shaders that were compiled so far, in the order in which they were asked for.
    #[must_use]
    pub fn shaders(&self) -> Vec<Shader> {
        self.pipelines.shaders()
    }

    /// Refuses work for a device that is gone.
    ///
    /// # Errors
    /// Why it is.
    pub fn alive(&self) -> Result<(), GpuError> {
        match self.lost.get() {
            Some(reason) => Err(GpuError::Lost(reason.clone())),
            None => Ok(()),
        }
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

    /// Hands commands over.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) -> SubmissionIndex {
        Counters::add(&self.counters.submits, 1);
        self.queue.submit([commands])
    }

    /// Waits until the work is done and callbacks have run.
    ///
    /// # Errors
    /// When the device was lost, hangs, or refused something on the way.
    pub(crate) fn wait(&self, submission: SubmissionIndex) -> Result<(), GpuError> {
        let wait = PollType::Wait { submission_index: Some(submission), timeout: Some(WATCHDOG) };
        let polled = self.device.poll(wait);
        self.alive()?;
        if let Some(error) = self.uncaught.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(GpuError::Refusal(error));
        }
        match polled {
            Ok(_) => Ok(()),
            Err(wgpu::PollError::Timeout) => {
                let reason = format!("it did not finish within {} s", WATCHDOG.as_secs());
                // What hangs once is not asked again: the queue is stuck behind it.
                drop(self.lost.set(reason));
                Err(GpuError::Hung { seconds: WATCHDOG.as_secs() })
            }
            Err(error) => Err(GpuError::Refusal(error.to_string())),
        }
    }
}

/// Notes when the device goes away, and errors that nobody waits for.
fn watch(
    device: &wgpu::Device,
    lost: &Arc<OnceLock<String>>,
    uncaught: &Arc<Mutex<Option<String>>>,
) {
    let note = Arc::clone(lost);
    device.set_device_lost_callback(move |reason, message| {
        if reason != wgpu::DeviceLostReason::Destroyed {
            tracing::error!(?reason, message, "the GPU was lost");
        }
        drop(note.set(format!("{reason:?}: {message}")));
    });
    let note = Arc::clone(uncaught);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        tracing::error!(%error, "the GPU refused work");
        *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }));
}
