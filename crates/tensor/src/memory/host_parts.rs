//! Parts of a buffer in host memory.

use super::HostBuffer;
use crate::error::{TensorError, TensorErrorKind};
use crate::parts::{OwnedParts, check_part};

impl OwnedParts for HostBuffer {
    fn copy_parts(&mut self, copies: &[(usize, usize)], each: usize) -> Result<(), TensorError> {
        let bytes = self.as_bytes_mut();
        for &(from, to) in copies {
            check_part(from.max(to), each, bytes.len())?;
            bytes.copy_within(from..from + each, to);
        }
        Ok(())
    }

    fn read_parts(&mut self, starts: &[usize], each: usize) -> Result<Vec<u8>, TensorError> {
        let bytes = self.as_bytes();
        let mut all = Vec::new();
        let len = starts.len().saturating_mul(each);
        all.try_reserve_exact(len).map_err(|_| TensorErrorKind::TooLarge(vec![len]))?;
        for &start in starts {
            check_part(start, each, bytes.len())?;
            all.extend_from_slice(&bytes[start..start + each]);
        }
        Ok(all)
    }

    fn write_parts(
        &mut self,
        starts: &[usize],
        each: usize,
        bytes: &[u8],
    ) -> Result<(), TensorError> {
        check_part(0, starts.len().saturating_mul(each), bytes.len())?;
        let own = self.as_bytes_mut();
        for (at, &start) in starts.iter().enumerate() {
            check_part(start, each, own.len())?;
            own[start..start + each].copy_from_slice(&bytes[at * each..(at + 1) * each]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_move_in_order_and_only_inside() {
        let mut memory = HostBuffer::try_copy(&[1, 2, 3, 4, 5, 6]).unwrap();
        memory.copy_parts(&[(0, 2), (2, 4)], 2).unwrap();
        assert_eq!(memory.as_bytes(), [1, 2, 1, 2, 1, 2]);
        memory.write_parts(&[4, 0], 2, &[7, 8, 9, 10]).unwrap();
        assert_eq!(memory.read_parts(&[0, 4, 2], 2).unwrap(), [9, 10, 7, 8, 1, 2]);
        assert!(memory.read_parts(&[5], 2).is_err());
        assert!(memory.copy_parts(&[(0, usize::MAX)], 2).is_err());
        assert!(memory.write_parts(&[0], 4, &[1]).is_err());
    }
}
