//! Normalisation of rows, and of elements among neighbouring channels.

mod generate;
mod lrn;
mod rows;

use crate::kernel::KernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[rows::ONNX, rows::CONTRIB, lrn::ROW];
