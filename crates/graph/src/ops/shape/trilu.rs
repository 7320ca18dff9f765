//! `Trilu`: one triangle of matrices.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `Trilu`; optional input 1 shifts the diagonal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trilu {
    /// True if the upper triangle stays.
    pub upper: bool,
}

impl Trilu {
    /// Reads the attributes.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { upper: context.attributes.flag("upper", true)? }))
    }

    fn masked(&self, data: &Tensor, diagonal: i64) -> Result<Tensor, OpError> {
        let rows = data.shape()[data.rank() - 2];
        let columns = data.shape()[data.rank() - 1];
        let kept = |at: usize| {
            let row = (at / columns) % rows;
            let column = at % columns;
            let above = (column as i64).saturating_sub(row as i64);
            let keep = if self.upper { above >= diagonal } else { above <= diagonal };
            keep.then_some(at)
        };
        picks::picked(data, data.shape(), &mut (0..data.elements()).map(kept))
    }
}

impl Operator for Trilu {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        bounds::rank_at_least(data, 2)?;
        Ok(vec![Fact::shaped(data.dtype, data.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        if data.rank() < 2 {
            return Err(OpError::new(format!("rank {}, expected at least 2", data.rank())));
        }
        let diagonal = inputs.optional(1).map_or(Ok(0), Tensor::item::<i64>)?;
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![self.masked(data, diagonal)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, one, run, tensor};

    #[test]
    fn the_diagonal_shifts() {
        let data = counting(&[2, 3]);
        let upper = one("Trilu", 14, &attributes([]), &[&data]);
        assert_eq!(upper, tensor(&[2, 3], &[0_f32, 1.0, 2.0, 0.0, 4.0, 5.0]));
        let shift = Tensor::scalar(-1_i64);
        let lower = one("Trilu", 14, &attributes([("upper", int(0))]), &[&data, &shift]);
        assert_eq!(lower, tensor(&[2, 3], &[0_f32, 0.0, 0.0, 3.0, 0.0, 0.0]));
    }

    #[test]
    fn a_vector_has_no_triangle() {
        assert!(run("Trilu", 14, &attributes([]), &[Some(&counting(&[3]))], 1).is_err());
    }
}
