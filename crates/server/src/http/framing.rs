//! Delimitation of bodies and connections (RFC 9112, sections 6, 7 and 9), decided from heads alone.
//!
//! Whatever another reader on the way could delimit otherwise is refused, since the two would then disagree about where
//! the next request begins.

use std::io;

use super::message::{ContentType, HttpHead, HttpResponse};

/// Longest line that announces a chunk, in bytes.
pub(super) const MAX_CHUNK_LINE_BYTES: usize = 256;
/// Most bytes that the lines of a body's chunks may have beside their sizes.
pub(super) const MAX_EXTENSION_BYTES: usize = 16 * 1024;
/// Longest trailers of a body, in bytes.
pub(super) const MAX_TRAILER_BYTES: usize = 16 * 1024;
/// Most trailers of a body.
const MAX_TRAILERS: usize = 96;

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

impl ReadError {
    /// Makes a refusal with a status and a sentence.
    pub(super) fn refused(status: u16, text: &str) -> Self {
        Self::Refused(HttpResponse::error(status, ContentType::Json, text))
    }
}

/// Makes the refusal of a request that is not of HTTP/1.1's form.
pub(super) fn malformed(text: &str) -> ReadError {
    ReadError::refused(400, &format!("malformed HTTP request: {text}"))
}

/// Delimitation of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// Finds how a body is delimited (RFC 9112, section 6.3).
///
/// # Errors
/// Returns a refusal where the length is given twice, in two ways, or in a form that readers could take differently.
pub(super) fn framing(head: &HttpHead) -> Result<BodyFraming, ReadError> {
    let mut lengths = head.values("content-length");
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(malformed("several Content-Length headers, expected one"));
    }
    if head.values("transfer-encoding").next().is_some() {
        return chunked(head, length.is_some());
    }
    let Some(text) = length else { return Ok(BodyFraming::Length(0)) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = text.parse().ok().filter(|_| digits);
    bytes
        .map(BodyFraming::Length)
        .ok_or_else(|| malformed("Content-Length is not a number of bytes below 2^64"))
}

/// Checks the transfer codings of a head that has some.
fn chunked(head: &HttpHead, has_length: bool) -> Result<BodyFraming, ReadError> {
    if head.old {
        return Err(malformed("Transfer-Encoding in a request of HTTP/1.0, which has none"));
    }
    if has_length {
        return Err(malformed("Content-Length beside Transfer-Encoding, expected one of them"));
    }
    let is_chunked = |coding: &str| coding.eq_ignore_ascii_case("chunked");
    let codings: Vec<&str> = head
        .values("transfer-encoding")
        .flat_map(|value| value.split(','))
        .map(|coding| coding.trim_matches([' ', '\t']))
        .collect();
    match codings.as_slice() {
        [coding] if is_chunked(coding) => Ok(BodyFraming::Chunked),
        [before @ .., last] if is_chunked(last) && before.iter().all(|one| is_token(one)) => {
            if before.iter().any(|coding| is_chunked(coding)) {
                return Err(malformed("the transfer coding chunked is named twice"));
            }
            let text = "transfer codings beside chunked are not supported";
            Err(ReadError::refused(501, text))
        }
        _ => Err(malformed("Transfer-Encoding does not end in chunked")),
    }
}

fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// Returns whether a body follows the head of a request.
///
/// # Errors
/// Returns a refusal if the length cannot be determined.
pub(super) fn has_body(head: &HttpHead) -> Result<bool, ReadError> {
    Ok(framing(head)? != BodyFraming::Length(0))
}

/// Returns whether the client sends the body only once it is asked to. Clients of HTTP/1.0 would take the interim answer
/// for the last one.
pub(super) fn waits_for_leave(head: &HttpHead) -> bool {
    !head.old && head.values("expect").any(|value| value.eq_ignore_ascii_case("100-continue"))
}

/// Returns whether the connection ends after the answer to this request.
pub(super) fn wants_close(head: &HttpHead) -> bool {
    let says = |word: &str| {
        let mut tokens = head.values("connection").flat_map(|value| value.split(','));
        tokens.any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    says("close") || (head.old && !says("keep-alive"))
}

/// Reads the size that opens a chunk, in bytes. Extensions behind a semicolon are ignored.
///
/// # Errors
/// Returns a refusal where the line is not of the form, or its size is 2^64 or more.
pub(super) fn chunk_size(line: &[u8]) -> Result<u64, ReadError> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    let size = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
    let size = size.ok_or_else(|| malformed("a chunk does not begin with its size"))?;
    if !is_extension(extension) {
        return Err(malformed("what follows the size of a chunk is not an extension"));
    }
    Ok(size)
}

/// Returns whether bytes behind a size are nothing, or a semicolon and text. Characters of control could be the end of
/// the line for another reader.
fn is_extension(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let begins = bytes.is_empty() || text.first() == Some(&b';');
    begins && bytes.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f))
}

