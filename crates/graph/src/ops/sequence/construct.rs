//! `SequenceConstruct` and `SequenceEmpty`: sequences of given tensors, and of none.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::datum::{Datum, TensorSequence};
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// ONNX `SequenceConstruct`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceConstruct;

impl SequenceConstruct {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for SequenceConstruct {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let all = inputs.all_required()?;
        let Some((first, others)) = all.split_first() else {
            return Err(OpError::new("there are no inputs"));
        };
        let joined = others.iter().try_fold((*first).clone(), |joined, one| joined.join(one))?;
        Ok(vec![joined.within(FactKind::Sequence)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let missing = || OpError::new("an input is missing");
        let tensor = |slot: Option<Datum>| slot.ok_or_else(missing)?.into_tensor();
        let items = collected(&mut inputs.into_iter().map(tensor))?;
        let dtype = items.first().ok_or_else(missing)?.dtype();
        Ok(vec![Datum::Sequence(TensorSequence::new(dtype, items)?)])
    }
}

/// ONNX `SequenceEmpty`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceEmpty {
    /// The type of the tensors that the sequence may hold.
    pub dtype: DataType,
}

impl SequenceEmpty {
    /// Reads the attributes; the type is `FP32` if absent.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { dtype: context.data_type("dtype")?.unwrap_or(DataType::Fp32) }))
    }
}

impl Operator for SequenceEmpty {
    fn infer(&self, _: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![Fact::unranked(self.dtype).within(FactKind::Sequence)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, _: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        Ok(vec![Datum::Sequence(TensorSequence::empty(self.dtype))])
    }
}
