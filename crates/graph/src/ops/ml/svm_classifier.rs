//! `SVMClassifier`: the class that wins most of the duels between two.

use galatea_tensor::{DataType, Tensor};

use super::kernel::SvmKernel;
use super::labels::{ClassChoice, ClassifierLabels, largest};
use super::linear_regressor::{RegressorWeights, list};
use super::post_transform::{PostTransform, ScoreComplement, logistic};
use super::rows::{FeatureRows, expect_numbers, expect_width};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::from_floats;

/// The vectors of all classes and how they decide the duels.
#[derive(Clone, Debug, PartialEq)]
struct ClassDuels {
    kernel: SvmKernel,
    /// The vectors, one after the other, those of a class together.
    vectors: Vec<f64>,
    /// The positions of the vectors of class `n` are those from `starts[n]` to `starts[n + 1]`.
    starts: Vec<usize>,
    /// The weights of all vectors against each other class, one other class after the other.
    coefficients: Vec<f64>,
    /// Constant added to the score of each pair of classes.
    rho: Vec<f64>,
    /// How scores become probabilities: scale and shift for each pair; may be empty.
    probabilities: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
enum VectorMachine {
    /// Pairs of classes are compared.
    Duels(ClassDuels),
    /// Each class has a weighted sum of features.
    Linear(RegressorWeights),
}

/// ONNX `SVMClassifier`.
#[derive(Clone, Debug, PartialEq)]
pub struct SvmClassifier {
    machine: VectorMachine,
    features: usize,
    positive: bool,
    probabilities: bool,
    /// The classes.
    pub labels: ClassifierLabels,
    /// The transform of the scores.
    pub post_transform: PostTransform,
}

/// There are a quadratic number of pairs of classes.
const MAX_CLASSES: usize = 65_535;

impl SvmClassifier {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let labels =
            ClassifierLabels::parse(attributes, "classlabels_strings", "classlabels_ints")?;
        let post_transform = PostTransform::parse(attributes)?;
        let counts = attributes.ints("vectors_per_class")?.unwrap_or_default();
        let counts = bounds::lengths(&counts, "an entry of 'vectors_per_class'")?;
        let kernel = SvmKernel::parse(context)?;
        let vectors = list(context, "support_vectors")?;
        let coefficients = list(context, "coefficients")?;
        let rho = list(context, "rho")?;
        let scale = list(context, "prob_a")?;
        let shift = list(context, "prob_b")?;
        if scale.len() != shift.len() || coefficients.is_empty() || rho.is_empty() {
            return Err(OpError::new(format!(
                "{} coefficients, {} rho, {} prob_a and {} prob_b",
                coefficients.len(),
                rho.len(),
                scale.len(),
                shift.len()
            )));
        }
        let classes = labels.len();
        if classes > MAX_CLASSES {
            return Err(OpError::new(format!("more than {MAX_CLASSES} classes")));
        }
        let positive = coefficients.iter().all(|&one| one >= 0.0);
        let probabilities: Vec<(f64, f64)> = scale.into_iter().zip(shift).collect();
        let has_probabilities = !probabilities.is_empty();
        let any = counts.iter().any(|&n| n > 0);
        let (machine, features) = if any {
            let starts = Vec::new();
            let duels = ClassDuels { kernel, vectors, starts, coefficients, rho, probabilities };
            let (duels, features) = duels.check(classes, &counts)?;
            (VectorMachine::Duels(duels), features)
        } else {
            let features = coefficients.len() / classes;
            if features * classes != coefficients.len() {
                let found = coefficients.len();
                return Err(OpError::new(format!("{found} coefficients for {classes} classes")));
            }
            let intercepts = vec![rho[0]; classes];
            (VectorMachine::Linear(RegressorWeights { coefficients, intercepts }), features)
        };
        let probabilities = has_probabilities;
        Ok(Box::new(Self { machine, features, positive, probabilities, labels, post_transform }))
    }

    /// Numbers in a row of scores.
    fn columns(&self) -> usize {
        let classes = self.labels.len();
        match &self.machine {
            VectorMachine::Duels(_) if !self.probabilities && classes > 2 => {
                classes * (classes - 1) / 2
            }
            VectorMachine::Duels(_) if !self.probabilities => 2,
            _ => classes,
        }
    }

    /// The choice and the scores of a row of features.
    fn row(&self, row: &[f64]) -> (ClassChoice, Vec<f64>) {
        let classes = self.labels.len();
        let (choice, mut scores) = match &self.machine {
            VectorMachine::Linear(weights) => {
                let scores: Vec<f64> = weights.sums(row).collect();
                (self.linear_choice(&scores), scores)
            }
            VectorMachine::Duels(duels) => {
                let (votes, scores) = duels.scores(row, classes);
                let choice = ClassChoice::Class(largest(votes));
                if self.probabilities {
                    (choice, duels.class_probabilities(&scores, classes))
                } else {
                    (choice, scores)
                }
            }
        };
        if let ([score], 2) = (&scores[..], self.columns()) {
            let none = self.post_transform == PostTransform::None;
            let complement = if none { ScoreComplement::Negative } else { ScoreComplement::ToOne };
            return (choice, self.post_transform.both(*score, complement).to_vec());
        }
        self.post_transform.apply(&mut scores);
        (choice, scores)
    }

