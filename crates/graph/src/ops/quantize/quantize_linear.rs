//! `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`: floats as small integers.

#![allow(
    clippy::cast_possible_truncation,
    reason = "operands are single precision or narrower, and results are limited to their type"
)]

use galatea_tensor::{DataType, Tensor};

use super::grouping::Grouping;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Inputs, Operator, ParseContext};
use crate::ops::{bounds, values};

/// ONNX `QuantizeLinear`: inputs `x`, `y_scale` and optionally `y_zero_point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizeLinear {
    /// What shares a scale.
    pub grouping: Grouping,
    /// The type without a zero point (from opset 21 on); `UINT8` if absent.
    pub output_dtype: Option<DataType>,
}

/// ONNX `DequantizeLinear`: inputs `x`, `x_scale` and optionally `x_zero_point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DequantizeLinear {
    /// What shares a scale.
    pub grouping: Grouping,
    /// The type (from opset 23 on); that of the scale if absent.
    pub output_dtype: Option<DataType>,
}

/// ONNX `DynamicQuantizeLinear`: `UINT8` with the scale that the data needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicQuantizeLinear;

/// Refuses types that are not of 8 or 16 bits.
fn check_quantized(dtype: DataType) -> Result<DataType, OpError> {
    match dtype {
        DataType::Int8 | DataType::Uint8 | DataType::Int16 | DataType::Uint16 => Ok(dtype),
        other => Err(OpError::new(format!("type {other}, expected an 8- or 16-bit integer"))),
    }
}

/// `FP32` or narrower values, or 32-bit integers, as single precision: quantisation divides in it.
fn singles(tensor: &Tensor) -> Result<Vec<f32>, OpError> {
    if tensor.dtype() == DataType::Int32 {
        return Ok(tensor.to_vec::<i32>()?.into_iter().map(|value| value as f32).collect());
    }
    Ok(values::floats(tensor)?.into_iter().map(|value| value as f32).collect())
}

/// Zero points, zeros if absent.
fn zero_points(input: Option<&Tensor>, scale: &Tensor) -> Result<Vec<i64>, OpError> {
    let Some(zero) = input else { return Ok(vec![0; scale.elements()]) };
    if zero.elements() != scale.elements() {
        return Err(OpError::new(format!(
            "a zero point of shape {:?} with a scale of shape {:?}",
            zero.shape(),
            scale.shape()
        )));
    }
    Ok(zero.to_i64_vec()?)
}

/// An integer tensor whose elements are limited to the type's range.
fn saturated(
    dtype: DataType,
    shape: &[usize],
    values: impl Iterator<Item = f32>,
) -> Result<Tensor, OpError> {
    // A cast of a float to an integer saturates.
    Ok(match dtype {
        DataType::Int8 => Tensor::from_vec(shape, values.map(|v| v as i8).collect())?,
        DataType::Uint8 => Tensor::from_vec(shape, values.map(|v| v as u8).collect())?,
        DataType::Int16 => Tensor::from_vec(shape, values.map(|v| v as i16).collect())?,
        DataType::Uint16 => Tensor::from_vec(shape, values.map(|v| v as u16).collect())?,
        other => return Err(check_quantized(other).err().unwrap_or_else(|| OpError::new(""))),
    })
}

impl QuantizeLinear {
    /// Reads the attributes; `saturate` is about 8-bit floats and `precision` about how wide the
    /// division is at least.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        context.attributes.ignore("saturate");
        context.attributes.ignore("precision");
        let grouping = Grouping::read(context)?;
        let output = context.attributes.int_or("output_dtype", 0)?;
        let output_dtype = if output == 0 { None } else { context.data_type("output_dtype")? };
        Ok(Box::new(Self { grouping, output_dtype }))
    }

    fn dtype(&self, zero_point: Option<DataType>) -> Result<DataType, OpError> {
        check_quantized(zero_point.or(self.output_dtype).unwrap_or(DataType::Uint8))
    }
}

impl Operator for QuantizeLinear {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let dtype = self.dtype(inputs.optional(2).map(|fact| fact.dtype))?;
        Ok(vec![Fact::shaped(dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (data, scale) = (inputs.required(0)?, inputs.required(1)?);
        let dtype = self.dtype(inputs.optional(2).map(Tensor::dtype))?;
        let places = self.grouping.places(data.shape(), scale)?;
        let zeros = zero_points(inputs.optional(2), scale)?;
        let scales = singles(scale)?;
        bounds::bounded(DataType::Fp64, data.shape())?;
        let all = singles(data)?;
        let quantized = all.iter().enumerate().map(|(at, value)| {
            let place = places.of(at);
            (value / scales[place]).round_ties_even() + zeros[place] as f32
        });
        Ok(vec![saturated(dtype, data.shape(), quantized)?])
    }
}

impl DequantizeLinear {
    /// Reads the attributes.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let grouping = Grouping::read(context)?;
        let output = context.attributes.int_or("output_dtype", 0)?;
        let output_dtype = if output == 0 { None } else { context.data_type("output_dtype")? };
        Ok(Box::new(Self { grouping, output_dtype }))
    }
}

impl Operator for DequantizeLinear {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let (data, scale) = (inputs.required(0)?, inputs.required(1)?);
        if data.dtype != DataType::Int32 {
            check_quantized(data.dtype)?;
        }
        let dtype = self.output_dtype.unwrap_or(scale.dtype);
        values::expect_float(dtype)?;
        Ok(vec![Fact::shaped(dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (data, scale) = (inputs.required(0)?, inputs.required(1)?);
        if data.dtype() != DataType::Int32 {
            check_quantized(data.dtype())?;
        }
        let places = self.grouping.places(data.shape(), scale)?;
        let zeros = zero_points(inputs.optional(2), scale)?;
        let scales = values::floats(scale)?;
        bounds::bounded(DataType::Fp64, data.shape())?;
        let all = data.to_i64_vec()?;
        let result = all.iter().enumerate().map(|(at, value)| {
            let place = places.of(at);
            (value - zeros[place]) as f64 * scales[place]
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
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let scalar = |dtype| Fact::new(dtype, Vec::<Dim>::new());
        let dtype = DataType::Uint8;
        let quantized = Fact::shaped(dtype, data.shape.clone());
        Ok(vec![quantized, scalar(DataType::Fp32), scalar(DataType::Uint8)])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let all = data.to_vec::<f32>()?;
        let (low, high) =
            all.iter().fold((0_f32, 0_f32), |(low, high), &x| (low.min(x), high.max(x)));
        // Data that is zero everywhere fits any scale.
        let scale = if high > low { (high - low) / 255.0 } else { 1.0 };
        let zero = (-low / scale).round_ties_even().clamp(0.0, 255.0);
        let quantized = all.iter().map(|value| (value / scale).round_ties_even() + zero);
        Ok(vec![
            saturated(DataType::Uint8, data.shape(), quantized)?,
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
    fn values_round_to_even_and_saturate() {
        let data = tensor(&[6], &[0_f32, 2.0, 3.0, 1000.0, -254.0, -1000.0]);
        let (scale, zero) = (Tensor::scalar(2_f32), Tensor::scalar(128_u8));
        let result = one("QuantizeLinear", 13, &attributes([]), &[&data, &scale, &zero]);
        assert_eq!(result, tensor(&[6], &[128_u8, 129, 130, 255, 1, 0]));
        let back = one("DequantizeLinear", 13, &attributes([]), &[&result, &scale, &zero]);
        assert_eq!(back, tensor(&[6], &[0_f32, 2.0, 4.0, 254.0, -254.0, -256.0]));
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
