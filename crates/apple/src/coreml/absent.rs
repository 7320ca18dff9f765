//! Core ML where there is none: whatever would make a value says so, and no value exists.

use std::any::Any;
use std::cell::Cell;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use super::layout::ArrayLayout;
use super::request::PendingSubmission;
use super::{
    CoreMlDevice, CoreMlFault, CoreMlLoadOptions, CoreMlPlannedOperator, ModelInterface,
    MultiArray, PredictionOutput, PredictionState,
};
use crate::Unavailable;

fn none<T>() -> Result<T, CoreMlFault> {
    Err(Unavailable::off_macos("Core ML").into())
}

/// Threads do not share it, as on macOS.
type OneThread = PhantomData<Cell<()>>;

pub(super) struct Buffer(Infallible, OneThread);

impl Buffer {
    /// # Safety
    /// The conditions are those of the same function on macOS.
    pub(super) unsafe fn over(
        _owner: Box<dyn Any + Send + Sync>,
        _start: NonNull<u8>,
        _layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(super) fn surface(
        _width: usize,
        _height: usize,
        _layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(super) fn read<R>(
        &self,
        _look: impl FnOnce(&[u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        match self.0 {}
    }

    pub(super) fn write<R>(
        &mut self,
        _change: impl FnOnce(&mut [u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        match self.0 {}
    }
}

pub(super) struct StateBuffers(Infallible);

impl StateBuffers {
    pub(super) fn copy_from(&mut self, _other: &Self, _name: &str) -> Result<(), CoreMlFault> {
        match self.0 {}
    }
}

pub(super) use MissingModel as NativeModel;

pub(super) struct MissingModel(Infallible, OneThread);

impl MissingModel {
    pub(super) fn load(
        _compiled: &Path,
        _options: &CoreMlLoadOptions,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(super) fn interface(&self) -> Result<ModelInterface, CoreMlFault> {
        match self.0 {}
    }

    pub(super) fn new_state(&self) -> Result<StateBuffers, CoreMlFault> {
        match self.0 {}
    }

    pub(super) fn predict(
        &self,
        _interface: &ModelInterface,
        _inputs: &[(&str, &MultiArray)],
        _backings: &[(&str, &MultiArray)],
        _state: Option<&PredictionState>,
    ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault> {
        match self.0 {}
    }

    pub(super) fn submit(&self, _interface: &ModelInterface, _pending: PendingSubmission) {
        match self.0 {}
    }
}

pub(super) fn compile(_package: &Path) -> Result<PathBuf, CoreMlFault> {
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
