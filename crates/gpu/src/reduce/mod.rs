//! Functions of all elements along axes.

mod arg;
mod fold;
mod reduction;
mod scan;
mod top_k;

pub(crate) use self::reduction::range;
use crate::kernel::GpuKernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] =
    &[reduction::ROW, reduction::LAST, arg::ROW, scan::ROW, top_k::ROW];
