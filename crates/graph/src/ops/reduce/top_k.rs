//! `TopK`: the largest or smallest elements along an axis.

use std::cmp::Ordering;

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::axis as find_axis;
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{TensorValues, expect_number};

/// The `k` largest or smallest elements along an axis and their positions (`INT64`). Of equal
/// elements the first come first; a NaN counts as larger than any number. `k` is an attribute
/// before version 10 and the second input from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    /// The axis; negative ones count from the end.
    pub axis: i64,
    /// How many, where it is an attribute.
    pub k: Option<i64>,
    /// The largest rather than the smallest.
    pub largest: bool,
    /// True if the order matters; results here are sorted in any case.
    pub sorted: bool,
}

impl TopK {
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", -1)?;
        let k = context.attributes.int("k")?;
        if k.is_none() {
            return Err(OpError::new("attribute 'k' is missing"));
        }
        Ok(Box::new(Self { axis, k, largest: true, sorted: true }))
    }

    pub(super) fn parse_input(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", -1)?;
        let newer = context.opset >= 11;
        let largest = !newer || context.attributes.flag("largest", true)?;
        let sorted = !newer || context.attributes.flag("sorted", true)?;
        Ok(Box::new(Self { axis, k: None, largest, sorted }))
    }

    fn count(&self, input: Option<Vec<i64>>) -> Result<Option<usize>, OpError> {
        let k = match input {
            Some(all) => match all[..] {
                [k] => Some(k),
                _ => return Err(OpError::new(format!("k has {} elements, expected 1", all.len()))),
            },
            None => self.k,
        };
        let negative = |k| OpError::new(format!("k is {k}, expected 0 or more"));
        k.map(|k| usize::try_from(k).map_err(|_| negative(k))).transpose()
    }

    /// Elements (as indices into the tensor) and positions along the axis, in the order of the
    /// result.
    fn choose(
        &self,
        lanes: AxisLanes,
        k: usize,
        order: &dyn Fn(usize, usize) -> Ordering,
    ) -> (Vec<usize>, Vec<i64>) {
        let result = AxisLanes { len: k, ..lanes };
        let count = result.outer * result.len * result.inner;
        let mut from = vec![0; count];
        let mut positions = vec![0; count];
        for (start, target) in lanes.starts().zip(result.starts()) {
            let mut ranked: Vec<(usize, i64)> = lanes.lane(start).zip(0..).collect();
            // The sort is stable, so equal elements keep their order either way.
            ranked.sort_by(|a, b| if self.largest { order(b.0, a.0) } else { order(a.0, b.0) });
            for ((index, position), slot) in ranked.into_iter().zip(result.lane(target)) {
                from[slot] = index;
                positions[slot] = position;
            }
        }
        (from, positions)
    }
}

fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Operator for TopK {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype)?;
        let known = match inputs.optional(1) {
            Some(fact) => fact.lengths().and_then(|all| all.first().cloned()),
            None => self.count(None)?.map(Dim::Known),
        };
        let dims = |dims: &Vec<Dim>| {
            let axis = find_axis(self.axis, dims.len())?;
            let k = known.clone().unwrap_or(Dim::Unknown);
            if let (Some(k), Some(len)) = (k.known(), dims[axis].known())
                && k > len
            {
                return Err(OpError::new(format!("k is {k}, axis {axis} has only {len}")));
            }
            let mut dims = dims.clone();
            dims[axis] = k;
            Ok(dims)
        };
        let shape = x.shape.as_ref().map(dims).transpose()?;
        let fact = |dtype| Fact::shaped(dtype, shape.clone());
        Ok(vec![fact(x.dtype), fact(DataType::Int64)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype())?;
        let k = self.count(inputs.optional(1).map(Tensor::to_i64_vec).transpose()?)?;
        let k = k.ok_or_else(|| OpError::new("k is missing"))?;
        let axis = find_axis(self.axis, x.rank())?;
        let lanes = AxisLanes::along(x.shape(), axis);
        if k > lanes.len {
            return Err(OpError::new(format!("k is {k}, axis {axis} has only {}", lanes.len)));
        }
        let (values, positions) = match TensorValues::read(x)? {
            TensorValues::Floats(all) => {
                let (from, at) = self.choose(lanes, k, &|a, b| float_order(all[a], all[b]));
                (TensorValues::Floats(from.into_iter().map(|index| all[index]).collect()), at)
            }
            TensorValues::Integers(all) => {
                let (from, at) = self.choose(lanes, k, &|a, b| all[a].cmp(&all[b]));
                (TensorValues::Integers(from.into_iter().map(|index| all[index]).collect()), at)
            }
            other => (other, Vec::new()),
        };
        let mut shape = x.shape().to_vec();
        shape[axis] = k;
        Ok(vec![values.write(x.dtype(), &shape)?, Tensor::from_vec(&shape, positions)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn the_largest_come_first_and_ties_keep_their_order() {
        let x = tensor(&[2, 4], &[1.0_f32, 3.0, 3.0, 0.0, 4.0, 9.0, 8.0, 9.0]);
        let k = Tensor::vector(vec![2_i64]);
        let found = run("TopK", 11, &attributes([]), &[Some(&x), Some(&k)], 2).unwrap();
        assert_eq!(found[0], tensor(&[2, 2], &[3.0_f32, 3.0, 9.0, 9.0]));
        assert_eq!(found[1], tensor(&[2, 2], &[1_i64, 2, 1, 3]));
    }

    #[test]
    fn the_smallest_along_another_axis_and_k_as_an_attribute() {
        let x = tensor(&[2, 2], &[5_i32, 1, 2, 7]);
        let k = Tensor::vector(vec![1_i64]);
        let smallest = attributes([("largest", int(0)), ("axis", int(0))]);
        let found = run("TopK", 11, &smallest, &[Some(&x), Some(&k)], 2).unwrap();
        assert_eq!(found[0], tensor(&[1, 2], &[2_i32, 1]));
        assert_eq!(found[1], tensor(&[1, 2], &[1_i64, 0]));
        let found = run("TopK", 1, &attributes([("k", int(1))]), &[Some(&x)], 2).unwrap();
        assert_eq!(found[0], tensor(&[2, 1], &[5_i32, 7]));
    }

    #[test]
    fn more_than_there_are_is_an_error() {
        let x = Tensor::vector(vec![1.0_f32]);
        let k = Tensor::vector(vec![2_i64]);
        assert!(run("TopK", 11, &attributes([]), &[Some(&x), Some(&k)], 2).is_err());
    }
}
