//! Calls over gRPC as they look on the wire.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use galatea_server::grpc::proto::inference::ModelInferRequest;
use http_body::Frame;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::{simple_request, start};

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";

/// One message, or nothing until it is told to end.
struct Body {
    message: Option<Bytes>,
    held: Option<oneshot::Receiver<()>>,
}

impl Body {
    fn of(message: &impl Message) -> Self {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap();
        let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
        Self { message: Some(framed.into()), held: None }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(held) = &mut self.held {
            return Pin::new(held).poll(context).map(|_| None);
        }
        Poll::Ready(self.message.take().map(|message| Ok(Frame::data(message))))
    }
}

async fn connect(address: std::net::SocketAddr) -> SendRequest<Body> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn call(
    sender: &mut SendRequest<Body>,
    path: &str,
    body: Body,
) -> hyper::Result<http::Response<Incoming>> {
    let request = http::Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-accept-encoding", "identity,deflate,gzip")
        .body(body)
        .unwrap();
    sender.send_request(request).await
}

#[test]
fn answers_are_compressed_when_the_flag_says_so() {
    for (flag, encoding) in [("none", None), ("low", Some("gzip")), ("HIGH", Some("gzip"))] {
        let fixture = start(&["--grpc-infer-response-compression-level", flag]);
        let address = fixture.server.addresses().grpc.unwrap();
        fixture.runtime.block_on(async {
            let mut sender = connect(address).await;
            let infer = call(&mut sender, INFER, Body::of(&simple_request())).await.unwrap();
            let found = infer.headers().get("grpc-encoding").map(|value| value.to_str().unwrap());
            assert!(found.is_some() == encoding.is_some(), "{flag}: {found:?}");
            let live = call(&mut sender, LIVE, Body::of(&ModelInferRequest::default())).await;
            assert!(live.unwrap().headers().get("grpc-encoding").is_none());
        });
        assert!(fixture.stop());
    }
}

#[test]
fn a_stop_answers_open_calls_and_refuses_new_ones_by_status() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    let app = std::sync::Arc::clone(fixture.server.app());
    let (release, held) = oneshot::channel();
    let (mut sender, open) = fixture.runtime.block_on(async {
        let sender = connect(address).await;
        let mut first = sender.clone();
        let body = Body { message: None, held: Some(held) };
        (sender, tokio::spawn(async move { call(&mut first, INFER, body).await }))
    });
    while app.open_requests() == 0 {
        std::thread::yield_now();
    }
    let handle = fixture.runtime.handle().clone();
    let client = std::thread::spawn(move || {
        while !app.is_stopping() {
            std::thread::yield_now();
        }
        handle.block_on(async {
            let refused = call(&mut sender, LIVE, Body::of(&ModelInferRequest::default())).await;
            release.send(()).unwrap();
            let open = tokio::time::timeout(Duration::from_secs(20), open).await.unwrap().unwrap();
            (refused.unwrap(), open.unwrap())
        })
    });
    assert!(fixture.stop());
    let (refused, open) = client.join().unwrap();
    assert_eq!(refused.headers()["grpc-status"], "14");
    let text = refused.headers()["grpc-message"].to_str().unwrap().replace("%20", " ");
    assert_eq!(text, "GRPC server is shutting down and has stopped accepting new requests.");
    // The open call ended without a message, which is an error of its own.
    assert_ne!(open.headers()["grpc-status"], "14");
}

#[test]
fn a_stop_ends_streams_that_rest_with_a_status() {
    use tonic::codegen::tokio_stream::{self, StreamExt};
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    let mut answers = fixture.runtime.block_on(async {
        let mut client = galatea_cli::grpc_client::connect(address).await.unwrap();
        let requests = tokio_stream::once(simple_request()).chain(tokio_stream::pending());
        let mut answers = client.model_stream_infer(requests).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().unwrap().infer_response.is_some());
        answers
    });
    let handle = fixture.runtime.handle().clone();
    let begun = std::time::Instant::now();
    let client = std::thread::spawn(move || handle.block_on(answers.message()));
    assert!(fixture.stop());
    assert!(begun.elapsed() < Duration::from_secs(9), "the stop waited for its timeout");
    let status = client.join().unwrap().unwrap_err();
    let text = "GRPC server is shutting down and has stopped accepting new requests.";
    assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, text));
}
