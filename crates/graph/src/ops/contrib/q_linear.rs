//! `QLinearAdd` and its kin: operators on floats between quantised tensors.

use std::any::Any;
use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::{Activation, ActivationKind, Softmax};
use crate::ops::logic::Where;
use crate::ops::math::{Binary, BinaryKind};
use crate::ops::pooling::{AveragePool, GlobalAveragePool};
use crate::ops::reduce::{Reduce, ReduceKind};
use crate::ops::shape::Concat;
use crate::ops::values::{
    expect_type, floats, from_floats, from_integers, integer_range, integers,
};

/// Where a quantised tensor and its parameters are among the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QuantizedOperandInputs {
    /// The tensor.
    at: usize,
    /// Its scale.
    scale: usize,
    /// Its zero point; 0 if absent.
    zero: usize,
}

const fn place(at: usize) -> QuantizedOperandInputs {
    QuantizedOperandInputs { at, scale: at + 1, zero: at + 2 }
}

/// An operator on floats whose operands are `(x − zero point) · scale` of integers of 8 or 16 bits,
/// and whose result is divided by a scale, rounded (ties to even), moved by a zero point and
/// limited to its type.
#[derive(Debug)]
pub struct QLinear {
    inner: Arc<dyn Operator>,
    /// Operands of the inner operator; the first `plain` inputs are its own and come first.
    operands: Vec<QuantizedOperandInputs>,
    plain: usize,
    /// The type of the floats: FP32 where ONNX Runtime rounds to it in between, FP64 where it combines the scales.
    floats: DataType,
    /// Scale and zero point of the result.
    result: (usize, usize),
}

type ParsedQLinear = Result<Box<dyn Operator>, OpError>;

impl QLinear {
    /// The operator between the floats, if it is of this type.
    #[must_use]
    pub fn inner<T: Operator>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.inner;
        any.downcast_ref()
    }

    /// The operator between the floats.
    #[must_use]
    pub fn between(&self) -> &Arc<dyn Operator> {
        &self.inner
    }

    /// Where the operands, their scales and their zero points are among the inputs.
    pub fn operands(&self) -> impl Iterator<Item = [usize; 3]> {
        self.operands.iter().map(|place| [place.at, place.scale, place.zero])
    }

    /// Where scale and zero point of the result are among the inputs.
    #[must_use]
    pub fn result(&self) -> (usize, usize) {
        self.result
    }

    fn unary(inner: Box<dyn Operator>, floats: DataType) -> ParsedQLinear {
        let inner = Arc::from(inner);
        let operands = vec![place(0)];
        Ok(Box::new(Self { inner, operands, plain: 0, floats, result: (3, 4) }))
    }

    /// A binary operator with broadcasting.
    pub(crate) fn binary(kind: BinaryKind) -> ParsedQLinear {
        let operands = vec![place(0), place(3)];
        let inner = Arc::new(Binary { kind });
        let floats = DataType::Fp64;
        Ok(Box::new(Self { inner, operands, plain: 0, floats, result: (6, 7) }))
    }

    pub(super) fn leaky_relu(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let alpha = context.attributes.float_or("alpha", 0.01)?;
        let kind = ActivationKind::LeakyRelu { alpha };
        Self::unary(Box::new(Activation { kind }), DataType::Fp32)
    }

    pub(super) fn sigmoid(_: &mut ParseContext<'_>) -> ParsedQLinear {
        Self::unary(Box::new(Activation { kind: ActivationKind::Sigmoid }), DataType::Fp32)
    }

    pub(super) fn softmax(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let axis = context.attributes.int_or("axis", -1)?;
        let opset = context.attributes.int("opset")?;
        let opset = opset.ok_or_else(|| OpError::new("attribute 'opset' is missing"))?;
        Self::unary(Box::new(Softmax { axis, flatten: opset < 13 }), DataType::Fp64)
    }

    pub(super) fn average_pool(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Self::unary(AveragePool::read(context, channels_last)?, DataType::Fp64)
    }

    pub(super) fn global_average_pool(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Self::unary(Box::new(GlobalAveragePool { channels_last }), DataType::Fp64)
    }

    pub(super) fn reduce_mean(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let axes = context.attributes.ints("axes")?;
        let keepdims = context.attributes.flag("keepdims", true)?;
        let kind = ReduceKind::Mean;
        let reduce = Reduce { kind, axes, keepdims, noop_with_empty_axes: false };
        Self::unary(Box::new(reduce), DataType::Fp64)
    }

    pub(super) fn select(_: &mut ParseContext<'_>) -> ParsedQLinear {
        let operands = vec![place(1), place(4)];
        let (inner, floats) = (Arc::new(Where), DataType::Fp32);
        Ok(Box::new(Self { inner, operands, plain: 1, floats, result: (7, 8) }))
    }

    pub(super) fn concat(context: &mut ParseContext<'_>) -> ParsedQLinear {
        let axis = context.attributes.int("axis")?;
        let axis = axis.ok_or_else(|| OpError::new("attribute 'axis' is missing"))?;
        let tensors = context.inputs.saturating_sub(2);
        if tensors == 0 || !tensors.is_multiple_of(3) {
            return Err(OpError::new(format!(
                "{} inputs, expected scale and zero point of the result and three for each tensor",
                context.inputs
            )));
        }
        let operands = (0..tensors / 3).map(|index| place(2 + 3 * index)).collect();
        let (inner, floats) = (Arc::new(Concat { axis }), DataType::Fp32);
        Ok(Box::new(Self { inner, operands, plain: 0, floats, result: (0, 1) }))
    }
}

