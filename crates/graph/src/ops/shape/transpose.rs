//! `Transpose`: the axes in another order.

use galatea_tensor::Tensor;

use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Transpose`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Axis `i` of the output is axis `perm[i]` of the input; `None` reverses the axes.
    pub perm: Option<Vec<usize>>,
}

impl Transpose {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let perm = context.attributes.ints("perm")?;
        let perm = perm.map(|all| bounds::axes(&all, all.len())).transpose()?;
        Ok(Box::new(Self { perm }))
    }

    /// The permutation for an input of this rank.
    ///
    /// # Errors
    /// Fails when the attribute is for another rank.
    pub fn permutation(&self, rank: usize) -> Result<Vec<usize>, OpError> {
        match &self.perm {
            None => Ok((0..rank).rev().collect()),
            Some(perm) if perm.len() == rank => Ok(perm.clone()),
            Some(perm) => {
                Err(OpError::new(format!("perm {perm:?} does not fit an input of rank {rank}")))
            }
        }
    }
}

impl Operator for Transpose {
    fn attributes(&self) -> Option<Attributes> {
        let perm = self.perm.as_ref().map(|perm| ("perm", perm.as_slice().into()));
        Some(named(perm))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(shape) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let perm = self.permutation(shape.len())?;
        let permuted = perm.iter().map(|&axis| shape[axis].clone()).collect();
        Ok(vec![Fact::new(data.dtype, permuted).with_elements(bounds::carried(data))])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        Ok(vec![bounds::owned(&data.permute(&self.permutation(data.rank())?)?)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, ints, one, run, tensor};
    use galatea_tensor::ByteString;

    #[test]
    fn without_a_permutation_the_axes_turn_around() {
        let result = one("Transpose", 13, &attributes([]), &[&counting(&[2, 3])]);
        assert_eq!(result, tensor(&[3, 2], &[0_f32, 3.0, 1.0, 4.0, 2.0, 5.0]));
    }

    #[test]
    fn strings_move_like_numbers() {
        let words: Vec<ByteString> = ["a", "b", "c", "d"].map(ByteString::from).to_vec();
        let attributes = attributes([("perm", ints(&[1, 0]))]);
        let result = one("Transpose", 1, &attributes, &[&tensor(&[2, 2], &words)]);
        let expected: Vec<ByteString> = ["a", "c", "b", "d"].map(ByteString::from).to_vec();
        assert_eq!(result.to_vec::<ByteString>().unwrap(), expected);
    }

    #[test]
    fn a_permutation_of_another_rank_is_an_error() {
        let wrong = attributes([("perm", ints(&[1, 0, 2]))]);
        assert!(run("Transpose", 13, &wrong, &[Some(&counting(&[2, 3]))], 1).is_err());
        let twice = attributes([("perm", ints(&[1, 1]))]);
        assert!(run("Transpose", 13, &twice, &[Some(&counting(&[2, 3]))], 1).is_err());
    }
}
