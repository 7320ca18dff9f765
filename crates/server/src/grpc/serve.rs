//! Accepts HTTP/2 connections and routes calls to the services.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use tonic::Status;
use tonic::body::Body;
use tracing::Level;

use super::call::{ActiveCall, CallLog};
use super::compression;
use super::counted_body::unread_answers;
use super::grpc_services::GrpcServices;
use super::http2::{
    AnswerFuture, CallKind, ConnectionCloser, ConnectionSettings, GrpcService, Http2Connection,
    InboundBody, WholeAnswer,
};
use super::methods;
use super::reflection::ReflectionService;
use super::unary;
use crate::access::{AccessRefusal, ClientPass, EndpointAccess};
use crate::app::ServerState;
use crate::body_budget::BodyLease;
use crate::browser::{BrowserMarks, BrowserRequest, ContentDemand, EndpointClass, PageRefusal};
use crate::connection_count::ConnectionRest;
use crate::in_flight::InFlightCounter;
use crate::listen::ConnectionPeer;
use crate::listen::{FrontEndListener, PendingConnection};
use crate::restricted::EndpointCategory;
use crate::status::SHUTTING_DOWN;
use crate::tasks::boxed;

/// Settings of connections and answers, as the flags give them.
#[derive(Debug, Clone, Copy)]
pub struct GrpcSettings {
    /// Rules of keeping connections alive.
    pub keeping: ConnectionSettings,
    /// Age at which a connection takes no more calls.
    pub max_age: Option<Duration>,
    /// Time that the calls of an old connection then still have.
    pub max_age_grace: Option<Duration>,
    /// Compression of answers to inference for clients that accept it.
    pub compression: Option<compression::CompressionLevel>,
    /// Time that answers of calls other than inference are held back, for tests of clients' deadlines.
    pub answer_delay: Duration,
}

impl Default for GrpcSettings {
    /// gRPC's defaults, without compression of answers.
    fn default() -> Self {
        Self {
            keeping: ConnectionSettings::default(),
            max_age: None,
            max_age_grace: None,
            compression: None,
            answer_delay: Duration::ZERO,
        }
    }
}

/// Paths of the services' methods.
const INFERENCE: &str = "/inference.GRPCInferenceService/";
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The RPC of many requests.
const STREAM: &str = "ModelStreamInfer";

/// The group of each RPC.
const CATEGORIES: &[(&str, EndpointCategory)] = &[
    ("ServerLive", EndpointCategory::Health),
    ("ServerReady", EndpointCategory::Health),
    ("ModelReady", EndpointCategory::Health),
    ("ServerMetadata", EndpointCategory::Metadata),
    ("ModelMetadata", EndpointCategory::Metadata),
    ("ModelInfer", EndpointCategory::Inference),
    ("ModelStreamInfer", EndpointCategory::Inference),
    ("ModelConfig", EndpointCategory::ModelConfig),
    ("ModelStatistics", EndpointCategory::Statistics),
    ("RepositoryIndex", EndpointCategory::ModelRepository),
    ("RepositoryModelLoad", EndpointCategory::ModelRepository),
    ("RepositoryModelUnload", EndpointCategory::ModelRepository),
    ("SystemSharedMemoryStatus", EndpointCategory::SharedMemory),
    ("SystemSharedMemoryRegister", EndpointCategory::SharedMemory),
    ("SystemSharedMemoryUnregister", EndpointCategory::SharedMemory),
    ("CudaSharedMemoryStatus", EndpointCategory::SharedMemory),
    ("CudaSharedMemoryRegister", EndpointCategory::SharedMemory),
    ("CudaSharedMemoryUnregister", EndpointCategory::SharedMemory),
    ("TraceSetting", EndpointCategory::Trace),
    ("LogSettings", EndpointCategory::Logging),
];

/// The group of a path.
fn category(path: &str) -> Option<EndpointCategory> {
    if path.starts_with(HEALTH) {
        return Some(EndpointCategory::Health);
    }
    let name = path.strip_prefix(INFERENCE)?;
    CATEGORIES.iter().find(|(rpc, _)| *rpc == name).map(|(_, category)| *category)
}

/// Says whose calls reach a path. Whether the server lives and is ready everybody may ask.
fn endpoint_access(path: &str) -> EndpointAccess {
    match (category(path), path.strip_prefix(INFERENCE)) {
        (Some(EndpointCategory::Health), None | Some("ServerLive" | "ServerReady")) => {
            EndpointAccess::Open
        }
        (Some(category), _) => EndpointAccess::Group(category),
        (None, _) => EndpointAccess::Unknown,
    }
}

