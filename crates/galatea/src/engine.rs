//! The devices of this machine, and what all models on them share.

use std::sync::Arc;

use galatea_runtime::device_selector::{ComputeDevices, DeviceReport, ExecutionGoal};
use galatea_runtime::{PlacementOptions, TurnSource};

use crate::gpus::GpuPool;
use crate::power::PowerControl;
use crate::profile::{ProfileSources, Profiler};

/// The devices of this machine, with what all models on them share: open GPUs, queues, power and profiles.
///
/// Clones are the same engine. Two engines of one process know nothing of each other.
///
/// ```
/// let engine = galatea::Engine::new();
/// let model = engine.model("../../examples/models/simple")?;
/// println!("{:?}", model.inputs());
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineState>);

#[derive(Debug)]
struct EngineState {
    devices: Arc<ComputeDevices>,
    gpus: Arc<GpuPool>,
    power: Arc<PowerControl>,
    profiler: Arc<Profiler>,
}

impl Default for Engine {
    fn default() -> Self {
        let devices = Arc::new(ComputeDevices::new());
        let gpus: Arc<GpuPool> = Arc::default();
        let power = Arc::new(PowerControl::new(Arc::clone(&devices)));
        let sources = ProfileSources { gpus: Arc::clone(&gpus), power: Arc::clone(&power) };
        let profiler = Arc::new(Profiler::new(sources));
        Self(Arc::new(EngineState { devices, gpus, power, profiler }))
    }
}

impl Engine {
    /// Makes an engine. Devices are opened when models need them.
    ///
    /// ```
    /// let first = galatea::Engine::new();
    /// let second = galatea::Engine::new();
    /// assert!(!std::sync::Arc::ptr_eq(first.power(), second.power()));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the GPUs that are open.
    ///
    /// ```
    /// assert!(galatea::Engine::new().gpus().memory().is_empty());
    /// ```
    #[must_use]
    pub fn gpus(&self) -> &Arc<GpuPool> {
        &self.0.gpus
    }

    /// Returns the control of power.
    ///
    /// ```
    /// // Nothing reads sensors until a server runs.
    /// assert!(galatea::Engine::new().power().state().is_none());
    /// ```
    #[must_use]
    pub fn power(&self) -> &Arc<PowerControl> {
        &self.0.power
    }

    /// Returns the profiler.
    ///
    /// ```
    /// use galatea::profile::ProfileRequest;
    ///
    /// let engine = galatea::Engine::new();
    /// engine.profiler().start(&ProfileRequest::default())?;
    /// let profile = engine.profiler().stop()?;
    /// println!("{}", profile.summary);
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn profiler(&self) -> &Arc<Profiler> {
        &self.0.profiler
    }

    /// Returns the devices with the work that waits for them.
    ///
    /// ```
    /// let engine = galatea::Engine::new();
    /// assert!(engine.compute_devices().all().iter().all(|device| !device.is_busy()));
    /// ```
    #[must_use]
    pub fn compute_devices(&self) -> &Arc<ComputeDevices> {
        &self.0.devices
    }

    /// Returns the options that divide runs between devices for the shortest time.
    ///
    /// ```
    /// let options = galatea::Engine::new().placement_options();
    /// assert!(options.units.all().is_empty());
    /// ```
    #[must_use]
    pub fn placement_options(&self) -> PlacementOptions {
        PlacementOptions { units: Arc::clone(&self.0.devices), goal: ExecutionGoal::default() }
    }

    /// Returns the queue in which undivided runs wait for their device.
    ///
    /// ```
    /// assert!(galatea::Engine::new().turns().0.is_some());
    /// ```
    #[must_use]
    pub fn turns(&self) -> TurnSource {
        TurnSource(Some(Arc::clone(&self.0.devices)))
    }

    /// Reports the work, done and pending, of the devices among which runs are divided.
    ///
    /// ```
    /// for report in galatea::Engine::new().device_reports() {
    ///     println!("{:?} busy", report.busy);
    /// }
    /// ```
    #[must_use]
    pub fn device_reports(&self) -> Vec<DeviceReport> {
        let devices = self.0.devices.all();
        let divided = devices.iter().filter(|device| device.is_divided());
        divided.map(|device| device.report()).collect()
    }
}
