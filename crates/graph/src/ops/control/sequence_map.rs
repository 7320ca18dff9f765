//! `SequenceMap`: a subgraph applied to each tensor of a sequence.

use std::sync::Arc;

use galatea_tensor::Tensor;

use crate::collect::collected;
use crate::datum::{Datum, TensorSequence};
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::graph::OperatorBody;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// ONNX `SequenceMap`.
#[derive(Clone, Debug)]
pub struct SequenceMap {
    /// The applied body: from one tensor of each sequence, and the other inputs unchanged, to one
    /// tensor of each resulting sequence.
    pub body: OperatorBody,
    /// Number of inputs that the node has, captured values apart.
    pub inputs: usize,
}

impl SequenceMap {
    /// Reads the body.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let body = context.body("body")?;
        body.check(context.inputs, context.outputs)?;
        Ok(Box::new(Self { body, inputs: context.inputs }))
    }

    /// The facts of the body's own inputs.
    fn own(&self, inputs: OperatorInputs<'_, Fact>) -> Vec<Option<Fact>> {
        let own = |at| {
            inputs.optional(at).map(|fact| match fact.kind {
                FactKind::Sequence => fact.within(FactKind::Tensor),
                _ => fact.clone(),
            })
        };
        (0..self.inputs).map(own).collect()
    }

    /// The sequence of one output where there was nothing to map.
    fn nothing(&self, at: usize) -> Result<Datum, OpError> {
        match self.body.declared_output(at) {
            Some(fact) => Ok(Datum::Sequence(TensorSequence::empty(fact.dtype))),
            None => Err(OpError::new("the sequence is empty, and nothing says the output's type")),
        }
    }
}

impl Operator for SequenceMap {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let first = inputs.required(0)?;
        if first.kind != FactKind::Sequence {
            return Err(OpError::new(format!("input 0 is {first}, expected a sequence")));
        }
        let outputs = self.body.infer(&self.own(inputs), inputs)?;
        let listed = |fact: Fact| match fact.kind {
            FactKind::Tensor => Ok(fact.within(FactKind::Sequence)),
            other => Err(OpError::new(format!("the body gives {other}, expected a tensor"))),
        };
        collected(&mut outputs.into_iter().map(listed))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let captured = self.body.capture(&mut inputs)?;
        inputs.truncate(self.inputs);
        let missing = || OpError::new("an input is missing");
        let inputs: Vec<Datum> =
            collected(&mut inputs.into_iter().map(|slot| slot.ok_or_else(missing)))?;
        let length = match inputs.first() {
            Some(Datum::Sequence(sequence)) => sequence.items().len(),
            _ => return Err(OpError::new("input 0 is no sequence")),
        };
        let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); self.body.outputs()];
        for at in 0..length {
            let item = |input: &Datum| match input {
                Datum::Sequence(sequence) => {
                    let item = sequence.items().get(at).cloned().map(Datum::Tensor);
                    item.ok_or_else(|| {
                        let found = sequence.items().len();
                        OpError::new(format!("sequences have {length} and {found} tensors"))
                    })
                }
                other => Ok(other.clone()),
            };
            let own = collected(&mut inputs.iter().map(item))?;
            for (list, datum) in lists.iter_mut().zip(self.body.run(own, captured.clone())?) {
                list.push(datum.into_tensor()?);
            }
        }
        let sequence = |(at, list): (usize, Vec<Tensor>)| match list.first() {
            None => self.nothing(at),
            Some(first) => TensorSequence::new(first.dtype(), list).map(Datum::Sequence),
        };
        collected(&mut lists.into_iter().enumerate().map(sequence))
    }

    fn takes_any_kind(&self) -> bool {
        true
    }

    fn is_deterministic(&self) -> bool {
        false
    }

    fn bodies(&self) -> &[OperatorBody] {
        std::slice::from_ref(&self.body)
    }

    fn body_facts(
        &self,
        _body: usize,
        inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Option<Fact>>, OpError> {
        Ok(self.body.input_facts(&self.own(inputs), inputs))
    }

    fn with_bodies(&self, mut bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        let body = bodies.pop()?;
        Some(Arc::new(Self { body, inputs: self.inputs }))
    }
}
