//! Requests that models make to other models.
//!
//! `INFER` of a worker and `RESPONSE` to it: number of the call (8), length of the head (4), the head as JSON, then from a
//! multiple of 16 bytes on the small tensors. Spaces behind the head make that so. A tensor is `[name, data type, sizes, in
//! the block, place, bytes]`; large ones lie in one block of the side that writes.

use std::sync::Arc;

use bytes::Bytes;
use galatea_tensor::{Allocation, DataType, SharedBlock, Tensor, encode_byte_strings};
use serde_json::{Value, json};

use super::blocks::{BlockLease, ServerBlocks, WorkerBlocks};
use super::bls_callee::BlsCallee;
use super::bls_socket::{BlsOrigin, BlsSocket};
use super::response;
use super::wire::{self, MalformedMessage, OpenedBlock};
use super::worker_process::{WorkerLoss, WorkerProcess};
use crate::backend::ModelHost;
use crate::error::ServingError;
use crate::payload::ActiveRequest;
use crate::request::{
    CorrelationId, InferenceRequest, InputData, InputTensor, OutputTensor, ResponseSink, SinkAnswer,
};

pub(super) const INFER: u8 = 2;
pub(super) const RESPONSE: u8 = 2;

/// Where tensors in a message begin.
const ALIGNMENT: usize = 16;
/// Where tensors in a block begin.
const BLOCK_ALIGNMENT: usize = 64;
/// Bytes before the head: kind, number, length of the head.
const BEFORE_HEAD: usize = 13;

/// Request of a model to another one.
struct BlsRequest {
    request: InferenceRequest,
    /// Whether it takes any number of responses.
    decoupled: bool,
}

/// Takes a request of a model. Its answers go to the worker as they come.
///
/// # Errors
/// When the message is none.
pub(super) fn infer(
    callee: &BlsCallee,
    process: &Arc<WorkerProcess>,
    theirs: &mut WorkerBlocks,
    number: u64,
    body: &[u8],
) -> Result<(), WorkerLoss> {
    let mut fields = wire::FieldReader::new(body);
    let len = fields.len()?;
    let head: Value = serde_json::from_slice(fields.raw(len)?)
        .map_err(|error| MalformedMessage(format!("the head of a request is no JSON: {error}")))?;
    theirs.sweep();
    let updated = theirs.update(&numbers(&head, "gone"), &opened(&head)?);
    updated.map_err(|error| WorkerLoss::Ended(error.to_string()))?;
    let calls = process.calls();
    calls.opened(head.get("seen").and_then(Value::as_u64).unwrap_or(0));
    let asked = asked(callee, calls, &head, fields.rest(), theirs);
    let model = text(&head, "model");
    let taken = asked.and_then(|asked| submit(callee, process, number, asked));
    if let Err(error) = taken {
        calls.forget(number);
        // As Triton has it: whatever the reason, such a request has failed inside.
        let text = format!("Model {model} - Error when running inference: {}", error.message);
        respond(
            calls,
            number,
            SinkAnswer { result: Err(ServingError::internal(text)), is_final: true },
        );
    }
    Ok(())
}

fn submit(
    callee: &BlsCallee,
    process: &Arc<WorkerProcess>,
    number: u64,
    asked: BlsRequest,
) -> Result<(), ServingError> {
    let BlsRequest { request, decoupled } = asked;
    let host: Arc<dyn ModelHost> = callee.host()?;
    let name = &request.model_name;
    let Some(model) = host.model(name, &request.model_version)? else {
        return Err(ServingError::unavailable(format!(
            "Failed for execute the inference request. Model '{name}' is not ready."
        )));
    };
    if !decoupled && model.is_decoupled() {
        return Err(ServingError::unsupported(format!(
            "Model {name} is using the decoupled. The current BLS request call doesn't support models using the \
             decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls \
             for decoupled models.'"
        )));
    }
    process.calls().open(number, &request.cancel);
    let process = Arc::clone(process);
    let sink: ResponseSink = Box::new(move |answer: SinkAnswer| {
        let calls = process.calls();
        if answer.is_final {
            calls.forget(number);
        }
        respond(calls, number, answer);
    });
    model.infer(request, sink)
}

fn text<'a>(head: &'a Value, name: &str) -> &'a str {
    head.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(head: &Value, name: &str) -> u64 {
    head.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn list<'a>(head: &'a Value, name: &str) -> &'a [Value] {
    head.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn numbers(head: &Value, name: &str) -> Vec<u32> {
    let numbers = list(head, name).iter().filter_map(Value::as_u64);
    numbers.filter_map(|number| u32::try_from(number).ok()).collect()
}

fn size(value: Option<&Value>) -> Option<usize> {
    usize::try_from(value?.as_u64()?).ok()
}

/// The blocks that are new.
fn opened(head: &Value) -> Result<Vec<OpenedBlock>, MalformedMessage> {
    let one = |value: &Value| {
        let number = u32::try_from(value.get(0)?.as_u64()?).ok()?;
        let name = value.get(2)?.as_str()?.to_owned();
        Some(OpenedBlock { number, size: size(value.get(1))?, name })
    };
    let all: Option<Vec<OpenedBlock>> = list(head, "new").iter().map(one).collect();
    all.ok_or_else(|| {
        MalformedMessage("a block that is new has no number, size and name".to_owned())
    })
}

