//! Finds out in idle moments which devices models run best on, and which kernels are the fastest.

mod idle_gate;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_runtime::UnwatchedScope;
use galatea_runtime::device_selector::ComputeDevices;
use galatea_serving::Core;

use crate::Engine;
use crate::kernel_tuning::KernelTuningState;
use idle_gate::IdleGate;

/// Interval between two checks for something to measure.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time for which placements are measured at a time.
const SLICE: Duration = Duration::from_millis(200);

/// Measures the placements and the kernels of models while nothing else runs, until it is dropped.
#[derive(Debug)]
pub struct TuningThread {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

/// State of the thread.
struct TuningWork {
    core: Weak<Core>,
    devices: Arc<ComputeDevices>,
    state: Arc<KernelTuningState>,
    /// Share of a core that measurements of kernels keep busy at most.
    share: f64,
    stopped: Receiver<()>,
}

impl TuningThread {
    /// Begins to measure the placements and kernels of a core's models on an engine's devices. Kernels keep so much of
    /// a core busy at most.
    #[must_use]
    pub fn start(engine: &Engine, core: &Arc<Core>, share: f64) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let work = TuningWork {
            core: Arc::downgrade(core),
            devices: Arc::clone(engine.compute_devices()),
            state: Arc::clone(engine.kernel_tuning()),
            share,
            stopped,
        };
        let thread = std::thread::Builder::new().name("tender".to_owned());
        let thread = thread.spawn(move || work.run());
        let warn = |error: &std::io::Error| tracing::warn!("units are not compared: {error}");
        Self { thread: thread.inspect_err(warn).ok().map(|thread| (stop, thread)) }
    }
}

impl TuningWork {
    fn run(&self) {
        // A profile tells of what users asked for.
        let _unwatched = UnwatchedScope::begin();
        let gate = IdleGate::new(&self.core, &self.devices, &self.stopped, self.share);
        let mut pause = INTERVAL;
        while self.stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let Some(measured) = self.tune_placements() else { return };
            // Requests come first: one that arrived meanwhile is seen before the next slice.
            pause = match measured {
                true => SLICE,
                false if self.tune_kernels(&gate) => Duration::ZERO,
                false => INTERVAL,
            };
        }
    }

    /// Measures placements if no unit is busy; nothing when the server has ended.
    fn tune_placements(&self) -> Option<bool> {
        let core = self.core.upgrade()?;
        let busy = self.devices.all().iter().any(|unit| unit.is_busy());
        Some(!busy && core.tune_placements(SLICE))
    }

    /// Measures kernels of one version for one set of shapes, when nothing else runs; whether there was something to
    /// measure.
    fn tune_kernels(&self, gate: &IdleGate<'_>) -> bool {
        let Some(core) = self.core.upgrade() else { return false };
        let versions = core.tunable_versions();
        // Nobody waits here for the end of what this thread holds.
        drop(core);
        self.state.serve(&versions);
        versions.iter().any(|version| {
            let report = version.tuner.tune(gate);
            self.state.add(version.load, report.as_ref());
            report.is_some()
        })
    }
}

impl Drop for TuningThread {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
    }
}
