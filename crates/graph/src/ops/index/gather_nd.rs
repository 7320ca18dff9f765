//! `GatherND`: slices named by index tuples.

use galatea_tensor::Tensor;

use super::position;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `GatherND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherND {
    /// How many leading axes data and indices share (from opset 12 on).
    pub batch_dims: usize,
}

impl GatherND {
    /// Reads the attributes.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let batch_dims = context.attributes.int_or("batch_dims", 0)?;
        Ok(Box::new(Self { batch_dims: bounds::length(batch_dims, "attribute 'batch_dims'")? }))
    }

    /// How many axes of the data a tuple and the batch name together.
    fn depth(&self, data: usize, indices: usize, tuple: usize) -> Result<usize, OpError> {
        let depth = self.batch_dims.saturating_add(tuple);
        if indices == 0 || self.batch_dims >= indices || depth > data {
            return Err(OpError::new(format!(
                "index tuples of {tuple} with {} batch axes do not fit ranks {data} and {indices}",
                self.batch_dims
            )));
        }
        Ok(depth)
    }

    fn slices(&self, data: &Tensor, indices: &Tensor) -> Result<Tensor, OpError> {
        let tuple = indices.shape().last().copied().unwrap_or(0);
        let depth = self.depth(data.rank(), indices.rank(), tuple)?;
        let batch = self.batch_dims;
        if data.shape()[..batch] != indices.shape()[..batch] {
            return Err(OpError::new(format!(
                "shapes {:?} and {:?} differ in their first {batch} axes",
                data.shape(),
                indices.shape()
            )));
        }
        let outer = &indices.shape()[..indices.rank() - 1];
        let shape = [outer, &data.shape()[depth..]].concat();
        bounds::bounded(data.dtype(), &shape)?;
        let picks = indices.to_i64_vec()?;
        let steps = bounds::steps(data.shape());
        let run: usize = data.shape()[depth..].iter().product();
        let mut starts = Vec::with_capacity(outer.iter().product());
        for (at, index) in bounds::indices(outer).enumerate() {
            let mut offset: usize = index[..batch].iter().zip(&steps).map(|(at, s)| at * s).sum();
            for (axis, &pick) in picks[at * tuple..(at + 1) * tuple].iter().enumerate() {
                offset += position(pick, data.shape()[batch + axis])? * steps[batch + axis];
            }
            starts.push(offset);
        }
        picks::picked_runs(data, &shape, &starts, run)
    }
}

impl Operator for GatherND {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let (Some(dims), Some(picks)) = (&data.shape, &indices.shape) else {
            return Ok(vec![Fact::unranked(data.dtype)]);
        };
        let Some((last, outer)) = picks.split_last() else {
            return Err(OpError::new("the indices have rank 0, expected 1 or more"));
        };
        let Some(tuple) = last.known() else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let depth = self.depth(dims.len(), picks.len(), tuple)?;
        Ok(vec![Fact::new(data.dtype, [outer, &dims[depth..]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        Ok(vec![self.slices(data, indices)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, one, run, tensor};

    #[test]
    fn tuples_name_elements_or_rows() {
        let data = counting(&[2, 2]);
        let elements = tensor::<i64>(&[2, 2], &[0, 0, 1, -1]);
        let result = one("GatherND", 13, &attributes([]), &[&data, &elements]);
        assert_eq!(result, tensor(&[2], &[0_f32, 3.0]));
        let rows = tensor::<i64>(&[2, 1], &[1, 0]);
        let result = one("GatherND", 13, &attributes([]), &[&data, &rows]);
        assert_eq!(result, tensor(&[2, 2], &[2_f32, 3.0, 0.0, 1.0]));
        let result = one("GatherND", 13, &attributes([("batch_dims", int(1))]), &[&data, &rows]);
        assert_eq!(result, tensor(&[2], &[1_f32, 2.0]));
    }

    #[test]
    fn tuples_longer_than_the_rank_are_an_error() {
        let long = tensor::<i64>(&[1, 3], &[0, 0, 0]);
        let inputs = [Some(&counting(&[2, 2])), Some(&long)];
        assert!(run("GatherND", 13, &attributes([]), &inputs, 1).is_err());
    }
}
