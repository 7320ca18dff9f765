//! The inference endpoint.

use bytes::Bytes;
use galatea_serving::trace::RequestTrace;
use galatea_serving::{
    ErrorCode, InferenceRequest, InferenceResponse, InputData, InputTensor, ModelHandle,
    ServingError,
};
use galatea_tensor::DataType;

use super::compression::{self, BodyCoding};
use super::decode::{decode, request_prefix};
use super::encode::{OutputPlan, encode};
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::pending::{PendingInference, submit};
use crate::tensor_wire::element_count;
use std::sync::Arc;

/// Runs one inference.
pub(super) fn infer(call: &CallContext<'_>) -> EndpointReply {
    match start(call) {
        Ok(StartedRequest { model, pending, plan, trace }) => {
            let dialect = call.dialect;
            let wanted = call.head.header("accept-encoding").filter(|_| dialect.compresses());
            let coding = compression::accepted(wanted);
            EndpointReply::Pending(Box::pin(async move {
                let answer = pending.await;
                let response = dialect.apply_headers(finish(&model, answer, &plan, coding));
                HttpResponse { trace, ..response }
            }))
        }
        Err(response) => EndpointReply::Ready(response),
    }
}

/// An inference under way, and what its answer needs.
struct StartedRequest {
    model: ModelHandle,
    pending: PendingInference,
    plan: OutputPlan,
    trace: Option<Arc<RequestTrace>>,
}

/// Everything before the answer. Errors before the body is looked at are plain text, as Triton's are.
fn start(call: &CallContext<'_>) -> Result<StartedRequest, HttpResponse> {
    let early = |error: ServingError| HttpResponse::failure(ContentType::Text, &error);
    let model = call.app.core().resolve(call.model, call.version).map_err(early)?;
    if model.is_decoupled() {
        return Err(early(ServingError::unsupported(
            "HTTP end point doesn't support models with decoupled transaction policy",
        )));
    }
    let encoding = call.head.header("content-encoding").filter(|_| call.dialect.compresses());
    let limit = call.app.limits().max_input_bytes;
    let body = compression::decompress(encoding, call.body.clone(), limit).map_err(|error| {
        let unknown = error.code == ErrorCode::Unsupported;
        let response = early(error);
        if unknown { response.with_header("Accept-Encoding", "gzip, deflate") } else { response }
    })?;
    let json_bytes = call.dialect.json_length(call.head, body.len()).map_err(early)?;
    let decoded = match json_bytes {
        0 => raw_request(call, &model, body),
        _ => decode(call, &body, json_bytes),
    };
    let late = |error: ServingError| HttpResponse::failure(ContentType::Json, &error);
    let (mut request, plan) = decoded.map_err(late)?;
    call.forward_headers(&mut request.parameters).map_err(late)?;
    request.trace = call.trace();
    request.token_meter = call.client.token_meter();
    let trace = request.trace.clone();
    let pending = submit(&model, request).map_err(late)?;
    Ok(StartedRequest { model, pending, plan, trace })
}

fn finish(
    model: &ModelHandle,
    answer: Result<InferenceResponse, ServingError>,
    plan: &OutputPlan,
    coding: BodyCoding,
) -> HttpResponse {
    let encoded = answer.and_then(|answer| encode(model, &answer, plan));
    let mut response = match encoded {
        Ok(response) => response,
        Err(error) => return HttpResponse::failure(ContentType::Text, &error),
    };
    if coding != BodyCoding::Identity {
        match compression::compress(coding, &response.body) {
            Ok(packed) => {
                response.body = vec![packed.into()];
                response = response.with_header("Content-Encoding", coding.name());
            }
            Err(error) => tracing::warn!("a response goes out uncompressed: {error}"),
        }
    }
    response
}

/// A body that is the one input of the model, without any description. All outputs come back binary.
fn raw_request(
    call: &CallContext<'_>,
    model: &ModelHandle,
    body: Bytes,
) -> Result<(InferenceRequest, OutputPlan), ServingError> {
    let name = call.model;
    let limit = call.app.limits().max_input_bytes;
    let prefix = request_prefix("");
    if body.len() > limit {
        return Err(ServingError::invalid_arg(format!(
            "Raw input has a byte_size ({} bytes) that exceeds the maximum allowed value of \
             {limit} bytes. Use --http-max-input-size to increase the limit.",
            body.len()
        )));
    }
    let inputs = model.inputs();
    let [input] = inputs.as_slice() else {
        return Err(ServingError::invalid_arg(format!(
            "{prefix}Raw request must only have 1 input (found 1) to be deduced but got {} inputs \
             in '{name}' model configuration",
            inputs.len()
        )));
    };
    let mut shape = input.shape.clone();
    if let Some(batch) = shape.first_mut().filter(|_| model.has_batches()) {
        *batch = 1;
    }
    let data = if input.datatype == DataType::Bytes {
        if element_count(&shape) != Some(1) {
            return Err(ServingError::invalid_arg(format!(
                "{prefix}For BYTE datatype raw input '{}', the model must have input shape [1]",
                input.name
            )));
        }
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes()[..], &body].concat().into()
    } else {
        deduce_shape(&input.name, input.datatype, &mut shape, body.len())?;
        let elements = element_count(&shape).unwrap_or(0);
        let expected = elements.saturating_mul(input.datatype.size_bytes().unwrap_or(1));
        if expected != body.len() {
            return Err(ServingError::invalid_arg(format!(
                "{prefix}input byte size mismatch for input 'raw_input' for model '{name}'. \
                 Expected {expected}, got {}",
                body.len()
            )));
        }
        body
    };
    let input = InputTensor {
        name: input.name.clone(),
        datatype: input.datatype,
        shape,
        data: InputData::Raw(data),
    };
    let request = InferenceRequest {
        model_name: name.to_owned(),
        model_version: call.version.to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    };
    Ok((request, OutputPlan { all_binary: true, ..OutputPlan::default() }))
}

/// Gives the one variable dimension the size that the bytes leave for it.
fn deduce_shape(
    name: &str,
    datatype: DataType,
    shape: &mut [i64],
    bytes: usize,
) -> Result<(), ServingError> {
    let fixed: Vec<i64> = shape.iter().copied().filter(|&dim| dim >= 0).collect();
    let per_item = element_count(&fixed)
        .and_then(|count| count.checked_mul(datatype.size_bytes().unwrap_or(1)));
    let mut variable = shape.iter_mut().filter(|dim| **dim < 0);
    let Some(dim) = variable.next() else { return Ok(()) };
    if variable.next().is_some() {
        return Err(ServingError::invalid_arg(format!(
            "{}The shape of the raw input '{name}' can not be deduced because there are more than \
             one variable-sized dimension",
            request_prefix("")
        )));
    }
    let count = per_item.and_then(|per_item| bytes.checked_div(per_item)).unwrap_or(0);
    *dim = i64::try_from(count).unwrap_or(i64::MAX);
    Ok(())
}
