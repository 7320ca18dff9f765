//! `Normalizer`: rows of one size.

use galatea_tensor::{DataType, Tensor};

use super::rows::{FeatureRows, expect_numbers};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::from_floats;

/// Norm that measures the size of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorNorm {
    /// Its largest number.
    Max,
    /// The sum of its absolute numbers.
    L1,
    /// The root of the sum of its squares.
    L2,
}

/// ONNX `Normalizer`: rows over their sizes; a row of size 0 stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalizer {
    /// The norm that measures the size of a row.
    pub norm: VectorNorm,
}

impl Normalizer {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let choice = context.attributes.choice("norm", &["MAX", "L1", "L2"], 0)?;
        Ok(Box::new(Self { norm: [VectorNorm::Max, VectorNorm::L1, VectorNorm::L2][choice] }))
    }

    fn size(&self, row: &[f64]) -> f64 {
        match self.norm {
            VectorNorm::Max => row.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            VectorNorm::L1 => row.iter().map(|value| value.abs()).sum(),
            VectorNorm::L2 => row.iter().map(|value| value * value).sum::<f64>().sqrt(),
        }
    }
}

impl Operator for Normalizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        FeatureRows::inferred(x)?;
        Ok(vec![Fact::shaped(DataType::Fp32, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        bounded(DataType::Fp64, x.shape())?;
        let rows = FeatureRows::read(x)?;
        let mut all = Vec::with_capacity(x.elements());
        for row in rows.iter() {
            let size = Some(self.size(row)).filter(|&size| size != 0.0).unwrap_or(1.0);
            all.extend(row.iter().map(|value| value / size));
        }
        Ok(vec![from_floats(DataType::Fp32, x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor, text};

    #[test]
    fn rows_get_one_size() {
        let x = tensor(&[3, 2], &[3.0_f32, -4.0, 0.0, 0.0, -1.0, -2.0]);
        let of = |norm| {
            let list = attributes([("norm", text(norm))]);
            one("ai.onnx.ml:Normalizer", 1, &list, &[&x]).to_vec::<f32>().unwrap()
        };
        assert_eq!(of("MAX"), [1.0, -4.0 / 3.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(of("L1"), [3.0 / 7.0, -4.0 / 7.0, 0.0, 0.0, -1.0 / 3.0, -2.0 / 3.0]);
        assert_eq!(of("L2")[..4], [0.6, -0.8, 0.0, 0.0]);
        let deep = tensor(&[1, 1, 1], &[1.0_f32]);
        assert!(run("ai.onnx.ml:Normalizer", 1, &attributes([]), &[Some(&deep)], 1).is_err());
    }
}
