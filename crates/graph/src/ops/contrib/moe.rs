//! `MoE`: a mixture of experts, of which each token takes a few.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// Function between the two layers of an expert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertActivation {
    /// Numbers above 0.
    Relu,
    /// Approximation of GELU by a hyperbolic tangent.
    Gelu,
    /// `x · sigmoid(x)`.
    Silu,
    /// Nothing.
    Identity,
    /// `g · sigmoid(alpha · g) · (l + beta)` of gates and values, which alternate.
    SwiGlu {
        /// Factor inside the sigmoid.
        alpha: f32,
        /// Added to the value.
        beta: f32,
        /// The most that a gate and the size of a value may be.
        limit: f32,
    },
}

impl ExpertActivation {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let attributes = &mut context.attributes;
        let names = ["relu", "gelu", "silu", "identity", "swiglu"];
        let chosen = attributes.choice("activation_type", &names, 0)?;
        let alpha = attributes.float_or("activation_alpha", 1.0)?;
        let beta = attributes.float_or("activation_beta", 0.0)?;
        let limit = attributes.float("swiglu_limit")?.unwrap_or(f32::INFINITY);
        if limit.is_nan() || limit < 0.0 {
            return Err(OpError::new(format!(
                "attribute 'swiglu_limit' is {limit}, expected a number that is not negative"
            )));
        }
        let fusion = attributes.int_or("swiglu_fusion", 0)?;
        if attributes.flag("swiglu_limit_after_activation", false)? {
            return Err(OpError::new("attribute 'swiglu_limit_after_activation' is set"));
        }
        Ok(match chosen {
            0 => Self::Relu,
            1 => Self::Gelu,
            2 => Self::Silu,
            3 => Self::Identity,
            _ if fusion == 1 => Self::SwiGlu { alpha, beta, limit },
            _ => {
                let text = format!("attribute 'swiglu_fusion' is {fusion}, expected 1");
                return Err(OpError::new(text));
            }
        })
    }

    /// Rows of the first layer for each column of the second.
    pub(super) fn fusion(self) -> usize {
        if matches!(self, Self::SwiGlu { .. }) { 2 } else { 1 }
    }

    pub(super) fn apply(self, values: Vec<f64>) -> Vec<f64> {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let each = |function: &dyn Fn(f64) -> f64| values.iter().map(|&x| function(x)).collect();
        match self {
            // Compared such that a NaN stays one.
            Self::Relu => each(&|x| if x < 0.0 { 0.0 } else { x }),
            Self::Gelu => each(&|x| {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }),
            Self::Silu => each(&|x| x * sigmoid(x)),
            Self::Identity => values,
            Self::SwiGlu { alpha, beta, limit } => {
                let (alpha, beta, limit) = (f64::from(alpha), f64::from(beta), f64::from(limit));
                let pair = |pair: &[f64]| {
                    let gate = if pair[0] > limit { limit } else { pair[0] };
                    gate * sigmoid(alpha * gate) * (pair[1].clamp(-limit, limit) + beta)
                };
                values.chunks_exact(2).map(pair).collect()
            }
        }
    }
}

/// Choice of experts for each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertRouting {
    /// Experts of a token.
    pub count: usize,
    /// True if the weights of a token's experts add up to 1.
    pub normalised: bool,
}

/// An expert of a token.
pub(super) struct RoutedExpert {
    pub(super) index: usize,
    pub(super) weight: f64,
}

