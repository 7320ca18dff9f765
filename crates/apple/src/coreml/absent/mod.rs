//! Core ML where there is none: whatever would make a value says so, and no value exists.

mod buffer;
mod model;
mod state;

pub(super) use buffer::Buffer;
pub(super) use model::MissingModel as NativeModel;
pub(super) use state::StateBuffers;

use std::cell::Cell;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::{CoreMlDevice, CoreMlFault, CoreMlLoadOptions, CoreMlPlannedOperator};
use crate::Unavailable;

fn none<T>() -> Result<T, CoreMlFault> {
    Err(Unavailable::off_macos("Core ML").into())
}

/// Threads do not share it, as on macOS.
type OneThread = PhantomData<Cell<()>>;

pub(super) fn compile(_package: &Path) -> Result<Option<PathBuf>, CoreMlFault> {
    none()
}

pub(super) fn devices() -> Result<Vec<CoreMlDevice>, CoreMlFault> {
    none()
}

pub(super) fn plan(
    _compiled: &Path,
    _options: &CoreMlLoadOptions,
) -> Result<Vec<CoreMlPlannedOperator>, CoreMlFault> {
    none()
}
