//! Looks at a connection from time to time: whether its client goes on, and whether its calls do.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tonic::Status;

use super::super::frame::ErrorReason;
use super::super::keepalive::{ConnectionWatch, KeepaliveState, KeepaliveVerdict};
use super::super::stream::{IncomingRequest, UnreadMark};
use super::super::{GrpcService, frame};
use super::{ConnectionPhase, Http2Connection};
use crate::client_pace::MIN_PACE_BYTES;

impl<S: AsyncRead + AsyncWrite + Unpin, D: GrpcService> Http2Connection<S, D> {
    /// Returns the signs of whether the connection is alive.
    pub(super) fn signs(&self) -> KeepaliveState {
        KeepaliveState {
            settled: self.parser.is_settled(),
            inside: self.parser.is_inside(),
            gathers: self.gathering > 0,
            unwritten: !self.output.is_empty(),
            unread: self.unsent > 0,
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
            let latest = Instant::now() + self.keeping.stall;
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
        self.expire_unread(now);
        let next = self.watch.next(now, &self.signs(), &self.keeping);
        self.tick.as_mut().reset(next);
        Poll::Ready(Ok(()))
    }

    /// Ends calls whose messages do not go on.
    fn expire(&mut self, now: Instant) {
        let mut late = Vec::new();
        for (id, stream) in &mut self.streams {
            if let IncomingRequest::Gather { gather, mark, .. } = &mut stream.incoming
                && now >= mark.0 + self.keeping.stall
            {
                if gather.received() < mark.1 + MIN_PACE_BYTES {
                    late.push(*id);
                }
                *mark = (now, gather.received());
            }
        }
        for id in late {
            let text =
                format!("the request did not go on for {} seconds", self.keeping.stall.as_secs());
            self.answer(id, Status::deadline_exceeded(text).into());
        }
    }
    /// Ends calls whose answers their client does not take: they hold memory that others wait for.
    fn expire_unread(&mut self, now: Instant) {
        let mut late = Vec::new();
        for (id, stream) in self.streams.iter_mut().filter(|(_, stream)| stream.waiting > 0) {
            let mark = UnreadMark { since: now, sent: stream.sent };
            let before = *stream.unread.get_or_insert(mark);
            if now >= before.since + self.keeping.stall {
                if stream.sent - before.sent < MIN_PACE_BYTES as u64 {
                    late.push(*id);
                }
                stream.unread = Some(mark);
            }
        }
        for id in late {
            tracing::debug!("a gRPC client does not read its answer");
            self.reset(id, ErrorReason::EnhanceYourCalm);
        }
    }
}
