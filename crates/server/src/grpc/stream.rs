//! `ModelStreamInfer`: many requests and their responses on one call.
//!
//! Requests go to the core in the order in which they come. Models that are not decoupled are answered in that order
//! too; responses of decoupled ones leave as they are made. An error takes the place of a response and the call goes
//! on, except where the client asks with the metadata `triton_grpc_error: true` for a status.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use galatea_serving::trace::RequestTrace;
use galatea_serving::{CancelToken, ModelHandle, ServingError, SinkAnswer};
use galatea_tensor::OrderedMap;
use prost::Message;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::codegen::tokio_stream::Stream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status, Streaming};

use super::compression::is_compressed;
use super::counted_body::no_memory;
use super::decode::{self, OutputForms};
use super::encode;
use super::grpc_services::{GrpcServices, token_meter};
use super::proto::inference::infer_parameter::ParameterChoice;
use super::proto::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};
use crate::access::{AccessKey, AccessRefusal, ClientPass};
use crate::app::ServerState;
use crate::body_budget::BodyLease;
use crate::status::{SHUTTING_DOWN, grpc_status};
use crate::tasks::boxed;
use crate::trace;

/// Response parameter: true on the last response of a request.
const FINAL: &str = "triton_final_response";
/// Request parameter: true if the client wants an empty final response.
const EMPTY_FINAL: &str = "triton_enable_empty_final_response";
/// Metadata that asks for a status in the place of an error message.
const STATUS_ERRORS: &str = "triton_grpc_error";

/// Requests of a call that are not answered, in KiB; more are not read before.
const MAX_REQUESTS_KIB: u32 = 256 * 1024;
/// Size that each request counts as at least, in KiB.
const MIN_REQUEST_KIB: u32 = 16;
/// Responses of a call that its client has not taken, in bytes.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// Part of them that does not count in the memory that all answers share.
const UNCOUNTED_BYTES: usize = 64 << 10;

type StreamItem = Result<ModelStreamInferResponse, Status>;

/// A response on its way out, with what it frees when it is taken.
struct OutgoingResponse {
    item: StreamItem,
    bytes: usize,
    _room: Option<OwnedSemaphorePermit>,
}

/// Room for responses that wait for the client. A caller that gets `None` notifies the call, holding no lock.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamRoom {
    Left,
    None,
}

/// State that the requests of one call share.
struct StreamCall {
    app: Arc<ServerState>,
    /// Key of the client; none where keys are not asked for.
    key: Option<Arc<AccessKey>>,
    out: AnswerPath,
    /// Cancels all requests that are open, and ends the reading of more.
    cancel: CancelToken,
    runtime: Handle,
    status_errors: bool,
    room: Arc<Semaphore>,
    open: Mutex<HashMap<u64, CancelToken>>,
    next: AtomicU64,
}

/// The way of answers to the client, for as many bytes as may wait on it.
struct AnswerPath {
    items: UnboundedSender<OutgoingResponse>,
    waiting: Arc<WaitingBytes>,
    limit: usize,
    order: Mutex<AnswerOrder>,
    /// Status behind the last answer, where the client is to have one that is an error.
    end: Mutex<Option<Status>>,
}

impl Drop for AnswerPath {
    fn drop(&mut self) {
        if let Some(status) = lock(&self.end).take() {
            // Nobody takes it when the client has gone.
            drop(self.items.send(OutgoingResponse { item: Err(status), bytes: 0, _room: None }));
        }
    }
}

/// Bytes of responses that a client has not taken, and their part of the memory for answers.
#[derive(Default)]
struct WaitingBytes {
    bytes: AtomicUsize,
    memory: Mutex<BodyLease>,
}

impl WaitingBytes {
    /// Counts a response that waits; `false` where it finds no room.
    fn add(&self, bytes: usize, limit: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        let all = before.saturating_add(bytes);
        let fits =
            before <= limit && (all <= UNCOUNTED_BYTES || lock(&self.memory).cover(all).is_ok());
        if !fits {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
        fits
    }

    /// The client has taken a response.
    fn remove(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        if before > UNCOUNTED_BYTES {
            let mut memory = lock(&self.memory);
            memory.shrink(self.bytes.load(Ordering::Acquire));
        }
    }
}

impl AnswerPath {
    /// Counts an answer, which now waits for its turn or for the client. Where there is no room the call ends by a
    /// status, out of turn.
    fn admit(
        &self,
        item: StreamItem,
        room: Option<OwnedSemaphorePermit>,
    ) -> Option<OutgoingResponse> {
        let bytes = item.as_ref().map_or(0, Message::encoded_len);
        if self.waiting.add(bytes, self.limit) {
            return Some(OutgoingResponse { item, bytes, _room: room });
        }
        let text = format!(
            "the client leaves more than {} bytes of responses waiting, or other clients leave no memory for more",
            self.limit
        );
        let item = Err(Status::resource_exhausted(text));
        // Nobody takes it when the client has gone.
        drop(self.items.send(OutgoingResponse { item, bytes: 0, _room: room }));
        None
    }

