//! Residency sets of Metal.

use std::fmt;

use objc2::rc::Retained;
use objc2::runtime::{NSObjectProtocol, ProtocolObject};
use objc2::sel;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResidencySet, MTLResidencySetDescriptor};
use wgpu::hal::api::Metal;

use super::keeper::ResidencySet;
use crate::exception::catching;

/// A buffer that is a member of a set.
pub(crate) struct MetalMember(pub(in crate::buffers) Retained<ProtocolObject<dyn MTLBuffer>>);

// SAFETY: Metal's buffers may be retained and released on any thread.
unsafe impl Send for MetalMember {}
// SAFETY: as above; nothing is called on the buffer through a shared reference.
unsafe impl Sync for MetalMember {}

impl fmt::Debug for MetalMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetalMember").finish_non_exhaustive()
    }
}

/// A set of Metal.
struct MetalSet(Retained<ProtocolObject<dyn MTLResidencySet>>);

// SAFETY: a set may be used on any thread, one call at a time, as its keeper sees to.
unsafe impl Send for MetalSet {}

impl fmt::Debug for MetalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetalSet").finish_non_exhaustive()
    }
}

/// Makes a call, and tells an exception. Without the set memory is used all the same.
fn told(call: impl FnOnce()) {
    if let Err(error) = catching(call) {
        tracing::warn!(error, "memory is not kept on the GPU");
    }
}

impl ResidencySet<MetalMember> for MetalSet {
    fn add(&self, member: &MetalMember) {
        told(|| self.0.addAllocation(ProtocolObject::from_ref(&*member.0)));
    }

    fn remove(&self, member: &MetalMember) {
        told(|| self.0.removeAllocation(ProtocolObject::from_ref(&*member.0)));
    }

    fn commit(&self) {
        told(|| self.0.commit());
    }

    fn request(&self) {
        told(|| self.0.requestResidency());
    }

    fn end(&self) {
        told(|| self.0.endResidency());
    }
}

/// A set of a device; `None` before macOS 15, and where Metal refuses.
pub(super) fn set(device: &wgpu::Device) -> Option<Box<dyn ResidencySet<MetalMember>>> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<Metal>() }?;
    let metal = below.raw_device();
    let makes = sel!(newResidencySetWithDescriptor:error:);
    if !catching(|| metal.respondsToSelector(makes)).unwrap_or(false) {
        return None;
    }
    let make = || metal.newResidencySetWithDescriptor_error(&MTLResidencySetDescriptor::new());
    let refused = |error: String| tracing::warn!(error, "memory is not kept on the GPU");
    let made = catching(make).map_err(refused).ok()?;
    let made = made.map_err(|error| refused(format!("{error:?}"))).ok()?;
    Some(Box::new(MetalSet(made)))
}
