//! Objective-C exceptions as errors: one that no frame catches ends the process.
//!
//! Exceptions that Core ML raises on threads of its own cannot be caught here. Models run in a process of their
//! own for those.

use std::fmt;

#[cfg(any(target_os = "macos", apple_doubles))]
pub(crate) use system::catching;

/// Exception that a call has raised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RaisedException {
    /// Name, such as `NSInvalidArgumentException`; absent where the object is no `NSException`.
    pub(crate) name: Option<String>,
    /// Reason that it states.
    pub(crate) reason: Option<String>,
}

impl fmt::Display for RaisedException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "Objective-C exception {name}")?,
            None => f.write_str("an Objective-C exception without a name")?,
        }
        match self.reason.as_deref() {
            Some(reason) if !reason.is_empty() => write!(f, ": {reason}"),
            _ => Ok(()),
        }
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use std::panic::AssertUnwindSafe;

    use objc2::exception::{Exception, catch};
    use objc2::rc::{Retained, autoreleasepool};
    use objc2::runtime::AnyObject;
    use objc2_foundation::NSException;

    use super::RaisedException;

    /// Returns what a call gives, or the exception that it raises. Panics pass. Objects that the call leaves to
    /// an autorelease pool are released when this returns.
    pub(crate) fn catching<R>(call: impl FnOnce() -> R) -> Result<R, RaisedException> {
        // The pool lies outside, since the exception may be in it.
        autoreleasepool(|_| catch(AssertUnwindSafe(call)).map_err(described))
    }

    fn described(raised: Option<Retained<Exception>>) -> RaisedException {
        let Some(raised) = raised else { return RaisedException::default() };
        let object: &AnyObject = (*raised).as_ref();
        let Some(exception) = object.downcast_ref::<NSException>() else {
            return RaisedException::default();
        };
        RaisedException {
            name: Some(exception.name().to_string()),
            reason: exception.reason().map(|reason| reason.to_string()),
        }
    }

    #[cfg(test)]
    mod tests {
        use objc2_foundation::{NSArray, NSObject, NSString};

        use super::*;

        #[test]
        fn an_exception_of_the_system_is_an_error_with_its_name() {
            let empty = NSArray::<NSObject>::new();
            let raised = catching(|| empty.objectAtIndex(0)).unwrap_err();
            assert_eq!(raised.name.as_deref(), Some("NSRangeException"));
            assert!(raised.reason.is_some());
        }

        #[test]
        fn a_call_that_raises_nothing_gives_what_it_gives() {
            assert_eq!(catching(|| NSString::from_str("abc").len()), Ok(3));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_told_with_its_name_and_its_reason() {
        let text = |name: Option<&str>, reason: Option<&str>| {
            let raised = RaisedException {
                name: name.map(str::to_owned),
                reason: reason.map(str::to_owned),
            };
            raised.to_string()
        };
        assert_eq!(
            text(Some("NSRangeException"), Some("index 3 beyond bounds")),
            "Objective-C exception NSRangeException: index 3 beyond bounds"
        );
        assert_eq!(
            text(Some("NSGenericException"), None),
            "Objective-C exception NSGenericException"
        );
        assert_eq!(text(None, Some("")), "an Objective-C exception without a name");
    }
}
