//! `Optional`, `OptionalGetElement`, `OptionalHasElement`: values that may be absent.

use galatea_tensor::{DataType, Tensor};

use super::taken;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// ONNX `Optional`: an optional value that holds the input, or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Optional {
    /// The fact of the value that the optional would hold, if there is no input.
    pub empty: Option<Fact>,
}

impl Optional {
    /// Reads the type, which a node without input needs.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let empty = context.attributes.value_type("type")?;
        if context.inputs == 0 && empty.is_none() {
            return Err(OpError::new("there is neither an input nor the attribute 'type'"));
        }
        Ok(Box::new(Self { empty }))
    }
}

impl Operator for Optional {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let held = inputs.optional(0).or(self.empty.as_ref());
        let held = held.ok_or_else(|| OpError::new("nothing says what the value would hold"))?;
        let kind = held.kind.optional();
        let kind = kind.ok_or_else(|| OpError::new(format!("no optional value holds {held}")))?;
        Ok(vec![held.within(kind)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let held = inputs.into_iter().next().flatten();
        Ok(vec![Datum::Optional(held.map(Box::new))])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

/// ONNX `OptionalGetElement`: what an optional value holds; any other value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalGetElement;

impl OptionalGetElement {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for OptionalGetElement {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let held = inputs.required(0)?;
        Ok(vec![held.within(held.kind.element())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        match taken(&mut inputs, 0)? {
            Datum::Optional(Some(held)) => Ok(vec![*held]),
            Datum::Optional(None) => Err(OpError::new("the optional value holds nothing")),
            other => Ok(vec![other]),
        }
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

/// ONNX `OptionalHasElement`: whether there is a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalHasElement;

impl OptionalHasElement {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for OptionalHasElement {
    /// Known beforehand unless the input is optional: models ask before they take the value.
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![match inputs.optional(0) {
            None => Fact::constant(Tensor::scalar(false)),
            Some(fact) if fact.kind.optional().is_some() => Fact::constant(Tensor::scalar(true)),
            Some(_) => Fact::fixed(DataType::Bool, &[]),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let present = match inputs.into_iter().next().flatten() {
            None | Some(Datum::Optional(None)) => false,
            Some(_) => true,
        };
        Ok(vec![Datum::Tensor(Tensor::scalar(present))])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}
