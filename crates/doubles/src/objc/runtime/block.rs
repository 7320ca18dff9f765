//! Blocks: closures that move to memory of their own when somebody keeps them.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicIsize, Ordering};

/// Stand-in for a class of blocks, of which only the address counts.
#[repr(C)]
struct BlockKind([usize; 32]);

#[unsafe(no_mangle)]
static _NSConcreteGlobalBlock: BlockKind = BlockKind([0; 32]);

#[unsafe(no_mangle)]
static _NSConcreteStackBlock: BlockKind = BlockKind([0; 32]);

#[unsafe(no_mangle)]
static _NSConcreteMallocBlock: BlockKind = BlockKind([0; 32]);

/// Flag of blocks that have something to copy and to drop.
const HAS_COPY_DISPOSE: i32 = 1 << 25;

/// Beginning of a block.
#[repr(C)]
struct BlockHead {
    kind: *const BlockKind,
    flags: i32,
    owners: AtomicI32,
    invoke: *const c_void,
    description: *const BlockDescription,
}

/// Facts of a kind of blocks.
#[repr(C)]
struct BlockDescription {
    reserved: usize,
    size: usize,
    /// The following are there where the flags say so.
    copy: Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_void)>,
    dispose: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

/// Blocks in memory of their own that are alive.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Returns the number of blocks that somebody keeps.
#[must_use]
pub fn live_blocks() -> isize {
    LIVE.load(Ordering::SeqCst)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap_or_else(|_| panic!("a block of {size} bytes"))
}

/// # Safety
/// The block is alive, and its description is there.
unsafe fn description<'a>(block: *const BlockHead) -> &'a BlockDescription {
    // SAFETY: the caller vouches for the block. A shorter description is read only as far as it goes.
    unsafe { &*(*block).description }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn _Block_copy(block: *const c_void) -> *mut c_void {
    let from: *const BlockHead = block.cast();
    // SAFETY: the block is alive, or null.
    let Some(head) = (unsafe { from.as_ref() }) else { return ptr::null_mut() };
    if ptr::eq(head.kind, &raw const _NSConcreteMallocBlock) {
        head.owners.fetch_add(1, Ordering::SeqCst);
        return block.cast_mut();
    }
    if !ptr::eq(head.kind, &raw const _NSConcreteStackBlock) {
        return block.cast_mut();
    }
    // SAFETY: the block is alive.
    let size = unsafe { (*head.description).size };
    // SAFETY: a block has a head, so the size is not zero.
    let copy = unsafe { alloc::alloc(layout(size)) };
    // SAFETY: both have as many bytes, and the copy is new.
    unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), copy, size) };
    let to: *mut BlockHead = copy.cast();
    // SAFETY: the copy is this function's.
    let new = unsafe { &mut *to };
    new.kind = &raw const _NSConcreteMallocBlock;
    new.owners = AtomicI32::new(1);
    LIVE.fetch_add(1, Ordering::SeqCst);
    if head.flags & HAS_COPY_DISPOSE != 0 {
        // SAFETY: the block is alive.
        if let Some(code) = unsafe { description(from) }.copy {
            // SAFETY: it was compiled to copy what such blocks hold.
            unsafe { code(copy.cast(), block) };
        }
    }
    copy.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn _Block_release(block: *const c_void) {
    let from: *const BlockHead = block.cast();
    // SAFETY: the block is alive, or null.
    let Some(head) = (unsafe { from.as_ref() }) else { return };
    if !ptr::eq(head.kind, &raw const _NSConcreteMallocBlock) {
        return;
    }
    let owners = head.owners.fetch_sub(1, Ordering::SeqCst);
    assert!(owners > 0, "a block is released more often than it has owners");
    if owners > 1 {
        return;
    }
    // SAFETY: the block is alive.
    let size = unsafe { (*head.description).size };
    if head.flags & HAS_COPY_DISPOSE != 0 {
        // SAFETY: the block is alive.
        if let Some(code) = unsafe { description(from) }.dispose {
            // SAFETY: it was compiled to drop what such blocks hold.
            unsafe { code(block.cast_mut()) };
        }
    }
    LIVE.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: the block was allocated with this layout, and has no owner.
    unsafe { alloc::dealloc(block.cast_mut().cast(), layout(size)) };
}
