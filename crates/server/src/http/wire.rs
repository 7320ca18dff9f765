//! HTTP/1 on a socket: heads, bodies of announced length or in chunks, and answers.
//!
//! Written for this server and not taken from a library, because clients can see the difference: Triton says
//! `405 Not Allowed`, sends no date, and a body that is read straight into one buffer can become a tensor without a copy.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::dialect;
use super::framing::{
    BodyFraming, MAX_CHUNK_LINE_BYTES, MAX_EXTENSION_BYTES, MAX_TRAILER_BYTES, ReadError,
    check_trailers, chunk_size, framing, malformed, waits_for_leave,
};
use super::head::{MAX_HEAD_BYTES, head_too_long, parse_head};
use super::message::{BodyPieces, HttpHead, HttpResponse};
use super::pace::{ReadDeadline, WritePace};
use crate::body_budget::{BodyBudget, BodyLease, has_memory};
use crate::client_pace::CLIENT_STALL;
use crate::status;

/// Most bytes that come with one read at the beginning of a request: all of a small one.
const FIRST_BYTES: usize = 16 * 1024;
/// Memory taken for a head, and for what comes with it, when its first bytes are there.
const HEAD_BYTES: usize = 4 * 1024;
/// Memory for heads of answers that is kept between requests.
const KEPT_OUT_BYTES: usize = 4 * 1024;
/// Most chunks with content that a body may have.
const MAX_CHUNKS: usize = 65_536;
/// The status of an answer that has no body and says nothing about one.
const NO_CONTENT: u16 = 204;
/// Bodies up to this size get their memory at once; longer ones grow with what arrives.
const EAGER_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Bodies beyond this size get memory of their own, in which their first tensor is aligned.
const PLACED_BODY_BYTES: usize = 8 * 1024;
/// Alignment of tensors: the width of the widest vector register.
const TENSOR_ALIGNMENT: usize = 64;
/// Longest body, the limit of gRPC messages.
const MAX_BODY_BYTES: u64 = i32::MAX as u64;
/// Most bytes of a refused request that are read and dropped.
const MAX_DRAINED_BYTES: usize = 1024 * 1024;
/// Longest body of a refused request that is read so that its connection can go on.
const MAX_SKIPPED_BYTES: u64 = 64 * 1024;
/// Longest time for reading and dropping.
const LINGER: Duration = Duration::from_secs(2);
/// Answers up to this size are sent with one copy instead of a gathered write.
const COPIED_BODY_BYTES: usize = 16 * 1024;

