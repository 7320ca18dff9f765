//! Quantiles of a stream in little memory: the algorithm of Cormode, Korn, Muthukrishnan and Srivastava ("Effective
//! computation of biased quantiles over data streams"), for chosen quantiles with chosen errors.

/// A quantile and how far the rank of its estimate may be off, both as shares of the number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrackedQuantile {
    /// From 0 to 1.
    pub quantile: f64,
    /// From 0 to 1.
    pub error: f64,
}

/// Values that are taken in before they are sorted into the samples.
const BUFFER: usize = 500;

/// A value that stands for `weight` values up to it, whose rank is known up to `slack`.
#[derive(Clone, Copy, Debug)]
struct SketchSample {
    value: f64,
    weight: u64,
    slack: u64,
}

/// A summary of values.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantileSketch {
    buffer: Vec<f64>,
    samples: Vec<SketchSample>,
    count: u64,
}

impl QuantileSketch {
    /// Takes a value in.
    pub(super) fn insert(&mut self, value: f64, wanted: &[TrackedQuantile]) {
        self.buffer.push(value);
        if self.buffer.len() >= BUFFER {
            self.settle(wanted);
        }
    }

    /// Sorts the buffer into the samples and drops those that no wanted quantile needs.
    pub(super) fn settle(&mut self, wanted: &[TrackedQuantile]) {
        if self.buffer.is_empty() {
            return;
        }
        self.buffer.sort_unstable_by(f64::total_cmp);
        let old = std::mem::take(&mut self.samples);
        let mut merged = Vec::with_capacity(old.len() + self.buffer.len());
        let mut old = old.into_iter().peekable();
        let mut rank = 0_u64;
        for &value in &self.buffer {
            while let Some(sample) = old.next_if(|sample| sample.value <= value) {
                rank += sample.weight;
                merged.push(sample);
            }
            let edge = merged.is_empty() || old.peek().is_none();
            let slack = if edge { 0 } else { allowed(rank, self.count, wanted).saturating_sub(1) };
            self.count += 1;
            rank += 1;
            merged.push(SketchSample { value, weight: 1, slack });
        }
        merged.extend(old);
        self.buffer.clear();
        self.samples = compress(&merged, self.count, wanted);
    }

    /// Empties the sketch.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.samples.clear();
        self.count = 0;
    }
}

/// How far ranks may be off near a rank.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "ranks are far below 2^53 and the bound is not negative"
)]
fn allowed(rank: u64, count: u64, wanted: &[TrackedQuantile]) -> u64 {
    let rank = rank as f64;
    let count = count as f64;
    let bounds = wanted.iter().map(|wanted| {
        if rank <= wanted.quantile * count {
            2.0 * wanted.error * (count - rank) / (1.0 - wanted.quantile).max(f64::MIN_POSITIVE)
        } else {
            2.0 * wanted.error * rank / wanted.quantile.max(f64::MIN_POSITIVE)
        }
    });
    // A wanted extreme makes its bound huge; any number beyond the count means the same.
    bounds.fold(count + 1.0, f64::min).max(0.0) as u64
}

/// Joins neighbours while the joined one is known well enough.
fn compress(samples: &[SketchSample], count: u64, wanted: &[TrackedQuantile]) -> Vec<SketchSample> {
    let mut kept: Vec<SketchSample> = Vec::with_capacity(samples.len());
    let mut rank = count;
    for &sample in samples.iter().rev() {
        rank = rank.saturating_sub(sample.weight);
        // The least value stays, so that ranks have a beginning.
        let first = rank == 0;
        match kept.last_mut() {
            Some(next)
                if !first
                    && sample.weight + next.weight + next.slack <= allowed(rank, count, wanted) =>
            {
                next.weight += sample.weight;
            }
            _ => kept.push(sample),
        }
    }
    kept.reverse();
    kept
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "ranks are far below 2^53")]
fn real(rank: u64) -> f64 {
    rank as f64
}

/// The estimates of the wanted quantiles over several settled sketches; none without values.
pub(super) fn estimate(
    sketches: &[QuantileSketch],
    wanted: &[TrackedQuantile],
) -> Option<Vec<f64>> {
    let mut all: Vec<SketchSample> =
        sketches.iter().flat_map(|sketch| sketch.samples.iter().copied()).collect();
    all.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
    let last = all.last()?.value;
    let count: u64 = all.iter().map(|sample| sample.weight).sum();
    let of = |quantile: f64| {
        let rank = quantile * real(count);
        let mut below = 0_u64;
        let mut before = None;
        for sample in &all {
            let reached = below + sample.weight;
            if real(reached) >= rank {
                // A sample stands for all values since the one before it: the nearer of the two is the estimate.
                let nearer = |_: &f64| rank - real(below) < real(reached) - rank;
                return before.filter(nearer).unwrap_or(sample.value);
            }
            (below, before) = (reached, Some(sample.value));
        }
        last
    };
    Some(wanted.iter().map(|wanted| of(wanted.quantile)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WANTED: [TrackedQuantile; 3] = [
        TrackedQuantile { quantile: 0.5, error: 0.05 },
        TrackedQuantile { quantile: 0.9, error: 0.01 },
        TrackedQuantile { quantile: 0.99, error: 0.001 },
    ];

    fn check(values: &[f64], parts: usize) {
        let mut sketches = vec![QuantileSketch::default(); parts];
        for (index, &value) in values.iter().enumerate() {
            sketches[index % parts].insert(value, &WANTED);
        }
        sketches.iter_mut().for_each(|sketch| sketch.settle(&WANTED));
        let found = estimate(&sketches, &WANTED).unwrap();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        #[allow(clippy::cast_precision_loss, reason = "small counts")]
        for (wanted, value) in WANTED.iter().zip(found) {
            let n = sorted.len() as f64;
            let low = sorted.partition_point(|&other| other < value) as f64 / n;
            let high = sorted.partition_point(|&other| other <= value) as f64 / n;
            // Twice the error: once for the rank and once for what each sample hides.
            let slack = 2.0 * wanted.error + 2.0 / n;
            assert!(
                low <= wanted.quantile + slack && high >= wanted.quantile - slack,
                "{wanted:?}: {value} has the ranks {low}..{high} of {n}"
            );
        }
    }

    proptest! {
        #[test]
        fn ranks_are_as_near_as_asked(values in prop::collection::vec(0.0..1e6_f64, 1..4000), parts in 1..4_usize) {
            check(&values, parts);
        }
    }

    #[test]
    fn sorted_streams_are_no_trouble_and_take_little_memory() {
        let up: Vec<f64> = (0..50_000).map(f64::from).collect();
        let down: Vec<f64> = up.iter().rev().copied().collect();
        check(&up, 1);
        check(&down, 2);
        let mut sketch = QuantileSketch::default();
        up.iter().for_each(|&value| sketch.insert(value, &WANTED));
        sketch.settle(&WANTED);
        assert!(sketch.samples.len() < 2500, "{}", sketch.samples.len());
        assert_eq!(sketch.samples.iter().map(|sample| sample.weight).sum::<u64>(), 50_000);
    }

    #[test]
    fn nothing_has_no_quantiles() {
        assert_eq!(estimate(&[QuantileSketch::default()], &WANTED), None);
    }
}
