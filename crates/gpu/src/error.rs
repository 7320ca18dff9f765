//! Errors of the GPU provider.

use galatea_runtime::RuntimeError;

/// An error of the GPU provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no such device.
    #[error("no GPU {index}: {found}")]
    NoDevice {
        /// The number asked for.
        index: usize,
        /// Devices that were found.
        found: String,
    },
    /// The system refused the device.
    #[error("GPU '{name}' cannot be opened: {reason}")]
    Refused {
        /// The device's name.
        name: String,
        /// The system's words.
        reason: String,
    },
    /// A shader was not accepted.
    #[error("kernel '{kernel}' does not compile: {reason}")]
    Shader {
        /// The kernel's name.
        kernel: String,
        /// The compiler's words.
        reason: String,
    },
    /// The device has no memory left.
    #[error("no GPU memory for {bytes} bytes: {reason}")]
    Memory {
        /// Number of bytes requested.
        bytes: u64,
        /// Reason of the failure.
        reason: String,
    },
    /// Weights that lie outside the device cannot be written or read.
    #[error("weights outside the GPU: {0}")]
    Shelf(String),
    /// The device went away; nothing runs on it any more.
    #[error("the GPU was lost: {0}")]
    Lost(String),
    /// Work was not done in the time that it may take.
    #[error("the GPU did not finish within {limit:?}")]
    Hung {
        /// The limit.
        limit: std::time::Duration,
    },
    /// The device refused work.
    #[error("the GPU refused work: {0}")]
    Refusal(String),
}

impl From<GpuError> for RuntimeError {
    fn from(error: GpuError) -> Self {
        let hung = matches!(error, GpuError::Hung { .. });
        if hung || matches!(error, GpuError::Lost(_)) {
            let provider = crate::NAME.to_owned();
            let message = error.to_string();
            return RuntimeError::Lost { provider, message, hung };
        }
        RuntimeError::provider(crate::NAME, error)
    }
}
