//! HTTP/2 for the gRPC front end (RFC 9113): one task reads a connection, begins its calls and writes their answers.
//!
//! General HTTP/2 servers pass each request and each answer from task to task in pieces as small as a frame. Here a
//! unary call's message is put together from the socket's bytes at once, an answer leaves in one write with its head
//! and its trailers, and a call that is alone on its connection runs in the connection's own task.

mod assembler;
mod body;
mod closed_streams;
mod closer;
mod connection;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod head;
mod hpack;
mod huffman;
mod keepalive;
mod output;
mod pings;
mod stream;
mod stream_event;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use tonic::Status;
use tonic::body::Body;

use crate::body_budget::BodyLease;
use crate::client_pace::CLIENT_STALL;

pub(super) use body::InboundBody;
pub(super) use closer::ConnectionCloser;
pub(super) use connection::Http2Connection;

/// A future of a front end.
pub(super) type AnswerFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An answer that is there as a whole.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    /// The head.
    pub(super) headers: HeaderMap,
    /// The body in pieces.
    pub(super) pieces: Vec<Bytes>,
    /// Trailers after the body; without trailers and body, the answer is its head alone.
    pub(super) trailers: Option<HeaderMap>,
}

impl From<Status> for WholeAnswer {
    fn from(status: Status) -> Self {
        let headers = status.into_http::<()>().into_parts().0.headers;
        Self { headers, pieces: Vec::new(), trailers: None }
    }
}

/// Decision on a call.
#[derive(Debug)]
pub(super) enum CallKind {
    /// The call is refused.
    Refused(Status),
    /// Its one message is gathered before it begins.
    Gathered,
    /// It begins now and reads its messages itself.
    Streamed,
}

/// Service that answers calls.
pub(super) trait GrpcService: Clone + Send + Sync + 'static {
    /// Lives as long as a call.
    type Call: Send;

    /// Decides on a call, and may add to its head what its answer needs. `authority` is the host that the client
    /// names.
    fn enter(&self, head: &mut Parts, authority: Option<&Bytes>) -> (Self::Call, CallKind);

    /// Tells of the head or of the trailers of an answer.
    fn look(visit: &mut Self::Call, headers: &HeaderMap);

    /// Begins the body of a call: its part of the memory for bodies.
    fn begin_body(&self) -> BodyLease {
        BodyLease::default()
    }

    /// Answers a call whose message is gathered.
    fn unary(&self, head: Parts, message: Bytes) -> AnswerFuture<WholeAnswer>;

    /// Answers any other call.
    fn call(&self, request: http::Request<InboundBody>) -> AnswerFuture<http::Response<Body>>;
}

/// Rules of keeping connections alive.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSettings {
    /// Silence before a ping.
    pub keepalive_time: Duration,
    /// Wait for the ping's answer before the connection is closed.
    pub keepalive_timeout: Duration,
    /// True if connections without calls are pinged, and may ping as often as those with calls.
    pub without_calls: bool,
    /// Least time between two pings of a client between which nothing is sent to it.
    pub ping_interval: Duration,
    /// Number of early pings that are forgiven; 0 for all.
    pub ping_strikes: u64,
    /// Time in which a client must send or take [`MIN_PACE_BYTES`](crate::client_pace::MIN_PACE_BYTES).
    pub stall: Duration,
}

impl Default for ConnectionSettings {
    /// gRPC's defaults: a ping after two hours of silence.
    fn default() -> Self {
        Self {
            keepalive_time: Duration::from_secs(7200),
            keepalive_timeout: Duration::from_secs(20),
            without_calls: false,
            ping_interval: Duration::from_secs(300),
            ping_strikes: 2,
            stall: CLIENT_STALL,
        }
    }
}
