//! Pages of the host as buffers of Metal.

use std::ffi::c_void;
use std::ptr::NonNull;

use block2::RcBlock;
use galatea_tensor::Tensor;
use objc2_metal::{MTLDevice, MTLResourceOptions};
use wgpu::hal::api::Metal;

use super::ImportedBuffer;
use super::pages::MappedPages;
use crate::buffers::resident::NativeMember;
use crate::exception::catching;

/// Returns whether a device can import pages: with Metal it always can.
pub(super) fn takes(_device: &wgpu::Device) -> bool {
    true
}

/// A buffer that is those pages, which the kernels only read; none where Metal refuses.
pub(super) fn import(device: &wgpu::Device, pages: &MappedPages) -> Option<ImportedBuffer> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<Metal>() }?;
    let length = usize::try_from(pages.bytes).ok()?;
    // Metal drops the block, and with it the tensor, when the buffer is gone.
    let owner: Tensor = pages.owner.clone();
    let keep = RcBlock::new(move |_start: NonNull<c_void>, _bytes: usize| {
        debug_assert!(owner.is_mapped(), "as when it was imported");
    });
    let options = MTLResourceOptions::StorageModeShared;
    let start = pages.start.cast();
    // SAFETY: the pages are whole ones of a mapping that the block keeps, and the block may be dropped on any
    // thread, as tensors may.
    let make = || unsafe {
        below.raw_device().newBufferWithBytesNoCopy_length_options_deallocator(
            start,
            length,
            options,
            Some(&keep),
        )
    };
    let raw = catching(make).ok().flatten()?;
    let member = Some(NativeMember(raw.clone()));
    // SAFETY: the buffer was made just now and is so long.
    let raw = unsafe { wgpu::hal::metal::Device::buffer_from_raw(raw, pages.bytes) };
    drop(below);
    // SAFETY: the buffer is this device's, has the size and the uses that are described, and is initialised.
    let buffer = unsafe { device.create_buffer_from_hal::<Metal>(raw, &super::described(pages)) };
    Some(ImportedBuffer { buffer, member })
}
