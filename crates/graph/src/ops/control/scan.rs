//! `Scan`: a subgraph applied along an axis, with a state that goes from one position to the next.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::iterate::{
    BodyInputFacts, CollectedOutputs, SettledFacts, settle, stacked, stacked_fact,
};
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::limits;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::bounds;
use crate::ops::shape::join_tensors;

/// The axis of one scanned value, and whether it is walked backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedAxis {
    /// The axis; may count from the end.
    pub axis: i64,
    /// From the last position to the first.
    pub backwards: bool,
}

/// ONNX `Scan`.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The applied body: from the states and one slice of each scanned input to the states and one
    /// slice of each scanned output.
    pub body: OperatorBody,
    /// Number of states.
    pub states: usize,
    /// The scanned inputs.
    pub inputs: Vec<ScannedAxis>,
    /// The scanned outputs.
    pub outputs: Vec<ScannedAxis>,
    /// Opset 8: input 0 are the lengths of the sequences, and axis 0 of all others is the batch.
    pub batched: bool,
}

impl Scan {
    /// Opset 9 and newer.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let (body, states, scanned) = Self::counts(context, 0)?;
        let collected = body.outputs() - states;
        let mut walks = |axes, directions, count: usize| {
            let axes = list(context, axes, count)?;
            let directions = list(context, directions, count)?;
            let walk = |(&axis, &way): (&i64, &i64)| ScannedAxis { axis, backwards: way == 1 };
            Ok::<_, OpError>(axes.iter().zip(&directions).map(walk).collect())
        };
        let inputs = walks("scan_input_axes", "scan_input_directions", scanned)?;
        let outputs = walks("scan_output_axes", "scan_output_directions", collected)?;
        Ok(Box::new(Self { body, states, inputs, outputs, batched: false }))
    }

    /// Opset 8: with a batch axis and the lengths of its sequences.
    pub(super) fn parse_batched(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let (body, states, scanned) = Self::counts(context, 1)?;
        let directions = list(context, "directions", scanned)?;
        // Slices of one sequence have no batch axis any more.
        let inputs =
            directions.iter().map(|&way| ScannedAxis { axis: 0, backwards: way == 1 }).collect();
        let outputs = vec![ScannedAxis { axis: 0, backwards: false }; body.outputs() - states];
        Ok(Box::new(Self { body, states, inputs, outputs, batched: true }))
    }

    /// The body, and how many states and scanned inputs there are behind `skip` others.
    fn counts(
        context: &mut ParseContext<'_>,
        skip: usize,
    ) -> Result<(OperatorBody, usize, usize), OpError> {
        let body = context.body("body")?;
        let scanned = context
            .attributes
            .int("num_scan_inputs")?
            .ok_or_else(|| OpError::new("attribute 'num_scan_inputs' is missing"))?;
        let scanned = bounds::length(scanned, "'num_scan_inputs'")?;
        let states = context.inputs.checked_sub(skip + scanned).filter(|_| scanned > 0);
        let states = states.filter(|&states| states <= context.outputs).ok_or_else(|| {
            OpError::new(format!(
                "'num_scan_inputs' is {scanned}, the node has {} inputs and {} outputs",
                context.inputs, context.outputs
            ))
        })?;
        body.check(states + scanned, context.outputs)?;
        Ok((body, states, scanned))
    }

    /// States and scanned outputs of one sequence.
    fn walk(
        &self,
        mut states: Vec<Datum>,
        scanned: &[Tensor],
        length: usize,
        captured: &[Datum],
    ) -> Result<(Vec<Datum>, Vec<Tensor>), OpError> {
        let front = |(tensor, walk): (&Tensor, &ScannedAxis)| -> Result<Tensor, OpError> {
            let axis = bounds::axis(walk.axis, tensor.rank())?;
            let order: Vec<usize> =
                std::iter::once(axis).chain((0..tensor.rank()).filter(|&at| at != axis)).collect();
            Ok(tensor.permute(&order)?.contiguous()?)
        };
        let scanned = collected(&mut scanned.iter().zip(&self.inputs).map(front))?;
        if let Some(other) = scanned.iter().find(|tensor| tensor.shape()[0] < length) {
            return Err(OpError::new(format!(
                "scanned inputs have {length} and {} positions",
                other.shape()[0]
            )));
        }
        let mut collected = CollectedOutputs::new(self.outputs.len());
        for step in 0..length {
            limits::iterate(step)?;
            let mut own = states;
            for (tensor, walk) in scanned.iter().zip(&self.inputs) {
                let at = if walk.backwards { length - 1 - step } else { step };
                own.push(Datum::Tensor(position(tensor, at)?));
            }
            let mut outputs = self.body.run(own, captured.to_vec())?.into_iter();
            states = outputs.by_ref().take(self.states).collect();
            collected.add(outputs)?;
        }
        for (at, _) in self.outputs.iter().enumerate().filter(|(_, walk)| walk.backwards) {
            collected.reverse(at);
        }
        let fact = |at| self.body.declared_output(self.states + at).cloned();
        let stacked = collected.stacked(fact)?.into_iter().zip(&self.outputs);
        let outputs = stacked.map(|(tensor, walk)| to_axis(&tensor, walk.axis));
        Ok((states, outputs.collect::<Result<_, _>>()?))
    }

    /// The states and scanned outputs of every sequence of a batch.
    fn walk_batch(
        &self,
        lengths: Option<Tensor>,
        states: &[Tensor],
        scanned: &[Tensor],
        captured: &[Datum],
    ) -> Result<Vec<Datum>, OpError> {
        let (batch, longest) = match scanned.first().map(Tensor::shape) {
            Some([batch, longest, ..]) => (*batch, *longest),
            other => {
                return Err(OpError::new(format!("shape {other:?} has no batch and sequence")));
            }
        };
        let lengths = match lengths {
            None => vec![longest; batch],
            Some(given) => bounds::lengths(&given.to_i64_vec()?, "a sequence's length")?,
        };
        let all = states.iter().chain(scanned);
        let fits = all.clone().all(|tensor| tensor.shape().first() == Some(&batch));
        if !fits || lengths.len() != batch || lengths.iter().any(|&length| length > longest) {
            return Err(OpError::new(format!(
                "{} lengths up to {:?}, expected a batch of {batch} up to {longest} in all inputs",
                lengths.len(),
                lengths.iter().max()
            )));
        }
        let mut results: Vec<Vec<Tensor>> = vec![Vec::new(); self.states + self.outputs.len()];
        for (at, &length) in lengths.iter().enumerate() {
            let row = |tensor: &Tensor| position(&tensor.contiguous()?, at);
            let first = collected(&mut states.iter().map(|t| row(t).map(Datum::Tensor)))?;
            let slices = collected(&mut scanned.iter().map(row))?;
            let (last, outputs) = self.walk(first, &slices, length, captured)?;
            let last = last.into_iter().map(Datum::into_tensor);
            let outputs = outputs.iter().map(|output| padded(output, longest));
            for (list, tensor) in results.iter_mut().zip(last.chain(outputs)) {
                list.push(tensor?);
            }
        }
        collected(&mut results.iter().map(|list| stacked(list).map(Datum::Tensor)))
    }

    fn settle(&self, inputs: OperatorInputs<'_, Fact>) -> Result<(SettledFacts, Dim), OpError> {
        let skip = usize::from(self.batched);
        let own = |at: usize| -> Result<Option<Fact>, OpError> {
            let fact = inputs.optional(skip + at).cloned();
            if self.batched { fact.map(|fact| without(&fact, 0)).transpose() } else { Ok(fact) }
        };
        let states = collected(&mut (0..self.states).map(own))?;
        let mut length = Dim::Unknown;
        let mut slices = Vec::new();
        for (at, walk) in self.inputs.iter().enumerate() {
            let fact = own(self.states + at)?;
            if let Some(shape) = fact.as_ref().and_then(|fact| fact.shape.as_ref()) {
                let dim = &shape[bounds::axis(walk.axis, shape.len())?];
                if length.known().is_none() {
                    length = dim.clone();
                }
            }
            slices.push(fact.map(|fact| without(&fact, walk.axis)).transpose()?);
        }
        let own = BodyInputFacts { before: &[], carried: &states, after: &slices };
        Ok((settle(&self.body, own, 0, inputs)?, length))
    }

    fn slices(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Option<Fact>>, OpError> {
        let slice = |(at, walk): (usize, &ScannedAxis)| {
            let Some(fact) = inputs.optional(usize::from(self.batched) + self.states + at) else {
                return Ok(None);
            };
            let fact = if self.batched { without(fact, 0)? } else { fact.clone() };
            without(&fact, walk.axis).map(Some)
        };
        collected(&mut self.inputs.iter().enumerate().map(slice))
    }
}

