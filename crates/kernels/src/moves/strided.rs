//! Copies of elements that lie at strides.

use super::{AxisCounter, share_runs};
use crate::KernelContext;

/// Axis of a result, with the distance between its neighbours in what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedAxis {
    /// Elements along the axis.
    pub len: usize,
    /// Distance; 0 repeats an element, a negative one reads backwards.
    pub stride: isize,
}

/// Longest run that is worth a loop of its own together with the axis around it.
const SHORT_RUN: usize = 16;

/// `y[i0, i1, …] = x[start + i0 * stride0 + i1 * stride1 + …]`.
///
/// # Panics
/// Panics when `y` has another number of elements than the axes, or a place is outside `x`.
pub fn copy_strided<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    start: usize,
    axes: &[StridedAxis],
    y: &mut [T],
) {
    let axes = joined(axes);
    let count: usize = axes.iter().map(|axis| axis.len).product();
    assert!(count == y.len(), "strided: {count} elements into {}", y.len());
    if y.is_empty() {
        return;
    }
    let one = StridedAxis { len: 1, stride: 1 };
    let (run, outer) = axes.split_last().map_or((one, &axes[..]), |(last, outer)| (*last, outer));
    // Short runs are copied together with the axis around them, so that less is counted.
    let (rows, outer) = match outer.split_last() {
        Some((rows, outer)) if run.len <= SHORT_RUN => (*rows, outer),
        _ => (StridedAxis { len: 1, stride: 0 }, outer),
    };
    let lengths: Vec<usize> = outer.iter().map(|axis| axis.len).collect();
    share_runs(exec, y, rows.len * run.len, |blocks, y| {
        let mut counter = AxisCounter::new(&lengths, blocks.start);
        for y in y.chunks_exact_mut(rows.len * run.len) {
            let places = counter.at.iter().zip(outer);
            let offset: isize =
                places.map(|(at, axis)| at.cast_signed().wrapping_mul(axis.stride)).sum();
            let mut from = start.cast_signed() + offset;
            for y in y.chunks_exact_mut(run.len) {
                copy_run(x, from.cast_unsigned(), run.stride, y);
                from += rows.stride;
            }
            counter.advance();
        }
    });
}

/// Copies one run.
#[inline(always)]
fn copy_run<T: Copy>(x: &[T], start: usize, stride: isize, y: &mut [T]) {
    match stride {
        1 => y.copy_from_slice(&x[start..start + y.len()]),
        0 => y.fill(x[start]),
        _ => {
            for (at, y) in y.iter_mut().enumerate() {
                *y = x[start.wrapping_add_signed(at.cast_signed() * stride)];
            }
        }
    }
}

/// The axes without those of length 1, neighbours that are one axis joined.
fn joined(axes: &[StridedAxis]) -> Vec<StridedAxis> {
    let mut all: Vec<StridedAxis> = Vec::with_capacity(axes.len());
    for &axis in axes.iter().filter(|axis| axis.len != 1) {
        match all.last_mut() {
            Some(last) if last.stride == axis.stride * axis.len.cast_signed() => {
                *last = StridedAxis { len: last.len * axis.len, stride: axis.stride };
            }
            _ => all.push(axis),
        }
    }
    all
}
