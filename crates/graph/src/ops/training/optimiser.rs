//! `Adagrad`, `Adam` and `Momentum`: one step of training.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// How parameters move against their gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpdateRule {
    /// By the gradient relative to the root of the sum of all squared gradients so far.
    ///
    /// Source: Duchi, Hazan and Singer 2011.
    Adagrad {
        /// By how much the rate falls with each step.
        decay_factor: f32,
        /// Added to the root.
        epsilon: f32,
    },
    /// By the running mean of gradients relative to the root of that of their squares.
    ///
    /// Source: Kingma and Ba 2014, arXiv 1412.6980.
    Adam {
        /// How much of the mean of gradients stays.
        alpha: f32,
        /// How much of the mean of squares stays.
        beta: f32,
        /// Added to the root.
        epsilon: f32,
        /// By how much parameters shrink after the step.
        norm_coefficient_post: f32,
    },
    /// By a running sum of gradients; with `nesterov` looking one step ahead.
    Momentum {
        /// How much of the sum stays.
        alpha: f32,
        /// Factor on the gradient from the second step on.
        beta: f32,
        /// True to look ahead.
        nesterov: bool,
    },
}

/// One step of an optimiser of domain `ai.onnx.preview.training`.
///
/// Inputs: the rate, the number of steps so far, then all parameters, all their gradients and, for
/// each kind of state, all states. Outputs: new parameters and states, in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimiser {
    /// The rule.
    pub rule: UpdateRule,
    /// How much of a parameter is added to its gradient.
    pub norm_coefficient: f32,
    /// Number of parameters.
    pub parameters: usize,
}

impl Optimiser {
    fn boxed(
        context: &mut ParseContext<'_>,
        rule: UpdateRule,
    ) -> Result<Box<dyn Operator>, OpError> {
        let norm_coefficient = context.attributes.float_or("norm_coefficient", 0.0)?;
        let kinds = 2 + states(rule);
        let inputs = context.inputs.saturating_sub(2);
        if inputs == 0 || !inputs.is_multiple_of(kinds) {
            return Err(OpError::new(format!(
                "{inputs} inputs after rate and step, expected {kinds} for each parameter"
            )));
        }
        let parameters = inputs / kinds;
        Ok(Box::new(Self { rule, norm_coefficient, parameters }))
    }

    pub(super) fn adagrad(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let decay_factor = context.attributes.float_or("decay_factor", 0.0)?;
        let epsilon = context.attributes.float_or("epsilon", 1e-6)?;
        Self::boxed(context, UpdateRule::Adagrad { decay_factor, epsilon })
    }

    pub(super) fn adam(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let rule = UpdateRule::Adam {
            alpha: context.attributes.float_or("alpha", 0.9)?,
            beta: context.attributes.float_or("beta", 0.999)?,
            epsilon: context.attributes.float_or("epsilon", 1e-6)?,
            norm_coefficient_post: context.attributes.float_or("norm_coefficient_post", 0.0)?,
        };
        Self::boxed(context, rule)
    }

