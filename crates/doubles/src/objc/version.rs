//! Version of macOS, as the bindings ask for it.

use crate::c::PlayedMac;

/// Returns whether the Mac that is played has this version: its numbers in the bytes of `version`, after the first the
/// minor one and the patch.
///
/// `cargo xtask doubles` lets objc2 ask here.
#[unsafe(no_mangle)]
extern "C" fn galatea_double_has_version(version: u32) -> bool {
    let mac = PlayedMac::here().version;
    let [_, major, minor, _] = version.to_be_bytes();
    (mac.major, mac.minor) >= (major.into(), minor.into())
}
