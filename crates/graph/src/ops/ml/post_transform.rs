//! Transforms of the scores of a model.

use crate::attribute::AttributeReader;
use crate::error::OpError;

/// Transform of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostTransform {
    /// No transform.
    #[default]
    None,
    /// To shares of 1 by their exponentials.
    Softmax,
    /// Each by the logistic function.
    Logistic,
    /// Same as softmax, but scores of 0 stay 0.
    SoftmaxZero,
    /// Each by the inverse of the normal distribution function.
    Probit,
}

/// The second score that goes with the score of the positive class of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScoreComplement {
    /// The difference to 1.
    ToOne,
    /// The negative.
    Negative,
}

/// The transforms in the order of their numbers in `TreeEnsemble`.
pub(super) const ALL: [PostTransform; 5] = [
    PostTransform::None,
    PostTransform::Softmax,
    PostTransform::Logistic,
    PostTransform::SoftmaxZero,
    PostTransform::Probit,
];

/// Scores nearer to 0 than this are left out of `SOFTMAX_ZERO`.
const ZERO: f64 = 1e-7;

impl PostTransform {
    /// Reads the attribute.
    pub(super) fn parse(attributes: &mut AttributeReader<'_>) -> Result<Self, OpError> {
        let names = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];
        Ok(ALL[attributes.choice("post_transform", &names, 0)?])
    }

    /// Transforms the scores of one example. A single score only knows `PROBIT`, as in ONNX
    /// Runtime.
    pub(super) fn apply(self, scores: &mut [f64]) {
        match self {
            Self::Probit => scores.iter_mut().for_each(|score| *score = probit(*score)),
            _ if scores.len() < 2 => {}
            Self::None => {}
            Self::Logistic => scores.iter_mut().for_each(|score| *score = logistic(*score)),
            Self::Softmax => share(scores, |_| true),
            Self::SoftmaxZero => share(scores, |score| score.abs() > ZERO),
        }
    }

    /// The scores of both classes where a model gives only that of the positive one.
    pub(super) fn both(self, score: f64, complement: ScoreComplement) -> [f64; 2] {
        let other = match complement {
            ScoreComplement::ToOne => 1.0 - score,
            ScoreComplement::Negative => -score,
        };
        match self {
            Self::Logistic => [logistic(-score), logistic(score)],
            Self::Probit => [probit(other), probit(score)],
            Self::None | Self::Softmax | Self::SoftmaxZero => [other, score],
        }
    }
}

/// Shares of 1 for the scores that count; the others stay next to 0.
fn share(scores: &mut [f64], counts: impl Fn(f64) -> bool) {
    let largest = scores.iter().copied().fold(f64::MIN, f64::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        if counts(*score) {
            *score = (*score - largest).exp();
            sum += *score;
        } else {
            *score *= (-largest).exp();
        }
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// The logistic function.
pub(super) fn logistic(value: f64) -> f64 {
    let positive = 1.0 / (1.0 + (-value.abs()).exp());
    if value < 0.0 { 1.0 - positive } else { positive }
}

/// The inverse of the standard normal distribution function, as far as ONNX Runtime computes it.
///
/// Source: Winitzki, "A handy approximation for the error function and its inverse" (2008).
#[allow(clippy::approx_constant, reason = "results are those of ONNX Runtime")]
fn probit(value: f64) -> f64 {
    const A: f64 = 0.147;
    const PI: f64 = 3.14159;
    let x = 2.0 * value - 1.0;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let half = 2.0 / (PI * A) + 0.5 * log;
    let root = ((half * half - log / A).sqrt() - half).sqrt();
    std::f64::consts::SQRT_2 * if x < 0.0 { -root } else { root }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
        }
    }

    fn applied(transform: PostTransform, scores: &[f64]) -> Vec<f64> {
        let mut scores = scores.to_vec();
        transform.apply(&mut scores);
        scores
    }

    #[test]
    fn scores_are_transformed() {
        let two = [0.0, 3_f64.ln()];
        near(&applied(PostTransform::Softmax, &two), &[0.25, 0.75]);
        near(&applied(PostTransform::Logistic, &two), &[0.5, 0.75]);
        near(&applied(PostTransform::SoftmaxZero, &two), &[0.0, 1.0]);
        near(&applied(PostTransform::Probit, &[0.5, 0.8413]), &[0.0, 1.0]);
        near(&applied(PostTransform::Softmax, &[7.0]), &[7.0]);
        assert!(applied(PostTransform::Probit, &[2.0])[0].is_nan());
    }

    #[test]
    fn a_second_class_completes_the_first() {
        near(&PostTransform::None.both(0.3, ScoreComplement::ToOne), &[0.7, 0.3]);
        near(&PostTransform::Softmax.both(0.3, ScoreComplement::Negative), &[-0.3, 0.3]);
        near(&PostTransform::Logistic.both(3_f64.ln(), ScoreComplement::ToOne), &[0.25, 0.75]);
    }
}
