//! Memory that a device recommends to use.

/// Bytes that work at a time may hold without the system moving them; `None` where the device does not
/// say. On Metal the recommended working set, on Vulkan nine tenths of the device's own memory.
#[cfg(target_os = "macos")]
pub(super) fn recommended(device: &wgpu::Device) -> Option<u64> {
    use objc2_metal::MTLDevice;

    use crate::exception::catching;

    // SAFETY: the handle is only asked, and not kept.
    let metal = unsafe { device.as_hal::<wgpu::hal::api::Metal>() }?;
    catching(|| metal.raw_device().recommendedMaxWorkingSetSize()).ok()
}

/// See the same function for macOS.
#[cfg(not(target_os = "macos"))]
pub(super) fn recommended(device: &wgpu::Device) -> Option<u64> {
    // SAFETY: the handle is only asked, and not kept.
    let vulkan = unsafe { device.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = vulkan.shared_instance().raw_instance();
    // SAFETY: both handles live as long as the device, which the caller holds.
    let memory =
        unsafe { instance.get_physical_device_memory_properties(vulkan.raw_physical_device()) };
    // The first flag of a heap says that it is the device's own.
    let heaps = memory.memory_heaps_as_slice().iter();
    let own = heaps.filter(|heap| heap.flags.as_raw() & 1 == 1).map(|heap| heap.size).max();
    own.map(|bytes| bytes / 10 * 9)
}
