//! `IsInf`: which elements are infinite.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float_of_any_width, floats_of_any_width};

/// Tests each element for an infinity of the wanted signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsInf {
    /// True if −∞ counts.
    pub detect_negative: bool,
    /// True if +∞ counts.
    pub detect_positive: bool,
}

impl IsInf {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let detect_negative = context.attributes.flag("detect_negative", true)?;
        let detect_positive = context.attributes.flag("detect_positive", true)?;
        Ok(Box::new(Self { detect_negative, detect_positive }))
    }
}

impl Operator for IsInf {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float_of_any_width(x.dtype)?;
        let shape = x.shape.clone();
        Ok(vec![Fact::shaped(DataType::Bool, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let counts = |v: f64| {
            (self.detect_positive && v == f64::INFINITY)
                || (self.detect_negative && v == f64::NEG_INFINITY)
        };
        let all = floats_of_any_width(x)?.into_iter().map(counts).collect::<Vec<_>>();
        Ok(vec![Tensor::from_vec(x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one};

    #[test]
    fn each_sign_can_be_left_out() {
        let x = Tensor::vector(vec![f32::NEG_INFINITY, f32::INFINITY, f32::NAN, 1.0]);
        let found = one("IsInf", 10, &attributes([]), &[&x]);
        assert_eq!(found, Tensor::vector(vec![true, true, false, false]));
        let found = one("IsInf", 20, &attributes([("detect_negative", int(0))]), &[&x]);
        assert_eq!(found, Tensor::vector(vec![false, true, false, false]));
    }
}
