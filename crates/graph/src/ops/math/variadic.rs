//! Functions of any number of tensors, with broadcasting.

use galatea_tensor::{Tensor, broadcast_shapes};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, broadcast, expect_number, expect_same};

/// A function of any number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ONNX's and say what they compute")]
pub enum VariadicKind {
    /// A NaN wins.
    Min,
    /// A NaN wins.
    Max,
    Sum,
    /// Integers truncate towards zero.
    Mean,
}

/// A function of the elements at one position of all inputs, which have one type.
///
/// Shapes: any that broadcast; the result has the common shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variadic {
    /// The function.
    pub kind: VariadicKind,
    /// True if the first input has the shape of the result, to which the others broadcast.
    pub first_is_whole: bool,
}

impl Variadic {
    pub(super) fn boxed(kind: VariadicKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind, first_is_whole: false }))
    }

    /// Returns an operator whose first input has the shape of the result.
    pub(crate) fn boxed_over_first(kind: VariadicKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind, first_is_whole: true }))
    }
}

impl VariadicKind {
    pub(crate) fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Min | Self::Max if a.is_nan() || b.is_nan() => f64::NAN,
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Sum | Self::Mean => a + b,
        }
    }

    fn integer(self, a: i128, b: i128) -> i128 {
        match self {
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Sum | Self::Mean => a.wrapping_add(b),
        }
    }
}

impl Operator for Variadic {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let dtype = inputs.required(0)?.dtype;
        expect_number(dtype)?;
        let all = inputs.all_required()?;
        for other in &all {
            expect_same(dtype, other.dtype)?;
        }
        let shape = Fact::broadcast(&all)?;
        Ok(vec![match self.first_is_whole {
            true => Fact { value: None, elements: None, ..inputs.required(0)?.clone() },
            false => Fact::shaped(dtype, shape),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let all = inputs.all_required()?;
        let first = inputs.required(0)?;
        expect_number(first.dtype())?;
        let mut shape = Vec::new();
        for tensor in &all {
            expect_same(first.dtype(), tensor.dtype())?;
            shape = broadcast_shapes(&shape, tensor.shape())?;
        }
        if self.first_is_whole && shape != first.shape() {
            return Err(OpError::new(format!(
                "inputs of the common shape {shape:?}, expected that of the first input, {:?}",
                first.shape()
            )));
        }
        let mut total = TensorValues::read(&broadcast(first, &shape)?)?;
        for tensor in &all[1..] {
            match (&mut total, TensorValues::read(&broadcast(tensor, &shape)?)?) {
                (TensorValues::Floats(total), TensorValues::Floats(next)) => {
                    total.iter_mut().zip(next).for_each(|(a, b)| *a = self.kind.float(*a, b));
                }
                (TensorValues::Integers(total), TensorValues::Integers(next)) => {
                    total.iter_mut().zip(next).for_each(|(a, b)| *a = self.kind.integer(*a, b));
                }
                _ => {}
            }
        }
        if self.kind == VariadicKind::Mean {
            divide(&mut total, all.len());
        }
        Ok(vec![total.write(first.dtype(), &shape)?])
    }
}

#[allow(clippy::cast_precision_loss, reason = "a node has few inputs")]
fn divide(total: &mut TensorValues, count: usize) {
    match total {
        TensorValues::Floats(all) => all.iter_mut().for_each(|v| *v /= count as f64),
        TensorValues::Integers(all) => all.iter_mut().for_each(|v| *v /= count as i128),
        TensorValues::Bools(_) | TensorValues::Strings(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: VariadicKind, inputs: &[Tensor]) -> Result<Tensor, OpError> {
        let inputs: Vec<_> = inputs.iter().map(Some).collect();
        Ok(Variadic { kind, first_is_whole: false }
            .reference(OperatorInputs::new(&inputs))?
            .remove(0))
    }

    #[test]
    fn three_inputs_broadcast_together() {
        let inputs = [
            Tensor::vector(vec![3.0_f32, 2.0]),
            Tensor::scalar(6.0_f32),
            Tensor::from_vec(&[1, 2], vec![0.0_f32, 1.0]).unwrap(),
        ];
        let of = |a: f32, b: f32| Tensor::from_vec(&[1, 2], vec![a, b]).unwrap();
        assert_eq!(run(VariadicKind::Mean, &inputs).unwrap(), of(3.0, 3.0));
        assert_eq!(run(VariadicKind::Sum, &inputs).unwrap(), of(9.0, 9.0));
        assert_eq!(run(VariadicKind::Max, &inputs).unwrap(), of(6.0, 6.0));
        assert_eq!(run(VariadicKind::Min, &inputs).unwrap(), of(0.0, 1.0));
    }

    #[test]
    fn a_nan_wins() {
        let inputs = [Tensor::scalar(f32::NAN), Tensor::scalar(1.0_f32)];
        assert!(run(VariadicKind::Max, &inputs).unwrap().item::<f32>().unwrap().is_nan());
        assert!(run(VariadicKind::Min, &inputs).unwrap().item::<f32>().unwrap().is_nan());
    }

    #[test]
    fn inputs_larger_than_a_whole_first_one_are_refused() {
        let sum = Variadic { kind: VariadicKind::Sum, first_is_whole: true };
        let x = Tensor::vector(vec![1.0_f32, 2.0]);
        let large = Tensor::from_vec(&[2, 2], vec![1.0_f32; 4]).unwrap();
        let one = Tensor::scalar(1.0_f32);
        let of = |other: &Tensor| {
            sum.reference(OperatorInputs::new(&[Some(&x), Some(other)]))
                .map(|mut all| all.remove(0))
        };
        assert_eq!(of(&one).unwrap(), Tensor::vector(vec![2.0_f32, 3.0]));
        let error = of(&large).unwrap_err().to_string();
        assert!(error.contains("[2, 2]") && error.contains("the first input, [2]"), "{error}");
    }

    #[test]
    fn inputs_of_two_types_are_refused() {
        assert!(run(VariadicKind::Sum, &[Tensor::scalar(1_i32), Tensor::scalar(1_i64)]).is_err());
    }
}
