//! Captures of a GPU's runs, in files that Xcode's debugger of GPUs opens.
//!
//! A capture begins at once and ends behind so many runs, or when it is stopped. While there is none, a run costs one
//! look at a flag.

#[cfg(target_os = "macos")]
mod metal;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most runs of a capture: each keeps all memory that it reads.
pub const MAX_CAPTURED_RUNS: u64 = 1000;

/// Ending of the files, which Xcode knows them by.
const EXTENSION: &str = "gputrace";

/// Capture that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// File to write, a folder to the system: it ends in `.gputrace` and is not there yet.
    pub file: PathBuf,
    /// Number of runs, from 1 to [`MAX_CAPTURED_RUNS`].
    pub runs: u64,
}

impl CaptureRequest {
    /// Looks at what the request says, before a GPU is asked.
    ///
    /// # Errors
    /// Names what was found and what is expected.
    pub fn check(&self) -> Result<(), String> {
        let file = self.file.display();
        if !(1..=MAX_CAPTURED_RUNS).contains(&self.runs) {
            let found = self.runs;
            return Err(format!("{found} runs found, expected from 1 to {MAX_CAPTURED_RUNS}"));
        }
        if self.file.extension().is_none_or(|found| found != EXTENSION) {
            return Err(format!(
                "capture '{file}' found, expected a name that ends in .{EXTENSION}"
            ));
        }
        if self.file.exists() {
            return Err(format!("capture '{file}' is there already, expected a new name"));
        }
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(format!("capture '{file}': there is no such folder"));
        }
        Ok(())
    }
}

/// Capture that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureProgress {
    /// Its file.
    pub file: PathBuf,
    /// Runs that it still waits for.
    pub left: u64,
}

/// Tool of the system that captures what a GPU is given.
pub(crate) trait CaptureTool: Send {
    /// Starts: whatever is handed over from now on goes to the file.
    ///
    /// # Errors
    /// Fails when the system refuses.
    fn start(&mut self, file: &Path) -> Result<(), String>;

    /// Ends the capture and writes the file.
    fn stop(&mut self);
}

struct CaptureUnderWay {
    tool: Box<dyn CaptureTool>,
    progress: CaptureProgress,
}

/// The capture of a device, if there is one.
#[derive(Default)]
pub(crate) struct RunCapture {
    on: AtomicBool,
    under_way: Mutex<Option<CaptureUnderWay>>,
}

impl fmt::Debug for RunCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunCapture").field(&self.progress()).finish()
    }
}

impl RunCapture {
    fn under_way(&self) -> MutexGuard<'_, Option<CaptureUnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn start(
        &self,
        request: &CaptureRequest,
        tool: impl FnOnce() -> Result<Box<dyn CaptureTool>, String>,
    ) -> Result<(), String> {
        request.check()?;
        let mut under_way = self.under_way();
        if let Some(other) = &*under_way {
            let file = other.progress.file.display();
            return Err(format!(
                "'{file}' is being captured; stop it before another one is started"
            ));
        }
        let mut tool = tool()?;
        tool.start(&request.file)?;
        let progress = CaptureProgress { file: request.file.clone(), left: request.runs };
        *under_way = Some(CaptureUnderWay { tool, progress });
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// A run is over, which ends a capture that waits for no other.
    pub(crate) fn ran(&self) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let mut under_way = self.under_way();
        let Some(capture) = &mut *under_way else { return };
        capture.progress.left = capture.progress.left.saturating_sub(1);
        if capture.progress.left == 0 {
            drop(under_way);
            self.stop();
        }
    }

    pub(crate) fn stop(&self) -> Option<CaptureProgress> {
        let mut capture = self.under_way().take()?;
        self.on.store(false, Ordering::Release);
        capture.tool.stop();
        tracing::info!(file = %capture.progress.file.display(), "a capture of the GPU is written");
        Some(capture.progress)
    }

    pub(crate) fn progress(&self) -> Option<CaptureProgress> {
        self.under_way().as_ref().map(|capture| capture.progress.clone())
    }
}