/// Integers of an attribute, one for each of `count`; zeros if absent.
fn list(
    context: &mut ParseContext<'_>,
    name: &'static str,
    count: usize,
) -> Result<Vec<i64>, OpError> {
    let found = context.attributes.ints(name)?.unwrap_or_else(|| vec![0; count]);
    if found.len() == count {
        return Ok(found);
    }
    Err(OpError::new(format!("'{name}' has {} entries, expected {count}", found.len())))
}

/// One position of the first axis, without that axis.
fn position(tensor: &Tensor, at: usize) -> Result<Tensor, OpError> {
    Ok(tensor.slice_axis(0, at, 1, 1)?.reshape(&tensor.shape()[1..])?)
}

/// The first axis moved to where it belongs.
fn to_axis(tensor: &Tensor, axis: i64) -> Result<Tensor, OpError> {
    let axis = bounds::axis(axis, tensor.rank())?;
    let mut order: Vec<usize> = (1..tensor.rank()).collect();
    order.insert(axis, 0);
    Ok(tensor.permute(&order)?)
}

/// The tensor with zeros behind it up to a length of the first axis.
fn padded(tensor: &Tensor, length: usize) -> Result<Tensor, OpError> {
    let mut shape = tensor.shape().to_vec();
    shape[0] = length.saturating_sub(shape[0]);
    if shape[0] == 0 {
        return Ok(tensor.clone());
    }
    bounds::bounded(tensor.dtype(), &shape)?;
    join_tensors(&[tensor, &Tensor::zeros(tensor.dtype(), &shape)?], 0)
}