/// The request that a message describes.
fn asked(
    callee: &BlsCallee,
    calls: &BlsSocket,
    head: &Value,
    small: &[u8],
    theirs: &mut WorkerBlocks,
) -> Result<BlsRequest, ServingError> {
    let block = u32::try_from(number(head, "block")).ok();
    let block = match head.get("block").is_some_and(Value::is_u64) {
        true => block.and_then(|block| {
            theirs.note(block);
            theirs.get(block).cloned()
        }),
        false => None,
    };
    let tensors = list(head, "tensors").iter();
    let inputs = tensors.map(|tensor| {
        input(tensor, small, block.as_ref()).ok_or_else(|| {
            ServingError::internal(format!(
                "{tensor} found as the place of an input, which it is not"
            ))
        })
    });
    let inputs = inputs.collect::<Result<_, _>>()?;
    let correlation = match head.get("correlation") {
        Some(Value::String(name)) => CorrelationId::String(name.clone()),
        Some(Value::Number(number)) => CorrelationId::Uint(number.as_u64().unwrap_or(0)),
        _ => CorrelationId::None,
    };
    let correlation = match correlation.names_sequence() {
        true => correlation,
        false => CorrelationId::None,
    };
    let flags = number(head, "flags");
    let outputs = list(head, "outputs").iter().filter_map(Value::as_str);
    let trace = head.get("trace").and_then(Value::as_u64);
    let request = InferenceRequest {
        model_name: text(head, "model").to_owned(),
        model_version: text(head, "version").to_owned(),
        id: text(head, "id").to_owned(),
        inputs,
        requested_outputs: outputs.map(str::to_owned).collect(),
        parameters: response::parameters(head.get("parameters").and_then(Value::as_object)),
        priority: number(head, "priority"),
        timeout_us: number(head, "timeout"),
        correlation,
        sequence_start: flags & 1 != 0,
        sequence_end: flags & 2 != 0,
        callers: calls.callers().then(callee.model())?,
        token_meter: calls.token_meter(trace),
        trace: trace.and_then(|number| calls.trace(number)).map(|trace| trace.child()),
        ..InferenceRequest::default()
    };
    let decoupled = head.get("decoupled").and_then(Value::as_bool).unwrap_or(false);
    Ok(BlsRequest { request, decoupled })
}

/// A window on a block.
struct BlockWindow(Tensor);

impl AsRef<[u8]> for BlockWindow {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes().unwrap_or_default()
    }
}

fn input(tensor: &Value, small: &[u8], block: Option<&Arc<SharedBlock>>) -> Option<InputTensor> {
    let name = tensor.get(0)?.as_str()?.to_owned();
    let datatype = size(tensor.get(1)).and_then(|number| DataType::ALL.get(number).copied())?;
    let sizes = tensor.get(2)?.as_array()?.iter();
    let shape: Vec<i64> = sizes.map(Value::as_i64).collect::<Option<_>>()?;
    let place = size(tensor.get(4))?;
    let len = size(tensor.get(5))?;
    let raw = if tensor.get(3)?.as_bool()? {
        let memory: Arc<dyn Allocation> = Arc::<SharedBlock>::clone(block?);
        let window = Tensor::from_allocation(DataType::Uint8, &[len], memory, place).ok()?;
        Bytes::from_owner(BlockWindow(window))
    } else {
        Bytes::copy_from_slice(small.get(place..place.checked_add(len)?)?)
    };
    Some(InputTensor { name, datatype, shape, data: InputData::Raw(raw) })
}

/// An output on its way to a worker.
struct BlsOutput {
    name: String,
    datatype: u8,
    sizes: Vec<usize>,
    elements: BlsElements,
    large: bool,
    place: usize,
}

enum BlsElements {
    Encoded(Vec<u8>),
    Tensor(Tensor),
}

impl BlsOutput {
    fn new(output: &OutputTensor) -> Result<Self, ServingError> {
        let tensor = &output.tensor;
        let elements = match tensor.dtype() {
            DataType::Bytes => BlsElements::Encoded(encode_byte_strings(&tensor.to_vec()?)?),
            _ => {
                let whole = tensor.contiguous()?;
                // Later readers find the bytes here, or this is the error.
                whole.unaligned_bytes()?;
                BlsElements::Tensor(whole)
            }
        };
        let datatype = wire::type_number(tensor.dtype()).ok_or_else(|| {
            let name = &output.name;
            let known = tensor.dtype().wire_name();
            ServingError::unsupported(format!(
                "output '{name}' has the type {known}, which has no number"
            ))
        })?;
        let name = output.name.clone();
        let sizes = tensor.shape().to_vec();
        Ok(Self { name, datatype, sizes, elements, large: false, place: 0 })
    }

