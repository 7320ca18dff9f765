//! Frames around tensors.

use super::{AxisCounter, share_runs};
use crate::KernelContext;

/// Axis of a framed result before the last framed one.
#[derive(Clone, Debug)]
pub struct FrameAxis {
    /// Place in `x` of each place of the result; none in a frame of one value.
    pub sources: Vec<Option<usize>>,
    /// Elements between neighbours in `x`.
    pub step: usize,
}

/// Last framed axis of a result.
#[derive(Clone, Debug)]
pub struct FrameRow {
    /// Place in `x` of each place of the result; none in a frame of one value.
    pub sources: Vec<Option<usize>>,
    /// Elements of each place: the axes behind that have no frame.
    pub unit: usize,
}

/// Run of a row whose sources are neighbours, or a frame of one value.
struct SourceRun {
    len: usize,
    /// First element, by the start of the row in `x`.
    from: Option<usize>,
}

/// Copies `x` into the middle of `y`, and what `sources` name into the frame around it.
///
/// # Panics
/// Panics when `y` has another number of elements than the axes, or a source is outside `x`.
pub fn frame<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    outer: &[FrameAxis],
    row: &FrameRow,
    fill: T,
    y: &mut [T],
) {
    let row_len = row.sources.len() * row.unit;
    let lengths: Vec<usize> = outer.iter().map(|axis| axis.sources.len()).collect();
    let count = lengths.iter().product::<usize>() * row_len;
    assert!(count == y.len(), "frame: {count} elements into {}", y.len());
    if y.is_empty() {
        return;
    }
    let runs = row.runs();
    share_runs(exec, y, row_len, |rows, y| {
        let mut counter = AxisCounter::new(&lengths, rows.start);
        for y in y.chunks_exact_mut(row_len) {
            let mut places = counter.at.iter().zip(outer);
            let start = places.try_fold(0, |start, (&at, axis)| {
                axis.sources[at].map(|place| start + place * axis.step)
            });
            match start {
                None => y.fill(fill),
                Some(start) => copy_runs(&x[start..], &runs, fill, y),
            }
            counter.advance();
        }
    });
}

fn copy_runs<T: Copy>(x: &[T], runs: &[SourceRun], fill: T, y: &mut [T]) {
    let mut rest = y;
    for run in runs {
        let (y, behind) = rest.split_at_mut(run.len);
        match run.from {
            None => y.fill(fill),
            Some(from) if run.len == 1 => y[0] = x[from],
            Some(from) => y.copy_from_slice(&x[from..from + run.len]),
        }
        rest = behind;
    }
}

impl FrameRow {
    /// The row in runs as long as possible.
    fn runs(&self) -> Vec<SourceRun> {
        let mut runs: Vec<SourceRun> = Vec::new();
        for &source in &self.sources {
            let from = source.map(|place| place * self.unit);
            match runs.last_mut() {
                Some(last) if last.from.map(|begin| begin + last.len) == from => {
                    last.len += self.unit;
                }
                _ => runs.push(SourceRun { len: self.unit, from }),
            }
        }
        runs
    }
}