impl ExpertRouting {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        if context.attributes.flag("use_sparse_mixer", false)? {
            return Err(OpError::new("attribute 'use_sparse_mixer' is set"));
        }
        let count = context.attributes.int_or("k", 1)?;
        let normalised = context.attributes.flag("normalize_routing_weights", false)?;
        Ok(Self { count: bounds::length(count, "attribute 'k'")?, normalised })
    }

    /// The experts of one token of quantized experts, whose weights add up to 1 unless `mixing` gives them.
    pub(super) fn mixed(self, scores: &[f64], mixing: Option<&[f64]>) -> Vec<RoutedExpert> {
        let Some(mixing) = mixing else {
            return Self { normalised: true, ..self }.experts(scores);
        };
        let mut chosen = self.experts(scores);
        let weight = |expert: &RoutedExpert| mixing.get(expert.index).copied().unwrap_or(0.0);
        let sum: f64 = chosen.iter().map(weight).sum();
        let divisor = if self.normalised && sum > 0.0 { sum } else { 1.0 };
        chosen.iter_mut().for_each(|expert| expert.weight = weight(expert) / divisor);
        chosen
    }

    /// The experts of one token, by its scores of all.
    pub(super) fn experts(self, scores: &[f64]) -> Vec<RoutedExpert> {
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.truncate(self.count);
        let weight = |&index: &usize| (scores[index] - largest).exp() / total;
        let sum: f64 = order.iter().map(weight).sum();
        let divisor = if self.normalised { sum } else { 1.0 };
        let routed = |index| RoutedExpert { index, weight: weight(&index) / divisor };
        order.into_iter().map(routed).collect()
    }
}

/// `MoE` of domain `com.microsoft`.
///
/// Inputs: tokens `[…, hidden]`, scores of experts `[tokens, experts]`, the first layers `[experts, inner, hidden]`
/// and optionally their biases, the second layers `[experts, hidden, inner]` and optionally their biases.
/// Output: tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixtureOfExperts {
    /// Choice of experts.
    pub routing: ExpertRouting,
    /// Function between the layers.
    pub activation: ExpertActivation,
}

impl MixtureOfExperts {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let routing = ExpertRouting::parse(context)?;
        Ok(Box::new(Self { routing, activation: ExpertActivation::parse(context)? }))
    }
}

/// One layer of all experts.
pub(super) struct ExpertLayer {
    weights: Vec<f64>,
    bias: Option<Vec<f64>>,
    rows: usize,
    columns: usize,
}

impl ExpertLayer {
    /// Reads weights `[experts, rows, columns]` and biases `[experts, rows]`.
    pub(super) fn read(
        weights: &Tensor,
        bias: Option<&Tensor>,
        experts: usize,
        columns: usize,
    ) -> Result<Self, OpError> {
        let rows = match *weights.shape() {
            [count, rows, own] if count == experts && own == columns => rows,
            _ => {
                let text = format!("weights of shape {:?}", weights.shape());
                return Err(OpError::new(format!("{text} for {experts} experts of {columns}")));
            }
        };
        Self::of(floats(weights)?, bias, [experts, rows, columns])
    }

