//! Memory that CPU and device address: made below wgpu, which lets the CPU at a buffer only between mapping and
//! unmapping it.
//!
//! wgpu destroys the buffers of a device that is gone, while outputs that lie in them may still be read. So such
//! memory belongs to whoever has its address, and wgpu's buffer is one owner among others.

#[cfg(target_os = "macos")]
mod metal;
mod noop;
#[cfg(not(target_os = "macos"))]
mod vulkan;

use std::ptr::NonNull;
use std::sync::Arc;

use wgpu::hal::{self, Device as _};
use wgpu::{BufferUsages, BufferUses};

use super::resident::{DeviceKeeper, NativeMember};
use super::shared::{HostBytes, MappedOwner, SharedBuffer};
use crate::error::GpuError;

/// The interface of wgpu below which buffers are made here.
#[cfg(target_os = "macos")]
type NativeApi = hal::api::Metal;
#[cfg(not(target_os = "macos"))]
type NativeApi = hal::api::Vulkan;

/// A buffer that wgpu takes as its own, and the memory behind it.
struct MappedMemory<A: hal::Api> {
    /// Buffer for wgpu, which is one owner of the memory.
    buffer: A::Buffer,
    start: NonNull<u8>,
    owner: Arc<dyn MappedOwner>,
    /// The buffer as a residency set knows it, where there are such sets.
    member: Option<NativeMember>,
}

/// An interface of wgpu whose buffers can share their memory with others.
trait MappedApi: hal::Api {
    /// Makes memory of so many bytes, which need not be zero.
    ///
    /// # Errors
    /// Fails when there is no memory, or the device does not see what the CPU writes.
    fn make(
        device: &wgpu::Device,
        below: &Self::Device,
        size: u64,
    ) -> Result<MappedMemory<Self>, String>;
}

/// Makes a buffer of zeros that the CPU addresses, and that a keeper keeps on the device.
///
/// # Errors
/// Fails when there is no memory, or the device does not see what the CPU writes.
pub(crate) fn make(
    device: &wgpu::Device,
    size: u64,
    usage: BufferUsages,
    keeper: Option<&Arc<DeviceKeeper>>,
) -> Result<SharedBuffer, GpuError> {
    let made = match make_below::<NativeApi>(device, size, usage, keeper) {
        Some(made) => made,
        // A device that is not there has memory all the same.
        None => make_below::<hal::api::Noop>(device, size, usage, keeper)
            .unwrap_or_else(|| Err("the device has another interface".into())),
    };
    made.map_err(|reason| GpuError::Memory { bytes: size, reason })
}

/// Works like [`make`], on a device with this interface; returns `None` on others.
fn make_below<A: MappedApi>(
    device: &wgpu::Device,
    size: u64,
    usage: BufferUsages,
    keeper: Option<&Arc<DeviceKeeper>>,
) -> Option<Result<SharedBuffer, String>> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<A>() }?;
    let Ok(len) = usize::try_from(size) else { return Some(Err("beyond this machine".into())) };
    let made = A::make(device, &below, size);
    drop(below);
    Some(made.map(|MappedMemory { buffer, start, owner, member }| {
        // SAFETY: the memory has `len` bytes, which nobody else uses.
        unsafe { start.as_ptr().write_bytes(0, len) };
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        };
        // SAFETY: the buffer is this device's, has the size and the uses that are described, and is zero.
        let buffer = unsafe { device.create_buffer_from_hal::<A>(buffer, &descriptor) };
        // SAFETY: the memory has `len` initialised bytes from there on for as long as its owner lives.
        let host = Some(unsafe { HostBytes::new(start, len, owner) });
        let resident = keeper.zip(member).map(|(keeper, member)| Arc::new(keeper.join(member)));
        SharedBuffer { buffer, host, resident }
    }))
}

/// A buffer of wgpu's own below its interface, and where the CPU finds its bytes.
///
/// # Errors
/// Fails when there is no memory, or it is not coherent.
fn allocated<A: hal::Api>(
    below: &A::Device,
    size: u64,
) -> Result<(A::Buffer, NonNull<u8>), String> {
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
    let raw = raw.map_err(|error| error.to_string())?;
    // SAFETY: the buffer was made just now, to be mapped, and is so long.
    match unsafe { below.map_buffer(&raw, 0..size) } {
        Ok(mapping) if mapping.is_coherent => Ok((raw, mapping.ptr)),
        other => {
            // SAFETY: nothing was submitted that uses the buffer.
            unsafe { below.destroy_buffer(raw) };
            Err(other.err().map_or("it is not coherent".to_owned(), |error| error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::POOLED_USAGES;
    use crate::device::GpuDevice;

    /// Bytes that a driver gives memory of their own, which it takes back at once.
    const LARGE: u64 = 96 << 20;

    #[test]
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn bytes_that_somebody_holds_outlive_their_destroyed_device() {
        if crate::devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap();
        let made = make(&device.device, LARGE, POOLED_USAGES, None).unwrap();
        let SharedBuffer { buffer, host, .. } = made;
        let host = host.unwrap();
        let last = usize::try_from(LARGE).unwrap() - 4;
        // The device knows a buffer by its use.
        device.queue.write_buffer(&buffer, 0, b"once");
        device.queue.write_buffer(&buffer, LARGE - 4, b"over");
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let shown = wgpu::BufferTransition { buffer: &buffer, state: BufferUses::MAP_READ };
        encoder.transition_resources(std::iter::once(shown), std::iter::empty());
        let work = device.submit(encoder.finish());
        device.wait(&work).unwrap();
        device.give_up("a test");
        drop(device.device.poll(wgpu::PollType::wait_indefinitely()));
        drop((buffer, device));
        // SAFETY: nothing runs on the device any more.
        let first = unsafe { host.bytes(0, 4) };
        // SAFETY: as above.
        let end = unsafe { host.bytes(last, 4) };
        assert_eq!((first, end), (&b"once"[..], &b"over"[..]));
    }
}
