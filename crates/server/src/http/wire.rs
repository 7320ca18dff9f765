//! HTTP/1 on a socket: heads, bodies of announced length or in chunks, and answers.
//!
//! Written for this server and not taken from a library, because clients can see the difference: Triton closes a
//! connection on a malformed head without an answer, says `405 Not Allowed`, sends no date, and a body that is read
//! straight into one buffer can become a tensor without a copy.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::dialect;
use super::message::{BodyPieces, HttpHead, HttpMethod, HttpResponse};
use crate::status;

/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Most bytes that come with one read at the beginning of a request: all of a small one.
const FIRST_BYTES: usize = 16 * 1024;
/// Memory taken for a head, and for what comes with it, when its first bytes are there.
const HEAD_BYTES: usize = 4 * 1024;
/// Memory for heads of answers that is kept between requests.
const KEPT_OUT_BYTES: usize = 4 * 1024;
/// Most headers of a request.
const MAX_HEADERS: usize = 96;
/// Most chunks with content that a body may have.
const MAX_CHUNKS: usize = 65_536;
/// Longest line that announces a chunk, in bytes.
const MAX_CHUNK_LINE_BYTES: usize = 256;
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
/// Longest silence inside an answer, and longest time for the next [`MIN_BYTES`] of a request, or for all that is
/// missing if that is less. Between requests a connection may rest for ever.
const STALL: Duration = Duration::from_secs(60);
/// Most bytes of a refused request that are read and dropped.
const MAX_DRAINED_BYTES: usize = 1024 * 1024;
/// Longest body of a refused request that is read so that its connection can go on.
const MAX_SKIPPED_BYTES: u64 = 64 * 1024;
/// Longest time for reading and dropping.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes that a peer must send in [`STALL`].
const MIN_BYTES: usize = 16 * 1024;
/// Answers up to this size are sent with one copy instead of a gathered write.
const COPIED_BODY_BYTES: usize = 16 * 1024;

/// Why reading a request ended without one.
#[derive(Debug)]
pub(super) enum ReadError {
    /// Nothing can be answered: the peer is gone or does not speak HTTP.
    Closed,
    /// An answer is owed; the connection ends behind it.
    Refused(HttpResponse),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// Delimitation of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// A socket with what was read from it ahead.
#[derive(Debug)]
pub(super) struct HttpConnection<S> {
    stream: S,
    ahead: BytesMut,
    out: Vec<u8>,
    pace: ReadDeadline,
}

/// Until when more of a request must have come.
#[derive(Debug)]
struct ReadDeadline {
    deadline: Instant,
    credit: usize,
}

impl ReadDeadline {
    fn start() -> Self {
        Self { deadline: Instant::now() + STALL, credit: 0 }
    }

    /// Reads what there is, or waits for it as long as the pace allows.
    async fn read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        into: &mut impl BufMut,
    ) -> Result<(), ReadError> {
        match timeout_at(self.deadline, stream.read_buf(into)).await {
            Ok(Ok(bytes)) if bytes > 0 => self.credit += bytes,
            _ => return Err(ReadError::Closed),
        }
        if self.credit >= MIN_BYTES {
            *self = Self::start();
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> HttpConnection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, ahead: BytesMut::new(), out: Vec::new(), pace: ReadDeadline::start() }
    }

    /// Reads the next head; none when the peer closed between requests.
    pub(super) async fn head(&mut self) -> Result<Option<HttpHead>, ReadError> {
        if self.ahead.is_empty() && !self.rest().await? {
            return Ok(None);
        }
        self.rest_of_head().await
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
        self.pace = ReadDeadline::start();
        loop {
            if let Some((parsed, len)) = parse_head(&self.ahead)? {
                let bytes = self.ahead.split_to(len).freeze();
                let (method, path, headers, old) = parsed;
                return Ok(Some(HttpHead { bytes, method, path, headers, old }));
            }
            if self.ahead.len() >= MAX_HEAD_BYTES {
                return Err(ReadError::Closed);
            }
            self.ahead.reserve(4 * 1024);
            self.pace.read(&mut self.stream, &mut self.ahead).await?;
        }
    }

