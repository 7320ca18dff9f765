//! Asking a driver for a device.

use wgpu::{Adapter, DeviceDescriptor, RequestDeviceError};

/// A device with the queue that it was opened with.
pub(super) struct OpenedDevice {
    /// The device.
    pub(super) device: wgpu::Device,
    /// Its queue.
    pub(super) queue: wgpu::Queue,
}

/// Opens a device; one that shares memory with the processor so that it takes pages of the host, where it can.
pub(super) fn request(
    adapter: &Adapter,
    descriptor: &DeviceDescriptor<'_>,
    unified: bool,
) -> Result<OpenedDevice, RequestDeviceError> {
    let opened = if unified { with_pages(adapter, descriptor) } else { None };
    opened.map_or_else(|| plain(adapter, descriptor), Ok)
}

/// Opens a device without extensions.
pub(super) fn plain(
    adapter: &Adapter,
    descriptor: &DeviceDescriptor<'_>,
) -> Result<OpenedDevice, RequestDeviceError> {
    let (device, queue) = pollster::block_on(adapter.request_device(descriptor))?;
    Ok(OpenedDevice { device, queue })
}

/// Metal takes pages in any case.
#[cfg(target_os = "macos")]
fn with_pages(_adapter: &Adapter, _descriptor: &DeviceDescriptor<'_>) -> Option<OpenedDevice> {
    None
}

/// On Vulkan that is an extension, of which wgpu does not know.
#[cfg(not(target_os = "macos"))]
fn with_pages(adapter: &Adapter, descriptor: &DeviceDescriptor<'_>) -> Option<OpenedDevice> {
    use ash::ext::external_memory_host::NAME;
    use wgpu::hal::api::Vulkan;

    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { adapter.as_hal::<Vulkan>() }?;
    if !below.physical_device_capabilities().supports_extension(NAME) {
        return None;
    }
    let DeviceDescriptor { required_features, required_limits, memory_hints, .. } = descriptor;
    // SAFETY: the device has the extension, and features and limits are its own.
    let opened = unsafe {
        below.open_with_callback(
            *required_features,
            required_limits,
            memory_hints,
            Some(Box::new(|wanted| wanted.extensions.push(NAME))),
        )
    };
    let opened = opened.ok()?;
    drop(below);
    // SAFETY: the device was opened on this adapter with what the description says.
    let made = unsafe { adapter.create_device_from_hal::<Vulkan>(opened, descriptor) };
    let (device, queue) = made.ok()?;
    Some(OpenedDevice { device, queue })
}
