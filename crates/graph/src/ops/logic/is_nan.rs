//! `IsNaN`: which elements are not a number.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_float_of_any_width, floats_of_any_width};

/// Tests each element for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsNaN;

impl Operator for IsNaN {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float_of_any_width(x.dtype)?;
        let shape = x.shape.clone();
        Ok(vec![Fact::shaped(DataType::Bool, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let all = floats_of_any_width(x)?.into_iter().map(f64::is_nan).collect::<Vec<_>>();
        Ok(vec![Tensor::from_vec(x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::one;
    use galatea_tensor::SmallType;

    #[test]
    fn floats_of_8_bits_have_nans_too() {
        let small = DataType::Small(SmallType::Float8E5M2);
        let x = Tensor::zeros(small, &[2]).unwrap();
        let found = one("IsNaN", 20, &crate::Attributes::new(), &[&x]);
        assert_eq!(found, Tensor::vector(vec![false, false]));
        let whole = Tensor::zeros(DataType::Small(SmallType::Int4), &[2]).unwrap();
        let error = IsNaN.infer(OperatorInputs::new(&[Some(&Fact::fixed(whole.dtype(), &[2]))]));
        assert!(error.is_err());
    }

    #[test]
    fn only_a_nan_is_one() {
        let x = Tensor::vector(vec![f32::NAN, f32::INFINITY, 0.0]);
        let found = one("IsNaN", 9, &crate::Attributes::new(), &[&x]);
        assert_eq!(found, Tensor::vector(vec![true, false, false]));
    }
}
