//! Objects: their memory and their counts of owners.

use std::alloc::{self, Layout};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::class::{ObjectHead, RuntimeClass, class_of};
use super::selector;

/// Memory before an object.
#[repr(C, align(16))]
struct ObjectPrefix {
    owners: AtomicIsize,
    /// Bytes of the prefix and the object.
    size: usize,
}

/// Owners of what has been freed.
const FREED: isize = isize::MIN / 2;

/// Class, and how many of its instances are alive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveInstances {
    /// Name of the class.
    pub class: String,
    /// Number of its instances.
    pub count: isize,
}

/// Returns the classes of which instances are alive, in order.
#[must_use]
pub fn live_objects() -> Vec<LiveInstances> {
    let count = |class: &RuntimeClass| LiveInstances {
        class: class.name.to_string_lossy().into_owned(),
        count: class.live.load(Ordering::SeqCst),
    };
    let mut found: Vec<LiveInstances> = RuntimeClass::every().into_iter().map(count).collect();
    found.retain(|class| class.count != 0);
    found.sort();
    found
}

/// Addresses of the objects that are alive.
static ALIVE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn alive() -> MutexGuard<'static, BTreeSet<usize>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether an address is that of an object that is alive.
pub(in crate::objc) fn is_alive(object: *const c_void) -> bool {
    alive().contains(&object.addr())
}

/// Returns the prefix of an object that [`make`] made; classes and constants have none.
///
/// # Safety
/// The object is alive, or null.
unsafe fn prefix_of<'a>(object: *mut ObjectHead) -> Option<&'a ObjectPrefix> {
    // SAFETY: the caller vouches for the object.
    let head = unsafe { object.as_ref() }?;
    // SAFETY: a class is never freed.
    let class = unsafe { head.class.load(Ordering::Acquire).as_ref() }?;
    if class.is_meta || class.is_of_constants() {
        return None;
    }
    let start: *mut ObjectPrefix = object.cast();
    // SAFETY: the prefix lies before the object, in the same memory.
    Some(unsafe { &*start.sub(1) })
}

/// Makes an object with one owner; all else is zero.
pub(super) fn make(class: &'static RuntimeClass) -> *mut ObjectHead {
    let size = size_of::<ObjectPrefix>() + class.size.load(Ordering::Relaxed);
    let layout = Layout::from_size_align(size, align_of::<ObjectPrefix>());
    let Ok(layout) = layout else { return ptr::null_mut() };
    // SAFETY: the size is not zero.
    let start: *mut ObjectPrefix = unsafe { alloc::alloc_zeroed(layout) }.cast();
    if start.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the memory is this object's.
    unsafe { start.write(ObjectPrefix { owners: AtomicIsize::new(1), size }) };
    // SAFETY: the object lies behind its prefix.
    let object: *mut ObjectHead = unsafe { start.add(1) }.cast();
    let head = ObjectHead { class: ptr::from_ref(class).cast_mut().into() };
    // SAFETY: the memory is this object's.
    unsafe { object.write(head) };
    class.live.fetch_add(1, Ordering::SeqCst);
    alive().insert(object.addr());
    object
}

/// Frees the memory of an object without owners.
///
/// # Safety
/// The object was made by [`make`], and nobody uses it any more.
pub(super) unsafe fn free(object: *mut ObjectHead) {
    // SAFETY: the caller vouches for the object.
    let Some(prefix) = (unsafe { prefix_of(object) }) else { return };
    // SAFETY: it is still alive.
    unsafe { class_of(object) }.live.fetch_sub(1, Ordering::SeqCst);
    prefix.owners.store(FREED, Ordering::SeqCst);
    alive().remove(&object.addr());
    let start = ptr::from_ref(prefix).cast_mut().cast::<u8>();
    let layout = Layout::from_size_align(prefix.size, align_of::<ObjectPrefix>());
    if let Ok(layout) = layout {
        // SAFETY: it was allocated with this layout.
        unsafe { alloc::dealloc(start, layout) };
    }
}

/// Adds an owner.
///
/// # Safety
/// The object is alive, or null.
pub(super) unsafe fn retain(object: *mut ObjectHead) {
    // SAFETY: the caller vouches for the object.
    if let Some(prefix) = unsafe { prefix_of(object) } {
        let owners = prefix.owners.fetch_add(1, Ordering::SeqCst);
        assert!(owners > 0, "an object without owners gets one");
    }
}

/// Takes an owner away, and the object when it was the last.
///
/// # Safety
/// The object is alive and this owner is one of its own, or it is null.
pub(super) unsafe fn release(object: *mut ObjectHead) {
    // SAFETY: the caller vouches for the object.
    let Some(prefix) = (unsafe { prefix_of(object) }) else { return };
    let owners = prefix.owners.fetch_sub(1, Ordering::SeqCst);
    assert!(owners > 0, "an object is released more often than it has owners");
    if owners > 1 {
        return;
    }
    let name = selector::interned(c"dealloc");
    // SAFETY: the object is alive until it has been deallocated.
    let method = unsafe { class_of(object) }.method(name);
    if let Some(method) = method {
        type Deallocate = unsafe extern "C-unwind" fn(*mut ObjectHead, selector::SelectorName);
        // SAFETY: `dealloc` has this type in every class.
        let deallocate =
            unsafe { std::mem::transmute::<super::method::MethodCode, Deallocate>(method.code) };
        // SAFETY: the object is alive, and has no owner.
        unsafe { deallocate(object, name) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc_retain(object: *mut ObjectHead) -> *mut ObjectHead {
    // SAFETY: the function asks for what this one does.
    unsafe { retain(object) };
    object
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc_release(object: *mut ObjectHead) {
    // SAFETY: the function asks for what this one does.
    unsafe { release(object) };
}
