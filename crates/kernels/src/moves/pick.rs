//! Elements and runs that indices name.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::{AxisCounter, share_runs, steps};
use crate::KernelContext;

/// Index outside its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongIndex {
    /// The index, as it was given.
    pub index: i64,
    /// Length of the axis.
    pub len: usize,
}

impl fmt::Display for WrongIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} is outside an axis of length {}", self.index, self.len)
    }
}

/// The first wrong index that a thread has found.
#[derive(Default)]
pub(super) struct FoundWrong(Mutex<Option<WrongIndex>>);

impl FoundWrong {
    pub(super) fn note(&self, wrong: WrongIndex) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(wrong);
    }

    pub(super) fn result(self) -> Result<(), WrongIndex> {
        let found = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.map_or(Ok(()), Err)
    }
}

/// The place that an index names; negative ones count from the end.
#[inline(always)]
pub(super) fn place(index: i64, len: usize) -> Result<usize, WrongIndex> {
    // Lengths of memory fit a signed number; a negative index becomes a huge place where it is wrong.
    let shifted = if index < 0 { index.wrapping_add(len.cast_signed() as i64) } else { index };
    match usize::try_from(shifted) {
        Ok(at) if at < len => Ok(at),
        _ => Err(WrongIndex { index, len }),
    }
}

/// Shapes of a pick of elements along an axis.
#[derive(Clone, Debug)]
pub struct ElementPicks<'a> {
    /// Shape of what is read.
    pub data: &'a [usize],
    /// Shape of the indices and of the result: no axis but the picked one is longer than that of the data.
    pub indices: &'a [usize],
    /// The axis whose places the indices name.
    pub axis: usize,
}

/// `y[i, j, …] = x[i, at[i, j, …], …]`: ONNX `GatherElements`.
///
/// # Errors
/// Fails when an index is outside the axis.
///
/// # Panics
/// Panics when a slice has another length than its shape, or an axis of the indices is too long.
pub fn pick_elements<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    at: &[i64],
    picks: &ElementPicks<'_>,
    y: &mut [T],
) -> Result<(), WrongIndex> {
    let ElementPicks { data, indices, axis } = *picks;
    picks.check(x.len(), at.len(), y.len());
    let (len, all) = (data[axis], steps(data));
    let (row, outer) = indices.split_last().unwrap_or((&1, &[]));
    let wrong = FoundWrong::default();
    let is_last = axis + 1 == indices.len();
    share_runs(exec, y, (*row).max(1), |rows, y| {
        let at = &at[rows.start * row..rows.end * row];
        let mut counter = AxisCounter::new(outer, rows.start);
        for (y, at) in y.chunks_exact_mut(*row).zip(at.chunks_exact(*row)) {
            let places = counter.at.iter().zip(&all).enumerate().filter(|(a, _)| *a != axis);
            let start: usize = places.map(|(_, (at, step))| at * step).sum();
            let done = match is_last {
                true => pick_row(&x[start..start + len], at, y),
                false => pick_column(&x[start..], at, len, all[axis], y),
            };
            if let Err(found) = done {
                wrong.note(found);
                return;
            }
            counter.advance();
        }
    });
    wrong.result()
}

#[inline(always)]
fn pick_row<T: Copy>(x: &[T], at: &[i64], y: &mut [T]) -> Result<(), WrongIndex> {
    for (y, &index) in y.iter_mut().zip(at) {
        *y = x[place(index, x.len())?];
    }
    Ok(())
}

/// Picks neighbours along the last axis from places of another one.
#[inline(always)]
fn pick_column<T: Copy>(
    x: &[T],
    at: &[i64],
    len: usize,
    step: usize,
    y: &mut [T],
) -> Result<(), WrongIndex> {
    for (column, (y, &index)) in y.iter_mut().zip(at).enumerate() {
        *y = x[column + place(index, len)? * step];
    }
    Ok(())
}

impl ElementPicks<'_> {
    pub(super) fn check(&self, x: usize, at: usize, y: usize) {
        let Self { data, indices, axis } = *self;
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        assert!(
            count(data) == x && count(indices) == at && at == y && data.len() == indices.len(),
            "elements of {data:?} at {indices:?}: {x} elements, {at} indices, {y} results"
        );
        let mut others = (0..data.len()).filter(|at| *at != axis);
        assert!(axis < data.len() && others.all(|at| indices[at] <= data[at]), "axis {axis}");
    }
}

/// `y` = the runs of `run` elements of `x` that begin at `starts`, one behind the other.
///
/// # Panics
/// Panics when a run is outside `x`, or `y` has another length than all runs.
pub fn pick_runs<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    starts: &[usize],
    run: usize,
    y: &mut [T],
) {
    assert!(starts.len() * run == y.len(), "{} runs of {run} into {}", starts.len(), y.len());
    share_runs(exec, y, run.max(1), |range, y| {
        for (y, &start) in y.chunks_exact_mut(run).zip(&starts[range]) {
            if let [y] = y {
                *y = x[start];
            } else {
                y.copy_from_slice(&x[start..start + run]);
            }
        }
    });
}
