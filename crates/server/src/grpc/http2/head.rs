//! The head of a call, made of decoded fields.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Uri};

use super::hpack::RequestHead;

/// The head of a call.
pub(super) struct CallHead {
    /// Method, path and headers.
    pub(super) parts: Parts,
    /// The host that the client names.
    pub(super) authority: Option<Bytes>,
    /// There were fields beyond the limit.
    pub(super) too_large: bool,
}

impl CallHead {
    /// Makes it of fields; none where they are no request, unless some were dropped.
    pub(super) fn of(mut head: RequestHead) -> Option<Self> {
        let too_large = head.too_large;
        let authority = head.authority.take();
        let empty = || too_large.then(|| http::Request::new(()).into_parts().0);
        let parts = parts(head).or_else(empty)?;
        Some(Self { parts, authority, too_large })
    }
}

fn parts(head: RequestHead) -> Option<Parts> {
    if head.malformed || head.scheme.is_none() {
        return None;
    }
    let mut request = http::Request::new(());
    *request.method_mut() = Method::from_bytes(&head.method?).ok()?;
    *request.uri_mut() = Uri::from_maybe_shared(head.path?).ok()?;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = head.headers;
    Some(request.into_parts().0)
}
