//! `Flatten`: a matrix of the axes before and from one axis on.

use galatea_tensor::{Tensor, checked_elements};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Flatten`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flatten {
    /// The first axis of the second output axis; may count from the end, and may be the rank.
    pub axis: i64,
}

impl Flatten {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int_or("axis", 1)? }))
    }

    fn position(&self, rank: usize) -> Result<usize, OpError> {
        if usize::try_from(self.axis).is_ok_and(|axis| axis == rank) {
            return Ok(rank);
        }
        bounds::axis(self.axis, rank)
    }
}

impl Operator for Flatten {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let shape = match &data.shape {
            None => vec![Dim::Unknown, Dim::Unknown],
            Some(dims) => {
                let (rows, columns) = dims.split_at(self.position(dims.len())?);
                vec![bounds::product(rows), bounds::product(columns)]
            }
        };
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let (rows, columns) = data.shape().split_at(self.position(data.rank())?);
        let shape = [checked_elements(rows)?, checked_elements(columns)?];
        Ok(vec![data.reshape(&shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, one, run};
    use galatea_tensor::DataType;

    #[test]
    fn the_axis_divides_rows_from_columns() {
        let data = counting(&[2, 3, 4]);
        for (axis, shape) in [(0, [1, 24]), (1, [2, 12]), (3, [24, 1]), (-1, [6, 4])] {
            let attributes = attributes([("axis", int(axis))]);
            assert_eq!(one("Flatten", 13, &attributes, &[&data]).shape(), shape);
        }
        let beyond = attributes([("axis", int(4))]);
        assert!(run("Flatten", 13, &beyond, &[Some(&data)], 1).is_err());
    }

    #[test]
    fn a_symbolic_batch_stays_a_symbol() {
        let batch = Dim::symbol("batch");
        let data = Fact::new(DataType::Fp32, vec![batch.clone(), Dim::Known(4), Dim::Known(5)]);
        let fact = inferred("Flatten", 13, &attributes([]), &[&data]).unwrap();
        assert_eq!(fact.shape.unwrap(), [batch, Dim::Known(20)]);
    }
}
