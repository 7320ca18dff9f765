//! Memory of Metal that CPU and GPU share.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};
use wgpu::hal::api::Metal;
use wgpu::hal::metal::Device;

use super::{MappedApi, MappedMemory};
use crate::buffers::resident::NativeMember;
use crate::buffers::shared::MappedOwner;
use crate::exception::catching;

/// A buffer of Metal, whose bytes stay where they are as long as anybody retains it.
struct MetalMemory {
    buffer: Retained<ProtocolObject<dyn MTLBuffer>>,
}

// SAFETY: Metal's buffers may be retained and released on any thread.
unsafe impl Send for MetalMemory {}
// SAFETY: as above; nothing is called on the buffer through a shared reference.
unsafe impl Sync for MetalMemory {}

impl fmt::Debug for MetalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetalMemory").field("bytes", &self.buffer.length()).finish()
    }
}

impl MappedOwner for MetalMemory {}

impl MappedApi for Metal {
    fn make(
        _device: &wgpu::Device,
        below: &Device,
        size: u64,
    ) -> Result<MappedMemory<Self>, String> {
        let length = usize::try_from(size).map_err(|_| "beyond this machine".to_owned())?;
        let options = MTLResourceOptions::StorageModeShared;
        let made = catching(|| below.raw_device().newBufferWithLength_options(length, options))?;
        let raw = made.ok_or("Metal has no memory for it")?;
        let start: NonNull<u8> = catching(|| raw.contents())?.cast();
        let owner: Arc<dyn MappedOwner> = Arc::new(MetalMemory { buffer: raw.clone() });
        let member = Some(NativeMember(raw.clone()));
        // SAFETY: the buffer was made just now and is so long.
        let buffer = unsafe { Device::buffer_from_raw(raw, size) };
        Ok(MappedMemory { buffer, start, owner, member })
    }
}
