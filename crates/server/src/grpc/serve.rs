//! Accepts HTTP/2 connections and routes calls to the services.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service as _;
use tracing::Level;

use super::call::{Counted, Log, counted};
use super::proto::health::health_server::HealthServer;
use super::proto::inference::grpc_inference_service_server::GrpcInferenceServiceServer;
use super::reflection::Reflection;
use super::service::Service;
use super::unary::{self, Read};
use crate::app::App;
use crate::flags::Flags;
use crate::listen::{Knock, Listener};
use crate::restricted::Category;
use crate::tally::Tally;

/// Largest message in either direction, as in Triton.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;
/// Bytes that a client may send on one call before it waits for the server.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes that a client may send on all calls of a connection before it waits.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls at the same time on one connection.
const MAX_STREAMS: u32 = 1024;

/// What the flags say about connections and answers.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Silence before a ping.
    pub keepalive_time: Duration,
    /// Wait for the ping's answer before the connection is closed.
    pub keepalive_timeout: Duration,
    /// Age at which a connection takes no more calls.
    pub max_age: Option<Duration>,
    /// Time that the calls of an old connection then still have.
    pub max_age_grace: Option<Duration>,
    /// Whether answers to inference are compressed for clients that can read them.
    pub compresses: bool,
}

impl Settings {
    /// What flags say.
    #[must_use]
    pub fn of(flags: &Flags) -> Self {
        let time = |name: &str| Duration::from_millis(flags.number(name));
        let given = |name: &str| flags.is_set(name).then(|| time(name));
        Self {
            keepalive_time: time("grpc-keepalive-time"),
            keepalive_timeout: time("grpc-keepalive-timeout"),
            max_age: given("grpc-max-connection-age"),
            max_age_grace: given("grpc-max-connection-age-grace"),
            compresses: !flags
                .text("grpc-infer-response-compression-level")
                .eq_ignore_ascii_case("none"),
        }
    }
}

/// How messages may be compressed.
const ENCODINGS: [CompressionEncoding; 2] =
    [CompressionEncoding::Gzip, CompressionEncoding::Deflate];

/// Paths of the services' methods.
const INFERENCE: &str = "/inference.GRPCInferenceService/";
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The group of each RPC.
const CATEGORIES: &[(&str, Category)] = &[
    ("ServerLive", Category::Health),
    ("ServerReady", Category::Health),
    ("ModelReady", Category::Health),
    ("ServerMetadata", Category::Metadata),
    ("ModelMetadata", Category::Metadata),
    ("ModelInfer", Category::Inference),
    ("ModelStreamInfer", Category::Inference),
    ("ModelConfig", Category::ModelConfig),
    ("ModelStatistics", Category::Statistics),
    ("RepositoryIndex", Category::ModelRepository),
    ("RepositoryModelLoad", Category::ModelRepository),
    ("RepositoryModelUnload", Category::ModelRepository),
    ("SystemSharedMemoryStatus", Category::SharedMemory),
    ("SystemSharedMemoryRegister", Category::SharedMemory),
    ("SystemSharedMemoryUnregister", Category::SharedMemory),
    ("CudaSharedMemoryStatus", Category::SharedMemory),
    ("CudaSharedMemoryRegister", Category::SharedMemory),
    ("CudaSharedMemoryUnregister", Category::SharedMemory),
    ("TraceSetting", Category::Trace),
    ("LogSettings", Category::Logging),
];

/// The group of a path.
fn category(path: &str) -> Option<Category> {
    if path.starts_with(HEALTH) {
        return Some(Category::Health);
    }
    let name = path.strip_prefix(INFERENCE)?;
    CATEGORIES.iter().find(|(rpc, _)| *rpc == name).map(|(_, category)| *category)
}

#[derive(Clone)]
struct Doors {
    app: Arc<App>,
    service: Service,
    inference: GrpcInferenceServiceServer<Service>,
    /// The same for inference where answers are compressed.
    compressing: Option<GrpcInferenceServiceServer<Service>>,
    health: HealthServer<Service>,
    reflection: Reflection,
}

