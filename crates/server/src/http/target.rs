//! Target of a request, known from its head alone: found once, checked before the body is read, answered after.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::INSTANCE_HEADER;
use super::cors::EndpointPurpose;
use super::endpoints::{
    CallContext, EndpointCategory, EndpointReply, FoundEndpoint, InferDialect, RequestArrival,
    RequestClient,
};
use super::message::{ContentType, HttpHead, HttpResponse};
use super::openai::refusal;
use super::tables::is_openai;
use crate::app::ServerState;
use crate::openai::error::ApiError;

/// Bodies beyond this size are decoded where blocking is allowed.
const LARGE_BODY_BYTES: usize = 1 << 20;
/// The most bytes of a body that neither infers nor brings files of a model.
const MAX_SETTING_BYTES: u64 = 4 << 20;

/// Finds targets of the requests of a front end.
pub(super) trait EndpointRouter: Send + Sync + 'static {
    /// Finds the target of a request.
    fn find<'a>(&'a self, head: &'a HttpHead) -> RouteTarget<'a>;
}

impl<F> EndpointRouter for F
where
    F: for<'a> Fn(&'a HttpHead) -> RouteTarget<'a> + Send + Sync + 'static,
{
    fn find<'a>(&'a self, head: &'a HttpHead) -> RouteTarget<'a> {
        self(head)
    }
}

/// Target of a request.
#[derive(Debug)]
pub(super) struct RouteTarget<'a> {
    /// Facts for those who decide whether it may be asked for.
    pub(super) purpose: EndpointPurpose,
    /// Sort of the target.
    pub(super) kind: TargetKind<'a>,
}

/// Sorts of targets.
#[derive(Debug)]
pub(super) enum TargetKind<'a> {
    /// An endpoint of a table.
    Endpoint(EndpointTarget<'a>),
    /// The page of metrics.
    Metrics,
    /// Nothing is there: this is said instead.
    Nothing(HttpResponse),
}

/// An endpoint of a table, and how it is reached.
#[derive(Debug)]
pub(super) struct EndpointTarget<'a> {
    /// The endpoint.
    pub(super) found: FoundEndpoint<'a>,
    /// Form of its inferences.
    pub(super) dialect: InferDialect,
    /// Methods that reach it.
    pub(super) methods: MethodRule,
}

/// Methods by which an endpoint is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodRule {
    /// Methods of its row.
    OfEndpoint,
    /// Methods of every name.
    Any,
}

impl<'a> EndpointTarget<'a> {
    /// An endpoint that is reached by the methods of its row.
    pub(super) fn new(found: FoundEndpoint<'a>, dialect: InferDialect) -> Self {
        Self { found, dialect, methods: MethodRule::OfEndpoint }
    }

    fn refusal(&self, app: &ServerState, head: &HttpHead) -> Option<HttpResponse> {
        let row = self.found.row;
        let header = |name: &str| head.header(name).map(str::as_bytes);
        if let Some(key) = app.http_rules().restrictions.missing(row.category, header) {
            let text = format!("This API is restricted, expecting header '{key}'");
            return Some(HttpResponse::error(403, ContentType::Text, &text));
        }
        // Triton's front end for this protocol counts the list of models as the repository's.
        let group = match row.category {
            EndpointCategory::Metadata => EndpointCategory::ModelRepository,
            category => category,
        };
        if is_openai(row)
            && let Some(key) = app.http_rules().openai.missing(group, header)
        {
            return Some(refusal(&ApiError::restricted(key)));
        }
        let wrong = self.methods == MethodRule::OfEndpoint && !row.methods.contains(&head.method());
        wrong.then(|| HttpResponse::error(405, row.early, "Method Not Allowed"))
    }
}

