//! `GatedRMSNorm` and `LinearAttentionGate`: the element-wise parts around linear attention.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `GatedRMSNorm` of domain `com.microsoft`: groups of the last axis over the root of their mean square, scaled and
/// multiplied by a gate.
///
/// Inputs: `x`, a scale for each element of a group, and the gate, of the shape of `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatedRmsNorm {
    /// Added to the mean square.
    pub epsilon: f32,
    /// True if the gate is multiplied by its sigmoid; else the sigmoid alone is taken.
    pub silu: bool,
}

impl GatedRmsNorm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        let choice = context.attributes.choice("activation", &["silu", "swish", "sigmoid"], 0)?;
        Ok(Box::new(Self { epsilon, silu: choice < 2 }))
    }
}

/// Refuses a gate of another shape.
fn same_shape(x: &Fact, other: &Fact, what: &str) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (x.known_shape(), other.known_shape()) else { return Ok(()) };
    match a == b {
        true => Ok(()),
        false => Err(OpError::new(format!("{what} has shape {b:?}, expected {a:?}"))),
    }
}

impl Operator for GatedRmsNorm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        expect_float(inputs.required(1)?.dtype)?;
        same_shape(x, inputs.required(2)?, "the gate")?;
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let scale = floats(inputs.required(1)?)?;
        let gate = inputs.required(2)?;
        let (shape, group) = (x.shape(), scale.len());
        let fits = shape.last().is_some_and(|&last| group > 0 && last.is_multiple_of(group));
        if !fits || gate.shape() != shape {
            let found = gate.shape();
            let text = format!("{group} scales and a gate of shape {found:?} for {shape:?}");
            return Err(OpError::new(text));
        }
        let (mut all, gates) = (floats(x)?, floats(gate)?);
        for (row, gates) in all.chunks_mut(group).zip(gates.chunks(group)) {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / group as f64;
            let inverse = (mean + f64::from(self.epsilon)).sqrt().recip();
            for ((x, scale), gate) in row.iter_mut().zip(&scale).zip(gates) {
                let factor = if self.silu { gate * sigmoid(*gate) } else { sigmoid(*gate) };
                *x = *x * inverse * scale * factor;
            }
        }
        Ok(vec![from_floats(x.dtype(), shape, all)?])
    }
}

/// `LinearAttentionGate` of domain `com.microsoft`: decay `scale · softplus(a + bias)` and strength `sigmoid(b)`.
///
/// Inputs: `a` `[…, heads]`, bias and scale for each head, and `b` where the strength is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearAttentionGate {
    outputs: usize,
}

impl LinearAttentionGate {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { outputs: context.outputs }))
    }
}

impl Operator for LinearAttentionGate {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        expect_float(a.dtype)?;
        expect_float(inputs.required(1)?.dtype)?;
        expect_float(inputs.required(2)?.dtype)?;
        if let Some(b) = inputs.optional(3) {
            same_shape(a, b, "b")?;
        } else if self.outputs > 1 {
            return Err(OpError::new("the strength is wanted without the input b"));
        }
        Ok(vec![Fact::shaped(a.dtype, a.shape.clone()); self.outputs])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let (bias, scale) = (floats(inputs.required(1)?)?, floats(inputs.required(2)?)?);
        let heads = a.shape().last().copied().unwrap_or(0);
        if heads == 0 || bias.len() != heads || scale.len() != heads {
            let (shape, bias, scale) = (a.shape(), bias.len(), scale.len());
            let text = format!("{bias} biases and {scale} scales for gates of shape {shape:?}");
            return Err(OpError::new(text));
        }
        let mut decay = floats(a)?;
        for row in decay.chunks_mut(heads) {
            for ((x, bias), scale) in row.iter_mut().zip(&bias).zip(&scale) {
                let sum = *x + bias;
                *x = scale * (sum.max(0.0) + (-sum.abs()).exp().ln_1p());
            }
        }
        let mut results = vec![from_floats(a.dtype(), a.shape(), decay)?];
        let b = inputs.optional(3);
        if let Some(b) = b.filter(|b| b.shape() != a.shape()) {
            let (found, expected) = (b.shape(), a.shape());
            return Err(OpError::new(format!("b has shape {found:?}, expected {expected:?}")));
        }
        if self.outputs > 1 {
            let strength = floats(inputs.required(3)?)?.into_iter().map(sigmoid).collect();
            results.push(from_floats(a.dtype(), a.shape(), strength)?);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, run, tensor, text};

    fn near(found: &Tensor, expected: &[f32]) {
        let found = found.to_vec::<f32>().unwrap();
        assert_eq!(found.len(), expected.len());
        let pairs = found.iter().zip(expected);
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{found:?}"));
    }

    #[test]
    fn groups_are_normalised_and_gated() {
        let x = tensor(&[1, 4], &[3.0_f32, 4.0, 0.0, 2.0]);
        let scale = Tensor::vector(vec![1.0_f32, 2.0]);
        let gate = tensor(&[1, 4], &[0.0_f32, 1.0, 0.0, -1.0]);
        let inputs = [Some(&x), Some(&scale), Some(&gate)];
        let name = "com.microsoft:GatedRMSNorm";
        let silu = run(name, 1, &attributes([]), &inputs, 1).unwrap();
        near(&silu[0], &[0.0, 1.654_197, 0.0, -0.760_680_5]);
        let list = attributes([("activation", text("sigmoid"))]);
        let sigmoid = run(name, 1, &list, &inputs, 1).unwrap();
        near(&sigmoid[0], &[0.424_264, 1.654_197, 0.0, 0.760_680_5]);
        let wrong = attributes([("activation", text("relu"))]);
        assert!(run(name, 1, &wrong, &inputs, 1).is_err());
        assert!(run(name, 1, &attributes([]), &[Some(&x), Some(&scale), Some(&scale)], 1).is_err());
    }

    #[test]
    fn heads_have_a_decay_and_a_strength() {
        let a = tensor(&[1, 2], &[0.0_f32, 1.0]);
        let bias = Tensor::vector(vec![0.0_f32, -1.0]);
        let scale = Tensor::vector(vec![-1.0_f32, 2.0]);
        let b = tensor(&[1, 2], &[0.0_f32, 800.0]);
        let name = "com.microsoft:LinearAttentionGate";
        let inputs = [Some(&a), Some(&bias), Some(&scale), Some(&b)];
        let found = run(name, 1, &attributes([]), &inputs, 2).unwrap();
        near(&found[0], &[-std::f32::consts::LN_2, 2.0 * std::f32::consts::LN_2]);
        near(&found[1], &[0.5, 1.0]);
        assert!(run(name, 1, &attributes([]), &inputs[..3], 2).is_err());
        assert_eq!(run(name, 1, &attributes([]), &inputs[..3], 1).unwrap().len(), 1);
    }
}
