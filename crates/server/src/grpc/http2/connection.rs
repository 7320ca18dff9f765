//! A connection: frames in, calls, frames out.

mod heads;
mod liveness;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

use super::assembler::AssembledPiece;
use super::body::{BodyEnding, BodyFeeder, body};
use super::closed_streams::ClosedStreams;
use super::closer::ConnectionCloser;
use super::frame::{
    self, ErrorReason, FrameEvent, FrameParser, MAX_WINDOW, PeerSettings, ProtocolViolation, wrong,
};
use super::hpack::{HpackDecoder, encode};
use super::keepalive::{ConnectionWatch, KeepaliveState};
use super::output::OutputQueue;
use super::pings::PingCounter;
use super::stream::{
    CallTask, FailureNotifier, Http2Stream, IncomingRequest, STREAM_WINDOW, move_pieces, pump,
    queue,
};
use super::stream_event::{StreamEvent, StreamEventSender};
use super::{AnswerFuture, ConnectionSettings, GrpcService, WholeAnswer};
use crate::body_budget::BudgetExhausted;
use crate::tasks::boxed;

/// Bytes that a client may send on all calls of a connection before it waits.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The windows that HTTP/2 starts with.
const FIRST_WINDOW: u32 = 65_535;
/// Calls at the same time on one connection.
const MAX_STREAMS: usize = 1024;
/// Longest head, as it is meant.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Bytes read at once.
const READ_BYTES: usize = 128 * 1024;
/// With so many bytes to write, nothing more is read and no more answers are taken up.
const HIGH_WATER: usize = 1 << 20;
/// Calls that a client may give up beyond those that it lets end.
const RESETS: u32 = 1000;
/// The ping whose answer says that the client knows of the end.
const DRAIN: [u8; 8] = *b"drained?";

thread_local! {
    /// Buffer of bytes from sockets until they are parsed, which is before the next read.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Stage in the shutdown of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    Open,
    /// The client has been told that there is an end.
    Draining,
    /// The client has been told which calls are the last.
    Last,
    /// Pending output is written, and then the connection closes.
    Over,
}

/// A connection of a client.
pub(in super::super) struct Http2Connection<S, D: GrpcService> {
    io: S,
    door: D,
    keeping: ConnectionSettings,
    parser: FrameParser,
    decoder: HpackDecoder,
    output: OutputQueue,
    block: Vec<u8>,
    streams: HashMap<u32, Http2Stream<D::Call>>,
    /// Streams whose messages are being gathered.
    gathering: usize,
    queue: VecDeque<u32>,
    /// Bytes of all answers that wait for windows of the client.
    unsent: usize,
    highest: u32,
    first_send_window: i64,
    max_frame_bytes: usize,
    send_window: i64,
    window: i64,
    unreported: usize,
    read: Arc<AtomicUsize>,
    tell: StreamEventSender,
    told: UnboundedReceiver<(u32, StreamEvent)>,
    /// Streams that are over.
    closed: ClosedStreams,
    /// The call that runs in this task.
    own: Option<(u32, AnswerFuture<WholeAnswer>)>,
    resets_left: u32,
    pings: PingCounter,
    watch: ConnectionWatch,
    events: u64,
    tick: Pin<Box<Sleep>>,
    phase: ConnectionPhase,
}

