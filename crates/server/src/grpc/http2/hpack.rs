//! Header fields as they travel (RFC 7541): decoded with the table that the peer fills, encoded without one.

use std::collections::VecDeque;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::huffman;

/// Size of the table that the peer may fill: the one that the standard starts with.
const TABLE_BYTES: usize = 4096;
/// Overhead of a table entry beside its bytes.
const FIELD_BYTES: usize = 32;

/// The fields that every table begins with.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

static STATIC_FIELDS: LazyLock<Vec<HeaderField>> = LazyLock::new(|| {
    STATIC
        .iter()
        .map(|(name, value)| {
            HeaderField::new(name.as_bytes(), Bytes::from_static(value.as_bytes()))
        })
        .collect()
});

/// Meaning of a field's name in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HpackName {
    Method,
    Path,
    Scheme,
    Authority,
    Header(HeaderName),
    /// Not one that a request may have; kept for its size and for fields that refer to it.
    Unfit(Bytes),
}

impl HpackName {
    fn new(name: &[u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":path" => Self::Path,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            // Fields of connections have no place in HTTP/2, nor have capitals.
            b"connection" | b"transfer-encoding" | b"keep-alive" | b"proxy-connection"
            | b"upgrade" => Self::Unfit(Bytes::copy_from_slice(name)),
            _ => HeaderName::from_lowercase(name)
                .map_or_else(|_| Self::Unfit(Bytes::copy_from_slice(name)), Self::Header),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Path => 5,
            Self::Method | Self::Scheme => 7,
            Self::Authority => 10,
            Self::Header(name) => name.as_str().len(),
            Self::Unfit(name) => name.len(),
        }
    }
}

#[derive(Debug, Clone)]
struct HeaderField {
    name: HpackName,
    value: Bytes,
    /// The same, where it can be the value of a header.
    header: Option<HeaderValue>,
}

impl HeaderField {
    fn new(name: &[u8], value: Bytes) -> Self {
        Self::named(HpackName::new(name), value)
    }

    fn named(name: HpackName, value: Bytes) -> Self {
        let header = match name {
            HpackName::Header(_) => HeaderValue::from_maybe_shared(value.clone()).ok(),
            _ => None,
        };
        Self { name, value, header }
    }

    fn size(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_BYTES
    }
}

/// The fields of a request's head.
#[derive(Debug, Default)]
pub(super) struct RequestHead {
    pub(super) method: Option<Bytes>,
    pub(super) path: Option<Bytes>,
    pub(super) scheme: Option<Bytes>,
    pub(super) authority: Option<Bytes>,
    pub(super) headers: HeaderMap,
    /// There are fields that a head may not have, or in a wrong order.
    pub(super) malformed: bool,
    /// There are more than the limit; they were dropped.
    pub(super) too_large: bool,
    size: usize,
}

/// Returns whether a field may have a value (RFC 9113, section 8.2): no space around it, and `trailers` alone for `te`.
fn is_fit(name: &HeaderName, value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let spaced = is_space(value.first()) || is_space(value.last());
    !spaced && (name != http::header::TE || value.eq_ignore_ascii_case(b"trailers"))
}

impl RequestHead {
    /// Returns whether the fields may stand behind a body, where no field is of the request itself.
    pub(super) fn are_trailers(&self) -> bool {
        let own = [&self.method, &self.path, &self.scheme, &self.authority];
        !self.malformed && own.iter().all(|field| field.is_none())
    }

    fn add(&mut self, field: &HeaderField, limit: usize) {
        self.size = self.size.saturating_add(field.size());
        if self.size > limit {
            self.too_large = true;
            return;
        }
        let place = match &field.name {
            HpackName::Method => &mut self.method,
            HpackName::Path => &mut self.path,
            HpackName::Scheme => &mut self.scheme,
            HpackName::Authority => &mut self.authority,
            HpackName::Header(name) => {
                match &field.header {
                    Some(value) if is_fit(name, value.as_bytes()) => {
                        self.headers.append(name, value.clone());
                    }
                    _ => self.malformed = true,
                }
                return;
            }
            HpackName::Unfit(_) => {
                self.malformed = true;
                return;
            }
        };
        // Once each, and before all others.
        self.malformed |= place.is_some() || !self.headers.is_empty();
        *place = Some(field.value.clone());
    }
}

