//! Tensors as bytes of the wire, shared and not copied where their elements lie together.

use bytes::Bytes;
use galatea_serving::ServingError;
use galatea_tensor::{ByteString, DataType, Tensor, encode_byte_strings};

/// Keeps a tensor alive for the bytes that the socket reads.
struct TensorOwner(Tensor);

impl AsRef<[u8]> for TensorOwner {
    fn as_ref(&self) -> &[u8] {
        // Checked when the owner is made.
        self.0.as_bytes().unwrap_or(&[])
    }
}

/// The little-endian elements of a tensor; strings with their lengths before them.
///
/// # Errors
/// Fails when memory for a copy runs out, or a string is too long for its length field.
pub fn wire_bytes(tensor: &Tensor) -> Result<Bytes, ServingError> {
    if tensor.dtype() == DataType::Bytes {
        let strings = tensor.contiguous()?;
        return Ok(encode_byte_strings(strings.as_slice::<ByteString>()?)?.into());
    }
    let tensor = tensor.contiguous()?;
    tensor.as_bytes()?;
    Ok(Bytes::from_owner(TensorOwner(tensor)))
}

/// Number of elements of a shape from the wire; none where a dimension is negative or the product too big.
#[must_use]
pub fn element_count(shape: &[i64]) -> Option<usize> {
    let count = shape
        .iter()
        .try_fold(1_i64, |count, &dim| if dim < 0 { None } else { count.checked_mul(dim) })?;
    usize::try_from(count).ok()
}

/// A shape as it stands in texts: `[1,16]`.
#[must_use]
pub fn shape_text(shape: &[i64]) -> String {
    let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", dims.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contiguous_tensor_gives_its_own_memory() {
        let tensor = Tensor::from_vec(&[2], vec![1_i32, 256]).unwrap();
        let bytes = wire_bytes(&tensor).unwrap();
        assert_eq!(&bytes[..], [1, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(bytes.as_ptr(), tensor.as_bytes().unwrap().as_ptr());
        let strings = Tensor::from_vec(&[1], vec![ByteString::from("ab")]).unwrap();
        assert_eq!(&wire_bytes(&strings).unwrap()[..], b"\x02\0\0\0ab");
    }

    #[test]
    fn counts_of_hostile_shapes_are_none() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[0, 5]), Some(0));
        assert_eq!(element_count(&[i64::MAX, 2]), None);
        assert_eq!(element_count(&[-1]), None);
    }
}
