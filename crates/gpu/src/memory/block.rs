//! Blocks of device memory.

use std::sync::Arc;

use wgpu::BufferUsages;

use crate::device::{Counters, Device};
use crate::error::GpuError;

/// Bytes of one upload at a time: what waits for the device lies in memory twice.
const PIECE: usize = 32 << 20;

/// What any block can be used for.
const USAGES: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_DST).union(BufferUsages::COPY_SRC);

/// Memory on a device.
#[derive(Debug)]
pub struct Block {
    pub(crate) buffer: wgpu::Buffer,
    bytes: u64,
}

/// Lengths of blocks are multiples of this.
pub(crate) const STEP: u64 = 256;

impl Block {
    /// Memory of at least so many bytes, which are zero.
    ///
    /// # Errors
    /// When the device has none left or no buffer can be that large.
    pub fn new(device: &Device, bytes: u64) -> Result<Self, GpuError> {
        Self::of_usage(device, bytes, USAGES)
    }

    /// Parameters of dispatches.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub(crate) fn params(device: &Device, bytes: &[u8]) -> Result<Self, GpuError> {
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        let block = Self::of_usage(device, u64::try_from(bytes.len()).unwrap_or(u64::MAX), usage)?;
        block.write(device, 0, bytes);
        Ok(block)
    }

    fn of_usage(device: &Device, bytes: u64, usage: BufferUsages) -> Result<Self, GpuError> {
        let size = bytes.max(1).next_multiple_of(STEP);
        let limit = device.capabilities().buffer_bytes;
        if size > limit {
            let reason = format!("a buffer of this device has at most {limit}");
            return Err(GpuError::Memory { bytes, reason });
        }
        let descriptor =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer = device.checked(|| device.device.create_buffer(&descriptor));
        match buffer {
            Ok(buffer) => Ok(Self { buffer, bytes: size }),
            Err(GpuError::Memory { reason, .. }) => Err(GpuError::Memory { bytes, reason }),
            Err(error) => Err(error),
        }
    }

    /// Memory that holds these bytes.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub fn with(device: &Device, bytes: &[u8]) -> Result<Arc<Self>, GpuError> {
        let block = Self::new(device, u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        block.write(device, 0, bytes);
        Ok(Arc::new(block))
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes bytes from `offset` on, a multiple of 4, before whatever is submitted next. The bytes behind
    /// them up to a multiple of 4 become zero.
    pub(crate) fn write(&self, device: &Device, offset: u64, bytes: &[u8]) {
        let (mut at, whole) = (offset, bytes.len() / 4 * 4);
        for piece in bytes[..whole].chunks(PIECE) {
            device.queue.write_buffer(&self.buffer, at, piece);
            at += piece.len() as u64;
            if piece.len() == PIECE {
                // Otherwise the whole upload waits in memory for the first submit.
                device.queue.submit([]);
            }
        }
        if whole < bytes.len() {
            let mut last = [0_u8; 4];
            last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            device.queue.write_buffer(&self.buffer, at, &last);
        }
        Counters::add(&device.counters.upload_bytes, bytes.len() as u64);
        Counters::add(&device.counters.copies, 1);
    }

    /// Reads bytes back and waits for them.
    ///
    /// # Errors
    /// When the device is lost.
    pub(crate) fn read(&self, device: &Device, out: &mut [u8]) -> Result<(), GpuError> {
        for (piece, out) in out.chunks_mut(PIECE).enumerate() {
            let size = (out.len() as u64).next_multiple_of(4);
            let staging = device.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let mut encoder = device.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(&self.buffer, (piece * PIECE) as u64, &staging, 0, size);
            let submission = device.submit(encoder.finish());
            staging.map_async(wgpu::MapMode::Read, .., |_| ());
            device.wait(submission)?;
            let view = staging.slice(..).get_mapped_range();
            let view = view.map_err(|error| GpuError::Refusal(error.to_string()))?;
            out.copy_from_slice(&view[..out.len()]);
            Counters::add(&device.counters.download_bytes, size);
            Counters::add(&device.counters.copies, 1);
        }
        Ok(())
    }
}