struct GrpcFrontEnd {
    app: Arc<ServerState>,
    service: GrpcServices,
    reflection: ReflectionService,
    compression: Option<compression::CompressionLevel>,
    answer_delay: Duration,
}

impl GrpcFrontEnd {
    fn new(app: &Arc<ServerState>, settings: &GrpcSettings) -> Self {
        let service = GrpcServices::new(Arc::clone(app));
        let app = Arc::clone(app);
        let reflection = ReflectionService::new();
        let &GrpcSettings { compression, answer_delay, .. } = settings;
        Self { app, service, reflection, compression, answer_delay }
    }

    /// Lets a call in, with its place among the requests of its key. The key goes with the head of the call.
    fn admit(
        &self,
        head: &mut Parts,
        authority: Option<&Bytes>,
        peer: ConnectionPeer,
    ) -> Result<Option<ClientPass>, Status> {
        if let Some(status) = self.refusal_of_page(head, authority, peer) {
            return Err(status);
        }
        let category = category(head.uri.path());
        let refused = |refusal: AccessRefusal| refusal.grpc_status();
        let key = match self.app.access() {
            Some(access) => {
                let headers = head.headers.iter();
                let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
                access.identify(endpoint_access(head.uri.path()), headers).map_err(refused)?
            }
            None => None,
        };
        if let Some(status) = category.and_then(|category| self.restriction(head, category)) {
            return Err(status);
        }
        let Some(key) = key else { return Ok(None) };
        // Each message of a stream is a request.
        let pass = match head.uri.path().strip_prefix(INFERENCE) == Some(STREAM) {
            true => None,
            false => Some(key.begin().map_err(refused)?),
        };
        head.extensions.insert(key);
        Ok(pass)
    }

    /// Why a call is not let in, whoever sends it.
    fn refusal_of_page(
        &self,
        head: &Parts,
        authority: Option<&Bytes>,
        peer: ConnectionPeer,
    ) -> Option<Status> {
        if self.app.is_stopping() {
            return Some(Status::unavailable(SHUTTING_DOWN));
        }
        if let Err(refusal) = self.check_page(head, authority, peer) {
            let text = refusal.message();
            return Some(match refusal {
                PageRefusal::MalformedHost(_) => Status::invalid_argument(text),
                _ => Status::permission_denied(text),
            });
        }
        None
    }

    /// Why a call of a restricted group is not let in.
    fn restriction(&self, head: &Parts, category: EndpointCategory) -> Option<Status> {
        let header = |name: &str| head.headers.get(name).map(http::HeaderValue::as_bytes);
        let key = self.app.grpc_rules().restrictions.missing(category, header)?;
        let text = format!("This protocol is restricted, expecting header '{key}'");
        Some(Status::unavailable(text))
    }

    /// Checks that a browser's page may make this call, and name this host.
    fn check_page(
        &self,
        head: &Parts,
        authority: Option<&Bytes>,
        peer: ConnectionPeer,
    ) -> Result<(), PageRefusal> {
        // What is no text is the name of nothing.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or("");
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), text(value.as_bytes())));
        let mut marks = BrowserMarks::of_headers(headers);
        if let Some(authority) = authority {
            (marks.host, marks.hosts) = (Some(text(authority)), 1);
        }
        let rules = self.app.browser_rules();
        rules.check_host(&marks, peer, false)?;
        // Browsers cannot tell calls that read apart by their method.
        let class = match category(head.uri.path()) {
            Some(category) if category.is_administrative() => EndpointClass::Change,
            _ => EndpointClass::Inference,
        };
        let content = ContentDemand::Anything;
        rules.check_page(&BrowserRequest { marks, class, is_get: false, content }, peer)
    }

    /// The answer with its part of the memory for answers that clients have not read.
    async fn budgeted(&self, mut answer: WholeAnswer) -> WholeAnswer {
        let bytes = answer.pieces.iter().map(Bytes::len).sum();
        let Ok(memory) = self.app.answer_budget().take(bytes).await else {
            return unread_answers().into();
        };
        // Short pieces are copied on their way, so it goes with the longest.
        if let Some(longest) = answer.pieces.iter_mut().max_by_key(|piece| piece.len()) {
            *longest = memory.hold(std::mem::take(longest));
        }
        answer
    }

    async fn call(&self, request: http::Request<InboundBody>) -> http::Response<Body> {
        if let Some(answering) = self.reflection.of(request.uri().path()) {
            return answering(request).await;
        }
        let infers = category(request.uri().path()) == Some(EndpointCategory::Inference);
        let level = self.compression.filter(|_| infers);
        let coding = level.and_then(|level| level.coding(request.headers()));
        let response = methods::call(&self.service, request).await;
        if !infers && !self.answer_delay.is_zero() {
            tokio::time::sleep(self.answer_delay).await;
        }
        let response = response.unwrap_or_else(|| Status::unimplemented("").into_http());
        match coding {
            Some(coding) => coding.answer(response),
            None => response,
        }
    }
}

