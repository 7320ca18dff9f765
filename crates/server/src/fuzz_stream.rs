//! Socket of fuzz targets: bytes in memory.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Looks at the connection for which a peer rests before it closes, in which tasks of the runtime go on.
const RESTS: usize = 32;

/// Says whether a peer still waits for an answer.
type WaitsForAnswer = Box<dyn Fn() -> bool + Send + Sync>;

/// Bytes that one side has written.
#[derive(Debug, Default, Clone)]
pub(crate) struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

impl WrittenBytes {
    /// Takes what was written so far.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }
}

/// A peer that sends bytes in pieces of one length, rests, and then closes.
pub(crate) struct FuzzStream {
    rest: Bytes,
    piece: usize,
    rests: usize,
    written: WrittenBytes,
    waits: Option<WaitsForAnswer>,
}

impl fmt::Debug for FuzzStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FuzzStream").field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

impl FuzzStream {
    /// Makes a peer, and what it will have been sent. `piece` is the length of each piece in bytes.
    pub(crate) fn new(bytes: &[u8], piece: usize) -> (Self, WrittenBytes) {
        let written = WrittenBytes::default();
        let rest = Bytes::copy_from_slice(bytes);
        let stream =
            Self { rest, piece: piece.max(1), rests: RESTS, written: written.clone(), waits: None };
        (stream, written)
    }

    /// The same peer, which closes only when `waits` says no: threads that answer need time that no count of looks
    /// gives them.
    pub(crate) fn waiting(self, waits: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { waits: Some(Box::new(waits)), ..self }
    }

    fn goes_on_resting(&mut self) -> bool {
        if self.waits.as_ref().is_some_and(|waits| waits()) {
            std::thread::yield_now();
            return true;
        }
        let rests = self.rests > 0;
        self.rests = self.rests.saturating_sub(1);
        rests
    }
}

impl AsyncRead for FuzzStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() && self.goes_on_resting() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.rest.len().min(self.piece).min(into.remaining());
        into.put_slice(self.rest.get(..length).unwrap_or_default());
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FuzzStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.add(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waits = None;
        Poll::Ready(Ok(()))
    }
}
