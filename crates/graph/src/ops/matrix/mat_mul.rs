//! `MatMul`: NumPy's matrix product.

use galatea_tensor::Tensor;

use super::product::{ProductExtents, infer_shape};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, expect_number, expect_same};

/// The matrix product of two tensors of one type.
///
/// Shapes: the last two axes are matrices, the others a stack of them that broadcasts. A vector on
/// the left is a row, on the right a column; the result lacks that axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMul;

impl Operator for MatMul {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_number(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        let shape = infer_shape(a, b)?;
        Ok(vec![Fact::shaped(a.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_number(a.dtype())?;
        expect_same(a.dtype(), b.dtype())?;
        let product = ProductExtents::new(a.shape(), b.shape(), a.dtype())?;
        let values = match (TensorValues::read(a)?, TensorValues::read(b)?) {
            (TensorValues::Floats(a), TensorValues::Floats(b)) => {
                TensorValues::Floats(product.run(&a, &b, |sum, x, y| sum + x * y))
            }
            (TensorValues::Integers(a), TensorValues::Integers(b)) => {
                let add = |sum: i128, x: i128, y| sum.wrapping_add(x.wrapping_mul(y));
                TensorValues::Integers(product.run(&a, &b, add))
            }
            (other, _) => other,
        };
        Ok(vec![values.write(a.dtype(), &product.shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, one, run, tensor};

    fn product(a: &Tensor, b: &Tensor) -> Tensor {
        one("MatMul", 13, &attributes([]), &[a, b])
    }

    #[test]
    fn matrices_and_vectors_multiply_as_in_numpy() {
        let matrix = counting(&[2, 3]);
        let vector = Tensor::vector(vec![1.0_f32, 2.0, 3.0]);
        let left = Tensor::vector(vec![1.0_f32, -1.0]);
        assert_eq!(product(&matrix, &vector), Tensor::vector(vec![8.0_f32, 26.0]));
        assert_eq!(product(&left, &matrix), Tensor::vector(vec![-3.0_f32; 3]));
        assert_eq!(product(&vector, &vector), Tensor::scalar(14.0_f32));
        let column = tensor(&[3, 1], &[1.0_f32, 2.0, 3.0]);
        assert_eq!(product(&matrix, &column), tensor(&[2, 1], &[8.0_f32, 26.0]));
    }

    #[test]
    fn stacks_broadcast() {
        let a = tensor(&[2, 1, 1, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
        let b = tensor(&[2, 2, 1], &[1.0_f32, 0.0, 0.0, 1.0]);
        assert_eq!(product(&a, &b), tensor(&[2, 2, 1, 1], &[1.0_f32, 2.0, 3.0, 4.0]));
    }

    #[test]
    fn integers_wrap_and_empty_products_are_zero() {
        let a = tensor(&[1, 2], &[i32::MAX, 1]);
        let b = tensor(&[2, 1], &[2_i32, 3]);
        assert_eq!(product(&a, &b), tensor(&[1, 1], &[1_i32]));
        let nothing = product(&tensor::<f32>(&[2, 0], &[]), &tensor::<f32>(&[0, 2], &[]));
        assert_eq!(nothing, tensor(&[2, 2], &[0.0_f32; 4]));
        assert_eq!(
            product(&tensor::<f32>(&[0, 2], &[]), &counting(&[2, 3])),
            tensor::<f32>(&[0, 3], &[])
        );
    }

    #[test]
    fn wrong_shapes_are_errors() {
        let refused = |a: &Tensor, b: &Tensor| {
            run("MatMul", 13, &attributes([]), &[Some(a), Some(b)], 1).unwrap_err()
        };
        assert!(refused(&counting(&[2, 3]), &counting(&[2, 3])).contains("3 columns"));
        assert!(refused(&counting(&[]), &counting(&[2])).contains("scalar"));
        assert!(refused(&counting(&[2, 1, 1]), &counting(&[3, 1, 1])).contains("broadcast"));
    }
}
