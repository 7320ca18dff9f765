//! `ModelInferRequest` to a request of the core.

use std::collections::HashMap;

use bytes::Bytes;
use galatea_serving::{
    CorrelationId, DistinctNames, InferenceRequest, InputData, InputTensor, ModelHandle,
    ParameterValue, ServingError,
};
use galatea_tensor::DataType;

use super::proto::inference::infer_parameter::ParameterChoice;
use super::proto::inference::model_infer_request::InferInputTensor;
use super::proto::inference::{InferParameter, InferTensorContents, ModelInferRequest};
use super::shm;
use crate::app::ServerState;
use crate::shm::RegionWindow;

/// Outputs that are not wanted as they are.
#[derive(Debug, Default)]
pub(super) struct OutputForms {
    /// Number of best classes to return for each output.
    pub(super) classes: HashMap<String, u64>,
    /// Places in shared memory.
    pub(super) places: HashMap<String, RegionWindow>,
    /// Places that inputs came from, which stay registered until the request is done.
    pub(super) sources: Vec<RegionWindow>,
}

/// Decodes a request for a model; raw contents go on without a copy.
pub(super) fn decode(
    app: &ServerState,
    model: &ModelHandle,
    message: ModelInferRequest,
) -> Result<(InferenceRequest, OutputForms), ServingError> {
    let mut request = InferenceRequest {
        model_name: message.model_name,
        model_version: message.model_version,
        id: message.id,
        ..InferenceRequest::default()
    };
    for (name, value) in message.parameters {
        read_parameter(&mut request, name, value.parameter_choice)?;
    }
    let has_raw = !message.raw_input_contents.is_empty();
    let mut raw = message.raw_input_contents.into_iter();
    let mut names = DistinctNames::default();
    let mut forms = OutputForms::default();
    for input in message.inputs {
        if !names.insert(&input.name, &request.inputs) {
            return Err(repeated_input(model, &request, &input));
        }
        let place = shm::named(&input.name, &input.parameters);
        let place = place
            .and_then(|place| place.map(|place| place.window(app.shared_memory())).transpose());
        let input = read_input(model, &request, input, place.as_ref(), has_raw, &mut raw)?;
        forms.sources.extend(place.ok().flatten());
        request.inputs.push(input);
    }
    for output in message.outputs {
        let place = shm::named(&output.name, &output.parameters)?;
        if let Some(value) = output.parameters.get("classification") {
            forms.classes.insert(output.name.clone(), class_count(value)?);
            if place.is_some() {
                return Err(ServingError::invalid_arg(
                    "output can't set both 'shared_memory_region' and 'classification'",
                ));
            }
        }
        if let Some(place) = place {
            forms.places.insert(output.name.clone(), place.window(app.shared_memory())?);
        }
        request.requested_outputs.push(output.name);
    }
    Ok((request, forms))
}

fn class_count(value: &InferParameter) -> Result<u64, ServingError> {
    match value.parameter_choice {
        Some(ParameterChoice::Int64Param(count)) if count > 0 => Ok(count.unsigned_abs()),
        Some(ParameterChoice::Int64Param(_)) => Err(ServingError::invalid_arg(
            "invalid value for 'classification' parameter, expected >= 0",
        )),
        _ => Err(ServingError::invalid_arg(
            "invalid value type for 'classification' parameter, expected int64_param",
        )),
    }
}

