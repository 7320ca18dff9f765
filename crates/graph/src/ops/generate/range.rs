//! `Range`: numbers at equal distances.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// ONNX `Range`: from input 0 towards input 1, in steps of input 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range;

impl Range {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        if context.opset >= 27 {
            // How narrow floats are computed; here all are computed wide.
            context.attributes.ignore("stash_type");
        }
        Ok(Box::new(Self))
    }
}

/// The integers of a range: how many, the first, and the step.
fn integer_range(inputs: [&Tensor; 3]) -> Result<(usize, i128, i128), OpError> {
    let [start, limit, delta] = inputs.map(|input| {
        values::integers(input).and_then(|all| match all.as_slice() {
            &[one] => Ok(one),
            _ => Err(OpError::new(format!("shape {:?}, expected a scalar", input.shape()))),
        })
    });
    let start = start?;
    let limit = limit?;
    let delta = delta?;
    if delta == 0 {
        return Err(OpError::new("the step of a range is 0"));
    }
    let span = if delta > 0 { limit - start } else { start - limit }.max(0);
    let step = span / delta.abs();
    let rest = i128::from(span % delta.abs() != 0);
    let count = usize::try_from(step + rest).map_err(|_| too_long())?;
    Ok((count, start, delta))
}

/// The floats of a range: how many, the first, and the step.
fn float_range(inputs: [&Tensor; 3]) -> Result<(usize, f64, f64), OpError> {
    let [start, limit, delta] = inputs.map(|input| {
        values::floats(input).and_then(|all| match all.as_slice() {
            &[one] => Ok(one),
            _ => Err(OpError::new(format!("shape {:?}, expected a scalar", input.shape()))),
        })
    });
    let start = start?;
    let limit = limit?;
    let delta = delta?;
    let count = ((limit - start) / delta).ceil().max(0.0);
    // A NaN casts to nothing, and `max` has made it 0 where the step is no number.
    if !count.is_finite() || !delta.is_finite() || delta == 0.0 {
        return Err(OpError::new(format!("a range from {start} to {limit} by {delta}")));
    }
    Ok((num_traits::cast(count).ok_or_else(too_long)?, start, delta))
}

fn too_long() -> OpError {
    OpError::new("a range is too long")
}

/// Returns the number of numbers.
fn count(inputs: [&Tensor; 3]) -> Result<usize, OpError> {
    let dtype = inputs[0].dtype();
    let is_integer = dtype.is_integer();
    let count = if is_integer { integer_range(inputs)?.0 } else { float_range(inputs)?.0 };
    bounds::bounded(dtype, &[count])
}

/// The numbers, each computed from its place so that floats do not drift.
fn numbers(inputs: [&Tensor; 3]) -> Result<Tensor, OpError> {
    let dtype = inputs[0].dtype();
    let count = count(inputs)?;
    // The widened numbers take more than the result.
    bounds::bounded(DataType::Int64, &[count, 2])?;
    if dtype.is_integer() {
        let (_, start, delta) = integer_range(inputs)?;
        let all: Vec<i128> = (0..count).map(|n| start + delta * n as i128).collect();
        return values::from_integers(dtype, &[count], &all);
    }
    let (_, start, delta) = float_range(inputs)?;
    let all = (0..count).map(|n| start + delta * n as f64).collect();
    values::from_floats(dtype, &[count], all)
}

impl Operator for Range {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let facts = [inputs.required(0)?, inputs.required(1)?, inputs.required(2)?];
        let dtype = facts[0].dtype;
        if let Some(other) = facts.iter().find(|fact| fact.dtype != dtype) {
            return Err(OpError::new(format!("inputs of types {dtype} and {}", other.dtype)));
        }
        let lengths = facts.map(bounds::carried);
        let steps = match lengths.each_ref().map(Option::as_deref) {
            [Some([Dim::Known(0)]), Some([limit]), Some([Dim::Known(1)])] => {
                length::unless_negative(limit.clone())
            }
            _ => Dim::Unknown,
        };
        if let [Some(start), Some(limit), Some(delta)] = facts.map(|fact| fact.value.as_ref()) {
            let inputs = [start, limit, delta];
            return Ok(vec![Fact::fixed(dtype, &[count(inputs)?])]);
        }
        Ok(vec![Fact::new(dtype, vec![steps])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let inputs = [inputs.required(0)?, inputs.required(1)?, inputs.required(2)?];
        if let Some(other) = inputs.iter().find(|one| one.dtype() != inputs[0].dtype()) {
            let text = format!("inputs of types {} and {}", inputs[0].dtype(), other.dtype());
            return Err(OpError::new(text));
        }
        Ok(vec![numbers(inputs)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, inferred, one, run};
    use galatea_tensor::Element;

    fn range<T: Element>(values: [T; 3]) -> Vec<T> {
        let [start, limit, delta] = values.map(Tensor::scalar);
        one("Range", 11, &attributes([]), &[&start, &limit, &delta]).to_vec().unwrap()
    }

    #[test]
    fn ranges_go_either_way() {
        assert_eq!(range([1_i64, 6, 2]), [1, 3, 5]);
        assert_eq!(range([3_i32, 0, -1]), [3, 2, 1]);
        assert_eq!(range([1_f32, 2.0, 0.5]), [1.0, 1.5]);
        assert!(range([5_i64, 1, 1]).is_empty());
    }

    #[test]
    fn endless_ranges_are_errors() {
        for [start, limit, delta] in [[0_i64, 1, 0], [0, i64::MAX, 1], [i64::MIN, i64::MAX, 1]] {
            let all = [start, limit, delta].map(Tensor::scalar);
            let inputs = [Some(&all[0]), Some(&all[1]), Some(&all[2])];
            assert!(run("Range", 11, &attributes([]), &inputs, 1).is_err());
        }
        let all = [0_f32, f32::INFINITY, 1.0].map(Tensor::scalar);
        let inputs = [Some(&all[0]), Some(&all[1]), Some(&all[2])];
        assert!(run("Range", 11, &attributes([]), &inputs, 1).is_err());
    }

    #[test]
    fn counting_to_a_symbol_is_as_long_as_the_symbol() {
        let seq = Dim::symbol("seq");
        let limit = Fact::fixed(DataType::Int64, &[]).with_elements(Some(vec![seq.clone()]));
        let [zero, one] = [0_i64, 1].map(|n| Fact::constant(Tensor::scalar(n)));
        let fact = inferred("Range", 11, &attributes([]), &[&zero, &limit, &one]).unwrap();
        assert_eq!(fact.shape.unwrap(), [seq]);
    }
}
