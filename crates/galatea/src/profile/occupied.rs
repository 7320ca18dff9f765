//! For how long something was at work, of spans that may overlap.

use std::time::{Duration, Instant};

use galatea_tensor::OrderedMap;

/// Spans that are kept apart; earlier ones are only added up.
const MOST: usize = 512;

/// The time that spans cover together. They come about in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct CoveredTime {
    /// Spans that do not touch, by their begin.
    spans: OrderedMap<Instant, Instant>,
    /// Time that earlier spans covered.
    before: Duration,
}

impl CoveredTime {
    pub(super) fn add(&mut self, begin: Instant, time: Duration) {
        let (mut begin, mut end) = (begin, begin + time);
        while let Some((&from, &to)) = self.spans.range(..=end).next_back() {
            if to < begin {
                break;
            }
            self.spans.remove(&from);
            (begin, end) = (begin.min(from), end.max(to));
        }
        self.spans.insert(begin, end);
        if self.spans.len() > MOST {
            let half: Vec<Instant> = self.spans.keys().take(MOST / 2).copied().collect();
            for from in half {
                if let Some(to) = self.spans.remove(&from) {
                    self.before += to - from;
                }
            }
        }
    }

    /// The time from a begin on; spans before it that were kept apart do not count.
    pub(super) fn since(&self, begin: Instant) -> Duration {
        let spans = self.spans.iter();
        let kept: Duration =
            spans.map(|(&from, &to)| to.saturating_duration_since(from.max(begin))).sum();
        self.before + kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut occupied = CoveredTime::default();
        for (from, time) in [(10, 10), (15, 10), (40, 5), (25, 1), (12, 2), (39, 20)] {
            occupied.add(start + ms(from), ms(time));
        }
        assert_eq!(occupied.since(start), ms(16 + 20));
        assert_eq!(occupied.since(start + ms(20)), ms(6 + 20));
    }

    #[test]
    fn many_spans_take_little_memory() {
        let start = Instant::now();
        let us = Duration::from_micros;
        let mut occupied = CoveredTime::default();
        for at in 0..5000 {
            occupied.add(start + us(10 * at), us(4));
        }
        assert_eq!(occupied.since(start), us(20_000));
        assert!(occupied.spans.len() <= MOST);
    }
}
