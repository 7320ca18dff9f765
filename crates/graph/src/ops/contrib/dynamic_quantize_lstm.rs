//! `DynamicQuantizeLSTM`: `LSTM` with quantised weights.

use galatea_tensor::{DataType, Tensor};

use super::q_linear::expect_quantised;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::recurrent::Lstm;
use crate::ops::values::{floats, from_floats, integers};

/// `LSTM` of domain `com.microsoft` whose weights `[directions, inputs, 4 · hidden]` are quantised.
///
/// Inputs: as of `LSTM`, then scale and zero point of the input's and of the recurrent weights, one
/// for each direction, or for each of its columns. The input and the state stay floats, so that
/// results are as exact as the weights are.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicQuantizeLstm {
    /// The `LSTM` that is computed, with the weights converted to floats.
    pub lstm: Lstm,
}

impl DynamicQuantizeLstm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { lstm: Lstm::read(context)? }))
    }
}

/// Weights as floats, laid out as `LSTM` has them: `[directions, 4 · hidden, inputs]`.
#[allow(clippy::cast_precision_loss, reason = "integers of 8 bits")]
fn weights(tensor: &Tensor, scale: &Tensor, zero: &Tensor) -> Result<Tensor, OpError> {
    expect_quantised(tensor.dtype())?;
    let &[directions, rows, columns] = tensor.shape() else {
        return Err(OpError::new(format!("weights of rank {}, expected 3", tensor.rank())));
    };
    let scales = floats(scale)?;
    let zeros = integers(zero)?;
    let place = |len: usize, direction: usize, column: usize| match len {
        len if len == directions => Ok(direction),
        len if len == directions * columns => Ok(direction * columns + column),
        len => Err(OpError::new(format!(
            "{len} scales or zero points for {directions} directions of {columns} columns"
        ))),
    };
    let value = |(at, value): (usize, i128)| {
        let direction = at / (rows * columns);
        let column = at % columns;
        let zero = zeros[place(zeros.len(), direction, column)?];
        Ok((value - zero) as f64 * scales[place(scales.len(), direction, column)?])
    };
    let all = integers(tensor)?.into_iter().enumerate().map(value);
    let all = all.collect::<Result<Vec<f64>, OpError>>()?;
    Ok(from_floats(DataType::Fp32, tensor.shape(), all)?.permute(&[0, 2, 1])?)
}

impl Operator for DynamicQuantizeLstm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let turned = |index: usize| -> Result<Fact, OpError> {
            let fact = inputs.required(index)?;
            expect_quantised(fact.dtype)?;
            let shape = match fact.shape.as_deref() {
                Some([directions, rows, columns]) => {
                    vec![directions.clone(), columns.clone(), rows.clone()]
                }
                None => vec![Dim::Unknown; 3],
                Some(other) => {
                    return Err(OpError::new(format!("weights of rank {}", other.len())));
                }
            };
            Ok(Fact::new(DataType::Fp32, shape))
        };
        let w = turned(1)?;
        let r = turned(2)?;
        let rest = (3..8).map(|index| inputs.optional(index));
        let all: Vec<Option<&Fact>> =
            [inputs.optional(0), Some(&w), Some(&r)].into_iter().chain(rest).collect();
        self.lstm.infer(OperatorInputs::new(&all))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let read = |at: usize, scale: usize| {
            weights(inputs.required(at)?, inputs.required(scale)?, inputs.required(scale + 1)?)
        };
        let w = read(1, 8)?;
        let r = read(2, 10)?;
        let rest = (3..8).map(|index| inputs.optional(index));
        let all: Vec<Option<&Tensor>> =
            [inputs.optional(0), Some(&w), Some(&r)].into_iter().chain(rest).collect();
        self.lstm.reference(OperatorInputs::new(&all))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn it_is_the_lstm_of_its_weights() {
        let x = tensor(&[2, 1, 2], &[1.0_f32, -2.0, 0.5, 0.25]);
        let w = tensor(&[1, 2, 4], &[1_i8, 2, 3, 4, 5, 6, 7, 8]);
        let r = tensor(&[1, 1, 4], &[9_i8; 4]);
        let scale = tensor(&[1], &[0.5_f32]);
        let zero = tensor(&[1], &[1_i8]);
        let list = attributes([("hidden_size", int(1))]);
        let mut inputs = vec![Some(&x), Some(&w), Some(&r)];
        inputs.extend([None; 5]);
        inputs.extend([Some(&scale), Some(&zero), Some(&scale), Some(&zero)]);
        let found = run("com.microsoft:DynamicQuantizeLSTM", 1, &list, &inputs, 3).unwrap();
        let w = tensor(&[1, 4, 2], &[0.0_f32, 2.0, 0.5, 2.5, 1.0, 3.0, 1.5, 3.5]);
        let r = tensor(&[1, 4, 1], &[4.0_f32; 4]);
        assert_eq!(found, run("LSTM", 14, &list, &[Some(&x), Some(&w), Some(&r)], 3).unwrap());
    }
}
