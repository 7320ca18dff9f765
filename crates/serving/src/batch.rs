//! From the requests of a batch to the model's tensors, and back.

use std::sync::Arc;

use galatea_tensor::{
    ByteString, DataType, HostBuffer, SharedBytes, Tensor, TensorError, TensorErrorKind,
    decode_byte_strings,
};

use crate::config::inference::{BatchInput, BatchOutput, ModelInput, batch_input};
use crate::config::shape_text;
use crate::config::{ModelConfig, datatype};
use crate::error::ServingError;
pub use crate::payload::NamedTensors;
use crate::payload::{ActiveRequest, BatchPayload};
use crate::request::{InputData, InputTensor, OutputTensor};
use crate::sequence_tensors;
use crate::validate::LENGTH_BYTES;

/// Runs a batch through `run`, which takes the model's inputs and gives its outputs, and answers every request. An
/// error of `run` is the answer to all.
pub fn execute(
    payload: BatchPayload,
    run: impl FnOnce(NamedTensors) -> Result<NamedTensors, ServingError>,
) {
    let unanswered = execute_unless(payload, run, || false);
    debug_assert!(unanswered.is_none(), "nothing takes the batch back");
}

/// Works like [`execute`], unless `is_void` says after the run that its result means nothing. Then nobody is answered,
/// and the batch comes back.
pub(crate) fn execute_unless(
    mut payload: BatchPayload,
    run: impl FnOnce(NamedTensors) -> Result<NamedTensors, ServingError>,
    is_void: impl FnOnce() -> bool,
) -> Option<BatchPayload> {
    let config = Arc::clone(&payload.context().config);
    let gathered = gather(&config, payload.requests());
    payload.mark_inputs_ready();
    let outputs = gathered.and_then(run);
    payload.mark_model_done();
    if is_void() {
        return Some(payload);
    }
    let outputs = outputs.and_then(|outputs| {
        sequence_tensors::keep_states(payload.requests(), &outputs)?;
        Ok(outputs)
    });
    match outputs {
        Ok(outputs) => {
            let results = scatter(&config, payload.requests(), &outputs);
            payload.complete(results);
        }
        Err(error) => payload.fail(&error),
    }
    None
}

/// Runs each request of a batch by itself through `run`, which takes the number of its first row in the batch and its
/// inputs, and answers every request. Inputs that a batch would join without their shapes have them here.
pub fn execute_apart(
    mut payload: BatchPayload,
    mut run: impl FnMut(usize, NamedTensors) -> Result<NamedTensors, ServingError>,
) {
    let config = Arc::clone(&payload.context().config);
    let mut shaped = ModelConfig { batch_input: Vec::new(), ..(*config).clone() };
    shaped.input.iter_mut().for_each(|input| input.allow_ragged_batch = false);
    let alone = |request| gather(&shaped, std::slice::from_ref(request));
    let gathered: Vec<_> = payload.requests().iter().map(alone).collect();
    payload.mark_inputs_ready();
    let mut first = 0;
    let mut made = Vec::with_capacity(gathered.len());
    for (request, inputs) in payload.requests().iter().zip(gathered) {
        made.push(inputs.and_then(|inputs| run(first, inputs)));
        first += rows(request);
    }
    payload.mark_model_done();
    let answer = |(request, outputs): (&ActiveRequest, Result<NamedTensors, ServingError>)| {
        let alone = std::slice::from_ref(request);
        let outputs = outputs?;
        sequence_tensors::keep_states(alone, &outputs)?;
        let unanswered = || ServingError::internal("a request of the batch has no outputs");
        scatter(&config, alone, &outputs).pop().ok_or_else(unanswered)?
    };
    let results = payload.requests().iter().zip(made).map(answer).collect();
    payload.complete(results);
}

/// The model's inputs: those of all requests, joined along the first dimension, and those that the server makes.
///
/// # Errors
/// When there is no memory, or a request does not fit its neighbours.
pub fn gather(
    config: &ModelConfig,
    requests: &[ActiveRequest],
) -> Result<NamedTensors, ServingError> {
    let mut tensors = Vec::with_capacity(config.input.len() + config.batch_input.len());
    for input in &config.input {
        let mut parts: Vec<InputShare<'_>> =
            requests.iter().filter_map(|request| InputShare::of(config, request, input)).collect();
        if parts.is_empty() {
            continue;
        }
        if parts.len() != requests.len() {
            return Err(ServingError::internal(format!(
                "input '{}' is absent in a part of the batch",
                input.name
            )));
        }
        if input.is_shape_tensor {
            // It is the same in all requests of a batch.
            parts.truncate(1);
        }
        parts.iter().try_for_each(InputShare::check)?;
        let tensor = join(input, &parts)
            .map_err(|error| ServingError::internal(format!("input '{}': {error}", input.name)))?;
        tensors.push((input.name.clone(), tensor));
    }
    for made in &config.batch_input {
        let tensor = batch_tensor(config, made, requests)?;
        tensors.extend(made.target_name.iter().map(|name| (name.clone(), tensor.clone())));
    }
    tensors.extend(sequence_tensors::inputs(requests)?);
    Ok(tensors)
}

