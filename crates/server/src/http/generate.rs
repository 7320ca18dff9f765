//! `generate` and `generate_stream`: inference with plain JSON in, and plain JSON or server-sent events out.
//!
//! A member of the request that is called like an input of the model becomes that tensor, every other one a parameter
//! of the request; the members of `parameters` are taken likewise. Responses hold outputs and parameters side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use galatea_serving::core::TensorMetadata;
use galatea_serving::trace::RequestTrace;
use galatea_serving::{
    CancelToken, InferenceRequest, InferenceResponse, InputData, InputTensor, ModelHandle,
    ServingError, SinkAnswer,
};
use galatea_tensor::OrderedMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, channel, unbounded_channel};

use super::decode::{check_json_size, parameter, parse_memory, parsed_json, values};
use super::encode::{write_data, write_parameter};
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::json::{self, JsonKind, JsonValue};
use crate::tasks::boxed;

/// Member whose members are taken as those of the request.
const NESTED: &str = "parameters";

/// Error for a model that gives several responses, or none.
const NOT_ONE: &str = "generate expects model to produce exactly 1 response, use generate stream for model that \
                       generates various number of responses";

/// Responses that a client has not taken, in bytes; with more the request is cancelled.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// Size that a response counts as beside its tensors, in bytes.
const RESPONSE_BYTES: usize = 1024;
/// Events that are written and wait for the connection.
const MAX_EVENTS: usize = 16;

/// Gives the one response of a model.
pub(super) fn generate(call: &CallContext<'_>) -> EndpointReply {
    let started = match start(call) {
        Ok(started) => started,
        Err(error) => {
            return EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error));
        }
    };
    EndpointReply::Pending(Box::pin(async move {
        let trace = started.trace.clone();
        HttpResponse { trace, ..one(started).await }
    }))
}

/// Gives the responses of a model as events.
pub(super) fn generate_stream(call: &CallContext<'_>) -> EndpointReply {
    match start(call) {
        Ok(started) => EndpointReply::Pending(Box::pin(async move {
            let trace = started.trace.clone();
            HttpResponse { trace, ..many(started).await }
        })),
        // There is no stream yet.
        Err(error) => EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error)),
    }
}

/// Reads a request and hands it to its model.
fn start(call: &CallContext<'_>) -> Result<StartedInference, ServingError> {
    let model = call.app.core().resolve(call.model, call.version)?;
    let request = read(call, &model)?;
    StartedInference::new(call, &model, request)
}

/// The answers of an inference that nobody has looked at, as far as they may grow.
struct GenerateBacklog {
    bytes: AtomicUsize,
    limit: usize,
    full: AtomicBool,
    overflow: Notify,
}

impl GenerateBacklog {
    fn new(limit: usize) -> Arc<Self> {
        let bytes = AtomicUsize::new(0);
        let full = AtomicBool::new(false);
        Arc::new(Self { bytes, limit, full, overflow: Notify::new() })
    }

    /// Counts an answer and returns whether there was room for it. Once full, it stays full.
    fn admits(&self, answer: &SinkAnswer) -> bool {
        let bytes = size(answer);
        let waiting = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        if waiting > self.limit {
            self.full.store(true, Ordering::Release);
            self.overflow.notify_one();
        }
        !self.full.load(Ordering::Acquire)
    }

    fn release(&self, answer: &SinkAnswer) {
        self.bytes.fetch_sub(size(answer), Ordering::AcqRel);
    }
}

/// Memory that an answer holds, roughly.
fn size(answer: &SinkAnswer) -> usize {
    let outputs = answer.result.iter().flatten().flat_map(|response| &response.outputs);
    RESPONSE_BYTES + outputs.map(|output| output.tensor.size_bytes()).sum::<usize>()
}

/// An inference whose answers are on their way. Dropping it cancels the inference.
struct StartedInference {
    answers: UnboundedReceiver<SinkAnswer>,
    backlog: Arc<GenerateBacklog>,
    cancel: CancelToken,
    trace: Option<Arc<RequestTrace>>,
}

impl StartedInference {
    fn new(
        call: &CallContext<'_>,
        model: &ModelHandle,
        mut request: InferenceRequest,
    ) -> Result<Self, ServingError> {
        request.trace = call.trace();
        request.token_meter = call.client.token_meter();
        let trace = request.trace.clone();
        let cancel = request.cancel.clone();
        let (to, answers) = unbounded_channel();
        let backlog = GenerateBacklog::new(MAX_WAITING_BYTES);
        let counting = Arc::clone(&backlog);
        // Whoever reads the answers cancels the request: not from here, where the core may hold a lock.
        let sink = move |answer| {
            if counting.admits(&answer) {
                // Nobody waits any more when the client went away.
                drop(to.send(answer));
            }
        };
        model.infer(request, Box::new(sink))?;
        Ok(Self { answers, backlog, cancel, trace })
    }

