//! Pages of files that the system cannot bring any more: a handler of SIGBUS puts zeros in their place.
//!
//! Whoever makes a file shorter takes pages from everybody who has mapped it. A read of such a page ends the process
//! unless somebody handles the signal. The handler here knows the ranges that are mapped, marks the one that was read
//! as broken and lets the read go on with zeros. Owners of a range look at that mark before they use what was read.
//! Faults elsewhere go to the handler that was there before.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::mm::{MapFlags, ProtFlags};

/// Ranges in one piece of the list.
const BLOCK_SLOTS: usize = 64;

/// A place in the list of ranges. The handler reads it without a lock.
struct RangeSlot {
    is_taken: AtomicBool,
    /// First byte, at a page; 0 where the place holds no range.
    start: AtomicUsize,
    /// End of the last page.
    end: AtomicUsize,
    is_writable: AtomicBool,
    /// Mark of the owner, which lives as long as the range is listed.
    mark: AtomicPtr<AtomicBool>,
}

impl RangeSlot {
    const fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_writable: AtomicBool::new(false),
            mark: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

/// A piece of the list; pieces are never freed.
struct SlotBlock {
    slots: [RangeSlot; BLOCK_SLOTS],
    next: AtomicPtr<SlotBlock>,
}

impl SlotBlock {
    const fn new() -> Self {
        Self {
            slots: [const { RangeSlot::new() }; BLOCK_SLOTS],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Self> {
        let next = NonNull::new(self.next.load(Ordering::Acquire))?;
        // SAFETY: the pointer is that of a leaked box, which is never freed nor changed but by its atomics.
        Some(unsafe { next.as_ref() })
    }
}

static FIRST: SlotBlock = SlotBlock::new();

/// The handler that was there before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Access that a range allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageAccess {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

/// A mapped range whose missing pages become zeros. It is dropped before the range is unmapped.
pub(crate) struct GuardedRange {
    slot: &'static RangeSlot,
    mark: Arc<AtomicBool>,
}

impl GuardedRange {
    /// Lists a range of mapped bytes. `mark` is set when a page of it was missing.
    pub(crate) fn new(
        start: *const u8,
        len: usize,
        access: PageAccess,
        mark: Arc<AtomicBool>,
    ) -> Self {
        install();
        let page = PAGE.load(Ordering::Relaxed);
        let from = start.addr() / page * page;
        let to = start.addr().saturating_add(len.max(1)).div_ceil(page).saturating_mul(page);
        let slot = free_slot();
        slot.is_writable.store(access == PageAccess::Write, Ordering::Relaxed);
        slot.mark.store(Arc::as_ptr(&mark).cast_mut(), Ordering::Relaxed);
        slot.end.store(to, Ordering::Relaxed);
        slot.start.store(from, Ordering::Release);
        Self { slot, mark }
    }

    /// Returns whether a page was missing.
    pub(crate) fn is_broken(&self) -> bool {
        self.mark.load(Ordering::Acquire)
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
        self.slot.mark.store(ptr::null_mut(), Ordering::Relaxed);
        self.slot.is_taken.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for GuardedRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedRange").field("is_broken", &self.is_broken()).finish()
    }
}

/// Takes a free place of the list, which grows where all are taken.
fn free_slot() -> &'static RangeSlot {
    let take = |slot: &&RangeSlot| {
        let taken =
            slot.is_taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    };
    let mut block = &FIRST;
    loop {
        if let Some(slot) = block.slots.iter().find(take) {
            return slot;
        }
        block = match block.next() {
            Some(next) => next,
            None => add_block(block),
        };
    }
}

/// Adds a piece behind the last one, or returns that of another thread which was quicker.
fn add_block(last: &'static SlotBlock) -> &'static SlotBlock {
    let made = Box::into_raw(Box::new(SlotBlock::new()));
    let added =
        last.next.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
    let next = match added {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: the box was made above, and nobody else knows it.
            drop(unsafe { Box::from_raw(made) });
            other
        }
    };
    // SAFETY: the pointer is that of a box which is never freed: this one, or the other thread's.
    unsafe { &*next }
}

/// Puts the handler in place, once.
fn install() {
    PREVIOUS.get_or_init(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: a structure of integers and pointers, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_bus_error as *const () as usize;
        // The stack that overflowed may be the one that faults: threads have another one for signals.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: as above.
        let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: both structures live during the call, and the handler has the form that SA_SIGINFO asks for. Without
        // it a fault ends the process as before.
        let _ = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) };
        previous
    });
}

