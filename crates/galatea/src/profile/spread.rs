//! Distribution of times: counts in buckets, from which quantiles are computed within one percent.

use std::time::Duration;

use galatea_tensor::OrderedMap;

/// Buckets of an octave, as a power of two: a bucket is a sixty-fourth wide.
const FINE: u32 = 6;

/// Times that were added up; however many there are, it takes a few thousand numbers at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeSpread {
    counts: OrderedMap<u64, u64>,
    count: u64,
    sum: Duration,
}

impl TimeSpread {
    pub(super) fn add(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        *self.counts.entry(bucket(ns)).or_default() += 1;
        self.count += 1;
        self.sum += time;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn sum(&self) -> Duration {
        self.sum
    }

    /// Seconds; nothing of no times.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() / self.count as f64)
    }

    /// Seconds that a share of the times, from 0 to 1, does not exceed; nothing of no times.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share.clamp(0.0, 1.0) * self.count as f64;
        let mut before = 0;
        for (&bucket, &count) in &self.counts {
            before += count;
            if before as f64 >= wanted {
                return Some(middle(bucket) / 1e9);
            }
        }
        None
    }
}

/// The number of the bucket of a value: values below 2^(FINE + 1) have their own.
fn bucket(value: u64) -> u64 {
    let octave = value.checked_ilog2().unwrap_or(0).saturating_sub(FINE);
    (u64::from(octave) << FINE) + (value >> octave)
}

/// The middle of a bucket.
fn middle(bucket: u64) -> f64 {
    let octave = (bucket >> FINE).saturating_sub(1);
    let start = bucket - (octave << FINE);
    let width = (octave as f64).exp2();
    (start as f64 + 0.5) * width - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_told_within_a_hundredth() {
        let mut spread = TimeSpread::default();
        assert_eq!((spread.mean(), spread.quantile(0.5)), (None, None));
        for us in 1..=1000 {
            spread.add(Duration::from_micros(us));
        }
        for (share, expected) in [(0.0, 1e-6), (0.5, 500e-6), (0.99, 990e-6), (1.0, 1e-3)] {
            let found = spread.quantile(share).unwrap();
            assert!((found / expected - 1.0).abs() < 0.01, "{share}: {found}");
        }
        assert!((spread.mean().unwrap() - 500.5e-6).abs() < 1e-12);
        assert_eq!((spread.count(), spread.sum()), (1000, Duration::from_micros(500_500)));
    }

    #[test]
    fn buckets_follow_one_another() {
        let mut last = 0;
        for value in (0..5000).chain([1 << 40, u64::MAX - 1, u64::MAX]) {
            let now = bucket(value);
            let told = middle(bucket(value));
            assert!(now >= last && now <= last + 1 || value > 5000, "{value}");
            assert!((told - value as f64).abs() <= value as f64 / 100.0 + 0.5, "{value}: {told}");
            last = now;
        }
    }
}
