//! Methods, and instance variables.

use std::ffi::{CString, c_char, c_uint};

use super::selector::SelectorName;

/// Machine code of a method.
pub(super) type MethodCode = unsafe extern "C-unwind" fn();

/// One method of a class.
#[derive(Debug)]
pub(super) struct RuntimeMethod {
    pub(super) name: SelectorName,
    pub(super) code: MethodCode,
    /// Encodings of what it returns and takes.
    pub(super) types: CString,
}

// SAFETY: names and code stay as they are as long as the process.
unsafe impl Sync for RuntimeMethod {}

// SAFETY: so they may go from thread to thread.
unsafe impl Send for RuntimeMethod {}

/// One instance variable.
#[derive(Debug)]
pub(super) struct RuntimeVariable {
    pub(super) name: CString,
    pub(super) offset: isize,
    pub(super) types: CString,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn method_getTypeEncoding(method: *const RuntimeMethod) -> *const c_char {
    // SAFETY: methods are never freed.
    unsafe { &*method }.types.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn method_getName(method: *const RuntimeMethod) -> SelectorName {
    // SAFETY: methods are never freed.
    unsafe { &*method }.name
}

#[unsafe(no_mangle)]
unsafe extern "C" fn method_getImplementation(method: *const RuntimeMethod) -> MethodCode {
    // SAFETY: methods are never freed.
    unsafe { &*method }.code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn method_getNumberOfArguments(method: *const RuntimeMethod) -> c_uint {
    // SAFETY: methods are never freed.
    let method = unsafe { &*method };
    // SAFETY: a method's name is a selector.
    let name = unsafe { super::selector::text(method.name) };
    let colons = name.to_bytes().iter().filter(|&&byte| byte == b':').count();
    c_uint::try_from(colons).map_or(c_uint::MAX, |colons| colons + 2)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ivar_getName(variable: *const RuntimeVariable) -> *const c_char {
    // SAFETY: variables are never freed.
    unsafe { &*variable }.name.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ivar_getOffset(variable: *const RuntimeVariable) -> isize {
    // SAFETY: variables are never freed.
    unsafe { &*variable }.offset
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ivar_getTypeEncoding(variable: *const RuntimeVariable) -> *const c_char {
    // SAFETY: variables are never freed.
    unsafe { &*variable }.types.as_ptr()
}
