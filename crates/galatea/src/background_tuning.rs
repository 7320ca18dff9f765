//! Finds out in idle moments which devices models run best on.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_runtime::UnwatchedScope;
use galatea_runtime::device_selector::ComputeDevices;
use galatea_serving::Core;

use crate::Engine;

/// Interval between two checks for placements to measure.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time for which placements are measured at a time.
const SLICE: Duration = Duration::from_millis(200);

/// Measures the placements of models while nothing else runs, until it is dropped.
#[derive(Debug)]
pub struct TuningThread {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl TuningThread {
    /// Begins to measure the placements of a core's models on an engine's devices.
    #[must_use]
    pub fn start(engine: &Engine, core: &Arc<Core>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let devices = Arc::clone(engine.compute_devices());
        let core = Arc::downgrade(core);
        let watch = move || {
            let mut pause = INTERVAL;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let Some(measured) = tune_one(&devices, &core) else { return };
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
fn tune_one(devices: &ComputeDevices, core: &Weak<Core>) -> Option<bool> {
    let core = core.upgrade()?;
    let busy = devices.all().iter().any(|unit| unit.is_busy());
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
