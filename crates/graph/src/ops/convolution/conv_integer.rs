//! `ConvInteger`: convolution of 8-bit integers into 32-bit ones.

use galatea_tensor::{DataType, Tensor};

use super::conv::{Conv, WidenedConv};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `ConvInteger`: inputs `x`, `w` and optionally their zero points; that of the weights may
/// be one number or one for every output channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvInteger {
    /// The convolution.
    pub conv: Conv,
}

impl ConvInteger {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { conv: Conv::read(context, false)? }))
    }
}

/// 8-bit values less their zero points: exact, as every sum of their products that memory can hold.
pub(super) fn centred(
    tensor: &Tensor,
    zero: Option<&Tensor>,
    channels: usize,
) -> Result<Vec<f64>, OpError> {
    if !matches!(tensor.dtype(), DataType::Int8 | DataType::Uint8) {
        return Err(OpError::new(format!("type {}, expected INT8 or UINT8", tensor.dtype())));
    }
    let values = tensor.to_i64_vec()?;
    let zeros = zero.map_or_else(|| Ok(vec![0]), Tensor::to_i64_vec)?;
    if zeros.len() != 1 && zeros.len() != channels {
        return Err(OpError::new(format!("{} zero points for {channels} channels", zeros.len())));
    }
    let run = values.len().checked_div(zeros.len()).unwrap_or(0).max(1);
    Ok(values.iter().enumerate().map(|(at, value)| (value - zeros[at / run]) as f64).collect())
}

impl Operator for ConvInteger {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        Ok(vec![self.conv.output_fact(x, w, DataType::Int32)?])
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "whole numbers; beyond 32 bits they saturate"
    )]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let channels = w.shape().first().copied().unwrap_or(0);
        let operands = WidenedConv {
            x: centred(x, inputs.optional(2), 1)?,
            x_shape: x.shape().to_vec(),
            w: centred(w, inputs.optional(3), channels)?,
            w_shape: w.shape().to_vec(),
        };
        let (shape, result) = self.conv.convolve(&operands, None)?;
        let result: Vec<i32> = result.into_iter().map(|value| value as i32).collect();
        Ok(vec![Tensor::from_vec(&shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};
    use galatea_tensor::Tensor;

    #[test]
    fn zero_points_are_taken_away_first() {
        let x = tensor(&[1, 1, 3, 3], &[2_u8, 3, 4, 5, 6, 7, 8, 9, 10]);
        let w = tensor(&[1, 1, 2, 2], &[1_u8; 4]);
        let zero = Tensor::scalar(1_u8);
        let result = one("ConvInteger", 10, &attributes([]), &[&x, &w, &zero]);
        assert_eq!(result, tensor(&[1, 1, 2, 2], &[12_i32, 16, 24, 28]));
        let zeros = tensor(&[3], &[1_u8; 3]);
        let inputs = [Some(&x), Some(&w), Some(&zero), Some(&zeros)];
        assert!(run("ConvInteger", 10, &attributes([]), &inputs, 1).is_err());
    }
}
