//! Buffers that are pages of the host: what a file holds is read by the device where it is mapped.

#[cfg(target_os = "macos")]
mod metal;
mod pages;
#[cfg(not(target_os = "macos"))]
mod vulkan;

use wgpu::{BufferDescriptor, BufferUsages};

#[cfg(target_os = "macos")]
use metal as api;
pub(crate) use pages::MappedPages;
#[cfg(not(target_os = "macos"))]
use vulkan as api;

/// Returns whether a device that shares memory with the CPU can import pages.
pub(crate) fn takes_pages(device: &wgpu::Device) -> bool {
    api::takes(device)
}

/// A buffer that is these pages, for kernels that only read it; none where the driver refuses.
pub(crate) fn import(device: &wgpu::Device, pages: &MappedPages) -> Option<wgpu::Buffer> {
    api::import(device, pages)
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
