//! Bodies of inference requests: JSON, JSON with binary tensors behind it, or one raw tensor.

use bytes::Bytes;
use galatea_serving::{
    CorrelationId, DistinctNames, InferenceRequest, InputData, InputTensor, ParameterValue,
    ServingError,
};
use galatea_tensor::DataType;

use super::encode::{OutputPlan, RequestedOutput};
use super::endpoints::CallContext;
use crate::app::{ClientLimits, ServerState};
use crate::body_budget::{BodyLease, has_memory};
use crate::json::{JsonDocument, JsonKind, JsonValue, MAX_DEPTH, ParseError};
use crate::shm::{RegionWindow, SharedMemory};
use crate::tensor_wire::{element_count, shape_text};

/// The error that a client sees for a text that is no JSON.
pub(super) fn json_error(error: ParseError) -> ServingError {
    match error {
        ParseError::Syntax { what, at } => ServingError::internal(format!(
            "failed to parse the request JSON buffer: {what} at {at}"
        )),
        ParseError::TooDeep => ServingError::invalid_arg(format!(
            "JSON nesting depth exceeds maximum allowed limit ({MAX_DEPTH})"
        )),
        ParseError::TooLong => ServingError::invalid_arg("request JSON is longer than 4 GiB"),
    }
}

/// Parses the JSON of a request, which may be as long as the limit for JSON.
///
/// # Errors
/// Fails when it is longer, or no JSON.
pub(super) fn json_document(
    text: &[u8],
    limits: ClientLimits,
) -> Result<JsonDocument<'_>, ServingError> {
    check_json_size(text, limits)?;
    parsed_json(text)
}

/// Parses JSON, where the system has memory for its values.
///
/// # Errors
/// UNAVAILABLE where it has none; fails on what is no JSON.
pub(super) fn parsed_json(text: &[u8]) -> Result<JsonDocument<'_>, ServingError> {
    if !has_memory(text.len().saturating_mul(VALUE_BYTES)) {
        return Err(ServingError::unavailable(format!(
            "the system has no memory for the values of {} bytes of JSON",
            text.len()
        )));
    }
    JsonDocument::parse(text).map_err(json_error)
}

/// Refuses JSON that is longer than the limit.
pub(super) fn check_json_size(text: &[u8], limits: ClientLimits) -> Result<(), ServingError> {
    let limit = limits.max_input_bytes;
    if text.len() <= limit {
        return Ok(());
    }
    Err(ServingError::invalid_arg(format!(
        "request JSON size of {} bytes exceeds the maximum allowed input size of {limit} bytes. Use \
         --http-max-input-size to increase the limit.",
        text.len()
    )))
}

/// Decodes a request with a JSON part.
pub(super) fn decode(
    call: &CallContext<'_>,
    body: &Bytes,
    json_bytes: usize,
) -> Result<(InferenceRequest, OutputPlan), ServingError> {
    let text = body.get(..json_bytes).unwrap_or(&[]);
    check_json_size(text, call.app.limits())?;
    let _memory = parse_memory(call, json_bytes)?;
    let document = parsed_json(text)?;
    let root = document.root();
    let mut request = InferenceRequest {
        model_name: call.model.to_owned(),
        model_version: call.version.to_owned(),
        ..InferenceRequest::default()
    };
    if let Some(id) = root.member("id") {
        request.id = string(id).map_err(|text| unable("id", text))?;
    }
    let mut plan = OutputPlan::default();
    if let Some(parameters) = root.member("parameters") {
        read_parameters(parameters, &mut request, &mut plan)?;
    }
    let mut binary = body.slice(json_bytes..);
    let mut names = DistinctNames::default();
    for input in array(root, "inputs")? {
        let sources = &mut plan.sources;
        let input = read_input(input, &request, &mut names, &mut binary, sources, call.app)?;
        request.inputs.push(input);
    }
    if !binary.is_empty() {
        return Err(ServingError::invalid_arg(format!(
            "unexpected additional input data for model '{}'",
            call.model
        )));
    }
    if root.member("outputs").is_some() {
        read_outputs(root, call.app.shared_memory(), &mut request, &mut plan)?;
    }
    Ok((request, plan))
}

