//! Heads of requests: found among bytes, and held against RFC 9112, sections 2 to 5.

use std::ops::Range;

use bytes::Bytes;

use super::framing::{ReadError, has_whole_line_ends, malformed};
use super::message::{HttpHead, HttpMethod};

/// Longest head of a request, in bytes.
pub(super) const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Most headers of a request.
const MAX_HEADERS: usize = 96;

/// Places of a head's parts within its bytes.
#[derive(Debug)]
pub(super) struct HeadParts {
    /// Bytes of the head.
    pub(super) length: usize,
    method: HttpMethod,
    is_head: bool,
    path: Range<usize>,
    authority: Option<Range<usize>>,
    headers: Vec<(Range<usize>, Range<usize>)>,
    old: bool,
}

impl HeadParts {
    /// Makes the head of its bytes.
    pub(super) fn of(self, bytes: Bytes) -> HttpHead {
        let Self { method, is_head, path, authority, headers, old, .. } = self;
        HttpHead { bytes, method, is_head, path, authority, headers, old }
    }
}

/// Parses a head; none while it is incomplete.
///
/// # Errors
/// Returns a refusal for what is a malformed request of HTTP/1, and [`ReadError::Closed`] for what is no request of it at
/// all.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<HeadParts>, ReadError> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(refusal(bytes, error)),
    };
    // The library accepts bare line feeds.
    if !bytes.get(..length).is_some_and(has_whole_line_ends) {
        return Err(malformed("a line of the head does not end in CR LF"));
    }
    let method = request.method.unwrap_or("");
    let target = RequestTarget::parse(method, request.path.unwrap_or(""))
        .ok_or_else(|| malformed("the request target is neither a path nor an http URL"))?;
    let headers = request
        .headers
        .iter()
        .map(|header| (range(bytes, header.name.as_bytes()), range(bytes, header.value)))
        .collect();
    Ok(Some(HeadParts {
        length,
        method: match method {
            "GET" => HttpMethod::Get,
            "POST" => HttpMethod::Post,
            "DELETE" => HttpMethod::Delete,
            _ => HttpMethod::Other,
        },
        is_head: method == "HEAD",
        path: range(bytes, target.path.as_bytes()),
        authority: target.authority.map(|text| range(bytes, text.as_bytes())),
        headers,
        old: request.version == Some(0),
    }))
}

/// Makes the refusal of a head that grows beyond its bound.
pub(super) fn head_too_long(bytes: &[u8]) -> ReadError {
    if !bytes.contains(&b'\n') {
        let text = format!("the request line is longer than {MAX_HEAD_BYTES} bytes");
        return ReadError::refused(414, &text);
    }
    ReadError::refused(
        431,
        &format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes"),
    )
}

fn refusal(bytes: &[u8], error: httparse::Error) -> ReadError {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(bytes).trim_ascii_end();
    let version =
        line.rsplit(|byte| *byte == b' ').next().and_then(|word| word.strip_prefix(b"HTTP/"));
    let (Some(version), false) = (version, line.starts_with(b"PRI ")) else {
        // Speakers of other protocols do not understand answers.
        return ReadError::Closed;
    };
    match (version, error) {
        (_, httparse::Error::TooManyHeaders) => {
            ReadError::refused(431, &format!("the request has more than {MAX_HEADERS} headers"))
        }
        (b"1.0" | b"1.1", httparse::Error::HeaderName) => {
            malformed("a line of the head is not NAME: VALUE")
        }
        (b"1.0" | b"1.1", httparse::Error::HeaderValue) => {
            malformed("a header has a character that no value may have")
        }
        (b"1.0" | b"1.1", httparse::Error::NewLine) => {
            malformed("a line of the head does not end in CR LF")
        }
        (b"1.0" | b"1.1", _) => malformed("the first line is not METHOD TARGET HTTP/1.1"),
        ([major, b'.', minor], _) if major.is_ascii_digit() && minor.is_ascii_digit() => {
            ReadError::refused(505, "the version of HTTP is not 1.0 or 1.1")
        }
        _ => malformed("the first line is not METHOD TARGET HTTP/1.1"),
    }
}

/// Parts of a request target.
#[derive(Debug, PartialEq, Eq)]
struct RequestTarget<'a> {
    /// The path without the query.
    path: &'a str,
    /// The host of a target that is a URL.
    authority: Option<&'a str>,
}

