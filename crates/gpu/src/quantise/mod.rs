//! Floats as bytes with the scale that they need, and functions of bytes by tables.

mod dynamic;
mod look_up;

pub(crate) use dynamic::{DynamicOutputs, dispatch};

use crate::kernel::GpuKernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[dynamic::ROW, look_up::ROW];
