//! Doubles of the classes of threads.
//!
//! Source: Apple, `pthread/qos.h` and `sys/qos.h`.

use std::cell::Cell;

use super::darwin::{c_int, pthread_self, pthread_t};
use super::played::PlayedMac;
use super::refuse;

const EPERM: c_int = 1;
const EINVAL: c_int = 22;

/// The classes that a thread can be given.
const CLASSES: [u32; 5] = [0x21, 0x19, 0x15, 0x11, 0x09];

thread_local! {
    /// The thread's class; none was given to a new thread.
    static CLASS: Cell<u32> = const { Cell::new(0) };
    /// How far below its class the thread is.
    static RELATIVE: Cell<c_int> = const { Cell::new(0) };
}

/// Double of `pthread_set_qos_class_self_np`.
#[unsafe(no_mangle)]
extern "C" fn pthread_set_qos_class_self_np(class: u32, relative: c_int) -> c_int {
    // The system refuses it to a thread whose scheduling was chosen otherwise.
    if PlayedMac::here().refuses("pthread_set_qos_class_self_np") {
        return EPERM;
    }
    if !CLASSES.contains(&class) || !(-15..=0).contains(&relative) {
        return EINVAL;
    }
    CLASS.set(class);
    RELATIVE.set(relative);
    0
}

/// Double of `pthread_get_qos_class_np`, for the calling thread.
///
/// # Safety
/// Both places are there to be written, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_get_qos_class_np(
    thread: pthread_t,
    class: *mut u32,
    relative: *mut c_int,
) -> c_int {
    const NAME: &str = "pthread_get_qos_class_np";
    // SAFETY: it takes nothing.
    if thread != unsafe { pthread_self() } {
        refuse(NAME, "expected the calling thread");
    }
    if PlayedMac::here().refuses(NAME) {
        return EINVAL;
    }
    if !class.is_null() {
        // SAFETY: the caller gives the place.
        unsafe { *class = CLASS.get() };
    }
    if !relative.is_null() {
        // SAFETY: as above.
        unsafe { *relative = RELATIVE.get() };
    }
    0
}
