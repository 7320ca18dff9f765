//! `LinearClassifier`: the class of the largest weighted sum of features.

use galatea_tensor::{DataType, Tensor};

use super::labels::{ClassChoice, ClassifierLabels, largest};
use super::linear_regressor::{RegressorWeights, list};
use super::post_transform::{PostTransform, ScoreComplement};
use super::rows::{FeatureRows, expect_numbers};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::from_floats;

/// ONNX `LinearClassifier`. One sum for two classes is that of the second one, which is chosen
/// where the sum is positive.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearClassifier {
    weights: RegressorWeights,
    /// The classes.
    pub labels: ClassifierLabels,
    /// The transform of the sums.
    pub post_transform: PostTransform,
}

impl LinearClassifier {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let labels =
            ClassifierLabels::parse(attributes, "classlabels_strings", "classlabels_ints")?;
        let post_transform = PostTransform::parse(attributes)?;
        // The coefficients already are those of the one scheme or the other.
        attributes.ignore("multi_class");
        let weights = RegressorWeights {
            coefficients: list(context, "coefficients")?,
            intercepts: list(context, "intercepts")?,
        };
        let operator = Self { weights, labels, post_transform };
        if operator.weights.coefficients.is_empty() {
            return Err(OpError::new("'coefficients' is missing or empty"));
        }
        if !operator.weights.intercepts.is_empty() {
            operator.expect_labels(operator.weights.intercepts.len())?;
        }
        Ok(Box::new(operator))
    }

    fn expect_labels(&self, sums: usize) -> Result<(), OpError> {
        if sums == 1 || sums == self.labels.len() {
            return Ok(());
        }
        Err(OpError::new(format!("{sums} sums for {} classes", self.labels.len())))
    }

    /// How many sums a row of this length has.
    fn sums(&self, width: usize) -> Result<usize, OpError> {
        let coefficients = self.weights.coefficients.len();
        let given = self.weights.intercepts.len();
        let sums = coefficients.checked_div(width).unwrap_or(0);
        if sums * width != coefficients || (given > 0 && given != sums) {
            return Err(OpError::new(format!(
                "{coefficients} coefficients and {given} intercepts do not fit {width} features"
            )));
        }
        self.expect_labels(sums).map(|()| sums)
    }

    /// How many scores come of so many sums.
    fn columns(&self, sums: usize) -> usize {
        if sums == 1 && self.labels.len() == 2 { 2 } else { sums }
    }

    /// The choice from the sums of a row.
    fn choice(&self, sums: &[f64]) -> ClassChoice {
        match (sums, self.labels.len()) {
            ([score], 2) => ClassChoice::Class(usize::from(*score > 0.0)),
            ([score], _) => ClassChoice::Positive(*score > 0.0),
            _ => ClassChoice::Class(largest(sums.iter().copied())),
        }
    }
}

impl Operator for LinearClassifier {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        let columns = match width {
            Some(width) => Dim::Known(self.columns(self.sums(width)?)),
            None => Dim::Unknown,
        };
        let scores = Fact::new(DataType::Fp32, vec![count.clone(), columns]);
        Ok(vec![Fact::new(self.labels.dtype(), vec![count]), scores])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        let columns = self.columns(self.sums(rows.width)?);
        let shape = [rows.count, columns];
        bounded(DataType::Fp64, &shape)?;
        let mut choices = Vec::new();
        let mut scores = Vec::new();
        for row in rows.iter() {
            let mut sums: Vec<f64> = self.weights.sums(row).collect();
            choices.push(self.choice(&sums));
            if columns > sums.len() {
                scores.extend(self.post_transform.both(sums[0], ScoreComplement::ToOne));
            } else {
                self.post_transform.apply(&mut sums);
                scores.extend(sums);
            }
        }
        Ok(vec![self.labels.of(&choices), from_floats(DataType::Fp32, &shape, scores)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, ints, run, tensor, text};
    use galatea_tensor::{ByteString, Tensor};

    fn floats(all: &[f32]) -> AttributeValue {
        AttributeValue::Floats(all.to_vec())
    }

    #[test]
    fn one_sum_decides_between_two_classes() {
        let mut list = attributes([
            ("coefficients", floats(&[1.0, -1.0])),
            ("intercepts", floats(&[0.25])),
            ("classlabels_ints", ints(&[3, 4])),
        ]);
        let x = tensor(&[2, 2], &[1.0_f32, 1.0, 0.0, 0.5]);
        let name = "ai.onnx.ml:LinearClassifier";
        let found = run(name, 1, &list, &[Some(&x)], 2).unwrap();
        assert_eq!(found[0], Tensor::vector(vec![4_i64, 3]));
        assert_eq!(found[1], tensor(&[2, 2], &[0.75_f32, 0.25, 1.25, -0.25]));
        list.insert("post_transform".to_owned(), text("LOGISTIC"));
        let scores = run(name, 1, &list, &[Some(&x)], 2).unwrap().remove(1);
        let scores = scores.to_vec::<f32>().unwrap();
        assert!((scores[1] - 0.562_176_5).abs() < 1e-6 && scores[0] < scores[1]);
    }

    #[test]
    fn the_largest_of_many_sums_wins() {
        let names = ["a", "b", "c"].map(ByteString::from).to_vec();
        let list = attributes([
            ("coefficients", floats(&[1.0, 2.0, 3.0])),
            ("classlabels_strings", AttributeValue::Strings(names)),
        ]);
        let x = tensor(&[2, 1], &[1.0_f64, -1.0]);
        let name = "ai.onnx.ml:LinearClassifier";
        let found = run(name, 1, &list, &[Some(&x)], 2).unwrap();
        assert_eq!(found[0], Tensor::vector(vec![ByteString::from("c"), "a".into()]));
        assert_eq!(found[1], tensor(&[2, 3], &[1.0_f32, 2.0, 3.0, -1.0, -2.0, -3.0]));
        for wrong in [tensor(&[1, 2], &[1.0_f32; 2]), tensor(&[1, 0], &[0.0_f32; 0])] {
            assert!(run(name, 1, &list, &[Some(&wrong)], 2).is_err());
        }
    }
}