    pub(super) fn momentum(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut factor = |name: &'static str| {
            let found = context.attributes.float(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        let alpha = factor("alpha")?;
        let beta = factor("beta")?;
        let nesterov = context.attributes.choice("mode", &["standard", "nesterov"], 0)? == 1;
        Self::boxed(context, UpdateRule::Momentum { alpha, beta, nesterov })
    }

    /// New value of a parameter, whose states are changed in place.
    fn step(&self, rate: f64, steps: f64, x: f64, gradient: f64, state: &mut [f64]) -> f64 {
        let gradient = f64::from(self.norm_coefficient) * x + gradient;
        let wide = f64::from;
        match self.rule {
            UpdateRule::Adagrad { decay_factor, epsilon } => {
                state[0] += gradient * gradient;
                let rate = rate / (1.0 + steps * wide(decay_factor));
                x - rate * gradient / (state[0].sqrt() + wide(epsilon))
            }
            UpdateRule::Adam { alpha, beta, epsilon, norm_coefficient_post } => {
                let alpha = wide(alpha);
                let beta = wide(beta);
                state[0] = alpha * state[0] + (1.0 - alpha) * gradient;
                state[1] = beta * state[1] + (1.0 - beta) * gradient * gradient;
                let correction = if steps > 0.0 {
                    (1.0 - beta.powf(steps)).sqrt() / (1.0 - alpha.powf(steps))
                } else {
                    1.0
                };
                let moved = rate * correction * state[0] / (state[1].sqrt() + wide(epsilon));
                (1.0 - wide(norm_coefficient_post)) * (x - moved)
            }
            UpdateRule::Momentum { alpha, beta, nesterov } => {
                let beta = if steps > 0.0 { wide(beta) } else { 1.0 };
                state[0] = wide(alpha) * state[0] + beta * gradient;
                let ahead = if nesterov { gradient + wide(alpha) * state[0] } else { state[0] };
                x - rate * ahead
            }
        }
    }
}

/// Returns the number of states that a parameter has.
fn states(rule: UpdateRule) -> usize {
    match rule {
        UpdateRule::Adam { .. } => 2,
        UpdateRule::Adagrad { .. } | UpdateRule::Momentum { .. } => 1,
    }
}

fn number(tensor: &Tensor, what: &str) -> Result<f64, OpError> {
    let all = if tensor.dtype() == DataType::Int64 {
        #[allow(clippy::cast_precision_loss, reason = "a number of steps")]
        tensor.to_i64_vec()?.into_iter().map(|step| step as f64).collect()
    } else {
        floats(tensor)?
    };
    match all[..] {
        [one] => Ok(one),
        _ => Err(OpError::new(format!("{what} has {} elements, expected 1", all.len()))),
    }
}

impl Operator for Optimiser {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let count = self.parameters;
        let fact = |index: usize| -> Result<Fact, OpError> {
            let fact = inputs.required(index)?;
            expect_float(fact.dtype)?;
            Ok(Fact { value: None, elements: None, ..fact.clone() })
        };
        let states = 2 + 2 * count..2 + (2 + states(self.rule)) * count;
        collected(&mut (2..2 + count).chain(states).map(fact))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let rate = number(inputs.required(0)?, "the rate")?;
        let steps = number(inputs.required(1)?, "the number of steps")?;
        let count = self.parameters;
        let kinds = states(self.rule);
        let mut groups: Vec<Vec<Tensor>> = vec![Vec::new(); 1 + kinds];
        for index in 0..count {
            let x = inputs.required(2 + index)?;
            let same = |kind: usize| -> Result<(DataType, Vec<f64>), OpError> {
                let other = inputs.required(2 + kind * count + index)?;
                if other.shape() == x.shape() {
                    return Ok((other.dtype(), floats(other)?));
                }
                Err(OpError::new(format!(
                    "parameter {index} has shape {:?}, its gradient or state {:?}",
                    x.shape(),
                    other.shape()
                )))
            };
            let (mut values, (_, gradients)) = (floats(x)?, same(1)?);
            let mut all = collected(&mut (0..kinds).map(|kind| same(2 + kind)))?;
            for (element, value) in values.iter_mut().enumerate() {
                let mut state: Vec<f64> = all.iter().map(|(_, all)| all[element]).collect();
                *value = self.step(rate, steps, *value, gradients[element], &mut state);
                all.iter_mut().zip(state).for_each(|((_, all), new)| all[element] = new);
            }
            groups[0].push(from_floats(x.dtype(), x.shape(), values)?);
            for (kind, (dtype, all)) in all.into_iter().enumerate() {
                groups[kind + 1].push(from_floats(dtype, x.shape(), all)?);
            }
        }
        Ok(groups.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue::Float;
    use crate::ops::testing::{attributes, run};

    #[test]
    fn parameters_move_against_their_gradients() {
        let of = |x: f32| Tensor::vector(vec![x]);
        let rate = Tensor::scalar(0.5_f32);
        let steps = Tensor::scalar(0_i64);
        let inputs = [Some(&rate), Some(&steps), Some(&of(1.0)), Some(&of(2.0)), Some(&of(4.0))];
        let name = "ai.onnx.preview.training:Momentum";
        let list = attributes([("alpha", Float(0.5)), ("beta", Float(9.0))]);
        let all = run(name, 1, &list, &inputs, 2).unwrap();
        assert_eq!((&all[0], &all[1]), (&of(-1.0), &of(4.0)));
        let exact = attributes([("epsilon", Float(0.0)), ("norm_coefficient", Float(1.0))]);
        let adagrad = run("ai.onnx.preview.training:Adagrad", 1, &exact, &inputs, 2).unwrap();
        // With the parameter the gradient is 3: 4 + 9, and 1 − 0.5 · 3 / √13.
        assert_eq!(adagrad[1], of(13.0));
        assert!((adagrad[0].item::<f32>().unwrap() - 0.583_974_8).abs() < 1e-6);
        assert!(run("ai.onnx.preview.training:Adam", 1, &attributes([]), &inputs, 1).is_err());
    }

    #[test]
    fn the_first_step_of_adam_is_the_sign_of_the_gradient() {
        let of = |x: f32| Tensor::vector(vec![x]);
        let rate = Tensor::scalar(0.1_f32);
        let steps = Tensor::scalar(1_i64);
        let zero = of(0.0);
        let inputs =
            [Some(&rate), Some(&steps), Some(&zero), Some(&of(7.0)), Some(&zero), Some(&zero)];
        let exact = attributes([("epsilon", Float(0.0))]);
        let all = run("ai.onnx.preview.training:Adam", 1, &exact, &inputs, 3).unwrap();
        assert!((all[0].item::<f32>().unwrap() + 0.1).abs() < 1e-6);
    }
}
