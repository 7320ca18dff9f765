//! `IsNaN`: which elements are not a number.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_float, floats};

/// Tests each element for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsNaN;

impl Operator for IsNaN {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let shape = x.shape.clone();
        Ok(vec![Fact::shaped(DataType::Bool, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let all = floats(x)?.into_iter().map(f64::is_nan).collect::<Vec<_>>();
        Ok(vec![Tensor::from_vec(x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::one;

    #[test]
    fn only_a_nan_is_one() {
        let x = Tensor::vector(vec![f32::NAN, f32::INFINITY, 0.0]);
        let found = one("IsNaN", 9, &crate::Attributes::new(), &[&x]);
        assert_eq!(found, Tensor::vector(vec![true, false, false]));
    }
}
