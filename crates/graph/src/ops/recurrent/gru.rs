//! `GRU`: gated recurrent units.

use galatea_tensor::Tensor;

use super::cell::{CellWidths, RecurrentAttributes, RecurrentPass, RecurrentState, product};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `GRU`: inputs `X`, `W`, `R`, `B`, `sequence_lens`, `initial_h`; gates in the order update,
/// reset, hidden.
#[derive(Clone, Debug, PartialEq)]
pub struct Gru {
    /// The attributes that all recurrent operators have.
    pub recurrence: RecurrentAttributes,
    /// True if the reset gate applies behind the product with the state's weights, not before.
    pub linear_before_reset: bool,
}

impl Gru {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let recurrence = RecurrentAttributes::read(context, &["Sigmoid", "Tanh"])?;
        let linear_before_reset = context.attributes.flag("linear_before_reset", false)?;
        Ok(Box::new(Self { recurrence, linear_before_reset }))
    }

    fn step(&self, pass: &RecurrentPass<'_>, x: &[f64], state: &RecurrentState) -> RecurrentState {
        let len = state.hidden.len();
        let function = |which, x| {
            self.recurrence.activation(pass.number, 2, which).apply(self.recurrence.clipped(x))
        };
        let (inner_bias, outer_bias) = pass.b.split_at(3 * len);
        let gate = |gate: usize| -> Vec<f64> {
            let inner = product(pass.w, gate, len, x);
            let outer = product(pass.r, gate, len, &state.hidden);
            let bias = |at: usize| inner_bias[gate * len + at] + outer_bias[gate * len + at];
            (0..len).map(|at| function(0, inner[at] + outer[at] + bias(at))).collect()
        };
        let update = gate(0);
        let reset = gate(1);
        let inner = product(pass.w, 2, len, x);
        let outer: Vec<f64> = if self.linear_before_reset {
            let outer = product(pass.r, 2, len, &state.hidden);
            (0..len).map(|at| reset[at] * (outer[at] + outer_bias[2 * len + at])).collect()
        } else {
            let kept: Vec<f64> =
                state.hidden.iter().zip(&reset).map(|(hidden, reset)| hidden * reset).collect();
            let outer = product(pass.r, 2, len, &kept);
            (0..len).map(|at| outer[at] + outer_bias[2 * len + at]).collect()
        };
        let mut next = state.clone();
        for at in 0..len {
            let fresh = function(1, inner[at] + outer[at] + inner_bias[2 * len + at]);
            next.hidden[at] = (1.0 - update[at]) * fresh + update[at] * state.hidden[at];
        }
        next
    }
}

impl Operator for Gru {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.recurrence.infer(inputs, 2)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let step =
            |pass: &RecurrentPass<'_>, x: &[f64], state: &RecurrentState| self.step(pass, x, state);
        let mut results = self.recurrence.run(inputs, &CellWidths::plain(3), None, None, &step)?;
        results.truncate(2);
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    fn the_reset_gate_applies_where_it_is_told_to() {
        let x = tensor(&[1, 1, 1], &[1_f32]);
        let w = tensor(&[1, 3, 1], &[1_f32; 3]);
        let r = tensor(&[1, 3, 1], &[0.5_f32, 0.5, 2.0]);
        let b = tensor(&[1, 6], &[0_f32, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let start = tensor(&[1, 1, 1], &[0.25_f32]);
        let gate = sigmoid(1.0 + 0.5 * 0.25);
        for (linear, argument) in
            [(0, 1.0 + 2.0 * gate * 0.25 + 1.0), (1, 1.0 + gate * (2.0 * 0.25 + 1.0))]
        {
            let list = attributes([("linear_before_reset", int(linear))]);
            let inputs = [Some(&x), Some(&w), Some(&r), Some(&b), None, Some(&start)];
            let result = run("GRU", 14, &list, &inputs, 2).unwrap();
            let expected = (1.0 - gate) * f64::tanh(argument) + gate * 0.25;
            assert!((f64::from(result[1].item::<f32>().unwrap()) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn a_bias_of_the_wrong_shape_is_an_error() {
        let x = tensor(&[1, 1, 1], &[1_f32]);
        let w = tensor(&[1, 3, 1], &[1_f32; 3]);
        let r = tensor(&[1, 3, 1], &[1_f32; 3]);
        let b = tensor(&[1, 3], &[0_f32; 3]);
        let inputs = [Some(&x), Some(&w), Some(&r), Some(&b)];
        assert!(run("GRU", 14, &attributes([]), &inputs, 1).is_err());
    }
}
