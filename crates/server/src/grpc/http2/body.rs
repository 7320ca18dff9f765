//! The body of a request whose call reads it while it comes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;

use super::stream_event::{StreamEvent, StreamEventSender};

/// Bytes that were read before the peer hears of the room.
const REPORTED_BYTES: usize = 1 << 20;

#[derive(Default)]
struct BodyState {
    /// With the bytes that count when they are read.
    pieces: VecDeque<(Bytes, usize)>,
    end: Option<BodyEnding>,
    reader: Option<Waker>,
    unread: bool,
}

/// End of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnding {
    /// The body is finished as intended.
    Complete,
    /// The call or the connection has gone.
    Broken,
}

type SharedBody = Arc<Mutex<BodyState>>;

fn lock(state: &SharedBody) -> MutexGuard<'_, BodyState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writing end of a body, into which a connection puts the pieces. The body breaks if this is dropped early.
pub(super) struct BodyFeeder {
    state: SharedBody,
}

impl BodyFeeder {
    /// Adds a piece and returns whether it is wanted.
    pub(super) fn put(&self, piece: &[u8]) -> bool {
        self.add(piece, piece.len())
    }

    /// Adds a piece that was counted as read before.
    pub(super) fn put_uncounted(&self, piece: &[u8]) {
        if !piece.is_empty() {
            self.add(piece, 0);
        }
    }

    fn add(&self, piece: &[u8], counted: usize) -> bool {
        let mut state = lock(&self.state);
        if state.unread {
            return false;
        }
        state.pieces.push_back((Bytes::copy_from_slice(piece), counted));
        wake(state);
        true
    }

    pub(super) fn end(&self, end: BodyEnding) {
        let mut state = lock(&self.state);
        state.end.get_or_insert(end);
        wake(state);
    }
}

impl Drop for BodyFeeder {
    fn drop(&mut self) {
        self.end(BodyEnding::Broken);
    }
}

fn wake(mut state: MutexGuard<'_, BodyState>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// The body of a request.
pub(in super::super) struct InboundBody {
    state: SharedBody,
    stream: u32,
    tell: StreamEventSender,
    /// Bytes that all bodies of the connection have given to their readers.
    read: Arc<AtomicUsize>,
    owed: usize,
}

/// A body and the way to fill it.
pub(super) fn body(
    stream: u32,
    tell: &StreamEventSender,
    read: &Arc<AtomicUsize>,
) -> (BodyFeeder, InboundBody) {
    let state = SharedBody::default();
    let feeder = BodyFeeder { state: Arc::clone(&state) };
    (feeder, InboundBody { state, stream, tell: tell.clone(), read: Arc::clone(read), owed: 0 })
}

impl InboundBody {
    fn count(&mut self, bytes: usize) {
        self.owed += bytes;
        if self.owed >= REPORTED_BYTES {
            // The connection may have gone.
            drop(self.tell.send((self.stream, StreamEvent::Read(self.owed))));
            self.owed = 0;
        }
        let before = self.read.fetch_add(bytes, Ordering::AcqRel);
        if before < REPORTED_BYTES && before + bytes >= REPORTED_BYTES {
            drop(self.tell.send((0, StreamEvent::Read(0))));
        }
    }
}

impl Drop for InboundBody {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.unread = true;
        let rest = state.pieces.drain(..).map(|(_, counted)| counted).sum();
        drop(state);
        self.count(rest);
    }
}

impl http_body::Body for InboundBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut state = lock(&self.state);
        if let Some((piece, counted)) = state.pieces.pop_front() {
            drop(state);
            self.count(counted);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.end {
            Some(BodyEnding::Complete) => Poll::Ready(None),
            Some(BodyEnding::Broken) => {
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
            }
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = lock(&self.state);
        state.pieces.is_empty() && state.end == Some(BodyEnding::Complete)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn pieces_come_in_order_and_room_is_reported_once_it_is_large() {
        let (tell, mut told) = unbounded_channel();
        let read = Arc::default();
        let (feeder, mut body) = body(3, &tell, &read);
        assert!(feeder.put(b"ab") && feeder.put(&[0; REPORTED_BYTES]));
        feeder.end(BodyEnding::Complete);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
        assert!(told.try_recv().is_err());
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), REPORTED_BYTES);
        assert!(
            matches!(told.try_recv(), Ok((3, StreamEvent::Read(n))) if n == REPORTED_BYTES + 2)
        );
        assert!(matches!(told.try_recv(), Ok((0, StreamEvent::Read(0)))));
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn what_nobody_reads_is_counted_and_refused() {
        let (tell, _told) = unbounded_channel();
        let read = Arc::default();
        let (feeder, body) = body(3, &tell, &read);
        assert!(feeder.put(b"abc"));
        drop(body);
        assert_eq!(read.load(Ordering::Acquire), 3);
        assert!(!feeder.put(b"d"));
        let (feeder, mut body) = super::body(5, &tell, &read);
        drop(feeder);
        assert!(body.frame().await.unwrap().is_err());
    }
}