/// The front ends as one connection sees them.
#[derive(Clone)]
struct ConnectionFrontEnd {
    doors: Arc<GrpcFrontEnd>,
    peer: ConnectionPeer,
    /// Calls of the connection.
    calls: Arc<InFlightCounter>,
}

impl GrpcService for ConnectionFrontEnd {
    type Call = ActiveCall;

    fn enter(&self, head: &mut Parts, authority: Option<&Bytes>) -> (ActiveCall, CallKind) {
        let doors = &self.doors;
        let log = tracing::enabled!(Level::DEBUG).then(|| CallLog::new(head.uri.path()));
        let visit = ActiveCall::new(log, [doors.app.count_request(), self.calls.enter()]);
        match doors.admit(head, authority, self.peer) {
            Err(status) => (visit, CallKind::Refused(status)),
            Ok(pass) => {
                let plain = unary::is_plain(head);
                let entrance = if plain { CallKind::Gathered } else { CallKind::Streamed };
                (visit.with_pass(pass), entrance)
            }
        }
    }

    fn look(visit: &mut ActiveCall, headers: &HeaderMap) {
        visit.look(headers);
    }

    fn begin_body(&self) -> BodyLease {
        self.doors.app.body_budget().begin()
    }

    fn unary(&self, head: Parts, message: Bytes) -> AnswerFuture<WholeAnswer> {
        let doors = Arc::clone(&self.doors);
        Box::pin(async move {
            let answer = unary::call(&doors.service, head, message, doors.compression).await;
            doors.budgeted(answer).await
        })
    }

    fn call(&self, request: http::Request<InboundBody>) -> AnswerFuture<http::Response<Body>> {
        let doors = Arc::clone(&self.doors);
        Box::pin(async move { doors.call(request).await })
    }
}

/// Serves until the server stops; open connections live on until their calls are answered.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener, settings: GrpcSettings) {
    let doors = Arc::new(GrpcFrontEnd::new(&app, &settings));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopping() => return,
        };
        match accepted {
            Ok(knock) => {
                let app = Arc::clone(&app);
                let doors = Arc::clone(&doors);
                let serving = serve_connection(app, knock, doors, settings);
                tokio::spawn(boxed(serving));
            }
            Err(error) => {
                tracing::warn!("failed to accept a gRPC connection: {error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn serve_connection(
    app: Arc<ServerState>,
    knock: PendingConnection,
    doors: Arc<GrpcFrontEnd>,
    settings: GrpcSettings,
) {
    let peer = knock.peer();
    let counted = match app.connections_open().enter(peer.address) {
        Ok(entry) => entry,
        Err(refusal) => return tracing::debug!("a gRPC connection is closed: {refusal:?}"),
    };
    let stream = match knock.enter().await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("a gRPC connection failed to open: {error}"),
    };
    let _connection = app.count_connection();
    let calls = Arc::new(InFlightCounter::default());
    let entry = ConnectionFrontEnd { doors, peer, calls: Arc::clone(&calls) };
    let (connection, remote) = Http2Connection::new(stream, entry, settings.keeping);
    let rest = Arc::clone(counted.rest());
    let closing = tokio::spawn(boxed(close(app, calls, rest, settings, remote)));
    if let Err(error) = connection.run().await {
        tracing::debug!("a gRPC connection ended: {error}");
    }
    closing.abort();
}

/// Ends a connection when it is old or the server stops.
async fn close(
    app: Arc<ServerState>,
    calls: Arc<InFlightCounter>,
    rest: Arc<ConnectionRest>,
    settings: GrpcSettings,
    remote: ConnectionCloser,
) {
    let grace = tokio::select! {
        () = at_age(settings.max_age) => settings.max_age_grace,
        () = idle_end(&rest, &calls) => Some(Duration::ZERO),
        // Until its calls are answered the client is told by each new call's status.
        () = async { app.stopping().await; calls.none().await } => None,
    };
    remote.drain();
    at_age(grace).await;
    remote.close();
}

/// Ends when a connection without calls should end, to make room for others.
async fn idle_end(rest: &ConnectionRest, calls: &InFlightCounter) {
    loop {
        rest.should_end().await;
        if calls.open() == 0 {
            return;
        }
    }
}

/// Ends when a time is over; never where there is none.
async fn at_age(age: Option<Duration>) {
    match age {
        Some(age) => tokio::time::sleep(age).await,
        None => std::future::pending().await,
    }
}
