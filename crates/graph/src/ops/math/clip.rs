//! `Clip`: elements limited to a range.

use galatea_tensor::{DataType, Tensor};
use half::{bf16, f16};

use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{TensorValues, expect_number, expect_same};

/// Elements below a lowest or above a highest value are replaced by it. The bounds are attributes
/// before version 11 and optional scalar inputs from then on; with `min > max` the result is `max`.
/// An absent bound is the lowest or highest finite number of the type, so infinities become it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// The lowest value as an attribute.
    pub min: Option<f32>,
    /// The highest value as an attribute.
    pub max: Option<f32>,
}

/// One bound, in the element type.
#[derive(Clone, Copy)]
enum ClipBound {
    Float(f64),
    Integer(i128),
}

/// The lowest and highest finite number of a float type.
fn finite_ends(dtype: DataType) -> std::ops::Range<f64> {
    let highest = match dtype {
        DataType::Fp32 => f32::MAX.into(),
        DataType::Fp16 => f16::MAX.to_f64(),
        DataType::Bf16 => bf16::MAX.to_f64(),
        _ => f64::MAX,
    };
    -highest..highest
}

impl Clip {
    pub(super) fn parse_attributes(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let min = context.attributes.float("min")?;
        let max = context.attributes.float("max")?;
        Ok(Box::new(Self { min, max }))
    }

    pub(super) fn parse_inputs(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { min: None, max: None }))
    }

    fn bound(input: Option<&Tensor>, dtype: DataType) -> Result<Option<ClipBound>, OpError> {
        let Some(tensor) = input else { return Ok(None) };
        expect_same(dtype, tensor.dtype())?;
        match (TensorValues::read(tensor)?, tensor.elements()) {
            (TensorValues::Floats(all), 1) => Ok(all.first().copied().map(ClipBound::Float)),
            (TensorValues::Integers(all), 1) => Ok(all.first().copied().map(ClipBound::Integer)),
            _ => Err(OpError::new(format!(
                "a bound has shape {:?}, expected a scalar",
                tensor.shape()
            ))),
        }
    }
}

impl Operator for Clip {
    fn attributes(&self) -> Option<Attributes> {
        // Bounds that are attributes are those of old versions.
        (self.min.is_none() && self.max.is_none()).then(Attributes::new)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype)?;
        for bound in [inputs.optional(1), inputs.optional(2)].into_iter().flatten() {
            expect_same(x.dtype, bound.dtype)?;
        }
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_number(x.dtype())?;
        let attribute = |value: Option<f32>| value.map(|v| ClipBound::Float(f64::from(v)));
        let min = Self::bound(inputs.optional(1), x.dtype())?.or(attribute(self.min));
        let max = Self::bound(inputs.optional(2), x.dtype())?.or(attribute(self.max));
        let mut values = TensorValues::read(x)?;
        match &mut values {
            TensorValues::Floats(all) => {
                let of =
                    |bound, other| if let Some(ClipBound::Float(v)) = bound { v } else { other };
                let ends = finite_ends(x.dtype());
                let min = of(min, ends.start);
                let max = of(max, ends.end);
                for v in all.iter_mut().filter(|v| !v.is_nan()) {
                    *v = v.max(min).min(max);
                }
            }
            TensorValues::Integers(all) => {
                let of =
                    |bound, other| if let Some(ClipBound::Integer(v)) = bound { v } else { other };
                let min = of(min, i128::MIN);
                let max = of(max, i128::MAX);
                all.iter_mut().for_each(|v| *v = (*v).max(min).min(max));
            }
            TensorValues::Bools(_) | TensorValues::Strings(_) => {}
        }
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_INPUT: Clip = Clip { min: None, max: None };

    #[test]
    fn bounds_are_attributes_or_inputs_and_each_is_optional() {
        let x = Tensor::vector(vec![-2.0_f32, 0.5, f32::NAN, 7.0]);
        let outputs =
            Clip { min: Some(-1.0), max: None }.reference(OperatorInputs::new(&[Some(&x)]));
        let all = outputs.unwrap().remove(0).to_vec::<f32>().unwrap();
        assert_eq!((all[0], all[1], all[3]), (-1.0, 0.5, 7.0));
        assert!(all[2].is_nan());
        let x = Tensor::vector(vec![f32::NEG_INFINITY, f32::INFINITY]);
        let outputs = BY_INPUT.reference(OperatorInputs::new(&[Some(&x)])).unwrap();
        assert_eq!(outputs[0], Tensor::vector(vec![f32::MIN, f32::MAX]));
        let x = Tensor::vector(vec![-2_i8, 3, 100]);
        let max = Tensor::scalar(5_i8);
        let outputs =
            BY_INPUT.reference(OperatorInputs::new(&[Some(&x), None, Some(&max)])).unwrap();
        assert_eq!(outputs[0], Tensor::vector(vec![-2_i8, 3, 5]));
    }

    #[test]
    fn crossed_bounds_give_the_highest_and_a_vector_is_no_bound() {
        let x = Tensor::vector(vec![1.0_f32, 9.0]);
        let min = Tensor::scalar(6.0_f32);
        let max = Tensor::scalar(2.0_f32);
        let outputs =
            BY_INPUT.reference(OperatorInputs::new(&[Some(&x), Some(&min), Some(&max)])).unwrap();
        assert_eq!(outputs[0], Tensor::vector(vec![2.0_f32, 2.0]));
        assert!(BY_INPUT.reference(OperatorInputs::new(&[Some(&x), Some(&x)])).is_err());
    }
}
