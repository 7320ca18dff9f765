//! Buffers that are pages of the host: what a file holds is read by the device where it is mapped.

#[cfg(target_os = "macos")]
mod metal;
mod pages;
#[cfg(not(target_os = "macos"))]
mod vulkan;

use std::sync::Arc;

use wgpu::{BufferDescriptor, BufferUsages};

use super::resident::{DeviceKeeper, NativeMember};
use super::shared::SharedBuffer;

#[cfg(target_os = "macos")]
use metal as api;
pub(crate) use pages::MappedPages;
#[cfg(not(target_os = "macos"))]
use vulkan as api;

/// Returns whether a device that shares memory with the CPU can import pages.
pub(crate) fn takes_pages(device: &wgpu::Device) -> bool {
    api::takes(device)
}

/// Pages as a buffer of a device.
struct ImportedBuffer {
    buffer: wgpu::Buffer,
    /// The buffer as a residency set knows it, where there are such sets.
    member: Option<NativeMember>,
}

/// A buffer that is these pages, for kernels that only read it, and that a keeper keeps on the device; none where the
/// driver refuses.
pub(crate) fn import(
    device: &wgpu::Device,
    pages: &MappedPages,
    keeper: Option<&Arc<DeviceKeeper>>,
) -> Option<SharedBuffer> {
    let ImportedBuffer { buffer, member } = api::import(device, pages)?;
    let resident = keeper.zip(member).map(|(keeper, member)| Arc::new(keeper.join(member)));
    Some(SharedBuffer { buffer, host: None, resident })
}

/// Returns the descriptor of such a buffer for wgpu.
fn described(pages: &MappedPages) -> BufferDescriptor<'static> {
    BufferDescriptor {
        label: Some("pages of a file"),
        size: pages.bytes,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    }
}