/// Bytes that the values of a JSON text may take for each of its bytes.
const VALUE_BYTES: usize = 9;

/// Longest JSON text that came as it is whose values count for nothing.
const MAX_UNCOUNTED_BYTES: usize = 8 << 20;

/// Takes the memory for the values of a JSON text from what bodies share, where the text is long or was compressed: a
/// few bytes may stand for many.
///
/// # Errors
/// UNAVAILABLE where others have taken it.
pub(super) fn parse_memory(
    call: &CallContext<'_>,
    json_bytes: usize,
) -> Result<BodyLease, ServingError> {
    let compressed = call.head.header("content-encoding").is_some();
    if !compressed && json_bytes <= MAX_UNCOUNTED_BYTES {
        return Ok(BodyLease::default());
    }
    let mut lease = call.app.body_budget().begin();
    lease.cover(json_bytes.saturating_mul(VALUE_BYTES)).map_err(|_| {
        ServingError::unavailable("other requests take all memory for JSON; try again")
    })?;
    Ok(lease)
}

const NO_STRING: &str = "attempt to access JSON non-string as string";
const NO_BOOLEAN: &str = "attempt to access JSON non-boolean as boolean";
const NO_UNSIGNED: &str = "attempt to access JSON non-unsigned-integer as unsigned-integer";
const NO_SIGNED: &str = "attempt to access JSON non-signed-integer as signed-integer";
const NO_NUMBER: &str = "attempt to access JSON non-number as double";
const NO_ARRAY: &str = "attempt to access JSON non-array as array";

fn unable(field: &str, why: &str) -> ServingError {
    ServingError::internal(format!("Unable to parse '{field}': {why}"))
}

fn absent(field: &str) -> ServingError {
    unable(field, &format!("attempt to access non-existing object member '{field}'"))
}

