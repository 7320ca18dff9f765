//! Looks at a connection from time to time: whether its client goes on, and whether its calls do.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tonic::Status;

use super::super::keepalive::{ConnectionWatch, KeepaliveState, KeepaliveVerdict, STALL};
use super::super::stream::IncomingRequest;
use super::super::{GrpcService, frame};
use super::{ConnectionPhase, Http2Connection};

/// A message must bring so many bytes in the time in which a connection must go on.
const MIN_BYTES: usize = 16 * 1024;

impl<S: AsyncRead + AsyncWrite + Unpin, D: GrpcService> Http2Connection<S, D> {
    /// Returns the signs of whether the connection is alive.
    pub(super) fn signs(&self) -> KeepaliveState {
        KeepaliveState {
            settled: self.parser.is_settled(),
            inside: self.parser.is_inside(),
            gathers: self.gathering > 0,
            unwritten: !self.output.is_empty(),
            parting: self.phase == ConnectionPhase::Draining && self.streams.is_empty(),
            calls: !self.streams.is_empty(),
            events: self.events,
            written: self.output.written(),
        }
    }

    /// Waits for the next look at the connection, and looks.
    pub(super) fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let signs = self.signs();
        if ConnectionWatch::is_midway(&signs) {
            let latest = Instant::now() + STALL;
            if self.tick.deadline() > latest {
                self.tick.as_mut().reset(latest);
            }
        }
        if self.tick.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let now = Instant::now();
        match self.watch.look(now, &signs, &self.keeping) {
            KeepaliveVerdict::Fine => {}
            KeepaliveVerdict::Ping => frame::write_ping(self.output.frames(), [0; 8]),
            KeepaliveVerdict::Dead(why) => {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
            }
        }
        self.expire(now);
        let next = self.watch.next(now, &self.signs(), &self.keeping);
        self.tick.as_mut().reset(next);
        Poll::Ready(Ok(()))
    }

    /// Ends calls whose messages do not go on.
    fn expire(&mut self, now: Instant) {
        let mut late = Vec::new();
        for (id, stream) in &mut self.streams {
            if let IncomingRequest::Gather { gather, mark, .. } = &mut stream.incoming
                && now >= mark.0 + STALL
            {
                if gather.received() < mark.1 + MIN_BYTES {
                    late.push(*id);
                }
                *mark = (now, gather.received());
            }
        }
        for id in late {
            let text = format!("the request did not go on for {} seconds", STALL.as_secs());
            self.answer(id, Status::deadline_exceeded(text).into());
        }
    }
}