fn read_parameter(
    request: &mut InferenceRequest,
    name: String,
    value: Option<ParameterChoice>,
) -> Result<(), ServingError> {
    use ParameterChoice::{BoolParam, DoubleParam, Int64Param, StringParam, Uint64Param};
    let expected = |what: &str| {
        ServingError::invalid_arg(format!(
            "invalid value type for '{name}' parameter, expected {what}."
        ))
    };
    match (name.as_str(), value) {
        ("sequence_id", Some(Int64Param(id))) => {
            request.correlation = CorrelationId::Uint(id.cast_unsigned());
        }
        ("sequence_id", Some(StringParam(id))) if id.len() > 128 => {
            return Err(ServingError::unsupported(
                "string correlation ID cannot be longer than 128 characters",
            ));
        }
        ("sequence_id", Some(StringParam(id))) => request.correlation = CorrelationId::String(id),
        ("sequence_id", _) => return Err(expected("int64_param or string_param")),
        ("sequence_start", Some(BoolParam(start))) => request.sequence_start = start,
        ("sequence_end", Some(BoolParam(end))) => request.sequence_end = end,
        ("sequence_start" | "sequence_end", _) => return Err(expected("bool_param")),
        ("priority", Some(Uint64Param(priority))) => request.priority = priority,
        ("priority", Some(Int64Param(priority))) => {
            request.priority = u64::try_from(priority).map_err(|_| {
                ServingError::invalid_arg("invalid value for 'priority', expected value >= 0.")
            })?;
        }
        ("priority", _) => return Err(expected("int64_param or uint64_param")),
        ("timeout", Some(Int64Param(timeout))) => request.timeout_us = timeout.cast_unsigned(),
        ("timeout", _) => return Err(expected("int64_param")),
        ("triton_enable_empty_final_response", Some(BoolParam(_))) => {}
        ("triton_enable_empty_final_response", _) => return Err(expected("bool_param")),
        (reserved, _) if reserved.starts_with("triton_") => {
            return Err(ServingError::invalid_arg(
                "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys \
                 starting with 'triton_' are allowed: triton_enable_empty_final_response",
            ));
        }
        (_, Some(BoolParam(value))) => push(request, name, ParameterValue::Bool(value)),
        (_, Some(Int64Param(value))) => push(request, name, ParameterValue::Int(value)),
        (_, Some(StringParam(value))) => push(request, name, ParameterValue::String(value)),
        (_, Some(DoubleParam(value))) => push(request, name, ParameterValue::Double(value)),
        (_, Some(Uint64Param(_)) | None) => {
            return Err(ServingError::invalid_arg(format!(
                "invalid value type for '{name}' parameter, expected bool_param, int64_param, \
                 string_param or double_param."
            )));
        }
    }
    Ok(())
}

fn push(request: &mut InferenceRequest, name: String, value: ParameterValue) {
    request.parameters.push((name, value));
}

fn read_input(
    handle: &ModelHandle,
    request: &InferenceRequest,
    input: InferInputTensor,
    place: Result<&Option<RegionWindow>, &ServingError>,
    has_raw: bool,
    raw: &mut impl Iterator<Item = Bytes>,
) -> Result<InputTensor, ServingError> {
    let name = input.name;
    let model = &request.model_name;
    let datatype: DataType =
        input.datatype.parse().map_err(|_| invalid_datatype(handle, request, &name))?;
    let data = if let Some(place) = place.map_err(Clone::clone)? {
        if input.contents.is_some() {
            return Err(ServingError::invalid_arg(format!(
                "unexpected 'content' provided when using shared memory for input tensor '{name}' \
                 for model '{model}'"
            )));
        }
        Some(place.read()?.into())
    } else if has_raw {
        if input.contents.is_some() {
            return Err(ServingError::invalid_arg(format!(
                "contents field must not be specified when using raw_input_contents for '{name}' \
                 for model '{model}'"
            )));
        }
        raw.next()
    } else {
        match &input.contents {
            Some(contents) => Some(contents_bytes(contents, &name, model, datatype)?),
            None => None,
        }
    };
    let data = data.ok_or_else(|| {
        ServingError::invalid_arg(format!(
            "unable to find data for input tensor '{name}' for model '{model}' in request."
        ))
    })?;
    Ok(InputTensor { name, datatype, shape: input.shape, data: InputData::Raw(data) })
}

/// Says that an input comes twice, unless its type is wrong, which comes first.
fn repeated_input(
    handle: &ModelHandle,
    request: &InferenceRequest,
    input: &InferInputTensor,
) -> ServingError {
    let name = &input.name;
    if input.datatype.parse::<DataType>().is_err() {
        return invalid_datatype(handle, request, name);
    }
    let text = format!("{}input '{name}' already exists in request", prefix(request));
    ServingError::invalid_arg(text)
}

