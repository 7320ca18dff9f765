//! Heads of calls and trailers of requests (RFC 9113, sections 5.1 and 8).

use tokio::io::{AsyncRead, AsyncWrite};
use tonic::Status;

use super::super::assembler::MessageAssembler;
use super::super::body::{BodyEnding, body};
use super::super::closed_streams::LateFrame;
use super::super::frame::{self, ErrorReason, ProtocolViolation, wrong};
use super::super::head::CallHead;
use super::super::hpack::RequestHead;
use super::super::stream::{Http2Stream, IncomingRequest};
use super::super::{CallKind, GrpcService};
use super::{ConnectionPhase, Http2Connection, MAX_HEAD_BYTES, MAX_STREAMS};

impl<S: AsyncRead + AsyncWrite + Unpin, D: GrpcService> Http2Connection<S, D> {
    /// Takes a head whose block the parser holds: of a call, or the trailers of a request.
    pub(super) fn head(&mut self, id: u32, end: bool) -> Result<(), ProtocolViolation> {
        let head = self.decoder.decode(self.parser.block(), MAX_HEAD_BYTES).map_err(|_| {
            ProtocolViolation { reason: ErrorReason::Compression, text: "a head cannot be decoded" }
        })?;
        if self.streams.contains_key(&id) {
            self.trailers(id, &head, end);
            return Ok(());
        }
        if id.is_multiple_of(2) {
            return Err(wrong("a client begins a stream of the server's"));
        }
        if id <= self.highest || id <= self.closed.ignored() {
            return self.late(id);
        }
        if self.phase == ConnectionPhase::Last {
            self.closed.ignore(id);
            return Ok(());
        }
        self.closed.begin(self.highest, id);
        self.highest = id;
        if self.streams.len() >= MAX_STREAMS {
            self.refuse(id, ErrorReason::RefusedStream, end);
            return Ok(());
        }
        match CallHead::of(head) {
            Some(head) if !end || head.content_length.is_none_or(|bytes| bytes == 0) => {
                self.begin(id, head, end);
            }
            _ => self.refuse(id, ErrorReason::Protocol, end),
        }
        Ok(())
    }

    /// Judges data or a head of a stream that is over.
    pub(super) fn late(&mut self, id: u32) -> Result<(), ProtocolViolation> {
        match self.closed.judge(id) {
            LateFrame::Ignored => {}
            LateFrame::StreamError => {
                frame::write_reset(self.output.frames(), id, ErrorReason::StreamClosed);
            }
            LateFrame::ConnectionError => {
                let text = "a frame is of a stream that is over";
                return Err(ProtocolViolation { reason: ErrorReason::StreamClosed, text });
            }
            LateFrame::NeverBegun => {
                return Err(wrong("a frame is of a stream that was passed over"));
            }
        }
        Ok(())
    }

    /// Resets a stream that has not begun here.
    fn refuse(&mut self, id: u32, reason: ErrorReason, end: bool) {
        frame::write_reset(self.output.frames(), id, reason);
        if !end {
            self.closed.reset_here(id);
        }
    }

    /// Trailers say nothing here but that the request ends.
    fn trailers(&mut self, id: u32, head: &RequestHead, end: bool) {
        let Some(stream) = self.streams.get(&id) else { return };
        if matches!(stream.incoming, IncomingRequest::Ended) {
            self.reset(id, ErrorReason::StreamClosed);
        } else if end && head.are_trailers() && stream.missing.is_none_or(|bytes| bytes == 0) {
            self.end_request(id);
        } else {
            self.reset(id, ErrorReason::Protocol);
        }
    }

    fn begin(&mut self, id: u32, head: CallHead, end: bool) {
        let CallHead { mut parts, authority, too_large, content_length } = head;
        let (visit, entrance) = self.door.enter(&mut parts, authority.as_ref());
        let entrance = if too_large {
            let text = format!("the metadata are longer than {MAX_HEAD_BYTES} bytes");
            CallKind::Refused(Status::resource_exhausted(text))
        } else {
            entrance
        };
        let mut stream = Http2Stream::new(self.first_send_window, visit);
        stream.missing = content_length;
        if end && !matches!(entrance, CallKind::Refused(_)) {
            self.streams.insert(id, stream);
            self.call(id, parts).end(BodyEnding::Complete);
            return;
        }
        match entrance {
            CallKind::Refused(status) => {
                if !end {
                    // Whatever comes is left out.
                    let (feeder, _) = body(id, &self.tell, &self.read);
                    stream.incoming = IncomingRequest::Feed(feeder);
                }
                self.streams.insert(id, stream);
                self.answer(id, status.into());
            }
            CallKind::Gathered => {
                let parts = Box::new(parts);
                let gather = MessageAssembler::default();
                let mark = (self.watch.heard(), 0);
                let lease = self.door.begin_body();
                stream.incoming = IncomingRequest::Gather { parts, gather, mark, lease };
                self.gathering += 1;
                self.streams.insert(id, stream);
            }
            CallKind::Streamed => {
                self.streams.insert(id, stream);
                let feeder = self.call(id, parts);
                self.set_incoming(id, IncomingRequest::Feed(feeder));
            }
        }
    }
}
