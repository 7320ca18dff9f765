//! The order of touches, learned by watching.

use std::collections::HashMap;

/// Touches that are remembered at most.
const MOST: usize = 1 << 14;

/// Predicts the order of regions. Until a region has come twice, it assumes that steps of equal length
/// continue; later, that the regions which followed the same touches the last time come again.
#[derive(Clone, Debug, Default)]
pub struct AccessOrder {
    regions: usize,
    trace: Vec<usize>,
    /// Positions where a touch, and a pair of touches in a row, were seen last.
    single: HashMap<usize, usize>,
    double: HashMap<(usize, usize), usize>,
    /// The earlier touch that the latest one is taken for.
    like: Option<usize>,
    guessed: u64,
    right: u64,
}

impl AccessOrder {
    /// Nothing is known yet of so many regions, which lie one behind the other in the order of their
    /// numbers.
    #[must_use]
    pub fn new(regions: usize) -> Self {
        Self { regions, ..Self::default() }
    }

    /// Takes note of a touch, and says whether it was foreseen.
    pub fn touch(&mut self, region: usize) -> bool {
        let next = self.upcoming().next();
        if let Some(next) = next {
            self.guessed += 1;
            self.right += u64::from(next == region);
        }
        if self.trace.len() >= MOST {
            self.forget();
        }
        let now = self.trace.len();
        // A long way together says more than the last two touches.
        let goes_on = self.like.map(|like| like + 1).filter(|&next| self.trace[next] == region);
        let before = self.trace.last().map(|&before| (before, region));
        let found = before.and_then(|pair| self.double.get(&pair).copied());
        self.like = goes_on.or(found).or_else(|| self.single.get(&region).copied());
        self.trace.push(region);
        self.single.insert(region, now);
        if let Some(pair) = before {
            self.double.insert(pair, now);
        }
        next == Some(region)
    }

    /// Keeps the later half.
    fn forget(&mut self) {
        let gone = self.trace.len() / 2;
        self.trace.drain(..gone);
        let keep = |at: &mut usize| match at.checked_sub(gone) {
            Some(left) => {
                *at = left;
                true
            }
            None => false,
        };
        self.single.retain(|_, at| keep(at));
        self.double.retain(|_, at| keep(at));
        self.like = self.like.and_then(|like| like.checked_sub(gone));
    }

    /// Returns the regions that are predicted next, the nearest first; without end once a region has come
    /// twice.
    pub fn upcoming(&self) -> impl Iterator<Item = usize> + '_ {
        let now = self.trace.len();
        let start = self.like.map_or(now, |like| like + 1);
        // What came between the earlier touch and this one comes again and again.
        let known = self.trace[start..].iter().copied().cycle();
        let unknown = self.like.is_none();
        let guessed = self.strides().chain(self.trace.iter().copied().cycle());
        known.chain(guessed.filter(move |_| unknown))
    }

    /// The rest of the regions in steps like the last ones; afterwards a run may begin anew.
    fn strides(&self) -> impl Iterator<Item = usize> + '_ {
        let step = match self.trace[..] {
            [.., a, b, c] if c.wrapping_sub(b) == b.wrapping_sub(a) => c.wrapping_sub(b),
            [a, b] => b.wrapping_sub(a),
            _ => 1,
        };
        let first = self.trace.last().map_or(0, |last| last.wrapping_add(step));
        let step = if step == 0 { 1 } else { step };
        let next = move |at: &usize| Some(at.wrapping_add(step));
        std::iter::successors(Some(first), next).take_while(|&at| at < self.regions)
    }

    /// Returns the number of touches for which a prediction was made, and the number of correct predictions.
    #[must_use]
    pub fn guesses(&self) -> (u64, u64) {
        (self.guessed, self.right)
    }
}
