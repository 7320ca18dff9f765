//! The decision about one request, from its head alone.

use super::allowed::OriginListing;
use super::authority::{HostAuthority, HostKind, WebOrigin};
use super::marks::HeaderOnce;
use super::{BrowserMarks, BrowserRules};
use crate::listen::{ConnectionPath, ConnectionPeer};

/// Most characters of a header that an error repeats.
const MAX_SHOWN_CHARS: usize = 100;

/// Kinds of endpoints by what a page can do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointClass {
    /// Reads what is there.
    Read,
    /// Computes an answer.
    Inference,
    /// Changes the server, its models or its settings.
    Change,
}

/// A request as far as the decision needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserRequest<'a> {
    /// Headers that tell of its page and its host.
    pub(crate) marks: BrowserMarks<'a>,
    /// Kind of the endpoint.
    pub(crate) class: EndpointClass,
    /// True if it is a GET.
    pub(crate) is_get: bool,
    /// The content type that a body must have to change something; none where the method alone needs a preflight.
    pub(crate) content: ContentDemand<'a>,
}

/// Demand on the content type of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentDemand<'a> {
    /// It does not matter.
    Anything,
    /// A request that changes something must have JSON; this is what it has.
    Json(Option<&'a str>),
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageRefusal {
    /// Its host cannot be read, is missing or comes twice.
    MalformedHost(String),
    /// Its host is not one of the server's.
    ForeignHost(String),
    /// Its page may not ask for this.
    ForeignPage(String),
    /// Its body is not declared as JSON.
    ContentType(String),
}

impl PageRefusal {
    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::MalformedHost(_) => 400,
            Self::ForeignHost(_) | Self::ForeignPage(_) => 403,
            Self::ContentType(_) => 415,
        }
    }

    /// The sentence for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::MalformedHost(text)
            | Self::ForeignHost(text)
            | Self::ForeignPage(text)
            | Self::ContentType(text) => text,
        }
    }
}

/// Trust in a page, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PageTrust {
    /// Not at all.
    Foreign,
    /// `--allowed-origins` lets it in without naming it, or it lies on the user's own machine.
    Guest,
    /// `--allowed-origins` names it, or it is the server's own, or no page sent the request.
    Full,
}

impl BrowserRules {
    /// Checks that a request may name this host. It must name one if `demanded`.
    ///
    /// # Errors
    /// Returns a sentence on what was found and which flag allows it.
    pub(crate) fn check_host(
        &self,
        marks: &BrowserMarks<'_>,
        peer: ConnectionPeer,
        demanded: bool,
    ) -> Result<(), PageRefusal> {
        let host = match (marks.host, marks.hosts) {
            (None, _) if demanded => {
                let text = "the request has no Host header, expected one".to_owned();
                return Err(PageRefusal::MalformedHost(text));
            }
            (None, _) => return Ok(()),
            (Some(host), 1) => host,
            (Some(_), many) => {
                let text = format!("the request has {many} Host headers, expected one");
                return Err(PageRefusal::MalformedHost(text));
            }
        };
        if peer.path == ConnectionPath::UnixSocket {
            return Ok(());
        }
        let Some(authority) = HostAuthority::parse(host) else {
            let text =
                format!("the request's host is '{}', expected NAME or NAME:PORT", shown(host));
            return Err(PageRefusal::MalformedHost(text));
        };
        if self.is_own_host(&authority, marks, peer.path) {
            return Ok(());
        }
        Err(PageRefusal::ForeignHost(format!(
            "the request's host '{}' is not one of this server's; if it is, name it with --allowed-hosts",
            shown(host)
        )))
    }

    /// Names that a page could have made resolve to this server are its own only where something says so.
    fn is_own_host(
        &self,
        authority: &HostAuthority<'_>,
        marks: &BrowserMarks<'_>,
        path: ConnectionPath,
    ) -> bool {
        // Addresses need no resolver that could lie.
        let certain =
            matches!(authority.host, HostKind::Address(_)) || authority.host.is_loopback();
        if certain || self.hosts.contains(authority) {
            return true;
        }
        !marks.is_from_browser()
            && (path == ConnectionPath::Network || authority.host.is_single_label())
    }

