//! How a length of work is cut into pieces for several threads.

use std::ops::Range;

/// Pieces of `0..len`: an equal share for each thread, so that a thread meets the rows that it had
/// in the operator before, and each share in pieces that get smaller, so that a thread that other
/// programs slow down leaves the last ones to the others.
///
/// Pieces depend on the sizes and the number of threads only. Sources: Polychronopoulos and Kuck,
/// *Guided Self-Scheduling* (1987); Markatos and LeBlanc, *Using Processor Affinity in Loop
/// Scheduling* (1994).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkPieces {
    pub(crate) len: usize,
    pub(crate) threads: usize,
    /// Most in a piece.
    pub(crate) most: usize,
    /// A piece with less than this is not worth its start.
    pub(crate) fewest: usize,
    /// Pieces are multiples of this, but for the last of a share.
    pub(crate) unit: usize,
}

impl WorkPieces {
    /// Length of all shares but the last.
    fn share(&self) -> usize {
        let shares = self.threads.min(self.len / self.fewest.max(1)).max(1);
        let share = self.len.div_ceil(shares);
        // Whole units where that leaves shares about equal.
        if share >= 16 * self.unit { share.next_multiple_of(self.unit) } else { share }
    }

    /// The cut behind `start` in a share of `share`.
    fn cut(&self, start: usize, share: usize) -> usize {
        let left = share - start;
        let most = (self.most / self.unit * self.unit).max(self.unit);
        if self.threads <= 1 {
            // Equal pieces: there is nobody to wait for.
            let pieces = left.div_ceil(most).max(1);
            return start + left.div_ceil(pieces).next_multiple_of(self.unit).min(left);
        }
        let half = left.div_ceil(2).max(self.fewest).next_multiple_of(self.unit);
        let piece = half.min(most);
        let rest = left.saturating_sub(piece);
        if rest < self.fewest && left <= most { share } else { start + piece.min(left) }
    }

    fn cuts(self, share: usize) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            (start < share).then(|| {
                let piece = start..self.cut(start, share);
                start = piece.end;
                piece
            })
        })
    }

    /// Numbers of shares and of pieces in each.
    fn counts(self) -> (usize, usize) {
        let share = self.share();
        (self.len.div_ceil(share.max(1)), self.cuts(share).count())
    }

    /// Returns the number of pieces; some at the end of the last share may be empty.
    pub(crate) fn count(self) -> usize {
        let (shares, each) = self.counts();
        shares * each
    }

    /// Piece `i`.
    pub(crate) fn get(self, i: usize) -> Range<usize> {
        let (share, (_, each)) = (self.share(), self.counts());
        let start = i / each.max(1) * share;
        let piece = self.cuts(share).nth(i % each.max(1)).unwrap_or(0..0);
        (start + piece.start).min(self.len)..(start + piece.end).min(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_length_once() {
        for threads in [1, 2, 3, 8] {
            for len in [0, 1, 5, 53, 54, 107, 196, 1000, 6272] {
                for (most, fewest, unit) in
                    [(222, 54, 6), (48, 24, 6), (1000, 1, 1), (1, 1, 1), (100, 28, 14)]
                {
                    let pieces = WorkPieces { len, threads, most, fewest, unit };
                    let all: Vec<_> = (0..pieces.count()).map(|i| pieces.get(i)).collect();
                    let mut end = 0;
                    for piece in &all {
                        assert_eq!(piece.start, end, "{pieces:?}");
                        end = piece.end;
                        assert!(piece.len() <= most.max(unit), "{pieces:?} {piece:?}");
                    }
                    assert_eq!(end, len, "{pieces:?}");
                }
            }
        }
    }

    #[test]
    fn shares_are_equal_and_their_pieces_shrink() {
        let pieces = WorkPieces { len: 1024, threads: 2, most: 222, fewest: 54, unit: 6 };
        let all: Vec<_> = (0..pieces.count()).map(|i| pieces.get(i)).collect();
        let half = all.len() / 2;
        assert!(all[half].start.abs_diff(512) <= 6, "{all:?}");
        assert!(all[..half].windows(2).all(|pair| pair[0].len() >= pair[1].len()), "{all:?}");
        assert!(all[half - 1].len() < 110, "{all:?}");
    }
}
