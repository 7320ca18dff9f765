//! Memory of Vulkan that stays mapped.

use std::fmt;
use std::sync::Arc;

use wgpu::hal::Device as _;
use wgpu::hal::api::Vulkan;
use wgpu::hal::vulkan::{Buffer, Device};

use super::{MappedApi, MappedMemory, allocated};
use crate::buffers::shared::MappedOwner;

/// A buffer with its memory, which goes back to the device in the end.
struct VulkanMemory {
    device: wgpu::Device,
    buffer: Option<Buffer>,
}

impl fmt::Debug for VulkanMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanMemory").finish_non_exhaustive()
    }
}

impl MappedOwner for VulkanMemory {}

impl Drop for VulkanMemory {
    fn drop(&mut self) {
        // SAFETY: the handle is used for the call below and not kept.
        let below = unsafe { self.device.as_hal::<Vulkan>() };
        if let (Some(buffer), Some(below)) = (self.buffer.take(), below) {
            // SAFETY: the buffer is this device's, wgpu is done with it, and nobody has its address any more.
            unsafe { below.destroy_buffer(buffer) };
        }
    }
}

impl MappedApi for Vulkan {
    fn make(
        device: &wgpu::Device,
        below: &Device,
        size: u64,
    ) -> Result<MappedMemory<Self>, String> {
        let (buffer, start) = allocated::<Self>(below, size)?;
        // SAFETY: only its owner destroys the buffer.
        let raw = unsafe { buffer.raw_handle() };
        let memory = VulkanMemory { device: device.clone(), buffer: Some(buffer) };
        let owner: Arc<dyn MappedOwner> = Arc::new(memory);
        let kept = Arc::clone(&owner);
        // SAFETY: the buffer lives until the callback has dropped its owner.
        let buffer =
            unsafe { Buffer::from_raw_externally_owned(raw, Box::new(move || drop(kept))) };
        Ok(MappedMemory { buffer, start, owner, member: None })
    }
}
