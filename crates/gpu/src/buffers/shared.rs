//! Buffers that the processor addresses too.

use std::ptr::NonNull;
use std::slice;

use wgpu::hal::{self, Device as _};
use wgpu::{BufferUsages, BufferUses};

use crate::error::GpuError;

/// A buffer of a device, with its address where the processor has one for it.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) host: Option<HostBytes>,
}

/// Address of a buffer's bytes for the CPU. It stays valid as long as the buffer lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the address of plain data; who reads and writes it when is for the callers of its methods to say.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// The address of the byte at `offset`.
    ///
    /// # Panics
    /// Panics when fewer than `len` bytes follow it.
    pub(crate) fn address(self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the buffer");
        self.start.as_ptr().wrapping_add(offset)
    }

    /// Writes bytes from `offset` on.
    ///
    /// # Safety
    /// The buffer lives, and neither work that was handed over nor anybody else uses these bytes meanwhile.
    pub(crate) unsafe fn put(self, offset: usize, bytes: &[u8]) {
        let to = self.address(offset, bytes.len());
        // SAFETY: the bytes are inside the buffer, and the caller has them alone.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// The bytes from `offset` on.
    ///
    /// # Safety
    /// The buffer must live while the slice is used, and nobody may write to these bytes.
    pub(crate) unsafe fn bytes<'a>(self, offset: usize, len: usize) -> &'a [u8] {
        let from = self.address(offset, len);
        // SAFETY: the bytes are inside the buffer, initialised when it was made, and not written meanwhile.
        unsafe { slice::from_raw_parts(from, len) }
    }

    /// The bytes from `offset` on, to be changed.
    ///
    /// # Safety
    /// The buffer must live while the slice is used, and nobody else may use these bytes.
    pub(crate) unsafe fn bytes_mut<'a>(self, offset: usize, len: usize) -> &'a mut [u8] {
        let from = self.address(offset, len);
        // SAFETY: as in `bytes`, and nobody else uses them.
        unsafe { slice::from_raw_parts_mut(from, len) }
    }
}

/// The interface of wgpu below which buffers are made here.
#[cfg(target_os = "macos")]
type NativeApi = hal::api::Metal;
#[cfg(not(target_os = "macos"))]
type NativeApi = hal::api::Vulkan;

/// Makes a buffer of zeros that the processor addresses for as long as it lives.
///
/// wgpu itself lets the processor at a buffer only between mapping and unmapping it; below it the address stays:
/// Metal's shared storage has one, and on Vulkan mapped memory stays mapped.
///
/// # Errors
/// Fails when there is no memory, or the device does not see what the CPU writes.
pub(crate) fn make(
    device: &wgpu::Device,
    size: u64,
    usage: BufferUsages,
) -> Result<SharedBuffer, GpuError> {
    match make_below::<NativeApi>(device, size, usage) {
        Some(made) => made,
        // A device that is not there has memory all the same.
        None => make_below::<hal::api::Noop>(device, size, usage).unwrap_or_else(|| {
            let reason = "the device has another interface".into();
            Err(GpuError::Memory { bytes: size, reason })
        }),
    }
}

/// Works like [`make`], on a device with this interface; returns `None` on others.
fn make_below<A: hal::Api>(
    device: &wgpu::Device,
    size: u64,
    usage: BufferUsages,
) -> Option<Result<SharedBuffer, GpuError>> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<A>() }?;
    let raw = mapped::<A>(&*below, size);
    drop(below);
    let of = |(raw, host): (A::Buffer, HostBytes)| {
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        };
        // SAFETY: the buffer is this device's, has the size and the uses that are described, and is zero.
        let buffer = unsafe { device.create_buffer_from_hal::<A>(raw, &descriptor) };
        SharedBuffer { buffer, host: Some(host) }
    };
    Some(raw.map(of))
}

/// A buffer of zeros, and where the processor finds it.
fn mapped<A: hal::Api>(below: &A::Device, size: u64) -> Result<(A::Buffer, HostBytes), GpuError> {
    let refused = |reason: String| GpuError::Memory { bytes: size, reason };
    let len = usize::try_from(size).map_err(|_| refused("beyond this machine".into()))?;
    let uses = BufferUses::MAP_READ
        | BufferUses::COPY_SRC
        | BufferUses::COPY_DST
        | BufferUses::UNIFORM
        | BufferUses::STORAGE_READ_ONLY
        | BufferUses::STORAGE_READ_WRITE;
    let descriptor = hal::BufferDescriptor {
        label: None,
        size,
        usage: uses,
        memory_flags: hal::MemoryFlags::PREFER_COHERENT,
    };
    // SAFETY: the size is not zero and within what the device allows, as callers have checked.
    let raw = unsafe { below.create_buffer(&descriptor) };
    let raw = raw.map_err(|error| refused(error.to_string()))?;
    // SAFETY: the buffer was made just now, to be mapped, and is so long.
    let mapped = unsafe { below.map_buffer(&raw, 0..size) };
    let start = match mapped {
        Ok(mapping) if mapping.is_coherent => mapping.ptr,
        other => {
            // SAFETY: nothing was submitted that uses the buffer.
            unsafe { below.destroy_buffer(raw) };
            let reason = other.err().map_or("it is not coherent".to_owned(), |e| e.to_string());
            return Err(refused(reason));
        }
    };
    // SAFETY: the mapping has `len` bytes, which nobody else uses.
    unsafe { start.as_ptr().write_bytes(0, len) };
    Ok((raw, HostBytes { start, len }))
}
