//! Divides runs between the units of the machine, and finds out in idle moments which of them models run best on.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_providers::{coreml, cpu};
use galatea_runtime::device_selector::{ComputeDevices, DeviceReport, ExecutionGoal};
use galatea_runtime::power::PowerDraw;
use galatea_runtime::{PlacementOptions, TurnSource, UnwatchedScope};
use galatea_serving::Core;

/// The units of this process.
static UNITS: LazyLock<Arc<ComputeDevices>> = LazyLock::new(|| Arc::new(ComputeDevices::new()));

/// Interval between two checks for placements to measure.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time for which placements are measured at a time.
const SLICE: Duration = Duration::from_millis(200);

/// Returns the routing of this process's runs when no goal is given.
pub(crate) fn usual() -> PlacementOptions {
    PlacementOptions { units: Arc::clone(&UNITS), goal: ExecutionGoal::default() }
}

/// The units, with what they have to do.
pub(crate) fn units() -> &'static ComputeDevices {
    &UNITS
}

/// Returns the queue in which undivided runs wait for their turns.
pub(crate) fn turns() -> TurnSource {
    TurnSource(Some(Arc::clone(&UNITS)))
}

/// Reports the work, done and pending, of the devices among which runs are divided.
pub(crate) fn report() -> Vec<DeviceReport> {
    let units = UNITS.all();
    units.iter().filter(|unit| unit.is_divided()).map(|unit| unit.report()).collect()
}

/// A unit that was busy for less of an interval says little of what it draws.
const BUSY: f64 = 0.3;
/// Weight of the latest interval in the average watts of a device.
const NEWS: f64 = 0.2;

/// Learns what units draw while they work, from how busy they were and what each drew.
#[derive(Debug, Default)]
pub(crate) struct DeviceWattmeter {
    busy: Vec<(String, Duration)>,
}

impl DeviceWattmeter {
    /// Takes note of what parts of the chip drew on the average of an interval that ends now.
    pub(crate) fn note(&mut self, units: &ComputeDevices, elapsed: Duration, draw: &PowerDraw) {
        for unit in units.all() {
            let busy = unit.report().busy;
            let before = self.busy.iter_mut().find(|(name, _)| name == unit.name());
            let before = match before {
                Some((_, before)) => std::mem::replace(before, busy),
                None => {
                    self.busy.push((unit.name().to_owned(), busy));
                    continue;
                }
            };
            let share = busy.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            let watts = match unit.name() {
                cpu::NAME => draw.cpu,
                "gpu" => draw.gpu,
                coreml::NAME => draw.engine,
                _ => None,
            };
            let Some(watts) = watts.filter(|_| share >= BUSY) else { continue };
            let now = watts / share.min(1.0);
            let known = unit.watts().unwrap_or(now);
            unit.set_watts(known + (now - known) * NEWS);
        }
    }
}

/// Measures the ways of models while nothing else runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct TuningThread {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl TuningThread {
    /// Begins.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let core = Arc::downgrade(core);
        let watch = move || {
            let mut pause = INTERVAL;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let Some(measured) = tune_one(&core) else { return };
                // Requests come first: one that arrived meanwhile is seen before the next slice.
                pause = if measured { SLICE } else { INTERVAL };
            }
        };
        let thread = std::thread::Builder::new().name("tender".to_owned()).spawn(watch);
        let warn = |error: &std::io::Error| tracing::warn!("units are not compared: {error}");
        Self { thread: thread.inspect_err(warn).ok().map(|thread| (stop, thread)) }
    }
}

/// Measures something if no unit is busy; nothing when the server has ended.
fn tune_one(core: &Weak<Core>) -> Option<bool> {
    let core = core.upgrade()?;
    let busy = UNITS.all().iter().any(|unit| unit.is_busy());
    // A profile tells of what users asked for.
    let _unwatched = UnwatchedScope::begin();
    Some(!busy && core.tune_placements(SLICE))
}

impl Drop for TuningThread {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_are_those_of_a_unit_that_works_all_the_time() {
        let units = ComputeDevices::new();
        let gpu = units.named("gpu");
        let mut meter = DeviceWattmeter::default();
        let interval = Duration::from_millis(20);
        let draw = PowerDraw { gpu: Some(6.0), ..PowerDraw::default() };
        meter.note(&units, interval, &draw);
        meter.note(&units, interval, &draw);
        assert_eq!(gpu.watts(), None, "it did nothing");
        let under_way = gpu.begin(Duration::from_secs(1));
        std::thread::sleep(interval);
        drop(under_way);
        // Of twice the time it was busy for about half.
        meter.note(&units, interval * 2, &draw);
        let watts = gpu.watts().unwrap_or_default();
        assert!((6.0..=12.1).contains(&watts), "{watts}");
    }
}
