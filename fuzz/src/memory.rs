//! An allocator that refuses more than a bound: what asks first answers with an error, and what
//! does not aborts, which the fuzzer reports.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts live bytes, of all threads.
struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;
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
unsafe impl GlobalAlloc for Counted {
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

/// Runs something that may hold `bytes` more than is held now.
pub fn within(bytes: usize, run: impl FnOnce()) {
    MOST.store(LIVE.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    run();
    MOST.store(usize::MAX, Ordering::Relaxed);
}
