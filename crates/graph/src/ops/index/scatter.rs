//! `Scatter`, `ScatterElements` and `ScatterND`: a copy of a tensor with some elements written.

use galatea_tensor::{
    ByteString, Element, Float4E2M1, Float8E4M3Fn, Float8E4M3FnUz, Float8E5M2, Float8E5M2FnUz,
    Float8E8M0, Int2, Int4, Tensor, Uint2, Uint4, bf16, f16, with_element,
};

use super::{check_inside, position};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// Effect of an update on the element that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterReduction {
    /// Replaces it.
    None,
    /// Is added.
    Add,
    /// Is multiplied.
    Mul,
    /// The larger one stays.
    Max,
    /// The smaller one stays.
    Min,
}

impl ScatterReduction {
    /// Reads the attribute `reduction`: from opset 16 on, with `max` and `min` from 18 on.
    fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let names = ["none", "add", "mul", "max", "min"];
        let known = match context.opset {
            ..16 => return Ok(Self::None),
            16 | 17 => &names[..3],
            _ => &names[..],
        };
        let choice = context.attributes.choice("reduction", known, 0)?;
        Ok([Self::None, Self::Add, Self::Mul, Self::Max, Self::Min][choice])
    }
}

/// Elements that updates combine with; integers wrap, booleans add as "or".
trait ScatterElement: Element {
    /// The sum or the product; `None` for strings and small types.
    fn arithmetic(&self, other: &Self, product: bool) -> Option<Self>;
}

macro_rules! combine {
    ($($rust:ty: |$a:ident, $b:ident| $sum:expr, $product:expr;)*) => {$(
        impl ScatterElement for $rust {
            fn arithmetic(&self, other: &Self, product: bool) -> Option<Self> {
                let ($a, $b) = (self.clone(), other.clone());
                if product { $product } else { $sum }
            }
        }
    )*};
}

combine! {
    bool: |a, b| Some(a | b), Some(a & b);
    u8: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u16: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u32: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u64: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i8: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i16: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i32: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i64: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    f16: |a, b| Some(a + b), Some(a * b);
    bf16: |a, b| Some(a + b), Some(a * b);
    f32: |a, b| Some(a + b), Some(a * b);
    f64: |a, b| Some(a + b), Some(a * b);
    ByteString: |_a, _b| None, None;
    Float8E4M3Fn: |_a, _b| None, None;
    Float8E4M3FnUz: |_a, _b| None, None;
    Float8E5M2: |_a, _b| None, None;
    Float8E5M2FnUz: |_a, _b| None, None;
    Float8E8M0: |_a, _b| None, None;
    Float4E2M1: |_a, _b| None, None;
    Int4: |_a, _b| None, None;
    Uint4: |_a, _b| None, None;
    Int2: |_a, _b| None, None;
    Uint2: |_a, _b| None, None;
}

fn update<T: ScatterElement + PartialOrd>(
    slot: &mut T,
    value: &T,
    reduction: ScatterReduction,
) -> Result<(), OpError> {
    // A NaN compares with nothing, and stays.
    let unordered = value.partial_cmp(value).is_none();
    let replacement = match reduction {
        ScatterReduction::None => Some(value.clone()),
        ScatterReduction::Add => slot.arithmetic(value, false),
        ScatterReduction::Mul => slot.arithmetic(value, true),
        ScatterReduction::Max if *value > *slot || unordered => Some(value.clone()),
        ScatterReduction::Min if *value < *slot || unordered => Some(value.clone()),
        ScatterReduction::Max | ScatterReduction::Min => Some(slot.clone()),
    };
    *slot = replacement
        .ok_or_else(|| OpError::new(format!("type {} neither adds nor multiplies", T::DTYPE)))?;
    Ok(())
}

/// The output of every scatter: like the data.
fn like_data(inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
    let data = inputs.required(0)?;
    let updates = inputs.required(2)?;
    if data.dtype != updates.dtype {
        let text = format!("updates of type {} for data of type {}", updates.dtype, data.dtype);
        return Err(OpError::new(text));
    }
    Ok(vec![Fact::shaped(data.dtype, data.shape.clone())])
}

/// ONNX `ScatterElements`, and `Scatter` before it had that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterElements {
    /// The axis whose position the indices replace; may count from the end.
    pub axis: i64,
    /// How updates combine.
    pub reduction: ScatterReduction,
}

