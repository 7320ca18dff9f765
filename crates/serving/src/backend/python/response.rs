//! From what a worker answers to responses.

use std::sync::Arc;

use galatea_tensor::{Allocation, DataType, SharedBlock, Tensor, decode_byte_strings};
use serde_json::{Map, Value};

use super::blocks::{ServerBlocks, WorkerBlocks};
use super::wire::{ElementPlace, MessageOutput, WorkerResponse};
use super::{PYTORCH, TENSORFLOW};
use crate::batch;
use crate::config::ModelConfig;
use crate::error::ServingError;
use crate::payload::ModelAnswer;
use crate::request::{OutputTensor, ParameterValue};

/// Where outputs lie.
#[derive(Debug)]
pub(super) struct WorkerOutputMemory<'a> {
    /// The small ones.
    pub(super) small: &'a [u8],
    pub(super) given: &'a ServerBlocks,
    pub(super) theirs: &'a WorkerBlocks,
}

/// Contents of a response. Large outputs stay in shared memory, which goes back when nobody reads them any more.
pub(super) fn decode(
    config: &ModelConfig,
    response: WorkerResponse,
    memory: &mut WorkerOutputMemory<'_>,
) -> ModelAnswer {
    if let Some((code, text)) = response.error {
        // As in Triton, an error that a model in Python answers with is no failure.
        let result = Err(ServingError::new(code, text));
        let deliberate = ![PYTORCH, TENSORFLOW].contains(&config.backend.as_str());
        return ModelAnswer { result, parameters: Vec::new(), deliberate };
    }
    let mut outputs = Vec::with_capacity(response.outputs.len());
    for output in response.outputs {
        match tensor(config, output, memory) {
            Ok(output) => outputs.push(output),
            Err(error) => return ModelAnswer::from(Err(error)),
        }
    }
    let parameters = match response.parameters.as_str() {
        "" => Vec::new(),
        text => parameters(serde_json::from_str(text).ok().as_ref()),
    };
    ModelAnswer { result: Ok(outputs), parameters, deliberate: false }
}

fn tensor(
    config: &ModelConfig,
    output: MessageOutput,
    memory: &mut WorkerOutputMemory<'_>,
) -> Result<OutputTensor, ServingError> {
    let MessageOutput { name, datatype, shape, place, offset, size } = output;
    let failed = |error: &dyn std::fmt::Display| {
        let model = &config.name;
        ServingError::internal(format!("output '{name}' of model '{model}': {error}"))
    };
    let tensor = match place {
        ElementPlace::Message => {
            let end = offset.saturating_add(size);
            let bytes = memory.small.get(offset..end);
            let bytes = bytes.ok_or_else(|| failed(&"it lies outside of its message"))?;
            from_bytes(datatype, &shape, bytes)
        }
        ElementPlace::Servers(number) => {
            in_block(datatype, &shape, memory.given.get(number), offset, size)
        }
        ElementPlace::Workers(number) => {
            in_block(datatype, &shape, memory.theirs.get(number), offset, size)
        }
    };
    let mut tensor = tensor.map_err(|error| failed(&error))?;
    let known = config.output.iter().find(|known| known.name == name);
    if let Some((known, reshape)) = known.and_then(|known| Some((known, known.reshape.as_ref()?))) {
        tensor = batch::reshaped(config, &tensor, &reshape.shape, &known.dims)?;
    }
    Ok(OutputTensor { name, tensor })
}

fn in_block(
    datatype: DataType,
    shape: &[usize],
    block: Option<&Arc<SharedBlock>>,
    offset: usize,
    size: usize,
) -> Result<Tensor, ServingError> {
    let block =
        block.ok_or_else(|| ServingError::internal("it lies in a block that is not there"))?;
    let memory: Arc<dyn Allocation> = Arc::<SharedBlock>::clone(block);
    if let Some(element) = datatype.size_bytes() {
        let elements = shape.iter().try_fold(element, |product, &dim| product.checked_mul(dim));
        if elements != Some(size) {
            return Err(ServingError::internal(format!(
                "its shape {shape:?} of type {} does not have the {size} bytes that it comes with",
                datatype.wire_name()
            )));
        }
        return Ok(Tensor::from_allocation(datatype, shape, memory, offset)?);
    }
    let raw = Tensor::from_allocation(DataType::Uint8, &[size], memory, offset)?;
    from_bytes(datatype, shape, raw.as_bytes()?)
}

fn from_bytes(datatype: DataType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, ServingError> {
    match datatype {
        DataType::Bytes => Ok(Tensor::from_vec(shape, decode_byte_strings(bytes)?)?),
        other => Ok(Tensor::from_bytes(other, shape, bytes)?),
    }
}

/// Parameters, as far as they have a form on the wire.
pub(super) fn parameters(members: Option<&Map<String, Value>>) -> Vec<(String, ParameterValue)> {
    let value = |value: &Value| {
        Some(match value {
            Value::Bool(value) => ParameterValue::Bool(*value),
            Value::String(value) => ParameterValue::String(value.clone()),
            Value::Number(number) => match number.as_i64() {
                Some(number) => ParameterValue::Int(number),
                None => ParameterValue::Double(number.as_f64()?),
            },
            _ => return None,
        })
    };
    let members = members.into_iter().flatten();
    members.filter_map(|(name, given)| Some((name.clone(), value(given)?))).collect()
}
