//! The calls themselves.

mod buffer;
mod configuration;
mod describe;
mod device;
mod model;
mod plan;
mod predict;
mod returned;
mod state;

pub(super) use buffer::Buffer;
pub(super) use device::devices;
pub(super) use model::{NativeModel, compile};
pub(super) use plan::plan;
pub(super) use state::StateBuffers;

use std::path::Path;

use objc2::rc::Retained;
use objc2_foundation::{NSArray, NSError, NSNumber, NSURL};

use super::fault::{DEPTH, SystemError};
use super::{CoreMlFault, CoreMlFaultKind};
use crate::exception::catching;

/// Reads or sets a property of an object.
macro_rules! property {
    ($call:expr) => {{
        // SAFETY: the method takes what its declaration says, and the objects are alive. It is as old
        // as macOS 13, or its object is there only on systems that have it.
        unsafe { $call }
    }};
}
use property;

/// Calls Core ML for `what`. An exception that it raises is an error of this kind.
fn guarded<R>(
    kind: CoreMlFaultKind,
    what: &str,
    call: impl FnOnce() -> Result<R, CoreMlFault>,
) -> Result<R, CoreMlFault> {
    catching(call).unwrap_or_else(|raised| Err(CoreMlFault::raised(kind, what, &raised)))
}

/// The system's account of an error.
fn refused(kind: CoreMlFaultKind, what: &str, error: &NSError) -> CoreMlFault {
    CoreMlFault::refused(kind, what, &told(error, DEPTH))
}

fn told(error: &NSError, depth: usize) -> SystemError {
    let underlying = if depth == 0 {
        Vec::new()
    } else {
        error.underlyingErrors().iter().map(|error| told(&error, depth - 1)).collect()
    };
    SystemError {
        domain: error.domain().to_string(),
        code: error.code(),
        description: error.localizedDescription().to_string(),
        reason: error.localizedFailureReason().map(|reason| reason.to_string()),
        underlying,
    }
}

/// Sizes as Objective-C has them.
fn numbers(sizes: &[usize]) -> Retained<NSArray<NSNumber>> {
    let numbers: Vec<_> = sizes.iter().map(|&size| NSNumber::new_usize(size)).collect();
    NSArray::from_retained_slice(&numbers)
}

/// Sizes as Rust has them. A negative one, which Core ML does not have, fits nothing.
fn sizes(numbers: &NSArray<NSNumber>) -> Vec<usize> {
    numbers.iter().map(|size| usize::try_from(size.as_isize()).unwrap_or(usize::MAX)).collect()
}

/// The address of a folder or a file that exists.
fn url(path: &Path) -> Result<Retained<NSURL>, CoreMlFault> {
    let wrong = |why: String| CoreMlFault::file(format!("{}: {why}", path.display()));
    let absolute = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
    let url = if absolute.is_dir() {
        NSURL::from_directory_path(&absolute)
    } else {
        NSURL::from_file_path(&absolute)
    };
    url.ok_or_else(|| wrong("not a name that the system can have".to_owned()))
}
