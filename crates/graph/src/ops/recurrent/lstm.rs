//! `LSTM`: long short-term memory.

use galatea_tensor::Tensor;

use super::cell::{CellWidths, RecurrentAttributes, RecurrentPass, RecurrentState, product};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `LSTM`: inputs `X`, `W`, `R`, `B`, `sequence_lens`, `initial_h`, `initial_c`, `P`; gates in
/// the order input, output, forget, cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Lstm {
    /// The attributes that all recurrent operators have.
    pub recurrence: RecurrentAttributes,
    /// True if the forget gate is one less the input gate.
    pub input_forget: bool,
}

impl Lstm {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context)?))
    }

    /// Reads the attributes.
    pub(crate) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let recurrence = RecurrentAttributes::read(context, &["Sigmoid", "Tanh", "Tanh"])?;
        let input_forget = context.attributes.flag("input_forget", false)?;
        Ok(Self { recurrence, input_forget })
    }

    pub(super) fn step(
        &self,
        pass: &RecurrentPass<'_>,
        x: &[f64],
        state: &RecurrentState,
    ) -> RecurrentState {
        let len = state.hidden.len();
        let gates: Vec<Vec<f64>> = (0..4)
            .map(|gate| {
                let inner = product(pass.w, gate, len, x);
                let outer = product(pass.r, gate, len, &state.hidden);
                let bias = |at: usize| pass.b[gate * len + at] + pass.b[(4 + gate) * len + at];
                (0..len).map(|at| inner[at] + outer[at] + bias(at)).collect()
            })
            .collect();
        let peephole =
            |which: usize, at: usize| pass.p.get(which * len + at).copied().unwrap_or(0.0);
        let function = |which, x| {
            self.recurrence.activation(pass.number, 3, which).apply(self.recurrence.clipped(x))
        };
        let mut next = state.clone();
        for (at, &before) in state.cell.iter().enumerate() {
            let input = function(0, gates[0][at] + peephole(0, at) * before);
            let forget = if self.input_forget {
                1.0 - input
            } else {
                function(0, gates[2][at] + peephole(2, at) * before)
            };
            let cell = forget * before + input * function(1, gates[3][at]);
            let output = function(0, gates[1][at] + peephole(1, at) * cell);
            next.cell[at] = cell;
            next.hidden[at] = output * self.recurrence.activation(pass.number, 3, 2).apply(cell);
        }
        next
    }
}

impl Operator for Lstm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.recurrence.infer(inputs, 3)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let cell = inputs.optional(6);
        let peepholes = inputs.optional(7);
        self.recurrence.run(inputs, &CellWidths::plain(4), cell, peepholes, &|pass, x, state| {
            self.step(pass, x, state)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, int, run, tensor, text};
    use galatea_tensor::Tensor;

    fn weights(passes: usize) -> (Tensor, Tensor) {
        (
            tensor(&[passes, 4, 1], &vec![1_f32; 4 * passes]),
            tensor(&[passes, 4, 1], &vec![0.5_f32; 4 * passes]),
        )
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// One step by the formulas of the definition, with equal weights for all gates.
    fn expected(x: f64, hidden: f64, cell: f64) -> (f64, f64) {
        let sum = x + 0.5 * hidden;
        let cell = sigmoid(sum) * cell + sigmoid(sum) * sum.tanh();
        (sigmoid(sum) * cell.tanh(), cell)
    }

    fn close(found: f32, expected: f64) {
        assert!((f64::from(found) - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn two_steps_follow_the_formulas() {
        let (x, (w, r)) = (tensor(&[2, 1, 1], &[1_f32, -2.0]), weights(1));
        let size = attributes([("hidden_size", int(1))]);
        let inputs = [Some(&x), Some(&w), Some(&r)];
        let result = run("LSTM", 14, &size, &inputs, 3).unwrap();
        let (h1, c1) = expected(1.0, 0.0, 0.0);
        let (h2, c2) = expected(-2.0, h1, c1);
        let all = result[0].to_vec::<f32>().unwrap();
        close(all[0], h1);
        close(all[1], h2);
        close(result[1].item().unwrap(), h2);
        close(result[2].item().unwrap(), c2);
    }

    #[test]
    fn both_directions_respect_the_length_of_each_sequence() {
        let (x, (w, r)) = (tensor(&[2, 2, 1], &[1_f32, 1.0, -2.0, 5.0]), weights(2));
        let lengths = tensor(&[2], &[2_i32, 1]);
        let list = attributes([("direction", text("bidirectional"))]);
        let inputs = [Some(&x), Some(&w), Some(&r), None, Some(&lengths)];
        let result = run("LSTM", 7, &list, &inputs, 3).unwrap();
        assert_eq!(result[0].shape(), [2, 2, 2, 1]);
        let (h1, _) = expected(1.0, 0.0, 0.0);
        let (back, cell) = expected(-2.0, 0.0, 0.0);
        let (h2, _) = expected(1.0, back, cell);
        let last = result[1].to_vec::<f32>().unwrap();
        close(last[1], h1);
        close(last[2], h2);
        close(last[3], h1);
        let all = result[0].to_vec::<f32>().unwrap();
        assert_eq!((all[5], all[7]), (0.0, 0.0));
    }

    #[test]
    fn layout_clip_and_activations_apply() {
        let (x, (w, r)) = (tensor(&[1, 2, 1], &[9_f32, 9.0]), weights(1));
        let names = ["HardSigmoid", "Affine", "Relu"].map(galatea_tensor::ByteString::from);
        let list = attributes([
            ("layout", int(1)),
            ("clip", AttributeValue::Float(0.5)),
            ("activations", AttributeValue::Strings(names.to_vec())),
        ]);
        let result = run("LSTM", 14, &list, &[Some(&x), Some(&w), Some(&r)], 3).unwrap();
        assert_eq!(result[0].shape(), [1, 2, 1, 1]);
        // Every argument is clipped to 1/2; gates are 0.2 · 0.5 + 0.5 = 0.6.
        let first = 0.6 * 0.5;
        let second = 0.6 * first + 0.6 * 0.5;
        close(result[2].item().unwrap(), second);
        close(result[1].item().unwrap(), 0.6 * second);
    }

    #[test]
    fn weights_of_the_wrong_shape_are_errors() {
        let (x, (w, r)) = (tensor(&[2, 1, 1], &[1_f32, -2.0]), weights(2));
        let inputs = [Some(&x), Some(&w), Some(&r)];
        assert!(run("LSTM", 14, &attributes([]), &inputs, 1).is_err());
        let (w, r) = weights(1);
        let long = tensor(&[1], &[3_i32]);
        let inputs = [Some(&x), Some(&w), Some(&r), None, Some(&long)];
        assert!(run("LSTM", 14, &attributes([]), &inputs, 1).is_err());
    }
}
