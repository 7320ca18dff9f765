//! `CDist`: the distance of each pair of rows.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{expect_float, expect_same, floats, from_floats};

/// Distances of the rows of `A` `[M, N]` from those of `B` `[K, N]`, of domain `com.microsoft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CDist {
    /// True if distances are squared.
    pub squared: bool,
}

impl CDist {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let metric = context.attributes.choice("metric", &["sqeuclidean", "euclidean"], 0)?;
        Ok(Box::new(Self { squared: metric == 0 }))
    }
}

impl Operator for CDist {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_float(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        let rows = |fact: &Fact| match fact.shape.as_deref() {
            None => Ok(Dim::Unknown),
            Some([rows, _]) => Ok(rows.clone()),
            Some(other) => Err(OpError::new(format!("rank {}, expected 2", other.len()))),
        };
        Ok(vec![Fact::new(a.dtype, vec![rows(a)?, rows(b)?])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_same(a.dtype(), b.dtype())?;
        let (&[m, n], &[k, width]) = (a.shape(), b.shape()) else {
            return Err(OpError::new("the operands are no matrices"));
        };
        if n != width {
            return Err(OpError::new(format!("rows of {n} and of {width} elements")));
        }
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &[m, k])?);
        let left = floats(a)?;
        let right = floats(b)?;
        for row in 0..m {
            let row = &left[row * n..(row + 1) * n];
            result.extend((0..k).map(|other| {
                let other = &right[other * n..(other + 1) * n];
                let sum: f64 = row.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum();
                if self.squared { sum } else { sum.sqrt() }
            }));
        }
        Ok(vec![from_floats(a.dtype(), &[m, k], result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, tensor, text};

    #[test]
    fn each_row_is_compared_with_each() {
        let a = tensor(&[1, 2], &[0.0_f32, 0.0]);
        let b = tensor(&[2, 2], &[3.0_f32, 4.0, 0.0, 1.0]);
        let squared = one("com.microsoft:CDist", 1, &attributes([]), &[&a, &b]);
        assert_eq!(squared, tensor(&[1, 2], &[25.0_f32, 1.0]));
        let list = attributes([("metric", text("euclidean"))]);
        assert_eq!(
            one("com.microsoft:CDist", 1, &list, &[&a, &b]),
            tensor(&[1, 2], &[5.0_f32, 1.0])
        );
    }
}
