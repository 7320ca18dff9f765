//! HTTP/2 for the gRPC door (RFC 9113): one task reads a connection, begins its calls and writes their answers.
//!
//! General HTTP/2 servers pass each request and each answer from task to task in pieces as small as a frame. Here a
//! unary call's message is put together from the socket's bytes at once, an answer leaves in one write with its head
//! and its trailers, and a call that is alone on its connection runs in the connection's own task.

mod body;
mod connection;
mod frame;
mod gather;
mod head;
mod hpack;
mod huffman;
mod output;
mod pings;
mod stream;
mod watch;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use tonic::Status;
use tonic::body::Body;

pub(super) use body::Inbound;
pub(super) use connection::{Connection, Remote};

/// A future of a door.
pub(super) type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An answer that is there as a whole.
#[derive(Debug)]
pub(super) struct Whole {
    /// The head.
    pub(super) headers: HeaderMap,
    /// The body in pieces.
    pub(super) pieces: Vec<Bytes>,
    /// What follows the body; without it and without a body the head is all.
    pub(super) trailers: Option<HeaderMap>,
}

impl From<Status> for Whole {
    fn from(status: Status) -> Self {
        let headers = status.into_http::<()>().into_parts().0.headers;
        Self { headers, pieces: Vec::new(), trailers: None }
    }
}

/// How a call is taken.
#[derive(Debug)]
pub(super) enum Entrance {
    /// Not at all.
    Refused(Status),
    /// Its one message is gathered before it begins.
    Gathered,
    /// It begins now and reads its messages itself.
    Streamed,
}

/// What answers calls.
pub(super) trait Door: Clone + Send + Sync + 'static {
    /// Lives as long as a call.
    type Visit: Send;

    /// How a call is taken. `authority`: the host that the client names.
    fn enter(&self, head: &Parts, authority: Option<&Bytes>) -> (Self::Visit, Entrance);

    /// Tells of the head or of the trailers of an answer.
    fn look(visit: &mut Self::Visit, headers: &HeaderMap);

    /// Answers a call whose message is gathered.
    fn unary(&self, head: Parts, message: Bytes) -> Answering<Whole>;

    /// Answers any other call.
    fn call(&self, request: http::Request<Inbound>) -> Answering<http::Response<Body>>;
}

/// How a connection is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keeping {
    /// Silence before a ping.
    pub keepalive_time: Duration,
    /// Wait for the ping's answer before the connection is closed.
    pub keepalive_timeout: Duration,
    /// Whether connections without calls are pinged, and may ping as often as those with calls.
    pub without_calls: bool,
    /// Least time between two pings of a client between which nothing is sent to it.
    pub ping_interval: Duration,
    /// So many pings that come too early are forgiven; 0 for all.
    pub ping_strikes: u64,
}
