//! Operands of any broadcast, run by run: for small values, and those that no kernel spreads.

use galatea_tensor::Element;

use crate::cpu::{CpuStep, NodeShapes};

/// Several operands spread over a result: runs along its last axis, with the start of each
/// operand's elements.
pub(super) struct SpreadRuns<const N: usize> {
    /// Length of a run.
    pub(super) len: usize,
    /// Spread of an operand: an element for each of a run, or one for all.
    pub(super) full: [bool; N],
    pub(super) starts: Vec<[usize; N]>,
}

/// The most runs that are worth keeping in a plan.
const MAX_RUNS: usize = 1 << 16;

impl<const N: usize> SpreadRuns<N> {
    /// The runs of operands that broadcast to `result`.
    pub(super) fn new(operands: [&[usize]; N], result: &[usize]) -> Result<Self, String> {
        let same =
            |shape: &&[usize]| shape.iter().product::<usize>() == result.iter().product::<usize>();
        if operands.iter().all(same) {
            let len = result.iter().product();
            return Ok(Self { len, full: [true; N], starts: vec![[0; N]] });
        }
        let (&len, lead) = result.split_last().unwrap_or((&1, &[]));
        let length = |operand: usize, axis: usize| {
            let missing = result.len().saturating_sub(operands[operand].len());
            axis.checked_sub(missing).map_or(1, |axis| operands[operand][axis])
        };
        if lead.iter().product::<usize>() > MAX_RUNS {
            return Err(format!("{lead:?} runs"));
        }
        let last = result.len().saturating_sub(1);
        let full: [bool; N] = std::array::from_fn(|at| length(at, last) == len && len != 1);
        let mut step: [usize; N] = std::array::from_fn(|at| length(at, last));
        let mut starts = vec![[0; N]];
        for (axis, &count) in lead.iter().enumerate().rev() {
            let stride: [usize; N] =
                std::array::from_fn(|at| if length(at, axis) == 1 { 0 } else { step[at] });
            let shifted = |index: usize, start: &[usize; N]| -> [usize; N] {
                std::array::from_fn(|at| start[at] + index * stride[at])
            };
            starts = (0..count)
                .flat_map(|index| starts.iter().map(move |start| (index, *start)))
                .map(|(index, start)| shifted(index, &start))
                .collect();
            step = std::array::from_fn(|at| step[at] * length(at, axis));
        }
        Ok(Self { len, full, starts })
    }
}

/// The elements of an operand in one run, repeated where there is one for all.
pub(super) fn run_of<T: Copy>(
    x: &[T],
    start: usize,
    len: usize,
    full: bool,
) -> impl Iterator<Item = T> + '_ {
    let step = usize::from(full);
    (0..len).map(move |at| x[start + at * step])
}

/// An operand in one run: its elements from the first one on, and whether each has its own.
struct RunOperand<'a, A> {
    all: &'a [A],
    full: bool,
}

/// Computes one run of a result from two operands.
type PairRun<A, B> = Box<dyn Fn(&mut [B], &RunOperand<'_, A>, &RunOperand<'_, A>) + Send + Sync>;

/// A step that computes each element of the output from one of each input.
pub(super) fn map_pairs<A: Element + Copy, B: Element>(
    shapes: &NodeShapes,
    function: impl Fn(A, A) -> B + Send + Sync + 'static,
) -> Result<CpuStep, String> {
    let run = move |y: &mut [B], a: &RunOperand<'_, A>, b: &RunOperand<'_, A>| {
        let a = run_of(a.all, 0, y.len(), a.full);
        let b = run_of(b.all, 0, y.len(), b.full);
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = function(a, b);
        }
    };
    pair_step(shapes, Box::new(run))
}

/// A step that computes run by run: compiled for each pair of types, not for each function.
fn pair_step<A: Element, B: Element>(
    shapes: &NodeShapes,
    compute: PairRun<A, B>,
) -> Result<CpuStep, String> {
    let runs = SpreadRuns::new([shapes.input(0)?, shapes.input(1)?], shapes.output(0)?)?;
    Ok(CpuStep::new(move |call| {
        let a = call.input::<A>(0)?;
        let b = call.input::<A>(1)?;
        let mut y = call.output::<B>(0)?;
        if runs.len == 0 {
            return Ok(());
        }
        for (y, start) in y.slice().chunks_exact_mut(runs.len).zip(&runs.starts) {
            let a = RunOperand { all: &a[start[0]..], full: runs.full[0] };
            let b = RunOperand { all: &b[start[1]..], full: runs.full[1] };
            compute(y, &a, &b);
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_spread_run_by_run() {
        let runs = SpreadRuns::new([&[2, 1, 3], &[4, 1], &[]], &[2, 4, 3]).unwrap();
        assert_eq!((runs.len, runs.full), (3, [true, false, false]));
        assert_eq!(runs.starts.len(), 8);
        assert_eq!(runs.starts[5], [3, 1, 0]);
        let whole = SpreadRuns::new([&[2, 3], &[2, 3]], &[2, 3]).unwrap();
        assert_eq!((whole.len, whole.starts), (6, vec![[0, 0]]));
    }
}
