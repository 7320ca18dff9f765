//! Captures by Metal's capture manager.

use std::path::Path;

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSString, NSURL};
use objc2_metal::{MTLCaptureDescriptor, MTLCaptureDestination, MTLCaptureManager, MTLDevice};
use wgpu::hal::api::Metal;

use super::CaptureTool;
use crate::exception::catching;

/// Metal captures a process to files only if its environment has this when it starts.
const ENABLED: &str = "METAL_CAPTURE_ENABLED=1";

/// Capture of a device.
struct MetalCapture {
    manager: Retained<MTLCaptureManager>,
    device: Retained<ProtocolObject<dyn MTLDevice>>,
}

// SAFETY: devices of Metal and its one capture manager may be used on any thread; calls to the latter follow each other
// behind a lock.
unsafe impl Send for MetalCapture {}

impl CaptureTool for MetalCapture {
    fn start(&mut self, file: &Path) -> Result<(), String> {
        let path = file.to_str().ok_or("the name of the capture is no text")?.to_owned();
        let start = || {
            let descriptor = MTLCaptureDescriptor::new();
            // SAFETY: a device is one of the objects that may be captured.
            unsafe { descriptor.setCaptureObject(Some((*self.device).as_ref())) };
            descriptor.setDestination(MTLCaptureDestination::GPUTraceDocument);
            let url = NSURL::fileURLWithPath(&NSString::from_str(&path));
            descriptor.setOutputURL(Some(&url));
            let started = self.manager.startCaptureWithDescriptor_error(&descriptor);
            started.map_err(|error| {
                format!("Metal captures nothing: {}", error.localizedDescription())
            })
        };
        catching(start)?
    }

    fn stop(&mut self) {
        if let Err(error) = catching(|| self.manager.stopCapture()) {
            tracing::warn!(error, "a capture does not end");
        }
    }
}

/// The tool of a device.
///
/// # Errors
/// Fails where Metal writes no captures to files, and says what it needs.
pub(super) fn tool(device: &wgpu::Device) -> Result<Box<dyn CaptureTool>, String> {
    // SAFETY: the handle is used for the calls below and not kept.
    let below = unsafe { device.as_hal::<Metal>() }.ok_or("the device is none of Metal's")?;
    let device = below.raw_device().clone();
    // SAFETY: the manager is there from macOS 10.13 on.
    let manager = catching(|| unsafe { MTLCaptureManager::sharedCaptureManager() })?;
    let writes = || manager.supportsDestination(MTLCaptureDestination::GPUTraceDocument);
    if !catching(writes)? {
        return Err(format!(
            "Metal captures nothing to files in this process, expected {ENABLED} in its environment at its start"
        ));
    }
    Ok(Box::new(MetalCapture { manager, device }))
}
