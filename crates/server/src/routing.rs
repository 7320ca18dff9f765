//! Divides runs between the units of the machine, and finds out in idle moments which of them models run best on.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_runtime::Routing;
use galatea_runtime::route::{Goal, UnitReport, Units};
use galatea_serving::Core;

/// The units of this process.
static UNITS: LazyLock<Arc<Units>> = LazyLock::new(|| Arc::new(Units::new()));

/// How often it is looked whether there is something to find out.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long ways are measured at a time.
const SLICE: Duration = Duration::from_millis(200);

/// How runs of this process are divided where nobody says what a unit is chosen by.
pub(crate) fn usual() -> Routing {
    Routing { units: Arc::clone(&UNITS), goal: Goal::default() }
}

/// The units, with what they have to do.
pub(crate) fn units() -> &'static Units {
    &UNITS
}

/// What the units did and have to do; nothing where runs are not divided.
pub(crate) fn report() -> Vec<UnitReport> {
    UNITS.all().iter().map(|unit| unit.report()).collect()
}

/// Measures the ways of models while nothing else runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Tender {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Tender {
    /// Begins.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let core = Arc::downgrade(core);
        let watch = move || {
            let mut pause = INTERVAL;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let Some(measured) = tend(&core) else { return };
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
fn tend(core: &Weak<Core>) -> Option<bool> {
    let core = core.upgrade()?;
    let busy = UNITS.all().iter().any(|unit| unit.report().running > 0);
    Some(!busy && core.tend(SLICE))
}

impl Drop for Tender {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
    }
}
