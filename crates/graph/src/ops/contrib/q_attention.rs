//! `QAttention`: `ContribAttention` of a quantised input with quantised weights.

use galatea_tensor::{DataType, Tensor};

use super::attention::ContribAttention;
use super::q_linear::expect_quantised;
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::cast::converted;
use crate::ops::values::{expect_float, floats, from_floats, integers};

/// `QAttention` of domain `com.microsoft`.
///
/// Inputs: the input, the weights, the bias of the projection, the scales of both (that of the
/// weights may have one for each column), optionally a mask of keys, their zero points, and keys
/// and values of the past. Outputs: as of `ContribAttention`.
#[derive(Clone, Debug, PartialEq)]
pub struct QAttention {
    /// The attention that is computed, on floats.
    pub attention: ContribAttention,
}

impl QAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { attention: ContribAttention::read(context)? }))
    }
}

/// `(x − zero point) · scale`, one of each for all or for a position of the last axis.
#[allow(clippy::cast_precision_loss, reason = "integers of 16 bits and fewer")]
pub(super) fn dequantised(
    tensor: &Tensor,
    scale: &Tensor,
    zero: Option<&Tensor>,
) -> Result<Tensor, OpError> {
    expect_quantised(tensor.dtype())?;
    let columns = tensor.shape().last().copied().unwrap_or(1);
    let scales = floats(scale)?;
    let zeros = zero.map_or(Ok(vec![0]), integers)?;
    let fits = |len: usize| len == 1 || len == columns;
    if !fits(scales.len()) || !fits(zeros.len()) {
        return Err(OpError::new(format!(
            "{} scales and {} zero points for {columns} columns",
            scales.len(),
            zeros.len()
        )));
    }
    let value = |(at, value): (usize, i128)| {
        let column = at % columns.max(1);
        let zero = zeros[column.min(zeros.len() - 1)];
        (value - zero) as f64 * scales[column.min(scales.len() - 1)]
    };
    let all = integers(tensor)?.into_iter().enumerate().map(value).collect();
    from_floats(DataType::Fp32, tensor.shape(), all)
}

/// A float input as FP32, which the attention is computed in.
fn single(tensor: Option<&Tensor>) -> Result<Option<Tensor>, OpError> {
    tensor.map(|tensor| converted(tensor, DataType::Fp32)).transpose()
}

impl Operator for QAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let wide = |fact: &Fact| Fact::shaped(DataType::Fp32, fact.shape.clone());
        let quantised = |index: usize| -> Result<Fact, OpError> {
            let fact = inputs.required(index)?;
            expect_quantised(fact.dtype)?;
            Ok(wide(fact))
        };
        let (x, w) = (quantised(0)?, quantised(1)?);
        let scale = inputs.required(3)?.dtype;
        expect_float(scale)?;
        let (bias, past) = (inputs.optional(2).map(wide), inputs.optional(8).map(wide));
        let mask = inputs.optional(5);
        let all = [Some(&x), Some(&w), bias.as_ref(), mask, past.as_ref()];
        let found = self.attention.infer(OperatorInputs::new(&all))?;
        Ok(found.into_iter().map(|fact| Fact { dtype: scale, ..fact }).collect())
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let scale = inputs.required(3)?;
        let x = dequantised(inputs.required(0)?, scale, inputs.optional(6))?;
        let w = dequantised(inputs.required(1)?, inputs.required(4)?, inputs.optional(7))?;
        let (bias, past) = (single(inputs.optional(2))?, single(inputs.optional(8))?);
        let all = [Some(&x), Some(&w), bias.as_ref(), inputs.optional(5), past.as_ref()];
        let found = self.attention.reference(OperatorInputs::new(&all))?;
        collected(&mut found.iter().map(|tensor| converted(tensor, scale.dtype())))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};
    use galatea_tensor::{DataType, Tensor};

    use crate::ops::cast::converted;

    #[test]
    fn values_are_taken_between_their_scales() {
        let x = tensor(&[1, 1, 1], &[130_u8]);
        let w = tensor(&[1, 3], &[0_i8, 0, 4]);
        let bias = tensor(&[3], &[0.0_f32, 0.0, 1.0]);
        let zero = Tensor::scalar(128_u8);
        let first = Tensor::scalar(0.5_f32);
        let scales = tensor(&[3], &[1.0_f32, 1.0, 2.0]);
        let inputs =
            [Some(&x), Some(&w), Some(&bias), Some(&first), Some(&scales), None, Some(&zero)];
        let list = attributes([("num_heads", int(1))]);
        let all = run("com.microsoft:QAttention", 1, &list, &inputs, 1).unwrap();
        // 2 · 0.5 times 4 · 2, and the bias.
        assert_eq!(all[0], tensor(&[1, 1, 1], &[9.0_f32]));
        // Scales of FP16 give FP16.
        let half = |tensor: &Tensor| converted(tensor, DataType::Fp16).unwrap();
        let (bias, first, scales) = (half(&bias), half(&first), half(&scales));
        let inputs =
            [Some(&x), Some(&w), Some(&bias), Some(&first), Some(&scales), None, Some(&zero)];
        let all = run("com.microsoft:QAttention", 1, &list, &inputs, 1).unwrap();
        assert_eq!(all[0], half(&tensor(&[1, 1, 1], &[9.0_f32])));
    }
}
