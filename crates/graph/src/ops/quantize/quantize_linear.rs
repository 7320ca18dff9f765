//! `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`: floats as small integers.

#![allow(
    clippy::cast_possible_truncation,
    reason = "operands are single precision or narrower, and results are limited to their type"
)]

use galatea_tensor::{DataType, NarrowingRule, OverflowRule, SmallType, Tensor};

use super::grouping::ScaleGrouping;
use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, values};

/// ONNX `QuantizeLinear`: inputs `x`, `y_scale` and optionally `y_zero_point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizeLinear {
    /// The elements that share a scale.
    pub grouping: ScaleGrouping,
    /// The type without a zero point (from opset 21 on); `UINT8` if absent.
    pub output_dtype: Option<DataType>,
    /// How floats become small ones.
    pub overflow: OverflowRule,
}

/// ONNX `DequantizeLinear`: inputs `x`, `x_scale` and optionally `x_zero_point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DequantizeLinear {
    /// The elements that share a scale.
    pub grouping: ScaleGrouping,
    /// The type (from opset 23 on); that of the scale if absent.
    pub output_dtype: Option<DataType>,
}

/// ONNX `DynamicQuantizeLinear`: `UINT8` with the scale that the data needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicQuantizeLinear;

/// Refuses types that no float is quantised to.
fn check_quantized(dtype: DataType) -> Result<DataType, OpError> {
    match dtype {
        DataType::Int8 | DataType::Uint8 | DataType::Int16 | DataType::Uint16 => Ok(dtype),
        DataType::Small(small) if small != SmallType::Float8E8M0 => Ok(dtype),
        other => Err(OpError::new(format!(
            "type {other}, expected an integer of at most 16 bits or a float of at most 8"
        ))),
    }
}

/// `FP32` or narrower values, or 32-bit integers, as single precision: quantisation divides in it.
fn singles(tensor: &Tensor) -> Result<Vec<f32>, OpError> {
    Ok(match tensor.dtype() {
        DataType::Int32 => tensor.to_vec::<i32>()?.into_iter().map(|value| value as f32).collect(),
        DataType::Small(_) => {
            values::small(tensor)?.into_iter().map(|value| value as f32).collect()
        }
        _ => values::floats(tensor)?.into_iter().map(|value| value as f32).collect(),
    })
}

/// Elements of any type that is quantised to, which doubles hold exactly.
fn quantized(tensor: &Tensor) -> Result<Vec<f64>, OpError> {
    match tensor.dtype() {
        DataType::Small(_) => values::small(tensor),
        _ => Ok(values::integers(tensor)?.into_iter().map(|value| value as f64).collect()),
    }
}

/// Zero points, zeros if absent.
fn zero_points(input: Option<&Tensor>, scale: &Tensor) -> Result<Vec<f64>, OpError> {
    let Some(zero) = input else { return Ok(vec![0.0; scale.elements()]) };
    if zero.elements() != scale.elements() {
        return Err(OpError::new(format!(
            "a zero point of shape {:?} with a scale of shape {:?}",
            zero.shape(),
            scale.shape()
        )));
    }
    quantized(zero)
}

/// A tensor whose elements are limited to the type's range.
fn saturated(
    dtype: DataType,
    shape: &[usize],
    values: impl Iterator<Item = f32>,
    overflow: OverflowRule,
) -> Result<Tensor, OpError> {
    // A cast of a float to an integer saturates. A NaN becomes the lowest number, as in ONNX Runtime.
    Ok(match dtype {
        DataType::Int8 => {
            let low = f32::from(i8::MIN);
            Tensor::from_vec(shape, values.map(|v| v.max(low) as i8).collect())?
        }
        DataType::Uint8 => Tensor::from_vec(shape, values.map(|v| v as u8).collect())?,
        DataType::Int16 => {
            let low = f32::from(i16::MIN);
            Tensor::from_vec(shape, values.map(|v| v.max(low) as i16).collect())?
        }
        DataType::Uint16 => Tensor::from_vec(shape, values.map(|v| v as u16).collect())?,
        DataType::Small(small) => {
            let narrowing = NarrowingRule { overflow, ..NarrowingRule::default() };
            let code = |value: f32| match small.integer_range() {
                Some((low, high)) => {
                    let limited = value.max(low.into()).min(high.into());
                    small.encode_integer(limited as i128, narrowing)
                }
                None => small.encode(value.into(), narrowing),
            };
            Tensor::from_bytes(dtype, shape, &values.map(code).collect::<Vec<_>>())?
        }
        other => return Err(check_quantized(other).err().unwrap_or_else(|| OpError::new(""))),
    })
}