/// The code of a connection's heads is broken, which ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BrokenHeaders;

/// Reads heads.
#[derive(Debug)]
pub(super) struct HpackDecoder {
    /// The newest first.
    table: VecDeque<HeaderField>,
    size: usize,
    limit: usize,
}

impl HpackDecoder {
    pub(super) fn new() -> Self {
        Self { table: VecDeque::new(), size: 0, limit: TABLE_BYTES }
    }

    /// The fields of a block; those beyond a limit in bytes are dropped.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        limit: usize,
    ) -> Result<RequestHead, BrokenHeaders> {
        let mut head = RequestHead::default();
        let mut rest = block;
        let mut begun = false;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let field = self.field(integer(&mut rest, 7)?)?;
                head.add(&field, limit);
            } else if first & 0xe0 == 0x20 {
                let size = integer(&mut rest, 5)?;
                if begun || size > TABLE_BYTES {
                    return Err(BrokenHeaders);
                }
                self.limit = size;
                self.evict();
                continue;
            } else {
                let kept = first & 0x40 != 0;
                let index = integer(&mut rest, if kept { 6 } else { 4 })?;
                let name = match index {
                    0 => HpackName::new(&string(&mut rest)?),
                    index => self.field(index)?.name,
                };
                let field = HeaderField::named(name, string(&mut rest)?);
                head.add(&field, limit);
                if kept {
                    self.size += field.size();
                    self.table.push_front(field);
                    self.evict();
                }
            }
            begun = true;
        }
        Ok(head)
    }

    fn field(&self, index: usize) -> Result<HeaderField, BrokenHeaders> {
        let index = index.checked_sub(1).ok_or(BrokenHeaders)?;
        let field = match index.checked_sub(STATIC.len()) {
            None => STATIC_FIELDS.get(index),
            Some(index) => self.table.get(index),
        };
        field.cloned().ok_or(BrokenHeaders)
    }

    fn evict(&mut self) {
        while self.size > self.limit {
            let Some(oldest) = self.table.pop_back() else { return };
            self.size -= oldest.size();
        }
    }
}

/// A number whose first bits share a byte.
fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, BrokenHeaders> {
    let mut byte = || {
        let (first, others) = rest.split_first().ok_or(BrokenHeaders)?;
        *rest = others;
        Ok(*first)
    };
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(byte()?) & most;
    if value < most {
        return Ok(value);
    }
    // No number here is longer than a block.
    for shift in [0, 7, 14, 21] {
        let next = byte()?;
        value += usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BrokenHeaders)
}