/// Handles SIGBUS. It calls nothing but what signal handlers may: it reads atomics and maps pages.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system gives a valid structure to handlers with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // SAFETY: as above; the field is meaningful for faults, which have positive codes.
    let address = unsafe { (*info).si_addr() }.addr();
    if code > 0 && replace_pages(address) {
        return;
    }
    pass_on(signal, info, context, code);
}

/// Puts zeros in the place of the page at an address and those behind it in its range. Returns whether the address is
/// in a listed range.
fn replace_pages(address: usize) -> bool {
    let mut block = Some(&FIRST);
    while let Some(one) = block {
        for slot in &one.slots {
            let start = slot.start.load(Ordering::Acquire);
            let end = slot.end.load(Ordering::Relaxed);
            if start != 0 && (start..end).contains(&address) {
                return replace_from(slot, address, end);
            }
        }
        block = one.next();
    }
    false
}

fn replace_from(slot: &RangeSlot, address: usize, end: usize) -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    let from = address / page * page;
    let mut access = ProtFlags::READ;
    if slot.is_writable.load(Ordering::Relaxed) {
        access |= ProtFlags::WRITE;
    }
    let flags = MapFlags::FIXED | MapFlags::PRIVATE;
    let place = ptr::with_exposed_provenance_mut(from);
    // SAFETY: the pages belong to a mapping whose owner has listed it and reads it on this thread, so that it stays
    // mapped; the owner unmaps the whole range later, whatever lies there.
    let mapped = unsafe { rustix::mm::mmap_anonymous(place, end - from, access, flags) };
    let mark = NonNull::new(slot.mark.load(Ordering::Relaxed));
    match (mapped, mark) {
        (Ok(_), Some(mark)) => {
            // SAFETY: the owner of the range keeps the mark as long as the range is listed.
            unsafe { mark.as_ref() }.store(true, Ordering::Release);
            true
        }
        _ => false,
    }
}

/// Lets the handler that was there before have a signal that is none of ours.
fn pass_on(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    code: libc::c_int,
) {
    let previous =
        PREVIOUS.get().map_or((libc::SIG_DFL, 0), |one| (one.sa_sigaction, one.sa_flags));
    match previous {
        (libc::SIG_DFL | libc::SIG_IGN, _) => {
            // SAFETY: the default action is always a valid one. A fault is repeated when this returns and then ends
            // the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if code <= 0 {
                // SAFETY: raising a signal has no conditions; it was sent once by another process.
                unsafe { libc::raise(signal) };
            }
        }
        (handler, flags) if flags & libc::SA_SIGINFO != 0 => {
            type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            let handler = ptr::with_exposed_provenance::<()>(handler);
            // SAFETY: the flag says that this address is a handler of three arguments.
            let handler: InfoHandler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        (handler, _) => {
            let handler = ptr::with_exposed_provenance::<()>(handler);
            // SAFETY: without the flag it is a handler of one argument.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_a_file_has_lost_reads_as_zeros_and_breaks_its_range_alone() {
        let page = rustix::param::page_size();
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * page as u64).unwrap();
        // SAFETY: the test's own file; its lost pages are what is tested.
        let map = unsafe { memmap2::MmapOptions::new().len(4 * page).map(&file) }.unwrap();
        // SAFETY: as above.
        let other = unsafe { memmap2::MmapOptions::new().len(4 * page).map(&file) }.unwrap();
        let guard = |map: &memmap2::Mmap| {
            GuardedRange::new(map.as_ptr(), map.len(), PageAccess::Read, Arc::default())
        };
        let (guarded, beside) = (guard(&map), guard(&other));
        file.set_len(page as u64).unwrap();
        assert_eq!(map[page - 1], 0);
        assert!(!guarded.is_broken());
        assert_eq!(map[2 * page], 0);
        assert_eq!(map[4 * page - 1], 0);
        assert!(guarded.is_broken() && !beside.is_broken());
        // What lies before the lost page is the file's still.
        use std::os::unix::fs::FileExt;
        file.write_at(&[7], 0).unwrap();
        assert_eq!(map[0], 7);
    }

    #[test]
    fn ranges_beyond_the_first_piece_of_the_list_are_found() {
        let bytes = [0_u8; 8];
        let all: Vec<GuardedRange> = (0..3 * BLOCK_SLOTS)
            .map(|_| GuardedRange::new(bytes.as_ptr(), 8, PageAccess::Read, Arc::default()))
            .collect();
        assert!(FIRST.next().is_some());
        drop(all);
        let again = GuardedRange::new(bytes.as_ptr(), 8, PageAccess::Read, Arc::default());
        assert!(!again.is_broken());
    }
}
