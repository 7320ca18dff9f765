//! `AttnLSTM`: an LSTM that looks at a memory after each step.

use galatea_tensor::{DataType, Tensor};

use super::cell::{CellWidths, RecurrentState, expect_shape};
use super::lstm::Lstm;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// `AttnLSTM` of domain `com.microsoft`: the inputs of `LSTM` and those of an attention (Bahdanau, Cho and Bengio
/// 2014, arXiv 1409.0473).
///
/// Inputs 8 to 13: weights of the query `[D, hidden, a]` and of the memory `[D, d, a]`, the vector `[D, a]`, the
/// memory `[B, S, d]`, optionally its lengths `[B]`, optionally weights `[D, hidden + d, e]` of a layer behind. What
/// the attention finds is read beside the input of the next step: `W` is `[D, 4 · hidden, input + d]`, or `+ e`.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionLstm {
    /// The cell.
    pub lstm: Lstm,
}

/// Weights, keys and values of every direction.
struct MemoryAttention {
    /// Weights of the query, `[D, hidden, a]`.
    query: Vec<f64>,
    /// The memory times its weights, `[D, B, S, a]`.
    keys: Vec<f64>,
    /// The vector, `[D, a]`.
    vector: Vec<f64>,
    /// The memory, `[B, S, d]`.
    values: Vec<f64>,
    /// Positions of each sequence that count.
    lengths: Vec<usize>,
    /// Weights of the layer behind, `[D, hidden + d, e]`.
    layer: Option<Vec<f64>>,
    widths: MemoryWidths,
}

#[derive(Clone, Copy)]
struct MemoryWidths {
    hidden: usize,
    /// Length of a query and a key.
    attention: usize,
    batch: usize,
    /// Positions of the memory.
    steps: usize,
    /// Numbers at a position.
    depth: usize,
    /// Numbers that a step finds.
    found: usize,
}

impl AttentionLstm {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { lstm: Lstm::read(context)? }))
    }
}

/// The product of a row vector and a matrix with this many columns.
fn row_product(row: &[f64], matrix: &[f64], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for (value, line) in row.iter().zip(matrix.chunks_exact(columns.max(1))) {
        sums.iter_mut().zip(line).for_each(|(sum, weight)| *sum += value * weight);
    }
    sums
}

impl MemoryAttention {
    fn read(
        inputs: OperatorInputs<'_, Tensor>,
        directions: usize,
        hidden: usize,
    ) -> Result<Self, OpError> {
        let (query, weights, vector) =
            (inputs.required(8)?, inputs.required(9)?, inputs.required(10)?);
        let memory = inputs.required(11)?;
        let (&[_, depth, attention], &[batch, steps, _]) = (weights.shape(), memory.shape()) else {
            return Err(OpError::new(format!(
                "MW has shape {:?} and M {:?}, expected rank 3",
                weights.shape(),
                memory.shape()
            )));
        };
        expect_shape("QW", query, &[directions, hidden, attention])?;
        expect_shape("MW", weights, &[directions, depth, attention])?;
        expect_shape("V", vector, &[directions, attention])?;
        expect_shape("M", memory, &[batch, steps, depth])?;
        let layer = inputs.optional(13);
        let found = match layer.map(Tensor::shape) {
            None => depth,
            Some(&[d, rows, width]) if d == directions && rows == hidden + depth => width,
            Some(shape) => {
                let rows = hidden + depth;
                let text = format!("AW has shape {shape:?}, expected [{directions}, {rows}, _]");
                return Err(OpError::new(text));
            }
        };
        let lengths = match inputs.optional(12) {
            None => vec![steps; batch],
            Some(all) => bounds::lengths(&all.to_i64_vec()?, "a length of the memory")?,
        };
        if lengths.len() != batch || lengths.iter().any(|&length| length == 0 || length > steps) {
            return Err(OpError::new(format!(
                "lengths of the memory {lengths:?} for a batch of {batch} with {steps} positions"
            )));
        }
        let values = values::floats(memory)?;
        let weights = values::floats(weights)?;
        bounds::bounded(DataType::Fp64, &[directions, batch, steps, attention])?;
        let keys = weights.chunks_exact((depth * attention).max(1)).flat_map(|weights| {
            let rows = values.chunks_exact(depth.max(1));
            rows.flat_map(|row| row_product(row, weights, attention)).collect::<Vec<f64>>()
        });
        Ok(Self {
            query: values::floats(query)?,
            keys: keys.collect(),
            vector: values::floats(vector)?,
            values,
            lengths,
            layer: layer.map(values::floats).transpose()?,
            widths: MemoryWidths { hidden, attention, batch, steps, depth, found },
        })
    }

