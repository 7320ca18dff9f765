//! gzip and deflate of request and response bodies.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use galatea_serving::ServingError;

/// A coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyCoding {
    /// No compression.
    Identity,
    /// gzip
    Gzip,
    /// deflate, which is the zlib format.
    Deflate,
}

impl BodyCoding {
    /// The coding of that name; names are lower case.
    fn named(name: &str) -> Option<Self> {
        match name {
            "identity" => Some(Self::Identity),
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    /// The name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

/// The body of a request, decompressed as its Content-Encoding says. Where a stream breaks, what came before the
/// break is the body: Triton's clients see the same errors.
///
/// # Errors
/// Fails for codings other than gzip, deflate and identity, for a compressed body without bytes, and if the result is
/// longer than `limit`.
pub(super) fn decompress(
    encoding: Option<&str>,
    body: Bytes,
    limit: usize,
) -> Result<Bytes, ServingError> {
    let coding = match encoding {
        None => return Ok(body),
        Some(name) => BodyCoding::named(name)
            .ok_or_else(|| ServingError::unsupported("Unsupported compression type"))?,
    };
    if coding == BodyCoding::Identity {
        return Ok(body);
    }
    if body.is_empty() {
        return Err(ServingError::invalid_arg("nothing to be decompressed"));
    }
    let bound = (limit as u64).saturating_add(1);
    let mut out = Vec::new();
    // Both formats are recognised by their first bytes, whatever the header calls them.
    let read = if body.starts_with(&[0x1F, 0x8B]) {
        GzDecoder::new(&body[..]).take(bound).read_to_end(&mut out)
    } else {
        ZlibDecoder::new(&body[..]).take(bound).read_to_end(&mut out)
    };
    if let Err(error) = read {
        tracing::debug!("the compressed body of a request breaks off: {error}");
    }
    if out.len() > limit {
        return Err(ServingError::invalid_arg(format!(
            "Decompressed data size exceeds the maximum allowed value of {limit} bytes. Use \
             --http-max-input-size to increase the limit."
        )));
    }
    Ok(out.into())
}

/// The coding that a client wants most; of equal weights the first, of unknown ones none.
pub(super) fn accepted(header: Option<&str>) -> BodyCoding {
    let mut best = (BodyCoding::Identity, 0.0);
    for item in header.unwrap_or("").split(',') {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let Some(coding) = BodyCoding::named(name.trim()) else { continue };
        let weight = match weight.trim().strip_prefix("q=") {
            Some(text) => text.trim().parse().unwrap_or(0.0),
            None => 1.0,
        };
        if weight > best.1 {
            best = (coding, weight);
        }
    }
    best.0
}

/// Compresses the parts of a body into one.
///
/// # Errors
/// Fails when memory runs out.
pub(super) fn compress(coding: BodyCoding, parts: &[Bytes]) -> io::Result<Vec<u8>> {
    match coding {
        BodyCoding::Identity => Ok(parts.concat()),
        BodyCoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            parts.iter().try_for_each(|part| encoder.write_all(part))?;
            encoder.finish()
        }
        BodyCoding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            parts.iter().try_for_each(|part| encoder.write_all(part))?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_survive_both_codings_whatever_the_header_calls_them() {
        let parts = [Bytes::from_static(b"hello "), Bytes::from_static(b"world")];
        for coding in [BodyCoding::Gzip, BodyCoding::Deflate] {
            let packed = Bytes::from(compress(coding, &parts).unwrap());
            for name in ["gzip", "deflate"] {
                let plain = decompress(Some(name), packed.clone(), 100).unwrap();
                assert_eq!(&plain[..], b"hello world");
            }
        }
    }

    #[test]
    fn bombs_and_unknown_codings_are_refused_and_broken_streams_end_early() {
        let zeros = Bytes::from(vec![0_u8; 1 << 20]);
        let bomb = Bytes::from(compress(BodyCoding::Gzip, &[zeros]).unwrap());
        assert!(decompress(Some("gzip"), bomb, 1000).unwrap_err().message.contains("exceeds"));
        for name in ["br", "GZIP", ""] {
            assert!(decompress(Some(name), Bytes::new(), 1000).is_err(), "{name}");
        }
        for name in ["gzip", "deflate"] {
            let nothing = decompress(Some(name), Bytes::new(), 1000).unwrap_err();
            assert_eq!(nothing.message, "nothing to be decompressed");
        }
        assert!(decompress(Some("identity"), Bytes::new(), 1000).unwrap().is_empty());
        let broken = decompress(Some("gzip"), Bytes::from_static(b"plain text"), 1000).unwrap();
        assert!(broken.is_empty());
    }

    #[test]
    fn weights_and_order_choose_the_coding() {
        for (header, coding) in [
            (None, BodyCoding::Identity),
            (Some(""), BodyCoding::Identity),
            (Some("gzip, deflate"), BodyCoding::Gzip),
            (Some("deflate, gzip"), BodyCoding::Deflate),
            (Some("gzip;q=0.1, deflate;q=0.9"), BodyCoding::Deflate),
            (Some("br, gzip"), BodyCoding::Gzip),
            (Some("identity, gzip"), BodyCoding::Identity),
            (Some("gzip;q=0"), BodyCoding::Identity),
            (Some("GZIP"), BodyCoding::Identity),
        ] {
            assert_eq!(accepted(header), coding, "{header:?}");
        }
    }
}
