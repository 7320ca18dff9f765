//! Making the tensors of a batch that the server adds, and keeping those that it must remember.

use galatea_tensor::{ByteString, DataType, Tensor, TensorError};

use crate::error::ServingError;
use crate::payload::{ActiveRequest, NamedTensors};
use crate::request::CorrelationId;
use crate::sequence::{ControlFlag, ControlMeaning, SequenceContext, SequencePlan};

/// Control and state tensors of a batch, one row for each request; nothing for models that are not over sequences.
///
/// # Errors
/// When the states of the batch's sequences have different shapes, or there is no memory.
pub(crate) fn inputs(requests: &[ActiveRequest]) -> Result<NamedTensors, ServingError> {
    let rows: Vec<&SequenceContext> =
        requests.iter().filter_map(|request| request.sequence.as_deref()).collect();
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let plan = &first.plan;
    let mut named = Vec::with_capacity(plan.controls.len() + plan.states.len());
    for (name, meaning) in &plan.controls {
        let tensor = control(plan, *meaning, &rows)
            .map_err(|error| ServingError::internal(format!("control '{name}': {error}")))?;
        named.push((name.clone(), tensor));
    }
    for (at, state) in plan.states.iter().enumerate() {
        let tensor = joined_states(&rows, at)
            .map_err(|error| ServingError::internal(format!("state '{}': {error}", state.input)))?;
        named.push((state.input.clone(), tensor));
    }
    Ok(named)
}

fn control(
    plan: &SequencePlan,
    meaning: ControlMeaning,
    rows: &[&SequenceContext],
) -> Result<Tensor, TensorError> {
    let shape: &[usize] = if plan.batching { &[rows.len(), 1] } else { &[1] };
    let flags = |of: fn(&SequenceContext) -> bool| rows.iter().map(move |row| of(row));
    match meaning {
        ControlMeaning::Start(flag) => flag_tensor(shape, flag, flags(|row| row.step.start)),
        ControlMeaning::End(flag) => flag_tensor(shape, flag, flags(|row| row.step.end)),
        ControlMeaning::Ready(flag) => flag_tensor(shape, flag, flags(|row| row.step.ready)),
        ControlMeaning::Correlation(kind) => {
            let ids: Vec<&CorrelationId> = rows.iter().map(|row| &row.step.correlation).collect();
            correlation_tensor(shape, kind, &ids)
        }
    }
}

fn flag_tensor(
    shape: &[usize],
    flag: ControlFlag,
    values: impl Iterator<Item = bool>,
) -> Result<Tensor, TensorError> {
    match flag {
        ControlFlag::Int32(no, yes) => {
            let all: Vec<i32> = values.map(|value| if value { yes } else { no }).collect();
            Tensor::from_vec(shape, all)
        }
        ControlFlag::Fp32(no, yes) => {
            let all: Vec<f32> = values.map(|value| if value { yes } else { no }).collect();
            Tensor::from_vec(shape, all)
        }
        ControlFlag::Bool(no, yes) => {
            let all: Vec<bool> = values.map(|value| if value { yes } else { no }).collect();
            Tensor::from_vec(shape, all)
        }
    }
}

fn correlation_tensor(
    shape: &[usize],
    kind: DataType,
    ids: &[&CorrelationId],
) -> Result<Tensor, TensorError> {
    if kind == DataType::Bytes {
        let names = ids.iter().map(|id| match id {
            CorrelationId::None => ByteString::default(),
            id => ByteString::from(id.to_string()),
        });
        return Tensor::from_vec(shape, names.collect::<Vec<_>>());
    }
    // Of a number, a narrow type takes the low bits.
    let width = kind.size_bytes().unwrap_or(0);
    let mut bytes = Vec::with_capacity(ids.len() * width);
    for id in ids {
        match id {
            CorrelationId::None => bytes.resize(bytes.len() + width, 0),
            CorrelationId::Uint(number) => {
                bytes.extend(number.to_le_bytes().into_iter().take(width));
            }
            CorrelationId::String(name) => bytes.extend(number_of(name).take(width)),
        }
    }
    Tensor::from_bytes(kind, shape, &bytes)
}

/// Number of a sequence that a client names by text, for models that know numbers: as in recorded Triton, the first
/// bytes of the name as it would be on the wire, behind its length.
fn number_of(name: &str) -> impl Iterator<Item = u8> {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    length.to_le_bytes().into_iter().chain(name.bytes()).chain(std::iter::repeat(0))
}

fn joined_states(rows: &[&SequenceContext], at: usize) -> Result<Tensor, ServingError> {
    let of = |row: &SequenceContext| row.state.as_ref().and_then(|s| s.tensors().get(at).cloned());
    let known: Vec<Option<Tensor>> = rows.iter().map(|row| of(row)).collect();
    let Some(first) = known.iter().flatten().next().cloned() else {
        return Err(ServingError::internal("no sequence of the batch has it"));
    };
    if let Some(other) = known.iter().flatten().find(|state| state.shape() != first.shape()) {
        return Err(ServingError::internal(format!(
            "sequences of one batch have states of the shapes {:?} and {:?}",
            first.shape(),
            other.shape()
        )));
    }
    if let [Some(only)] = known.as_slice() {
        return Ok(only.clone());
    }
    let mut shape = first.shape().to_vec();
    if let Some(batch) = shape.first_mut() {
        *batch = rows.len();
    }
    let elements = first.elements();
    if first.dtype() == DataType::Bytes {
        let mut all = Vec::with_capacity(elements * rows.len());
        for state in known {
            match state {
                Some(state) => all.extend(state.to_vec::<ByteString>()?),
                None => all.extend(vec![ByteString::default(); elements]),
            }
        }
        return Ok(Tensor::from_vec(&shape, all)?);
    }
    let mut bytes = Vec::new();
    for state in known {
        match state {
            Some(state) => bytes.extend_from_slice(state.contiguous()?.as_bytes()?),
            None => {
                bytes.resize(bytes.len() + elements * first.dtype().size_bytes().unwrap_or(0), 0)
            }
        }
    }
    Ok(Tensor::from_bytes(first.dtype(), &shape, &bytes)?)
}

/// Keeps the states that the model gave for the requests of a batch; items that only fill a gap have none. A state
/// that the model did not give stays as it was.
///
/// # Errors
/// When an output does not have a row for each request.
pub(crate) fn keep_states(
    requests: &[ActiveRequest],
    outputs: &NamedTensors,
) -> Result<(), ServingError> {
    let contexts = || requests.iter().map(|request| request.sequence.as_deref());
    let Some(plan) = contexts().flatten().next().map(|first| &first.plan) else { return Ok(()) };
    for (at, state) in plan.states.iter().enumerate() {
        let Some((_, tensor)) = outputs.iter().find(|(name, _)| *name == state.output) else {
            continue;
        };
        if plan.batching && tensor.shape().first() != Some(&requests.len()) {
            return Err(ServingError::internal(format!(
                "state '{}' has the shape {:?}, but the batch has {} items",
                state.output,
                tensor.shape(),
                requests.len()
            )));
        }
        for (row, context) in contexts().enumerate() {
            let Some(kept) = context.and_then(|context| context.state.as_ref()) else { continue };
            let own = match plan.batching {
                true => tensor.slice_axis(0, row, 1, 1)?.contiguous()?,
                false => tensor.clone(),
            };
            if let Some(slot) = kept.tensors().get_mut(at) {
                *slot = own;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "sequence_tensors_tests.rs"]
mod tests;
