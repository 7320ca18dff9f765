//! Work that may panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{LlmError, LlmErrorKind, Result};

/// Returns the result of a model's work; a panic is an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(LlmError::new(LlmErrorKind::Model, "model", panicked(&*panic))))
}

/// The text of a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("nothing is said about why"))
}