    /// Chooses the second of two classes as soon as any score is high enough, like ONNX Runtime;
    /// else the class with the largest score.
    fn linear_choice(&self, scores: &[f64]) -> ClassChoice {
        let best = largest(scores.iter().copied());
        let least = if self.positive { scores[best] >= 0.5 } else { scores[best] > 0.0 };
        if scores.len() == 2 && !self.probabilities && least {
            return ClassChoice::Class(1);
        }
        ClassChoice::Class(best)
    }
}

impl ClassDuels {
    /// Checks the lengths and finds where the vectors of each class start.
    fn check(mut self, classes: usize, counts: &[usize]) -> Result<(Self, usize), OpError> {
        let mut vectors = 0_usize;
        self.starts.push(0);
        for &count in counts {
            vectors = vectors.saturating_add(count);
            self.starts.push(vectors);
        }
        let pairs = classes * (classes - 1) / 2;
        let wanted = vectors.saturating_mul(classes - 1);
        let probabilities = self.probabilities.len();
        if classes < 2
            || counts.len() != classes
            || !self.vectors.len().is_multiple_of(vectors)
            || self.coefficients.len() < wanted
            || self.rho.len() < pairs
            || (probabilities > 0 && probabilities < pairs)
        {
            return Err(OpError::new(format!(
                "{} coefficients, {} elements of vectors, {} rho and {probabilities} \
                 probabilities do not fit {vectors} vectors of {} of {classes} classes",
                self.coefficients.len(),
                self.vectors.len(),
                self.rho.len(),
                counts.len()
            )));
        }
        let features = self.vectors.len() / vectors;
        Ok((self, features))
    }

    /// Duels won by each class, and the score of each duel: positive where the first class wins.
    fn scores(&self, row: &[f64], classes: usize) -> (Vec<f64>, Vec<f64>) {
        let width = row.len();
        let vectors = self.starts[classes];
        let vector = |at: usize| &self.vectors[at * width..(at + 1) * width];
        let kernels: Vec<f64> = (0..vectors).map(|at| self.kernel.of(row, vector(at))).collect();
        let weighed = |class: usize, line: usize| {
            let places = self.starts[class]..self.starts[class + 1];
            places.map(|at| self.coefficients[line * vectors + at] * kernels[at]).sum::<f64>()
        };
        let mut votes = vec![0.0; classes];
        let mut scores = Vec::new();
        for first in 0..classes {
            for second in first + 1..classes {
                let rho = self.rho[scores.len()];
                let score = weighed(first, second - 1) + weighed(second, first) + rho;
                votes[if score > 0.0 { first } else { second }] += 1.0;
                scores.push(score);
            }
        }
        (votes, scores)
    }

    /// The probability of each class from the scores of the duels.
    fn class_probabilities(&self, scores: &[f64], classes: usize) -> Vec<f64> {
        // Never quite certain, so that the coupling below has a solution.
        const LEAST: f64 = 1e-7;
        let mut pairs = vec![0.0; classes * classes];
        let mut all = scores.iter().zip(&self.probabilities);
        for first in 0..classes {
            for second in first + 1..classes {
                let Some((score, (scale, shift))) = all.next() else { break };
                let won = (1.0 - logistic(score * scale + shift)).clamp(LEAST, 1.0 - LEAST);
                pairs[first * classes + second] = won;
                pairs[second * classes + first] = 1.0 - won;
            }
        }
        coupled(&pairs, classes)
    }
}

