//! Bodies of inference responses.

use bytes::Bytes;
use galatea_serving::{InferenceResponse, ModelHandle, OutputTensor, ParameterValue, ServingError};
use galatea_tensor::{ByteString, DataType, Tensor};

use super::message::{ContentType, HttpResponse};
use crate::body_budget::has_memory;
use crate::classification;
use crate::json;
use crate::shm::RegionWindow;
use crate::tensor_wire::wire_bytes;

/// Most bytes of a number as text, with its comma.
const ELEMENT_TEXT_BYTES: usize = 24;

/// An output that the request names.
#[derive(Debug)]
pub(super) struct RequestedOutput {
    pub(super) name: String,
    /// Wanted as bytes behind the JSON.
    pub(super) binary: bool,
    /// Number of best classes to return instead of the tensor; 0 for the tensor.
    pub(super) classes: u64,
    /// Place in shared memory where it is wanted.
    pub(super) region: Option<RegionWindow>,
}

/// In which form the outputs go out.
#[derive(Debug, Default)]
pub(super) struct OutputPlan {
    pub(super) outputs: Vec<RequestedOutput>,
    /// Outputs are binary; counts only where the request names no output.
    pub(super) all_binary: bool,
    /// Places that inputs came from, which stay registered until the request is done.
    pub(super) sources: Vec<RegionWindow>,
}

/// Form of one output.
#[derive(Clone, Copy)]
enum OutputForm<'a> {
    Json,
    Binary,
    /// The given number of best classes; the flag is true for binary output.
    Classes(u64, bool),
    Region(&'a RegionWindow),
}

impl OutputPlan {
    fn form(&self, name: &str) -> OutputForm<'_> {
        if self.outputs.is_empty() {
            return if self.all_binary { OutputForm::Binary } else { OutputForm::Json };
        }
        // Of duplicates the last one counts.
        match self.outputs.iter().rev().find(|output| output.name == name) {
            Some(RequestedOutput { region: Some(region), .. }) => OutputForm::Region(region),
            Some(output) if output.classes > 0 => {
                OutputForm::Classes(output.classes, output.binary)
            }
            Some(output) if output.binary => OutputForm::Binary,
            Some(_) | None => OutputForm::Json,
        }
    }
}

/// Encodes a response of a model: JSON, with the binary outputs behind it.
pub(super) fn encode(
    model: &ModelHandle,
    response: &InferenceResponse,
    plan: &OutputPlan,
) -> Result<HttpResponse, ServingError> {
    let mut head = Vec::with_capacity(256);
    head.push(b'{');
    if !response.id.is_empty() {
        head.extend_from_slice(b"\"id\":");
        json::write_str(&mut head, response.id.as_bytes());
        head.push(b',');
    }
    head.extend_from_slice(b"\"model_name\":");
    json::write_str(&mut head, response.model_name.as_bytes());
    head.extend_from_slice(b",\"model_version\":");
    json::write_str(&mut head, response.model_version.as_bytes());
    write_parameters(&mut head, &response.parameters);
    head.extend_from_slice(b",\"outputs\":[");
    let mut binary: Vec<Bytes> = Vec::new();
    for (index, output) in response.outputs.iter().enumerate() {
        if index > 0 {
            head.push(b',');
        }
        match plan.form(&output.name) {
            OutputForm::Classes(classes, as_binary) => {
                let tensor = classification::output(model, response, output, classes)?;
                let labelled = OutputTensor { name: output.name.clone(), tensor };
                let form = if as_binary { OutputForm::Binary } else { OutputForm::Json };
                write_output(&mut head, &labelled, form, &mut binary)?;
            }
            form => write_output(&mut head, output, form, &mut binary)?,
        }
    }
    head.extend_from_slice(b"]}");
    let length = head.len();
    let mut answer = HttpResponse::ok(ContentType::Json, head);
    // Empty tensors leave nothing behind the JSON.
    if binary.iter().any(|bytes| !bytes.is_empty()) {
        answer.content_type = ContentType::Binary;
        answer = answer.with_header("Inference-Header-Content-Length", length.to_string());
        answer.body.append(&mut binary);
    }
    Ok(answer)
}

