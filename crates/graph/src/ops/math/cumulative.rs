//! Running sums and products along an axis.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::axis;
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{TensorValues, expect_number};

/// Operation of an accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CumulativeKind {
    /// `CumSum`.
    Sum,
    /// `CumProd`.
    Product,
}

/// `CumSum` and `CumProd`: the first input accumulated along the axis that the second one names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cumulative {
    /// Sum or product.
    pub kind: CumulativeKind,
    /// True if an element's own value is left out of its result.
    pub exclusive: bool,
    /// True to start at the end of the axis.
    pub reverse: bool,
}

impl Cumulative {
    pub(super) fn parse(
        kind: CumulativeKind,
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let exclusive = context.attributes.flag("exclusive", false)?;
        let reverse = context.attributes.flag("reverse", false)?;
        Ok(Box::new(Self { kind, exclusive, reverse }))
    }

    /// Accumulates in place along every lane.
    fn run<T: Copy>(&self, all: &mut [T], lanes: AxisLanes, start: T, join: impl Fn(T, T) -> T) {
        for first in lanes.starts() {
            let mut total = start;
            let mut step = |index: usize| {
                let next = join(total, all[index]);
                all[index] = if self.exclusive { total } else { next };
                total = next;
            };
            if self.reverse {
                lanes.lane(first).rev().for_each(&mut step);
            } else {
                lanes.lane(first).for_each(&mut step);
            }
        }
    }
}

impl Operator for Cumulative {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype)?;
        if let (Some([at]), Some(rank)) = (inputs.required(1)?.integers().as_deref(), x.rank()) {
            axis(*at, rank)?;
        }
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype())?;
        let [at] = inputs.required(1)?.to_i64_vec()?[..] else {
            return Err(OpError::new("the axis is not a single integer"));
        };
        let lanes = AxisLanes::along(x.shape(), axis(at, x.rank())?);
        let mut values = TensorValues::read(x)?;
        match (&mut values, self.kind) {
            (TensorValues::Floats(all), CumulativeKind::Sum) => {
                self.run(all, lanes, 0.0, |a, b| a + b)
            }
            (TensorValues::Floats(all), CumulativeKind::Product) => {
                self.run(all, lanes, 1.0, |a, b| a * b);
            }
            (TensorValues::Integers(all), CumulativeKind::Sum) => {
                self.run(all, lanes, 0, i128::wrapping_add);
            }
            (TensorValues::Integers(all), CumulativeKind::Product) => {
                self.run(all, lanes, 1, i128::wrapping_mul);
            }
            _ => {}
        }
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(exclusive: bool, reverse: bool, axis: i32) -> Vec<f32> {
        let x = Tensor::from_vec(&[2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let op = Cumulative { kind: CumulativeKind::Sum, exclusive, reverse };
        let axis = Tensor::scalar(axis);
        let mut outputs = op.reference(OperatorInputs::new(&[Some(&x), Some(&axis)])).unwrap();
        outputs.remove(0).to_vec().unwrap()
    }

    #[test]
    fn sums_run_either_way_with_or_without_the_element() {
        assert_eq!(sum(false, false, 1), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
        assert_eq!(sum(true, false, -1), [0.0, 1.0, 3.0, 0.0, 4.0, 9.0]);
        assert_eq!(sum(false, true, 1), [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
        assert_eq!(sum(true, true, 0), [4.0, 5.0, 6.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn products_wrap() {
        let x = Tensor::vector(vec![100_u8, 3, 2]);
        let op = Cumulative { kind: CumulativeKind::Product, exclusive: false, reverse: false };
        let axis = Tensor::scalar(0_i64);
        let outputs = op.reference(OperatorInputs::new(&[Some(&x), Some(&axis)])).unwrap();
        assert_eq!(outputs[0], Tensor::vector(vec![100_u8, 44, 88]));
    }
}
