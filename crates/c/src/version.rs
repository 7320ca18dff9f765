//! Versions of the interface and of the library.

use std::ffi::c_char;

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::CallerPointers;

/// Version of this header: the upper 16 bits change when old programs do not work any more, the lower 16 when
/// functions or fields are added.
pub const GALATEA_ABI_VERSION: u32 = 0x0001_0000;

/// Returns the version of the interface that the library has; `GALATEA_ABI_VERSION` is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_abi_version() -> u32 {
    GALATEA_ABI_VERSION
}

/// Checks that a program which was compiled with `GALATEA_ABI_VERSION` of its header may use this library.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_require_abi(version: u32) -> ApiStatus {
    // SAFETY: the call has no pointers.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        let major = |version: u32| version >> 16;
        let fits = major(version) == major(GALATEA_ABI_VERSION) && version <= GALATEA_ABI_VERSION;
        let text =
            format!("the header has ABI {version:#x}, the library has {GALATEA_ABI_VERSION:#x}");
        fits.then_some(()).ok_or(CallFailure::new(ApiStatus::AbiMismatch, text))
    })
}

/// Returns the version of the library, such as "0.1.0".
///
/// Ownership: the text belongs to the library and is always valid.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
