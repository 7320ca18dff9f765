//! `LpNormalization`: vectors of length 1.

use galatea_tensor::Tensor;

use super::moments::same_as;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::axis as find_axis;
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{expect_float, floats, from_floats};

/// Elements divided by the norm of their vector along an axis; a vector of zeros stays one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpNormalization {
    /// The axis; negative ones count from the end.
    pub axis: i64,
    /// 1 for the sum of absolute values, 2 for the Euclidean norm.
    pub p: i64,
}

impl LpNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", -1)?;
        let p = context.attributes.int_or("p", 2)?;
        if !matches!(p, 1 | 2) {
            return Err(OpError::new(format!("p is {p}, expected 1 or 2")));
        }
        Ok(Box::new(Self { axis, p }))
    }
}

impl Operator for LpNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if let Some(rank) = x.rank() {
            find_axis(self.axis, rank)?;
        }
        Ok(same_as(x))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let lanes = AxisLanes::along(x.shape(), find_axis(self.axis, x.rank())?);
        let mut all = floats(x)?;
        for start in lanes.starts() {
            let vector = lanes.lane(start).map(|index| all[index]);
            let norm = match self.p {
                1 => vector.map(f64::abs).sum::<f64>(),
                _ => vector.map(|v| v * v).sum::<f64>().sqrt(),
            };
            if norm != 0.0 {
                lanes.lane(start).for_each(|index| all[index] /= norm);
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, tensor};

    #[test]
    fn vectors_get_length_one_and_zeros_stay() {
        let x = tensor(&[2, 2], &[3.0_f32, 4.0, 0.0, 0.0]);
        let found = one("LpNormalization", 1, &attributes([]), &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[0.6_f32, 0.8, 0.0, 0.0]));
        let columns = attributes([("axis", int(0)), ("p", int(1))]);
        let x = tensor(&[2, 2], &[3.0_f32, -1.0, 1.0, 0.0]);
        let found = one("LpNormalization", 22, &columns, &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[0.75_f32, -1.0, 0.25, 0.0]));
    }
}
