//! `ReverseSequence`: the first steps of every sequence turned around.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `ReverseSequence`; input 1 holds the length of each sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseSequence {
    /// The axis of the sequences, 0 or 1.
    pub batch_axis: usize,
    /// The axis of the steps, the other one.
    pub time_axis: usize,
}

impl ReverseSequence {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let batch = context.attributes.int_or("batch_axis", 1)?;
        let time = context.attributes.int_or("time_axis", 0)?;
        let batch_axis = bounds::axis(batch, 2)?;
        let time_axis = bounds::axis(time, 2)?;
        if batch_axis == time_axis {
            return Err(OpError::new(format!("both axes are {batch}")));
        }
        Ok(Box::new(Self { batch_axis, time_axis }))
    }

    fn reversed(&self, data: &Tensor, lengths: &[usize]) -> Result<Tensor, OpError> {
        let steps = bounds::steps(data.shape());
        let offset = |mut index: Vec<usize>| {
            let length = lengths[index[self.batch_axis]];
            let step = index[self.time_axis];
            if step < length {
                index[self.time_axis] = length - 1 - step;
            }
            Some(index.iter().zip(&steps).map(|(at, step)| at * step).sum())
        };
        picks::picked(data, data.shape(), &mut bounds::indices(data.shape()).map(offset))
    }
}

impl Operator for ReverseSequence {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        bounds::rank_at_least(data, 2)?;
        Ok(vec![Fact::shaped(data.dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let lengths = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "a sequence length")?;
        let fits = data.rank() >= 2
            && lengths.len() == data.shape()[self.batch_axis]
            && lengths.iter().all(|&length| length <= data.shape()[self.time_axis]);
        if !fits {
            return Err(OpError::new(format!(
                "sequence lengths {lengths:?} do not fit shape {:?}",
                data.shape()
            )));
        }
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![self.reversed(data, &lengths)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, run, tensor};

    #[test]
    fn each_sequence_turns_around_up_to_its_length() {
        let lengths = Tensor::vector(vec![1_i64, 2]);
        let rows = attributes([("batch_axis", int(0)), ("time_axis", int(1))]);
        let inputs = [Some(&counting(&[2, 3])), Some(&lengths)];
        let result = run("ReverseSequence", 10, &rows, &inputs, 1).unwrap();
        assert_eq!(result[0], tensor(&[2, 3], &[0_f32, 1.0, 2.0, 4.0, 3.0, 5.0]));
        let long = Tensor::vector(vec![4_i64, 2]);
        let inputs = [Some(&counting(&[2, 3])), Some(&long)];
        assert!(run("ReverseSequence", 10, &rows, &inputs, 1).is_err());
    }
}
