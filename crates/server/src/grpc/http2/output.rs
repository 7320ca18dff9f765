//! Bytes on their way to the socket: short ones together, long ones from where they are, all in few writes.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Pieces up to this size are copied behind what is before them.
const COPIED_BYTES: usize = 1024;
/// Pieces in one write.
const SLICES: usize = 64;

/// Bytes to be written.
#[derive(Debug, Default)]
pub(super) struct OutputQueue {
    queue: VecDeque<Bytes>,
    queued: usize,
    small: BytesMut,
    unflushed: bool,
    written: u64,
}

impl OutputQueue {
    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.queued + self.small.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0 && !self.unflushed
    }

    /// Bytes that were ever written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns the buffer into which frames are written.
    pub(super) fn frames(&mut self) -> &mut BytesMut {
        &mut self.small
    }

    pub(super) fn put(&mut self, piece: Bytes) {
        if piece.len() <= COPIED_BYTES {
            self.small.extend_from_slice(&piece);
        } else {
            self.seal();
            self.queued += piece.len();
            self.queue.push_back(piece);
        }
    }

    fn seal(&mut self) {
        if !self.small.is_empty() {
            self.queued += self.small.len();
            self.queue.push_back(self.small.split().freeze());
        }
    }

    /// Writes until all is written or the socket takes no more.
    pub(super) fn poll_write(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.seal();
        while let Some(first) = self.queue.front() {
            let written = if self.queue.len() == 1 {
                ready!(Pin::new(&mut *io).poll_write(context, first))?
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = self.queue.len().min(SLICES);
                for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                    *slice = IoSlice::new(piece);
                }
                let slices = slices.get(..count).unwrap_or_default();
                ready!(Pin::new(&mut *io).poll_write_vectored(context, slices))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unflushed = true;
            self.written = self.written.wrapping_add(written as u64);
            self.advance(written);
        }
        if self.unflushed {
            // Encrypted bytes may wait in the library.
            ready!(Pin::new(io).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, written: usize) {
        self.queued -= written;
        let mut rest = written;
        while let Some(first) = self.queue.front_mut() {
            if first.len() > rest {
                first.advance(rest);
                return;
            }
            rest -= first.len();
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn all_pieces_arrive_in_order_through_a_narrow_pipe() {
        let (mut near, mut far) = tokio::io::duplex(700);
        let mut output = OutputQueue::default();
        let mut expected = Vec::new();
        for (size, byte) in [1, 5000, 9, 2000, 1024, 1025, 3].into_iter().zip(0_u8..) {
            let piece = vec![byte; size];
            expected.extend_from_slice(&piece);
            output.put(piece.into());
        }
        assert_eq!(output.len(), expected.len());
        let writing = tokio::spawn(async move {
            std::future::poll_fn(|context| output.poll_write(&mut near, context)).await.unwrap();
            assert!(output.is_empty());
            output.written()
        });
        let mut found = vec![0; expected.len()];
        far.read_exact(&mut found).await.unwrap();
        assert_eq!(found, expected);
        assert_eq!(writing.await.unwrap(), expected.len() as u64);
    }
}
