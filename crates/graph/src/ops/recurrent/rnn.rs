//! `RNN`: the simple recurrent network.

use galatea_tensor::Tensor;

use super::cell::{CellWidths, RecurrentAttributes, RecurrentPass, RecurrentState, product};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `RNN`: inputs `X`, `W`, `R`, `B`, `sequence_lens`, `initial_h`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rnn {
    /// The attributes that all recurrent operators have.
    pub recurrence: RecurrentAttributes,
}

impl Rnn {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { recurrence: RecurrentAttributes::read(context, &["Tanh"])? }))
    }

    fn step(&self, pass: &RecurrentPass<'_>, x: &[f64], state: &RecurrentState) -> RecurrentState {
        let len = state.hidden.len();
        let inner = product(pass.w, 0, len, x);
        let outer = product(pass.r, 0, len, &state.hidden);
        let function = self.recurrence.activation(pass.number, 1, 0);
        let mut next = state.clone();
        for at in 0..len {
            let sum = inner[at] + outer[at] + pass.b[at] + pass.b[len + at];
            next.hidden[at] = function.apply(self.recurrence.clipped(sum));
        }
        next
    }
}

impl Operator for Rnn {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.recurrence.infer(inputs, 2)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let step =
            |pass: &RecurrentPass<'_>, x: &[f64], state: &RecurrentState| self.step(pass, x, state);
        let mut results = self.recurrence.run(inputs, &CellWidths::plain(1), None, None, &step)?;
        results.truncate(2);
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, run, tensor, text};

    #[test]
    fn a_reversed_sum_runs_from_the_end() {
        let x = tensor(&[3, 1, 1], &[1_f32, 2.0, 4.0]);
        let w = tensor(&[1, 1, 1], &[1_f32]);
        let r = tensor(&[1, 1, 1], &[1_f32]);
        let names = AttributeValue::Strings(vec!["Relu".into()]);
        let list = attributes([("direction", text("reverse")), ("activations", names)]);
        let result = run("RNN", 14, &list, &[Some(&x), Some(&w), Some(&r)], 2).unwrap();
        assert_eq!(result[0].to_vec::<f32>().unwrap(), [7.0, 6.0, 4.0]);
        assert_eq!(result[1].item::<f32>().unwrap(), 7.0);
    }

    #[test]
    fn an_unknown_activation_is_an_error() {
        let names = AttributeValue::Strings(vec!["Wavy".into()]);
        let list = attributes([("activations", names)]);
        let x = tensor(&[1, 1, 1], &[1_f32]);
        assert!(run("RNN", 14, &list, &[Some(&x), Some(&x), Some(&x)], 1).is_err());
    }
}
