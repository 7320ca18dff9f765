//! From a batch of requests to the message and the shared memory that a worker reads.

use std::borrow::Cow;
use std::sync::Arc;

use galatea_tensor::{DataType, SharedBlock, Tensor, encode_byte_strings};

use super::blocks::{BlockLease, ServerBlocks};
use super::wire::{self, FieldWriter};
use crate::batch::InputShare;
use crate::config::ModelConfig;
use crate::error::ServingError;
use crate::payload::ActiveRequest;
use crate::request::{CorrelationId, InputData, ParameterValue};
use crate::sequence_tensors;

/// Where inputs in a block begin.
const ALIGNMENT: usize = 64;
/// Where inputs in a message begin.
const SMALL_ALIGNMENT: usize = 16;

/// About what the fields of a message, of a request and of an input take.
const FIELDS_BYTES: usize = 96;

/// A request on its way to a worker.
#[derive(Debug)]
pub(super) struct SentRequest<'a> {
    /// Number that both sides know it by.
    pub(super) number: u64,
    /// Where the worker is told that its client has gone.
    pub(super) slot: u32,
    pub(super) request: &'a ActiveRequest,
}

struct SentInput<'a> {
    name: Cow<'a, str>,
    datatype: u8,
    dims: Vec<usize>,
    elements: SentElements<'a>,
    /// Where in the block it lies, if it does.
    place: Option<usize>,
}

enum SentElements<'a> {
    Raw(&'a [u8]),
    Encoded(Vec<u8>),
    Tensor(Tensor),
}

impl SentElements<'_> {
    fn bytes(&self) -> Result<&[u8], ServingError> {
        match self {
            Self::Raw(raw) => Ok(raw),
            Self::Encoded(bytes) => Ok(bytes),
            Self::Tensor(tensor) => Ok(tensor.unaligned_bytes()?),
        }
    }

    fn of_tensor(tensor: &Tensor) -> Result<Self, ServingError> {
        match tensor.dtype() {
            DataType::Bytes => Ok(Self::Encoded(encode_byte_strings(&tensor.to_vec()?)?)),
            _ => Ok(Self::Tensor(tensor.contiguous()?)),
        }
    }
}

/// The message that has these requests executed.
#[derive(Debug)]
pub(super) struct EncodedExecute {
    pub(super) message: Vec<u8>,
    /// The block of the large inputs, in which outputs may lie as well: nobody may write to it before these are read,
    /// even if the worker has given it back.
    pub(super) block: Option<Arc<SharedBlock>>,
}

