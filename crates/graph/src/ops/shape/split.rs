//! `Split`: a tensor cut into pieces along an axis.

use galatea_tensor::Tensor;

use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Split`. The lengths are an attribute before opset 13, input 1 from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The axis to cut; may count from the end.
    pub axis: i64,
    /// The lengths of the attribute.
    pub split: Option<Vec<usize>>,
    /// Number of pieces where no lengths are given.
    pub pieces: usize,
    /// True if the last piece may be shorter (from opset 18 on).
    pub uneven: bool,
}

impl Split {
    /// Opsets before 13.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 0)?;
        let split = context.attributes.ints("split")?;
        let split = split.map(|all| bounds::lengths(&all, "an entry of 'split'")).transpose()?;
        Ok(Box::new(Self { axis, split, pieces: context.outputs, uneven: false }))
    }

    /// Opset 13 and newer; `num_outputs` from 18 on.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 0)?;
        let uneven = context.opset >= 18;
        let mut pieces = context.outputs;
        if uneven && let Some(wanted) = context.attributes.int("num_outputs")? {
            let wanted = bounds::length(wanted, "attribute 'num_outputs'")?;
            if wanted != pieces {
                return Err(OpError::new(format!(
                    "'num_outputs' is {wanted}, the node has {pieces} outputs"
                )));
            }
            pieces = wanted;
        }
        Ok(Box::new(Self { axis, split: None, pieces, uneven }))
    }

    fn check_pieces(&self, given: usize) -> Result<(), OpError> {
        if given == self.pieces {
            return Ok(());
        }
        Err(OpError::new(format!("{given} lengths for {} outputs", self.pieces)))
    }

    /// The lengths of the pieces of an axis of length `len`.
    ///
    /// # Errors
    /// Fails when they do not add up to it.
    pub fn lengths(&self, len: usize, given: Option<&[i64]>) -> Result<Vec<usize>, OpError> {
        let given = match (given, &self.split) {
            (Some(input), _) => Some(bounds::lengths(input, "an entry of 'split'")?),
            (None, attribute) => attribute.clone(),
        };
        if let Some(lengths) = given {
            self.check_pieces(lengths.len())?;
            let sum = lengths.iter().fold(0_usize, |sum, &one| sum.saturating_add(one));
            if sum != len {
                return Err(OpError::new(format!(
                    "pieces {lengths:?} do not add up to an axis of length {len}"
                )));
            }
            return Ok(lengths);
        }
        let pieces = self.pieces.max(1);
        if !self.uneven && !len.is_multiple_of(pieces) {
            return Err(OpError::new(format!("length {len} does not divide into {pieces} pieces")));
        }
        let piece = len.div_ceil(pieces);
        let last = len.checked_sub(piece * (pieces - 1)).ok_or_else(|| {
            OpError::new(format!("length {len} does not divide into {pieces} pieces of {piece}"))
        })?;
        let mut lengths = vec![piece; pieces];
        lengths[pieces - 1] = last;
        Ok(lengths)
    }
}

impl Operator for Split {
    fn attributes(&self) -> Option<Attributes> {
        // The newest version lets the last piece be shorter.
        let newest = self.split.is_none() && self.uneven;
        newest.then(|| named([("axis", self.axis.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else {
            return Ok(vec![Fact::unranked(data.dtype); self.pieces]);
        };
        let axis = bounds::axis(self.axis, dims.len())?;
        let input = inputs.optional(1);
        let given = input.and_then(Fact::integers);
        let lengths: Vec<Dim> = match (dims[axis].known(), &given, &self.split) {
            (Some(len), _, _) if input.is_none() || given.is_some() => {
                self.lengths(len, given.as_deref())?.into_iter().map(Dim::Known).collect()
            }
            (None, Some(input), _) => {
                let lengths = bounds::lengths(input, "an entry of 'split'")?;
                self.check_pieces(lengths.len())?;
                lengths.into_iter().map(Dim::Known).collect()
            }
            (None, None, Some(split)) => {
                self.check_pieces(split.len())?;
                split.iter().map(|&len| Dim::Known(len)).collect()
            }
            _ => match input.and_then(Fact::lengths) {
                Some(lengths) if lengths.len() == self.pieces => lengths,
                _ => vec![Dim::Unknown; self.pieces],
            },
        };
        Ok(lengths
            .into_iter()
            .map(|len| {
                let mut shape = dims.clone();
                shape[axis] = len;
                Fact::new(data.dtype, shape)
            })
            .collect())
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let axis = bounds::axis(self.axis, data.rank())?;
        let given = inputs.optional(1).map(Tensor::to_i64_vec).transpose()?;
        let mut start = 0;
        let mut pieces = Vec::new();
        for len in self.lengths(data.shape()[axis], given.as_deref())? {
            pieces.push(bounds::owned(&data.slice_axis(axis, start, len, 1)?)?);
            start += len;
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, ints, run, tensor};

    #[test]
    fn equal_pieces_and_given_lengths() {
        let data = counting(&[2, 4]);
        let axis = attributes([("axis", int(1))]);
        let halves = run("Split", 13, &axis, &[Some(&data)], 2).unwrap();
        assert_eq!(halves[1], tensor(&[2, 2], &[2_f32, 3.0, 6.0, 7.0]));
        let old = attributes([("axis", int(1)), ("split", ints(&[1, 3]))]);
        assert_eq!(run("Split", 7, &old, &[Some(&data)], 2).unwrap()[1].shape(), [2, 3]);
        let lengths = Tensor::vector(vec![3_i64, 1]);
        let pieces = run("Split", 13, &axis, &[Some(&data), Some(&lengths)], 2).unwrap();
        assert_eq!(pieces[0].shape(), [2, 3]);
    }

    #[test]
    fn the_last_piece_is_shorter_from_opset_18_on_only() {
        let data = counting(&[7]);
        let uneven = attributes([("num_outputs", int(4))]);
        let pieces = run("Split", 18, &uneven, &[Some(&data)], 4).unwrap();
        assert_eq!(pieces[3].to_vec::<f32>().unwrap(), [6.0]);
        assert!(run("Split", 13, &attributes([]), &[Some(&data)], 4).is_err());
    }

    #[test]
    fn lengths_that_do_not_add_up_are_an_error() {
        let lengths = Tensor::vector(vec![3_i64, 3]);
        let inputs = [Some(&counting(&[7])), Some(&lengths)];
        assert!(run("Split", 13, &attributes([]), &inputs, 2).is_err());
    }
}
