//! Pace that a client must keep: while it sends a request, and while it reads an answer.

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::framing::ReadError;
use crate::client_pace::MIN_PACE_BYTES;

/// Deadline by which more of a request must have come.
#[derive(Debug)]
pub(super) struct ReadDeadline {
    stall: Duration,
    deadline: Instant,
    credit: usize,
}

impl ReadDeadline {
    /// Gives the peer so much time for the next [`MIN_PACE_BYTES`], or for all that is missing.
    pub(super) fn start(stall: Duration) -> Self {
        Self { stall, deadline: Instant::now() + stall, credit: 0 }
    }

    /// Reads what there is, or waits for it as long as the pace allows.
    pub(super) async fn read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        into: &mut impl BufMut,
    ) -> Result<(), ReadError> {
        match timeout_at(self.deadline, stream.read_buf(into)).await {
            Ok(Ok(bytes)) if bytes > 0 => self.credit += bytes,
            _ => return Err(ReadError::Closed),
        }
        if self.credit >= MIN_PACE_BYTES {
            *self = Self::start(self.stall);
        }
        Ok(())
    }
}

/// Time that a peer may still keep its answer waiting. Time in which there is nothing to write does not count.
#[derive(Debug)]
pub(super) struct WritePace {
    stall: Duration,
    left: Duration,
    credit: usize,
}

impl WritePace {
    /// Gives the peer so much time for the next [`MIN_PACE_BYTES`].
    pub(super) fn start(stall: Duration) -> Self {
        Self { stall, left: stall, credit: 0 }
    }

    /// Waits for a step that hands bytes to the socket, and returns how many it took.
    ///
    /// # Errors
    /// Returns the error of the socket; [`io::ErrorKind::TimedOut`] for a peer that reads too slowly.
    pub(super) async fn step(
        &mut self,
        step: impl Future<Output = io::Result<usize>>,
    ) -> io::Result<usize> {
        let begun = Instant::now();
        let bytes = match timeout(self.left, step).await {
            Ok(result) => result?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        self.credit += bytes;
        if self.credit >= MIN_PACE_BYTES {
            *self = Self::start(self.stall);
        } else {
            self.left = self.left.saturating_sub(begun.elapsed());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(60);

    /// Hands bytes over after a while.
    async fn taken(bytes: usize, seconds: u64) -> io::Result<usize> {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_byte_now_and_then_has_a_minute_in_all() {
        let mut pace = WritePace::start(STALL);
        for _ in 0..5 {
            pace.step(taken(1, 11)).await.unwrap();
            // Nothing waits meanwhile.
            tokio::time::sleep(STALL * 3).await;
        }
        let error = pace.step(taken(1, 11)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_enough_goes_on_for_ever() {
        let mut pace = WritePace::start(STALL);
        for _ in 0..50 {
            pace.step(taken(MIN_PACE_BYTES / 2, 25)).await.unwrap();
        }
    }
}
