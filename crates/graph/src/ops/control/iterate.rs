//! Code that the repeating operators share.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::OperatorInputs;
use crate::ops::bounds;
use crate::ops::shape::join_tensors;

/// Bodies that nest deeper than this are inferred without trying shapes first: each level tries
/// up to [`TRIES`] times, and so does each level inside it.
const TALL: usize = 2;
/// How often a body is inferred before nothing is said about the shapes that change.
const TRIES: usize = 2;

/// The truth value of a tensor of one element.
pub(super) fn condition(tensor: &Tensor) -> Result<bool, OpError> {
    if tensor.dtype() != DataType::Bool || tensor.elements() != 1 {
        return Err(OpError::new(format!(
            "the condition is of type {} and shape {:?}, expected one BOOL",
            tensor.dtype(),
            tensor.shape()
        )));
    }
    Ok(tensor.to_vec::<bool>()?[0])
}

/// A fact without what holds of one value only.
fn varying(fact: &Fact) -> Fact {
    Fact { value: None, elements: None, ..fact.clone() }
}

/// Facts of a body's own inputs.
#[derive(Clone, Copy)]
pub(super) struct BodyInputFacts<'a> {
    /// Facts of the inputs before the carried values.
    pub(super) before: &'a [Option<Fact>],
    /// Facts of the carried values.
    pub(super) carried: &'a [Option<Fact>],
    /// Facts of the inputs after the carried values.
    pub(super) after: &'a [Option<Fact>],
}

/// Facts that hold in every iteration of a body: of the values that it carries from one to the
/// next, and of its outputs.
pub(super) struct SettledFacts {
    pub(super) carried: Vec<Option<Fact>>,
    pub(super) outputs: Vec<Fact>,
}

/// Infers a body whose outputs from `skip` on are the next carried values.
///
/// # Errors
/// Fails when an operator inside refuses its inputs, or a carried value changes its type.
pub(super) fn settle(
    body: &OperatorBody,
    own: BodyInputFacts<'_>,
    skip: usize,
    inputs: OperatorInputs<'_, Fact>,
) -> Result<SettledFacts, OpError> {
    let unranked = |fact: &Option<Fact>| {
        fact.as_ref().map(|fact| Fact::unranked(fact.dtype).within(fact.kind))
    };
    let mut carried: Vec<Option<Fact>> =
        own.carried.iter().map(|fact| fact.as_ref().map(varying)).collect();
    if body.height() > TALL {
        carried = carried.iter().map(unranked).collect();
    }
    let mut tries = 0;
    loop {
        let all = [own.before, &carried, own.after].concat();
        let outputs = body.infer(&all, inputs)?;
        let next: Vec<Option<Fact>> = collected(
            &mut carried
                .iter()
                .zip(&outputs[skip.min(outputs.len())..])
                .map(|(now, next)| now.as_ref().map(|now| now.join(&varying(next))).transpose()),
        )?;
        if next == carried {
            return Ok(SettledFacts { carried, outputs });
        }
        tries += 1;
        carried = if tries < TRIES { next } else { next.iter().map(unranked).collect() };
    }
}

/// The outputs of all iterations, one list for each output.
pub(super) struct CollectedOutputs {
    lists: Vec<Vec<Tensor>>,
    elements: usize,
}

impl CollectedOutputs {
    pub(super) fn new(outputs: usize) -> Self {
        Self { lists: vec![Vec::new(); outputs], elements: 0 }
    }

    /// Adds one iteration's outputs.
    ///
    /// # Errors
    /// Fails when one is no tensor, or all together are too large.
    pub(super) fn add(&mut self, outputs: impl Iterator<Item = Datum>) -> Result<(), OpError> {
        for (list, datum) in self.lists.iter_mut().zip(outputs) {
            let tensor = datum.into_tensor()?;
            self.elements = self.elements.saturating_add(tensor.elements().max(1));
            bounds::bounded(DataType::Uint8, &[self.elements])?;
            list.push(tensor);
        }
        Ok(())
    }

    /// Turns the order of one output's tensors around.
    pub(super) fn reverse(&mut self, output: usize) {
        self.lists[output].reverse();
    }

    /// Each output's tensors along a new axis, the first of them. Where there was no iteration,
    /// `fact` tells type and shape of one.
    ///
    /// # Errors
    /// Fails when the tensors of one output differ in shape, or nothing tells the type.
    pub(super) fn stacked(
        self,
        fact: impl Fn(usize) -> Option<Fact>,
    ) -> Result<Vec<Tensor>, OpError> {
        let stack = |(at, list): (usize, Vec<Tensor>)| match list.as_slice() {
            [] => nothing(fact(at).as_ref()),
            all => stacked(all),
        };
        collected(&mut self.lists.into_iter().enumerate().map(stack))
    }
}

/// Tensors of one shape along a new first axis.
pub(super) fn stacked(all: &[Tensor]) -> Result<Tensor, OpError> {
    let row = |tensor: &Tensor| -> Result<Tensor, OpError> {
        let shape: Vec<usize> = std::iter::once(1).chain(tensor.shape().iter().copied()).collect();
        Ok(tensor.contiguous()?.reshape(&shape)?)
    };
    let rows = collected(&mut all.iter().map(row))?;
    join_tensors(&rows.iter().collect::<Vec<_>>(), 0)
}

/// No tensors of a type and shape along a new first axis; unknown lengths are 0.
fn nothing(fact: Option<&Fact>) -> Result<Tensor, OpError> {
    let Some(fact) = fact else {
        return Err(OpError::new(
            "there was no iteration, and nothing says what type it would give",
        ));
    };
    let lengths = fact.shape.iter().flatten().map(|dim| dim.known().unwrap_or(0));
    let shape: Vec<usize> = std::iter::once(0).chain(lengths).collect();
    Ok(Tensor::zeros(fact.dtype, &shape)?)
}

/// The fact of a value's tensors along a new axis at a position that may count from the end.
pub(super) fn stacked_fact(one: &Fact, length: Dim, axis: i64) -> Result<Fact, OpError> {
    if !one.is_tensor() {
        let text = format!("an output of all iterations is {}, expected a tensor", one.kind);
        return Err(OpError::new(text));
    }
    let Some(shape) = &one.shape else { return Ok(Fact::unranked(one.dtype)) };
    let axis = bounds::axis(axis, shape.len() + 1)?;
    let mut shape = shape.clone();
    shape.insert(axis, length);
    Ok(Fact::new(one.dtype, shape))
}