    /// The next response or error; `None` when the model has finished.
    async fn next(&mut self) -> Option<Result<InferenceResponse, ServingError>> {
        loop {
            let answer = self.answers.recv().await?;
            self.backlog.release(&answer);
            match answer.result {
                Ok(Some(response)) => return Some(Ok(response)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Drop for StartedInference {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

async fn one(mut started: StartedInference) -> HttpResponse {
    let first = started.next().await;
    let second = started.next().await;
    match (first, second) {
        (Some(Ok(response)), None) => match object(&response) {
            Ok(body) => HttpResponse::ok(ContentType::Json, body),
            Err(error) => HttpResponse::error(400, ContentType::Json, &error.message),
        },
        // The model's own errors are the request's fault here, whatever their code.
        (Some(Err(error)), _) => HttpResponse::error(400, ContentType::Json, &error.message),
        _ => HttpResponse::error(200, ContentType::Json, NOT_ONE),
    }
}

async fn many(mut started: StartedInference) -> HttpResponse {
    let Some(first) = started.next().await else {
        return HttpResponse::empty(ContentType::EventStream);
    };
    let first = first.and_then(|response| object(&response));
    let status = if first.is_ok() { 200 } else { 400 };
    let (to, pieces) = channel(MAX_EVENTS);
    // There is room, and the receiver is still here.
    drop(to.try_send(piece(first)));
    tokio::spawn(boxed(forward(started, to)));
    HttpResponse { status, ..HttpResponse::streamed(ContentType::EventStream, pieces) }
}

/// Writes the responses as events, as fast as the client takes them.
async fn forward(mut started: StartedInference, to: Sender<Bytes>) {
    let backlog = Arc::clone(&started.backlog);
    let events = to.clone();
    let all = async move {
        while let Some(next) = started.next().await {
            let event = piece(next.and_then(|response| object(&response)));
            if events.send(event).await.is_err() {
                return;
            }
        }
    };
    // Whatever ends first, what is left of the inference is dropped with it, and so cancelled.
    tokio::select! {
        () = all => return,
        () = to.closed() => return,
        () = backlog.overflow.notified() => {}
    }
    let text = format!("the client leaves more than {} bytes of responses waiting", backlog.limit);
    // The client may be gone, which is as good.
    drop(to.send(piece(Err(ServingError::unavailable(text)))).await);
}

fn piece(result: Result<Vec<u8>, ServingError>) -> Bytes {
    Bytes::from(event(&result.unwrap_or_else(|error| failure(&error))))
}

fn event(body: &[u8]) -> Vec<u8> {
    [b"data: ", body, b"\n\n"].concat()
}

fn failure(error: &ServingError) -> Vec<u8> {
    let mut body = b"{\"error\":".to_vec();
    json::write_str(&mut body, error.message.as_bytes());
    body.push(b'}');
    body
}

/// A response as one object, its members in alphabetical order; tensors of one element are that element.
fn object(response: &InferenceResponse) -> Result<Vec<u8>, ServingError> {
    let mut members: OrderedMap<&str, Vec<u8>> = OrderedMap::new();
    let text = |text: &str| {
        let mut out = Vec::new();
        json::write_str(&mut out, text.as_bytes());
        out
    };
    if !response.id.is_empty() {
        members.insert("id", text(&response.id));
    }
    members.insert("model_name", text(&response.model_name));
    members.insert("model_version", text(&response.model_version));
    for (name, value) in &response.parameters {
        let mut out = Vec::new();
        write_parameter(&mut out, value);
        members.insert(name, out);
    }
    for output in &response.outputs {
        let mut out = Vec::new();
        write_data(&mut out, &output.tensor.contiguous()?)?;
        if output.tensor.elements() == 1 {
            let inner = out.get(1..out.len() - 1).map(<[u8]>::to_vec);
            out = inner.unwrap_or_default();
        }
        members.insert(&output.name, out);
    }
    let mut body = vec![b'{'];
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        json::write_str(&mut body, name.as_bytes());
        body.push(b':');
        body.extend_from_slice(value);
    }
    body.push(b'}');
    Ok(body)
}

fn read(call: &CallContext<'_>, model: &ModelHandle) -> Result<InferenceRequest, ServingError> {
    let encoding = call.head.header("content-encoding").unwrap_or("");
    if !["", "identity"].contains(&encoding) {
        return Err(ServingError::invalid_arg(
            "Unsupported content-encoding, only 'identity' is supported.",
        ));
    }
    check_json_size(&call.body, call.app.limits())?;
    let _memory = parse_memory(call, call.body.len())?;
    let document = parsed_json(&call.body)?;
    let mut reader = MemberReader {
        call,
        inputs: model.inputs(),
        request: InferenceRequest {
            model_name: call.model.to_owned(),
            model_version: call.version.to_owned(),
            ..InferenceRequest::default()
        },
    };
    reader.root(document.root())?;
    let mut request = reader.request;
    call.forward_headers(&mut request.parameters)?;
    Ok(request)
}

/// Maps the members of a request.
struct MemberReader<'a> {
    call: &'a CallContext<'a>,
    inputs: Vec<TensorMetadata>,
    request: InferenceRequest,
}

impl MemberReader<'_> {
    fn root(&mut self, root: JsonValue<'_>) -> Result<(), ServingError> {
        if !matches!(root.kind(), JsonKind::Object(_)) {
            return Err(ServingError::internal("attempt to get members for non-object"));
        }
        if let Some(id) = root.member("id") {
            let JsonKind::String(id) = id.kind() else {
                return Err(ServingError::internal(
                    "Unable to parse 'id': attempt to access JSON non-string as string",
                ));
            };
            self.request.id = String::from_utf8_lossy(id).into_owned();
        }
        for (name, value) in root.members() {
            if name == NESTED.as_bytes() {
                self.nested(value)?;
            } else {
                self.member(name, value)?;
            }
        }
        Ok(())
    }

    fn nested(&mut self, value: JsonValue<'_>) -> Result<(), ServingError> {
        if self.inputs.iter().any(|input| input.name == NESTED) {
            return Err(ServingError::invalid_arg(format!(
                "Keyword '{NESTED}' for nested schema also given as input tensor name"
            )));
        }
        if !matches!(value.kind(), JsonKind::Object(_)) {
            return Err(ServingError::internal(format!(
                "Expected JSON object for keyword: '{NESTED}': attempt to access JSON non-object as object"
            )));
        }
        for (name, value) in value.members() {
            self.member(name, value).map_err(|error| {
                let text = format!("Converting keyword: '{NESTED}': {}", error.message);
                ServingError::new(error.code, text)
            })?;
        }
        Ok(())
    }

    fn member(&mut self, name: &[u8], value: JsonValue<'_>) -> Result<(), ServingError> {
        let name = String::from_utf8_lossy(name).into_owned();
        let input = self.inputs.iter().find(|input| input.name == name);
        if let Some(input) = input {
            let tensor = self.tensor(input, value)?;
            self.request.inputs.push(tensor);
            return Ok(());
        }
        let value = parameter(value).ok_or_else(|| {
            ServingError::invalid_arg(format!(
                "parameter '{name}' has invalid type. It should be either 'int', 'bool', or 'string'."
            ))
        })?;
        self.request.parameters.push((name, value));
        Ok(())
    }

    fn tensor(
        &self,
        input: &TensorMetadata,
        value: JsonValue<'_>,
    ) -> Result<InputTensor, ServingError> {
        let count = match value.kind() {
            JsonKind::Array(_) => value.elements().count(),
            _ => 1,
        };
        let shape = fitted(&input.shape, count).ok_or_else(|| {
            ServingError::invalid_arg(format!(
                "The schema can not convert input '{}' to tensor with proper shape",
                input.name
            ))
        })?;
        let limits = self.call.app.limits();
        let bytes = values(value, input.datatype, count, &input.name, limits)?;
        Ok(InputTensor {
            name: input.name.clone(),
            datatype: input.datatype,
            shape,
            data: InputData::Raw(bytes.into()),
        })
    }
}

/// Returns the shape of so many elements that come without one: fixed dimensions as they are, and what is left in the
/// last variable one, of which the batch is the first. The other variable ones are 1.
fn fitted(dims: &[i64], count: usize) -> Option<Vec<i64>> {
    let mut rest = i64::try_from(count).ok()?;
    for &dim in dims.iter().filter(|&&dim| dim >= 0) {
        if rest.checked_rem(dim)? != 0 {
            return None;
        }
        rest /= dim;
    }
    let mut shape = dims.to_vec();
    for dim in shape.iter_mut().rev().filter(|dim| **dim < 0) {
        *dim = std::mem::replace(&mut rest, 1);
    }
    (rest == 1).then_some(shape)
}

#[cfg(test)]
mod tests {
    use galatea_serving::{OutputTensor, ParameterValue};
    use galatea_tensor::Tensor;

    use super::*;

    #[test]
    fn shapes_are_fitted_to_the_number_of_elements() {
        for (dims, count, shape) in [
            (&[-1, 16][..], 16, Some(vec![1, 16])),
            (&[-1, 16], 32, Some(vec![2, 16])),
            (&[-1, 16], 33, None),
            (&[-1, -1], 5, Some(vec![1, 5])),
            (&[-1, 3, -1], 6, Some(vec![1, 3, 2])),
            (&[-1, 2], 6, Some(vec![3, 2])),
            (&[-1, 2], 5, None),
            (&[1], 2, None),
            (&[1], 0, None),
            (&[-1], 0, Some(vec![0])),
            (&[-1, -1], 0, Some(vec![1, 0])),
            (&[], 1, Some(vec![])),
            (&[], 2, None),
            (&[0], 4, None),
        ] {
            assert_eq!(fitted(dims, count), shape, "{count} in {dims:?}");
        }
    }

    fn response(elements: usize) -> SinkAnswer {
        let tensor = Tensor::from_vec(&[elements], vec![7_u8; elements]).unwrap();
        let response = InferenceResponse {
            model_name: "m".to_owned(),
            model_version: "1".to_owned(),
            id: String::new(),
            parameters: Vec::new(),
            outputs: vec![OutputTensor { name: "o".to_owned(), tensor }],
        };
        SinkAnswer { result: Ok(Some(response)), is_final: false }
    }

    fn started(limit: usize) -> (tokio::sync::mpsc::UnboundedSender<SinkAnswer>, StartedInference) {
        let (sender, answers) = unbounded_channel();
        let backlog = GenerateBacklog::new(limit);
        let cancel = CancelToken::new();
        (sender, StartedInference { answers, backlog, cancel, trace: None })
    }

    #[tokio::test]
    async fn a_client_that_takes_events_slowly_gets_them_all() {
        let (sender, started) = started(10 * RESPONSE_BYTES);
        let backlog = Arc::clone(&started.backlog);
        let (to, mut events) = channel(MAX_EVENTS);
        let forwarding = tokio::spawn(forward(started, to));
        for _ in 0..100 {
            let answer = response(1);
            assert!(backlog.admits(&answer));
            sender.send(answer).unwrap();
            assert!(events.recv().await.unwrap().starts_with(b"data: {\"model_name\":"));
        }
        drop(sender);
        assert_eq!(events.recv().await, None);
        forwarding.await.unwrap();
        assert_eq!(backlog.bytes.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_cut_off() {
        let (sender, started) = started(10 * RESPONSE_BYTES);
        let backlog = Arc::clone(&started.backlog);
        let cancel = started.cancel.clone();
        let (to, mut events) = channel(1);
        let forwarding = tokio::spawn(forward(started, to));
        let mut sent = 0;
        while backlog.admits(&response(RESPONSE_BYTES)) {
            // Refused when the reader is gone already.
            drop(sender.send(response(RESPONSE_BYTES)));
            sent += 1;
            assert!(sent < 100, "the backlog is not bounded");
        }
        assert!(!backlog.admits(&response(1)));
        sender.closed().await;
        assert!(cancel.is_cancelled());
        let mut last = Bytes::new();
        while let Some(event) = events.recv().await {
            last = event;
        }
        assert!(last.starts_with(b"data: {\"error\":\"the client leaves more than 10240"));
        forwarding.await.unwrap();
    }

    #[test]
    fn members_are_sorted_and_single_elements_stand_alone() {
        let output = |name: &str, tensor| OutputTensor { name: name.to_owned(), tensor };
        let response = InferenceResponse {
            model_name: "m".to_owned(),
            model_version: "1".to_owned(),
            id: "i".to_owned(),
            parameters: vec![("p".to_owned(), ParameterValue::Bool(true))],
            outputs: vec![
                output("b", Tensor::from_vec(&[1, 1], vec![7_i32]).unwrap()),
                output("A", Tensor::from_vec(&[2], vec![1_i32, 2]).unwrap()),
            ],
        };
        let text = String::from_utf8(object(&response).unwrap()).unwrap();
        let expected =
            r#"{"A":[1,2],"b":7,"id":"i","model_name":"m","model_version":"1","p":true}"#;
        assert_eq!(text, expected);
    }
}
