//! Functions of all elements along axes.

mod arg;
mod fold;
mod reduction;

use crate::kernel::KernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[reduction::ROW, reduction::LAST, arg::ROW];