pub(super) fn expect_quantised(dtype: DataType) -> Result<(), OpError> {
    let narrow = |dtype: DataType| dtype.is_integer() && dtype.size_bytes().is_some_and(|n| n <= 2);
    expect_type("the input", dtype, narrow, "an 8- or 16-bit integer")
}

fn number(tensor: &Tensor, what: &str) -> Result<f64, OpError> {
    match floats(tensor)?[..] {
        [one] => Ok(one),
        _ => Err(OpError::new(format!(
            "{what} has shape {:?}, expected one element",
            tensor.shape()
        ))),
    }
}

fn zero_point(input: Option<&Tensor>) -> Result<i128, OpError> {
    let Some(tensor) = input else { return Ok(0) };
    match integers(tensor)?[..] {
        [one] => Ok(one),
        _ => Err(OpError::new(format!("a zero point of shape {:?}", tensor.shape()))),
    }
}

#[allow(clippy::cast_precision_loss, reason = "integers of 16 bits and fewer")]
fn dequantised(
    inputs: OperatorInputs<'_, Tensor>,
    place: QuantizedOperandInputs,
    dtype: DataType,
) -> Result<Tensor, OpError> {
    let tensor = inputs.required(place.at)?;
    expect_quantised(tensor.dtype())?;
    let scale = number(inputs.required(place.scale)?, "a scale")?;
    let zero = zero_point(inputs.optional(place.zero))?;
    let all = integers(tensor)?.into_iter().map(|value| (value - zero) as f64 * scale).collect();
    from_floats(dtype, tensor.shape(), all)
}

impl Operator for QLinear {
    /// Returns no attributes for an operator with two operands followed by a result; `None` for all
    /// others.
    fn attributes(&self) -> Option<Attributes> {
        (self.operands.len() == 2 && self.result == (6, 7)).then(Attributes::new)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let mut facts: Vec<Fact> = Vec::new();
        for plain in 0..self.plain {
            facts.push(inputs.required(plain)?.clone());
        }
        let first = inputs.required(self.operands.first().map_or(0, |place| place.at))?.dtype;
        for place in &self.operands {
            let fact = inputs.required(place.at)?;
            expect_quantised(fact.dtype)?;
            facts.push(Fact::shaped(self.floats, fact.shape.clone()));
        }
        let dtype = inputs.optional(self.result.1).map_or(first, |zero| zero.dtype);
        expect_quantised(dtype)?;
        let facts: Vec<Option<&Fact>> = facts.iter().map(Some).collect();
        let result = self.inner.infer(OperatorInputs::new(&facts))?.remove(0);
        Ok(vec![Fact::shaped(dtype, result.shape)])
    }

    #[allow(clippy::cast_possible_truncation, reason = "the result is limited to its type")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let mut tensors: Vec<Tensor> = Vec::new();
        for plain in 0..self.plain {
            tensors.push(inputs.required(plain)?.clone());
        }
        for &place in &self.operands {
            tensors.push(dequantised(inputs, place, self.floats)?);
        }
        let first = inputs.required(self.operands.first().map_or(0, |place| place.at))?.dtype();
        let all: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
        let result = self.inner.reference(OperatorInputs::new(&all))?.remove(0);
        let dtype = inputs.optional(self.result.1).map_or(first, Tensor::dtype);
        expect_quantised(dtype)?;
        let scale = number(inputs.required(self.result.0)?, "a scale")?;
        let zero = zero_point(inputs.optional(self.result.1))?;
        let (low, high) = integer_range(dtype).unwrap_or_default();
        let single = self.floats == DataType::Fp32;
        let quantise = |value: f64| {
            let quotient =
                if single { (value as f32 / scale as f32).into() } else { value / scale };
            let rounded = quotient.round_ties_even() as i64;
            (i128::from(rounded) + zero).clamp(low, high)
        };
        let all: Vec<i128> = floats(&result)?.into_iter().map(quantise).collect();
        Ok(vec![from_integers(dtype, result.shape(), &all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn sums_are_taken_between_the_scales() {
        let a = tensor(&[2], &[10_u8, 255]);
        let b = tensor(&[1], &[4_u8]);
        let half = Tensor::scalar(0.5_f32);
        let two = Tensor::scalar(2.0_f32);
        let zero = Tensor::scalar(2_u8);
        let inputs = [
            Some(&a),
            Some(&half),
            Some(&zero),
            Some(&b),
            Some(&two),
            None,
            Some(&half),
            Some(&zero),
        ];
        let found = run("com.microsoft:QLinearAdd", 1, &attributes([]), &inputs, 1).unwrap();
        // (8 · 0.5 + 4 · 2) / 0.5 + 2, and beyond the type.
        assert_eq!(found[0], tensor(&[2], &[26_u8, 255]));
    }

    #[test]
    fn parts_keep_their_value_and_not_their_number() {
        let a = tensor(&[1, 1], &[4_i8]);
        let b = tensor(&[1, 1], &[-3_i8]);
        let half = Tensor::scalar(0.5_f32);
        let one = Tensor::scalar(1.0_f32);
        let zero = Tensor::scalar(0_i8);
        let inputs = [&one, &zero, &a, &half, &zero, &b, &one, &zero].map(Some);
        let list = attributes([("axis", int(1))]);
        let found = run("com.microsoft:QLinearConcat", 1, &list, &inputs, 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 2], &[2_i8, -3]));
        assert!(run("com.microsoft:QLinearConcat", 1, &list, &inputs[..7], 1).is_err());
    }
}