impl ScatterElements {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 0)?;
        Ok(Box::new(Self { axis, reduction: ScatterReduction::parse(context)? }))
    }

    fn scatter<T: ScatterElement + PartialOrd>(
        &self,
        data: &Tensor,
        indices: &Tensor,
        updates: &Tensor,
    ) -> Result<Tensor, OpError> {
        let axis = bounds::axis(self.axis, data.rank())?;
        check_inside(data.shape(), indices.shape(), axis)?;
        if indices.shape() != updates.shape() {
            return Err(OpError::new(format!(
                "indices of shape {:?} with updates of shape {:?}",
                indices.shape(),
                updates.shape()
            )));
        }
        let mut values = data.to_vec::<T>()?;
        let steps = bounds::steps(data.shape());
        let updates = indices.to_i64_vec()?.into_iter().zip(updates.to_vec::<T>()?);
        for (mut index, (at, value)) in bounds::indices(indices.shape()).zip(updates) {
            index[axis] = position(at, data.shape()[axis])?;
            let offset: usize = index.iter().zip(&steps).map(|(at, step)| at * step).sum();
            update(&mut values[offset], &value, self.reduction)?;
        }
        Ok(Tensor::from_vec(data.shape(), values)?)
    }
}

impl Operator for ScatterElements {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        if let Some(rank) = inputs.required(0)?.rank() {
            bounds::axis(self.axis, rank)?;
        }
        like_data(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let updates = inputs.required(2)?;
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![with_element!(data.dtype(), T => self.scatter::<T>(data, indices, updates))?])
    }
}

/// ONNX `ScatterND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterND {
    /// How updates combine.
    pub reduction: ScatterReduction,
}

impl ScatterND {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { reduction: ScatterReduction::parse(context)? }))
    }

    fn scatter<T: ScatterElement + PartialOrd>(
        &self,
        data: &Tensor,
        indices: &Tensor,
        updates: &Tensor,
    ) -> Result<Tensor, OpError> {
        let misfit = || {
            OpError::new(format!(
                "indices of shape {:?} and updates of shape {:?} do not fit data of shape {:?}",
                indices.shape(),
                updates.shape(),
                data.shape()
            ))
        };
        let (&tuple, outer) = indices.shape().split_last().ok_or_else(misfit)?;
        if tuple > data.rank() || updates.shape() != [outer, &data.shape()[tuple..]].concat() {
            return Err(misfit());
        }
        let mut values = data.to_vec::<T>()?;
        let picks = indices.to_i64_vec()?;
        let updates = updates.to_vec::<T>()?;
        let steps = bounds::steps(data.shape());
        let run: usize = data.shape()[tuple..].iter().product();
        for row in 0..outer.iter().product::<usize>() {
            let mut offset = 0;
            for (axis, &pick) in picks[row * tuple..(row + 1) * tuple].iter().enumerate() {
                offset += position(pick, data.shape()[axis])? * steps[axis];
            }
            for at in 0..run {
                update(&mut values[offset + at], &updates[row * run + at], self.reduction)?;
            }
        }
        Ok(Tensor::from_vec(data.shape(), values)?)
    }
}

impl Operator for ScatterND {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        like_data(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let updates = inputs.required(2)?;
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![with_element!(data.dtype(), T => self.scatter::<T>(data, indices, updates))?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor, text};

    #[test]
    fn elements_are_written_or_combined() {
        let data = tensor(&[1, 3], &[1_f32, 2.0, 3.0]);
        let indices = tensor::<i64>(&[1, 2], &[1, -1]);
        let updates = tensor(&[1, 2], &[5_f32, 1.0]);
        let of = |reduction: &str| {
            let attributes = attributes([("axis", int(1)), ("reduction", text(reduction))]);
            let result = one("ScatterElements", 18, &attributes, &[&data, &indices, &updates]);
            result.to_vec::<f32>().unwrap()
        };
        assert_eq!(of("none"), [1.0, 5.0, 1.0]);
        assert_eq!(of("add"), [1.0, 7.0, 4.0]);
        assert_eq!(of("mul"), [1.0, 10.0, 3.0]);
        assert_eq!(of("max"), [1.0, 5.0, 3.0]);
        assert_eq!(of("min"), [1.0, 2.0, 1.0]);
    }

    #[test]
    fn rows_are_written_by_tuple() {
        let data = tensor(&[2, 2], &[1_i64, 2, 3, 4]);
        let rows = tensor::<i64>(&[1, 1], &[1]);
        let updates = tensor(&[1, 2], &[8_i64, 9]);
        let result = one("ScatterND", 11, &attributes([]), &[&data, &rows, &updates]);
        assert_eq!(result, tensor(&[2, 2], &[1_i64, 2, 8, 9]));
    }

    #[test]
    fn misfits_are_errors() {
        let data = tensor(&[2, 2], &[1_i64, 2, 3, 4]);
        let far = tensor::<i64>(&[1, 1], &[2]);
        let updates = tensor(&[1, 2], &[8_i64, 9]);
        let inputs = [Some(&data), Some(&far), Some(&updates)];
        assert!(run("ScatterND", 11, &attributes([]), &inputs, 1).is_err());
        assert!(run("ScatterElements", 11, &attributes([]), &inputs, 1).is_err());
        assert!(run("Scatter", 9, &attributes([]), &inputs, 1).is_err());
    }
}
