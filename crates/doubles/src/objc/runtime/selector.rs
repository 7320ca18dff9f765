//! Selectors: each is the address of its name, of which there is one copy.

use std::collections::HashSet;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

/// Address of a selector's name.
pub(super) type SelectorName = *const c_char;

/// Names of all selectors.
static NAMES: Mutex<Option<HashSet<&'static CStr>>> = Mutex::new(None);

/// Returns the one copy of a name.
pub(super) fn interned(name: &CStr) -> SelectorName {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(found) = names.get(name) {
        return found.as_ptr();
    }
    let kept: &'static CStr = Box::leak(name.to_owned().into_boxed_c_str());
    names.insert(kept);
    kept.as_ptr()
}

/// Returns the text of a name.
///
/// # Safety
/// The name is one of [`interned`]'s.
pub(super) unsafe fn text(name: SelectorName) -> &'static CStr {
    // SAFETY: the caller vouches for the name, which is never freed.
    unsafe { CStr::from_ptr(name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sel_registerName(name: *const c_char) -> SelectorName {
    // SAFETY: the name is terminated, as the function asks.
    interned(unsafe { CStr::from_ptr(name) })
}

#[unsafe(no_mangle)]
extern "C" fn sel_getName(name: SelectorName) -> *const c_char {
    name
}

#[unsafe(no_mangle)]
extern "C" fn sel_isEqual(one: SelectorName, other: SelectorName) -> u8 {
    u8::from(one == other)
}
