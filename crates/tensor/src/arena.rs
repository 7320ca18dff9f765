//! One block of memory that a plan divides between values whose lives do not overlap.

use std::fmt;
use std::ops::Range;
use std::slice;

use crate::memory::HostBuffer;

/// Scratch memory for the intermediate values of one run.
///
/// A step borrows the windows it reads and writes together; [`Arena::borrow`] refuses windows that
/// overlap where one of them is written, so a wrong plan is an error, never a race.
#[derive(Debug)]
pub struct Arena {
    buffer: HostBuffer,
}

/// Windows that a step may not have at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArenaError {
    /// A window ends beyond the arena.
    OutOfBounds(Range<usize>),
    /// A written window overlaps another one.
    Overlap(Range<usize>, Range<usize>),
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds(range) => write!(f, "window {range:?} is outside the arena"),
            Self::Overlap(a, b) => write!(f, "written window {a:?} overlaps window {b:?}"),
        }
    }
}

impl std::error::Error for ArenaError {}

/// The byte windows of one step: what it reads and what it writes, in the order asked for.
pub type StepWindows<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

impl Arena {
    /// An arena of `len_bytes` zero bytes, aligned to [`crate::ALIGNMENT`].
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn with_len(len_bytes: usize) -> Result<Self, crate::TensorError> {
        Ok(Self { buffer: HostBuffer::try_zeroed(len_bytes)? })
    }

    /// Size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.buffer.as_bytes().len()
    }

    /// Borrows windows (byte ranges): `reads` may overlap each other, each of `writes` is disjoint
    /// from everything else.
    ///
    /// # Errors
    /// [`ArenaError`] when that does not hold or a range leaves the arena.
    pub fn borrow(
        &mut self,
        reads: &[Range<usize>],
        writes: &[Range<usize>],
    ) -> Result<StepWindows<'_>, ArenaError> {
        let len = self.len_bytes();
        for range in reads.iter().chain(writes) {
            if range.start > range.end || range.end > len {
                return Err(ArenaError::OutOfBounds(range.clone()));
            }
        }
        for (index, write) in writes.iter().enumerate() {
            for other in reads.iter().chain(&writes[..index]) {
                if write.start < other.end && other.start < write.end {
                    return Err(ArenaError::Overlap(write.clone(), other.clone()));
                }
            }
        }
        let start = self.buffer.as_bytes_mut().as_mut_ptr();
        let read = |range: &Range<usize>| {
            // SAFETY: the range lies inside the buffer (checked above).
            let start = unsafe { start.add(range.start) };
            // SAFETY: initialised bytes of the buffer, which `&mut self` keeps for the result's
            // life; no written window overlaps this one (checked above).
            unsafe { slice::from_raw_parts(start.cast_const(), range.len()) }
        };
        let write = |range: &Range<usize>| {
            // SAFETY: the range lies inside the buffer (checked above).
            let start = unsafe { start.add(range.start) };
            // SAFETY: as for reads, and disjoint from every other window (checked above).
            unsafe { slice::from_raw_parts_mut(start, range.len()) }
        };
        Ok((reads.iter().map(read).collect(), writes.iter().map(write).collect()))
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one window")]
mod tests {
    use super::*;

    #[test]
    fn disjoint_windows_are_granted_and_keep_their_bytes() {
        let mut arena = Arena::with_len(128).unwrap();
        {
            let (_, mut writes) = arena.borrow(&[], &[0..64, 64..128]).unwrap();
            writes[0].fill(1);
            writes[1].fill(2);
        }
        let (reads, _) = arena.borrow(&[60..68], &[0..8]).unwrap();
        assert_eq!(reads[0], [1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn overlapping_or_outside_windows_are_refused() {
        let mut arena = Arena::with_len(16).unwrap();
        assert!(matches!(arena.borrow(&[0..8], &[7..9]), Err(ArenaError::Overlap(..))));
        assert!(matches!(arena.borrow(&[], &[0..4, 3..5]), Err(ArenaError::Overlap(..))));
        assert!(matches!(arena.borrow(&[8..17], &[]), Err(ArenaError::OutOfBounds(_))));
        assert!(arena.borrow(&[0..8, 4..8], &[8..16]).is_ok());
    }
}
