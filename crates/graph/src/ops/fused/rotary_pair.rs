//! `RotaryPair`: queries and keys turned by the same angles.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::transformer::RotaryEmbedding;

/// Two tensors, each turned as `RotaryEmbedding` does, by the same angles.
///
/// Inputs: the first `X`, cosines, sines and optionally positions as `RotaryEmbedding` takes them; then the second
/// `X`. Outputs: like the first and like the second `X`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotaryPair {
    /// How the first is turned.
    pub first: RotaryEmbedding,
    /// How the second is turned.
    pub second: RotaryEmbedding,
}

/// The input that is the second `X`.
const SECOND: usize = 4;

impl RotaryPair {
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Err(OpError::new("the operator is made of two others, no text of a model has it"))
    }

    /// Returns the inputs of each of the two rotations.
    fn both<'a, T>(inputs: OperatorInputs<'a, T>) -> Result<[[Option<&'a T>; 4]; 2], OpError> {
        let angles = [inputs.optional(1), inputs.optional(2), inputs.optional(3)];
        let of = |x: &'a T| [Some(x), angles[0], angles[1], angles[2]];
        Ok([of(inputs.required(0)?), of(inputs.required(SECOND)?)])
    }
}

impl Operator for RotaryPair {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let [one, two] = Self::both(inputs)?;
        let mut facts = self.first.infer(OperatorInputs::new(&one))?;
        facts.extend(self.second.infer(OperatorInputs::new(&two))?);
        Ok(facts)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let [one, two] = Self::both(inputs)?;
        let mut turned = self.first.reference(OperatorInputs::new(&one))?;
        turned.extend(self.second.reference(OperatorInputs::new(&two))?);
        Ok(turned)
    }
}
