//! Blocks of device memory.

use std::sync::Arc;

use wgpu::BufferUsages;

use super::Pool;
use super::pool::{Place, Taken};
use crate::device::{Counters, Device};
use crate::error::GpuError;

/// Bytes of one upload at a time: what waits for the device lies in memory twice.
const PIECE: usize = 32 << 20;

/// What any block can be used for.
const USAGES: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_DST).union(BufferUsages::COPY_SRC);

/// Memory on a device, which goes back to its pool when nobody has it any more.
#[derive(Debug)]
pub struct Block {
    pub(crate) buffer: wgpu::Buffer,
    place: Place,
    pool: Arc<Pool<wgpu::Buffer>>,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.give_back(self.buffer.clone(), self.place);
    }
}

/// Lengths of blocks are multiples of this.
pub(crate) const STEP: u64 = 256;

impl Block {
    /// Memory of at least so many bytes, which may hold anything: for what is written before it is read.
    ///
    /// # Errors
    /// When the device has none left or no buffer can be that large.
    pub fn new(device: &Device, bytes: u64) -> Result<Self, GpuError> {
        let bytes = Self::size(device, bytes)?;
        let taken = device.pool.take(bytes, |bytes| Self::buffer(device, bytes, USAGES))?;
        Ok(Self::taken(device, taken))
    }

    /// Memory of so many bytes, which are zero, for long: no more than they take is held.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub fn lasting(device: &Device, bytes: u64) -> Result<Self, GpuError> {
        Self::exact(device, bytes, USAGES)
    }

    fn taken(device: &Device, taken: Taken<wgpu::Buffer>) -> Self {
        let Taken { buffer, place } = taken;
        Self { buffer, place, pool: Arc::clone(&device.pool) }
    }

    fn exact(device: &Device, bytes: u64, usage: BufferUsages) -> Result<Self, GpuError> {
        let bytes = Self::size(device, bytes)?;
        let taken = device.pool.take_exact(bytes, |bytes| Self::buffer(device, bytes, usage))?;
        Ok(Self::taken(device, taken))
    }

    /// Parameters of dispatches.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub(crate) fn params(device: &Device, bytes: &[u8]) -> Result<Self, GpuError> {
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        let block = Self::exact(device, bytes.len() as u64, usage)?;
        block.write(device, 0, bytes);
        Ok(block)
    }

    /// The length of a buffer for so many bytes.
    fn size(device: &Device, bytes: u64) -> Result<u64, GpuError> {
        let size = bytes.max(1).checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
        let limit = device.capabilities().buffer_bytes;
        if size > limit {
            let reason = format!("a buffer of this device has at most {limit}");
            return Err(GpuError::Memory { bytes, reason });
        }
        Ok(size)
    }

    fn buffer(device: &Device, size: u64, usage: BufferUsages) -> Result<wgpu::Buffer, GpuError> {
        let descriptor =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        device.checked(|| device.device.create_buffer(&descriptor)).map_err(|error| match error {
            GpuError::Memory { reason, .. } => GpuError::Memory { bytes: size, reason },
            error => error,
        })
    }

    /// Makes the buffers that the device's pool has from the start.
    pub(crate) fn fill(device: &Device) -> Result<(), GpuError> {
        device.pool.fill(|bytes| Self::buffer(device, bytes, USAGES))
    }

    /// Memory that holds these bytes.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub fn with(device: &Device, bytes: &[u8]) -> Result<Arc<Self>, GpuError> {
        let block = Self::lasting(device, bytes.len() as u64)?;
        block.write(device, 0, bytes);
        Ok(Arc::new(block))
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.place.bytes
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
