//! Accepts HTTP/2 connections and routes calls to the services.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service as _;

use super::proto::health::health_server::HealthServer;
use super::proto::inference::grpc_inference_service_server::GrpcInferenceServiceServer;
use super::service::Service;
use super::unary::{self, Read};
use crate::app::App;
use crate::restricted::Category;

/// Largest message in either direction, as in Triton.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;
/// Bytes that a client may send on one call before it waits for the server.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes that a client may send on all calls of a connection before it waits.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls at the same time on one connection.
const MAX_STREAMS: u32 = 1024;

/// When and how long to ask a silent peer whether it is there.
#[derive(Debug, Clone, Copy)]
pub struct KeepAlive {
    /// Silence before a ping.
    pub time: Duration,
    /// Wait for the answer before the connection is closed.
    pub timeout: Duration,
}

impl Default for KeepAlive {
    /// gRPC's two hours and 20 seconds.
    fn default() -> Self {
        Self { time: Duration::from_secs(7200), timeout: Duration::from_secs(20) }
    }
}

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
    health: HealthServer<Service>,
}

impl Doors {
    fn new(app: &Arc<App>) -> Self {
        let service = Service::new(Arc::clone(app));
        let mut inference = GrpcInferenceServiceServer::new(service.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        for encoding in [CompressionEncoding::Gzip, CompressionEncoding::Deflate] {
            inference = inference.accept_compressed(encoding);
        }
        let health = HealthServer::new(service.clone());
        Self { app: Arc::clone(app), inference, health, service }
    }

    /// Why a call is not let in.
    fn refusal(&self, request: &http::Request<Incoming>) -> Option<Status> {
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
        if unary::is_plain(&request) {
            return self.infer(request).await;
        }
        let path = request.uri().path();
        if path.starts_with(INFERENCE) {
            self.inference.call(request).await
        } else if path.starts_with(HEALTH) {
            self.health.call(request).await
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
pub async fn serve(app: Arc<App>, listener: TcpListener, keep_alive: KeepAlive) {
    let doors = Doors::new(&app);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopping() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (app, doors) = (Arc::clone(&app), doors.clone());
                tokio::spawn(async move { converse(&app, stream, doors, keep_alive).await });
            }
            Err(error) => {
                tracing::warn!("failed to accept a gRPC connection: {error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn converse(app: &Arc<App>, stream: TcpStream, doors: Doors, keep_alive: KeepAlive) {
    // Without it small answers wait for the peer's acknowledgement; a failure costs only time.
    stream.set_nodelay(true).ok();
    let counted = Arc::clone(app);
    let service = hyper::service::service_fn(move |request| {
        let guard = counted.count_request();
        let call = doors.clone().call(request);
        async move {
            let response = call.await;
            drop(guard);
            response
        }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Some(keep_alive.time))
        .keep_alive_timeout(keep_alive.timeout)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a gRPC connection ended: {error}");
    }
}
