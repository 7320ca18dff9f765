//! Functions of elements.

mod unary;

use crate::kernel::KernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[unary::ROW];
