//! Values of 8 bits with scales.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::LoweringRow;
use super::elementwise::named_type;
use super::lowering::{ProgramLowering, Result, attributes, bounded};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] =
    &[LoweringRow::since(7, "quantize", quantize), LoweringRow::since(7, "dequantize", dequantize)];

/// Scale, zero point and axis.
fn parameters(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    codes: DataType,
) -> Result<(ValueId, ValueId, i64)> {
    let scale = low.required(op, "scale")?;
    let axis = low.int(op, "axis")?.unwrap_or(1);
    let zero = match low.optional(op, "zero_point")? {
        Some(zero) => low.cast(zero, codes)?,
        None => match low.known_shape(scale) {
            Some(shape) => {
                bounded(&shape)?;
                low.constant(galatea_tensor::Tensor::zeros(codes, &shape)?)
            }
            None => return Err(CoreMlError::invalid("the scale's shape is not known")),
        },
    };
    Ok((scale, zero, axis))
}

/// `clip(round(input / scale) + zero point)`.
fn quantize(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "input")?;
    let codes = named_type(low, op, "output_dtype")?;
    let codes = codes.ok_or_else(|| CoreMlError::invalid("input 'output_dtype' is missing"))?;
    let (scale, zero, axis) = parameters(low, op, codes)?;
    let dtype = low.dtype(x)?;
    let scale = low.cast(scale, dtype)?;
    let named = attributes([("axis", axis.into())]);
    let result = low.node("QuantizeLinear", &named, &[x, scale, zero])?;
    low.give(op, &[result])
}

/// `scale · (input - zero point)`.
fn dequantize(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "input")?;
    let codes = low.dtype(x)?;
    let (scale, zero, axis) = parameters(low, op, codes)?;
    let named = attributes([("axis", axis.into())]);
    let result = low.node("DequantizeLinear", &named, &[x, scale, zero])?;
    low.give(op, &[result])
}