/// A fact without one axis.
fn without(fact: &Fact, axis: i64) -> Result<Fact, OpError> {
    if !fact.is_tensor() {
        return Err(OpError::new(format!("an input is {fact}, expected a tensor")));
    }
    let Some(mut shape) = fact.shape.clone() else { return Ok(Fact::unranked(fact.dtype)) };
    shape.remove(bounds::axis(axis, shape.len())?);
    Ok(Fact::new(fact.dtype, shape))
}

impl Operator for Scan {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let (SettledFacts { carried, outputs }, length) = self.settle(inputs)?;
        let batch = || {
            let first = inputs.optional(1).and_then(|fact| fact.shape.as_ref()?.first().cloned());
            first.unwrap_or(Dim::Unknown)
        };
        let finish = |(at, output): (usize, Fact)| {
            let fact = match (carried.get(at), at.checked_sub(self.states)) {
                (Some(Some(state)), _) => state.clone(),
                (_, Some(scanned)) => {
                    stacked_fact(&output, length.clone(), self.outputs[scanned].axis)?
                }
                _ => output,
            };
            if self.batched { stacked_fact(&fact, batch(), 0) } else { Ok(fact) }
        };
        collected(&mut outputs.into_iter().enumerate().map(finish))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let captured = self.body.capture(&mut inputs)?;
        let mut inputs = inputs.into_iter();
        let lengths = if self.batched { inputs.next().flatten() } else { None };
        let missing = || OpError::new("an input is missing");
        let tensor = |slot: Option<Datum>| slot.ok_or_else(missing)?.into_tensor();
        let states: Vec<Tensor> = collected(&mut inputs.by_ref().take(self.states).map(tensor))?;
        let scanned: Vec<Tensor> = collected(&mut inputs.take(self.inputs.len()).map(tensor))?;
        if self.batched {
            let lengths = lengths.map(Datum::into_tensor).transpose()?;
            return self.walk_batch(lengths, &states, &scanned, &captured);
        }
        let (Some(first), Some(walk)) = (scanned.first(), self.inputs.first()) else {
            return Err(missing());
        };
        let length = first.shape()[bounds::axis(walk.axis, first.rank())?];
        for (tensor, walk) in scanned.iter().zip(&self.inputs) {
            let found = tensor.shape()[bounds::axis(walk.axis, tensor.rank())?];
            if found != length {
                let text = format!("scanned inputs have {length} and {found} positions");
                return Err(OpError::new(text));
            }
        }
        let states = states.into_iter().map(Datum::Tensor).collect();
        let (mut results, outputs) = self.walk(states, &scanned, length, &captured)?;
        results.extend(outputs.into_iter().map(Datum::Tensor));
        Ok(results)
    }

    fn takes_any_kind(&self) -> bool {
        true
    }

    /// Not folded: scanning costs more than the sizes of inputs and outputs tell.
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
        let (settled, _) = self.settle(inputs)?;
        let own = [settled.carried, self.slices(inputs)?].concat();
        Ok(self.body.input_facts(&own, inputs))
    }

    fn with_bodies(&self, mut bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        let body = bodies.pop()?;
        Some(Arc::new(Self { body, ..self.clone() }))
    }
}
