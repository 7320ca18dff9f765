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

/// An axis that may count from the end.
///
/// # Errors
/// Fails when there is no such axis.
pub(crate) fn position(axis: i64, rank: usize) -> Result<usize, String> {
    let from_end = i64::try_from(rank).unwrap_or(i64::MAX);
    let axis = if axis < 0 { axis + from_end } else { axis };
    let found = usize::try_from(axis).ok().filter(|&axis| axis < rank);
    found.ok_or_else(|| format!("there is no axis {axis} of {rank}"))
}
