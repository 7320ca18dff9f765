//! The answer of a binding that this machine does not have.

/// Error for a system interface that is not available: not macOS, or a macOS without what the interface needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{door} is unavailable: {reason}")]
pub struct Unavailable {
    /// Name of the interface, as a reader of the documentation would look it up.
    pub door: &'static str,
    /// Reason why it is not available.
    pub reason: String,
}

impl Unavailable {
    pub(crate) fn new(door: &'static str, reason: impl Into<String>) -> Self {
        Self { door, reason: reason.into() }
    }

    /// The binding needs macOS and this is something else.
    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    pub(crate) fn off_macos(door: &'static str) -> Self {
        Self::new(door, format!("needs macOS, this is {}", std::env::consts::OS))
    }
}
