//! `SparseToDenseMatMul`: a product with a sparse matrix.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{
    expect_number, expect_same, floats, from_floats, from_integers, integers,
};

/// `alpha · A · B` of domain `com.microsoft`, both matrices transposed or not.
///
/// Inputs: `A` and `B` with two axes. A sparse tensor is taken as the dense one that it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseToDenseMatMul {
    /// Factor on the product.
    pub alpha: f32,
    /// True if `A` is transposed.
    pub transposed_a: bool,
    /// True if `B` is transposed.
    pub transposed_b: bool,
}

impl SparseToDenseMatMul {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self {
            alpha: context.attributes.float_or("alpha", 1.0)?,
            transposed_a: context.attributes.flag("transA", false)?,
            transposed_b: context.attributes.flag("transB", false)?,
        }))
    }
}

/// Rows and columns of a matrix as the product reads it.
fn sides(fact: &Fact, transposed: bool, what: &str) -> Result<[Dim; 2], OpError> {
    match fact.shape.as_deref() {
        None => Ok([Dim::Unknown, Dim::Unknown]),
        Some([rows, columns]) if transposed => Ok([columns.clone(), rows.clone()]),
        Some([rows, columns]) => Ok([rows.clone(), columns.clone()]),
        Some(dims) => Err(OpError::new(format!("{what} has {} axes, expected 2", dims.len()))),
    }
}

/// A matrix as the product reads it.
fn turned(matrix: &Tensor, transposed: bool) -> Result<Tensor, OpError> {
    Ok(if transposed { matrix.permute(&[1, 0])? } else { matrix.clone() })
}

impl Operator for SparseToDenseMatMul {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let (a, b) = (inputs.required(0)?, inputs.required(1)?);
        expect_number(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        let [rows, inner] = sides(a, self.transposed_a, "A")?;
        let [own, columns] = sides(b, self.transposed_b, "B")?;
        if let (Some(inner), Some(own)) = (inner.known(), own.known())
            && inner != own
        {
            return Err(OpError::new(format!("{inner} columns of A and {own} rows of B")));
        }
        Ok(vec![Fact::new(a.dtype, vec![rows, columns])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (a, b) = (inputs.required(0)?, inputs.required(1)?);
        if a.rank() != 2 || b.rank() != 2 {
            let text = format!("matrices of shapes {:?} and {:?}", a.shape(), b.shape());
            return Err(OpError::new(text));
        }
        let (a, b) = (turned(a, self.transposed_a)?, turned(b, self.transposed_b)?);
        let (&[rows, inner], &[own, columns]) = (a.shape(), b.shape()) else {
            return Err(OpError::new("matrices of other than two axes"));
        };
        if inner != own {
            return Err(OpError::new(format!("{inner} columns of A and {own} rows of B")));
        }
        let shape = [rows, columns];
        let count = bounded(DataType::Fp64, &shape)?;
        let at = |at: usize| [at / columns.max(1), at % columns.max(1)];
        if a.dtype().is_float() {
            let (x, y) = (floats(&a)?, floats(&b)?);
            let cell = |[row, column]: [usize; 2]| {
                let terms = (0..inner).map(|at| x[row * inner + at] * y[at * columns + column]);
                terms.sum::<f64>() * f64::from(self.alpha)
            };
            let result = (0..count).map(at).map(cell).collect();
            return Ok(vec![from_floats(a.dtype(), &shape, result)?]);
        }
        let (x, y) = (integers(&a)?, integers(&b)?);
        #[allow(clippy::cast_possible_truncation, reason = "the factor becomes an integer, as all")]
        let alpha = self.alpha as i128;
        let cell = |[row, column]: [usize; 2]| {
            let term = |at: usize| x[row * inner + at].wrapping_mul(y[at * columns + column]);
            (0..inner).map(term).fold(0, i128::wrapping_add).wrapping_mul(alpha)
        };
        let result: Vec<i128> = (0..count).map(at).map(cell).collect();
        Ok(vec![from_integers(a.dtype(), &shape, &result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    const NAME: &str = "com.microsoft:SparseToDenseMatMul";

    #[test]
    fn both_matrices_may_be_transposed_and_integers_stay_integers() {
        let a = tensor(&[2, 3], &[0.0_f32, 2.0, 0.0, 1.0, 0.0, 3.0]);
        let b = tensor(&[3, 1], &[4.0_f32, 5.0, 6.0]);
        let alpha = ("alpha", crate::AttributeValue::Float(0.5));
        let found = one(NAME, 1, &attributes([alpha.clone()]), &[&a, &b]);
        assert_eq!(found, tensor(&[2, 1], &[5.0_f32, 11.0]));
        let turned = attributes([("transA", int(1)), ("transB", int(1))]);
        let (at, bt) = (a.permute(&[1, 0]).unwrap(), b.permute(&[1, 0]).unwrap());
        assert_eq!(one(NAME, 1, &turned, &[&at, &bt]), tensor(&[2, 1], &[10.0_f32, 22.0]));
        let x = tensor(&[1, 2], &[1_i64 << 40, 3]);
        let y = tensor(&[2, 1], &[2_i64, -1]);
        let whole = one(NAME, 1, &attributes([]), &[&x, &y]);
        assert_eq!(whole, tensor(&[1, 1], &[(1_i64 << 41) - 3]));
        assert!(run(NAME, 1, &attributes([]), &[Some(&a), Some(&a)], 1).is_err());
        assert!(run(NAME, 1, &attributes([]), &[Some(&a), Some(&x)], 1).is_err());
    }
}