    /// Reads the body that belongs to a head.
    pub(super) async fn body(&mut self, head: &HttpHead) -> Result<Bytes, ReadError> {
        let framing = framing(head)?;
        if framing == BodyFraming::Length(0) {
            return Ok(Bytes::new());
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
        if length > MAX_BODY_BYTES {
            return Err(too_long(length));
        }
        let length = usize::try_from(length).map_err(|_| too_long(length))?;
        if length > PLACED_BODY_BYTES && length > self.ahead.len() {
            return self.placed_body(length, tensor_at).await;
        }
        self.fill(length).await?;
        Ok(self.ahead.split_to(length).freeze())
    }

    /// Reads a body into memory of its own, placed so that its first tensor is aligned and need not be copied.
    async fn placed_body(&mut self, length: usize, tensor_at: usize) -> Result<Bytes, ReadError> {
        let mut body = BytesMut::with_capacity(length.min(EAGER_BODY_BYTES) + TENSOR_ALIGNMENT);
        let tensor = body.as_ptr() as usize + tensor_at.min(length);
        let pad = tensor.next_multiple_of(TENSOR_ALIGNMENT) - tensor;
        body.put_bytes(0, pad);
        body.put(self.ahead.split());
        while body.len() < pad + length {
            let missing = pad + length - body.len();
            if body.capacity() == body.len() {
                body.reserve(missing.min(EAGER_BODY_BYTES));
            }
            self.pace.read(&mut self.stream, &mut (&mut body).limit(missing)).await?;
        }
        Ok(body.freeze().slice(pad..))
    }

    /// Reads until `length` bytes lie ahead.
    async fn fill(&mut self, length: usize) -> Result<(), ReadError> {
        while self.ahead.len() < length {
            let missing = length - self.ahead.len();
            let room = missing.min(EAGER_BODY_BYTES.max(self.ahead.len()));
            if self.ahead.capacity() - self.ahead.len() < room {
                self.ahead.reserve(room);
            }
            self.pace.read(&mut self.stream, &mut self.ahead).await?;
        }
        Ok(())
    }

    async fn body_in_chunks(&mut self) -> Result<Bytes, ReadError> {
        let mut body = BytesMut::new();
        let mut chunks = 0;
        loop {
            let line = self.line().await?;
            let size = chunk_size(&line).ok_or(ReadError::Closed)?;
            if size == 0 {
                // Trailers are read and dropped.
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            chunks += 1;
            if chunks > MAX_CHUNKS {
                return Err(refused(&format!(
                    "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. \
                     Send fewer or larger HTTP chunks."
                )));
            }
            let total = size.saturating_add(body.len() as u64);
            if total > MAX_BODY_BYTES {
                return Err(too_long(total));
            }
            let mut missing = usize::try_from(size).map_err(|_| too_long(size))?;
            while missing > 0 {
                self.fill(missing.min(EAGER_BODY_BYTES)).await?;
                let part = self.ahead.len().min(missing);
                body.extend_from_slice(self.ahead.get(..part).unwrap_or(&[]));
                self.ahead.advance(part);
                missing -= part;
            }
            self.fill(2).await?;
            if !self.ahead.starts_with(b"\r\n") {
                return Err(ReadError::Closed);
            }
            self.ahead.advance(2);
        }
    }

    /// A line of the chunked coding, without its end.
    async fn line(&mut self) -> Result<Bytes, ReadError> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.ahead.split_to(end).freeze();
                self.ahead.advance(2);
                return Ok(line);
            }
            if self.ahead.len() > MAX_CHUNK_LINE_BYTES {
                return Err(ReadError::Closed);
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
        write_head(&mut self.out, response, old, close);
        let small = response.body_bytes() <= COPIED_BODY_BYTES;
        if small {
            for part in &response.body {
                self.out.extend_from_slice(part);
            }
            in_time(self.stream.write_all(&self.out)).await?;
            return in_time(self.stream.flush()).await;
        }
        let mut slices: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(&self.out))
            .chain(response.body.iter().map(|part| IoSlice::new(part)))
            .collect();
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = in_time(self.stream.write_vectored(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut rest, written);
        }
        // Encrypted bytes may wait in the library.
        in_time(self.stream.flush()).await
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
            in_time(self.stream.write_all(&self.out)).await?;
            in_time(self.stream.flush()).await?;
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

/// Gives up on a peer that neither sends nor takes anything.
async fn in_time<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(STALL, step).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

type ParsedHead = (HttpMethod, Range<usize>, Vec<(Range<usize>, Range<usize>)>, bool);

/// Parses a head; none while it is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(ParsedHead, usize)>, ReadError> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let len = match request.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ReadError::Closed),
    };
    // The library accepts bare line feeds; Triton does not.
    if !bytes.get(..len).is_some_and(|head| head.ends_with(b"\r\n\r\n")) {
        return Err(ReadError::Closed);
    }
    let method = match request.method {
        Some("GET") => HttpMethod::Get,
        Some("POST") => HttpMethod::Post,
        Some("DELETE") => HttpMethod::Delete,
        _ => HttpMethod::Other,
    };
    let path = path_of(request.path.unwrap_or(""));
    let headers = request
        .headers
        .iter()
        .map(|header| (range(bytes, header.name.as_bytes()), range(bytes, header.value)))
        .collect();
    Ok(Some(((method, range(bytes, path.as_bytes()), headers, request.version == Some(0)), len)))
}

