//! Gives memory back that GPUs keep for reuse when the host has too little of it.
//!
//! Linux tells it by the time that tasks wait for memory (`/proc/pressure/memory`, Linux 4.20 and newer) and by
//! what is left (`MemAvailable` of `/proc/meminfo`), macOS by a level that its kernel decides on
//! (`kern.memorystatus_vm_pressure_level`: 1 normal, 2 warning, 4 critical).

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_apple::{LiveSysctl, SysctlSource};

use super::GpuPool;

/// Interval between two looks at the host.
const INTERVAL: Duration = Duration::from_secs(1);

/// While pressure lasts memory is given back once in so many looks: what runs take meanwhile may serve a few of them.
const PATIENCE: u32 = 10;

/// Share of the last ten seconds in which some task waited for memory, in percent, that counts as pressure.
const WAITING: f64 = 10.0;

/// Memory is short when less than one part in so many is left.
const PARTS: u64 = 20;

/// Level of macOS from which memory is short.
const WARNING: u64 = 2;

/// Watches the host's memory until it is dropped.
#[derive(Debug)]
pub struct Watch {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Watch {
    /// Starts to watch. Where no thread can be had, nothing is given back, and a warning says so.
    pub fn start(gpus: &Arc<GpuPool>) -> Self {
        let gpus = Arc::clone(gpus);
        Self::with(INTERVAL, short, move || gpus.trim())
    }

    /// Asks `short` every so often, and calls `trim` when it says yes: at once, and then with patience.
    fn with(
        interval: Duration,
        short: impl Fn() -> bool + Send + 'static,
        trim: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            let mut looks = 0;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                looks = if short() { looks + 1 } else { 0 };
                if looks % PATIENCE == 1 {
                    report(trim());
                }
            }
        };
        let thread = std::thread::Builder::new().name("memory-watch".to_owned()).spawn(watch);
        let warn = |error: &std::io::Error| {
            tracing::warn!("Memory that GPUs keep is not given back under pressure: {error}");
        };
        Self { thread: thread.inspect_err(warn).ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
    }
}

fn report(bytes: u64) {
    if bytes > 0 {
        tracing::info!("Memory is short: {bytes} bytes that GPUs kept for reuse were given back.");
    }
}

/// Returns whether the host is short of memory now; unknown values count as enough.
fn short() -> bool {
    let read = |path| std::fs::read_to_string(path).ok();
    let level = || LiveSysctl::open().ok()?.integer("kern.memorystatus_vm_pressure_level");
    match cfg!(any(target_os = "macos", apple_doubles)) {
        true => level().is_some_and(|level| level >= WARNING),
        false => {
            read("/proc/pressure/memory").as_deref().and_then(waiting).unwrap_or(0.0) >= WAITING
                || read("/proc/meminfo").as_deref().and_then(scarce).unwrap_or(false)
        }
    }
}

/// The share of the last ten seconds, in percent, in which some task waited: `some avg10=0.12 avg60=… …`.
fn waiting(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

/// Returns whether less than one part in [`PARTS`] of all memory is available without swapping.
fn scarce(text: &str) -> Option<bool> {
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(field("MemAvailable:")? < field("MemTotal:")? / PARTS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Looks until there were `most` of them, and says how often memory was given back.
    fn trims(most: u32, short: impl Fn(u32) -> bool + Send + 'static) -> u32 {
        let (sender, over) = mpsc::channel();
        let looked = AtomicU32::new(0);
        let trimmed = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&trimmed);
        let look = move || {
            let look = looked.fetch_add(1, Ordering::Relaxed);
            if look == most {
                sender.send(()).unwrap();
            }
            look < most && short(look)
        };
        let trim = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            1
        };
        let watch = Watch::with(Duration::from_micros(100), look, trim);
        over.recv_timeout(Duration::from_secs(60)).unwrap();
        drop(watch);
        trimmed.load(Ordering::Relaxed)
    }

    #[test]
    fn memory_is_given_back_when_pressure_begins_and_with_patience_while_it_lasts() {
        assert_eq!(trims(25, |_| false), 0);
        assert_eq!(trims(25, |look| look == 3), 1);
        assert_eq!(trims(25, |look| look == 3 || look == 5), 2);
        assert_eq!(trims(25, |_| true), 3);
    }

    #[test]
    fn linux_tells_how_long_tasks_waited() {
        let text = "some avg10=12.34 avg60=1.00 avg300=0.10 total=99\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(waiting(text), Some(12.34));
        assert_eq!(waiting("full avg10=3.00\n"), None);
        assert_eq!(waiting(""), None);
    }

    #[test]
    fn linux_tells_what_is_left() {
        let text = |left: u64| {
            format!("MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable: {left} kB\n")
        };
        assert_eq!(scarce(&text(1_199_999)), Some(true));
        assert_eq!(scarce(&text(1_200_000)), Some(false));
        assert_eq!(scarce("MemTotal: 24000000 kB\n"), None);
    }
}
