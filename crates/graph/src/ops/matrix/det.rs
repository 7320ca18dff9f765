//! `Det`: the determinants of square matrices.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `Det` of the matrices on the last two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Det;

fn not_square(shape: &dyn std::fmt::Debug) -> OpError {
    OpError::new(format!("shape {shape:?}, expected square matrices on the last two axes"))
}

/// By elimination with the largest pivot of each column.
fn determinant(matrix: &mut [f64], n: usize) -> f64 {
    let mut result = 1.0;
    for column in 0..n {
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        if matrix[pivot * n + column] == 0.0 {
            return 0.0;
        }
        if pivot != column {
            (0..n).for_each(|at| matrix.swap(pivot * n + at, column * n + at));
            result = -result;
        }
        let lead = matrix[column * n + column];
        result *= lead;
        for row in column + 1..n {
            let factor = matrix[row * n + column] / lead;
            for at in column..n {
                matrix[row * n + at] -= factor * matrix[column * n + at];
            }
        }
    }
    result
}

impl Operator for Det {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let [outer @ .., rows, columns] = &dims[..] else { return Err(not_square(dims)) };
        match (rows.known(), columns.known()) {
            (Some(a), Some(b)) if a != b => Err(not_square(dims)),
            _ => Ok(vec![Fact::new(x.dtype, outer.to_vec())]),
        }
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let [outer @ .., rows, columns] = x.shape() else { return Err(not_square(&x.shape())) };
        if rows != columns {
            return Err(not_square(&x.shape()));
        }
        let mut all = floats(x)?;
        let count = outer.iter().product::<usize>();
        let size = rows * rows;
        let of = |at: usize, all: &mut Vec<f64>| determinant(&mut all[at * size..][..size], *rows);
        let result = (0..count).map(|at| of(at, &mut all)).collect();
        Ok(vec![from_floats(x.dtype(), outer, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn each_matrix_has_its_determinant() {
        let x = tensor(&[2, 2, 2], &[0.0_f32, 1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 4.0]);
        assert_eq!(one("Det", 11, &attributes([]), &[&x]), tensor(&[2], &[-2.0_f32, 0.0]));
        let empty = tensor::<f32>(&[0, 0], &[]);
        assert_eq!(one("Det", 22, &attributes([]), &[&empty]).item::<f32>().unwrap(), 1.0);
        let flat = tensor(&[2, 1], &[0.0_f32, 1.0]);
        assert!(run("Det", 11, &attributes([]), &[Some(&flat)], 1).is_err());
    }
}
