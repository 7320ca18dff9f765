//! Requests and responses of HTTP/1.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use galatea_serving::ServingError;
use galatea_serving::trace::RequestTrace;
use tokio::sync::mpsc::Receiver;

use crate::json;
use crate::status;

/// Methods that endpoints tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// GET
    Get,
    /// POST
    Post,
    /// DELETE
    Delete,
    /// Every other one, HEAD and unknown ones included.
    Other,
}

/// The head of a request; names and values are ranges of the received bytes.
#[derive(Debug)]
pub struct HttpHead {
    pub(super) bytes: Bytes,
    pub(super) method: HttpMethod,
    /// The method is HEAD.
    pub(super) is_head: bool,
    pub(super) path: Range<usize>,
    /// Host of a target that is a URL.
    pub(super) authority: Option<Range<usize>>,
    pub(super) headers: Vec<(Range<usize>, Range<usize>)>,
    /// The request is of HTTP/1.0.
    pub(super) old: bool,
}

impl HttpHead {
    /// Returns the method of the request.
    #[must_use]
    pub fn method(&self) -> HttpMethod {
        self.method
    }

    /// The method as received.
    #[must_use]
    pub fn method_name(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == b' ').unwrap_or(0);
        self.text(&(0..end))
    }

    /// The path as received, without the query and not percent-decoded.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text(&self.path)
    }

    /// The first header of that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| self.text(key).eq_ignore_ascii_case(name))
            .map(|(_, value)| self.text(value))
    }

    /// The host in the request target, where that is a URL and not a path.
    pub(super) fn authority(&self) -> Option<&str> {
        self.authority.as_ref().map(|range| self.text(range))
    }

    /// The values of all headers of that name, in any case.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Names and values of all headers in the order received.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (self.text(name), self.text(value)))
    }

    fn text(&self, range: &Range<usize>) -> &str {
        let bytes = self.bytes.get(range.clone()).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or("")
    }
}

/// Content types of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// `text/plain`
    Text,
    /// `application/json`
    Json,
    /// `application/octet-stream`: JSON with binary tensors behind it.
    Binary,
    /// Server-sent events.
    EventStream,
    /// The text format of Prometheus.
    Metrics,
    /// JSON of so many bytes with binary tensors behind it; the name ends in the number.
    Sized(&'static str, usize),
}

impl ContentType {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Json => "application/json",
            Self::Binary => "application/octet-stream",
            Self::EventStream => "text/event-stream; charset=utf-8",
            Self::Metrics => "text/plain; charset=utf-8",
            Self::Sized(name, _) => name,
        }
    }

    /// Appends what stands in the header.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name().as_bytes());
        if let Self::Sized(_, bytes) = self {
            json::write_u64(out, bytes as u64);
        }
    }
}

/// Pieces of a body that comes while the model makes it. The end of the channel ends the body; the sender learns from
/// the closed channel that the client has gone.
pub type BodyPieces = Receiver<Bytes>;

/// An answer. The parts of the body go to the socket one after the other and are not copied together.
#[derive(Debug)]
pub struct HttpResponse {
    pub(super) status: u16,
    pub(super) content_type: ContentType,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<Bytes>,
    /// Pieces that follow the body.
    pub(super) pieces: Option<BodyPieces>,
    pub(super) close: bool,
    /// Trace of the inference that this answers; it ends when the answer has gone.
    pub(super) trace: Option<Arc<RequestTrace>>,
}

impl HttpResponse {
    /// 200 without a body.
    #[must_use]
    pub fn empty(content_type: ContentType) -> Self {
        Self {
            status: 200,
            content_type,
            headers: Vec::new(),
            body: Vec::new(),
            pieces: None,
            close: false,
            trace: None,
        }
    }

    /// 200 with a body.
    #[must_use]
    pub fn ok(content_type: ContentType, body: impl Into<Bytes>) -> Self {
        Self { body: vec![body.into()], ..Self::empty(content_type) }
    }

    /// 200 with a body that comes piece by piece.
    #[must_use]
    pub fn streamed(content_type: ContentType, pieces: BodyPieces) -> Self {
        Self { pieces: Some(pieces), ..Self::empty(content_type) }
    }

    /// `{"error": text}` with a status.
    #[must_use]
    pub fn error(status: u16, content_type: ContentType, text: &str) -> Self {
        let mut body = b"{\"error\":".to_vec();
        json::write_str(&mut body, text.as_bytes());
        body.push(b'}');
        Self { status, ..Self::ok(content_type, body) }
    }

    /// An error of the core.
    #[must_use]
    pub fn failure(content_type: ContentType, error: &ServingError) -> Self {
        Self::error(status::http(error.code), content_type, &error.message)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Bytes of the body.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// Status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }
}