fn string(value: JsonValue<'_>) -> Result<String, &'static str> {
    match value.kind() {
        JsonKind::String(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(NO_STRING),
    }
}

fn unsigned(value: JsonValue<'_>) -> Result<u64, &'static str> {
    match value.kind() {
        JsonKind::Natural(value) => Ok(value),
        _ => Err(NO_UNSIGNED),
    }
}

fn boolean(value: JsonValue<'_>) -> Result<bool, &'static str> {
    match value.kind() {
        JsonKind::Bool(value) => Ok(value),
        _ => Err(NO_BOOLEAN),
    }
}

fn member_string(object: JsonValue<'_>, name: &str) -> Result<String, ServingError> {
    let value = object.member(name).ok_or_else(|| absent(name))?;
    string(value).map_err(|why| unable(name, why))
}

fn array<'d>(
    object: JsonValue<'d>,
    name: &str,
) -> Result<impl Iterator<Item = JsonValue<'d>> + use<'d>, ServingError> {
    let value = object.member(name).ok_or_else(|| absent(name))?;
    match value.kind() {
        JsonKind::Array(_) => Ok(value.elements()),
        _ => Err(unable(name, NO_ARRAY)),
    }
}

/// Longest name of a sequence, as in Triton.
const MAX_CORRELATION_BYTES: usize = 128;

fn read_parameters(
    parameters: JsonValue<'_>,
    request: &mut InferenceRequest,
    plan: &mut OutputPlan,
) -> Result<(), ServingError> {
    if !matches!(parameters.kind(), JsonKind::Object(_)) {
        return Err(ServingError::internal(
            "failed to get request params.: attempt to get members for non-object",
        ));
    }
    for (name, value) in parameters.members() {
        let name = String::from_utf8_lossy(name);
        let fail = |why: &'static str| unable(&name, why);
        match &*name {
            "sequence_id" => request.correlation = correlation(value)?,
            "sequence_start" => request.sequence_start = boolean(value).map_err(fail)?,
            "sequence_end" => request.sequence_end = boolean(value).map_err(fail)?,
            "priority" => request.priority = unsigned(value).map_err(fail)?,
            "timeout" => request.timeout_us = unsigned(value).map_err(fail)?,
            "binary_data_output" => plan.all_binary = boolean(value).map_err(fail)?,
            reserved if reserved.starts_with("triton_") => {
                return Err(ServingError::invalid_arg(
                    "parameter keys starting with 'triton_' are reserved for Triton usage and \
                     should not be specified.",
                ));
            }
            _ => {
                let value = parameter(value).ok_or_else(|| {
                    ServingError::invalid_arg(format!(
                        "parameter '{name}' has invalid type. It should be either 'int', 'bool', \
                         or 'string'."
                    ))
                })?;
                request.parameters.push((name.into_owned(), value));
            }
        }
    }
    Ok(())
}

pub(super) fn parameter(value: JsonValue<'_>) -> Option<ParameterValue> {
    match value.kind() {
        JsonKind::Bool(value) => Some(ParameterValue::Bool(value)),
        JsonKind::Negative(value) => Some(ParameterValue::Int(value)),
        // A hash or a seed above INT64 is a double, as in Triton's JSON.
        #[allow(clippy::cast_precision_loss, reason = "a double is what Triton makes of it")]
        JsonKind::Natural(value) => Some(match i64::try_from(value) {
            Ok(value) => ParameterValue::Int(value),
            Err(_) => ParameterValue::Double(value as f64),
        }),
        JsonKind::Double(value) => Some(ParameterValue::Double(value)),
        JsonKind::String(_) => string(value).ok().map(ParameterValue::String),
        JsonKind::Null | JsonKind::Array(_) | JsonKind::Object(_) => None,
    }
}

fn correlation(value: JsonValue<'_>) -> Result<CorrelationId, ServingError> {
    if let JsonKind::Natural(id) = value.kind() {
        return Ok(CorrelationId::Uint(id));
    }
    let name = string(value).map_err(|why| unable("sequence_id", why))?;
    if name.len() > MAX_CORRELATION_BYTES {
        return Err(ServingError::unsupported(format!(
            "string correlation ID cannot be longer than {MAX_CORRELATION_BYTES} characters"
        )));
    }
    Ok(CorrelationId::String(name))
}

/// Place of an input's values.
enum InputSource<'d> {
    Json(JsonValue<'d>),
    Binary(JsonValue<'d>),
    SharedMemory(JsonValue<'d>),
}

fn source(input: JsonValue<'_>) -> Result<InputSource<'_>, ServingError> {
    let parameters = input.member("parameters");
    let parameter = |name: &str| parameters.and_then(|object| object.member(name));
    let data = input.member("data");
    let binary = parameter("binary_data_size");
    let region = parameter("shared_memory_region");
    match (data, binary, region) {
        (Some(data), None, None) => Ok(InputSource::Json(data)),
        (None, Some(size), None) => Ok(InputSource::Binary(size)),
        (None, None, Some(region)) => Ok(InputSource::SharedMemory(region)),
        _ => {
            let found: String = [
                (data, "'data'"),
                (binary, "'binary_data_size'"),
                (region, "'shared_memory_region'"),
            ]
            .iter()
            .filter(|(value, _)| value.is_some())
            .map(|(_, name)| format!(" {name}"))
            .collect();
            let found = if found.is_empty() {
                " no field is set".to_owned()
            } else {
                format!(" set{found}")
            };
            Err(ServingError::invalid_arg(format!(
                "Input must set only one of the following fields: 'data', 'binary_data_size' in \
                 'parameters', 'shared_memory_region' in 'parameters'. But{found}"
            )))
        }
    }
}

fn read_input(
    input: JsonValue<'_>,
    request: &InferenceRequest,
    names: &mut DistinctNames,
    binary: &mut Bytes,
    sources: &mut Vec<RegionWindow>,
    app: &ServerState,
) -> Result<InputTensor, ServingError> {
    let limits = app.limits();
    let source = source(input)?;
    let name = member_string(input, "name")?;
    let datatype = member_string(input, "datatype")?;
    let mut shape = Vec::new();
    for dim in array(input, "shape")? {
        let dim = unsigned(dim).map_err(|why| unable("shape", why))?;
        shape.push(i64::try_from(dim).map_err(|_| unable("shape", NO_SIGNED))?);
    }
    let datatype: DataType = datatype
        .parse()
        .map_err(|_| ServingError::invalid_arg(format!("invalid datatype for input {name}")))?;
    if !names.insert(&name, &request.inputs) {
        return Err(ServingError::invalid_arg(format!(
            "{}input '{name}' already exists in request",
            request_prefix(&request.id)
        )));
    }
    let elements = element_count(&shape).ok_or_else(|| {
        ServingError::invalid_arg(format!(
            "invalid shape for input '{name}': shape {} causes total element count to exceed \
             maximum size of {}",
            shape_text(&shape),
            i64::MAX
        ))
    })?;
    let data = match source {
        InputSource::Json(data) => match json_tensor(data, datatype, elements, &name, limits) {
            Ok(values) => values.into(),
            // Without a shape the core says what is missing, unless the data is a scalar.
            Err(_) if shape.is_empty() && leaves(data) != 1 => Bytes::new(),
            Err(error) => return Err(error),
        },
        InputSource::Binary(size) => {
            let size = unsigned(size).map_err(|why| unable("binary_data_size", why))?;
            let available = binary.len() as u64;
            if size > available {
                return Err(ServingError::invalid_arg(format!(
                    "unexpected size for input '{name}', expecting {} additional bytes for model \
                     '{}'",
                    size - available,
                    request.model_name
                )));
            }
            binary.split_to(usize::try_from(size).unwrap_or(binary.len()))
        }
        InputSource::SharedMemory(region) => {
            let parameters = input.member("parameters");
            let place = window(app.shared_memory(), region, parameters)?;
            let bytes = place.read()?.into();
            sources.push(place);
            bytes
        }
    };
    Ok(InputTensor { name, datatype, shape, data: InputData::Raw(data) })
}

/// Words before errors that name the request.
pub(super) fn request_prefix(id: &str) -> String {
    format!("[request id: {}] ", if id.is_empty() { "<id_unknown>" } else { id })
}

/// Values of a tensor from an array or, where there is only one, from the element alone.
pub(super) fn values(
    data: JsonValue<'_>,
    datatype: DataType,
    elements: usize,
    name: &str,
    limits: ClientLimits,
) -> Result<Vec<u8>, ServingError> {
    let alone = !matches!(data.kind(), JsonKind::Array(_));
    if alone && !matches!(datatype, DataType::Fp16 | DataType::Bf16) {
        let mut out = Vec::new();
        append_leaf(data.kind(), datatype, &mut out)?;
        return Ok(out);
    }
    json_tensor(data, datatype, elements, name, limits)
}

/// Values of a tensor from JSON, as bytes of the wire. Nesting does not matter, only the count.
fn json_tensor(
    data: JsonValue<'_>,
    datatype: DataType,
    elements: usize,
    name: &str,
    limits: ClientLimits,
) -> Result<Vec<u8>, ServingError> {
    // Values beside a shape without elements do not count.
    if elements == 0 {
        return Ok(Vec::new());
    }
    if matches!(datatype, DataType::Fp16 | DataType::Bf16) {
        return Err(ServingError::invalid_arg(format!(
            "receiving {datatype} data via JSON is not supported. Please use the binary data \
             format for input {name}"
        )));
    }
    if datatype == DataType::Bytes {
        return json_strings(data);
    }
    let bytes = elements.checked_mul(datatype.size_bytes().unwrap_or(1)).ok_or_else(|| {
        ServingError::invalid_arg(format!(
            "byte size overflow for input '{name}': {elements} elements of type {datatype}"
        ))
    })?;
    if bytes > limits.max_input_bytes {
        return Err(ServingError::invalid_arg(format!(
            "JSON input '{name}' has a byte_size ({bytes} bytes) that exceeds the maximum allowed \
             value of {} bytes. Use --http-max-input-size to increase the limit.",
            limits.max_input_bytes
        )));
    }
    let mut out = Vec::new();
    out.try_reserve_exact(bytes).map_err(|_| {
        ServingError::unavailable(format!("no memory for the {bytes} bytes of input '{name}'"))
    })?;
    if !matches!(data.kind(), JsonKind::Array(_)) {
        return Err(unable("data", NO_ARRAY));
    }
    let mut missing = elements;
    append(data, datatype, &mut out, &mut missing)?;
    if missing > 0 {
        return Err(wrong_count());
    }
    Ok(out)
}

/// Strings of nested arrays with their lengths before them. The core compares their number with the shape, as it does
/// for binary strings.
fn json_strings(data: JsonValue<'_>) -> Result<Vec<u8>, ServingError> {
    if !matches!(data.kind(), JsonKind::Array(_)) {
        return Err(unable("data", NO_ARRAY));
    }
    let (mut out, mut unlimited) = (Vec::new(), usize::MAX);
    append(data, DataType::Bytes, &mut out, &mut unlimited)?;
    Ok(out)
}

/// Elements of nested arrays.
fn leaves(data: JsonValue<'_>) -> usize {
    data.elements()
        .map(|value| if matches!(value.kind(), JsonKind::Array(_)) { leaves(value) } else { 1 })
        .sum()
}

fn wrong_count() -> ServingError {
    unable("data", "Shape does not match true shape of 'data' field")
}

/// Appends the leaves below a value; the reader has bounded the depth.
fn append(
    data: JsonValue<'_>,
    datatype: DataType,
    out: &mut Vec<u8>,
    missing: &mut usize,
) -> Result<(), ServingError> {
    for value in data.elements() {
        if matches!(value.kind(), JsonKind::Array(_)) {
            append(value, datatype, out, missing)?;
            continue;
        }
        *missing = missing.checked_sub(1).ok_or_else(wrong_count)?;
        append_leaf(value.kind(), datatype, out)?;
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, reason = "JSON integers wrap to the tensor's type")]
fn append_leaf(
    value: JsonKind<'_>,
    datatype: DataType,
    out: &mut Vec<u8>,
) -> Result<(), ServingError> {
    let fail = |why| unable("data", why);
    let signed = || match value {
        JsonKind::Negative(value) => Ok(value),
        JsonKind::Natural(value) => i64::try_from(value).map_err(|_| fail(NO_SIGNED)),
        _ => Err(fail(NO_SIGNED)),
    };
    let unsigned = || match value {
        JsonKind::Natural(value) => Ok(value),
        _ => Err(fail(NO_UNSIGNED)),
    };
    let double = || match value {
        JsonKind::Negative(value) => Ok(value as f64),
        JsonKind::Natural(value) => Ok(value as f64),
        JsonKind::Double(value) => Ok(value),
        _ => Err(fail(NO_NUMBER)),
    };
    match datatype {
        DataType::Bool => match value {
            JsonKind::Bool(value) => out.push(u8::from(value)),
            _ => return Err(fail(NO_BOOLEAN)),
        },
        DataType::Uint8 => out.push(unsigned()? as u8),
        DataType::Uint16 => out.extend_from_slice(&(unsigned()? as u16).to_le_bytes()),
        DataType::Uint32 => out.extend_from_slice(&(unsigned()? as u32).to_le_bytes()),
        DataType::Uint64 => out.extend_from_slice(&unsigned()?.to_le_bytes()),
        DataType::Int8 => out.push((signed()? as i8).cast_unsigned()),
        DataType::Int16 => out.extend_from_slice(&(signed()? as i16).to_le_bytes()),
        DataType::Int32 => out.extend_from_slice(&(signed()? as i32).to_le_bytes()),
        DataType::Int64 => out.extend_from_slice(&signed()?.to_le_bytes()),
        DataType::Fp32 => out.extend_from_slice(&(double()? as f32).to_le_bytes()),
        DataType::Fp64 => out.extend_from_slice(&double()?.to_le_bytes()),
        DataType::Bytes => {
            let JsonKind::String(bytes) = value else {
                return Err(ServingError::internal(format!(
                    "Unable to parse JSON bytes array: {NO_STRING}"
                )));
            };
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
        DataType::Fp16 | DataType::Bf16 | DataType::Small(_) => return Err(fail(NO_NUMBER)),
    }
    Ok(())
}

/// The place in shared memory that a tensor's parameters name.
fn window(
    memory: &SharedMemory,
    region: JsonValue<'_>,
    parameters: Option<JsonValue<'_>>,
) -> Result<RegionWindow, ServingError> {
    let region = string(region).map_err(|why| unable("shared_memory_region", why))?;
    let number = |name: &str| {
        let value = parameters.and_then(|object| object.member(name)).map(unsigned).transpose();
        value.map_err(|why| unable(name, why))
    };
    let size = number("shared_memory_byte_size")?;
    memory.window(&region, number("shared_memory_offset")?.unwrap_or(0), size)
}

fn read_outputs(
    root: JsonValue<'_>,
    memory: &SharedMemory,
    request: &mut InferenceRequest,
    plan: &mut OutputPlan,
) -> Result<(), ServingError> {
    for output in array(root, "outputs")? {
        let name = member_string(output, "name")?;
        let parameters = output.member("parameters");
        let parameter = |key: &str| parameters.and_then(|object| object.member(key));
        let binary = || match parameter("binary_data") {
            Some(value) => boolean(value).map_err(|why| unable("binary_data", why)),
            None => Ok(false),
        };
        let region = parameter("shared_memory_region");
        // What excludes a region comes before everything else.
        if region.is_some() {
            let classified = parameter("classification").is_some();
            for (other, set) in
                [("classification", classified), ("binary_data", !classified && binary()?)]
            {
                if set {
                    return Err(ServingError::invalid_arg(format!(
                        "Output can't set both 'shared_memory_region' and '{other}'"
                    )));
                }
            }
        }
        let classes = match parameter("classification") {
            Some(value) => unsigned(value).map_err(|why| {
                ServingError::internal(format!("Unable to set 'classification': {why}"))
            })?,
            None => 0,
        };
        let binary = binary()?;
        let region = region.map(|region| window(memory, region, parameters)).transpose()?;
        request.requested_outputs.push(name.clone());
        plan.outputs.push(RequestedOutput { name, binary, classes, region });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(text: &str, datatype: DataType, elements: usize) -> Result<Vec<u8>, ServingError> {
        let document = JsonDocument::parse(text.as_bytes()).unwrap();
        json_tensor(document.root(), datatype, elements, "IN", ClientLimits::default())
    }

    #[test]
    fn integers_wrap_and_types_are_strict() {
        assert_eq!(tensor("[128,-129]", DataType::Int8, 2).unwrap(), [0x80, 0x7F]);
        assert_eq!(tensor("[256]", DataType::Uint8, 1).unwrap(), [0]);
        assert_eq!(tensor("[2147483648]", DataType::Int32, 1).unwrap(), [0, 0, 0, 0x80]);
        assert_eq!(tensor("[[1],[[2]]]", DataType::Uint8, 2).unwrap(), [1, 2]);
        assert_eq!(tensor("[\"ab\"]", DataType::Bytes, 1).unwrap(), b"\x02\0\0\0ab");
        assert_eq!(tensor("[1]", DataType::Fp32, 1).unwrap(), 1_f32.to_le_bytes());
        for (text, datatype) in [
            ("[-1]", DataType::Uint8),
            ("[1.0]", DataType::Int32),
            ("[true]", DataType::Fp32),
            ("[1]", DataType::Bool),
            ("[1]", DataType::Bytes),
            ("5", DataType::Int32),
            ("[]", DataType::Int32),
            ("[1,2]", DataType::Int32),
        ] {
            assert!(tensor(text, datatype, 1).is_err(), "{text} as {datatype}");
        }
    }

    #[test]
    fn parameters_above_int64_are_doubles() {
        let text = b"[9223372036854775807,9223372036854775808,18446744073709551616,-1]";
        let document = JsonDocument::parse(text).unwrap();
        let found: Vec<ParameterValue> =
            document.root().elements().map(|value| parameter(value).unwrap()).collect();
        let double = |power| ParameterValue::Double(2_f64.powi(power));
        let int = ParameterValue::Int;
        assert_eq!(found, [int(i64::MAX), double(63), double(64), int(-1)]);
    }

    #[test]
    fn strings_are_left_for_the_core_to_count() {
        let two = b"\x01\0\0\0a\x01\0\0\0b";
        assert_eq!(tensor("[\"a\",[\"b\"]]", DataType::Bytes, 9).unwrap(), two);
        assert_eq!(tensor("[\"a\"]", DataType::Bytes, 0).unwrap(), b"");
        assert!(tensor("\"a\"", DataType::Bytes, 1).is_err());
    }

    #[test]
    fn halves_are_refused_unless_there_are_none() {
        for datatype in [DataType::Fp16, DataType::Bf16] {
            assert_eq!(tensor("[]", datatype, 0).unwrap(), b"");
            let error = tensor("[1]", datatype, 1).unwrap_err();
            assert!(error.message.starts_with("receiving "), "{error}");
        }
    }

    #[test]
    fn outputs_are_checked_in_the_order_of_triton() {
        let memory = SharedMemory::new(true);
        let check = |parameters: &str| {
            let text = format!("{{\"outputs\":[{{\"name\":\"Z\",\"parameters\":{parameters}}}]}}");
            let document = JsonDocument::parse(text.as_bytes()).unwrap();
            let (mut request, mut plan) = (InferenceRequest::default(), OutputPlan::default());
            read_outputs(document.root(), &memory, &mut request, &mut plan)
                .map(|()| plan.outputs[0].classes)
                .map_err(|error| error.message)
        };
        assert_eq!(check(r#"{"classification":2,"binary_data":true}"#), Ok(2));
        let no_number = format!("Unable to set 'classification': {NO_UNSIGNED}");
        assert_eq!(check(r#"{"classification":"a","binary_data":1}"#), Err(no_number));
        let no_truth = format!("Unable to parse 'binary_data': {NO_BOOLEAN}");
        for parameters in [
            r#"{"classification":1,"binary_data":1}"#,
            r#"{"binary_data":1,"shared_memory_region":"r"}"#,
        ] {
            assert_eq!(check(parameters), Err(no_truth.clone()), "{parameters}");
        }
        let both =
            |other: &str| format!("Output can't set both 'shared_memory_region' and '{other}'");
        for (parameters, text) in [
            (
                r#"{"classification":"a","binary_data":1,"shared_memory_region":"r"}"#,
                both("classification"),
            ),
            (r#"{"binary_data":true,"shared_memory_region":"r"}"#, both("binary_data")),
            (
                r#"{"binary_data":false,"shared_memory_region":"r","shared_memory_byte_size":4}"#,
                "Unable to find shared memory region: 'r'".to_owned(),
            ),
        ] {
            assert_eq!(check(parameters), Err(text), "{parameters}");
        }
    }

    #[test]
    fn a_tensor_larger_than_the_limit_is_refused_before_memory_is_taken() {
        let error = tensor("[1]", DataType::Int64, usize::MAX / 16).unwrap_err();
        assert!(error.message.contains("exceeds the maximum allowed"), "{error}");
        let error = tensor("[1]", DataType::Int64, usize::MAX / 2).unwrap_err();
        assert!(error.message.starts_with("byte size overflow"), "{error}");
    }
}