/// Probabilities of classes from those of the pairs.
///
/// Source: Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise
/// Coupling" (2004), second method.
#[allow(clippy::cast_precision_loss, reason = "there are few classes")]
fn coupled(pairs: &[f64], classes: usize) -> Vec<f64> {
    const ROUNDS: usize = 100;
    let enough = 0.005 / classes as f64;
    let pair = |a: usize, b: usize| pairs[a * classes + b];
    let entry = |row: usize, column: usize| {
        if row != column {
            return -pair(column, row) * pair(row, column);
        }
        (0..classes).filter(|&other| other != row).map(|other| pair(other, row).powi(2)).sum()
    };
    let matrix: Vec<f64> =
        (0..classes * classes).map(|at| entry(at / classes, at % classes)).collect();
    let mut shares = vec![1.0 / classes as f64; classes];
    for _ in 0..ROUNDS {
        let product = |row: usize, shares: &[f64]| {
            let line = &matrix[row * classes..(row + 1) * classes];
            line.iter().zip(shares).map(|(a, b)| a * b).sum::<f64>()
        };
        let mut products: Vec<f64> = (0..classes).map(|row| product(row, &shares)).collect();
        let mut whole: f64 = shares.iter().zip(&products).map(|(a, b)| a * b).sum();
        if products.iter().all(|one| (one - whole).abs() < enough) {
            break;
        }
        for at in 0..classes {
            let diagonal = matrix[at * classes + at];
            let step = (whole - products[at]) / diagonal;
            shares[at] += step;
            let total = 1.0 + step;
            whole = (whole + step * (step * diagonal + 2.0 * products[at])) / total / total;
            for other in 0..classes {
                products[other] = (products[other] + step * matrix[at * classes + other]) / total;
                shares[other] /= total;
            }
        }
    }
    shares
}

impl Operator for SvmClassifier {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        width.map_or(Ok(()), |width| expect_width(width, self.features))?;
        let scores = vec![count.clone(), Dim::Known(self.columns())];
        Ok(vec![Fact::new(self.labels.dtype(), vec![count]), Fact::new(DataType::Fp32, scores)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        expect_width(rows.width, self.features)?;
        let shape = [rows.count, self.columns()];
        bounded(DataType::Fp64, &[rows.count.max(1), self.columns()])?;
        let mut choices = Vec::new();
        let mut scores = Vec::new();
        for row in rows.iter() {
            let (choice, found) = self.row(row);
            choices.push(choice);
            scores.extend(found);
        }
        Ok(vec![self.labels.of(&choices), from_floats(DataType::Fp32, &shape, scores)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::{AttributeValue, Attributes};
    use crate::ops::testing::{attributes, ints, run, tensor};
    use galatea_tensor::Tensor;

    const NAME: &str = "ai.onnx.ml:SVMClassifier";

    fn floats(all: &[f32]) -> AttributeValue {
        AttributeValue::Floats(all.to_vec())
    }

    /// Two vectors on a line, one a class.
    fn two() -> Attributes {
        attributes([
            ("classlabels_ints", ints(&[3, 4])),
            ("vectors_per_class", ints(&[1, 1])),
            ("support_vectors", floats(&[1.0, -1.0])),
            ("coefficients", floats(&[0.5, -0.5])),
            ("rho", floats(&[0.25])),
        ])
    }

    #[test]
    fn two_classes_have_one_duel() {
        let x = tensor(&[2, 1], &[1.0_f32, -1.0]);
        let mut list = two();
        let found = run(NAME, 1, &list, &[Some(&x)], 2).unwrap();
        // 0.5 x + 0.5 x + 0.25
        assert_eq!(found[0], Tensor::vector(vec![3_i64, 4]));
        assert_eq!(found[1], tensor(&[2, 2], &[-1.25_f32, 1.25, 0.75, -0.75]));
        list.insert("prob_a".to_owned(), floats(&[-1.0]));
        list.insert("prob_b".to_owned(), floats(&[0.25]));
        let found = run(NAME, 1, &list, &[Some(&x)], 2).unwrap()[1].to_vec::<f32>().unwrap();
        // 1 / (1 + exp(-1)) for the first class.
        assert!((found[0] - 0.731_058_6).abs() < 5e-3, "{found:?}");
        assert!((found[0] + found[1] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn without_vectors_each_class_has_a_sum() {
        let list = attributes([
            ("classlabels_ints", ints(&[3, 4, 5])),
            ("coefficients", floats(&[1.0, -1.0, 0.5])),
            ("rho", floats(&[0.25])),
        ]);
        let x = tensor(&[2, 1], &[1.0_f32, -1.0]);
        let found = run(NAME, 1, &list, &[Some(&x)], 2).unwrap();
        assert_eq!(found[0], Tensor::vector(vec![3_i64, 4]));
        assert_eq!(found[1], tensor(&[2, 3], &[1.25_f32, -0.75, 0.75, -0.75, 1.25, -0.25]));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        for (name, value) in [
            ("vectors_per_class", ints(&[1, 1, 1])),
            ("vectors_per_class", ints(&[i64::MAX, i64::MAX])),
            ("vectors_per_class", ints(&[2, -1])),
            ("coefficients", floats(&[0.5])),
            ("support_vectors", floats(&[0.5])),
            ("rho", floats(&[])),
            ("prob_a", floats(&[1.0])),
            ("kernel_params", floats(&[1.0])),
        ] {
            let mut list = two();
            list.insert(name.to_owned(), value);
            let x = tensor(&[1, 1], &[1.0_f32]);
            assert!(run(NAME, 1, &list, &[Some(&x)], 2).is_err(), "{name}");
        }
    }
}
