//! Double of `dlsym`: the functions that are looked up, each from the macOS on that has it.

use std::ffi::{CStr, c_char, c_void};

use super::darwin::RTLD_DEFAULT;
use super::played::{MacVersion, PlayedMac};
use super::{accelerate, bnns, refuse};

unsafe extern "C-unwind" {
    // Its double is among those of Core ML's classes.
    fn MLAllComputeDevices() -> *mut c_void;
}

/// Function of macOS.
struct KnownSymbol {
    name: &'static str,
    /// First version with it.
    since: MacVersion,
    address: fn() -> *mut c_void,
}

const OLDEST: MacVersion = MacVersion { major: 13, minor: 0 };

/// Functions that can be found.
const SYMBOLS: &[KnownSymbol] = &[
    KnownSymbol {
        name: "cblas_sgemm",
        since: OLDEST,
        address: || accelerate::narrow_sgemm as *mut c_void,
    },
    KnownSymbol {
        name: "cblas_sgemm$NEWLAPACK$ILP64",
        since: MacVersion { major: 13, minor: 3 },
        address: || accelerate::wide_sgemm as *mut c_void,
    },
    KnownSymbol { name: "BNNSMatMul", since: OLDEST, address: || bnns::mat_mul as *mut c_void },
    KnownSymbol {
        name: "BNNSMatMulWorkspaceSize",
        since: OLDEST,
        address: || bnns::workspace_size as *mut c_void,
    },
    KnownSymbol {
        name: "MLAllComputeDevices",
        since: MacVersion { major: 14, minor: 0 },
        address: || MLAllComputeDevices as *mut c_void,
    },
];

/// Double of `dlsym`, for what is loaded with the program.
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn galatea_double_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    if handle != RTLD_DEFAULT || name.is_null() {
        refuse("dlsym", "expected a name and the handle of what is loaded");
    }
    // SAFETY: the caller gives a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let mac = PlayedMac::here();
    let found = SYMBOLS.iter().find(|known| known.name == name);
    let there = |known: &&KnownSymbol| known.since <= mac.version && !mac.lacks(known.name);
    found.filter(there).map_or(std::ptr::null_mut(), |known| (known.address)())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mac: &str, name: &CStr) -> bool {
        // SAFETY: the name ends with a zero.
        let find = || unsafe { galatea_double_dlsym(RTLD_DEFAULT, name.as_ptr()) };
        !PlayedMac::parse(mac).unwrap().play(find).is_null()
    }

    #[test]
    fn functions_are_there_from_their_version_on() {
        let wide = c"cblas_sgemm$NEWLAPACK$ILP64";
        assert!(!found("m1-16gb,macos=13.0", wide) && found("m1-16gb,macos=13.3", wide));
        assert!(found("m1-16gb,macos=13.0", c"cblas_sgemm"));
        assert!(!found("m1-16gb,without=BNNSMatMul", c"BNNSMatMul"));
        assert!(!found("m1-16gb", c"cblas_dgemm_odd"));
    }
}