impl<'a> TargetKind<'a> {
    /// Checks that there is an answer besides a refusal.
    ///
    /// # Errors
    /// Returns the refusal.
    pub(super) fn ready(
        self,
        app: &ServerState,
        head: &HttpHead,
    ) -> Result<ReadyTarget<'a>, HttpResponse> {
        match self {
            Self::Nothing(response) => Err(response),
            Self::Metrics => Ok(ReadyTarget::Metrics),
            Self::Endpoint(target) => match target.refusal(app, head) {
                Some(refusal) => Err(refusal),
                None => Ok(ReadyTarget::Endpoint(target)),
            },
        }
    }
}

/// Target of a request that was let in.
#[derive(Debug)]
pub(super) enum ReadyTarget<'a> {
    /// An endpoint of a table.
    Endpoint(EndpointTarget<'a>),
    /// The page of metrics.
    Metrics,
}

/// A request that has come as a whole.
pub(super) struct ReceivedRequest<'a> {
    /// The server.
    pub(super) app: &'a Arc<ServerState>,
    /// Head of the request.
    pub(super) head: &'a HttpHead,
    /// Body of the request.
    pub(super) body: Bytes,
    /// Arrival of the request, if any request may be traced.
    pub(super) arrival: Option<RequestArrival>,
    /// Client that sent it.
    pub(super) client: RequestClient<'a>,
}

impl ReadyTarget<'_> {
    /// The most bytes of a body: those of tensors, texts and files of models may be long, settings are short.
    pub(super) fn most_body_bytes(&self) -> u64 {
        let Self::Endpoint(target) = self else { return MAX_SETTING_BYTES };
        match target.found.row.category {
            EndpointCategory::Inference => u64::MAX,
            EndpointCategory::ModelRepository if target.found.row.loads() => u64::MAX,
            _ => MAX_SETTING_BYTES,
        }
    }

    /// Gives the answer, or what it waits for.
    pub(super) fn answer(&self, request: ReceivedRequest<'_>) -> EndpointReply {
        let target = match self {
            Self::Metrics => {
                let page = request.app.metrics_page();
                let page = HttpResponse::ok(ContentType::Metrics, page);
                let page = page.with_header(INSTANCE_HEADER, request.app.instance());
                return EndpointReply::Ready(page);
            }
            Self::Endpoint(target) => target,
        };
        let found = &target.found;
        let model = model_name(request.app, found.model);
        let large = request.body.len() > LARGE_BODY_BYTES;
        let call = CallContext {
            app: request.app,
            head: request.head,
            body: request.body,
            model: &model,
            version: found.version,
            in_repository: found.in_repository,
            dialect: target.dialect,
            arrival: request.arrival,
            client: request.client,
        };
        // Decoding this much would keep other connections of the thread waiting.
        if large {
            tokio::task::block_in_place(|| (found.row.handler)(&call))
        } else {
            (found.row.handler)(&call)
        }
    }
}

/// Returns the name that a path means. As in Triton that is the path's own text, unless a model has a name that no path
/// can have as it is.
fn model_name<'a>(app: &ServerState, name: &'a str) -> Cow<'a, str> {
    let Some(meant) = decoded(name) else { return Cow::Borrowed(name) };
    let known = app.core().repository_index(false).iter().any(|entry| entry.name == meant);
    if known { Cow::Owned(meant) } else { Cow::Borrowed(name) }
}

/// Decodes a name in which `%` and two digits stand for a byte. What is no such form stays as it is. None where nothing
/// is encoded, where a sign is that a path can have as it is, or where the bytes are no UTF-8.
fn decoded(name: &str) -> Option<String> {
    if !name.contains('%') {
        return None;
    }
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let byte = digit(others.first()).zip(digit(others.get(1)));
        let byte = byte.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => return None,
            Some(byte) => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or(&[]);
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_names_are_decoded_where_no_path_can_have_them() {
        for (given, expected) in [
            ("simple", None),
            ("a%5Fb", None),
            ("my%20model", Some("my model")),
            ("%e2%82%ac", Some("\u{20ac}")),
            ("100%", Some("100%")),
            ("a%2", Some("a%2")),
            ("%ff", None),
            ("%2541", Some("%41")),
        ] {
            assert_eq!(decoded(given).as_deref(), expected, "{given}");
        }
    }
}
