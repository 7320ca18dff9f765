//! Host memory that the device copies from.

use std::sync::Arc;

use wgpu::BufferUsages;

use crate::device::{DeviceCounters, GpuDevice, QueuedSubmission};
use crate::error::GpuError;
use crate::memory::DeviceBlock;

/// A buffer that the host fills and the device copies, in turn.
pub(super) struct StagingBuffer {
    buffer: wgpu::Buffer,
    /// The latest copy from it.
    copied: Option<QueuedSubmission>,
}

impl StagingBuffer {
    pub(super) fn new(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        let buffer = device.checked(|| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("weights on their way"),
                size: bytes,
                usage: BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            })
        })?;
        Ok(Self { buffer, copied: None })
    }

    /// Hands a copy of these blocks to a slot over, each to its place.
    ///
    /// # Errors
    /// Fails when a block cannot be read, or the device is lost.
    pub(super) fn copy(
        &mut self,
        device: &GpuDevice,
        blocks: &[(Arc<DeviceBlock>, u64)],
        slot: &DeviceBlock,
    ) -> Result<(), GpuError> {
        if let Some(copied) = self.copied.take() {
            // Then it is mapped again.
            device.wait(&copied)?;
        }
        let mut end = 0;
        let refused = |error: wgpu::MapRangeError| GpuError::Refusal(error.to_string());
        let mut view = self.buffer.slice(..).get_mapped_range_mut().map_err(refused)?;
        for (block, start) in blocks {
            let start = usize::try_from(*start).unwrap_or(usize::MAX);
            block.shelved(|at, bytes| {
                let from = start + at;
                view.slice(from..from + bytes.len()).copy_from_slice(bytes);
            })?;
            end = start as u64 + block.bytes();
        }
        drop(view);
        self.buffer.unmap();
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let bytes = end.next_multiple_of(4).min(self.buffer.size());
        encoder.copy_buffer_to_buffer(&self.buffer, 0, &slot.buffer, 0, bytes);
        self.copied = Some(device.submit_copies(encoder));
        self.buffer.map_async(wgpu::MapMode::Write, .., |_| ());
        DeviceCounters::add(&device.counters.upload_bytes, bytes);
        DeviceCounters::add(&device.counters.copies, 1);
        Ok(())
    }
}
