//! The head of a call, made of decoded fields.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use super::hpack::RequestHead;

/// The head of a call.
pub(super) struct CallHead {
    /// Method, path and headers.
    pub(super) parts: Parts,
    /// The host that the client names.
    pub(super) authority: Option<Bytes>,
    /// There were fields beyond the limit.
    pub(super) too_large: bool,
    /// Bytes of the body, where the head says how many there are.
    pub(super) content_length: Option<u64>,
}

impl CallHead {
    /// Makes it of fields; none where they are no request, unless some were dropped.
    pub(super) fn of(mut head: RequestHead) -> Option<Self> {
        let too_large = head.too_large;
        let authority = head.authority.take();
        let empty = || too_large.then(|| http::Request::new(()).into_parts().0);
        let fits = is_authority(authority.as_ref(), &head.headers);
        let length = content_length(&head.headers);
        let parts = parts(head).filter(|_| fits && length.is_ok()).or_else(empty)?;
        Some(Self { parts, authority, too_large, content_length: length.unwrap_or_default() })
    }
}

fn parts(head: RequestHead) -> Option<Parts> {
    if head.malformed || head.scheme.is_none() {
        return None;
    }
    let method = Method::from_bytes(&head.method?).ok()?;
    let path = head.path?;
    // RFC 9113, section 8.3.1: a path, or a star where it is asked what the server can do.
    if !(path.starts_with(b"/") || method == Method::OPTIONS && path == "*") {
        return None;
    }
    let mut request = http::Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_maybe_shared(path).ok()?;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = head.headers;
    Some(request.into_parts().0)
}

/// Returns whether an authority names no user, and the same host as the header (RFC 9113, section 8.3.1).
fn is_authority(authority: Option<&Bytes>, headers: &HeaderMap) -> bool {
    let Some(authority) = authority else { return true };
    let mut hosts = headers.get_all(http::header::HOST).iter();
    !authority.contains(&b'@') && hosts.all(|host| host.as_bytes().eq_ignore_ascii_case(authority))
}

/// Finds the length of a body.
///
/// # Errors
/// Fails where it is no number, or there are several.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, ()> {
    let mut lengths = headers.get_all(http::header::CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else { return Ok(None) };
    let text = length.to_str().unwrap_or("");
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = text.parse().ok().filter(|_| digits && lengths.next().is_none());
    bytes.map(Some).ok_or(())
}