    /// Sends an answer.
    fn send(&self, item: StreamItem, room: Option<OwnedSemaphorePermit>) -> StreamRoom {
        let Some(outgoing) = self.admit(item, room) else { return StreamRoom::None };
        drop(self.items.send(outgoing));
        StreamRoom::Left
    }

    /// Sends the answer that has a place in the order as soon as those before it have gone.
    fn send_in_turn(
        &self,
        place: u64,
        item: StreamItem,
        room: Option<OwnedSemaphorePermit>,
    ) -> StreamRoom {
        let Some(outgoing) = self.admit(item, room) else { return StreamRoom::None };
        // Sent under the lock: two threads must not overtake each other on the way out.
        let mut order = lock(&self.order);
        for outgoing in order.finish(place, outgoing) {
            drop(self.items.send(outgoing));
        }
        StreamRoom::Left
    }
}

/// Holds back the answers of models that are not decoupled until it is their turn.
#[derive(Default)]
struct AnswerOrder {
    admitted: u64,
    next: u64,
    held: OrderedMap<u64, OutgoingResponse>,
}

impl AnswerOrder {
    fn admit(&mut self) -> u64 {
        self.admitted += 1;
        self.admitted - 1
    }

    /// The answers that may go, now that this one is there.
    fn finish(&mut self, place: u64, outgoing: OutgoingResponse) -> Vec<OutgoingResponse> {
        self.held.insert(place, outgoing);
        let mut ready = Vec::new();
        while let Some(outgoing) = self.held.remove(&self.next) {
            self.next += 1;
            ready.push(outgoing);
        }
        ready
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Responses of a call. Dropping them cancels what is under way.
pub(super) struct CallResponses {
    items: UnboundedReceiver<OutgoingResponse>,
    waiting: Arc<WaitingBytes>,
    ended: bool,
    cancel: CancelToken,
}

impl std::fmt::Debug for CallResponses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responses").finish_non_exhaustive()
    }
}

impl Stream for CallResponses {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.items.poll_recv(context).map(|outgoing| {
            let outgoing = outgoing?;
            self.waiting.remove(outgoing.bytes);
            if outgoing.item.is_err() {
                // A status ends the call.
                self.ended = true;
                self.cancel.cancel();
            }
            Some(outgoing.item)
        })
    }
}

