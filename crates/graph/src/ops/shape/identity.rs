//! `Identity`: the input itself.

use galatea_tensor::Tensor;

use crate::attribute::Attributes;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `Identity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity;

impl Identity {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for Identity {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let input = inputs.into_iter().next().flatten();
        Ok(vec![input.ok_or_else(|| OpError::new("input 0 is missing"))?])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, one};

    #[test]
    fn identity_shares_the_memory() {
        let data = counting(&[3]);
        assert!(one("Identity", 13, &attributes([]), &[&data]).shares_memory_with(&data));
    }
}