/// One request's share of an input.
pub(crate) struct InputShare<'a> {
    pub(crate) input: &'a InputTensor,
    /// Batch items; `None` for models that do not batch.
    pub(crate) rows: Option<usize>,
    /// Dimensions that the model sees, without the batch dimension.
    pub(crate) dims: Vec<usize>,
}

impl<'a> InputShare<'a> {
    pub(crate) fn of(
        config: &ModelConfig,
        request: &'a ActiveRequest,
        wanted: &ModelInput,
    ) -> Option<Self> {
        let input = request.request.inputs.iter().find(|input| input.name == wanted.name)?;
        let batching = config.max_batch_size > 0 && !wanted.is_shape_tensor;
        let given: Vec<usize> = input
            .shape
            .iter()
            .skip(usize::from(batching))
            .filter_map(|&dim| usize::try_from(dim).ok())
            .collect();
        let dims = match &wanted.reshape {
            Some(reshape) => substitute(&wanted.dims, &given, &reshape.shape),
            None => given,
        };
        let rows = batching.then(|| usize::try_from(request.batch_size).unwrap_or(usize::MAX));
        Some(Self { input, rows, dims })
    }

    fn elements(&self) -> usize {
        self.dims.iter().fold(self.rows.unwrap_or(1), |product, &dim| product.saturating_mul(dim))
    }

    /// Compares the bytes with rows and dimensions, so that no request is given what lies beside its own bytes.
    ///
    /// # Errors
    /// When there are more or fewer than the shape has, which a checked request has not.
    pub(crate) fn check(&self) -> Result<(), ServingError> {
        let expected = self.elements();
        let size = self.input.datatype.size_bytes();
        let (given, expected) = match (&self.input.data, size) {
            (InputData::Tensor(tensor), _) => (tensor.elements(), expected),
            (InputData::Raw(raw), Some(size)) => (raw.len(), expected.saturating_mul(size)),
            // Strings are counted when they are decoded; each has its length before it.
            (InputData::Raw(raw), None) if raw.len() / LENGTH_BYTES < expected => {
                (raw.len(), expected.saturating_mul(LENGTH_BYTES))
            }
            (InputData::Raw(_), None) => return Ok(()),
        };
        if given == expected {
            return Ok(());
        }
        Err(ServingError::internal(format!(
            "input '{}' of shape {} has {given} elements or bytes for {:?} rows of {:?}, expected {expected}",
            self.input.name,
            shape_text(&self.input.shape),
            self.rows,
            self.dims
        )))
    }

    fn strings(&self) -> Result<Vec<ByteString>, TensorError> {
        let strings = self.decoded()?;
        let expected = self.elements();
        // A string too few here would be made up for by a neighbour's.
        if strings.len() != expected {
            let shape = self.dims.clone();
            let found = strings.len();
            return Err(
                TensorErrorKind::WrongSize { shape, expected, found, unit: "elements" }.into()
            );
        }
        Ok(strings)
    }

    fn decoded(&self) -> Result<Vec<ByteString>, TensorError> {
        match &self.input.data {
            InputData::Raw(raw) => decode_byte_strings(raw),
            InputData::Tensor(tensor) => tensor.to_vec::<ByteString>(),
        }
    }

    /// The share as a tensor of this shape, on the request's own bytes where their alignment permits.
    fn tensor(&self, shape: &[usize]) -> Result<Tensor, TensorError> {
        match &self.input.data {
            InputData::Tensor(tensor) => tensor.reshape(shape),
            InputData::Raw(_) if self.input.datatype == DataType::Bytes => {
                Tensor::from_vec(shape, self.strings()?)
            }
            InputData::Raw(raw) => Tensor::from_allocation(
                self.input.datatype,
                shape,
                SharedBytes::new(raw.clone()),
                0,
            ),
        }
    }
}