impl<'a> RequestTarget<'a> {
    /// Reads the four forms of a target (RFC 9112, section 3.2).
    fn parse(method: &str, text: &'a str) -> Option<Self> {
        let path = |text: &'a str| text.split_once('?').map_or(text, |(path, _)| path);
        if text.starts_with('/') || (method == "OPTIONS" && text == "*") {
            return Some(Self { path: path(text), authority: None });
        }
        // The host and the port of a tunnel, which no endpoint is.
        if method == "CONNECT" {
            return Some(Self { path: text, authority: None });
        }
        let (scheme, rest) = text.split_once("://")?;
        let is_http = ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end)?;
        let rest = if rest.starts_with('/') { path(rest) } else { "/" };
        (is_http && !authority.is_empty())
            .then_some(Self { path: rest, authority: Some(authority) })
    }
}

/// Returns the position of a part within its buffer; that of nothing for a text from elsewhere.
fn range(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Option<u16> {
        match parse_head(text.as_bytes()) {
            Err(ReadError::Refused(response)) => Some(response.status()),
            Err(ReadError::Closed) => None,
            Ok(found) => panic!("{text:?} is taken: {found:?}"),
        }
    }

    fn head(text: &'static str) -> HttpHead {
        let bytes = Bytes::from_static(text.as_bytes());
        parse_head(&bytes).unwrap().unwrap().of(bytes)
    }

    #[test]
    fn malformed_heads_are_answered_and_other_protocols_are_not() {
        for (text, expected) in [
            ("GET / HTTP/1.1\nHost: x\n\n", Some(400)),
            ("GET / HTTP/1.1\r\nHost: x\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nHost: x\r\n\n", Some(400)),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nHost\t: x\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\n Host: x\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\n: b\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1\r\nA(b): c\r\n\r\n", Some(400)),
            ("GET  / HTTP/1.1\r\n\r\n", Some(400)),
            ("GET /  HTTP/1.1\r\n\r\n", Some(400)),
            ("GET / x HTTP/1.1\r\n\r\n", Some(400)),
            ("G(T / HTTP/1.1\r\n\r\n", Some(400)),
            ("GET v2 HTTP/1.1\r\n\r\n", Some(400)),
            ("GET * HTTP/1.1\r\n\r\n", Some(400)),
            ("GET ftp://x/ HTTP/1.1\r\n\r\n", Some(400)),
            ("GET http:///v2 HTTP/1.1\r\n\r\n", Some(400)),
            ("GET / HTTP/1.1 \r\n\r\n", Some(400)),
            ("GET / HTTP/01.1\r\n\r\n", Some(400)),
            ("GET / HTTP/2.0\r\n\r\n", Some(505)),
            ("GET / HTTP/1.7\r\n\r\n", Some(505)),
            ("BLAH\r\n\r\n", None),
            ("GET /\r\n\r\n", None),
            ("PRI * HTTP/2.0\r\n\r\n", None),
            ("\u{16}\u{3}\u{1}\0\u{1}", None),
        ] {
            assert_eq!(status(text), expected, "{text:?}");
        }
        let many = "A: b\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(431));
    }

    #[test]
    fn targets_are_paths_with_or_without_a_host() {
        for (line, path, authority) in [
            ("GET /a/b?c=d HTTP/1.1\r\n\r\n", "/a/b", None),
            ("GET HTTP://x:1/a?b HTTP/1.1\r\n\r\n", "/a", Some("x:1")),
            ("GET https://[::1]/a HTTP/1.1\r\n\r\n", "/a", Some("[::1]")),
            ("OPTIONS * HTTP/1.1\r\n\r\n", "*", None),
            ("CONNECT x:1 HTTP/1.1\r\n\r\n", "x:1", None),
        ] {
            let head = head(line);
            assert_eq!((head.path(), head.authority()), (path, authority), "{line}");
        }
        let root = RequestTarget { path: "/", authority: Some("x") };
        assert_eq!(RequestTarget::parse("GET", "http://x?q"), Some(root));
        assert!(head("HEAD / HTTP/1.0\r\n\r\n").is_head && !head("GET / HTTP/1.1\r\n\r\n").is_head);
    }

    #[test]
    fn heads_beyond_the_bound_are_refused_by_what_is_too_long() {
        for (bytes, expected) in [(&b"GET /aaaa"[..], 414), (b"GET / HTTP/1.1\r\nA: bbb", 431)] {
            let ReadError::Refused(response) = head_too_long(bytes) else { panic!("closed") };
            assert_eq!(response.status(), expected);
        }
    }
}
