//! The devices of this machine, and what all models on them share.

use std::sync::{Arc, OnceLock};

use galatea_runtime::device_selector::{ComputeDevices, DeviceReport, ExecutionGoal};
use galatea_runtime::tune::{ChoiceSource, TuningCache};
use galatea_runtime::{PlacementOptions, TurnSource};

use crate::gpus::GpuPool;
use crate::kernel_tuning::KernelTuningState;
use crate::power::PowerControl;
use crate::profile::{ProfileSources, Profiler};
use crate::tuning::{self, TuningRecords};

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
    records: OnceLock<Arc<TuningRecords>>,
    tuning: Arc<KernelTuningState>,
}

impl Default for Engine {
    fn default() -> Self {
        let devices = Arc::new(ComputeDevices::new());
        let gpus: Arc<GpuPool> = Arc::default();
        let power = Arc::new(PowerControl::new(Arc::clone(&devices)));
        let sources = ProfileSources { gpus: Arc::clone(&gpus), power: Arc::clone(&power) };
        let profiler = Arc::new(Profiler::new(sources));
        let records = OnceLock::new();
        let tuning = Arc::default();
        Self(Arc::new(EngineState { devices, gpus, power, profiler, records, tuning }))
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

    /// Returns the records of the tuner for this machine. The file is read when they are first asked for.
    ///
    /// ```
    /// let records = galatea::Engine::new().tuning_records().count();
    /// println!("{records} choices were measured on this machine");
    /// ```
    #[must_use]
    pub fn tuning_records(&self) -> &Arc<TuningRecords> {
        self.0.records.get_or_init(|| Arc::new(TuningRecords::at(tuning::usual_file())))
    }

    /// Returns the records for sessions, with what others have written meanwhile.
    pub(crate) fn choices(&self) -> ChoiceSource {
        let records = self.tuning_records();
        records.refresh();
        ChoiceSource(Some(Arc::clone(records) as Arc<dyn TuningCache>))
    }

    /// Returns what a server measures of kernels while it is idle.
    ///
    /// ```
    /// // No server runs.
    /// assert!(galatea::Engine::new().kernel_tuning().versions().is_empty());
    /// ```
    #[must_use]
    pub fn kernel_tuning(&self) -> &Arc<KernelTuningState> {
        &self.0.tuning
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