    /// A layer of weights `[experts, rows, columns]` with biases `[experts, rows]`.
    pub(super) fn of(
        weights: Vec<f64>,
        bias: Option<&Tensor>,
        shape: [usize; 3],
    ) -> Result<Self, OpError> {
        let [experts, rows, columns] = shape;
        if let Some(bias) = bias
            && bias.shape() != [experts, rows]
        {
            let text = format!("biases of shape {:?}, expected [{experts}, {rows}]", bias.shape());
            return Err(OpError::new(text));
        }
        let bias = bias.map(floats).transpose()?;
        Ok(Self { weights, bias, rows, columns })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn apply(&self, expert: usize, x: &[f64]) -> Vec<f64> {
        let row = |row: usize| {
            let at = expert * self.rows + row;
            let weights = &self.weights[at * self.columns..(at + 1) * self.columns];
            let sum: f64 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
            sum + self.bias.as_ref().map_or(0.0, |bias| bias[at])
        };
        (0..self.rows).map(row).collect()
    }
}

impl Operator for MixtureOfExperts {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if inputs.optional(6).is_some() || inputs.optional(7).is_some() {
            return Err(OpError::new("third layers (fc3_experts_weights), which no CPU computes"));
        }
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let scores = inputs.required(1)?;
        let (hidden, tokens) = match x.shape().split_last() {
            Some((&hidden, outer)) => (hidden, outer.iter().product::<usize>()),
            None => return Err(OpError::new("a token without axes")),
        };
        let experts = match *scores.shape() {
            [rows, experts] if rows == tokens && experts > 0 => experts,
            _ => {
                let text = format!("scores of shape {:?} for {tokens} tokens", scores.shape());
                return Err(OpError::new(text));
            }
        };
        let first = ExpertLayer::read(inputs.required(2)?, inputs.optional(3), experts, hidden)?;
        let inner = first.rows() / self.activation.fusion();
        let second = ExpertLayer::read(inputs.required(4)?, inputs.optional(5), experts, inner)?;
        if second.rows() != hidden || !first.rows().is_multiple_of(self.activation.fusion()) {
            return Err(OpError::new(format!("experts give {} of {hidden}", second.rows())));
        }
        let mut result = vec![0.0; bounded(DataType::Fp64, x.shape())?];
        let (all, scores) = (floats(x)?, floats(scores)?);
        for token in 0..tokens {
            let x = &all[token * hidden..(token + 1) * hidden];
            let sums = &mut result[token * hidden..(token + 1) * hidden];
            let scores = &scores[token * experts..(token + 1) * experts];
            for RoutedExpert { index, weight } in self.routing.experts(scores) {
                let inside = self.activation.apply(first.apply(index, x));
                let outputs = second.apply(index, &inside);
                sums.iter_mut().zip(outputs).for_each(|(sum, y)| *sum += weight * y);
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, parse, run, tensor, text};

    const NAME: &str = "com.microsoft:MoE";

    #[test]
    fn each_token_takes_the_experts_of_its_highest_scores() {
        let x = tensor(&[1, 2, 1], &[1.0_f32, 2.0]);
        let half = 0.5_f32.ln();
        let scores = tensor(&[2, 3], &[half, half, -99.0, -99.0, half, half]);
        let first = tensor(&[3, 1, 1], &[1.0_f32, 10.0, -100.0]);
        let second = tensor(&[3, 1, 1], &[1.0_f32, 1.0, 1.0]);
        let bias = tensor(&[3, 1], &[0.0_f32, 0.0, 7.0]);
        let inputs = [Some(&x), Some(&scores), Some(&first), None, Some(&second), Some(&bias)];
        let list = attributes([("k", int(2))]);
        let found = run(NAME, 1, &list, &inputs, 1).unwrap().remove(0).to_vec::<f32>().unwrap();
        // The third expert gives only its bias.
        assert!((found[0] - 5.5).abs() < 1e-5 && (found[1] - 13.5).abs() < 1e-5, "{found:?}");
        let list = attributes([("k", int(1)), ("normalize_routing_weights", int(1))]);
        let found = run(NAME, 1, &list, &inputs, 1).unwrap().remove(0).to_vec::<f32>().unwrap();
        assert!((found[0] - 1.0).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn gates_alternate_with_values() {
        let x = tensor(&[1, 1], &[1.0_f32]);
        let scores = tensor(&[1, 1], &[0.0_f32]);
        let first = tensor(&[1, 2, 1], &[9.0_f32, -8.0]);
        let second = tensor(&[1, 1, 1], &[1.0_f32]);
        let list = attributes([
            ("activation_type", text("swiglu")),
            ("swiglu_fusion", int(1)),
            ("activation_beta", crate::AttributeValue::Float(1.0)),
            ("swiglu_limit", crate::AttributeValue::Float(7.0)),
        ]);
        let inputs = [Some(&x), Some(&scores), Some(&first), None, Some(&second)];
        let found = run(NAME, 1, &list, &inputs, 1).unwrap().remove(0);
        let expected = 7.0 / (1.0 + (-7.0_f32).exp()) * -6.0;
        assert!((found.item::<f32>().unwrap() - expected).abs() < 1e-4);
        let unfused = attributes([("activation_type", text("swiglu"))]);
        assert!(parse(NAME, 1, &unfused, 6, 1).map(drop).unwrap_err().contains("swiglu_fusion"));
        for limit in [-1.0, f32::NAN] {
            let wrong = attributes([("swiglu_limit", crate::AttributeValue::Float(limit))]);
            assert!(parse(NAME, 1, &wrong, 6, 1).map(drop).unwrap_err().contains("swiglu_limit"));
        }
        let plain = one(NAME, 1, &attributes([]), &[&x, &scores, &second, &scores, &second]);
        assert_eq!(plain, x);
    }
}
