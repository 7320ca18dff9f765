//! `NonZero` and `Compress`: what a condition selects.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, values};

/// ONNX `NonZero`: the indices of all elements that differ from zero, one column each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonZero;

/// ONNX `Compress`: the positions of an axis where input 1 is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compress {
    /// The axis, which may count from the end; if absent the input is one long vector.
    pub axis: Option<i64>,
}

impl NonZero {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

/// Returns which elements differ from the default of their type.
fn hits(data: &Tensor) -> Result<Vec<bool>, OpError> {
    if let DataType::Small(small) = data.dtype() {
        let zero = small.value(0);
        return Ok(values::small(data)?.into_iter().map(|one| one != zero).collect());
    }
    let whole = data.contiguous()?;
    if data.dtype() == DataType::Fp32 {
        return Ok(whole.as_slice::<f32>()?.iter().map(|&x| x != 0.0).collect());
    }
    if data.dtype() == DataType::Bytes {
        let texts = whole.as_slice::<ByteString>()?;
        return Ok(texts.iter().map(|text| !text.as_bytes().is_empty()).collect());
    }
    let size = data.dtype().size_bytes().unwrap_or(1);
    // A float's sign, in the last byte, makes no other zero of a zero.
    let sign = if data.dtype().is_float() { 0x80 } else { 0 };
    let differs = |element: &[u8]| match element.split_last() {
        Some((last, others)) => last & !sign != 0 || others.iter().any(|&byte| byte != 0),
        None => false,
    };
    Ok(whole.as_bytes()?.chunks_exact(size).map(differs).collect())
}

impl Operator for NonZero {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let rank = inputs.required(0)?.rank().map_or(Dim::Unknown, Dim::Known);
        Ok(vec![Fact::new(DataType::Int64, vec![rank, Dim::Unknown])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let hits = hits(data)?;
        let found = hits.into_iter().enumerate().filter(|(_, hit)| *hit);
        let found: Vec<usize> = found.map(|(place, _)| place).collect();
        let mut result = Vec::with_capacity(found.len() * data.rank());
        for (&len, step) in data.shape().iter().zip(bounds::steps(data.shape())) {
            let along = |place: &usize| (place / step.max(1) % len.max(1)) as i64;
            result.extend(found.iter().map(along));
        }
        Ok(vec![Tensor::from_vec(&[data.rank(), found.len()], result)?])
    }
}

impl Compress {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int("axis")? }))
    }
}

impl Operator for Compress {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(axis) = self.axis else {
            return Ok(vec![Fact::new(data.dtype, vec![Dim::Unknown])]);
        };
        let Some(mut shape) = data.shape.clone() else {
            return Ok(vec![Fact::unranked(data.dtype)]);
        };
        let axis = bounds::axis(axis, shape.len())?;
        shape[axis] = Dim::Unknown;
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let condition = inputs.required(1)?.to_vec::<bool>()?;
        let (data, axis) = match self.axis {
            Some(axis) => (data.clone(), bounds::axis(axis, data.rank())?),
            None => (data.reshape(&[data.elements()])?, 0),
        };
        let len = data.shape()[axis];
        let chosen = condition.iter().enumerate().filter(|(_, on)| **on).map(|(at, _)| at as i64);
        let chosen: Vec<i64> = chosen.collect();
        if condition.len() > len {
            return Err(OpError::new(format!(
                "{} conditions for an axis of length {len}",
                condition.len()
            )));
        }
        let gather = super::Gather { axis: axis as i64 };
        let chosen = Tensor::vector(chosen);
        gather.reference(OperatorInputs::new(&[Some(&data), Some(&chosen)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, one, run, tensor};

    #[test]
    fn indices_of_what_is_not_zero_come_in_columns() {
        let data = tensor(&[2, 2], &[true, false, true, true]);
        let result = one("NonZero", 13, &attributes([]), &[&data]);
        assert_eq!(result, tensor(&[2, 3], &[0_i64, 1, 1, 0, 0, 1]));
        assert_eq!(one("NonZero", 9, &attributes([]), &[&Tensor::scalar(5_f32)]).shape(), [0, 1]);
    }

    #[test]
    fn conditions_keep_positions() {
        let data = counting(&[2, 3]);
        let condition = tensor(&[3], &[false, true, true]);
        let result = one("Compress", 11, &attributes([("axis", int(-1))]), &[&data, &condition]);
        assert_eq!(result, tensor(&[2, 2], &[1_f32, 2.0, 4.0, 5.0]));
        let flat = one("Compress", 9, &attributes([]), &[&data, &condition]);
        assert_eq!(flat, tensor(&[2], &[1_f32, 2.0]));
        let rows = attributes([("axis", int(0))]);
        assert!(run("Compress", 11, &rows, &[Some(&data), Some(&condition)], 1).is_err());
    }
}
