//! Memory that stays on the GPU while models are in use.
//!
//! macOS takes memory from a GPU that was idle for about a second, and the next request waits until it is back. On
//! macOS 15 and later a residency set keeps it, if the system is asked for that again and again.

mod keeper;
#[cfg(target_os = "macos")]
mod metal;

use std::sync::Arc;

/// A buffer as a residency set knows it.
#[cfg(target_os = "macos")]
pub(super) use metal::MetalMember as NativeMember;
/// A buffer as a residency set knows it: there are none.
#[cfg(not(target_os = "macos"))]
pub(super) type NativeMember = std::convert::Infallible;

/// Keeper of a device's memory.
pub(crate) type DeviceKeeper = keeper::ResidencyKeeper<NativeMember>;
/// Membership of a buffer, which ends when this is dropped.
pub(crate) type ResidentBuffer = keeper::ResidentMember<NativeMember>;

/// The keeper of a device's memory; `None` where the system has no residency sets.
pub(crate) fn keeper(device: &wgpu::Device) -> Option<Arc<DeviceKeeper>> {
    native_set(device).map(DeviceKeeper::new)
}

#[cfg(target_os = "macos")]
use metal::set as native_set;

/// A set of the device's memory; there are none outside macOS.
#[cfg(not(target_os = "macos"))]
fn native_set(_device: &wgpu::Device) -> Option<Box<dyn keeper::ResidencySet<NativeMember>>> {
    None
}
