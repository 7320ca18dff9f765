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
        let gpus = Arc::new(GpuPool::default());
        let power = Arc::new(PowerControl::new(Arc::clone(&devices)));
        let sources = ProfileSources { gpus: Arc::clone(&gpus), power: Arc::clone(&power) };
        let profiler = Arc::new(Profiler::new(sources));
        Self(Arc::new(EngineState { devices, gpus, power, profiler }))
    }
}

impl Engine {
    /// Makes an engine. Devices are opened when models need them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the GPUs that are open.
    #[must_use]
    pub fn gpus(&self) -> &Arc<GpuPool> {
        &self.0.gpus
    }

    /// Returns the control of power.
    #[must_use]
    pub fn power(&self) -> &Arc<PowerControl> {
        &self.0.power
    }

    /// Returns the profiler.
    #[must_use]
    pub fn profiler(&self) -> &Arc<Profiler> {
        &self.0.profiler
    }

    /// Returns the devices with the work that waits for them.
    #[must_use]
    pub fn compute_devices(&self) -> &Arc<ComputeDevices> {
        &self.0.devices
    }

    /// Returns the options that divide runs between devices for the shortest time.
    #[must_use]
    pub fn placement_options(&self) -> PlacementOptions {
        PlacementOptions { units: Arc::clone(&self.0.devices), goal: ExecutionGoal::default() }
    }

    /// Returns the queue in which undivided runs wait for their device.
    #[must_use]
    pub fn turns(&self) -> TurnSource {
        TurnSource(Some(Arc::clone(&self.0.devices)))
    }

    /// Reports the work, done and pending, of the devices among which runs are divided.
    #[must_use]
    pub fn device_reports(&self) -> Vec<DeviceReport> {
        let devices = self.0.devices.all();
        let divided = devices.iter().filter(|device| device.is_divided());
        divided.map(|device| device.report()).collect()
    }
}
