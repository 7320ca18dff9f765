//! `QLinearConvAdd`: a quantised convolution and the sum of its result and another one.

use galatea_tensor::Tensor;

use super::conv::Conv;
use super::q_linear_conv::QLinearConv;
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::contrib::QLinear;
use crate::ops::math::BinaryKind;

/// `QLinearConvAdd` of domain `ai.galatea`: inputs 0 to 8 are those of `QLinearConv`, 9 to 11
/// another quantised value of its result's shape with scale and zero point, 12 and 13 scale and zero
/// point of the result. It is `QLinearAdd(QLinearConv(…), input 9)`, rounding in between as the two
/// do.
#[derive(Clone, Debug)]
pub struct QLinearConvAdd {
    /// The convolution; its layout is that of all images.
    pub conv: Conv,
}

impl QLinearConvAdd {
    /// Reads the attributes: those of `Conv` and `channels_last`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Ok(Box::new(Self { conv: Conv::read(context, channels_last)? }))
    }

    fn inner(&self) -> QLinearConv {
        QLinearConv { conv: self.conv.clone() }
    }
}

impl Operator for QLinearConvAdd {
    fn attributes(&self) -> Option<Attributes> {
        let mut all = self.conv.attributes()?;
        all.extend(named([("channels_last", self.conv.channels_last.into())]));
        Some(all)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let zero = inputs.required(13)?.dtype;
        let mut made = self.inner().infer(inputs)?;
        for fact in &mut made {
            fact.dtype = zero;
        }
        Ok(made)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let made = self.inner().reference(inputs)?.remove(0);
        let other = inputs.required(9)?;
        if other.shape() != made.shape() {
            let found = other.shape();
            let wanted = made.shape();
            return Err(OpError::new(format!("a summand of shape {found:?}, expected {wanted:?}")));
        }
        let operands = [
            Some(&made),
            Some(inputs.required(6)?),
            Some(inputs.required(7)?),
            Some(other),
            Some(inputs.required(10)?),
            inputs.optional(11),
            Some(inputs.required(12)?),
            Some(inputs.required(13)?),
        ];
        QLinear::binary(BinaryKind::Add)?.reference(OperatorInputs::new(&operands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn the_sum_is_that_of_the_rounded_result() {
        let x = tensor(&[1, 1, 2, 1], &[3_u8, 5]);
        let w = tensor(&[1, 1, 1, 1], &[1_i8]);
        let one = Tensor::scalar(1.0_f32);
        let half = Tensor::scalar(0.5_f32);
        let none = Tensor::scalar(0_u8);
        let none_signed = Tensor::scalar(0_i8);
        let other = tensor(&[1, 1, 2, 1], &[4_u8, 200]);
        // 3 / 2 and 5 / 2 become 2 and 2 (ties to even), which stand for 4 and 4.
        let two = Tensor::scalar(2.0_f32);
        let last = attributes([("channels_last", int(1))]);
        let inputs: Vec<_> =
            [&x, &one, &none, &w, &one, &none_signed, &two, &none].into_iter().map(Some).collect();
        let rest = [None, Some(&other), Some(&half), Some(&none), Some(&one), Some(&none)];
        let inputs = [inputs, rest.to_vec()].concat();
        let found = run("ai.galatea:QLinearConvAdd", 1, &last, &inputs, 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 1, 2, 1], &[6_u8, 104]));
        let wrong: Vec<_> =
            inputs.iter().enumerate().map(|(i, x)| if i == 9 { Some(&w) } else { *x }).collect();
        assert!(run("ai.galatea:QLinearConvAdd", 1, &last, &wrong, 1).is_err());
    }
}
