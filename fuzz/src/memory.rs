//! An allocator that refuses more than a bound: what asks first answers with an error, and what
//! does not aborts, which the fuzzer reports.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts live bytes, of all threads.
struct BoundedAllocator;

#[global_allocator]
static ALLOCATOR: BoundedAllocator = BoundedAllocator;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

fn take(bytes: usize) -> bool {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if live <= MOST.load(Ordering::Relaxed) {
        return true;
    }
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
    false
}

// SAFETY: every call is handed to the system's allocator, or refused with a null pointer.
unsafe impl GlobalAlloc for BoundedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !take(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The most seconds of processor time that something may take: unlike the time on the wall, this is
/// the same on a busy machine.
const MOST_SECONDS: f64 = 10.0;

/// Seconds of processor time that this process has used.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Runs something that may hold `bytes` more than is held now, for at most ten seconds.
pub fn within(bytes: usize, run: impl FnOnce()) {
    MOST.store(LIVE.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    let start = seconds();
    run();
    let taken = seconds() - start;
    assert!(taken <= MOST_SECONDS, "took {taken:.1} s of processor time");
    MOST.store(usize::MAX, Ordering::Relaxed);
}
