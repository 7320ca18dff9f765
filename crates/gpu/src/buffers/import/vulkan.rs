//! Pages of the host as buffers of Vulkan.

use ash::ext::external_memory_host;
use ash::vk;
use galatea_tensor::Tensor;
use wgpu::hal::api::Vulkan;
use wgpu::hal::vulkan::{Buffer, Device};

use super::ImportedBuffer;
use super::pages::{MappedPages, page_bytes};

/// Handle type of pages in Vulkan.
const HOST: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

/// Returns whether a device can import pages: it was opened with the extension, and pages are large enough for
/// it.
pub(super) fn takes(device: &wgpu::Device) -> bool {
    // SAFETY: the handle is used for the calls below and not kept.
    let Some(below) = (unsafe { device.as_hal::<Vulkan>() }) else { return false };
    if !below.enabled_device_extensions().contains(&external_memory_host::NAME) {
        return false;
    }
    let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
    let instance = below.shared_instance().raw_instance();
    // SAFETY: both handles live as long as the device, which the caller holds.
    unsafe { instance.get_physical_device_properties2(below.raw_physical_device(), &mut all) };
    let least = host.min_imported_host_pointer_alignment;
    least > 0 && (page_bytes() as u64).is_multiple_of(least)
}

/// A buffer that is those pages, which the kernels only read; none where the driver refuses.
pub(super) fn import(device: &wgpu::Device, pages: &MappedPages) -> Option<ImportedBuffer> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<Vulkan>() }?;
    let raw = buffer(&below, pages)?;
    drop(below);
    // SAFETY: the buffer is this device's, has the size and the uses that are described, and is initialised.
    let buffer = unsafe { device.create_buffer_from_hal::<Vulkan>(raw, &super::described(pages)) };
    Some(ImportedBuffer { buffer, member: None })
}

fn buffer(below: &Device, pages: &MappedPages) -> Option<Buffer> {
    let raw = below.raw_device().clone();
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HOST);
    let uses = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let info =
        vk::BufferCreateInfo::default().size(pages.bytes).usage(uses).push_next(&mut external);
    // SAFETY: the size is not zero, and the extension is enabled.
    let buffer = unsafe { raw.create_buffer(&info, None) }.ok()?;
    let Some(memory) = memory(below, pages, buffer) else {
        // SAFETY: nobody has used it.
        unsafe { raw.destroy_buffer(buffer, None) };
        return None;
    };
    let owner: Tensor = pages.owner.clone();
    let end = Box::new(move || {
        // SAFETY: wgpu is done with the buffer when it calls this, and before its device goes.
        unsafe { raw.destroy_buffer(buffer, None) };
        // SAFETY: the only buffer on it is gone.
        unsafe { raw.free_memory(memory, None) };
        drop(owner);
    });
    // SAFETY: the buffer lives until the callback is called.
    Some(unsafe { Buffer::from_raw_externally_owned(buffer, end) })
}

/// The pages as memory of a buffer.
fn memory(below: &Device, pages: &MappedPages, buffer: vk::Buffer) -> Option<vk::DeviceMemory> {
    let raw = below.raw_device();
    let start = pages.start.as_ptr().cast();
    let import = external_memory_host::Device::new(below.shared_instance().raw_instance(), raw);
    let mut found = vk::MemoryHostPointerPropertiesEXT::default();
    let ask = import.fp().get_memory_host_pointer_properties_ext;
    // SAFETY: the pages are mapped, and the extension is enabled.
    unsafe { ask(import.device(), HOST, start, &mut found) }.result().ok()?;
    // SAFETY: the buffer is the device's.
    let wanted = unsafe { raw.get_buffer_memory_requirements(buffer) };
    let kinds = found.memory_type_bits & wanted.memory_type_bits;
    if kinds == 0 || wanted.size > pages.bytes {
        return None;
    }
    let mut pointer = vk::ImportMemoryHostPointerInfoEXT::default();
    pointer = pointer.handle_type(HOST).host_pointer(start);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(pages.bytes)
        .memory_type_index(kinds.trailing_zeros())
        .push_next(&mut pointer);
    // SAFETY: the pages are whole ones, stay mapped as long as the memory lives, and are of that type.
    let memory = unsafe { raw.allocate_memory(&info, None) }.ok()?;
    // SAFETY: both are new, and the memory is large enough.
    if unsafe { raw.bind_buffer_memory(buffer, memory, 0) }.is_err() {
        // SAFETY: nothing lies on it.
        unsafe { raw.free_memory(memory, None) };
        return None;
    }
    Some(memory)
}
