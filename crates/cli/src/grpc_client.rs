//! A gRPC client on one connection, for the program's own requests.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::codegen::Service;

use galatea_server::grpc::proto::inference::grpc_inference_service_client::GrpcInferenceServiceClient;

/// An HTTP/2 connection.
#[derive(Debug, Clone)]
pub struct GrpcClient {
    sender: SendRequest<Body>,
}

impl Service<http::Request<Body>> for GrpcClient {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.sender.send_request(request))
    }
}

/// Connects to the gRPC endpoint at an address.
///
/// # Errors
/// Fails when nobody listens there, or the listener does not speak HTTP/2.
pub async fn connect(
    address: SocketAddr,
) -> Result<GrpcInferenceServiceClient<GrpcClient>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a gRPC client connection ended: {error}");
        }
    });
    let origin = http::Uri::builder()
        .scheme("http")
        .authority(address.to_string())
        .path_and_query("/")
        .build()?;
    Ok(GrpcInferenceServiceClient::with_origin(GrpcClient { sender }, origin))
}
