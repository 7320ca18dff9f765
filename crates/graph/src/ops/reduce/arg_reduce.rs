//! `ArgMax` and `ArgMin`: where the largest or smallest element is.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::axis as find_axis;
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{TensorValues, expect_number};

/// Which element is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgReduceKind {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// Positions, `INT64`, of the largest or smallest elements along an axis. A NaN beats numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgReduce {
    /// Largest or smallest.
    pub kind: ArgReduceKind,
    /// The axis; negative ones count from the end.
    pub axis: i64,
    /// True if the axis stays, with length 1.
    pub keepdims: bool,
    /// True if the last of equal elements wins rather than the first.
    pub select_last_index: bool,
}

impl ArgReduce {
    /// Returns whether a later element takes the place of the best one so far.
    fn beats<T: PartialOrd>(&self, later: &T, best: &T) -> bool {
        #[allow(clippy::eq_op, reason = "only a NaN differs from itself")]
        let (later_nan, best_nan) = (later != later, best != best);
        if later_nan || best_nan {
            return later_nan && (!best_nan || self.select_last_index);
        }
        let better = match self.kind {
            ArgReduceKind::Max => later > best,
            ArgReduceKind::Min => later < best,
        };
        better || (self.select_last_index && later == best)
    }

    fn positions<T: PartialOrd>(&self, all: &[T], lanes: AxisLanes) -> Vec<i64> {
        let position = |start: usize| {
            let mut best = start;
            let mut at = 0;
            for (position, index) in (0..).zip(lanes.lane(start)) {
                if self.beats(&all[index], &all[best]) && position > 0 {
                    (best, at) = (index, position);
                }
            }
            at
        };
        lanes.starts().map(position).collect()
    }

    fn shape<D: Clone>(&self, shape: &[D], axis: usize, one: D) -> Vec<D> {
        let mut shape = shape.to_vec();
        if self.keepdims {
            shape[axis] = one;
        } else {
            shape.remove(axis);
        }
        shape
    }
}

impl Operator for ArgReduce {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype)?;
        let dims = |dims: &Vec<Dim>| {
            let axis = find_axis(self.axis, dims.len())?;
            Ok::<_, OpError>(self.shape(dims, axis, Dim::Known(1)))
        };
        let shape = x.shape.as_ref().map(dims).transpose()?;
        Ok(vec![Fact::shaped(DataType::Int64, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype())?;
        let axis = find_axis(self.axis, x.rank())?;
        let lanes = AxisLanes::along(x.shape(), axis);
        let others = x.shape().iter().enumerate().filter(|(at, _)| *at != axis);
        if lanes.len == 0 && others.into_iter().all(|(_, len)| *len > 0) {
            return Err(OpError::new(format!("axis {axis} of shape {:?} is empty", x.shape())));
        }
        let found = match TensorValues::read(x)? {
            TensorValues::Floats(all) => self.positions(&all, lanes),
            TensorValues::Integers(all) => self.positions(&all, lanes),
            TensorValues::Bools(_) | TensorValues::Strings(_) => Vec::new(),
        };
        Ok(vec![Tensor::from_vec(&self.shape(x.shape(), axis, 1), found)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, tensor};

    #[test]
    fn the_first_or_the_last_of_equals_wins() {
        let x = tensor(&[2, 3], &[2.0_f32, 2.0, 1.0, 3.0, 10.0, 10.0]);
        let first = attributes([("axis", int(1)), ("keepdims", int(0))]);
        assert_eq!(one("ArgMax", 13, &first, &[&x]), Tensor::vector(vec![0_i64, 1]));
        assert_eq!(one("ArgMin", 7, &first, &[&x]), Tensor::vector(vec![2_i64, 0]));
        let last = attributes([("axis", int(-1)), ("select_last_index", int(1))]);
        assert_eq!(one("ArgMax", 13, &last, &[&x]), tensor(&[2, 1], &[1_i64, 2]));
    }

    #[test]
    fn an_empty_axis_has_no_largest() {
        let x = tensor::<f32>(&[0, 2], &[]);
        let op = ArgReduce {
            kind: ArgReduceKind::Max,
            axis: 0,
            keepdims: true,
            select_last_index: false,
        };
        assert!(op.reference(OperatorInputs::new(&[Some(&x)])).is_err());
    }
}