    /// The numbers that one direction finds for a state of a sequence.
    fn found(&self, direction: usize, state: &RecurrentState) -> Vec<f64> {
        let MemoryWidths { hidden, attention, batch, steps, depth, found } = self.widths;
        let part = |all: &[f64], at: usize, len: usize| all[at * len..(at + 1) * len].to_vec();
        let query = part(&self.query, direction, hidden * attention);
        let query = row_product(&state.hidden, &query, attention);
        let vector = part(&self.vector, direction, attention);
        let keys = part(&self.keys, direction * batch + state.sequence, steps * attention);
        let length = self.lengths.get(state.sequence).copied().unwrap_or(0);
        let score = |key: &[f64]| -> f64 {
            let terms = key.iter().zip(&query).zip(&vector);
            terms.map(|((key, query), factor)| factor * (key + query).tanh()).sum()
        };
        let mut shares: Vec<f64> =
            keys.chunks_exact(attention.max(1)).take(length).map(score).collect();
        let largest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.iter_mut().for_each(|share| *share = (*share - largest).exp());
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        let values = part(&self.values, state.sequence, steps * depth);
        let context = row_product(&shares, &values, depth);
        let Some(layer) = &self.layer else { return context };
        let joined = [&state.hidden[..], &context].concat();
        row_product(&joined, &part(layer, direction, (hidden + depth) * found), found)
    }
}

impl Operator for AttentionLstm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.lstm.infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let directions = self.lstm.recurrence.direction.count();
        let hidden = inputs.required(2)?.shape().get(2).copied().unwrap_or(0);
        let attention = MemoryAttention::read(inputs, directions, hidden)?;
        let batch = inputs.required(0)?.shape().get(1).copied();
        if batch != Some(attention.widths.batch) {
            return Err(OpError::new(format!(
                "X has shape {:?} for a memory of batch {}",
                inputs.required(0)?.shape(),
                attention.widths.batch
            )));
        }
        let widths = CellWidths { gates: 4, beside: attention.widths.found };
        let (cell, peepholes) = (inputs.optional(6), inputs.optional(7));
        self.lstm.recurrence.run(inputs, &widths, cell, peepholes, &|pass, x, state| {
            let mut next = self.lstm.step(pass, &[x, &state.beside].concat(), state);
            next.beside = attention.found(pass.number, &next);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn the_memory_is_read_beside_the_input_from_the_second_step_on() {
        let x = tensor(&[2, 1, 1], &[1_f32, 1.0]);
        // The memory is weighed in every gate as the input is.
        let w = tensor(&[1, 4, 2], &[1_f32; 8]);
        let r = tensor(&[1, 4, 1], &[0_f32; 4]);
        let one = tensor(&[1, 1, 1], &[1_f32]);
        let vector = tensor(&[1, 1], &[1_f32]);
        let memory = tensor(&[1, 2, 1], &[3_f32, 9.0]);
        let lengths = tensor(&[1], &[1_i32]);
        let size = attributes([("hidden_size", int(1))]);
        let none = None;
        let lstm = [Some(&x), Some(&w), Some(&r), none, none, none, none, none];
        let rest = [Some(&one), Some(&one), Some(&vector), Some(&memory), Some(&lengths)];
        let inputs = [&lstm[..], &rest].concat();
        let found = run("com.microsoft:AttnLSTM", 1, &size, &inputs, 3).unwrap();
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let first = sigmoid(1.0) * 1_f64.tanh();
        let second = sigmoid(4.0) * first + sigmoid(4.0) * 4_f64.tanh();
        let cell: f32 = found[2].item().unwrap();
        assert!((f64::from(cell) - second).abs() < 1e-6, "{cell} is not {second}");
        let long = tensor(&[1], &[3_i32]);
        let rest = [Some(&one), Some(&one), Some(&vector), Some(&memory), Some(&long)];
        let inputs = [&lstm[..], &rest].concat();
        assert!(run("com.microsoft:AttnLSTM", 1, &size, &inputs, 3).is_err());
    }
}
