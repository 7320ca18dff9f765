//! Two readings of a device's clock.

/// Ticks of the device's clock before and behind a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampPair {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl StampPair {
    /// Returns the pair if the clock was read both times: a device that did not do so leaves zeros or ones.
    pub(crate) fn read(self) -> Option<Self> {
        let written = |stamp: u64| stamp != 0 && stamp != u64::MAX;
        (written(self.begin) && written(self.end) && self.begin <= self.end).then_some(self)
    }

    /// Returns the ticks between both if the clock was read and went on.
    pub(crate) fn ticks(self) -> Option<u64> {
        self.read().map(|pair| pair.end - pair.begin).filter(|ticks| *ticks > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_ones_and_a_clock_that_goes_back_are_no_reading() {
        let ticks = |begin, end| StampPair { begin, end }.ticks();
        for (begin, end) in [(0, 0), (0, 5), (5, 0), (5, u64::MAX), (u64::MAX, u64::MAX), (7, 5)] {
            assert_eq!(ticks(begin, end), None);
            assert_eq!(StampPair { begin, end }.read(), None);
        }
        assert_eq!((ticks(5, 5), ticks(5, 7)), (None, Some(2)));
    }
}
