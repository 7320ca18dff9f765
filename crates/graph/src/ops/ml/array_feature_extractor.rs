//! `ArrayFeatureExtractor`: some of the features of every row.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::expect_type;
use crate::ops::{bounds, picks};

/// ONNX `ArrayFeatureExtractor`: picks along the last axis. One vector is one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayFeatureExtractor;

impl ArrayFeatureExtractor {
    /// There are no attributes.
    pub(super) fn parse(_context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

fn expect_types(x: DataType, picks: DataType) -> Result<(), OpError> {
    use DataType::{Bytes, Fp32, Fp64, Int32, Int64};
    let allowed = |found| matches!(found, Fp32 | Fp64 | Int32 | Int64 | Bytes);
    expect_type("the input", x, allowed, "FP32, FP64, INT32, INT64 or BYTES")?;
    expect_type("the list of features", picks, |found| found == Int64, "INT64")
}

/// The axes before the features.
fn outer<T: Clone>(shape: &[T], one: T) -> Result<Vec<T>, OpError> {
    match shape {
        [] => Err(OpError::new("the input is a scalar, expected features")),
        [_] => Ok(vec![one]),
        [outer @ .., _] => Ok(outer.to_vec()),
    }
}

impl Operator for ArrayFeatureExtractor {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let picks = inputs.required(1)?;
        expect_types(x.dtype, picks.dtype)?;
        let Some(shape) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let count = picks.shape.as_ref().map_or(Dim::Unknown, bounds::product);
        let shape = [outer(shape, Dim::Known(1))?, vec![count]].concat();
        Ok(vec![Fact::new(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let picks = inputs.required(1)?;
        expect_types(x.dtype(), picks.dtype())?;
        let outer = outer(x.shape(), 1)?;
        let width = x.shape().last().copied().unwrap_or(0);
        let position = |at: i64| {
            usize::try_from(at).ok().filter(|&at| at < width).ok_or_else(|| {
                OpError::new(format!("feature {at} is picked of rows of {width} features"))
            })
        };
        let picks: Vec<usize> = collected(&mut picks.to_i64_vec()?.into_iter().map(position))?;
        let shape = [outer, vec![picks.len()]].concat();
        bounds::bounded(x.dtype(), &shape)?;
        let rows = x.elements().checked_div(width).unwrap_or(0);
        let starts: Vec<usize> = (0..rows * picks.len())
            .map(|at| at / picks.len() * width + picks[at % picks.len()])
            .collect();
        Ok(vec![picks::picked_runs(x, &shape, &starts, 1)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn features_are_picked_of_every_row() {
        let name = "ai.onnx.ml:ArrayFeatureExtractor";
        let x = tensor(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let picks = tensor(&[1, 2], &[2_i64, 0]);
        let found = one(name, 1, &attributes([]), &[&x, &picks]);
        assert_eq!(found, tensor(&[2, 2], &[3.0_f32, 1.0, 6.0, 4.0]));
        let vector = tensor(&[3], &[7_i64, 8, 9]);
        let found = one(name, 1, &attributes([]), &[&vector, &picks]);
        assert_eq!(found, tensor(&[1, 2], &[9_i64, 7]));
        for wrong in [-1_i64, 3] {
            let wrong = tensor(&[1], &[wrong]);
            let inputs = [Some(&x), Some(&wrong)];
            let error = run(name, 1, &attributes([]), &inputs, 1).unwrap_err();
            assert!(error.contains("rows of 3 features"), "{error}");
        }
    }
}