/// The path of a request target: without scheme and authority, without the query.
fn path_of(target: &str) -> &str {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/"),
        None => target,
    };
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// Returns the position of a part within its buffer.
fn range(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}

fn framing(head: &HttpHead) -> Result<BodyFraming, ReadError> {
    let length = head.header("content-length");
    if let Some(coding) = head.header("transfer-encoding") {
        // Both at once is how requests are smuggled past proxies.
        let alone = length.is_none() && coding.eq_ignore_ascii_case("chunked");
        return if alone { Ok(BodyFraming::Chunked) } else { Err(ReadError::Closed) };
    }
    let lengths = head.headers().filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    if lengths.count() > 1 {
        return Err(ReadError::Closed);
    }
    match length {
        None => Ok(BodyFraming::Length(0)),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(BodyFraming::Length).map_err(|_| ReadError::Closed)
        }
        Some(_) => Err(ReadError::Closed),
    }
}

/// Returns whether a body follows the head of a request.
///
/// # Errors
/// Returns [`ReadError::Closed`] if the length cannot be determined.
pub(super) fn has_body(head: &HttpHead) -> Result<bool, ReadError> {
    Ok(framing(head)? != BodyFraming::Length(0))
}

/// Returns whether the client sends the body only once it is asked to.
fn waits_for_leave(head: &HttpHead) -> bool {
    head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
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

/// The size that opens a chunk; extensions behind a semicolon are ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let digits = text.split_once(';').map_or(text, |(digits, _)| digits).trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

fn refused(text: &str) -> ReadError {
    ReadError::Refused(HttpResponse::error(400, super::message::ContentType::Json, text))
}

fn too_long(length: u64) -> ReadError {
    refused(&format!(
        "request body of {length} bytes exceeds the maximum allowed size of {MAX_BODY_BYTES} bytes"
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

/// Returns whether the connection ends after the answer to this request.
pub(super) fn wants_close(head: &HttpHead) -> bool {
    let says = |word: &str| {
        head.header("connection").is_some_and(|value| {
            value.split(',').any(|token| token.trim().eq_ignore_ascii_case(word))
        })
    };
    if head.old { !says("keep-alive") } else { says("close") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_go_out_as_they_come_and_a_peer_that_leaves_is_noticed() {
        let (mut client, server) = tokio::io::duplex(1000);
        let mut connection = HttpConnection::new(server);
        let (sender, mut pieces) = tokio::sync::mpsc::channel(1);
        let sending = tokio::spawn(async move {
            let (_keep, empty) = tokio::sync::mpsc::channel(1);
            let head = HttpResponse::streamed(super::super::ContentType::EventStream, empty);
            connection.send(&head, false, false).await.unwrap();
            connection.send_pieces(&mut pieces, false).await.unwrap();
            let (endless, mut pieces) = tokio::sync::mpsc::channel(1);
            let gone = connection.send_pieces(&mut pieces, false).await;
            drop(pieces);
            (gone.is_err(), endless.is_closed())
        });
        let mut text = [0; 100];
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                     Transfer-Encoding: chunked\r\n\r\n";
        client.read_exact(text.get_mut(..head.len()).unwrap()).await.unwrap();
        assert!(text.starts_with(head));
        for piece in ["data: 1\n\n", "", "0123456789abcdef"] {
            sender.send(Bytes::from_static(piece.as_bytes())).await.unwrap();
            let sent = if piece.is_empty() {
                String::new()
            } else {
                format!("{:x}\r\n{piece}\r\n", piece.len())
            };
            client.read_exact(text.get_mut(..sent.len()).unwrap()).await.unwrap();
            assert!(text.starts_with(sent.as_bytes()));
        }
        drop(sender);
        client.read_exact(text.get_mut(..5).unwrap()).await.unwrap();
        assert!(text.starts_with(b"0\r\n\r\n"));
        drop(client);
        assert_eq!(sending.await.unwrap(), (true, true));
    }

    /// Returns the requests that a connection reads until its peer closes, and whether the end was clean.
    async fn conversation(bytes: &[u8], cuts: &[usize]) -> (Vec<(String, Bytes)>, bool) {
        let (mut client, server) = tokio::io::duplex(100);
        let bytes = bytes.to_vec();
        let cuts = cuts.to_vec();
        let sender = tokio::spawn(async move {
            let mut rest = bytes.as_slice();
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                // The reader may have given up.
                client.write_all(now).await.ok();
                tokio::task::yield_now().await;
                rest = later;
            }
            client.write_all(rest).await.ok();
        });
        let mut connection = HttpConnection::new(server);
        let mut requests = Vec::new();
        let clean = loop {
            let read = async {
                let Some(head) = connection.head().await? else { return Ok(None) };
                let body = connection.body(&head).await?;
                Ok::<_, ReadError>(Some((format!("{} {}", head.method_name(), head.path()), body)))
            };
            match read.await {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        drop(connection);
        sender.await.unwrap();
        (requests, clean)
    }

    proptest::proptest! {
        #[test]
        fn requests_are_the_same_however_their_bytes_are_cut(
            kinds in proptest::collection::vec((0..4_u8, 0..300_usize, 1..50_usize), 1..6),
            cuts in proptest::collection::vec(0..60_usize, 0..20),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (number, (kind, size, chunk)) in kinds.into_iter().enumerate() {
                let body: Vec<u8> = (0..size).map(|at| b"\r\n0:a"[(at * 7 + number) % 5]).collect();
                let path = format!("/v2/{number}");
                match kind {
                    0 => bytes.extend_from_slice(format!("GET {path}?x HTTP/1.1\r\n\r\n").as_bytes()),
                    1 => {
                        let head = format!("POST {path} HTTP/1.1\r\nA: b\r\ncontent-LENGTH:{size}\r\n\r\n");
                        bytes.extend_from_slice(head.as_bytes());
                        bytes.extend_from_slice(&body);
                    }
                    _ => {
                        bytes.extend_from_slice(format!("POST {path} HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n").as_bytes());
                        for part in body.chunks(chunk) {
                            bytes.extend_from_slice(format!("{:X};e=1\r\n", part.len()).as_bytes());
                            bytes.extend_from_slice(part);
                            bytes.extend_from_slice(b"\r\n");
                        }
                        bytes.extend_from_slice(if kind == 2 { b"0\r\n\r\n" } else { b"0\r\nT: x\r\n\r\n" });
                    }
                }
                let (method, body) = if kind == 0 { ("GET", Vec::new()) } else { ("POST", body) };
                expected.push((format!("{method} {path}"), Bytes::from(body)));
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            proptest::prop_assert_eq!(runtime.block_on(conversation(&bytes, &cuts)), (expected, true));
        }

        #[test]
        fn any_bytes_end_without_panic(
            start in proptest::sample::select(vec![
                "", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n", "GET / HTTP/1.0\r\nHost",
            ]),
            bytes in proptest::collection::vec(proptest::sample::select(b"\r\n 0aF:;/\0\xff".to_vec()), 0..200),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let whole = [start.as_bytes(), &bytes].concat();
            let (requests, _) = runtime.block_on(conversation(&whole, &[start.len()]));
            proptest::prop_assert!(requests.len() <= whole.len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_drop_by_drop_is_given_up() {
        for start in ["", "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"] {
            let (mut client, server) = tokio::io::duplex(1000);
            let sender = tokio::spawn(async move {
                client.write_all(start.as_bytes()).await.unwrap();
                while client.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            });
            let begun = Instant::now();
            let mut connection = HttpConnection::new(server);
            let read = async {
                let head = connection.head().await?.unwrap();
                connection.body(&head).await
            };
            assert!(matches!(read.await, Err(ReadError::Closed)));
            assert!(begun.elapsed() <= STALL + Duration::from_secs(6), "{:?}", begun.elapsed());
            drop(connection);
            sender.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_as_long_as_it_likes_and_holds_no_memory_then() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let mut connection = HttpConnection::new(server);
        let body = vec![1; 500_000];
        for chunked in [false, true] {
            let framing =
                if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 500000" };
            client
                .write_all(format!("POST / HTTP/1.1\r\n{framing}\r\n\r\n").as_bytes())
                .await
                .unwrap();
            if chunked {
                client.write_all(b"7a120\r\n").await.unwrap();
            }
            client.write_all(&body).await.unwrap();
            if chunked {
                client.write_all(b"\r\n0\r\n\r\n").await.unwrap();
            }
            let head = connection.head().await.unwrap().unwrap();
            assert_eq!(connection.body(&head).await.unwrap(), body);
        }
        tokio::select! {
            _ = connection.head() => panic!("there is no third request"),
            () = tokio::time::sleep(Duration::from_secs(100_000)) => {}
        }
        assert_eq!((connection.ahead.capacity(), connection.out.capacity()), (0, 0));
    }

    #[tokio::test]
    async fn the_first_tensor_of_a_large_body_is_aligned() {
        let content: Vec<u8> = (0..40_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        for json in [1, 37, 64, 165] {
            let (client, server) = tokio::io::duplex(1000);
            let body = content.clone();
            let sent = tokio::spawn(async move {
                let mut client = client;
                let length = body.len();
                let head = format!(
                    "POST / HTTP/1.1\r\nContent-Length: {length}\r\nInference-Header-Content-Length: {json}\r\n\r\n"
                );
                client.write_all(head.as_bytes()).await.unwrap();
                client.write_all(&body).await.unwrap();
                client.write_all(b"next").await.unwrap();
            });
            let mut connection = HttpConnection::new(server);
            let head = connection.head().await.unwrap().unwrap();
            let body = connection.body(&head).await.unwrap();
            assert_eq!(body, content);
            assert_eq!(body.slice(json..).as_ptr() as usize % TENSOR_ALIGNMENT, 0);
            connection.fill(4).await.unwrap();
            assert_eq!(connection.ahead, &b"next"[..]);
            sent.await.unwrap();
        }
    }
}