impl<S: AsyncRead + AsyncWrite + Unpin, D: GrpcService> Http2Connection<S, D> {
    /// A connection that was accepted, and what ends it.
    pub(in super::super) fn new(
        io: S,
        door: D,
        keeping: ConnectionSettings,
    ) -> (Self, ConnectionCloser) {
        let (tell, told) = unbounded_channel();
        let remote = ConnectionCloser::new(tell.clone());
        let now = Instant::now();
        let watch = ConnectionWatch::new(now);
        let first = watch.next(now, &KeepaliveState::default(), &keeping);
        let mut connection = Self {
            io,
            door,
            keeping,
            parser: FrameParser::new(),
            decoder: HpackDecoder::new(),
            output: OutputQueue::default(),
            block: Vec::new(),
            streams: HashMap::new(),
            gathering: 0,
            queue: VecDeque::new(),
            unsent: 0,
            highest: 0,
            first_send_window: i64::from(FIRST_WINDOW),
            max_frame_bytes: frame::MIN_MAX_FRAME_BYTES,
            send_window: i64::from(FIRST_WINDOW),
            window: i64::from(CONNECTION_WINDOW),
            unreported: 0,
            read: Arc::default(),
            tell,
            told,
            closed: ClosedStreams::default(),
            own: None,
            resets_left: RESETS,
            pings: PingCounter::default(),
            watch,
            events: 0,
            tick: Box::pin(tokio::time::sleep_until(first)),
            phase: ConnectionPhase::Open,
        };
        let most = u32::try_from(MAX_STREAMS).unwrap_or(u32::MAX);
        let list = u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX);
        let settings = [(3, most), (4, STREAM_WINDOW), (5, frame::MAX_FRAME_BYTES), (6, list)];
        frame::write_settings(connection.output.frames(), &settings);
        frame::write_window(connection.output.frames(), 0, CONNECTION_WINDOW - FIRST_WINDOW);
        (connection, remote)
    }

    /// Serves until the client goes or the connection is told to end.
    ///
    /// # Errors
    /// Returns the error of the socket.
    pub(in super::super) async fn run(mut self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll(context)).await?;
        std::future::poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut busy = false;
            while let Poll::Ready(Some((stream, told))) = self.told.poll_recv(context) {
                busy = true;
                self.hear(stream, told);
            }
            busy |= self.poll_own(context);
            if self.phase != ConnectionPhase::Over && self.output.len() < HIGH_WATER {
                match self.poll_read(context) {
                    Poll::Ready(Ok(true)) => busy = true,
                    Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            busy |= self.poll_write(context)?;
            if self.phase == ConnectionPhase::Last && self.streams.is_empty() {
                self.phase = ConnectionPhase::Over;
            }
            if self.phase == ConnectionPhase::Over && self.output.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if !busy {
                match self.poll_tick(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }

    /// Reads once; says whether the client is still there.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut scratch = SCRATCH.take();
        scratch.resize(READ_BYTES, 0);
        let mut buffer = ReadBuf::new(&mut scratch);
        let read = Pin::new(&mut self.io).poll_read(context, &mut buffer);
        let result = match read {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Poll::Ready(Ok(false)),
            Poll::Ready(Ok(())) => {
                self.watch.hear(Instant::now());
                if let Err(violation) = self.take_in(buffer.filled()) {
                    self.go_away(violation);
                }
                Poll::Ready(Ok(true))
            }
        };
        SCRATCH.set(scratch);
        result
    }

    fn take_in(&mut self, mut input: &[u8]) -> Result<(), ProtocolViolation> {
        while self.phase != ConnectionPhase::Over
            && let Some(event) = self.parser.next(&mut input)?
        {
            self.events += 1;
            match event {
                FrameEvent::Data { stream, bytes, counted, end } => {
                    self.data(stream, bytes, counted, end)?;
                }
                FrameEvent::Head { stream, end } => self.head(stream, end)?,
                FrameEvent::Settings(settings) => self.settings(settings)?,
                FrameEvent::Ping(bytes) => self.ping(bytes)?,
                FrameEvent::Pong(DRAIN) if self.phase == ConnectionPhase::Draining => {
                    self.tell_last()
                }
                FrameEvent::Reset { stream } => self.reset_by_client(stream)?,
                FrameEvent::Window { stream: 0, more } => {
                    self.send_window = widened(self.send_window, more)?;
                }
                FrameEvent::Window { stream, more } => self.widen(stream, more)?,
                FrameEvent::Pong(_) | FrameEvent::Other => {}
            }
        }
        Ok(())
    }

    fn settings(&mut self, settings: PeerSettings) -> Result<(), ProtocolViolation> {
        if let Some(window) = settings.window {
            let change = i64::from(window) - self.first_send_window;
            self.first_send_window = i64::from(window);
            for (id, stream) in &mut self.streams {
                stream.send_window += change;
                if stream.send_window > MAX_WINDOW {
                    return Err(overflow());
                }
                queue(&mut self.queue, *id, stream);
            }
        }
        if let Some(bytes) = settings.max_frame_bytes {
            self.max_frame_bytes = bytes.min(frame::MAX_FRAME_BYTES as usize);
        }
        frame::write_settings_ack(self.output.frames());
        Ok(())
    }

    fn ping(&mut self, bytes: [u8; 8]) -> Result<(), ProtocolViolation> {
        if self.pings.is_too_many(self.watch.heard(), &self.keeping, self.streams.len()) {
            return Err(ProtocolViolation {
                reason: ErrorReason::EnhanceYourCalm,
                text: "too_many_pings",
            });
        }
        frame::write_pong(self.output.frames(), bytes);
        Ok(())
    }

    /// A stream that has not begun cannot be spoken of.
    fn known(&self, stream: u32) -> Result<(), ProtocolViolation> {
        let begun = stream % 2 == 1 && stream <= self.highest.max(self.closed.ignored());
        if begun { Ok(()) } else { Err(wrong("a frame is of a stream that has not begun")) }
    }

    fn widen(&mut self, id: u32, more: u32) -> Result<(), ProtocolViolation> {
        self.known(id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        match widened(stream.send_window, more) {
            Ok(window) => {
                stream.send_window = window;
                queue(&mut self.queue, id, stream);
            }
            Err(violation) => self.reset(id, violation.reason),
        }
        Ok(())
    }

    fn reset_by_client(&mut self, id: u32) -> Result<(), ProtocolViolation> {
        self.known(id)?;
        if self.remove(id).is_some() {
            self.closed.reset_by_client(id);
            self.resets_left = self.resets_left.saturating_sub(1);
            if self.resets_left == 0 {
                let text = "too many calls are given up";
                return Err(ProtocolViolation { reason: ErrorReason::EnhanceYourCalm, text });
            }
        }
        Ok(())
    }

    fn data(
        &mut self,
        id: u32,
        bytes: &[u8],
        counted: usize,
        end: bool,
    ) -> Result<(), ProtocolViolation> {
        let size = i64::try_from(counted).unwrap_or(i64::MAX);
        self.window -= size;
        if self.window < 0 {
            let text = "the client sends more than the connection's window";
            return Err(ProtocolViolation { reason: ErrorReason::FlowControl, text });
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            self.known(id)?;
            self.report(counted);
            return self.late(id);
        };
        stream.window -= size;
        if stream.window < 0 {
            let text = "the client sends more than a stream's window";
            return Err(ProtocolViolation { reason: ErrorReason::FlowControl, text });
        }
        if !stream.takes(bytes.len(), end) {
            self.report(counted);
            self.reset(id, ErrorReason::Protocol);
            return Ok(());
        }
        let mut read = counted;
        let mut gathered = AssembledPiece::More;
        match &mut stream.incoming {
            IncomingRequest::Ended => {
                self.report(counted);
                self.reset(id, ErrorReason::StreamClosed);
                return Ok(());
            }
            IncomingRequest::Feed(feeder) => {
                if !bytes.is_empty() && feeder.put(bytes) {
                    read -= bytes.len();
                }
            }
            IncomingRequest::Gather { gather, lease, .. } => {
                gathered = match lease.cover(gather.received() + bytes.len()) {
                    Ok(()) => gather.put(bytes),
                    Err(BudgetExhausted) => AssembledPiece::without_memory(),
                }
            }
        }
        if !end {
            self.report_stream(id, read);
        }
        self.report(read);
        match gathered {
            AssembledPiece::More => {}
            AssembledPiece::Other(first) => self.feed(id, &first),
            AssembledPiece::TooLong(status) => {
                self.answer(id, status.into());
                return Ok(());
            }
        }
        if end {
            self.end_request(id);
        }
        Ok(())
    }

    /// Bytes of the connection's window may come again.
    fn report(&mut self, read: usize) {
        self.unreported += read;
        if self.unreported >= CONNECTION_WINDOW as usize / 2 {
            self.window += i64::try_from(self.unreported).unwrap_or(0);
            let more = u32::try_from(self.unreported).unwrap_or(0);
            frame::write_window(self.output.frames(), 0, more);
            self.pings.sent();
            self.unreported = 0;
        }
    }

    /// Bytes of a stream's window may come again.
    fn report_stream(&mut self, id: u32, read: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if matches!(stream.incoming, IncomingRequest::Ended) {
            return;
        }
        stream.unreported += u32::try_from(read).unwrap_or(0);
        if stream.unreported >= STREAM_WINDOW / 4 {
            stream.window += i64::from(stream.unreported);
            frame::write_window(self.output.frames(), id, stream.unreported);
            self.pings.sent();
            stream.unreported = 0;
        }
    }

    /// Puts what comes of a request into the place of what came so far.
    fn set_incoming(&mut self, id: u32, incoming: IncomingRequest) -> Option<IncomingRequest> {
        let stream = self.streams.get_mut(&id)?;
        let before = std::mem::replace(&mut stream.incoming, incoming);
        self.gathering -= usize::from(matches!(before, IncomingRequest::Gather { .. }));
        Some(before)
    }

    /// The request is not one to be gathered: the call begins and reads it itself.
    fn feed(&mut self, id: u32, first: &[u8]) {
        let Some(IncomingRequest::Gather { parts, .. }) =
            self.set_incoming(id, IncomingRequest::Ended)
        else {
            return;
        };
        let feeder = self.call(id, *parts);
        // It counted as read when it came.
        feeder.put_uncounted(first);
        self.set_incoming(id, IncomingRequest::Feed(feeder));
    }

    fn end_request(&mut self, id: u32) {
        match self.set_incoming(id, IncomingRequest::Ended) {
            Some(IncomingRequest::Feed(feeder)) => feeder.end(BodyEnding::Complete),
            Some(IncomingRequest::Gather { parts, gather, .. }) => match gather.finish() {
                Ok(Ok(message)) => self.unary(id, *parts, message),
                Ok(Err(first)) => {
                    let feeder = self.call(id, *parts);
                    feeder.put_uncounted(&first);
                    feeder.end(BodyEnding::Complete);
                }
                Err(status) => self.answer(id, status.into()),
            },
            Some(IncomingRequest::Ended) | None => {}
        }
    }

    /// Begins a call whose message is there: in this task where it is the only one, so that nobody waits for it.
    fn unary(&mut self, id: u32, parts: Parts, message: Bytes) {
        let answering = self.door.unary(parts, message);
        if self.own.is_none() && self.streams.len() == 1 {
            self.own = Some((id, answering));
            return;
        }
        let mut teller = FailureNotifier { tell: self.tell.clone(), stream: id, done: false };
        let task = tokio::spawn(async move {
            let whole = answering.await;
            teller.done = true;
            teller.tell(StreamEvent::Whole(whole));
        });
        self.set_task(id, task.abort_handle());
    }

    /// Begins any other call; gives the place where its request goes.
    fn call(&mut self, id: u32, parts: Parts) -> BodyFeeder {
        let (feeder, body) = body(id, &self.tell, &self.read);
        let answering = self.door.call(http::Request::from_parts(parts, body));
        let teller = FailureNotifier { tell: self.tell.clone(), stream: id, done: false };
        self.set_task(id, tokio::spawn(boxed(pump(answering, teller))).abort_handle());
        feeder
    }

    fn set_task(&mut self, id: u32, task: AbortHandle) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.task = Some(CallTask(task));
        }
    }

    fn poll_own(&mut self, context: &mut Context<'_>) -> bool {
        let Some((id, answering)) = &mut self.own else { return false };
        let Poll::Ready(whole) = answering.as_mut().poll(context) else { return false };
        let id = *id;
        self.own = None;
        self.answer(id, whole);
        true
    }

    fn hear(&mut self, id: u32, told: StreamEvent) {
        match told {
            StreamEvent::Begun(status, headers, end) => {
                self.write_head(id, Some(status), &headers, end)
            }
            StreamEvent::Piece(piece, permit) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.waiting += piece.len();
                    self.unsent += piece.len();
                    stream.pieces.push_back((piece, Some(permit)));
                    queue(&mut self.queue, id, stream);
                }
            }
            StreamEvent::Ended(trailers) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.end = Some(trailers);
                    queue(&mut self.queue, id, stream);
                }
            }
            StreamEvent::Whole(whole) => self.answer(id, whole),
            StreamEvent::Failed => self.reset(id, ErrorReason::Internal),
            StreamEvent::Read(bytes) => {
                self.report_stream(id, bytes);
                let read = self.read.swap(0, Ordering::AcqRel);
                self.report(read);
            }
            StreamEvent::Drain if self.phase == ConnectionPhase::Open => {
                self.phase = ConnectionPhase::Draining;
                let violation = ProtocolViolation { reason: ErrorReason::NoError, text: "" };
                frame::write_go_away(self.output.frames(), i32::MAX.unsigned_abs(), violation);
                frame::write_ping(self.output.frames(), DRAIN);
            }
            StreamEvent::Drain => {}
            StreamEvent::Close => {
                self.go_away(ProtocolViolation { reason: ErrorReason::NoError, text: "max_age" })
            }
        }
    }

    /// Tells the client which calls are the last.
    fn tell_last(&mut self) {
        self.phase = ConnectionPhase::Last;
        let violation = ProtocolViolation { reason: ErrorReason::NoError, text: "" };
        frame::write_go_away(self.output.frames(), self.highest, violation);
    }

    /// Ends the connection with a reason.
    fn go_away(&mut self, violation: ProtocolViolation) {
        if violation.reason != ErrorReason::NoError {
            tracing::debug!("a gRPC connection is ended: {}", violation.text);
        }
        frame::write_go_away(self.output.frames(), self.highest, violation);
        self.own = None;
        self.streams.clear();
        self.gathering = 0;
        self.unsent = 0;
        self.phase = ConnectionPhase::Over;
    }

    fn write_head(&mut self, id: u32, status: Option<StatusCode>, headers: &HeaderMap, end: bool) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        D::look(&mut stream.visit, headers);
        self.block.clear();
        encode(&mut self.block, status, headers);
        frame::write_headers(self.output.frames(), id, &self.block, end, self.max_frame_bytes);
        self.pings.sent();
        if end {
            self.finish(id);
        }
    }

    fn answer(&mut self, id: u32, whole: WholeAnswer) {
        let end = whole.pieces.is_empty() && whole.trailers.is_none();
        self.write_head(id, Some(StatusCode::OK), &whole.headers, end);
        if end {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.waiting = whole.pieces.iter().map(Bytes::len).sum();
        self.unsent += stream.waiting;
        stream.pieces.extend(whole.pieces.into_iter().map(|piece| (piece, None)));
        stream.end = Some(whole.trailers);
        queue(&mut self.queue, id, stream);
    }

    /// The answer of a stream is written.
    fn finish(&mut self, id: u32) {
        let Some(stream) = self.remove(id) else { return };
        if !matches!(stream.incoming, IncomingRequest::Ended) {
            // Nobody reads the rest of the request.
            frame::write_reset(self.output.frames(), id, ErrorReason::NoError);
            self.closed.reset_here(id);
        }
        self.resets_left = (self.resets_left + 1).min(RESETS);
    }

    fn reset(&mut self, id: u32, reason: ErrorReason) {
        if let Some(stream) = self.remove(id) {
            frame::write_reset(self.output.frames(), id, reason);
            if !matches!(stream.incoming, IncomingRequest::Ended) {
                self.closed.reset_here(id);
            }
        }
    }

    /// Forgets a stream; its call, if it still runs, is cancelled.
    fn remove(&mut self, id: u32) -> Option<Http2Stream<D::Call>> {
        let stream = self.streams.remove(&id)?;
        self.unsent -= stream.waiting;
        self.gathering -= usize::from(matches!(stream.incoming, IncomingRequest::Gather { .. }));
        if self.own.as_ref().is_some_and(|(own, _)| *own == id) {
            self.own = None;
        }
        Some(stream)
    }

    /// Takes up answers and writes them until the socket takes no more; says whether something was done that lets
    /// more be read.
    fn poll_write(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let full = self.output.len() >= HIGH_WATER;
        loop {
            self.fill();
            match self.output.poll_write(&mut self.io, context) {
                Poll::Ready(Ok(())) if self.is_fillable() => {}
                Poll::Ready(Ok(())) => break,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(full && self.output.len() < HIGH_WATER)
    }

    /// Returns whether an answer may be written now.
    fn is_fillable(&self) -> bool {
        self.queue.front().is_some_and(|id| {
            let waiting = self.streams.get(id).is_some_and(|stream| stream.waiting > 0);
            !waiting || self.send_window > 0
        })
    }

    /// Writes frames of the answers in turn, as far as the windows go.
    fn fill(&mut self) {
        while self.output.len() < HIGH_WATER
            && let Some(id) = self.queue.pop_front()
        {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.queued = false;
            if stream.waiting > 0 {
                if self.send_window <= 0 {
                    stream.queued = true;
                    self.queue.push_front(id);
                    return;
                }
                let room = usize::try_from(stream.send_window.min(self.send_window)).unwrap_or(0);
                let length = stream.waiting.min(room).min(self.max_frame_bytes);
                if length == 0 {
                    // It comes back with the next widening of its window.
                    continue;
                }
                let size = i64::try_from(length).unwrap_or(0);
                self.send_window -= size;
                stream.send_window -= size;
                frame::write_data_head(self.output.frames(), id, length);
                move_pieces(stream, length, &mut self.output);
                self.unsent -= length;
                self.pings.sent();
            }
            if stream.waiting == 0 {
                match stream.end.take() {
                    None => {}
                    Some(None) => {
                        frame::write_end(self.output.frames(), id);
                        self.finish(id);
                    }
                    Some(Some(trailers)) => self.write_head(id, None, &trailers, true),
                }
            } else {
                queue(&mut self.queue, id, stream);
            }
        }
    }
}

fn overflow() -> ProtocolViolation {
    ProtocolViolation { reason: ErrorReason::FlowControl, text: "a window grows too large" }
}

fn widened(window: i64, more: u32) -> Result<i64, ProtocolViolation> {
    if more == 0 {
        return Err(wrong("a window grows by nothing"));
    }
    let window = window + i64::from(more);
    if window > MAX_WINDOW { Err(overflow()) } else { Ok(window) }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