fn write_parameters(out: &mut Vec<u8>, parameters: &[(String, ParameterValue)]) {
    if parameters.is_empty() {
        return;
    }
    out.extend_from_slice(b",\"parameters\":{");
    for (index, (name, value)) in parameters.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_str(out, name.as_bytes());
        out.push(b':');
        write_parameter(out, value);
    }
    out.push(b'}');
}

/// Value of a parameter.
pub(super) fn write_parameter(out: &mut Vec<u8>, value: &ParameterValue) {
    match value {
        ParameterValue::Bool(value) => out.extend_from_slice(truth(*value)),
        ParameterValue::Int(value) => json::write_i64(out, *value),
        ParameterValue::Uint(value) => json::write_u64(out, *value),
        ParameterValue::Double(value) => json::write_f64(out, *value),
        ParameterValue::String(value) => json::write_str(out, value.as_bytes()),
    }
}

fn truth(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

fn write_output(
    head: &mut Vec<u8>,
    output: &OutputTensor,
    form: OutputForm<'_>,
    binary: &mut Vec<Bytes>,
) -> Result<(), ServingError> {
    let tensor = &output.tensor;
    head.extend_from_slice(b"{\"name\":");
    json::write_str(head, output.name.as_bytes());
    head.extend_from_slice(b",\"datatype\":\"");
    head.extend_from_slice(tensor.dtype().wire_name().as_bytes());
    head.extend_from_slice(b"\",\"shape\":");
    json::write_array(head, tensor.shape(), |out, &dim| json::write_u64(out, dim as u64));
    match form {
        OutputForm::Binary => {
            let bytes = wire_bytes(tensor)?;
            head.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
            json::write_u64(head, bytes.len() as u64);
            head.extend_from_slice(b"}");
            binary.push(bytes);
        }
        OutputForm::Region(place) => place.write(&output.name, &wire_bytes(tensor)?)?,
        OutputForm::Json | OutputForm::Classes(..) => {
            // The text is moved where it cannot grow.
            let elements = tensor.shape().iter().product::<usize>();
            if !has_memory(elements.saturating_mul(ELEMENT_TEXT_BYTES).saturating_add(head.len())) {
                return Err(ServingError::unavailable(format!(
                    "the system has no memory for {elements} elements of '{}' as text; ask for binary data",
                    output.name
                )));
            }
            head.extend_from_slice(b",\"data\":");
            write_data(head, &tensor.contiguous()?)?;
        }
    }
    head.push(b'}');
    Ok(())
}

/// Elements in row-major order as one flat array.
pub(super) fn write_data(out: &mut Vec<u8>, tensor: &Tensor) -> Result<(), ServingError> {
    macro_rules! numbers {
        ($type:ty, $write:expr) => {
            json::write_array(out, tensor.as_slice::<$type>()?, $write)
        };
    }
    match tensor.dtype() {
        DataType::Bool => numbers!(bool, |out, &value| out.extend_from_slice(truth(value))),
        DataType::Uint8 => numbers!(u8, |out, &value| json::write_u64(out, value.into())),
        DataType::Uint16 => numbers!(u16, |out, &value| json::write_u64(out, value.into())),
        DataType::Uint32 => numbers!(u32, |out, &value| json::write_u64(out, value.into())),
        DataType::Uint64 => numbers!(u64, |out, &value| json::write_u64(out, value)),
        DataType::Int8 => numbers!(i8, |out, &value| json::write_i64(out, value.into())),
        DataType::Int16 => numbers!(i16, |out, &value| json::write_i64(out, value.into())),
        DataType::Int32 => numbers!(i32, |out, &value| json::write_i64(out, value.into())),
        DataType::Int64 => numbers!(i64, |out, &value| json::write_i64(out, value)),
        DataType::Fp32 => numbers!(f32, |out, &value| json::write_f64(out, value.into())),
        DataType::Fp64 => numbers!(f64, |out, &value| json::write_f64(out, value)),
        DataType::Bytes => {
            numbers!(ByteString, |out, value| json::write_str(out, value.as_bytes()));
        }
        datatype @ (DataType::Fp16 | DataType::Bf16 | DataType::Small(_)) => {
            return Err(ServingError::invalid_arg(format!(
                "sending {datatype} data via JSON is not supported. Please use the binary data \
                 format for output"
            )));
        }
    }
    Ok(())
}