/// A socket with what was read from it ahead.
#[derive(Debug)]
pub(super) struct HttpConnection<S> {
    stream: S,
    ahead: BytesMut,
    out: Vec<u8>,
    /// The request is for a head alone, and so is its answer.
    is_head: bool,
    /// Longest time for the next bytes of a request or an answer. Between requests a connection may rest for ever.
    stall: Duration,
    pace: ReadDeadline,
    write_pace: WritePace,
    /// Memory for bodies that have not come as a whole; none where it is not bounded.
    budget: Option<Arc<BodyBudget>>,
    /// Longest body of the request that is being read.
    most_body: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> HttpConnection<S> {
    pub(super) fn new(stream: S) -> Self {
        let ahead = BytesMut::new();
        Self {
            stream,
            ahead,
            out: Vec::new(),
            is_head: false,
            stall: CLIENT_STALL,
            pace: ReadDeadline::start(CLIENT_STALL),
            write_pace: WritePace::start(CLIENT_STALL),
            budget: None,
            most_body: MAX_BODY_BYTES,
        }
    }

    /// The same connection, whose bodies share memory with those of others.
    pub(super) fn with_budget(self, budget: Arc<BodyBudget>) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The same connection, whose peer has so much time for the next bytes of a request or an answer.
    pub(super) fn with_stall(self, stall: Duration) -> Self {
        Self { stall, ..self }
    }

    /// Lets the next bodies have so many bytes at most.
    pub(super) fn limit_body(&mut self, most_bytes: u64) {
        self.most_body = most_bytes.min(MAX_BODY_BYTES);
    }

    /// Reads the next head; none when the peer closed between requests.
    pub(super) async fn head(&mut self) -> Result<Option<HttpHead>, ReadError> {
        if self.ahead.is_empty() && !self.rest().await? {
            return Ok(None);
        }
        self.rest_of_head().await
    }

    /// Waits until a request begins, and says whether one does. Waiting can be given up at any time.
    pub(super) async fn rest_until_begun(&mut self) -> Result<bool, ReadError> {
        if self.ahead.is_empty() { self.rest().await } else { Ok(true) }
    }

    /// Waits for the first bytes of a request, for ever, with as little memory as that takes; says whether there are.
    async fn rest(&mut self) -> Result<bool, ReadError> {
        // What the last request and its answer took is given back.
        self.ahead = BytesMut::new();
        if self.out.capacity() > KEPT_OUT_BYTES {
            self.out = Vec::new();
        }
        let stream = &mut self.stream;
        let ahead = &mut self.ahead;
        let first = poll_fn(|context| {
            // On the stack of the poll: a connection that waits has none of it.
            let mut room = [const { MaybeUninit::uninit() }; FIRST_BYTES];
            let mut first = ReadBuf::uninit(&mut room);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut first))?;
            ahead.reserve(HEAD_BYTES.max(first.filled().len()));
            ahead.extend_from_slice(first.filled());
            Poll::Ready(Ok(!first.filled().is_empty()))
        });
        first.await
    }

    async fn rest_of_head(&mut self) -> Result<Option<HttpHead>, ReadError> {
        self.pace = ReadDeadline::start(self.stall);
        self.is_head = false;
        let mut left = MAX_HEAD_BYTES;
        // Before a first look nobody knows whether the client speaks HTTP at all.
        let mut looks = true;
        loop {
            // Empty lines before a request are left out (RFC 9112, section 2.2).
            while self.ahead.starts_with(b"\r\n") {
                self.ahead.advance(2);
                left = left.saturating_sub(2);
            }
            if looks && let Some(parts) = parse_head(&self.ahead)? {
                let bytes = self.ahead.split_to(parts.length).freeze();
                let head = parts.of(bytes);
                self.is_head = head.is_head;
                return Ok(Some(head));
            }
            if self.ahead.len() >= left {
                return Err(head_too_long(&self.ahead));
            }
            let before = self.ahead.len();
            self.ahead.reserve(4 * 1024);
            self.pace.read(&mut self.stream, &mut self.ahead).await?;
            // A head that comes byte by byte is parsed once a line, not once a byte.
            looks = self.ahead.get(before..).is_some_and(|come| come.contains(&b'\n'));
        }
    }

    /// Reads the body that belongs to a head.
    pub(super) async fn body(&mut self, head: &HttpHead) -> Result<Bytes, ReadError> {
        let framing = framing(head)?;
        if framing == BodyFraming::Length(0) {
            return Ok(Bytes::new());
        }
        if let BodyFraming::Length(length) = framing
            && length > self.most_body
        {
            return Err(too_long(length, self.most_body));
        }
        if waits_for_leave(head) && self.ahead.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        match framing {
            BodyFraming::Length(length) => self.body_of_length(length, tensor_at(head)).await,
            BodyFraming::Chunked => self.body_in_chunks().await,
        }
    }

    /// Reads and drops the body of a request that is refused, if it is short and on its way: the connection can then go
    /// on. Says whether a body stays unread.
    pub(super) async fn skip_body(&mut self, head: &HttpHead) -> Result<bool, ReadError> {
        match framing(head)? {
            BodyFraming::Length(length)
                if length <= MAX_SKIPPED_BYTES && !waits_for_leave(head) =>
            {
                self.body(head).await.map(|_| false)
            }
            _ => Ok(true),
        }
    }

    /// `tensor_at` is where the first tensor begins in the body.
    async fn body_of_length(&mut self, length: u64, tensor_at: usize) -> Result<Bytes, ReadError> {
        let most = self.most_body;
        if length > most {
            return Err(too_long(length, most));
        }
        let length = usize::try_from(length).map_err(|_| too_long(length, most))?;
        if length > PLACED_BODY_BYTES && length > self.ahead.len() {
            return self.placed_body(length, tensor_at).await;
        }
        self.fill(length).await?;
        Ok(self.ahead.split_to(length).freeze())
    }

    /// Reads a body into memory of its own, placed so that its first tensor is aligned and need not be copied.
    async fn placed_body(&mut self, length: usize, tensor_at: usize) -> Result<Bytes, ReadError> {
        let eager = length.min(EAGER_BODY_BYTES) + TENSOR_ALIGNMENT;
        if !has_memory(eager) {
            return Err(without_memory(length));
        }
        let mut body = BytesMut::with_capacity(eager);
        let tensor = body.as_ptr() as usize + tensor_at.min(length);
        let pad = tensor.next_multiple_of(TENSOR_ALIGNMENT) - tensor;
        body.put_bytes(0, pad);
        body.put(self.ahead.split());
        let mut lease = self.begin_body();
        while body.len() < pad + length {
            let missing = pad + length - body.len();
            let room = self.room(&mut lease, body.len()).await?;
            if body.capacity() == body.len() {
                // It is moved where it cannot grow.
                let more = missing.min(EAGER_BODY_BYTES);
                if !has_memory(body.len() + more) {
                    return Err(without_memory(length));
                }
                body.reserve(more);
            }
            let wanted = missing.min(room);
            self.pace.read(&mut self.stream, &mut (&mut body).limit(wanted)).await?;
        }
        Ok(body.freeze().slice(pad..))
    }

    fn begin_body(&self) -> BodyLease {
        self.budget.as_ref().map(|budget| budget.begin()).unwrap_or_default()
    }

    /// Returns how many bytes may come behind those of a body that have come. Until others are complete the body stays
    /// unread.
    async fn room(&mut self, lease: &mut BodyLease, come: usize) -> Result<usize, ReadError> {
        if let Some(room) = lease.room(come) {
            return Ok(room);
        }
        lease.grow().await.map_err(|_| crowded())?;
        // The wait was not the client's.
        self.pace = ReadDeadline::start(self.stall);
        Ok(lease.room(come).unwrap_or(1))
    }

    /// Reads until `length` bytes lie ahead.
    async fn fill(&mut self, length: usize) -> Result<(), ReadError> {
        while self.ahead.len() < length {
            let missing = length - self.ahead.len();
            let room = missing.min(EAGER_BODY_BYTES.max(self.ahead.len()));
            if self.ahead.capacity() - self.ahead.len() < room {
                if !has_memory(self.ahead.len() + room) {
                    return Err(without_memory(length));
                }
                self.ahead.reserve(room);
            }
            self.pace.read(&mut self.stream, &mut self.ahead).await?;
        }
        Ok(())
    }

    async fn body_in_chunks(&mut self) -> Result<Bytes, ReadError> {
        let mut body = BytesMut::new();
        let mut lease = self.begin_body();
        let mut chunks = 0;
        let mut extensions = 0;
        loop {
            let line = self.line(MAX_CHUNK_LINE_BYTES).await?;
            let size = chunk_size(&line)?;
            if size == 0 {
                self.trailers().await?;
                return Ok(body.freeze());
            }
            chunks += 1;
            if chunks > MAX_CHUNKS {
                return Err(refused(&format!(
                    "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. \
                     Send fewer or larger HTTP chunks."
                )));
            }
            extensions += line.iter().skip_while(|byte| byte.is_ascii_hexdigit()).count();
            if extensions > MAX_EXTENSION_BYTES {
                return Err(malformed("the extensions of the chunks are too long"));
            }
            let total = size.saturating_add(body.len() as u64);
            if total > self.most_body {
                return Err(too_long(total, self.most_body));
            }
            let mut missing = usize::try_from(size).map_err(|_| too_long(size, self.most_body))?;
            while missing > 0 {
                let room = self.room(&mut lease, body.len()).await?;
                self.fill(missing.min(EAGER_BODY_BYTES).min(room)).await?;
                let part = self.ahead.len().min(missing);
                if body.capacity() - body.len() < part && !has_memory(2 * body.len() + part) {
                    return Err(without_memory(body.len() + part));
                }
                body.extend_from_slice(self.ahead.get(..part).unwrap_or(&[]));
                self.ahead.advance(part);
                missing -= part;
            }
            self.fill(2).await?;
            if !self.ahead.starts_with(b"\r\n") {
                return Err(malformed("a chunk is longer than its size"));
            }
            self.ahead.advance(2);
        }
    }

    /// Reads the trailers behind the last chunk, and drops them.
    async fn trailers(&mut self) -> Result<(), ReadError> {
        let mut lines = Vec::new();
        loop {
            let line = self.line(MAX_TRAILER_BYTES.saturating_sub(lines.len())).await?;
            lines.extend_from_slice(&line);
            lines.extend_from_slice(b"\r\n");
            if line.is_empty() {
                return check_trailers(&lines);
            }
        }
    }

    /// A line of the chunked coding, without its end.
    async fn line(&mut self, most: usize) -> Result<Bytes, ReadError> {
        loop {
            let seen = self.ahead.get(..most + 2).unwrap_or(&self.ahead);
            if let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.ahead.split_to(end).freeze();
                self.ahead.advance(2);
                return Ok(line);
            }
            if self.ahead.len() >= most + 2 {
                return Err(malformed("a line of the chunked coding is too long"));
            }
            self.fill(self.ahead.len() + 1).await?;
        }
    }

    /// Waits until the peer closes the connection; what it sends meanwhile is kept, up to a bound.
    pub(super) async fn closed(&mut self) {
        while self.ahead.len() < MAX_HEAD_BYTES {
            self.ahead.reserve(4 * 1024);
            match self.stream.read_buf(&mut self.ahead).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending::<()>().await;
    }

    /// Sends an answer. `old`: to a request of HTTP/1.0.
    pub(super) async fn send(
        &mut self,
        response: &HttpResponse,
        old: bool,
        close: bool,
    ) -> io::Result<()> {
        self.out.clear();
        self.write_pace = WritePace::start(self.stall);
        write_head(&mut self.out, response, old, close);
        // An answer to HEAD has the head of an answer to GET and nothing behind it.
        let body: &[Bytes] = if self.is_head { &[] } else { &response.body };
        if body.iter().map(Bytes::len).sum::<usize>() <= COPIED_BODY_BYTES {
            for part in body {
                self.out.extend_from_slice(part);
            }
            return self.write_out().await;
        }
        let mut slices: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(&self.out))
            .chain(body.iter().map(|part| IoSlice::new(part)))
            .collect();
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = self.write_pace.step(self.stream.write_vectored(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut rest, written);
        }
        self.flush().await
    }

    /// Writes what is prepared.
    async fn write_out(&mut self) -> io::Result<()> {
        let mut rest = self.out.as_slice();
        while !rest.is_empty() {
            let written = self.write_pace.step(self.stream.write(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = rest.get(written..).unwrap_or_default();
        }
        self.flush().await
    }

    /// Writes encrypted bytes that wait in the library.
    async fn flush(&mut self) -> io::Result<()> {
        let stream = &mut self.stream;
        self.write_pace.step(async { stream.flush().await.map(|()| 0) }).await.map(drop)
    }

    /// Sends the pieces of a body as they come, behind its head. Pieces that are ready together are sent
    /// together.
    ///
    /// # Errors
    /// Fails when the peer has gone; dropping the pieces then notifies their producer.
    pub(super) async fn send_pieces(
        &mut self,
        pieces: &mut BodyPieces,
        old: bool,
    ) -> Result<(), ReadError> {
        if self.is_head {
            return Ok(());
        }
        loop {
            let mut next = tokio::select! {
                biased;
                piece = pieces.recv() => piece,
                () = self.closed() => return Err(ReadError::Closed),
            };
            let ended = next.is_none();
            self.out.clear();
            while let Some(piece) = next {
                write_piece(&mut self.out, &piece, old);
                let room = self.out.len() < COPIED_BODY_BYTES;
                next = if room { pieces.try_recv().ok() } else { None };
            }
            if ended && !old {
                self.out.extend_from_slice(b"0\r\n\r\n");
            }
            self.write_out().await?;
            if ended {
                return Ok(());
            }
        }
    }

    /// Reads on behind an answer that ends the connection while the peer may still be sending: a socket that is
    /// closed with bytes unread takes the answer away from the peer. Bounded in bytes and time.
    pub(super) async fn linger(&mut self) {
        self.shutdown().await;
        let reading = async {
            let mut left = MAX_DRAINED_BYTES;
            while left > 0 {
                self.ahead.clear();
                self.ahead.reserve(4 * 1024);
                match self.stream.read_buf(&mut self.ahead).await {
                    Ok(0) | Err(_) => return,
                    Ok(bytes) => left = left.saturating_sub(bytes),
                }
            }
        };
        // A peer that goes on sending has had its time.
        tokio::time::timeout(LINGER, reading).await.ok();
    }

    /// Tells the peer that nothing follows.
    pub(super) async fn shutdown(&mut self) {
        // The peer may be gone already, which is as good.
        self.stream.shutdown().await.ok();
    }
}

/// Returns the offset of the first binary tensor in a body: behind the JSON part, whose length the head
/// gives.
fn tensor_at(head: &HttpHead) -> usize {
    let length = head.header("inference-header-content-length").or_else(|| {
        let content = head.header("content-type")?;
        Some(content.rsplit_once(dialect::LENGTH_MARK)?.1)
    });
    length.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn refused(text: &str) -> ReadError {
    ReadError::refused(400, text)
}

/// The answer to a body for which the system has no memory.
fn without_memory(bytes: usize) -> ReadError {
    let text = format!("the system has no memory for a body of {bytes} bytes");
    let response = HttpResponse::error(503, super::message::ContentType::Json, &text);
    ReadError::Refused(response.with_header("Retry-After", "1"))
}

/// The answer to a body for which others leave no memory.
fn crowded() -> ReadError {
    let text =
        "the bodies of other requests that are on their way take all memory for them; try again";
    let response = HttpResponse::error(503, super::message::ContentType::Json, text);
    ReadError::Refused(response.with_header("Retry-After", "1"))
}

fn too_long(length: u64, most: u64) -> ReadError {
    refused(&format!(
        "request body of {length} bytes exceeds the maximum allowed size of {most} bytes"
    ))
}

/// A piece of a body in the chunked coding, which old clients do not know.
fn write_piece(out: &mut Vec<u8>, piece: &[u8], old: bool) {
    // An empty chunk would be the end.
    if old || piece.is_empty() {
        return out.extend_from_slice(piece);
    }
    out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
}

fn write_head(out: &mut Vec<u8>, response: &HttpResponse, old: bool, close: bool) {
    out.extend_from_slice(if old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    out.extend_from_slice(itoa::Buffer::new().format(response.status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(status::reason(response.status).as_bytes());
    let bare = response.status == NO_CONTENT;
    if !bare {
        out.extend_from_slice(b"\r\nContent-Type: ");
        response.content_type.write(out);
    }
    for (name, value) in &response.headers {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    let length = response.body_bytes();
    // An old client that is told of the close reads to the end of the stream.
    if response.pieces.is_some() {
        // An old client reads to the end of the stream.
        out.extend_from_slice(if old { b"" } else { b"\r\nTransfer-Encoding: chunked" });
    } else if (length > 0 || !old || !close) && !bare {
        out.extend_from_slice(b"\r\nContent-Length: ");
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    }
    match (close, old) {
        (true, false) => out.extend_from_slice(b"\r\nConnection: close"),
        (false, true) => out.extend_from_slice(b"\r\nConnection: keep-alive"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
