//! The way to end a connection from outside.

use super::stream_event::{StreamEvent, StreamEventSender};

/// Tells a connection to end.
#[derive(Clone)]
pub(in super::super) struct ConnectionCloser {
    tell: StreamEventSender,
}

impl ConnectionCloser {
    /// Makes a closer that tells a connection through its channel of events.
    pub(super) fn new(tell: StreamEventSender) -> Self {
        Self { tell }
    }

    /// Lets the connection end as soon as its calls are answered, and take no more.
    pub(in super::super) fn drain(&self) {
        drop(self.tell.send((0, StreamEvent::Drain)));
    }

    /// Ends the connection.
    pub(in super::super) fn close(&self) {
        drop(self.tell.send((0, StreamEvent::Close)));
    }
}
