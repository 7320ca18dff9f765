//! Comparisons of results that nobody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use galatea_apple::qos::ThreadQos;

/// True while a comparison runs.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Ends a comparison when the value goes, also by a panic.
struct BusyMark;

impl Drop for BusyMark {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

/// Runs a comparison in the background, at the lowest priority that the system has for threads. While another one of this
/// process runs it is left out: comparisons are a sample, and take one thread at most.
pub(crate) fn compare_later(comparison: impl FnOnce() + Send + 'static) {
    if BUSY.swap(true, Ordering::AcqRel) {
        return;
    }
    let mark = BusyMark;
    let work = move || {
        let _mark = mark;
        // Only macOS has classes of threads.
        drop(ThreadQos::Background.set());
        comparison();
    };
    if let Err(error) = thread::Builder::new().name("compare-results".to_owned()).spawn(work) {
        tracing::debug!("results are not compared: {error}");
    }
}
