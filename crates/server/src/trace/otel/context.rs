//! Context of an OpenTelemetry trace: identities, and the header that carries them.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The span of a client that caused a request, as its `traceparent` header names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// True if the client records the trace.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads the header: `00-<32 digits>-<16 digits>-<2 digits>`. What is malformed is as good as absent.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let trace_id = bytes(parts.next()?)?;
        let span_id = bytes(parts.next()?)?;
        let flags: [u8; 1] = bytes(parts.next()?)?;
        // Later versions may say more behind the flags; version 255 is none.
        let complete = version != [0] || parts.next().is_none();
        let known = version != [255] && trace_id != [0; 16] && span_id != [0; 8];
        (complete && known).then_some(Self { trace_id, span_id, sampled: flags[0] & 1 == 1 })
    }
}

/// Lower-case hexadecimal digits as bytes.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N
        || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..digits.len()).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A number that no other span has: the hash of a key that the system makes at random.
fn random() -> u64 {
    loop {
        let number = RandomState::new().build_hasher().finish();
        if number != 0 {
            return number;
        }
    }
}

/// The identity of a new span.
#[must_use]
pub fn new_span_id() -> [u8; 8] {
    random().to_be_bytes()
}

/// The identity of a new trace.
#[must_use]
pub fn new_trace_id() -> [u8; 16] {
    ((u128::from(random()) << 64) | u128::from(random())).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_as_the_recommendation_says() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(header).unwrap();
        assert_eq!(parent.trace_id[..3], [0x4b, 0xf9, 0x2f]);
        assert_eq!(parent.span_id, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.sampled);
        assert!(TraceParent::parse(&format!("cc{}-more", &header[2..])).is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn identities_differ() {
        assert_ne!(new_span_id(), new_span_id());
        assert_ne!(new_trace_id(), new_trace_id());
    }
}
