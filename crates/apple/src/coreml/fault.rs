//! Errors of Core ML.

use crate::Unavailable;
#[cfg(any(target_os = "macos", apple_doubles, test))]
use crate::exception::RaisedException;

/// At what a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoreMlFaultKind {
    /// There is no Core ML here.
    Unavailable,
    /// This macOS is older than what was asked for; the text names the version that has it.
    Version,
    /// An array, a name, a shape or a state does not fit; Core ML was not asked.
    Argument,
    /// A file or a folder could not be read, made or moved.
    File,
    /// There is no memory for an array, or no access to it.
    Memory,
    /// The package was not compiled.
    Compile,
    /// The compiled model was not loaded.
    Load,
    /// The prediction failed.
    Predict,
    /// There is no plan of the model.
    Plan,
}

/// A failure, with what Core ML says of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CoreMlFault {
    /// At what it failed.
    pub kind: CoreMlFaultKind,
    /// Value that was found, its place, and the expectation; or the domain, the code and the description of the
    /// system's error and of those under it.
    pub text: String,
}

impl CoreMlFault {
    pub(super) fn new(kind: CoreMlFaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(super) fn argument(text: impl Into<String>) -> Self {
        Self::new(CoreMlFaultKind::Argument, text)
    }

    pub(super) fn file(text: impl Into<String>) -> Self {
        Self::new(CoreMlFaultKind::File, text)
    }

    /// `what` needs a macOS of `version`.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn newer(what: &str, version: &str) -> Self {
        Self::new(CoreMlFaultKind::Version, format!("{what}: needs macOS {version} or later"))
    }

    /// The system refused `what`.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn refused(kind: CoreMlFaultKind, what: &str, error: &SystemError) -> Self {
        Self::new(kind, format!("{what}: {}", error.text()))
    }

    /// The system raised an exception at `what`.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn raised(kind: CoreMlFaultKind, what: &str, exception: &RaisedException) -> Self {
        Self::new(kind, format!("{what}: {exception}"))
    }
}

impl From<Unavailable> for CoreMlFault {
    fn from(closed: Unavailable) -> Self {
        Self::new(CoreMlFaultKind::Unavailable, closed.to_string())
    }
}

/// Contents of an `NSError`.
#[cfg(any(target_os = "macos", apple_doubles, test))]
#[derive(Debug, Default)]
pub(super) struct SystemError {
    pub(super) domain: String,
    pub(super) code: isize,
    pub(super) description: String,
    pub(super) reason: Option<String>,
    pub(super) underlying: Vec<SystemError>,
}

/// Errors under errors that are told.
#[cfg(any(target_os = "macos", apple_doubles, test))]
pub(super) const DEPTH: usize = 4;

#[cfg(any(target_os = "macos", apple_doubles, test))]
impl SystemError {
    fn text(&self) -> String {
        self.text_to(DEPTH)
    }

    fn text_to(&self, depth: usize) -> String {
        let mut text = format!("{} ({} {})", self.description, self.domain, self.code);
        // Core ML often repeats the description as the reason.
        if let Some(reason) = self.reason.as_ref().filter(|r| !self.description.contains(*r)) {
            text.push_str("; ");
            text.push_str(reason);
        }
        for error in self.underlying.iter().take(if depth == 0 { 0 } else { usize::MAX }) {
            text.push_str("; below it: ");
            text.push_str(&error.text_to(depth - 1));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: isize, description: &str, underlying: Vec<SystemError>) -> SystemError {
        SystemError {
            domain: "com.apple.CoreML".to_owned(),
            code,
            description: description.to_owned(),
            reason: None,
            underlying,
        }
    }

    #[test]
    fn a_system_error_is_told_with_domain_code_and_what_lies_under_it() {
        let under = error(3, "no such file", Vec::new());
        let mut top = error(0, "Could not load.", vec![under]);
        top.reason = Some("The folder is empty.".to_owned());
        let fault = CoreMlFault::refused(CoreMlFaultKind::Load, "a.mlmodelc", &top);
        assert_eq!(
            fault.to_string(),
            "a.mlmodelc: Could not load. (com.apple.CoreML 0); The folder is empty.; below it: no \
             such file (com.apple.CoreML 3)"
        );
    }

    #[test]
    fn a_reason_that_repeats_the_description_is_told_once() {
        let mut top = error(1, "Could not load.", Vec::new());
        top.reason = Some("Could not load.".to_owned());
        assert_eq!(top.text(), "Could not load. (com.apple.CoreML 1)");
    }

    #[test]
    fn errors_are_followed_to_a_depth() {
        let deep = (0..40).fold(error(0, "leaf", Vec::new()), |e, n| error(n, "node", vec![e]));
        assert_eq!(deep.text().matches("below it").count(), DEPTH);
    }

    #[test]
    fn an_exception_is_a_fault_of_the_call_that_raised_it() {
        let exception = RaisedException {
            name: Some("NSInvalidArgumentException".to_owned()),
            reason: Some("no such key".to_owned()),
        };
        let fault = CoreMlFault::raised(CoreMlFaultKind::Predict, "prediction", &exception);
        assert_eq!(fault.kind, CoreMlFaultKind::Predict);
        assert_eq!(
            fault.to_string(),
            "prediction: Objective-C exception NSInvalidArgumentException: no such key"
        );
    }

    #[test]
    fn an_old_system_is_told_the_version_it_needs() {
        let fault = CoreMlFault::newer("states", "15");
        assert_eq!(fault.kind, CoreMlFaultKind::Version);
        assert_eq!(fault.to_string(), "states: needs macOS 15 or later");
    }
}