impl Drop for CallResponses {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Starts to read the requests of a call and to answer them.
pub(super) fn start(
    service: &GrpcServices,
    app: &Arc<ServerState>,
    request: Request<Streaming<ModelInferRequest>>,
) -> CallResponses {
    let (metadata, mut extensions, requests) = request.into_parts();
    let (out, items) = unbounded_channel();
    let memory = Mutex::new(app.answer_budget().begin());
    let waiting = Arc::new(WaitingBytes { memory, ..WaitingBytes::default() });
    let wanted = metadata.get(STATUS_ERRORS).and_then(|value| value.to_str().ok());
    let cancel = CancelToken::new();
    let call = Arc::new(StreamCall {
        app: Arc::clone(app),
        key: extensions.remove(),
        out: AnswerPath {
            items: out,
            waiting: Arc::clone(&waiting),
            limit: MAX_WAITING_BYTES,
            order: Mutex::default(),
            end: Mutex::default(),
        },
        cancel: cancel.clone(),
        runtime: Handle::current(),
        status_errors: wanted == Some("true"),
        room: Arc::new(Semaphore::new(usize::try_from(MAX_REQUESTS_KIB).unwrap_or(usize::MAX))),
        open: Mutex::default(),
        next: AtomicU64::new(0),
    });
    let weak = Arc::downgrade(&call);
    cancel.on_cancel(move || {
        if let Some(call) = weak.upgrade() {
            call.cancel_all();
        }
    });
    tokio::spawn(boxed(read(call, service.clone(), metadata, requests, cancel.clone())));
    CallResponses { items, waiting, ended: false, cancel }
}

/// Takes in requests until the client has no more or goes away.
async fn read(
    call: Arc<StreamCall>,
    service: GrpcServices,
    metadata: MetadataMap,
    mut requests: Streaming<ModelInferRequest>,
    cancel: CancelToken,
) {
    let (gone, went) = tokio::sync::oneshot::channel::<()>();
    let mut gone = Some(gone);
    cancel.on_cancel(move || drop(gone.take()));
    let reading = async {
        loop {
            let message = tokio::select! {
                message = requests.message() => message,
                // A client that rests must not keep a stopping server up; what it asked for is still answered. What
                // it sends from now on, or has sent unread, would have no answer: a status says so.
                () = call.app.stopping() => {
                    *lock(&call.out.end) = Some(Status::unavailable(SHUTTING_DOWN));
                    return;
                }
            };
            match message {
                Ok(Some(message)) => call.take(&service, &metadata, message).await,
                Ok(None) => return,
                Err(status) => {
                    call.heed(call.out.send(Err(status), None));
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = reading => {}
        _ = went => {}
    }
}

/// Room of its call and memory of all that a request has taken.
struct TakenRoom {
    room: OwnedSemaphorePermit,
    memory: BodyLease,
}

/// One request of a call, as its answers need it.
struct AskedRequest {
    call: Arc<StreamCall>,
    number: u64,
    /// Place among those that are answered in order; none for decoupled models.
    place: Option<u64>,
    id: String,
    model: String,
    forms: OutputForms,
    empty_final: bool,
    room: Option<OwnedSemaphorePermit>,
    _memory: BodyLease,
    /// Place among the requests of its key, until it has ended.
    pass: Option<ClientPass>,
    trace: Option<Arc<RequestTrace>>,
}

impl StreamCall {
    /// Hands a request to the core, as soon as there is room for it.
    async fn take(
        self: &Arc<Self>,
        service: &GrpcServices,
        metadata: &MetadataMap,
        message: ModelInferRequest,
    ) {
        let kib = u32::try_from(message.encoded_len() / 1024).unwrap_or(u32::MAX);
        let kib = kib.clamp(MIN_REQUEST_KIB, MAX_REQUESTS_KIB);
        // The semaphore is never closed.
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(kib).await else { return };
        let bytes = message.encoded_len();
        // A few bytes may stand for many, which stay until the request is answered.
        let memory = match is_compressed(metadata) {
            true => self.app.body_budget().take(bytes).await,
            false => Ok(BodyLease::default()),
        };
        let Ok(memory) = memory else {
            return self.heed(self.out.send(Err(no_memory()), None));
        };
        let taken = TakenRoom { room, memory };
        if bytes > (1 << 20) {
            tokio::task::block_in_place(|| self.submit(service, metadata, message, taken));
        } else {
            self.submit(service, metadata, message, taken);
        }
    }

    fn submit(
        self: &Arc<Self>,
        service: &GrpcServices,
        metadata: &MetadataMap,
        message: ModelInferRequest,
        taken: TakenRoom,
    ) {
        let model = self.app.core().resolve(&message.model_name, &message.model_version);
        let decoupled = model.as_ref().is_ok_and(ModelHandle::is_decoupled);
        let empty_final = message
            .parameters
            .get(EMPTY_FINAL)
            .is_some_and(|value| value.parameter_choice == Some(ParameterChoice::BoolParam(true)));
        let mut asked = AskedRequest {
            call: Arc::clone(self),
            number: self.next.fetch_add(1, Ordering::Relaxed),
            place: (!decoupled).then(|| lock(&self.out.order).admit()),
            id: message.id.clone(),
            model: message.model_name.clone(),
            forms: OutputForms::default(),
            empty_final,
            room: Some(taken.room),
            _memory: taken.memory,
            pass: None,
            trace: None,
        };
        match self.key.as_ref().map(AccessKey::begin).transpose() {
            Ok(pass) => asked.pass = pass,
            Err(refusal) => return self.heed(asked.refuse_access(&refusal)),
        }
        let prepared = model.and_then(|model| {
            let (mut request, forms) = decode::decode(&self.app, &model, message)?;
            asked.forms = forms;
            service.forward_metadata(metadata, &mut request.parameters)?;
            request.trace = trace::grpc(self.app.tracer(), &request.model_name, metadata);
            request.token_meter = token_meter(self.key.as_ref());
            asked.trace.clone_from(&request.trace);
            Ok((model, request))
        });
        let (model, request) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.heed(asked.refuse(&error)),
        };
        lock(&self.open).insert(asked.number, request.cancel.clone());
        let asked = Arc::new(Mutex::new(asked));
        let answered = Arc::clone(&asked);
        let call = Arc::clone(self);
        let of_answer = model.clone();
        let sink = Box::new(move |answer| {
            let room = lock(&answered).answer(&of_answer, answer);
            call.heed(room);
        });
        if let Err(error) = model.infer(request, sink) {
            let room = lock(&asked).refuse(&error);
            self.heed(room);
        }
    }

    fn cancel_all(&self) {
        let open: Vec<CancelToken> = lock(&self.open).values().cloned().collect();
        open.iter().for_each(CancelToken::cancel);
    }

    /// Ends the call when there is no room: elsewhere, because who answers may hold locks that a cancellation needs.
    fn heed(&self, room: StreamRoom) {
        if room == StreamRoom::None {
            let cancel = self.cancel.clone();
            self.runtime.spawn(boxed(async move { cancel.cancel() }));
        }
    }
}

impl AskedRequest {
    /// The core has not taken the request.
    fn refuse(&mut self, error: &ServingError) -> StreamRoom {
        let named = ModelInferResponse { id: self.id.clone(), ..ModelInferResponse::default() };
        self.end(Ok(failed(error, named)))
    }

    /// The client's key does not allow the request now.
    fn refuse_access(&mut self, refusal: &AccessRefusal) -> StreamRoom {
        if self.call.status_errors {
            return self.end(Err(refusal.grpc_status()));
        }
        self.refuse(&ServingError::unavailable(refusal.message()))
    }

    fn answer(&mut self, model: &ModelHandle, answer: SinkAnswer) -> StreamRoom {
        self.stamp(trace::GRPC_SEND_START);
        let room = self.put(model, answer);
        self.stamp(trace::GRPC_SEND_END);
        room
    }

    fn stamp(&self, stage: &'static str) {
        if let Some(trace) = &self.trace {
            trace.stamp(stage);
        }
    }

    fn put(&mut self, model: &ModelHandle, answer: SinkAnswer) -> StreamRoom {
        let is_final = answer.is_final;
        let item = match answer.result {
            Ok(Some(response)) => match encode::response(model, response, &self.forms) {
                Ok(response) => Some(Ok(answered(response, is_final))),
                Err(error) => Some(self.failure(&error, is_final)),
            },
            Ok(None) => self.empty_final.then(|| Ok(answered(self.named(), is_final))),
            Err(error) => Some(self.failure(&error, is_final)),
        };
        match item {
            Some(item) if is_final => self.end(item),
            Some(item) => self.call.out.send(item, None),
            None => {
                if is_final {
                    self.leave();
                }
                StreamRoom::Left
            }
        }
    }

    fn failure(&self, error: &ServingError, is_final: bool) -> StreamItem {
        if self.call.status_errors {
            return Err(grpc_status(error));
        }
        let mut message = answered(self.named(), is_final);
        message.error_message.clone_from(&error.message);
        Ok(message)
    }

    fn named(&self) -> ModelInferResponse {
        ModelInferResponse {
            model_name: self.model.clone(),
            id: self.id.clone(),
            ..ModelInferResponse::default()
        }
    }

    /// Sends the last answer, in its turn.
    fn end(&mut self, item: StreamItem) -> StreamRoom {
        lock(&self.call.open).remove(&self.number);
        self.pass = None;
        let room = self.room.take();
        match self.place {
            None => self.call.out.send(item, room),
            Some(place) => self.call.out.send_in_turn(place, item, room),
        }
    }

    /// Ends without an answer, which only decoupled models do.
    fn leave(&mut self) {
        lock(&self.call.open).remove(&self.number);
        self.pass = None;
        self.room = None;
    }
}

fn answered(mut response: ModelInferResponse, is_final: bool) -> ModelStreamInferResponse {
    let value = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(is_final)) };
    response.parameters.insert(FINAL.to_owned(), value);
    ModelStreamInferResponse { error_message: String::new(), infer_response: Some(response) }
}

fn failed(error: &ServingError, response: ModelInferResponse) -> ModelStreamInferResponse {
    ModelStreamInferResponse {
        error_message: error.message.clone(),
        infer_response: Some(response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body_budget::BodyBudget;

    #[test]
    fn answers_wait_for_their_turn() {
        let mut order = AnswerOrder::default();
        let places: Vec<u64> = (0..3).map(|_| order.admit()).collect();
        let outgoing = |bytes| OutgoingResponse { item: Err(Status::ok("")), bytes, _room: None };
        let sizes =
            |ready: Vec<OutgoingResponse>| ready.iter().map(|one| one.bytes).collect::<Vec<_>>();
        assert!(order.finish(places[2], outgoing(2)).is_empty());
        assert_eq!(sizes(order.finish(places[0], outgoing(0))), [0]);
        assert_eq!(sizes(order.finish(places[1], outgoing(1))), [1, 2]);
    }

    fn out(limit: usize) -> (AnswerPath, UnboundedReceiver<OutgoingResponse>) {
        let (items, receiver) = unbounded_channel();
        let waiting = Arc::default();
        let (order, end) = (Mutex::default(), Mutex::default());
        (AnswerPath { items, waiting, limit, order, end }, receiver)
    }

    fn item(bytes: usize) -> StreamItem {
        Ok(ModelStreamInferResponse { error_message: "e".repeat(bytes), infer_response: None })
    }

    #[test]
    fn answers_that_wait_for_their_turn_count() {
        let (out, mut items) = out(1000);
        let places: Vec<u64> = (0..20).map(|_| lock(&out.order).admit()).collect();
        let held = places
            .iter()
            .skip(1)
            .take_while(|&&place| out.send_in_turn(place, item(100), None) == StreamRoom::Left);
        let held = held.count();
        assert!((9..=10).contains(&held), "{held} answers of 100 bytes have room in 1000");
        let ended = items.try_recv().unwrap();
        assert_eq!(ended.item.unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert!(items.try_recv().is_err());
        assert!(out.waiting.bytes.load(Ordering::Acquire) >= held * 100);
    }

    #[test]
    fn the_status_of_a_stop_comes_behind_all_answers() {
        let (out, mut items) = out(1000);
        let places: Vec<u64> = (0..2).map(|_| lock(&out.order).admit()).collect();
        *lock(&out.end) = Some(Status::unavailable(SHUTTING_DOWN));
        for place in [places[1], places[0]] {
            assert_eq!(out.send_in_turn(place, item(1), None), StreamRoom::Left);
        }
        drop(out);
        assert!(items.try_recv().unwrap().item.is_ok() && items.try_recv().unwrap().item.is_ok());
        let status = items.try_recv().unwrap().item.unwrap_err();
        assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, SHUTTING_DOWN));
        assert!(items.try_recv().is_err());
    }

    #[test]
    fn answers_that_are_taken_make_room() {
        let (out, items) = out(1000);
        let waiting = Arc::clone(&out.waiting);
        let cancel = CancelToken::new();
        let mut responses = CallResponses { items, waiting, ended: false, cancel };
        let mut context = Context::from_waker(std::task::Waker::noop());
        for _ in 0..100 {
            assert_eq!(out.send(item(100), None), StreamRoom::Left);
            let taken = Pin::new(&mut responses).poll_next(&mut context);
            assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        }
        while out.send(item(100), None) == StreamRoom::Left {}
        let mut last = None;
        while let Poll::Ready(Some(item)) = Pin::new(&mut responses).poll_next(&mut context) {
            last = Some(item);
        }
        assert_eq!(last.unwrap().unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert!(responses.cancel.is_cancelled());
    }

    #[test]
    fn answers_of_all_calls_share_memory() {
        let budget = BodyBudget::new(8 << 20);
        let path = || {
            let (out, items) = out(MAX_WAITING_BYTES);
            *lock(&out.waiting.memory) = budget.begin();
            (out, items)
        };
        let ((first, mut taken), (second, mut refused)) = (path(), path());
        assert_eq!(first.send(item(5 << 20), None), StreamRoom::Left);
        assert_eq!(second.send(item(4 << 20), None), StreamRoom::None);
        let status = refused.try_recv().unwrap().item.unwrap_err();
        assert_eq!((status.code(), budget.refusals()), (tonic::Code::ResourceExhausted, 1));
        first.waiting.remove(taken.try_recv().unwrap().bytes);
        assert_eq!(second.send(item(4 << 20), None), StreamRoom::Left);
    }
}
