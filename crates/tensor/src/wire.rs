//! The byte form of string tensors: each element is a 4-byte little-endian length and its bytes,
//! in row-major order (KServe v2, binary tensor extension).

use crate::element::ByteString;
use crate::error::{TensorError, TensorErrorKind};

/// Encodes strings with their lengths before them.
///
/// # Errors
/// When a string is longer than its 4-byte length can say.
pub fn encode_byte_strings(strings: &[ByteString]) -> Result<Vec<u8>, TensorError> {
    let total = strings.iter().map(|string| 4 + string.as_bytes().len()).sum();
    let mut wire = Vec::with_capacity(total);
    for string in strings {
        let len = u32::try_from(string.as_bytes().len())
            .map_err(|_| TensorErrorKind::Encoding("a string is longer than 4 GiB".into()))?;
        wire.extend_from_slice(&len.to_le_bytes());
        wire.extend_from_slice(string.as_bytes());
    }
    Ok(wire)
}

/// Decodes strings until the bytes end.
///
/// # Errors
/// When the last length or string is cut; the message gives its position.
pub fn decode_byte_strings(mut wire: &[u8]) -> Result<Vec<ByteString>, TensorError> {
    let total = wire.len();
    let mut strings = Vec::new();
    while !wire.is_empty() {
        let at = total - wire.len();
        let cut = || {
            TensorErrorKind::Encoding(format!(
                "string {} of the tensor is cut: it starts at byte {at} of {total}",
                strings.len()
            ))
        };
        let (len, rest) = wire.split_first_chunk::<4>().ok_or_else(cut)?;
        let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| cut())?;
        let (string, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
        strings.push(ByteString::from(string));
        wire = rest;
    }
    Ok(strings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_the_wire() {
        let strings: Vec<ByteString> = vec!["".into(), "héllo".into(), vec![0, 255].into()];
        let wire = encode_byte_strings(&strings).unwrap();
        assert_eq!(wire.len(), 3 * 4 + 6 + 2);
        assert_eq!(decode_byte_strings(&wire).unwrap(), strings);
    }

    #[test]
    fn a_cut_string_is_an_error_with_its_position() {
        let error = decode_byte_strings(&[1, 0, 0, 0, 7, 9, 0, 0, 0, 1]).unwrap_err();
        assert!(error.to_string().contains("string 1"), "{error}");
        assert!(error.to_string().contains("byte 5"), "{error}");
    }
}
