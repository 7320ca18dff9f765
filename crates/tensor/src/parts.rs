//! Memory that is changed part by part, wherever it lies.

use crate::error::TensorError;

/// Memory of a single owner, whose parts are copied without the rest coming along: of a cache on a device
/// single blocks move.
pub trait OwnedParts {
    /// Copies parts of `each` bytes, in this order, from the first of two places to the second.
    ///
    /// # Errors
    /// When a part is not inside the memory, or the device fails.
    fn copy_parts(&mut self, copies: &[(usize, usize)], each: usize) -> Result<(), TensorError>;

    /// The bytes of parts of `each` bytes, one behind the other.
    ///
    /// # Errors
    /// Fails like [`OwnedParts::copy_parts`], and when there is no memory for them.
    fn read_parts(&mut self, starts: &[usize], each: usize) -> Result<Vec<u8>, TensorError>;

    /// Writes parts of `each` bytes, which follow each other in `bytes`.
    ///
    /// # Errors
    /// Fails like [`OwnedParts::copy_parts`], and when `bytes` are not as many.
    fn write_parts(
        &mut self,
        starts: &[usize],
        each: usize,
        bytes: &[u8],
    ) -> Result<(), TensorError>;
}

/// Refuses a part that is not within `len` bytes.
///
/// # Errors
/// Names the part.
pub fn check_part(start: usize, each: usize, len: usize) -> Result<(), TensorError> {
    match start.checked_add(each) {
        Some(end) if end <= len => Ok(()),
        _ => Err(TensorError::shape(format!("{each} bytes from {start} on, there are {len}"))),
    }
}
