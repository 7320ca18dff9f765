//! Protocols, of which there are none: classes say what they conform to, and nobody asks them.

use std::ffi::{c_char, c_uint, c_void};
use std::ptr;

#[unsafe(no_mangle)]
extern "C" fn objc_getProtocol(_name: *const c_char) -> *const c_void {
    ptr::null()
}

#[unsafe(no_mangle)]
extern "C" fn class_addProtocol(_class: *const c_void, _protocol: *const c_void) -> u8 {
    0
}

#[unsafe(no_mangle)]
extern "C" fn protocol_getName(_protocol: *const c_void) -> *const c_char {
    c"".as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn protocol_copyMethodDescriptionList(
    _protocol: *const c_void,
    _required: u8,
    _instance: u8,
    count: *mut c_uint,
) -> *mut c_void {
    // SAFETY: the number is there to be written.
    unsafe { count.write(0) };
    ptr::null_mut()
}
