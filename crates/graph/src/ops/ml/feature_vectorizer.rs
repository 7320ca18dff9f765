//! `FeatureVectorizer`: the features of several inputs in one row.

use galatea_tensor::{DataType, Tensor};

use super::rows::{FeatureRows, expect_numbers};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_same, from_floats};

/// ONNX `FeatureVectorizer`. An input with more features than declared is cut, one with less is
/// filled with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureVectorizer {
    /// The number of features of each input; empty for as many as there are.
    pub widths: Vec<usize>,
}

impl FeatureVectorizer {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let widths = context.attributes.ints("inputdimensions")?.unwrap_or_default();
        let widths = bounds::lengths(&widths, "an entry of 'inputdimensions'")?;
        if !widths.is_empty() && widths.len() != context.inputs {
            let found = widths.len();
            let inputs = context.inputs;
            let text = format!("'inputdimensions' has {found} entries for {inputs} inputs");
            return Err(OpError::new(text));
        }
        Ok(Box::new(Self { widths }))
    }
}

fn uneven(a: impl std::fmt::Display, b: impl std::fmt::Display) -> OpError {
    OpError::new(format!("inputs have {a} and {b} rows, expected the same number"))
}

impl Operator for FeatureVectorizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let all = inputs.all_required()?;
        let mut count = Dim::Unknown;
        let mut width = Some(0_usize);
        for (at, x) in all.iter().enumerate() {
            expect_numbers(x.dtype)?;
            expect_same(all[0].dtype, x.dtype)?;
            let (rows, features) = FeatureRows::inferred(x)?;
            match (&count, &rows) {
                (Dim::Known(a), Dim::Known(b)) if a != b => return Err(uneven(a, b)),
                (Dim::Known(_), _) | (_, Dim::Unknown) => {}
                _ => count = rows,
            }
            let features = self.widths.get(at).copied().or(features);
            width = width.zip(features).and_then(|(sum, one)| sum.checked_add(one));
        }
        Ok(vec![Fact::new(DataType::Fp32, vec![count, width.map_or(Dim::Unknown, Dim::Known)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let all = inputs.all_required()?;
        let mut parts = Vec::new();
        for x in &all {
            expect_numbers(x.dtype())?;
            expect_same(all[0].dtype(), x.dtype())?;
            parts.push(FeatureRows::read(x)?);
        }
        let count = parts.first().map_or(0, |part| part.count);
        if let Some(other) = parts.iter().find(|part| part.count != count) {
            return Err(uneven(count, other.count));
        }
        let width = |at: usize| self.widths.get(at).copied().unwrap_or(parts[at].width);
        let total = (0..parts.len()).try_fold(0_usize, |sum, at| sum.checked_add(width(at)));
        let total = total.ok_or_else(|| OpError::new("'inputdimensions' are too large"))?;
        let shape = [count, total];
        let mut result = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let mut start = 0;
        for (at, part) in parts.iter().enumerate() {
            let taken = width(at).min(part.width);
            for (index, row) in part.iter().enumerate() {
                let first = index * total + start;
                result[first..first + taken].copy_from_slice(&row[..taken]);
            }
            start += width(at);
        }
        Ok(vec![from_floats(DataType::Fp32, &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, ints, one, run, tensor};

    #[test]
    fn features_are_put_side_by_side() {
        let a = tensor(&[2, 2], &[1_i64, 2, 3, 4]);
        let b = tensor(&[2, 1], &[5_i64, 6]);
        let name = "ai.onnx.ml:FeatureVectorizer";
        let list = attributes([("inputdimensions", ints(&[1, 2]))]);
        let expected = tensor(&[2, 3], &[1.0_f32, 5.0, 0.0, 3.0, 6.0, 0.0]);
        assert_eq!(one(name, 1, &list, &[&a, &b]), expected);
        let whole = one(name, 1, &attributes([]), &[&a, &b]);
        assert_eq!(whole, tensor(&[2, 3], &[1.0_f32, 2.0, 5.0, 3.0, 4.0, 6.0]));
        let vector = tensor(&[2], &[7_i64, 8]);
        let found = one(name, 1, &attributes([]), &[&vector]);
        assert_eq!(found, tensor(&[1, 2], &[7.0_f32, 8.0]));
        let uneven = run(name, 1, &list, &[Some(&a), Some(&vector)], 1).unwrap_err();
        assert!(uneven.contains("2 and 1 rows"), "{uneven}");
        let huge = attributes([("inputdimensions", ints(&[i64::MAX, i64::MAX]))]);
        assert!(run(name, 1, &huge, &[Some(&a), Some(&b)], 1).is_err());
        assert!(run(name, 1, &list, &[Some(&a)], 1).is_err());
    }
}