/// Checks the form of trailers, which are then dropped. `bytes` are their lines with the empty one behind them.
///
/// # Errors
/// Returns a refusal where a line is not a header, or there are too many.
pub(super) fn check_trailers(bytes: &[u8]) -> Result<(), ReadError> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_TRAILERS];
    let whole = matches!(
        httparse::parse_headers(bytes, &mut slots),
        Ok(httparse::Status::Complete((length, _))) if length == bytes.len()
    );
    if whole && has_whole_line_ends(bytes) {
        return Ok(());
    }
    Err(malformed(&format!("the trailers of a body are not up to {MAX_TRAILERS} headers")))
}

/// Returns whether every line feed follows a carriage return, and every carriage return is followed by a line feed.
pub(super) fn has_whole_line_ends(bytes: &[u8]) -> bool {
    let mut before = 0;
    for &byte in bytes {
        if (byte == b'\n') != (before == b'\r') {
            return false;
        }
        before = byte;
    }
    before != b'\r'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::parse_head;

    fn head(text: &str) -> HttpHead {
        let bytes = bytes::Bytes::from(format!("{text}\r\n\r\n"));
        parse_head(&bytes).unwrap().unwrap().of(bytes)
    }

    fn status(error: &ReadError) -> Option<u16> {
        match error {
            ReadError::Refused(response) => Some(response.status()),
            ReadError::Closed => None,
        }
    }

    #[test]
    fn lengths_and_codings_delimit_bodies_in_one_way_or_not_at_all() {
        let of = |headers: &str| {
            framing(&head(&format!("POST / HTTP/1.1\r\n{headers}")))
                .map_err(|error| status(&error).unwrap())
        };
        assert_eq!(of("A: b"), Ok(BodyFraming::Length(0)));
        assert_eq!(of("Content-Length: 018"), Ok(BodyFraming::Length(18)));
        assert_eq!(of("Transfer-Encoding: \t CHUNKED \t"), Ok(BodyFraming::Chunked));
        for headers in [
            "Content-Length:",
            "Content-Length: +1",
            "Content-Length: -1",
            "Content-Length: 0x1",
            "Content-Length: 1 1",
            "Content-Length: 1,1",
            "Content-Length: 18446744073709551616",
            "Content-Length: 1\r\ncontent-length: 1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 0",
            "Transfer-Encoding:",
            "Transfer-Encoding: identity",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
            "Transfer-Encoding: , chunked",
            "Transfer-Encoding: chunked,",
            "Transfer-Encoding: chunked;q=1",
            "Transfer-Encoding: \"chunked\"",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked\u{e9}",
        ] {
            assert_eq!(of(headers), Err(400), "{headers}");
        }
        for headers in [
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        ] {
            assert_eq!(of(headers), Err(501), "{headers}");
        }
        let old = head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked");
        assert_eq!(status(&framing(&old).unwrap_err()), Some(400));
    }

    #[test]
    fn every_connection_header_counts_and_close_wins() {
        for (version, headers, closes) in [
            ("1.1", "A: b", false),
            ("1.1", "Connection: x\r\nConnection: upgrade, Close", true),
            ("1.1", "Connection: keep-alive", false),
            ("1.0", "A: b", true),
            ("1.0", "Connection: x\r\nConnection: Keep-Alive", false),
            ("1.0", "Connection: keep-alive, close", true),
        ] {
            let head = head(&format!("GET / HTTP/{version}\r\n{headers}"));
            assert_eq!(wants_close(&head), closes, "{version} {headers}");
        }
        assert!(waits_for_leave(&head("PUT / HTTP/1.1\r\nExpect: 100-Continue")));
        assert!(!waits_for_leave(&head("PUT / HTTP/1.0\r\nExpect: 100-continue")));
    }

    #[test]
    fn sizes_of_chunks_are_hexadecimal_digits_and_nothing_else() {
        for (line, size) in [
            ("0", 0),
            ("00aF", 0xaf),
            ("5;a=b", 5),
            ("5 ; a=\"b c\"", 5),
            ("ffffffffffffffff", u64::MAX),
        ] {
            assert_eq!(chunk_size(line.as_bytes()).unwrap(), size, "{line}");
        }
        for line in [
            "",
            " 5",
            "5 ",
            "+5",
            "0x5",
            "-1",
            "5g",
            ";a",
            "5;a\n",
            "5;a\rb",
            "5;\0",
            "5 a",
            "10000000000000000",
        ] {
            assert!(chunk_size(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn trailers_have_the_form_of_headers() {
        assert!(check_trailers(b"\r\n").is_ok());
        assert!(check_trailers(b"A: b\r\nC:d\r\n\r\n").is_ok());
        let many = ["A: b\r\n".repeat(MAX_TRAILERS + 1), "\r\n".to_owned()].concat();
        for bytes in [
            &b"A b\r\n\r\n"[..],
            b"A : b\r\n\r\n",
            b" A: b\r\n\r\n",
            b"A: b\n\r\n",
            many.as_bytes(),
        ] {
            assert!(check_trailers(bytes).is_err());
        }
    }
}