impl QuantizeLinear {
    /// Reads the attributes; `precision` is about how wide the division is at least.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let saturate = context.attributes.int_or("saturate", 1)? != 0;
        let overflow = if saturate { OverflowRule::Saturate } else { OverflowRule::Special };
        context.attributes.ignore("precision");
        let grouping = ScaleGrouping::read(context)?;
        let output = context.attributes.int_or("output_dtype", 0)?;
        let output_dtype = if output == 0 { None } else { context.data_type("output_dtype")? };
        Ok(Box::new(Self { grouping, output_dtype, overflow }))
    }

    fn dtype(&self, zero_point: Option<DataType>) -> Result<DataType, OpError> {
        check_quantized(zero_point.or(self.output_dtype).unwrap_or(DataType::Uint8))
    }
}

impl Operator for QuantizeLinear {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let dtype = self.dtype(inputs.optional(2).map(|fact| fact.dtype))?;
        Ok(vec![Fact::shaped(dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let scale = inputs.required(1)?;
        let dtype = self.dtype(inputs.optional(2).map(Tensor::dtype))?;
        let places = self.grouping.places(data.shape(), scale)?;
        let zeros = zero_points(inputs.optional(2), scale)?;
        let scales = singles(scale)?;
        bounds::bounded(DataType::Fp64, data.shape())?;
        let all = singles(data)?;
        let whole = !matches!(dtype, DataType::Small(small) if small.integer_range().is_none());
        let quantized = all.iter().enumerate().map(|(at, value)| {
            let place = places.of(at);
            let quotient = value / scales[place];
            (if whole { quotient.round_ties_even() } else { quotient }) + zeros[place] as f32
        });
        Ok(vec![saturated(dtype, data.shape(), quantized, self.overflow)?])
    }
}

impl DequantizeLinear {
    /// Reads the attributes.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let grouping = ScaleGrouping::read(context)?;
        let output = context.attributes.int_or("output_dtype", 0)?;
        let output_dtype = if output == 0 { None } else { context.data_type("output_dtype")? };
        Ok(Box::new(Self { grouping, output_dtype }))
    }
}

impl Operator for DequantizeLinear {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let scale = inputs.required(1)?;
        if data.dtype != DataType::Int32 {
            check_quantized(data.dtype)?;
        }
        let dtype = self.output_dtype.unwrap_or(scale.dtype);
        values::expect_float(dtype)?;
        Ok(vec![Fact::shaped(dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let scale = inputs.required(1)?;
        if data.dtype() != DataType::Int32 {
            check_quantized(data.dtype())?;
        }
        let places = self.grouping.places(data.shape(), scale)?;
        let zeros = zero_points(inputs.optional(2), scale)?;
        let scales = match scale.dtype() {
            DataType::Small(_) => values::small(scale)?,
            _ => values::floats(scale)?,
        };
        bounds::bounded(DataType::Fp64, data.shape())?;
        let all = quantized(data)?;
        let result = all.iter().enumerate().map(|(at, value)| {
            let place = places.of(at);
            (value - zeros[place]) * scales[place]
        });
        let dtype = self.output_dtype.unwrap_or(scale.dtype());
        Ok(vec![values::from_floats(dtype, data.shape(), result.collect())?])
    }
}

impl DynamicQuantizeLinear {
    /// There are no attributes.
    pub(crate) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for DynamicQuantizeLinear {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let scalar = |dtype| Fact::new(dtype, Vec::<Dim>::new());
        let dtype = DataType::Uint8;
        let quantized = Fact::shaped(dtype, data.shape.clone());
        Ok(vec![quantized, scalar(DataType::Fp32), scalar(DataType::Uint8)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let all = data.to_vec::<f32>()?;
        let (low, high) =
            all.iter().fold((0_f32, 0_f32), |(low, high), &x| (low.min(x), high.max(x)));
        // Data that is zero everywhere fits any scale.
        let scale = if high > low { (high - low) / 255.0 } else { 1.0 };
        let zero = (-low / scale).round_ties_even().clamp(0.0, 255.0);
        let quantized = all.iter().map(|value| (value / scale).round_ties_even() + zero);
        Ok(vec![
            saturated(DataType::Uint8, data.shape(), quantized, OverflowRule::Saturate)?,
            Tensor::scalar(scale),
            Tensor::scalar(zero as u8),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn a_nan_becomes_the_lowest_number() {
        let data = tensor(&[1], &[f32::NAN]);
        let unit = Tensor::scalar(1_f32);
        let zero = Tensor::scalar(5_i8);
        let found = one("QuantizeLinear", 13, &attributes([]), &[&data, &unit, &zero]);
        assert_eq!(found, tensor(&[1], &[-128_i8]));
    }

    #[test]
    fn values_round_to_even_and_saturate() {
        let data = tensor(&[6], &[0_f32, 2.0, 3.0, 1000.0, -254.0, -1000.0]);
        let scale = Tensor::scalar(2_f32);
        let zero = Tensor::scalar(128_u8);
        let result = one("QuantizeLinear", 13, &attributes([]), &[&data, &scale, &zero]);
        assert_eq!(result, tensor(&[6], &[128_u8, 129, 130, 255, 1, 0]));
        let back = one("DequantizeLinear", 13, &attributes([]), &[&result, &scale, &zero]);
        assert_eq!(back, tensor(&[6], &[0_f32, 2.0, 4.0, 254.0, -254.0, -256.0]));
    }

    #[test]
    fn small_types_are_quantised_to_and_from() {
        let data = tensor(&[4], &[0_f32, 3.0, 100.0, -5.0]);
        let scale = Tensor::scalar(2_f32);
        let of = |dtype, codes: &[u8]| {
            Tensor::from_bytes(DataType::Small(dtype), &[codes.len()], codes).unwrap()
        };
        let zero = of(SmallType::Int4, &[1]).reshape(&[]).unwrap();
        let found = one("QuantizeLinear", 21, &attributes([]), &[&data, &scale, &zero]);
        assert_eq!(found, of(SmallType::Int4, &[1, 3, 7, 15]));
        let back = one("DequantizeLinear", 21, &attributes([]), &[&found, &scale, &zero]);
        assert_eq!(back, tensor(&[4], &[0_f32, 4.0, 12.0, -4.0]));
        let zero = of(SmallType::Float8E4M3Fn, &[0]).reshape(&[]).unwrap();
        let found = one("QuantizeLinear", 19, &attributes([]), &[&data, &scale, &zero]);
        assert_eq!(found, of(SmallType::Float8E4M3Fn, &[0, 0x3c, 0x64, 0xc2]));
        let back = one("DequantizeLinear", 19, &attributes([]), &[&found, &scale, &zero]);
        assert_eq!(back, tensor(&[4], &[0_f32, 3.0, 96.0, -5.0]));
        let zero = of(SmallType::Float8E8M0, &[0]).reshape(&[]).unwrap();
        let inputs = [Some(&data), Some(&scale), Some(&zero)];
        assert!(run("QuantizeLinear", 23, &attributes([]), &inputs, 1).is_err());
    }

    #[test]
    fn scales_of_an_axis_and_of_blocks() {
        let data = tensor(&[2, 2], &[2_i8, 4, 6, 8]);
        let scale = tensor(&[2], &[1_f32, 0.5]);
        let rows = attributes([("axis", int(0))]);
        let result = one("DequantizeLinear", 13, &rows, &[&data, &scale]);
        assert_eq!(result, tensor(&[2, 2], &[2_f32, 4.0, 3.0, 4.0]));
        let blocks = attributes([("axis", int(1)), ("block_size", int(2))]);
        let scale = tensor(&[2, 1], &[1_f32, 0.5]);
        assert_eq!(one("DequantizeLinear", 21, &blocks, &[&data, &scale]), result);
        let wrong = tensor(&[3], &[1_f32; 3]);
        assert!(run("DequantizeLinear", 13, &rows, &[Some(&data), Some(&wrong)], 1).is_err());
    }

    #[test]
    fn the_dynamic_scale_spans_the_data_and_zero() {
        let data = tensor(&[6], &[0_f32, 2.0, -3.0, -2.5, 1.34, 0.5]);
        let result = run("DynamicQuantizeLinear", 11, &attributes([]), &[Some(&data)], 3).unwrap();
        assert_eq!(result[0], tensor(&[6], &[153_u8, 255, 0, 26, 221, 179]));
        assert!((result[1].item::<f32>().unwrap() - 0.019_607_844).abs() < 1e-8);
        assert_eq!(result[2].item::<u8>().unwrap(), 153);
        let zeros = tensor(&[2], &[0_f32; 2]);
        let result = run("DynamicQuantizeLinear", 11, &attributes([]), &[Some(&zeros)], 3).unwrap();
        assert_eq!(result[0], tensor(&[2], &[0_u8, 0]));
    }
}
