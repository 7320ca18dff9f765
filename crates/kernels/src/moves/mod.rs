//! Elements that are given other places: copies at strides, frames, triangles, picks and writes at indices.
//!
//! Elements are of any plain type; those of other sizes go as `u8`, `u16`, `u32` or `u64`.

mod frame;
mod pick;
mod scatter;
mod strided;
mod triangle;

pub use frame::{FrameAxis, FrameRow, frame};
pub use pick::{ElementPicks, WrongIndex, pick_elements, pick_runs};
pub use scatter::{ElementWrites, write_elements};
pub use strided::{StridedAxis, copy_strided};
pub use triangle::{MatrixTriangle, keep_triangle};

use std::ops::Range;

use crate::KernelContext;
use crate::memory::DisjointSlice;

/// Fewest elements that are worth a thread of their own.
const GRAIN: usize = 16_384;

/// Computes `y` in parts of whole runs of `run` elements, shared among threads: `body` gets which runs they are, and
/// their elements.
///
/// # Panics
/// Panics when `y` is no whole number of runs, or `body` panics.
pub fn share_runs<T: Send>(
    exec: KernelContext<'_>,
    y: &mut [T],
    run: usize,
    body: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    if y.is_empty() {
        return;
    }
    assert!(run > 0 && y.len().is_multiple_of(run), "{} elements in runs of {run}", y.len());
    let runs = y.len() / run;
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(runs, GRAIN.div_ceil(run), |range| {
        // SAFETY: ranges are disjoint, so their runs are.
        let part = unsafe { y.range(range.start * run..range.end * run) };
        body(range, part);
    });
}

/// Places along several axes, counted up like the digits of a number: the last axis is the fastest.
struct AxisCounter<'a> {
    lengths: &'a [usize],
    at: Vec<usize>,
}

impl<'a> AxisCounter<'a> {
    /// The places of the `index`th step.
    fn new(lengths: &'a [usize], index: usize) -> Self {
        let mut at = vec![0; lengths.len()];
        let mut rest = index;
        for (at, &len) in at.iter_mut().zip(lengths).rev() {
            *at = rest % len.max(1);
            rest /= len.max(1);
        }
        Self { lengths, at }
    }

    /// Goes one step on.
    fn advance(&mut self) {
        for (at, &len) in self.at.iter_mut().zip(self.lengths).rev() {
            *at += 1;
            if *at < len {
                return;
            }
            *at = 0;
        }
    }
}

/// Returns the elements between neighbours of each axis of a contiguous tensor.
fn steps(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis];
    }
    steps
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests;
