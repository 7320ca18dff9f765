//! Buffers of arrays.

use std::any::Any;
use std::convert::Infallible;
use std::ptr::NonNull;

use super::super::CoreMlFault;
use super::super::layout::ArrayLayout;
use super::{OneThread, none};

/// An array of Core ML's.
pub(in super::super) struct Buffer(Infallible, OneThread);

impl Buffer {
    /// # Safety
    /// The conditions are those of the same function on macOS.
    pub(in super::super) unsafe fn over(
        _owner: Box<dyn Any + Send + Sync>,
        _start: NonNull<u8>,
        _layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(in super::super) fn surface(
        _width: usize,
        _height: usize,
        _layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(in super::super) fn read<R>(
        &self,
        _look: impl FnOnce(&[u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        match self.0 {}
    }

    pub(in super::super) fn write<R>(
        &mut self,
        _change: impl FnOnce(&mut [u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        match self.0 {}
    }
}
