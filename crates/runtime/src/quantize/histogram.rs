//! Counts of the values that a tensor takes over many samples.

/// Bins on both sides of zero together.
const BINS: usize = 4096;

/// Counts of values in bins of one width around zero. The width doubles whenever a value lies outside: two
/// neighbours become one, which keeps all counts exact.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueHistogram {
    /// The bins cover values from `-reach` to `reach`.
    reach: f64,
    counts: Vec<u64>,
    least: f32,
    most: f32,
    total: u64,
}

impl Default for ValueHistogram {
    fn default() -> Self {
        let least = f32::INFINITY;
        let most = f32::NEG_INFINITY;
        Self { reach: 0.0, counts: vec![0; BINS], least, most, total: 0 }
    }
}

impl ValueHistogram {
    /// Counts values; those that are not finite have no place.
    pub fn add(&mut self, values: &[f32]) {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (least, most) = finite()
            .fold((self.least, self.most), |(low, high), value| (low.min(value), high.max(value)));
        (self.least, self.most) = (least, most);
        self.cover(f64::from(least.abs().max(most.abs())));
        let per_unit = if self.reach > 0.0 { (BINS / 2) as f64 / self.reach } else { 0.0 };
        for value in finite() {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "covered, so between 0 and the number of bins"
            )]
            let bin = (f64::from(value) * per_unit + (BINS / 2) as f64) as usize;
            self.counts[bin.min(BINS - 1)] += 1;
            self.total += 1;
        }
    }

    fn cover(&mut self, magnitude: f64) {
        if !magnitude.is_finite() || magnitude == 0.0 {
            return;
        }
        if self.reach == 0.0 {
            // So far all values are zeros, which lie above the middle whatever the width.
            self.reach = magnitude;
        }
        while self.reach < magnitude {
            let mut wider = vec![0; BINS];
            for (bin, count) in self.counts.iter().enumerate() {
                wider[BINS / 4 + bin / 2] += count;
            }
            self.counts = wider;
            self.reach *= 2.0;
        }
    }

    /// Returns the number of values that were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The least and the greatest value; zeros before the first.
    #[must_use]
    pub fn extremes(&self) -> (f32, f32) {
        if self.total == 0 { (0.0, 0.0) } else { (self.least, self.most) }
    }

    /// The width of a bin.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.reach / (BINS / 2) as f64
    }

    /// A value that this share of all values lie below, to the width of a bin.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = share.clamp(0.0, 1.0) * self.total as f64;
        let mut below = 0.0;
        for (bin, &count) in self.counts.iter().enumerate() {
            let count = count as f64;
            if count > 0.0 && below + count >= wanted {
                let inside = ((wanted - below) / count).clamp(0.0, 1.0);
                return (bin as f64 + inside) * self.width() - self.reach;
            }
            below += count;
        }
        f64::from(self.extremes().1)
    }

    /// Counts of magnitudes, in bins of [`ValueHistogram::width`] from zero on.
    #[must_use]
    pub fn magnitudes(&self) -> Vec<u64> {
        let (below, above) = self.counts.split_at(BINS / 2);
        above.iter().zip(below.iter().rev()).map(|(a, b)| a + b).collect()
    }

    /// The magnitude that this share of all values stay within.
    #[must_use]
    pub fn magnitude_quantile(&self, share: f64) -> f64 {
        let wanted = share.clamp(0.0, 1.0) * self.total as f64;
        let mut below = 0.0;
        for (bin, &count) in self.magnitudes().iter().enumerate() {
            let count = count as f64;
            if count > 0.0 && below + count >= wanted {
                let inside = ((wanted - below) / count).clamp(0.0, 1.0);
                return (bin as f64 + inside) * self.width();
            }
            below += count;
        }
        self.reach
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_right_when_values_grow() {
        let mut grown = ValueHistogram::default();
        grown.add(&[0.0, 0.5, -0.25]);
        grown.add(&[4.0, -1.0, f32::NAN, f32::INFINITY]);
        let mut whole = ValueHistogram::default();
        whole.add(&[4.0, 0.0, 0.5, -0.25, -1.0]);
        assert_eq!(grown.width(), whole.width());
        for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let found = grown.quantile(share);
            let wanted = whole.quantile(share);
            // A value at the end of the bins stays in the last one.
            assert!((found - wanted).abs() <= 2.0 * whole.width(), "{share}: {found} {wanted}");
        }
        assert_eq!(grown.total(), 5);
        assert_eq!(grown.extremes(), (-1.0, 4.0));
    }

    #[test]
    fn quantiles_lie_within_a_bin_of_the_sorted_values() {
        let values: Vec<f32> = (0..10_000).map(|at| at as f32 / 100.0 - 20.0).collect();
        let mut histogram = ValueHistogram::default();
        values.chunks(999).for_each(|part| histogram.add(part));
        for share in [0.0, 0.01, 0.5, 0.9, 0.999, 1.0] {
            let expected = share * 100.0 - 20.0;
            let found = histogram.quantile(share);
            assert!((found - expected).abs() <= histogram.width() + 0.02, "{share}: {found}");
        }
        let found = histogram.magnitude_quantile(0.4);
        assert!((found - 20.0).abs() <= histogram.width() + 0.02, "{found}");
    }

    #[test]
    fn nothing_but_zeros_has_no_width() {
        let mut histogram = ValueHistogram::default();
        assert_eq!(histogram.extremes(), (0.0, 0.0));
        histogram.add(&[0.0; 5]);
        assert_eq!((histogram.width(), histogram.quantile(0.5)), (0.0, 0.0));
        histogram.add(&[1.0]);
        assert_eq!(histogram.total(), 6);
        assert!(histogram.quantile(0.5) <= histogram.width());
    }
}
