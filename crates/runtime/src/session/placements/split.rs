//! Runs whose rows are divided between two devices.

use std::sync::Arc;

use galatea_graph::{Datum, Dim, Fact, Graph, ValueId, rows};
use galatea_tensor::{Tensor, TensorError};

use super::super::compiled::CompiledPartitions;
use super::super::parts::{AcquireDevice, PartsRun};
use crate::error::RuntimeError;

/// Marks of the inputs and outputs whose first axis is the rows that may be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DivisibleRows {
    inputs: Vec<bool>,
    outputs: Vec<bool>,
}

impl DivisibleRows {
    /// The rows of a graph that know nothing of each other; none where there are none, or where elements have no
    /// size.
    pub(super) fn of(graph: &Graph, facts: &[Option<Fact>]) -> Option<Self> {
        let name = rows::independent(graph, facts).into_iter().next()?;
        let has = |id: &ValueId| {
            let fact = facts.get(id.index())?.as_ref().filter(|fact| fact.is_tensor())?;
            fact.dtype.size_bytes()?;
            let first = fact.shape.as_ref()?.first();
            Some(matches!(first, Some(Dim::Symbol(own)) if **own == *name))
        };
        let all = |ids: &[ValueId]| ids.iter().map(has).collect::<Option<Vec<bool>>>();
        let inputs = all(&graph.inputs)?;
        let outputs = all(&graph.outputs)?;
        // What does not come from the rows would be computed twice.
        (inputs.contains(&true) && !outputs.contains(&false)).then_some(Self { inputs, outputs })
    }

    /// Returns the number of rows of the inputs.
    pub(super) fn count(&self, inputs: &[Datum]) -> Option<usize> {
        let own = self.inputs.iter().zip(inputs).find_map(|(own, datum)| own.then_some(datum))?;
        own.as_tensor()?.shape().first().copied()
    }

    /// Some of the rows.
    fn some(
        &self,
        inputs: &[Datum],
        first: usize,
        count: usize,
    ) -> Result<Vec<Datum>, TensorError> {
        let cut = |(own, datum): (&bool, &Datum)| match (own, datum.as_tensor()) {
            (true, Some(tensor)) => {
                tensor.slice_axis(0, first, count, 1)?.contiguous().map(Datum::Tensor)
            }
            _ => Ok(datum.clone()),
        };
        self.inputs.iter().zip(inputs).map(cut).collect()
    }
}

/// A run whose first rows take one placement and the others another one.
pub(super) struct SplitRun {
    pub(super) rows: DivisibleRows,
    pub(super) placements: [Arc<CompiledPartitions>; 2],
    /// Rows that take the first placement.
    pub(super) first: usize,
}

impl SplitRun {
    /// Computes all outputs. `acquire` acquires the device of each placement.
    pub(super) fn run(
        &self,
        inputs: &[Datum],
        acquire: &AcquireDevice<'_>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let failed = |error: TensorError| RuntimeError::Input(format!("dividing rows: {error}"));
        let count = self.rows.count(inputs).unwrap_or(0);
        let rest = count.checked_sub(self.first).filter(|&rest| rest > 0 && self.first > 0);
        let rest = rest.ok_or_else(|| {
            let text = format!("{count} rows cannot be divided after {}", self.first);
            RuntimeError::Input(text)
        })?;
        let given = [
            self.rows.some(inputs, 0, self.first).map_err(failed)?,
            self.rows.some(inputs, self.first, rest).map_err(failed)?,
        ];
        let [one, two] = given;
        let run = |share: usize, inputs: Vec<Datum>| {
            let _occupied = acquire(share);
            let run = PartsRun { inputs, ..PartsRun::default() };
            let ran = self.placements[share].run(run, &|_| None);
            ran.map(|ran| ran.outputs).map_err(|failure| failure.error)
        };
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, two));
            let own = run(0, one);
            let lost = || RuntimeError::Input("the thread of a part of the rows ended".into());
            (own, other.join().unwrap_or_else(|_| Err(lost())))
        });
        let joined = one?.into_iter().zip(two?).map(|(one, two)| match (one, two) {
            (Datum::Tensor(one), Datum::Tensor(two)) => joined(&one, &two).map(Datum::Tensor),
            _ => Err(RuntimeError::Input("what is no tensor has no rows".into())),
        });
        joined.collect()
    }
}

/// The rows of both.
fn joined(one: &Tensor, two: &Tensor) -> Result<Tensor, RuntimeError> {
    let failed = |error: TensorError| RuntimeError::Input(format!("joining rows: {error}"));
    let one = one.contiguous().map_err(failed)?;
    let two = two.contiguous().map_err(failed)?;
    let same = one.dtype() == two.dtype() && one.shape().get(1..) == two.shape().get(1..);
    let (Some(&first), Some(&second), true) = (one.shape().first(), two.shape().first(), same)
    else {
        let text = format!("{:?} and {:?} are no rows of one tensor", one.shape(), two.shape());
        return Err(RuntimeError::Input(text));
    };
    let mut shape = one.shape().to_vec();
    shape.iter_mut().take(1).for_each(|rows| *rows = first + second);
    let bytes = [one.unaligned_bytes().map_err(failed)?, two.unaligned_bytes().map_err(failed)?];
    Tensor::from_bytes(one.dtype(), &shape, &bytes.concat()).map_err(failed)
}

/// Returns the number of rows, out of `count`, that the first of two placements gets to make both end at the
/// same time. Each takes `ns` for all rows. Returns `None` if all rows would go to one placement.
pub(super) fn share(count: usize, ns: [f64; 2]) -> Option<usize> {
    let [one, two] = ns;
    if !(one > 0.0 && two > 0.0 && one.is_finite() && two.is_finite()) {
        return None;
    }
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let first = (count as f64 * two / (one + two)).round() as usize;
    (first > 0 && first < count).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_so_that_both_ways_end_together() {
        assert_eq!(share(30, [10.0, 20.0]), Some(20));
        assert_eq!(share(2, [1.0, 1.0]), Some(1));
        assert_eq!(share(4, [1.0, 100.0]), None);
        assert_eq!(share(4, [0.0, 1.0]), None);
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    fn rows_join_in_their_order() {
        let rows =
            |values: &[f32]| Tensor::from_vec(&[values.len() / 2, 2], values.to_vec()).unwrap();
        let both = joined(&rows(&[1.0, 2.0]), &rows(&[3.0, 4.0, 5.0, 6.0])).unwrap();
        assert_eq!(both.shape(), [3, 2]);
        assert_eq!(both.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let other = Tensor::from_vec(&[1, 3], vec![0.0_f32; 3]).unwrap();
        assert!(joined(&rows(&[1.0, 2.0]), &other).is_err());
    }
}