impl Doors {
    fn new(app: &Arc<App>, settings: &Settings) -> Self {
        let service = Service::new(Arc::clone(app));
        let mut inference = GrpcInferenceServiceServer::new(service.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        for encoding in ENCODINGS {
            inference = inference.accept_compressed(encoding);
        }
        let compressing = settings.compresses.then(|| {
            let plain = inference.clone();
            ENCODINGS.into_iter().fold(plain, GrpcInferenceServiceServer::send_compressed)
        });
        let health = HealthServer::new(service.clone());
        let reflection = Reflection::new();
        Self { app: Arc::clone(app), inference, compressing, health, reflection, service }
    }

    /// Why a call is not let in.
    fn refusal(&self, request: &http::Request<Incoming>) -> Option<Status> {
        if self.app.is_stopping() {
            return Some(Status::unavailable(
                "GRPC server is shutting down and has stopped accepting new requests.",
            ));
        }
        let category = category(request.uri().path())?;
        let header = |name: &str| request.headers().get(name).map(http::HeaderValue::as_bytes);
        let key = self.app.grpc_rules().restrictions.missing(category, header)?;
        let text = format!("This protocol is restricted, expecting header '{key}'");
        Some(Status::unavailable(text))
    }

    async fn call(
        mut self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Body>, Infallible> {
        if let Some(status) = self.refusal(&request) {
            return Ok(status.into_http());
        }
        if self.compressing.is_none() && unary::is_plain(&request) {
            return self.infer(request).await;
        }
        let path = request.uri().path();
        if let Some(mut compressing) = self.compressing
            && category(path) == Some(Category::Inference)
        {
            return compressing.call(request).await;
        }
        if path.starts_with(INFERENCE) {
            self.inference.call(request).await
        } else if path.starts_with(HEALTH) {
            self.health.call(request).await
        } else if let Some(answering) = self.reflection.of(path) {
            Ok(answering(request).await)
        } else {
            Ok(Status::unimplemented("").into_http())
        }
    }

    async fn infer(
        mut self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Body>, Infallible> {
        let (parts, body) = request.into_parts();
        match unary::read(body).await {
            Ok(Read::Message(message)) => {
                unary::call(&self.service, parts.headers, parts.extensions, message).await
            }
            Ok(Read::Other(body)) => {
                self.inference.call(http::Request::from_parts(parts, body)).await
            }
            Err(status) => Ok(status.into_http()),
        }
    }
}

/// Serves until the server stops; open connections live on until their calls are answered.
pub async fn serve(app: Arc<App>, listener: Listener, settings: Settings) {
    let doors = Doors::new(&app, &settings);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopping() => return,
        };
        match accepted {
            Ok(knock) => {
                let (app, doors) = (Arc::clone(&app), doors.clone());
                tokio::spawn(async move { converse(&app, knock, doors, settings).await });
            }
            Err(error) => {
                tracing::warn!("failed to accept a gRPC connection: {error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn converse(app: &Arc<App>, knock: Knock, doors: Doors, settings: Settings) {
    let stream = match knock.enter().await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("a gRPC connection failed to open: {error}"),
    };
    let _connection = app.count_connection();
    let calls = Arc::new(Tally::default());
    let service = {
        let (app, calls) = (Arc::clone(app), Arc::clone(&calls));
        hyper::service::service_fn(move |request| answer(&app, &calls, doors.clone(), request))
    };
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Some(settings.keepalive_time))
        .keep_alive_timeout(settings.keepalive_timeout)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let grace = tokio::select! {
        ended = connection.as_mut() => return report(ended),
        () = at_age(settings.max_age) => settings.max_age_grace,
        // Until its calls are answered the client is told by each new call's status.
        () = async { app.stopping().await; calls.none().await } => None,
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection.as_mut() => report(ended),
        () = at_age(grace) => tracing::debug!("an old gRPC connection is closed with open calls"),
    }
}

fn answer(
    app: &Arc<App>,
    calls: &Arc<Tally>,
    doors: Doors,
    request: http::Request<Incoming>,
) -> impl Future<Output = Result<http::Response<Counted>, Infallible>> + use<> {
    let entries = [app.count_request(), calls.enter()];
    let log = tracing::enabled!(Level::DEBUG).then(|| Log::new(request.uri().path()));
    let call = doors.call(request);
    async move { call.await.map(|response| counted(response, log, entries)) }
}

/// Ends when a time is over; never where there is none.
async fn at_age(age: Option<Duration>) {
    match age {
        Some(age) => tokio::time::sleep(age).await,
        None => std::future::pending().await,
    }
}

fn report(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!("a gRPC connection ended: {error}");
    }
}