/// Triton calls a type that it does not know `<invalid>` and says what the model expects.
fn invalid_datatype(handle: &ModelHandle, request: &InferenceRequest, name: &str) -> ServingError {
    let model = &request.model_name;
    match handle.inputs().iter().find(|input| input.name == name) {
        Some(input) => ServingError::invalid_arg(format!(
            "{}inference input '{name}' data-type is '<invalid>', but model '{model}' expects '{}'",
            prefix(request),
            input.datatype
        )),
        None => ServingError::invalid_arg(format!(
            "unexpected inference input '{name}' for model '{model}'"
        )),
    }
}

fn prefix(request: &InferenceRequest) -> String {
    let id = if request.id.is_empty() { "<id_unknown>" } else { &request.id };
    format!("[request id: {id}] ")
}

/// Bytes of the wire from the one typed field that belongs to the type.
#[allow(clippy::cast_possible_truncation, reason = "32-bit fields carry narrower integers too")]
fn contents_bytes(
    contents: &InferTensorContents,
    name: &str,
    model: &str,
    datatype: DataType,
) -> Result<Bytes, ServingError> {
    let fields = [
        ("BOOL", !contents.bool_contents.is_empty(), &[DataType::Bool][..]),
        (
            "INT32",
            !contents.int_contents.is_empty(),
            &[DataType::Int8, DataType::Int16, DataType::Int32],
        ),
        ("INT64", !contents.int64_contents.is_empty(), &[DataType::Int64]),
        (
            "UINT32",
            !contents.uint_contents.is_empty(),
            &[DataType::Uint8, DataType::Uint16, DataType::Uint32],
        ),
        ("UINT64", !contents.uint64_contents.is_empty(), &[DataType::Uint64]),
        ("FP32", !contents.fp32_contents.is_empty(), &[DataType::Fp32]),
        ("FP64", !contents.fp64_contents.is_empty(), &[DataType::Fp64]),
        ("BYTES", !contents.bytes_contents.is_empty(), &[DataType::Bytes]),
    ];
    let mut supplied = false;
    for (field, _, types) in fields.iter().filter(|(_, present, _)| *present) {
        let what = if supplied {
            ", binary data was already supplied.".to_owned()
        } else if types.contains(&datatype) {
            supplied = true;
            continue;
        } else {
            format!(" of type '{field}', expected datatype '{datatype}'")
        };
        return Err(ServingError::invalid_arg(format!(
            "unexpected explicit tensor data for input tensor '{name}' for model '{model}'{what}"
        )));
    }
    fn bytes<T: Copy, const N: usize>(values: &[T], form: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| form(value)).collect()
    }
    Ok(Bytes::from(match datatype {
        DataType::Bool => bytes(&contents.bool_contents, |value| [u8::from(value)]),
        DataType::Int8 => bytes(&contents.int_contents, |value| (value as i8).to_le_bytes()),
        DataType::Int16 => bytes(&contents.int_contents, |value| (value as i16).to_le_bytes()),
        DataType::Int32 => bytes(&contents.int_contents, i32::to_le_bytes),
        DataType::Int64 => bytes(&contents.int64_contents, i64::to_le_bytes),
        DataType::Uint8 => bytes(&contents.uint_contents, |value| [value as u8]),
        DataType::Uint16 => bytes(&contents.uint_contents, |value| (value as u16).to_le_bytes()),
        DataType::Uint32 => bytes(&contents.uint_contents, u32::to_le_bytes),
        DataType::Uint64 => bytes(&contents.uint64_contents, u64::to_le_bytes),
        DataType::Fp32 => bytes(&contents.fp32_contents, f32::to_le_bytes),
        DataType::Fp64 => bytes(&contents.fp64_contents, f64::to_le_bytes),
        DataType::Bytes => {
            let mut out = Vec::new();
            for value in &contents.bytes_contents {
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(value);
            }
            out
        }
        DataType::Fp16 | DataType::Bf16 | DataType::Small(_) => Vec::new(),
    }))
}