fn join(input: &ModelInput, parts: &[InputShare<'_>]) -> Result<Tensor, TensorError> {
    let mut shape = Vec::new();
    if input.allow_ragged_batch {
        shape.push(parts.iter().map(InputShare::elements).sum());
    } else {
        let rows: Option<usize> = parts.iter().map(|part| part.rows).sum();
        shape.extend(rows);
        shape.extend(parts.first().iter().flat_map(|part| &part.dims));
    }
    if let [only] = parts {
        return only.tensor(&shape);
    }
    let datatype = parts.first().map_or(DataType::Bytes, |part| part.input.datatype);
    let Some(element) = datatype.size_bytes() else {
        let strings: Result<Vec<_>, _> = parts.iter().map(InputShare::strings).collect();
        return Tensor::from_vec(&shape, strings?.concat());
    };
    let total = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.elements()));
    let mut buffer = HostBuffer::try_zeroed(total.saturating_mul(element))?;
    let mut rest = buffer.as_bytes_mut();
    for part in parts {
        let (slot, after) = rest.split_at_mut((part.elements() * element).min(rest.len()));
        match &part.input.data {
            InputData::Raw(raw) => copy_into(slot, raw),
            InputData::Tensor(tensor) => copy_into(slot, tensor.contiguous()?.as_bytes()?),
        }
        rest = after;
    }
    Tensor::from_allocation(datatype, &shape, Arc::new(buffer), 0)
}

/// Copies what both have; the checker has seen to it that this is all.
fn copy_into(slot: &mut [u8], bytes: &[u8]) {
    let both = slot.len().min(bytes.len());
    if let (Some(to), Some(from)) = (slot.get_mut(..both), bytes.get(..both)) {
        to.copy_from_slice(from);
    }
}

/// The shape `to`, whose -1 stand for the sizes that `given` has where `from` has -1, in order. One -1 more takes
/// what is left of the elements.
pub(crate) fn substitute(from: &[i64], given: &[usize], to: &[i64]) -> Vec<usize> {
    let mut sizes = from.iter().zip(given).filter(|(dim, _)| **dim == -1).map(|(_, &size)| size);
    let mut rest = None;
    let mut out: Vec<usize> = Vec::with_capacity(to.len());
    for (at, &dim) in to.iter().enumerate() {
        out.push(usize::try_from(dim).ok().or_else(|| sizes.next()).unwrap_or_else(|| {
            rest = Some(at);
            1
        }));
    }
    if let Some(slot) = rest.and_then(|at| out.get_mut(at)) {
        *slot = 1;
        let all: usize = given.iter().product();
        let others: usize = to.iter().filter_map(|&dim| usize::try_from(dim).ok()).product();
        *slot = all.checked_div(others).unwrap_or(0);
    }
    out
}

/// Makes the tensor of a `batch_input` entry.
fn batch_tensor(
    config: &ModelConfig,
    made: &BatchInput,
    requests: &[ActiveRequest],
) -> Result<Tensor, ServingError> {
    let source = made.source_input.first().map_or("", String::as_str);
    let wanted = config.input.iter().find(|input| input.name == source);
    let parts: Vec<InputShare<'_>> =
        requests.iter().filter_map(|request| InputShare::of(config, request, wanted?)).collect();
    let counts: Vec<usize> = parts.iter().map(InputShare::elements).collect();
    let sums = counts.iter().scan(0_usize, |sum, &count| {
        *sum = sum.saturating_add(count);
        Some(*sum)
    });
    // One row for each batch item.
    let rows = parts.iter().flat_map(|part| vec![part.dims.as_slice(); part.rows.unwrap_or(1)]);
    let kind = batch_input::Kind::try_from(made.kind).unwrap_or_default();
    let (values, shape): (Vec<usize>, Option<Vec<usize>>) = match kind {
        batch_input::Kind::BatchElementCount => (counts, None),
        batch_input::Kind::BatchAccumulatedElementCount => (sums.collect(), None),
        batch_input::Kind::BatchAccumulatedElementCountWithZero => {
            (std::iter::once(0).chain(sums).collect(), None)
        }
        batch_input::Kind::BatchMaxElementCountAsShape => {
            let most = counts.into_iter().max().unwrap_or(0);
            (vec![0; most], None)
        }
        batch_input::Kind::BatchItemShapeFlatten => (rows.flatten().copied().collect(), None),
        batch_input::Kind::BatchItemShape => {
            let rank = parts.first().map_or(0, |part| part.dims.len());
            let values: Vec<usize> = rows.flatten().copied().collect();
            let count = values.len().checked_div(rank).unwrap_or(0);
            (values, Some(vec![count, rank]))
        }
    };
    let shape = shape.unwrap_or_else(|| vec![values.len()]);
    Ok(integers(datatype(made.data_type), &shape, &values)?)
}

fn integers(
    datatype: Option<DataType>,
    shape: &[usize],
    values: &[usize],
) -> Result<Tensor, TensorError> {
    let whole: Vec<i32> =
        values.iter().map(|&value| i32::try_from(value).unwrap_or(i32::MAX)).collect();
    if datatype == Some(DataType::Fp32) {
        // FP32 is what the configuration asks for, and exact up to 2^24 elements.
        #[allow(clippy::cast_precision_loss, reason = "the configuration asks for counts as FP32")]
        let real: Vec<f32> = whole.iter().map(|&value| value as f32).collect();
        return Tensor::from_vec(shape, real);
    }
    Tensor::from_vec(shape, whole)
}