/// Writes the message that has these requests executed, and their large inputs into a block.
///
/// # Errors
/// When there is no shared memory, or a tensor has too many dimensions.
pub(super) fn encode(
    given: &mut ServerBlocks,
    execution: u64,
    requests: &[SentRequest<'_>],
) -> Result<EncodedExecute, ServingError> {
    let mut all = Vec::with_capacity(requests.len());
    for sent in requests {
        all.push(inputs(sent.request)?);
    }
    let size = place(&mut all)?;
    let lease = match size {
        0 => None,
        size => Some(lease(given, size, &all)?),
    };
    let message = message(execution, requests, &all, lease.as_ref());
    if let (Err(_), Some(lease)) = (&message, &lease) {
        given.withdraw(lease);
    }
    message.map(|message| EncodedExecute { message, block: lease.map(|lease| lease.block) })
}

fn message(
    execution: u64,
    requests: &[SentRequest<'_>],
    all: &[Vec<SentInput<'_>>],
    lease: Option<&BlockLease>,
) -> Result<Vec<u8>, ServingError> {
    let mut message = wire::begin(wire::EXECUTE);
    message.reserve(expected_bytes(all));
    message.u64(execution);
    message.u32(u32::try_from(requests.len()).unwrap_or(u32::MAX));
    write_blocks(&mut message, lease);
    let mut small = Vec::new();
    for (sent, inputs) in requests.iter().zip(all) {
        write_request(&mut message, sent, inputs.len())?;
        for input in inputs {
            let field = write_input(&mut message, input)?;
            if input.place.is_none() {
                small.push((field, input));
            }
        }
    }
    for (field, input) in small {
        message.pad(SMALL_ALIGNMENT);
        let place = message.place();
        message.patch(field, place);
        message.raw(input.elements.bytes()?);
    }
    Ok(wire::end(message))
}

/// About as many bytes as the message of these inputs has.
fn expected_bytes(all: &[Vec<SentInput<'_>>]) -> usize {
    let small = all.iter().flatten().filter(|input| input.place.is_none());
    let elements: usize = small.map(|input| input.elements.bytes().map_or(0, <[u8]>::len)).sum();
    let inputs: usize = all.iter().map(Vec::len).sum();
    elements + FIELDS_BYTES * (1 + all.len() + inputs)
}

/// The inputs of a request as its model sees them, and those that the server makes.
fn inputs(request: &ActiveRequest) -> Result<Vec<SentInput<'_>>, ServingError> {
    let config: &ModelConfig = request.config();
    let mut all = Vec::with_capacity(request.request.inputs.len());
    for given in &request.request.inputs {
        let wanted = config.input.iter().find(|input| input.name == given.name);
        let Some(part) = wanted.and_then(|wanted| InputShare::of(config, request, wanted)) else {
            continue;
        };
        part.check()?;
        let elements = match &given.data {
            InputData::Raw(raw) => SentElements::Raw(raw),
            InputData::Tensor(tensor) => SentElements::of_tensor(tensor)?,
        };
        let dims = part.rows.into_iter().chain(part.dims).collect();
        all.push(input(Cow::Borrowed(&given.name), given.datatype, dims, elements)?);
    }
    for (name, tensor) in sequence_tensors::inputs(std::slice::from_ref(request))? {
        let elements = SentElements::of_tensor(&tensor)?;
        all.push(input(Cow::Owned(name), tensor.dtype(), tensor.shape().to_vec(), elements)?);
    }
    Ok(all)
}

fn input<'a>(
    name: Cow<'a, str>,
    datatype: DataType,
    dims: Vec<usize>,
    elements: SentElements<'a>,
) -> Result<SentInput<'a>, ServingError> {
    let number = wire::type_number(datatype).filter(|_| dims.len() <= wire::MAX_RANK);
    let Some(datatype) = number else {
        return Err(ServingError::unsupported(format!(
            "input '{name}' has the type {} and {} dimensions, expected a type of the wire and at most {}",
            datatype.wire_name(),
            dims.len(),
            wire::MAX_RANK
        )));
    };
    Ok(SentInput { name, datatype, dims, elements, place: None })
}

/// Gives large inputs their places in a block; its size.
fn place(all: &mut [Vec<SentInput<'_>>]) -> Result<usize, ServingError> {
    let mut small = wire::MAX_SMALL_BYTES;
    let mut end = 0_usize;
    for input in all.iter_mut().flatten() {
        let len = input.elements.bytes()?.len();
        if len <= wire::SMALL_BYTES && len <= small {
            small -= len;
            continue;
        }
        input.place = Some(end);
        end = end.saturating_add(len).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    Ok(end)
}

fn lease(
    given: &mut ServerBlocks,
    size: usize,
    all: &[Vec<SentInput<'_>>],
) -> Result<BlockLease, ServingError> {
    let fill = |block: &mut [u8]| {
        for input in all.iter().flatten() {
            let (Some(at), Ok(bytes)) = (input.place, input.elements.bytes()) else { continue };
            if let Some(slot) = block.get_mut(at..at.saturating_add(bytes.len())) {
                slot.copy_from_slice(bytes);
            }
        }
    };
    given.lease(size, fill).map_err(|error| {
        ServingError::unavailable(format!("no shared memory for {size} bytes of inputs: {error}"))
    })
}

fn write_blocks(message: &mut FieldWriter, lease: Option<&BlockLease>) {
    let new = lease.and_then(|lease| Some((lease.number, lease.new.as_ref()?)));
    let closed = lease.map_or(&[][..], |lease| &lease.closed);
    message.u16(u16::from(new.is_some()));
    message.u16(u16::try_from(closed.len()).unwrap_or(u16::MAX));
    message.u32(lease.map_or(0, |lease| lease.number));
    closed.iter().for_each(|number| message.u32(*number));
    if let Some((number, (size, name))) = new {
        message.u32(number);
        message.size(*size);
        message.u16(u16::try_from(name.len()).unwrap_or(u16::MAX));
        message.raw(name.as_bytes());
    }
}

fn write_request(
    message: &mut FieldWriter,
    sent: &SentRequest<'_>,
    inputs: usize,
) -> Result<(), ServingError> {
    let request = &sent.request.request;
    let parameters = parameters(&request.parameters);
    let (kind, number, text) = match &request.correlation {
        CorrelationId::None => (1, 0, ""),
        CorrelationId::Uint(number) => (1, *number, ""),
        CorrelationId::String(name) => (2, 0, name.as_str()),
    };
    let too_many = || ServingError::invalid_arg("the request has too many inputs or outputs");
    let wanted = match request.requested_outputs.len() {
        0 => wire::ALL_OUTPUTS,
        count => {
            let count = u16::try_from(count).ok().filter(|count| *count != wire::ALL_OUTPUTS);
            count.ok_or_else(too_many)?
        }
    };
    message.u64(sent.number);
    message.u32(sent.slot);
    message.u32(u32::from(request.sequence_start) + 2 * u32::from(request.sequence_end));
    message.u64(request.timeout_us);
    message.u64(request.priority);
    message.u8(kind);
    message.u64(number);
    for text in [text, request.id.as_str(), parameters.as_str()] {
        message.u32(u32::try_from(text.len()).map_err(|_| too_many())?);
    }
    message.u16(wanted);
    message.u16(u16::try_from(inputs).map_err(|_| too_many())?);
    for text in [text, request.id.as_str(), parameters.as_str()] {
        message.raw(text.as_bytes());
    }
    for name in &request.requested_outputs {
        message.u32(u32::try_from(name.len()).map_err(|_| too_many())?);
        message.raw(name.as_bytes());
    }
    Ok(())
}

/// Writes an input, and says which field waits for its place in the message.
fn write_input(message: &mut FieldWriter, input: &SentInput<'_>) -> Result<usize, ServingError> {
    let rank = u8::try_from(input.dims.len()).unwrap_or(0);
    message.u16(u16::try_from(input.name.len()).map_err(|_| {
        ServingError::invalid_arg(format!("an input has a name of {} bytes", input.name.len()))
    })?);
    message.u8(input.datatype);
    message.u8(rank | if input.place.is_some() { wire::IN_BLOCK } else { 0 });
    let field = message.bytes.len();
    message.size(input.place.unwrap_or(0));
    message.size(input.elements.bytes()?.len());
    input.dims.iter().for_each(|dim| message.size(*dim));
    message.raw(input.name.as_bytes());
    Ok(field)
}

/// Parameters as JSON; empty where there are none.
pub(super) fn parameters(parameters: &[(String, ParameterValue)]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let value = |value: &ParameterValue| match value {
        ParameterValue::Bool(value) => serde_json::Value::from(*value),
        ParameterValue::Int(value) => serde_json::Value::from(*value),
        ParameterValue::Uint(value) => serde_json::Value::from(*value),
        ParameterValue::Double(value) => serde_json::Value::from(*value),
        ParameterValue::String(value) => serde_json::Value::from(value.as_str()),
    };
    let members = parameters.iter().map(|(name, given)| (name.clone(), value(given)));
    serde_json::Value::Object(members.collect()).to_string()
}
