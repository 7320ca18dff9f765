//! Sequences that lie behind each other in one axis.

use std::ops::Range;

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::ops::bounds;

/// Bounds of sequences of tokens that follow each other.
pub(super) struct JoinedRows {
    /// Bounds of the sequences, one more than there are.
    bounds: Vec<usize>,
}

impl JoinedRows {
    /// Reads bounds `[B + 1]`, which rise from 0 to the number of tokens. Without them the batch divides the tokens.
    ///
    /// Fails where they do not, and where neither bounds nor a batch are given.
    pub(super) fn read(
        starts: Option<&Tensor>,
        tokens: usize,
        batch: Option<usize>,
    ) -> Result<Self, OpError> {
        let Some(starts) = starts else {
            let batch = batch.ok_or_else(|| {
                OpError::new("the bounds of the sequences are absent, and no state tells the batch")
            })?;
            if batch == 0 || !tokens.is_multiple_of(batch) {
                return Err(OpError::new(format!("{tokens} tokens for a batch of {batch}")));
            }
            let bounds = (0..=batch).map(|at| at * (tokens / batch)).collect();
            return Ok(Self { bounds });
        };
        let bounds = bounds::lengths(&starts.to_i64_vec()?, "a bound of a sequence")?;
        let rises = bounds.windows(2).all(|pair| pair[0] <= pair[1]);
        if bounds.first() != Some(&0) || bounds.last() != Some(&tokens) || !rises {
            return Err(OpError::new(format!(
                "bounds of sequences {bounds:?}, expected to rise from 0 to {tokens}"
            )));
        }
        Ok(Self { bounds })
    }

    /// Returns the number of sequences.
    pub(super) fn count(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// Returns the tokens of each sequence.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.bounds.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Returns how many of the first tokens of each sequence are reported, by counts `[B]`; none without counts.
    ///
    /// A count beyond the capacity or the sequence is the lesser of them, a negative one is 0.
    pub(super) fn captured(
        &self,
        counts: Option<&Tensor>,
        capacity: usize,
    ) -> Result<Vec<usize>, OpError> {
        let Some(counts) = counts else { return Ok(vec![0; self.count()]) };
        let counts = counts.to_i64_vec()?;
        if counts.len() != self.count() {
            let expected = self.count();
            return Err(OpError::new(format!("{} counts, expected {expected}", counts.len())));
        }
        let limited = |(count, range): (i64, Range<usize>)| {
            usize::try_from(count).unwrap_or(0).min(capacity).min(range.len())
        };
        Ok(counts.into_iter().zip(self.ranges()).map(limited).collect())
    }
}
