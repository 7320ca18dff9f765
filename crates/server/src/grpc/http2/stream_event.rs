//! Messages by which the tasks of a connection notify it.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::WholeAnswer;

/// Channel by which tasks notify a connection, with the number of the stream.
pub(super) type StreamEventSender = UnboundedSender<(u32, StreamEvent)>;

/// Message of a task to its connection.
pub(super) enum StreamEvent {
    /// A call has an answer in pieces, or only a head.
    Begun(StatusCode, HeaderMap, bool),
    /// A piece of it.
    Piece(Bytes, OwnedSemaphorePermit),
    /// It has ended.
    Ended(Option<HeaderMap>),
    /// A call has an answer as a whole.
    Whole(WholeAnswer),
    /// A call ended without the end of an answer.
    Failed,
    /// The given number of bytes of a body was read.
    Read(usize),
    /// The connection is to end behind its calls.
    Drain,
    /// The connection is to end now.
    Close,
}
