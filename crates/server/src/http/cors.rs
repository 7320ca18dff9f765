//! Requests of pages: who is let in, and what answers tell the browser (the Fetch standard's CORS protocol).

use std::sync::Arc;

use super::endpoints::{EndpointCategory, FoundEndpoint};
use super::framing::ReadError;
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::openai;
use crate::access::{AccessRefusal, EndpointAccess};
use crate::app::ServerState;
use crate::browser::{BrowserMarks, BrowserRequest, ContentDemand, EndpointClass, PageRefusal};
use crate::listen::ConnectionPeer;
use crate::openai::error::ApiError;

/// Headers of answers that pages may read besides those that browsers always show.
const EXPOSED: &str =
    "Inference-Header-Content-Length, Content-Encoding, Content-Length, Retry-After";
/// Seconds that a browser may remember what a preflight said.
const MAX_AGE: &str = "600";
/// Longest list of headers that a preflight gets back.
const MAX_LISTED_BYTES: usize = 1024;
/// Headers that pages may send where their list is too long or no list.
const USUAL_HEADERS: &str = "authorization, content-type, inference-header-content-length";

/// Facts about an endpoint that are known before the body is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndpointPurpose {
    category: Option<EndpointCategory>,
    methods: &'static [HttpMethod],
    errors: ErrorStyle,
    access: EndpointAccess,
}

/// The form of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorStyle {
    /// `{"error": TEXT}`.
    Triton,
    /// `{"error": {"message": TEXT, …}}`.
    OpenAi,
}

impl EndpointPurpose {
    /// Gives the purpose of a found endpoint, or of a path where nothing is.
    pub(super) fn of(found: Option<&FoundEndpoint<'_>>, errors: ErrorStyle) -> Self {
        match found {
            Some(found) => {
                let category = found.row.category;
                // Whether a certain model is ready tells that it is there.
                let is_open =
                    category == EndpointCategory::Health && !found.row.pattern.contains('{');
                Self {
                    category: Some(category),
                    methods: found.row.methods,
                    errors,
                    access: match is_open {
                        true => EndpointAccess::Open,
                        false => EndpointAccess::Group(category),
                    },
                }
            }
            None => Self {
                category: None,
                methods: &[HttpMethod::Get, HttpMethod::Post],
                errors,
                access: EndpointAccess::Unknown,
            },
        }
    }

    /// Gives the purpose of the page of metrics.
    pub(super) fn metrics() -> Self {
        Self {
            category: Some(EndpointCategory::Statistics),
            methods: &[HttpMethod::Get],
            errors: ErrorStyle::Triton,
            access: EndpointAccess::Group(EndpointCategory::Statistics),
        }
    }

    /// Says whose requests reach it.
    pub(super) fn access(&self) -> EndpointAccess {
        self.access
    }

    /// Gives the answer to a request without the right key.
    pub(super) fn without_access(&self, refusal: &AccessRefusal) -> HttpResponse {
        let response = match self.errors {
            ErrorStyle::OpenAi => openai::refusal(&ApiError::access(refusal)),
            ErrorStyle::Triton => {
                HttpResponse::error(refusal.status(), ContentType::Json, &refusal.message())
            }
        };
        let response = match refusal.retry_after() {
            Some(seconds) => response.with_header("Retry-After", seconds.to_string()),
            None => response,
        };
        match refusal.status() {
            401 => response.with_header("WWW-Authenticate", "Bearer"),
            _ => response,
        }
    }

    /// Nothing but inference computes, and nothing but what GET brings only reads.
    fn class(&self, method: &str) -> EndpointClass {
        match method {
            "GET" | "HEAD" | "OPTIONS" => EndpointClass::Read,
            _ if self.category.is_some_and(EndpointCategory::is_administrative) => {
                EndpointClass::Change
            }
            _ => EndpointClass::Inference,
        }
    }

    fn refusal(&self, refusal: &PageRefusal) -> HttpResponse {
        let status = refusal.status();
        let text = refusal.message();
        let mut response = match self.errors {
            ErrorStyle::OpenAi => openai::refusal(&ApiError::refused(status, text)),
            ErrorStyle::Triton => HttpResponse::error(status, ContentType::Json, text),
        };
        // A head with two hosts may have been made of two requests.
        response.close |= matches!(refusal, PageRefusal::MalformedHost(_));
        response
    }

