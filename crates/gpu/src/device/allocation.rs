//! Buffers that a device makes.

use std::sync::atomic::Ordering;

use wgpu::BufferUsages;

use super::GpuDevice;
use crate::buffers::{self, BufferReach, BufferRequest, POOLED_USAGES, SharedBuffer};
use crate::error::GpuError;

impl GpuDevice {
    /// Returns which of host and device address a buffer of so many bytes.
    pub(crate) fn reach(&self, bytes: u64) -> BufferReach {
        let most = self.unified_bytes.load(Ordering::Relaxed);
        if bytes <= most && most > 0 { BufferReach::Host } else { BufferReach::Device }
    }

    /// Makes a buffer with these usages.
    ///
    /// # Errors
    /// Fails when the device has no memory for it.
    pub(crate) fn make_buffer(
        &self,
        wanted: BufferRequest,
        usage: BufferUsages,
    ) -> Result<SharedBuffer, GpuError> {
        let size = wanted.bytes;
        let made = self.checked(|| match wanted.reach {
            BufferReach::Host => buffers::make(&self.device, size, usage, self.residents.as_ref()),
            BufferReach::Passing => buffers::make(&self.device, size, usage, None),
            BufferReach::Device => {
                let descriptor =
                    wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
                let buffer = self.device.create_buffer(&descriptor);
                Ok(SharedBuffer { buffer, host: None, resident: None })
            }
        });
        match made {
            Ok(made) => made,
            Err(GpuError::Memory { reason, .. }) => Err(GpuError::Memory { bytes: size, reason }),
            Err(error) => Err(error),
        }
    }

    /// Makes the buffers that the pool has from the start.
    ///
    /// # Errors
    /// Fails when the device has no memory for them.
    pub(super) fn fill_pool(&self) -> Result<(), GpuError> {
        let reach = |bytes| self.reach(bytes);
        self.pool.fill(reach, |wanted| self.make_buffer(wanted, POOLED_USAGES))
    }
}
