//! Answers to inference in a shorter form, as the flag asks and the client accepts.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http::{HeaderMap, HeaderValue};
use http_body::{Body as _, Frame};
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;

/// Bytes before each message: a compression flag and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// Header that says how messages are compressed.
pub(super) const ENCODING: &str = "grpc-encoding";
/// Header that says what a client can read.
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Effort of the compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Lowest level.
    Low,
    /// Level that zlib recommends.
    Medium,
    /// Highest level.
    High,
}

/// Whether the messages of a call come compressed.
pub(super) fn is_compressed(metadata: &MetadataMap) -> bool {
    metadata.get(ENCODING).is_some_and(|name| name != "identity")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompressionForm {
    Gzip,
    Deflate,
}

/// Compression of an answer's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageCoding {
    form: CompressionForm,
    level: CompressionLevel,
}

impl CompressionLevel {
    /// A level by its name; none for `none`.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }

    /// The coding for a client. gRPC's servers choose gzip at the low level and deflate above, where both are accepted.
    pub(super) fn coding(self, head: &HeaderMap) -> Option<MessageCoding> {
        let accepted = head.get(ACCEPT_ENCODING)?.to_str().ok()?;
        let accepts = |name| accepted.split(',').any(|one| one.trim() == name);
        let form = match (accepts("gzip"), accepts("deflate")) {
            (true, true) if self == Self::Low => CompressionForm::Gzip,
            (_, true) => CompressionForm::Deflate,
            (true, false) => CompressionForm::Gzip,
            (false, false) => return None,
        };
        Some(MessageCoding { form, level: self })
    }

    fn zlib(self) -> Compression {
        Compression::new(match self {
            Self::Low => 1,
            Self::Medium => 6,
            Self::High => 9,
        })
    }
}

impl MessageCoding {
    pub(super) fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self.form {
            CompressionForm::Gzip => "gzip",
            CompressionForm::Deflate => "deflate",
        })
    }

    /// Messages with their prefixes, each compressed where that makes it shorter.
    pub(super) fn messages(self, framed: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(framed.len());
        let mut rest = framed;
        while let Some(([flag, a, b, c, d], others)) = rest.split_first_chunk::<PREFIX_BYTES>() {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            let (message, others) = others.split_at(length.min(others.len()));
            rest = others;
            let short = self.message(message).filter(|short| short.len() < message.len());
            let length = short.as_ref().and_then(|short| u32::try_from(short.len()).ok());
            match (short, length) {
                (Some(short), Some(length)) if *flag == 0 => {
                    out.put_u8(1);
                    out.put_u32(length);
                    out.put_slice(&short);
                }
                _ => {
                    out.put_slice(&[*flag, *a, *b, *c, *d]);
                    out.put_slice(message);
                }
            }
        }
        out.freeze()
    }

    fn message(self, message: &[u8]) -> Option<Vec<u8>> {
        let out = Vec::with_capacity(message.len() / 2);
        let level = self.level.zlib();
        match self.form {
            CompressionForm::Gzip => {
                let mut encoder = GzEncoder::new(out, level);
                encoder.write_all(message).ok()?;
                encoder.finish().ok()
            }
            CompressionForm::Deflate => {
                let mut encoder = ZlibEncoder::new(out, level);
                encoder.write_all(message).ok()?;
                encoder.finish().ok()
            }
        }
    }

    /// An answer with its messages compressed. Tonic gives whole messages in each piece of a body.
    pub(super) fn answer(self, mut response: http::Response<Body>) -> http::Response<Body> {
        if !response.body().is_end_stream() {
            response.headers_mut().insert(ENCODING, self.name());
        }
        response.map(|body| Body::new(CompressedMessage { body, coding: self }))
    }
}

struct CompressedMessage {
    body: Body,
    coding: MessageCoding,
}

impl http_body::Body for CompressedMessage {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let coding = self.coding;
        Pin::new(&mut self.body).poll_frame(context).map(|frame| {
            frame.map(|frame| frame.map(|frame| frame.map_data(|data| coding.messages(&data))))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0][..], &length, message].concat()
    }

    fn accepting(names: &'static str) -> HeaderMap {
        let mut head = HeaderMap::new();
        head.insert(ACCEPT_ENCODING, HeaderValue::from_static(names));
        head
    }

    #[test]
    fn levels_and_clients_choose_the_coding() {
        let name = |level, names| {
            CompressionLevel::named(level)?.coding(&accepting(names)).map(MessageCoding::name)
        };
        for (level, names, expected) in [
            ("LOW", "identity, deflate, gzip", Some("gzip")),
            ("medium", "identity,deflate,gzip", Some("deflate")),
            ("high", "gzip", Some("gzip")),
            ("low", "deflate", Some("deflate")),
            ("low", "identity", None),
            ("none", "gzip", None),
        ] {
            let found = name(level, names);
            assert_eq!(found.as_ref().map(|name| name.to_str().unwrap()), expected, "{level}");
        }
        assert_eq!(CompressionLevel::High.coding(&HeaderMap::new()), None);
    }

    #[test]
    fn higher_levels_make_shorter_messages_that_are_the_same() {
        let text: Vec<u8> =
            (0..40_000_u32).flat_map(|n| (n * n % 977).to_string().into_bytes()).collect();
        let mut sizes = Vec::new();
        for level in [CompressionLevel::Low, CompressionLevel::Medium, CompressionLevel::High] {
            let coding = MessageCoding { form: CompressionForm::Deflate, level };
            let out = coding.messages(&[framed(&text), framed(b"x")].concat());
            let (first, rest) = out.split_at(out.len() - 6);
            assert_eq!(first[0], 1);
            assert_eq!(rest, framed(b"x"), "what does not get shorter stays as it is");
            let mut found = Vec::new();
            flate2::read::ZlibDecoder::new(&first[PREFIX_BYTES..]).read_to_end(&mut found).unwrap();
            assert_eq!(found, text);
            sizes.push(first.len());
        }
        assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    }
}
