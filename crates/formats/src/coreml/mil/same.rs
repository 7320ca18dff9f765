//! Comparison of the bytes of constants.

use std::hash::{DefaultHasher, Hasher};

use galatea_tensor::Tensor;

/// Bytes at the beginning, at the end and at each place between that a fingerprint looks at.
const LOOK: usize = 64;
/// Places between.
const PLACES: usize = 64;

/// A number that is the same for the same bytes, and seldom for others. Of long ones it looks at some
/// places only: whether they are the same, [`same_bytes`] says.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_usize(bytes.len());
    let step = (bytes.len() / PLACES).max(LOOK);
    for part in bytes.chunks(step) {
        hasher.write(part.get(..LOOK).unwrap_or(part));
    }
    hasher.write(bytes.get(bytes.len().saturating_sub(LOOK)..).unwrap_or_default());
    hasher.finish()
}

/// Returns whether two constants have the same bytes in the same order, whatever their shapes and types
/// are. Those without bytes that lie together are the same as none.
#[must_use]
pub fn same_bytes(one: &Tensor, other: &Tensor) -> bool {
    match (one.unaligned_bytes(), other.unaligned_bytes()) {
        (Ok(one), Ok(other)) => std::ptr::eq(one, other) || one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_anywhere_is_seen() {
        let numbers: Vec<i32> = (0..100_000).collect();
        let table = Tensor::from_vec(&[1000, 100], numbers.clone()).unwrap();
        for at in [0, 17, 50_001, 99_999] {
            let mut others = numbers.clone();
            others[at] += 1;
            let other = Tensor::from_vec(&[1000, 100], others).unwrap();
            assert!(!same_bytes(&table, &other), "{at}");
        }
        let again = Tensor::from_vec(&[100, 1000], numbers).unwrap();
        assert!(same_bytes(&table, &again));
        let of = |tensor: &Tensor| fingerprint(tensor.unaligned_bytes().unwrap());
        assert_eq!(of(&table), of(&again));
        let turned = again.permute(&[1, 0]).unwrap();
        assert!(!same_bytes(&turned, &turned), "a view has no bytes");
    }
}