impl Drop for RunCapture {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

/// The tool of a device.
#[cfg(target_os = "macos")]
pub(crate) fn native_tool(
    device: &wgpu::Device,
    _name: &str,
) -> Result<Box<dyn CaptureTool>, String> {
    metal::tool(device)
}

/// The tool of a device: Metal has the only one.
#[cfg(not(target_os = "macos"))]
pub(crate) fn native_tool(
    _device: &wgpu::Device,
    name: &str,
) -> Result<Box<dyn CaptureTool>, String> {
    Err(format!(
        "'{name}' is not captured: captures for Xcode are made by Metal, on macOS. A profile shows its kernels too"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Tool that tells what is asked of it, and refuses where it is told so.
    struct ToldTool {
        told: Arc<Mutex<Vec<String>>>,
        refuses: bool,
    }

    impl CaptureTool for ToldTool {
        fn start(&mut self, file: &Path) -> Result<(), String> {
            let name = file.file_name().unwrap().to_string_lossy();
            self.told.lock().unwrap().push(format!("start {name}"));
            if self.refuses { Err("Metal refuses".to_owned()) } else { Ok(()) }
        }

        fn stop(&mut self) {
            self.told.lock().unwrap().push("stop".to_owned());
        }
    }

    /// A capture on a tool, and what the tool is asked.
    struct CaptureOnTool {
        capture: RunCapture,
        told: Arc<Mutex<Vec<String>>>,
        folder: tempfile::TempDir,
    }

    impl CaptureOnTool {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self { capture: RunCapture::default(), told: Arc::default(), folder }
        }

        fn start(&self, name: &str, runs: u64, refuses: bool) -> Result<(), String> {
            let request = CaptureRequest { file: self.folder.path().join(name), runs };
            let told = Arc::clone(&self.told);
            self.capture.start(&request, || Ok(Box::new(ToldTool { told, refuses })))
        }

        fn told(&self) -> Vec<String> {
            self.told.lock().unwrap().clone()
        }
    }

    #[test]
    fn a_capture_ends_behind_its_runs() {
        let captured = CaptureOnTool::new();
        captured.capture.ran();
        assert!(captured.capture.stop().is_none());
        captured.start("two.gputrace", 2, false).unwrap();
        captured.capture.ran();
        assert_eq!(captured.capture.progress().unwrap().left, 1);
        let other = captured.start("more.gputrace", 1, false).unwrap_err();
        assert!(other.contains("two.gputrace' is being captured"), "{other}");
        captured.capture.ran();
        assert_eq!(captured.told(), ["start two.gputrace", "stop"]);
        captured.capture.ran();
        captured.start("more.gputrace", 1, false).unwrap();
        assert_eq!(captured.capture.stop().unwrap().left, 1);
        assert_eq!(captured.told().len(), 4);
    }

    #[test]
    fn a_capture_ends_with_its_device() {
        let captured = CaptureOnTool::new();
        captured.start("left.gputrace", 5, false).unwrap();
        let told = Arc::clone(&captured.told);
        drop(captured);
        assert_eq!(told.lock().unwrap().last().unwrap(), "stop");
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_the_system_is_asked() {
        let captured = CaptureOnTool::new();
        std::fs::write(captured.folder.path().join("there.gputrace"), "").unwrap();
        for (name, runs, expected) in [
            ("a.gputrace", 0, "0 runs found, expected from 1 to 1000"),
            ("a.gputrace", 1001, "1001 runs found"),
            ("a.txt", 1, "expected a name that ends in .gputrace"),
            ("there.gputrace", 1, "is there already"),
            ("nowhere/a.gputrace", 1, "there is no such folder"),
        ] {
            let error = captured.start(name, runs, false).unwrap_err();
            assert!(error.contains(expected), "{name} {runs}: {error}");
        }
        assert!(captured.told().is_empty());
        // One that the system refuses is none.
        assert_eq!(captured.start("a.gputrace", 1, true).unwrap_err(), "Metal refuses");
        assert!(captured.capture.progress().is_none());
        captured.start("a.gputrace", 1, false).unwrap();
    }
}
