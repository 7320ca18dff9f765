//! Objective-C exceptions of Metal as errors: one that no frame catches ends the process.

use std::panic::AssertUnwindSafe;

use objc2::exception::catch;
use objc2::rc::autoreleasepool;

/// Returns what a call of Metal gives, or the exception that it raises, as a text. Panics pass. Objects that the call
/// leaves to an autorelease pool are released when this returns.
pub(crate) fn catching<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    // The pool lies outside, since the exception may be in it.
    autoreleasepool(|_| {
        catch(AssertUnwindSafe(call)).map_err(|raised| match raised {
            Some(raised) => format!("Metal raised {raised:?}"),
            None => "Metal raised an exception without a name".to_owned(),
        })
    })
}
