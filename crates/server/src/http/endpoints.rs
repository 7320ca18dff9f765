//! Endpoints and their calls, and finding the row of a path in a table of them.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use galatea_serving::request::ParameterValue;
use galatea_serving::trace::RequestTrace;
use galatea_serving::{ServingError, TokenMeter};

pub use super::dialect::InferDialect;
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use crate::access::ClientPass;
use crate::app::ServerState;
pub use crate::restricted::EndpointCategory;
use crate::trace;

/// Request that a handler works on.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// The server.
    pub app: &'a Arc<ServerState>,
    /// Head of the request.
    pub head: &'a HttpHead,
    /// Body of the request.
    pub body: Bytes,
    /// Model in the path; empty where the row has none.
    pub model: &'a str,
    /// Version in the path; empty for the latest.
    pub version: &'a str,
    /// A repository stands in the path.
    pub in_repository: bool,
    /// Form of inferences at the endpoint.
    pub dialect: InferDialect,
    /// Arrival of the request, if any request may be traced.
    pub arrival: Option<RequestArrival>,
    /// Client that sent the request.
    pub client: RequestClient<'a>,
}

/// Client of a request, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct RequestClient<'a> {
    /// Request of a key's owner; none where keys are not asked for.
    pub pass: Option<&'a ClientPass>,
    /// Address; none over a socket in the file system.
    pub address: Option<IpAddr>,
}

impl RequestClient<'_> {
    /// Counter of the tokens of the client's requests, if they are limited.
    #[must_use]
    pub fn token_meter(&self) -> Option<Arc<dyn TokenMeter>> {
        let key = self.pass?.key();
        key.limits_tokens().then(|| Arc::clone(key) as Arc<dyn TokenMeter>)
    }

    /// Name by which clients are told apart where they share what a model computes. Without keys that is what they say
    /// themselves, or their address.
    pub(super) fn share_name(&self, head: &HttpHead) -> String {
        if let Some(pass) = self.pass {
            return pass.key().name().to_owned();
        }
        let claimed = head.header("authorization").or_else(|| head.header("x-api-key"));
        match (claimed, self.address) {
            (Some(claimed), _) => claimed.to_owned(),
            (None, Some(address)) => address.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// Times at which a request arrived.
#[derive(Debug, Clone, Copy)]
pub struct RequestArrival {
    /// Time at which its head was complete.
    pub start: Instant,
    /// Time at which its body was complete.
    pub end: Instant,
}

impl<'a> CallContext<'a> {
    /// The same request for a model that does not stand in the path.
    #[must_use]
    pub fn of_model(&self, model: &'a str) -> Self {
        Self { model, body: self.body.clone(), ..*self }
    }
}

impl CallContext<'_> {
    /// The trace of an inference, where it is one to trace.
    #[must_use]
    pub fn trace(&self) -> Option<Arc<RequestTrace>> {
        let RequestArrival { start, end } = self.arrival?;
        let parent = self.head.header("traceparent");
        let trace = self.app.tracer().sample(self.model, parent)?;
        trace::note_arrival(&trace, start..end);
        Some(trace)
    }

    /// Adds the headers that the flags forward to the parameters of an inference.
    ///
    /// # Errors
    /// Fails when a header has the name of a reserved parameter.
    pub fn forward_headers(
        &self,
        parameters: &mut Vec<(String, ParameterValue)>,
    ) -> Result<(), ServingError> {
        // The flag is that of the HTTP front end alone.
        if self.dialect != InferDialect::Kserve {
            return Ok(());
        }
        self.app.http_rules().forward.add(self.head.headers(), parameters)
    }
}

/// An answer that comes later, and dropping it cancels what it waits for.
pub type PendingReply = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// Result of a handler.
pub enum EndpointReply {
    /// The answer.
    Ready(HttpResponse),
    /// The answer needs an inference or other work elsewhere.
    Pending(PendingReply),
}

impl std::fmt::Debug for EndpointReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(response) => f.debug_tuple("Ready").field(response).finish(),
            Self::Pending(_) => f.debug_tuple("Pending").finish_non_exhaustive(),
        }
    }
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// Path; `{model}` is a segment, `{version}` a segment of digits, `{repository}` a segment.
    pub pattern: &'static str,
    /// Group.
    pub category: EndpointCategory,
    /// Methods that it answers.
    pub methods: &'static [HttpMethod],
    /// Content type of answers that come before the handler: wrong method.
    pub early: ContentType,
    /// Decode, one call on the core, encode.
    pub handler: fn(&CallContext<'_>) -> EndpointReply,
}

impl Endpoint {
    /// Whether its body may bring files of a model.
    pub(super) fn loads(&self) -> bool {
        self.pattern.ends_with("/load") || self.pattern.starts_with("/models")
    }
}

/// A row with what its pattern took from the path.
#[derive(Debug, Clone, Copy)]
pub struct FoundEndpoint<'a> {
    /// The row.
    pub row: &'static Endpoint,
    /// Segment for `{model}`.
    pub model: &'a str,
    /// Segment for `{version}`.
    pub version: &'a str,
    /// The pattern has a `{repository}`.
    pub in_repository: bool,
}

/// Finds the row of a path in the table of a front end. Paths are compared as received: a trailing slash or an encoded
/// letter is another path.
#[must_use]
pub fn find_in<'a>(rows: &'static [Endpoint], path: &'a str) -> Option<FoundEndpoint<'a>> {
    rows.iter().find_map(|row| match_pattern(row, row.pattern, path))
}

/// Compares a path with the pattern of a row, or with what is left of that.
pub(super) fn match_pattern<'a>(
    row: &'static Endpoint,
    pattern: &str,
    path: &'a str,
) -> Option<FoundEndpoint<'a>> {
    let mut found = FoundEndpoint { row, model: "", version: "", in_repository: false };
    if !pattern.contains('{') {
        return (pattern == path).then_some(found);
    }
    let mut segments = path.split('/');
    for want in pattern.split('/') {
        let have = segments.next()?;
        match want {
            "{model}" if !have.is_empty() => found.model = have,
            "{version}" if !have.is_empty() && have.bytes().all(|byte| byte.is_ascii_digit()) => {
                found.version = have;
            }
            "{repository}" if !have.is_empty() => found.in_repository = true,
            _ if want == have && !want.starts_with('{') => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(found)
}
