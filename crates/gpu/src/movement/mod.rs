//! Elements at other places.

mod concat;
mod gather;
mod index;
mod known;
mod masked;
mod pad;
pub(crate) mod sampled;
mod scatter;
pub(crate) mod strided;
mod views;

pub(crate) use concat::{ConcatWindow, put_columns};
pub(crate) use gather::supports_parts as gathers_parts;

use crate::kernel::GpuKernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[
    views::ROW,
    concat::ROW,
    gather::ROW,
    known::ROW,
    masked::TRIANGLE,
    masked::CONTRIB_TRIANGLE,
    masked::ONE_HOT,
    pad::ROW,
    scatter::ROW,
];
