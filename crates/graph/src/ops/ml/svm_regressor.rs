//! `SVMRegressor`: the weighted likeness of an example to support vectors.

use galatea_tensor::{DataType, Tensor};

use super::kernel::{KernelKind, SvmKernel};
use super::linear_regressor::list;
use super::post_transform::PostTransform;
use super::rows::{FeatureRows, expect_numbers, expect_width};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::from_floats;

/// ONNX `SVMRegressor`. Without support vectors it is a weighted sum of features.
#[derive(Clone, Debug, PartialEq)]
pub struct SvmRegressor {
    /// How alike vectors are.
    pub kernel: SvmKernel,
    /// The vectors, one after the other; without any, all coefficients are one vector.
    pub vectors: Vec<f64>,
    /// The weight of each vector.
    pub coefficients: Vec<f64>,
    /// Constant added to the sum.
    pub rho: f64,
    /// True if the answer is 1 for what belongs to the class and -1 for what does not.
    pub one_class: bool,
}

impl SvmRegressor {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let kernel = SvmKernel::parse(context)?;
        // A single score is not transformed, as in ONNX Runtime.
        PostTransform::parse(&mut context.attributes)?;
        let one_class = context.attributes.flag("one_class", false)?;
        let supports = bounds::length(context.attributes.int_or("n_supports", 0)?, "n_supports")?;
        let vectors = list(context, "support_vectors")?;
        let coefficients = list(context, "coefficients")?;
        let rho = list(context, "rho")?.first().copied();
        let rho = rho.ok_or_else(|| OpError::new("'rho' is missing or empty"))?;
        if supports == 0 {
            let kernel = SvmKernel { kind: KernelKind::Linear, ..kernel };
            let vectors = coefficients;
            let coefficients = vec![1.0];
            if vectors.is_empty() {
                return Err(OpError::new("'coefficients' is missing or empty"));
            }
            return Ok(Box::new(Self { kernel, vectors, coefficients, rho, one_class }));
        }
        if coefficients.len() != supports || vectors.len() % supports != 0 {
            return Err(OpError::new(format!(
                "{} coefficients and {} elements for {supports} support vectors",
                coefficients.len(),
                vectors.len()
            )));
        }
        Ok(Box::new(Self { kernel, vectors, coefficients, rho, one_class }))
    }

    fn features(&self) -> usize {
        self.vectors.len() / self.coefficients.len()
    }

    fn score(&self, row: &[f64]) -> f64 {
        let width = row.len();
        let weighted = self.coefficients.iter().enumerate().map(|(at, coefficient)| {
            coefficient * self.kernel.of(row, &self.vectors[at * width..(at + 1) * width])
        });
        let score = weighted.sum::<f64>() + self.rho;
        match self.one_class {
            true if score > 0.0 => 1.0,
            true => -1.0,
            false => score,
        }
    }
}

impl Operator for SvmRegressor {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        width.map_or(Ok(()), |width| expect_width(width, self.features()))?;
        Ok(vec![Fact::new(DataType::Fp32, vec![count, Dim::Known(1)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        expect_width(rows.width, self.features())?;
        bounds::bounded(DataType::Fp64, &[rows.count])?;
        let scores = rows.iter().map(|row| self.score(row)).collect();
        Ok(vec![from_floats(DataType::Fp32, &[rows.count, 1], scores)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, run, tensor, text};

    fn floats(all: &[f32]) -> AttributeValue {
        AttributeValue::Floats(all.to_vec())
    }

    #[test]
    fn likeness_to_support_vectors_is_weighed() {
        let mut list = attributes([
            ("kernel_type", text("POLY")),
            ("kernel_params", floats(&[1.0, 1.0, 2.0])),
            ("n_supports", int(2)),
            ("support_vectors", floats(&[1.0, 0.0, 0.0, 2.0])),
            ("coefficients", floats(&[0.5, -0.25])),
            ("rho", floats(&[0.5])),
        ]);
        let name = "ai.onnx.ml:SVMRegressor";
        let x = tensor(&[2, 2], &[1.0_f32, 1.0, -1.0, 0.0]);
        // (1 + 1)² / 2 - (2 + 1)² / 4 + 1 / 2, and 0 / 2 - 1 / 4 + 1 / 2.
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[2, 1], &[0.25_f32, 0.25]));
        list.insert("one_class".to_owned(), int(1));
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[2, 1], &[1.0_f32, 1.0]));
        list.insert("n_supports".to_owned(), int(3));
        assert!(run(name, 1, &list, &[Some(&x)], 1).unwrap_err().contains("3 support vectors"));
    }

    #[test]
    fn without_support_vectors_features_are_weighed() {
        let list = attributes([("coefficients", floats(&[2.0, -1.0])), ("rho", floats(&[0.5]))]);
        let name = "ai.onnx.ml:SVMRegressor";
        let x = tensor(&[1, 2], &[1_i32, 4]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[1, 1], &[-1.5_f32]));
        let wide = tensor(&[1, 3], &[1_i32, 4, 0]);
        assert!(run(name, 1, &list, &[Some(&wide)], 1).unwrap_err().contains("3 features"));
    }
}