/// Every request's share of the model's outputs, in the order of the configuration and as far as it asked for them.
pub fn scatter(
    config: &ModelConfig,
    requests: &[ActiveRequest],
    outputs: &NamedTensors,
) -> Vec<Result<Vec<OutputTensor>, ServingError>> {
    let items: usize = requests.iter().map(rows).sum();
    let mut from = 0;
    let mut from_flat = vec![0_usize; config.output.len()];
    let mut results = Vec::with_capacity(requests.len());
    for request in requests {
        let share = OutputShare { config, request, outputs, from, items };
        results.push(share.outputs(&mut from_flat));
        from += rows(request);
    }
    results
}

fn rows(request: &ActiveRequest) -> usize {
    usize::try_from(request.batch_size).unwrap_or(usize::MAX)
}

/// Share of one request in a batch's outputs.
struct OutputShare<'a> {
    config: &'a ModelConfig,
    request: &'a ActiveRequest,
    outputs: &'a NamedTensors,
    from: usize,
    items: usize,
}

impl OutputShare<'_> {
    /// `from_flat` holds, for each output, how many elements of a flat one earlier requests have taken.
    fn outputs(&self, from_flat: &mut [usize]) -> Result<Vec<OutputTensor>, ServingError> {
        let asked = &self.request.request.requested_outputs;
        let mut shares = Vec::new();
        for (output, from_flat) in self.config.output.iter().zip(from_flat) {
            let Some((_, tensor)) = self.outputs.iter().find(|(name, _)| *name == output.name)
            else {
                continue;
            };
            let flat = self
                .config
                .batch_output
                .iter()
                .find(|made| made.target_name.contains(&output.name));
            let share = match flat {
                Some(made) => self.flat(made, tensor, from_flat)?,
                None => self.rows_of(&output.name, tensor)?,
            };
            if !asked.is_empty() && !asked.contains(&output.name) {
                continue;
            }
            let share = match &output.reshape {
                Some(reshape) => reshaped(self.config, &share, &reshape.shape, &output.dims)?,
                None => share,
            };
            shares.push(OutputTensor { name: output.name.clone(), tensor: share });
        }
        Ok(shares)
    }

    fn rows_of(&self, name: &str, tensor: &Tensor) -> Result<Tensor, ServingError> {
        if self.config.max_batch_size <= 0 {
            return Ok(tensor.clone());
        }
        if tensor.shape().first() != Some(&self.items) {
            return Err(ServingError::internal(format!(
                "output '{name}' of model '{}' has the shape {:?}, but the batch has {} items",
                self.config.name,
                tensor.shape(),
                self.items
            )));
        }
        Ok(tensor.slice_axis(0, self.from, rows(self.request), 1)?.contiguous()?)
    }

    /// Splits a flat output by the sizes of an input.
    fn flat(
        &self,
        made: &BatchOutput,
        tensor: &Tensor,
        from: &mut usize,
    ) -> Result<Tensor, ServingError> {
        let source = made.source_input.first().map_or("", String::as_str);
        let wanted = self.config.input.iter().find(|input| input.name == source);
        let part = wanted.and_then(|wanted| InputShare::of(self.config, self.request, wanted));
        let Some(part) = part else {
            return Err(ServingError::internal(format!(
                "the batch has no input '{source}' to split its outputs by"
            )));
        };
        let flat = tensor.reshape(&[tensor.elements()])?;
        let share = flat.slice_axis(0, *from, part.elements(), 1)?;
        *from += part.elements();
        let shape: Vec<usize> = part.rows.into_iter().chain(part.dims.iter().copied()).collect();
        Ok(share.reshape(&shape)?)
    }
}

/// A tensor with the shape that the client sees, where the model gives it another one.
///
/// # Errors
/// When the model's shape has not as many elements.
pub(crate) fn reshaped(
    config: &ModelConfig,
    share: &Tensor,
    from: &[i64],
    to: &[i64],
) -> Result<Tensor, ServingError> {
    let batch = usize::from(config.max_batch_size > 0);
    let given = share.shape().get(batch..).unwrap_or_default();
    let dims = substitute(from, given, to);
    let shape: Vec<usize> = share.shape().iter().take(batch).copied().chain(dims).collect();
    share.reshape(&shape).map_err(|error| {
        ServingError::internal(format!(
            "an output cannot be given the shape {}: {error}",
            shape_text(to)
        ))
    })
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
