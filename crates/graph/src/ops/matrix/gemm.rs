//! `Gemm`: a product of two matrices, scaled, plus a third.

use galatea_tensor::Tensor;

use super::product::ProductExtents;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{TensorValues, expect_number, expect_same};

/// `alpha · A · B + beta · C`, where `C` broadcasts to the product and may be absent from version
/// 11 on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of `C`.
    pub beta: f32,
    /// True if `A` is stored transposed.
    pub trans_a: bool,
    /// True if `B` is stored transposed.
    pub trans_b: bool,
}

impl Gemm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context)?))
    }

    /// Reads the attributes.
    pub(crate) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        Ok(Self {
            alpha: context.attributes.float_or("alpha", 1.0)?,
            beta: context.attributes.float_or("beta", 1.0)?,
            trans_a: context.attributes.flag("transA", false)?,
            trans_b: context.attributes.flag("transB", false)?,
        })
    }

    /// `alpha · product + beta · c` of integers: exact where the factors are 1.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "ONNX gives float factors to integer matrices; results are truncated"
    )]
    fn integer(&self, product: i128, c: i128) -> i128 {
        let scale = |factor: f32, value: i128| {
            if factor == 1.0 { value } else { (f64::from(factor) * value as f64) as i128 }
        };
        scale(self.alpha, product).wrapping_add(scale(self.beta, c))
    }
}

/// Rows and columns of a matrix, as stored or transposed.
fn matrix<'a, D>(shape: &'a [D], transposed: bool, name: &str) -> Result<(&'a D, &'a D), OpError> {
    match shape {
        [rows, columns] if transposed => Ok((columns, rows)),
        [rows, columns] => Ok((rows, columns)),
        _ => Err(OpError::new(format!("{name} has {} axes, expected 2", shape.len()))),
    }
}

/// Refuses a `C` that would enlarge the product.
fn check_c(c: &Fact, rows: &Dim, columns: &Dim) -> Result<(), OpError> {
    let Some(shape) = &c.shape else { return Ok(()) };
    let fits = |dim: Option<&Dim>, to: &Dim| match (dim.and_then(Dim::known), to.known()) {
        (Some(len), Some(to)) => len == 1 || len == to,
        _ => true,
    };
    let mut dims = shape.iter().rev();
    if shape.len() > 2 || !fits(dims.next(), columns) || !fits(dims.next(), rows) {
        return Err(OpError::new(format!("C is {c}, expected to broadcast to [{rows},{columns}]")));
    }
    Ok(())
}

impl Operator for Gemm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_number(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        let unknown = || vec![Dim::Unknown; 2];
        let dims_a = a.shape.clone().unwrap_or_else(unknown);
        let dims_b = b.shape.clone().unwrap_or_else(unknown);
        let (rows, inner_a) = matrix(&dims_a, self.trans_a, "A")?;
        let (inner_b, columns) = matrix(&dims_b, self.trans_b, "B")?;
        if let (Some(x), Some(y)) = (inner_a.known(), inner_b.known())
            && x != y
        {
            return Err(OpError::new(format!("A has {x} columns, B has {y} rows")));
        }
        if let Some(c) = inputs.optional(2) {
            expect_same(a.dtype, c.dtype)?;
            check_c(c, rows, columns)?;
        }
        Ok(vec![Fact::new(a.dtype, vec![rows.clone(), columns.clone()])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_number(a.dtype())?;
        expect_same(a.dtype(), b.dtype())?;
        let stored = |tensor: &Tensor, transposed: bool, name: &str| {
            matrix(tensor.shape(), transposed, name)?;
            Ok::<_, OpError>(if transposed { tensor.permute(&[1, 0])? } else { tensor.clone() })
        };
        let a = stored(a, self.trans_a, "A")?;
        let b = stored(b, self.trans_b, "B")?;
        let product = ProductExtents::new(a.shape(), b.shape(), a.dtype())?;
        let shape = &product.shape;
        let c = inputs.optional(2).map(|c| c.broadcast_to(shape)).transpose()?;
        if let Some(c) = &c {
            expect_same(a.dtype(), c.dtype())?;
        }
        let c = c.map(|c| TensorValues::read(&c)).transpose()?;
        let values = match (TensorValues::read(&a)?, TensorValues::read(&b)?) {
            (TensorValues::Floats(a), TensorValues::Floats(b)) => {
                let mut all = product.run(&a, &b, |sum, x, y| sum + x * y);
                all.iter_mut().for_each(|value| *value *= f64::from(self.alpha));
                if let Some(TensorValues::Floats(c)) = c {
                    let pairs = all.iter_mut().zip(c);
                    pairs.for_each(|(value, c)| *value += f64::from(self.beta) * c);
                }
                TensorValues::Floats(all)
            }
            (TensorValues::Integers(a), TensorValues::Integers(b)) => {
                let add = |sum: i128, x: i128, y| sum.wrapping_add(x.wrapping_mul(y));
                let mut all = product.run(&a, &b, add);
                let c =
                    if let Some(TensorValues::Integers(c)) = c { c } else { vec![0; all.len()] };
                all.iter_mut().zip(c).for_each(|(value, c)| *value = self.integer(*value, c));
                TensorValues::Integers(all)
            }
            (other, _) => other,
        };
        Ok(vec![values.write(a.dtype(), shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, parse, run, tensor};

    #[test]
    fn operands_are_transposed_scaled_and_added() {
        let a = tensor(&[2, 1], &[1.0_f32, 2.0]);
        let b = tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
        let c = Tensor::vector(vec![100.0_f32, 200.0]);
        let all = attributes([
            ("alpha", AttributeValue::Float(2.0)),
            ("beta", AttributeValue::Float(0.5)),
            ("transA", int(1)),
            ("transB", int(1)),
        ]);
        let found = one("Gemm", 13, &all, &[&a, &b, &c]);
        assert_eq!(found, tensor(&[1, 2], &[60.0_f32, 122.0]));
    }

    #[test]
    fn the_third_matrix_is_optional_from_version_11_on_and_never_larger() {
        let one_by_one = tensor(&[1, 1], &[3_i32]);
        let found = one("Gemm", 11, &attributes([]), &[&one_by_one, &one_by_one]);
        assert_eq!(found, tensor(&[1, 1], &[9_i32]));
        assert!(parse("Gemm", 9, &attributes([]), 2, 1).is_err());
        let c = Tensor::vector(vec![1_i32, 2]);
        let inputs = [Some(&one_by_one), Some(&one_by_one), Some(&c)];
        assert!(run("Gemm", 13, &attributes([]), &inputs, 1).is_err());
        let operator = parse("Gemm", 13, &attributes([]), 3, 1).unwrap();
        let facts = inputs.map(|one| one.map(|one| Fact::fixed(one.dtype(), one.shape())));
        let facts: Vec<_> = facts.iter().map(Option::as_ref).collect();
        assert!(operator.infer(OperatorInputs::new(&facts)).is_err());
    }
}