    /// Checks that a page may make the request, once its host has been accepted.
    ///
    /// # Errors
    /// Returns a sentence on what was found and which flag allows it.
    pub(crate) fn check_page(
        &self,
        request: &BrowserRequest<'_>,
        peer: ConnectionPeer,
    ) -> Result<(), PageRefusal> {
        let marks = &request.marks;
        if !marks.is_from_browser() {
            return Ok(());
        }
        let needed = match request.class {
            EndpointClass::Read | EndpointClass::Inference => PageTrust::Guest,
            EndpointClass::Change => PageTrust::Full,
        };
        if self.trust(marks, peer) < needed && !is_harmless_navigation(request) {
            return Err(foreign_page(marks, request.class));
        }
        match (request.class, request.content) {
            (EndpointClass::Change, ContentDemand::Json(found)) if !found.is_some_and(is_json) => {
                Err(PageRefusal::ContentType(format!(
                    "a page's request that changes the server needs Content-Type: application/json, found {}",
                    found.map_or_else(|| "none".to_owned(), |found| format!("'{}'", shown(found)))
                )))
            }
            _ => Ok(()),
        }
    }

    fn trust(&self, marks: &BrowserMarks<'_>, peer: ConnectionPeer) -> PageTrust {
        match marks.origin {
            HeaderOnce::Repeated => PageTrust::Foreign,
            HeaderOnce::Value(origin) => self.trust_of_origin(origin, marks, peer),
            HeaderOnce::Absent => trust_of_site(marks),
        }
    }

    fn trust_of_origin(
        &self,
        text: &str,
        marks: &BrowserMarks<'_>,
        peer: ConnectionPeer,
    ) -> PageTrust {
        match self.origins.listing(text) {
            OriginListing::Named => return PageTrust::Full,
            OriginListing::Wildcard | OriginListing::Absent if is_own_origin(text, marks, peer) => {
                return PageTrust::Full;
            }
            OriginListing::Wildcard => return PageTrust::Guest,
            OriginListing::Absent => {}
        }
        let origin = WebOrigin::parse(text).filter(|origin| origin.is_web());
        match origin {
            Some(origin) if origin.authority.host.is_loopback() => PageTrust::Guest,
            _ => PageTrust::Foreign,
        }
    }
}

/// Returns whether an origin is the server's own: the host that the request names, over the same or a safer
/// scheme. A proxy before the server may have taken TLS off.
fn is_own_origin(text: &str, marks: &BrowserMarks<'_>, peer: ConnectionPeer) -> bool {
    let Some(origin) = WebOrigin::parse(text) else { return false };
    let Some(host) = marks.host.and_then(HostAuthority::parse) else { return false };
    let scheme = origin.is_scheme("https") || !peer.encrypted;
    // A browser that says both says that the page is another's.
    let same = !marks.site.is_present() || marks.site.is("same-origin") || marks.site.is("none");
    scheme && same && origin.serves(&host)
}

/// Trust where a browser names no origin, as in most GETs.
fn trust_of_site(marks: &BrowserMarks<'_>) -> PageTrust {
    match marks.site {
        HeaderOnce::Value("same-origin" | "none") => PageTrust::Full,
        HeaderOnce::Value("same-site") => {
            // What is of one site with a loopback host is on that host too.
            let host = marks.host.and_then(HostAuthority::parse);
            let local = host.is_some_and(|host| host.host.is_loopback());
            if local { PageTrust::Guest } else { PageTrust::Foreign }
        }
        _ => PageTrust::Foreign,
    }
}

/// Returns whether the user follows a link: the linking page does not see the answer, and nothing changes.
fn is_harmless_navigation(request: &BrowserRequest<'_>) -> bool {
    let marks = &request.marks;
    request.class == EndpointClass::Read
        && request.is_get
        && !marks.origin.is_present()
        && marks.mode.is("navigate")
        && marks.destination.is("document")
}

fn foreign_page(marks: &BrowserMarks<'_>, class: EndpointClass) -> PageRefusal {
    let found = match (marks.origin, marks.site) {
        (HeaderOnce::Value(origin), _) => format!("Origin '{}'", shown(origin)),
        (HeaderOnce::Repeated, _) => "several Origin headers".to_owned(),
        (HeaderOnce::Absent, HeaderOnce::Value(site)) => {
            format!("Sec-Fetch-Site '{}'", shown(site))
        }
        (HeaderOnce::Absent, _) => "several Sec-Fetch-Site headers".to_owned(),
    };
    let who = match class {
        EndpointClass::Change => "only the server's own pages may change it",
        EndpointClass::Read | EndpointClass::Inference => "pages of other sites are refused",
    };
    PageRefusal::ForeignPage(format!(
        "{who}, found {found}; name a page's origin with --allowed-origins to let it in"
    ))
}

/// Returns whether a content type is JSON, with or without parameters.
fn is_json(content_type: &str) -> bool {
    let kind = content_type.split_once(';').map_or(content_type, |(kind, _)| kind);
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The beginning of a text that a client sent.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