    fn bytes(&self) -> &[u8] {
        match &self.elements {
            BlsElements::Encoded(bytes) => bytes,
            BlsElements::Tensor(tensor) => tensor.unaligned_bytes().unwrap_or_default(),
        }
    }
}

/// Gives outputs their places; the bytes of those in the message and of those in the block.
fn place(outputs: &mut [BlsOutput]) -> (usize, usize) {
    let mut small = 0_usize;
    let mut large = 0_usize;
    for output in outputs {
        let len = output.bytes().len();
        output.large = len > wire::SMALL_BYTES || small.saturating_add(len) > wire::MAX_SMALL_BYTES;
        let (end, unit) = match output.large {
            true => (&mut large, BLOCK_ALIGNMENT),
            false => (&mut small, ALIGNMENT),
        };
        output.place = *end;
        *end = end.saturating_add(len).next_multiple_of(unit);
    }
    (small, large)
}

/// Sends an answer to a worker.
fn respond(calls: &BlsSocket, number: u64, answer: SinkAnswer) {
    let is_final = answer.is_final;
    let mut head = json!({ "final": is_final });
    let mut outputs = Vec::new();
    let failure = match answer.result {
        Ok(None) => None,
        Ok(Some(response)) => {
            if !response.parameters.is_empty() {
                head["parameters"] = super::request::parameters(&response.parameters).into();
            }
            let made: Result<Vec<BlsOutput>, ServingError> =
                response.outputs.iter().map(BlsOutput::new).collect();
            made.map(|made| outputs = made).err()
        }
        Err(error) => Some(error),
    };
    let (small, large) = place(&mut outputs);
    let make = |given: Option<&mut ServerBlocks>| {
        let (lease, failure) = match (failure, given) {
            (None, Some(given)) if large > 0 => match fill(given, large, &outputs) {
                Ok(lease) => (Some(lease), None),
                Err(error) => (None, Some(error)),
            },
            (failure, _) => (None, failure),
        };
        if let Some(error) = failure {
            head["code"] = wire::code_number(error.code).into();
            head["error"] = error.message.into();
            outputs.clear();
        }
        if let Some(lease) = lease {
            head["block"] = lease.number.into();
            head["gone"] = lease.closed.into();
            head["new"] = lease
                .new
                .map(|(size, name)| (lease.number, size, name))
                .into_iter()
                .map(|(number, size, name)| json!([number, size, name]))
                .collect();
        }
        let tensors = outputs.iter().map(|output| {
            let BlsOutput { name, datatype, sizes, large, place, .. } = output;
            json!([name, datatype, sizes, large, place, output.bytes().len()])
        });
        head["tensors"] = tensors.collect();
        message(number, &head, small, &outputs)
    };
    match large {
        0 => calls.send(make(None)),
        _ => calls.send_with(make),
    }
}

fn fill(
    given: &mut ServerBlocks,
    size: usize,
    outputs: &[BlsOutput],
) -> Result<BlockLease, ServingError> {
    let fill = |block: &mut [u8]| {
        for output in outputs.iter().filter(|output| output.large) {
            let bytes = output.bytes();
            let end = output.place.saturating_add(bytes.len());
            if let Some(room) = block.get_mut(output.place..end) {
                room.copy_from_slice(bytes);
            }
        }
    };
    given.lease(size, fill).map_err(|error| {
        ServingError::unavailable(format!("no shared memory for {size} bytes of outputs: {error}"))
    })
}

fn message(number: u64, head: &Value, small: usize, outputs: &[BlsOutput]) -> Vec<u8> {
    let mut head = head.to_string();
    while !(BEFORE_HEAD + head.len()).is_multiple_of(ALIGNMENT) {
        head.push(' ');
    }
    let mut message = wire::begin(RESPONSE);
    message.bytes.reserve(BEFORE_HEAD + head.len() + small);
    message.u64(number);
    message.u32(u32::try_from(head.len()).unwrap_or(u32::MAX));
    message.raw(head.as_bytes());
    for output in outputs.iter().filter(|output| !output.large) {
        message.pad(ALIGNMENT);
        message.raw(output.bytes());
    }
    wire::end(message)
}

/// Facts about a request for the calls of its worker: whose it is and what its trace is.
#[derive(Debug)]
pub(super) struct BlsRequestState {
    process: Arc<WorkerProcess>,
    number: u64,
}

impl BlsRequestState {
    /// Keeps it in mind until this is dropped; nothing for a client's request without a trace whose tokens are not
    /// limited.
    pub(super) fn new(
        process: &Arc<WorkerProcess>,
        number: u64,
        request: &ActiveRequest,
    ) -> Option<Self> {
        let request = &request.request;
        let token_meter = request.token_meter.clone();
        if request.callers.is_none() && request.trace.is_none() && token_meter.is_none() {
            return None;
        }
        let (callers, trace) = (request.callers.clone(), request.trace.clone());
        process.calls().hold(number, BlsOrigin { callers, trace, token_meter });
        Some(Self { process: Arc::clone(process), number })
    }
}

impl Drop for BlsRequestState {
    fn drop(&mut self) {
        self.process.calls().release(self.number);
    }
}
