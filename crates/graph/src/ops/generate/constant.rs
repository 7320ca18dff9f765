//! `Constant` and `ConstantOfShape`: values that the model brings along.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks, values};

/// ONNX `Constant`.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The value.
    pub value: Tensor,
}

impl Constant {
    /// Reads the one attribute that there is: a tensor, or (from opset 12 on) a number, a string,
    /// or a list of them.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let mut found: Vec<Tensor> = Vec::new();
        found.extend(attributes.tensor("value")?);
        found.extend(attributes.float("value_float")?.map(Tensor::scalar));
        found.extend(attributes.int("value_int")?.map(Tensor::scalar));
        found.extend(attributes.bytes("value_string")?.map(Tensor::scalar));
        found.extend(attributes.floats("value_floats")?.map(Tensor::vector));
        found.extend(attributes.ints("value_ints")?.map(Tensor::vector));
        found.extend(attributes.strings("value_strings")?.map(Tensor::vector));
        match (found.pop(), found.len()) {
            (Some(value), 0) => Ok(Box::new(Self { value })),
            (None, _) => Err(OpError::new("there is no value attribute")),
            (Some(_), more) => Err(OpError::new(format!("{} value attributes", more + 1))),
        }
    }
}

impl Operator for Constant {
    fn infer(&self, _: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![Fact::constant(self.value.clone())])
    }

    fn reference(&self, _: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![self.value.clone()])
    }
}

/// ONNX `ConstantOfShape`: a tensor of the shape in input 0, filled with one value.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantOfShape {
    /// The value, of one element.
    pub value: Tensor,
}

impl ConstantOfShape {
    /// Reads the attributes; the value is an `FP32` zero if absent.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let value = match context.attributes.tensor("value")? {
            None => Tensor::scalar(0_f32),
            Some(value) => value.reshape(&[])?,
        };
        Ok(Box::new(Self { value }))
    }

    /// The value as a length, for results that describe shapes.
    fn element(&self) -> Option<Dim> {
        if !self.value.dtype().is_integer() {
            return None;
        }
        let value = self.value.to_i64_vec().ok()?.first().copied()?;
        Some(length::number(value))
    }
}

impl Operator for ConstantOfShape {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let wanted = inputs.required(0)?;
        let dtype = self.value.dtype();
        let shape = match wanted.lengths() {
            Some(lengths) => lengths,
            None => match bounds::vector_len(wanted) {
                Some(rank) => vec![Dim::Unknown; rank],
                None => return Ok(vec![Fact::unranked(dtype)]),
            },
        };
        let elements = match shape.as_slice() {
            [Dim::Known(len)] if *len <= 64 => self.element().map(|one| vec![one; *len]),
            _ => None,
        };
        Ok(vec![Fact::new(dtype, shape).with_elements(elements)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let shape = bounds::lengths(&inputs.required(0)?.to_i64_vec()?, "a length")?;
        Ok(vec![bounds::owned(&self.value.broadcast_to(&shape)?)?])
    }
}

/// ONNX `EyeLike`: ones on a diagonal of a matrix shaped like the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EyeLike {
    /// The type; that of the input if absent.
    pub dtype: Option<DataType>,
    /// Which diagonal: 0 the main one, positive above it.
    pub k: i64,
}

impl EyeLike {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let dtype = context.data_type("dtype")?;
        Ok(Box::new(Self { dtype, k: context.attributes.int_or("k", 0)? }))
    }
}

impl Operator for EyeLike {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let dtype = self.dtype.unwrap_or(data.dtype);
        let shape = data.shape.clone();
        Ok(vec![Fact::shaped(dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let &[rows, columns] = data.shape() else {
            return Err(OpError::new(format!("shape {:?}, expected a matrix", data.shape())));
        };
        let dtype = self.dtype.unwrap_or(data.dtype());
        bounds::bounded(dtype, data.shape())?;
        let on = |at: usize| {
            let row = (at / columns) as i64;
            let column = (at % columns) as i64;
            column.checked_sub(row) == Some(self.k)
        };
        let one = match dtype {
            DataType::Bool => Tensor::scalar(true),
            dtype if dtype.is_float() => values::from_floats(dtype, &[], vec![1.0])?,
            dtype if dtype.is_integer() => values::from_integers(dtype, &[], &[1])?,
            _ => return Err(OpError::new(format!("type {dtype} has no one"))),
        };
        let mut cells = (0..rows * columns).map(|at| on(at).then_some(0));
        Ok(vec![picks::picked(&one, data.shape(), &mut cells)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, inferred, int, ints, one, parse, run, tensor};

    #[test]
    fn a_constant_is_a_tensor_a_number_or_a_list() {
        let value = tensor(&[1, 2], &[1_i32, 2]);
        let list = attributes([("value", AttributeValue::Tensor(value.clone()))]);
        assert_eq!(one("Constant", 9, &list, &[]), value);
        let list = attributes([("value_ints", ints(&[3, 4]))]);
        assert_eq!(one("Constant", 12, &list, &[]), Tensor::vector(vec![3_i64, 4]));
        let list = attributes([("value_float", AttributeValue::Float(2.5))]);
        assert_eq!(one("Constant", 13, &list, &[]), Tensor::scalar(2.5_f32));
        assert!(parse("Constant", 13, &attributes([]), 0, 1).is_err());
    }

    #[test]
    fn a_shape_is_filled_unless_it_is_hostile() {
        let value = AttributeValue::Tensor(tensor(&[1], &[7_i64]));
        let list = attributes([("value", value)]);
        let shape = Tensor::vector(vec![2_i64, 1]);
        assert_eq!(one("ConstantOfShape", 9, &list, &[&shape]), tensor(&[2, 1], &[7_i64, 7]));
        for bad in [vec![1_i64 << 40, 1 << 40], vec![1 << 45], vec![-1]] {
            let inputs = [Some(&Tensor::vector(bad))];
            assert!(run("ConstantOfShape", 9, &list, &inputs, 1).is_err());
        }
    }

    #[test]
    fn a_symbolic_shape_stays_symbolic() {
        let batch = Dim::symbol("batch");
        let shape = Fact::fixed(DataType::Int64, &[1]).with_elements(Some(vec![batch.clone()]));
        let fact = inferred("ConstantOfShape", 9, &attributes([]), &[&shape]).unwrap();
        assert_eq!(fact.shape.unwrap(), [batch]);
    }

    #[test]
    fn a_diagonal_of_ones() {
        let data = tensor(&[2, 3], &[0_f32; 6]);
        let list = attributes([("k", int(1)), ("dtype", int(6))]);
        assert_eq!(one("EyeLike", 9, &list, &[&data]), tensor(&[2, 3], &[0_i32, 1, 0, 0, 0, 1]));
        let vector = tensor(&[2], &[0_f32; 2]);
        assert!(run("EyeLike", 9, &list, &[Some(&vector)], 1).is_err());
    }
}