fn string(rest: &mut &[u8]) -> Result<Bytes, BrokenHeaders> {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (bytes, others) = rest.split_at_checked(length).ok_or(BrokenHeaders)?;
    *rest = others;
    if coded {
        huffman::decode(bytes).map(Bytes::from).ok_or(BrokenHeaders)
    } else {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

/// Writes a response's head, or its trailers, which have no status.
pub(super) fn encode(block: &mut Vec<u8>, status: Option<StatusCode>, headers: &HeaderMap) {
    match status {
        Some(StatusCode::OK) => block.push(0x88),
        Some(status) => {
            block.push(0x08);
            write_string(block, status.as_str().as_bytes());
        }
        None => {}
    }
    for (name, value) in headers {
        // Neither looked up nor kept: the heads of answers are short.
        block.push(0);
        write_string(block, name.as_str().as_bytes());
        write_string(block, value.as_bytes());
    }
}

fn write_string(block: &mut Vec<u8>, text: &[u8]) {
    let most = 0x7f;
    match u8::try_from(text.len()) {
        Ok(length) if length < most => block.push(length),
        _ => {
            block.push(most);
            let mut rest = text.len() - usize::from(most);
            while rest >= 0x80 {
                block.push(u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80);
                rest >>= 7;
            }
            block.push(u8::try_from(rest).unwrap_or(0));
        }
    }
    block.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 16 * 1024;

    fn text(bytes: Option<Bytes>) -> String {
        String::from_utf8(bytes.unwrap().to_vec()).unwrap()
    }

    /// Requests of RFC 7541, appendix C.4: one decoder, three heads.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        let mut decoder = HpackDecoder::new();
        let first = [
            0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab,
            0x90, 0xf4, 0xff,
        ];
        let head = decoder.decode(&first, LIMIT).unwrap();
        assert_eq!((text(head.method), text(head.path)), ("GET".to_owned(), "/".to_owned()));
        assert_eq!(text(head.authority), "www.example.com");
        let second = [0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf];
        let head = decoder.decode(&second, LIMIT).unwrap();
        assert_eq!(text(head.authority), "www.example.com");
        assert_eq!(head.headers["cache-control"], "no-cache");
        let third = [
            0x82, 0x87, 0x85, 0xbf, 0x40, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f,
            0x89, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf,
        ];
        let head = decoder.decode(&third, LIMIT).unwrap();
        assert_eq!(
            (text(head.scheme), text(head.path)),
            ("https".to_owned(), "/index.html".to_owned())
        );
        assert_eq!(head.headers["custom-key"], "custom-value");
        assert_eq!(decoder.size, 164);
        assert!(!head.malformed && !head.too_large);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut headers = HeaderMap::new();
        let long = "v".repeat(70_000);
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        headers.append("a", HeaderValue::from_static(""));
        headers.append("a", HeaderValue::from_str(&long).unwrap());
        let mut block = Vec::new();
        encode(&mut block, None, &headers);
        let head = HpackDecoder::new().decode(&block, 100_000).unwrap();
        assert_eq!(head.headers, headers);
    }

    #[test]
    fn wrong_heads_are_malformed() {
        let literal = |name: &[u8], value: &[u8]| {
            let mut block = vec![0];
            write_string(&mut block, name);
            write_string(&mut block, value);
            block
        };
        for block in [
            literal(b"Te", b"trailers"),
            literal(b"connection", b"close"),
            literal(b":status", b"200"),
            literal(b"a", b"\n"),
            literal(b"", b""),
            [literal(b"a", b"b"), vec![0x82]].concat(),
            vec![0x82, 0x83],
        ] {
            assert!(HpackDecoder::new().decode(&block, LIMIT).unwrap().malformed, "{block:?}");
        }
        let head = HpackDecoder::new().decode(&literal(b"a", &[b'b'; 100]), 100).unwrap();
        assert!(head.too_large && head.headers.is_empty());
    }

    #[test]
    fn broken_codes_end_the_connection() {
        for block in [
            &[0x80][..],
            &[0xbe],
            &[0xff],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x00],
            &[0x00, 0x05, b'a'],
            &[0x00, 0x81, 0xff, 0x00],
            &[0x3f, 0xe2, 0x1f],
            &[0x82, 0x20],
        ] {
            assert!(HpackDecoder::new().decode(block, LIMIT).is_err(), "{block:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_without_panic_and_the_table_stays_within_its_size(
            blocks in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..200), 1..8)
        ) {
            let mut decoder = HpackDecoder::new();
            for block in blocks {
                if decoder.decode(&block, 1000).is_err() {
                    break;
                }
                proptest::prop_assert!(decoder.size <= decoder.limit);
                proptest::prop_assert_eq!(decoder.size, decoder.table.iter().map(HeaderField::size).sum::<usize>());
            }
        }
    }
}
