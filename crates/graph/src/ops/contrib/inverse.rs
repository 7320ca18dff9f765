//! `Inverse`: the inverses of square matrices.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_float, floats, from_floats};

/// Inverses of the matrices on the last two axes, of domain `com.microsoft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inverse;

/// Gauss-Jordan elimination with the largest pivot of each column.
fn inverse(matrix: &mut [f64], n: usize) -> Result<Vec<f64>, OpError> {
    let mut result = vec![0.0; n * n];
    (0..n).for_each(|at| result[at * n + at] = 1.0);
    for column in 0..n {
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        let lead = matrix[pivot * n + column];
        if lead == 0.0 {
            return Err(OpError::new("a matrix has no inverse"));
        }
        for all in [&mut *matrix, &mut result] {
            (0..n).for_each(|at| all.swap(pivot * n + at, column * n + at));
            (0..n).for_each(|at| all[column * n + at] /= lead);
        }
        for row in (0..n).filter(|row| *row != column) {
            let factor = matrix[row * n + column];
            for all in [&mut *matrix, &mut result] {
                (0..n).for_each(|at| all[row * n + at] -= factor * all[column * n + at]);
            }
        }
    }
    Ok(result)
}

impl Operator for Inverse {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let n = match x.shape() {
            [.., rows, columns] if rows == columns => *rows,
            other => {
                return Err(OpError::new(format!("shape {other:?}, expected square matrices")));
            }
        };
        let mut all = floats(x)?;
        let mut result = Vec::with_capacity(all.len());
        for matrix in all.chunks_mut((n * n).max(1)) {
            result.extend(inverse(matrix, n)?);
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn a_product_with_the_inverse_is_one() {
        let x = tensor(&[1, 2, 2], &[0.0_f32, 2.0, 4.0, 8.0]);
        let found = one("com.microsoft:Inverse", 1, &attributes([]), &[&x]);
        assert_eq!(found, tensor(&[1, 2, 2], &[-1.0_f32, 0.25, 0.5, 0.0]));
        let flat = tensor(&[2, 2], &[1.0_f32, 2.0, 2.0, 4.0]);
        assert!(run("com.microsoft:Inverse", 1, &attributes([]), &[Some(&flat)], 1).is_err());
    }
}
