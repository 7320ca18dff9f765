//! Captures of a device's runs.

use super::GpuDevice;
use crate::capture::{CaptureProgress, CaptureRequest, native_tool};
use crate::error::GpuError;

impl GpuDevice {
    /// Captures the runs that follow for Xcode, so many of them.
    ///
    /// # Errors
    /// Fails when the request makes no sense, a capture goes on already, or the system does not capture.
    pub fn start_capture(&self, request: &CaptureRequest) -> Result<(), GpuError> {
        let tool = || native_tool(&self.device, &self.capabilities.name);
        self.capture.start(request, tool).map_err(GpuError::Refusal)
    }

    /// Ends the capture that goes on, and returns how many runs it still waited for; `None` where there is none.
    pub fn stop_capture(&self) -> Option<CaptureProgress> {
        self.capture.stop()
    }

    /// Returns the capture that goes on.
    #[must_use]
    pub fn capture_progress(&self) -> Option<CaptureProgress> {
        self.capture.progress()
    }
}

#[cfg(all(test, not(target_os = "macos")))]
#[allow(clippy::print_stderr, reason = "a test says that it does nothing")]
mod tests {
    use super::*;

    #[test]
    fn off_macos_a_device_says_what_to_use_instead() {
        let Ok(device) = GpuDevice::open(0) else {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let request = CaptureRequest { file: folder.path().join("a.gputrace"), runs: 1 };
        let error = device.start_capture(&request).unwrap_err().to_string();
        assert!(error.contains("made by Metal") && error.contains("profile"), "{error}");
        assert!(device.capture_progress().is_none() && device.stop_capture().is_none());
    }
}
