//! Elements that are written at indices.

use super::pick::{ElementPicks, FoundWrong, WrongIndex, place};
use super::{AxisCounter, GRAIN, steps};
use crate::KernelContext;
use crate::memory::DisjointSlice;

/// Shapes of writes along an axis: the data that is written into, and the indices.
pub type ElementWrites<'a> = ElementPicks<'a>;

/// `y[i, at[i, j, …], …] = f(y[…], updates[i, j, …])`, in the order of the updates: ONNX `ScatterElements`.
///
/// # Errors
/// Fails when an index is outside the axis; some elements have been written then.
///
/// # Panics
/// Panics when a slice has another length than its shape, or an axis of the indices is too long.
pub fn write_elements<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    at: &[i64],
    updates: &[T],
    writes: &ElementWrites<'_>,
    f: impl Fn(T, T) -> T + Sync,
    y: &mut [T],
) -> Result<(), WrongIndex> {
    let ElementPicks { data, indices, axis } = *writes;
    writes.check(y.len(), at.len(), updates.len());
    if at.is_empty() {
        return Ok(());
    }
    let (len, all) = (data[axis], steps(data));
    let lines = LineShare::of(indices, axis);
    let wrong = FoundWrong::default();
    let (shape, y) = (&all, DisjointSlice::new(y));
    exec.pool.run_ranges(lines.count, GRAIN.div_ceil(at.len() / lines.count), |range| {
        // What one thread writes has places of its own along the shared axis.
        let mut first = vec![0; indices.len()];
        let mut part = indices.to_vec();
        if let Some(shared) = lines.axis {
            (first[shared], part[shared]) = (range.start, range.len());
        }
        let own = steps(indices);
        let (&row, outer) = part.split_last().unwrap_or((&1, &[]));
        let last = outer.len();
        let begin = first.last().copied().unwrap_or(0);
        let column_step = usize::from(axis != last);
        let mut counter = AxisCounter::new(outer, 0);
        for _ in 0..outer.iter().product() {
            let places = counter.at.iter().zip(&first).map(|(at, first)| at + first).enumerate();
            let from: usize = places.clone().map(|(a, at)| at * own[a]).sum();
            let to: usize = places.filter(|(a, _)| *a != axis).map(|(a, at)| at * shape[a]).sum();
            for column in begin..begin + row {
                let place = match place(at[from + column], len) {
                    Ok(place) => place,
                    Err(found) => return wrong.note(found),
                };
                let to = to + column * column_step + place * shape[axis];
                // SAFETY: the place is inside the data; ranges of lines have no element in common.
                let y = unsafe { y.range(to..to + 1) };
                y[0] = f(y[0], updates[from + column]);
            }
            counter.advance();
        }
    });
    wrong.result()
}

/// Axis along which threads share the work: what they write along another axis never meets.
struct LineShare {
    axis: Option<usize>,
    count: usize,
}

impl LineShare {
    /// The longest axis but the written one; none where there is no other.
    fn of(indices: &[usize], axis: usize) -> Self {
        let others = (0..indices.len()).filter(|at| *at != axis);
        match others.max_by_key(|at| indices[*at]) {
            Some(shared) => Self { axis: Some(shared), count: indices[shared].max(1) },
            None => Self { axis: None, count: 1 },
        }
    }
}
