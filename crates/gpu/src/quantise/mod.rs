//! Floats as bytes with the scale that they need, and functions of bytes by tables.

mod dynamic;
mod look_up;

pub(crate) use dynamic::{Quantised, dispatch};

use crate::kernel::KernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[dynamic::ROW, look_up::ROW];