    /// Methods that pages may use, as a list.
    fn methods(&self) -> String {
        let names = self.methods.iter().filter_map(|method| match method {
            HttpMethod::Get => Some("GET"),
            HttpMethod::Post => Some("POST"),
            HttpMethod::Delete => Some("DELETE"),
            HttpMethod::Other => None,
        });
        names.chain(["OPTIONS"]).collect::<Vec<_>>().join(", ")
    }
}

/// The form of errors below a path of the HTTP front end.
pub(super) fn errors_at(path: &str) -> ErrorStyle {
    if path.starts_with("/v1/") { ErrorStyle::OpenAi } else { ErrorStyle::Triton }
}

/// Outcome of the look at a head, before the body is read.
#[derive(Debug)]
pub(super) enum PageAdmission {
    /// It goes on, and its answer gets these headers.
    Granted(CorsGrant),
    /// This is its answer.
    Answered(HttpResponse),
}

/// Headers that let a page read an answer; none for requests that name no origin.
#[derive(Debug, Default)]
pub(super) struct CorsGrant {
    origin: Option<String>,
}

impl CorsGrant {
    /// Adds the headers that let the page read the answer.
    pub(super) fn apply(&self, response: &mut HttpResponse) {
        let Some(origin) = &self.origin else { return };
        response.headers.extend([
            ("Access-Control-Allow-Origin", origin.clone()),
            ("Access-Control-Expose-Headers", EXPOSED.to_owned()),
            ("Vary", "Origin".to_owned()),
        ]);
    }

    /// Lets the page read why its body was refused.
    pub(super) fn apply_to_error(&self, mut error: ReadError) -> ReadError {
        if let ReadError::Refused(response) = &mut error {
            self.apply(response);
        }
        error
    }
}

/// Decides by the head alone. `purpose` tells what the head asks for.
pub(super) fn admit(
    app: &Arc<ServerState>,
    head: &HttpHead,
    peer: ConnectionPeer,
    purpose: &EndpointPurpose,
) -> PageAdmission {
    let mut marks = BrowserMarks::of_headers(head.headers());
    // The host of a URL stands for that of the header, which must be there all the same (RFC 9112, section 3.2).
    if marks.hosts == usize::from(!head.old || marks.host.is_some())
        && let Some(authority) = head.authority()
    {
        (marks.host, marks.hosts) = (Some(authority), 1);
    }
    let rules = app.browser_rules();
    // Clients of HTTP/1.0 need not name a host.
    if let Err(refusal) = rules.check_host(&marks, peer, !head.old) {
        return PageAdmission::Answered(purpose.refusal(&refusal));
    }
    if !marks.is_from_browser() {
        return PageAdmission::Granted(CorsGrant::default());
    }
    let asked = preflight_method(head);
    let content = match (asked, head.method()) {
        (None, HttpMethod::Post) => ContentDemand::Json(head.header("content-type")),
        // Browsers ask before they send any other method.
        _ => ContentDemand::Anything,
    };
    let request = BrowserRequest {
        marks,
        class: purpose.class(asked.unwrap_or_else(|| head.method_name())),
        is_get: head.method() == HttpMethod::Get,
        content,
    };
    let grant = CorsGrant { origin: head.header("origin").map(str::to_owned) };
    match rules.check_page(&request, peer) {
        Ok(()) if asked.is_some() => PageAdmission::Answered(preflight(head, purpose, &grant)),
        Ok(()) => PageAdmission::Granted(grant),
        Err(refusal) => {
            let mut response = purpose.refusal(&refusal);
            // The page is let in, and its author wants to know what is wrong.
            if matches!(refusal, PageRefusal::ContentType(_)) {
                grant.apply(&mut response);
            }
            PageAdmission::Answered(response)
        }
    }
}

/// The method that a browser asks leave for.
fn preflight_method(head: &HttpHead) -> Option<&str> {
    let asks = head.method_name() == "OPTIONS" && head.header("origin").is_some();
    head.header("access-control-request-method").filter(|_| asks)
}

