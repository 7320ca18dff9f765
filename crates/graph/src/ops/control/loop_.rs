//! `Loop`: a subgraph repeated a number of times, or while a condition holds.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::iterate::{
    BodyInputFacts, CollectedOutputs, SettledFacts, condition, settle, stacked_fact,
};
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::limits;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::generate::Constant;
use crate::ops::shape::Identity;

/// Inputs of the node and of the body before the carried values: how often and whether.
const CONTROL: usize = 2;

/// ONNX `Loop`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The repeated body: from the iteration's number, the condition and the carried values to the
    /// condition, the carried values and the collected ones.
    pub body: OperatorBody,
    /// How many values are carried from one iteration to the next.
    pub carried: usize,
    /// Number of inputs that the node has, captured values apart: absent ones at the end are left
    /// out.
    pub inputs: usize,
}

impl Loop {
    /// Reads the body.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let body = context.body("body")?;
        let carried = context.inputs.saturating_sub(CONTROL);
        body.check(CONTROL + carried, context.outputs + 1)?;
        if context.outputs < carried {
            return Err(OpError::new(format!(
                "the node has {} outputs, expected at least {carried}",
                context.outputs
            )));
        }
        Ok(Box::new(Self { body, carried, inputs: context.inputs }))
    }

    /// Returns the fact of an input that is no captured value.
    fn input<'a>(&self, inputs: OperatorInputs<'a, Fact>, at: usize) -> Option<&'a Fact> {
        if at < self.inputs { inputs.optional(at) } else { None }
    }

    /// Shape of the body's input at a position for one number: a model may declare a vector.
    fn number_shape(&self, at: usize) -> &'static [usize] {
        let graph = self.body.graph();
        let declared = graph.inputs.get(at).and_then(|&id| graph.value(id).declared.as_ref());
        if declared.and_then(Fact::rank) == Some(1) { &[1] } else { &[] }
    }

    fn settle(&self, inputs: OperatorInputs<'_, Fact>) -> Result<SettledFacts, OpError> {
        let number = |dtype, at| Some(Fact::fixed(dtype, self.number_shape(at)));
        let before = [number(DataType::Int64, 0), number(DataType::Bool, 1)];
        let carried: Vec<Option<Fact>> =
            (0..self.carried).map(|at| self.input(inputs, CONTROL + at).cloned()).collect();
        let own = BodyInputFacts { before: &before, carried: &carried, after: &[] };
        settle(&self.body, own, 1, inputs)
    }

    /// Returns the number of iterations, where that is known: the condition holds from first to
    /// last.
    fn iterations(&self, inputs: OperatorInputs<'_, Fact>, next: &Fact) -> Option<usize> {
        let holds = |fact: &Fact| fact.value.as_ref().is_some_and(|v| condition(v) == Ok(true));
        let count = self.input(inputs, 0)?.integers()?.first().copied()?;
        let always = holds(next) && self.input(inputs, 1).is_none_or(holds);
        always.then(|| usize::try_from(count).unwrap_or(0))
    }

    /// Refuses a loop that has neither a number of iterations nor a condition that could change.
    fn check_ends(&self, count: Option<i64>) -> Result<(), OpError> {
        if count.is_some() {
            return Ok(());
        }
        let graph = self.body.graph();
        let Some(&(mut next)) = graph.outputs.first() else { return Ok(()) };
        // Nodes are sorted: one walk backwards follows a chain of copies.
        for node in graph.nodes.iter().rev().filter(|node| node.operator::<Identity>().is_some()) {
            if let (true, Some(from)) = (node.output(0) == Some(next), node.input(0)) {
                next = from;
            }
        }
        let made = graph.nodes.iter().find(|node| node.output(0) == Some(next));
        let constant = made.and_then(|node| node.operator::<Constant>()).map(|made| &made.value);
        let constant = constant.or_else(|| graph.constant(next));
        let always = constant.is_some_and(|value| condition(value) == Ok(true));
        if always || graph.inputs.get(1) == Some(&next) {
            return Err(OpError::new(
                "there is no number of iterations and the condition never changes: this would \
                 not end",
            ));
        }
        Ok(())
    }
}

impl Operator for Loop {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let SettledFacts { carried, outputs } = self.settle(inputs)?;
        let mut outputs = outputs.into_iter();
        let next = outputs.next().unwrap_or_else(|| Fact::fixed(DataType::Bool, &[]));
        let count = self.iterations(inputs, &next).map_or(Dim::Unknown, Dim::Known);
        let mut facts = Vec::with_capacity(self.body.outputs());
        for (at, output) in outputs.enumerate() {
            facts.push(match carried.get(at) {
                // Settled facts hold of the first value too, which a loop without iterations gives.
                // Where only the first one is optional, models count on an iteration.
                Some(Some(fact)) => Fact { kind: output.kind, ..fact.clone() },
                Some(None) => output,
                None => stacked_fact(&output, count.clone(), 0)?,
            });
        }
        Ok(facts)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let captured = self.body.capture(&mut inputs)?;
        inputs.truncate(self.inputs);
        let mut inputs = inputs.into_iter();
        let count = match inputs.next().flatten() {
            Some(datum) => datum.into_tensor()?.to_i64_vec()?.first().copied(),
            None => None,
        };
        let mut holds = match inputs.next().flatten() {
            Some(datum) => condition(&datum.into_tensor()?)?,
            None => true,
        };
        self.check_ends(count)?;
        let missing = || OpError::new("an initial value is missing");
        let mut carried: Vec<Datum> =
            collected(&mut inputs.take(self.carried).map(|slot| slot.ok_or_else(missing)))?;
        let mut collected = CollectedOutputs::new(self.body.outputs() - 1 - self.carried);
        let mut iteration = 0;
        while holds && count.is_none_or(|count| iteration < count) {
            limits::iterate(usize::try_from(iteration).unwrap_or(usize::MAX))?;
            let number = Tensor::from_vec(self.number_shape(0), vec![iteration])?;
            let condition_in = Tensor::from_vec(self.number_shape(1), vec![true])?;
            let mut own = vec![Datum::Tensor(number), Datum::Tensor(condition_in)];
            own.append(&mut carried);
            let mut outputs = self.body.run(own, captured.clone())?.into_iter();
            if let Some(next) = outputs.next() {
                holds = condition(&next.into_tensor()?)?;
            }
            carried.extend(outputs.by_ref().take(self.carried));
            collected.add(outputs)?;
            iteration += 1;
        }
        let fact = |at| self.body.declared_output(1 + self.carried + at).cloned();
        carried.extend(collected.stacked(fact)?.into_iter().map(Datum::Tensor));
        Ok(carried)
    }

    fn takes_any_kind(&self) -> bool {
        true
    }

    /// Not folded: the number of iterations has no bound.
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
        let number = |dtype, at| Some(Fact::fixed(dtype, self.number_shape(at)));
        let mut own = vec![number(DataType::Int64, 0), number(DataType::Bool, 1)];
        own.extend(self.settle(inputs)?.carried);
        Ok(self.body.input_facts(&own, inputs))
    }

    fn with_bodies(&self, mut bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        let body = bodies.pop()?;
        Some(Arc::new(Self { body, ..self.clone() }))
    }
}
