//! Normalisation of rows, and of elements among neighbouring channels.

mod generate;
mod lrn;
mod rows;

use crate::kernel::GpuKernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[rows::ONNX, rows::CONTRIB, lrn::ROW];