/// The answer to a browser that asks whether its page may send a request.
fn preflight(head: &HttpHead, purpose: &EndpointPurpose, grant: &CorsGrant) -> HttpResponse {
    let wanted = head.header("access-control-request-headers").unwrap_or("");
    let listed = if is_list(wanted) { wanted } else { USUAL_HEADERS };
    let mut response = HttpResponse { status: 204, ..HttpResponse::empty(ContentType::Text) }
        .with_header("Access-Control-Allow-Methods", purpose.methods())
        .with_header("Access-Control-Allow-Headers", listed)
        .with_header("Access-Control-Max-Age", MAX_AGE);
    if head.header("access-control-request-private-network") == Some("true") {
        response = response.with_header("Access-Control-Allow-Private-Network", "true");
    }
    grant.apply(&mut response);
    response
}

/// Returns whether a text lists names of headers.
fn is_list(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte);
    (1..=MAX_LISTED_BYTES).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::super::endpoints::find_in;
    use super::super::tables::{self, OPENAI, ROWS, SAGEMAKER};
    use super::*;

    fn class(path: &str, method: &str) -> EndpointClass {
        let found = tables::find(path).or_else(|| find_in(SAGEMAKER, path));
        EndpointPurpose::of(found.as_ref(), ErrorStyle::Triton).class(method)
    }

    #[test]
    fn posts_change_the_server_unless_they_infer() {
        for (path, expected) in [
            ("/v2/models/m/infer", EndpointClass::Inference),
            ("/v2/models/m/generate_stream", EndpointClass::Inference),
            ("/v1/chat/completions", EndpointClass::Inference),
            ("/tokenize", EndpointClass::Inference),
            ("/rerank", EndpointClass::Inference),
            ("/invocations", EndpointClass::Inference),
            ("/models/m/invoke", EndpointClass::Inference),
            ("/nothing/there", EndpointClass::Inference),
            ("/v2/repository/index", EndpointClass::Change),
            ("/v2/repository/models/m/load", EndpointClass::Change),
            ("/v2/repository/r/models/m/unload", EndpointClass::Change),
            ("/v2/logging", EndpointClass::Change),
            ("/v2/trace/setting", EndpointClass::Change),
            ("/v2/models/m/trace/setting", EndpointClass::Change),
            ("/v2/profile/start", EndpointClass::Change),
            ("/v2/profile/stop", EndpointClass::Change),
            ("/v2/systemsharedmemory/region/r/register", EndpointClass::Change),
            ("/v2/systemsharedmemory/unregister", EndpointClass::Change),
            ("/v2/cudasharedmemory/unregister", EndpointClass::Change),
            ("/models", EndpointClass::Change),
            ("/models/m", EndpointClass::Change),
        ] {
            assert_eq!(class(path, "POST"), expected, "{path}");
            assert_eq!(class(path, "PATCH"), expected, "{path}");
            assert_eq!(class(path, "GET"), EndpointClass::Read, "{path}");
        }
        assert_eq!(class("/models/m", "DELETE"), EndpointClass::Change);
    }

    #[test]
    fn endpoints_that_take_a_body_and_do_not_infer_count_as_changes() {
        for row in ROWS.iter().chain(OPENAI).chain(SAGEMAKER) {
            let found = FoundEndpoint { row, model: "m", version: "", in_repository: false };
            let purpose = EndpointPurpose::of(Some(&found), ErrorStyle::Triton);
            let infers = row.category == EndpointCategory::Inference;
            if row.methods.iter().any(|method| *method != HttpMethod::Get) && !infers {
                assert_eq!(purpose.class("POST"), EndpointClass::Change, "{}", row.pattern);
            }
        }
    }

    #[test]
    fn lists_of_headers_are_given_back_when_they_are_lists() {
        assert!(is_list("content-type, x-api_key,Authorization"));
        let long = "x".repeat(MAX_LISTED_BYTES + 1);
        for text in ["", "a;b", "a\u{e9}", "a: b", &long] {
            assert!(!is_list(text), "{text}");
        }
    }
}
