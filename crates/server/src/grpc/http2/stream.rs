//! A call on its connection: what comes of it, what waits to go, and the task that answers it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::AnswerFuture;
use super::assembler::MessageAssembler;
use super::body::BodyFeeder;
use super::output::OutputQueue;
use super::stream_event::{StreamEvent, StreamEventSender};
use crate::body_budget::BodyLease;

/// Bytes that a client may send on one call before it waits for the server.
pub(super) const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes of an answer in pieces that wait for the connection.
const ANSWER_ROOM: u32 = 1 << 20;

/// The task of a call, which ends with the stream.
pub(super) struct CallTask(pub(super) AbortHandle);

impl Drop for CallTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells that a call failed unless it was told otherwise.
pub(super) struct FailureNotifier {
    pub(super) tell: StreamEventSender,
    pub(super) stream: u32,
    pub(super) done: bool,
}

impl FailureNotifier {
    pub(super) fn tell(&self, told: StreamEvent) {
        // The connection may have gone.
        drop(self.tell.send((self.stream, told)));
    }
}

impl Drop for FailureNotifier {
    fn drop(&mut self) {
        if !self.done {
            self.tell(StreamEvent::Failed);
        }
    }
}

/// State of a stream's request.
pub(super) enum IncomingRequest {
    Gather { parts: Box<Parts>, gather: MessageAssembler, mark: (Instant, usize), lease: BodyLease },
    Feed(BodyFeeder),
    Ended,
}

/// State of an answer that its client does not take.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadMark {
    /// Time at which this was seen.
    pub(super) since: Instant,
    /// Bytes that were sent until then.
    pub(super) sent: u64,
}

pub(super) struct Http2Stream<V> {
    pub(super) incoming: IncomingRequest,
    /// Bytes that the client may still send, and those of which it has not heard that they may come again.
    pub(super) window: i64,
    pub(super) unreported: u32,
    /// Bytes that are still to come, where the head says how many there are.
    pub(super) missing: Option<u64>,
    /// Bytes that may be sent to the client.
    pub(super) send_window: i64,
    pub(super) pieces: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    pub(super) waiting: usize,
    /// Bytes that were sent so far.
    pub(super) sent: u64,
    /// Bytes sent when the answer was first seen to wait for its client; none where it does not.
    pub(super) unread: Option<UnreadMark>,
    pub(super) end: Option<Option<HeaderMap>>,
    /// It stands in the queue of those that have something to send.
    pub(super) queued: bool,
    pub(super) task: Option<CallTask>,
    pub(super) visit: V,
}

impl<V> Http2Stream<V> {
    /// A stream that has just begun, whose request is at its end.
    pub(super) fn new(send_window: i64, visit: V) -> Self {
        Self {
            incoming: IncomingRequest::Ended,
            window: i64::from(STREAM_WINDOW),
            unreported: 0,
            missing: None,
            send_window,
            pieces: VecDeque::new(),
            waiting: 0,
            sent: 0,
            unread: None,
            end: None,
            queued: false,
            task: None,
            visit,
        }
    }

    /// Counts bytes of the request and returns whether they fit the length that its head has said (RFC 9113, section
    /// 8.1.1). `end` says whether they are the last.
    pub(super) fn takes(&mut self, bytes: usize, end: bool) -> bool {
        let Some(missing) = self.missing else { return true };
        // A request that has ended is judged for that.
        if matches!(self.incoming, IncomingRequest::Ended) {
            return true;
        }
        let left = missing.checked_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.missing = Some(left.unwrap_or(0));
        left.is_some_and(|left| left == 0 || !end)
    }
}

/// Lets a stream that has something to send stand in the queue, once.
pub(super) fn queue<V>(queue: &mut VecDeque<u32>, id: u32, stream: &mut Http2Stream<V>) {
    if !stream.queued && (stream.waiting > 0 || stream.end.is_some()) {
        stream.queued = true;
        queue.push_back(id);
    }
}

/// Moves `length` bytes of a stream's answer into the output.
pub(super) fn move_pieces<V>(stream: &mut Http2Stream<V>, length: usize, output: &mut OutputQueue) {
    stream.waiting -= length;
    stream.sent = stream.sent.saturating_add(length as u64);
    if stream.waiting == 0 {
        stream.unread = None;
    }
    let mut left = length;
    while left > 0
        && let Some((piece, _)) = stream.pieces.front_mut()
    {
        if piece.len() > left {
            output.put(piece.split_to(left));
            return;
        }
        left -= piece.len();
        if let Some((piece, _)) = stream.pieces.pop_front() {
            output.put(piece);
        }
    }
}

/// Answers a call, and tells of the answer's pieces as far as there is room.
pub(super) async fn pump(
    answering: AnswerFuture<http::Response<tonic::body::Body>>,
    mut teller: FailureNotifier,
) {
    let (head, mut body) = answering.await.into_parts();
    let ended = http_body::Body::is_end_stream(&body);
    teller.tell(StreamEvent::Begun(head.status, head.headers, ended));
    if ended {
        teller.done = true;
        return;
    }
    let room = Arc::new(Semaphore::new(ANSWER_ROOM as usize));
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return };
        match frame.into_data() {
            Ok(piece) => {
                let size = u32::try_from(piece.len()).unwrap_or(u32::MAX).min(ANSWER_ROOM);
                // The semaphore is never closed.
                let Ok(permit) = Arc::clone(&room).acquire_many_owned(size).await else { return };
                teller.tell(StreamEvent::Piece(piece, permit));
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    teller.done = true;
    teller.tell(StreamEvent::Ended(trailers));
}
