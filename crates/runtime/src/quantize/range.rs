//! Choice of the range of values that quantized numbers represent: pure functions of histograms.

use galatea_tensor::{DataType, Tensor};

use super::histogram::ValueHistogram;

/// Method of choosing the range of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RangeMethod {
    /// From the least to the greatest value that was seen.
    MinMax,
    /// The range that loses the least information: the least Kullback-Leibler divergence between the
    /// values and their quantised form.
    ///
    /// Source: S. Migacz, "8-bit inference with TensorRT", GTC 2017.
    Entropy,
    /// The range that this percentage of the values lie in.
    Percentile(f64),
}

/// A range of values. It holds zero, which must be quantised exactly: padding is made of zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    /// At most zero.
    pub min: f32,
    /// At least zero.
    pub max: f32,
}

impl ValueRange {
    /// The range from `min` to `max`, and zero.
    #[must_use]
    pub fn new(min: f32, max: f32) -> Self {
        Self { min: min.min(0.0), max: max.max(0.0) }
    }

    /// The range that holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The range of a tensor by a method, in the form that [`AffineScale::of`] then quantises.
    #[must_use]
    pub fn of(histogram: &ValueHistogram, method: RangeMethod, symmetric: bool) -> Self {
        let (least, most) = histogram.extremes();
        #[allow(clippy::cast_possible_truncation, reason = "within the range of the values")]
        let within =
            |low: f64, high: f64| Self::new((low as f32).max(least), (high as f32).min(most));
        match method {
            RangeMethod::MinMax => Self::new(least, most),
            RangeMethod::Percentile(percent) if symmetric => {
                let limit = histogram.magnitude_quantile(percent / 100.0);
                within(-limit, limit)
            }
            RangeMethod::Percentile(percent) => {
                let tail = (1.0 - percent / 100.0) / 2.0;
                // A tail on a side that values hardly lie on would cut zero off.
                within(histogram.quantile(tail), histogram.quantile(1.0 - tail))
            }
            RangeMethod::Entropy => {
                let one_sided = !symmetric && (least >= 0.0 || most <= 0.0);
                let limit = least_divergence(histogram, if one_sided { 256 } else { 128 });
                within(-limit, limit)
            }
        }
    }
}

/// The magnitude at which to cut values off so that `levels` levels below it tell most.
fn least_divergence(histogram: &ValueHistogram, levels: usize) -> f64 {
    const STEP: usize = 16;
    let mut counts = histogram.magnitudes();
    // Zeros, of which a limit at zero makes many, are exact whatever the range is.
    counts[0] = counts[0].min(counts[1]);
    let used = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    let mut best = (f64::INFINITY, used);
    let mut kept = used;
    while kept >= levels {
        let divergence = divergence(&counts[..used], kept, levels);
        if divergence < best.0 {
            best = (divergence, kept);
        }
        kept = if kept > levels { kept.saturating_sub(STEP).max(levels) } else { 0 };
    }
    best.1 as f64 * histogram.width()
}

/// The divergence of the values whose magnitudes are limited to the first `kept` bins from what is
/// left of them after they have been rounded to `levels` levels. What chance makes of it is taken
/// off: few values differ from bin to bin even where they are spread evenly, and would seem to lose
/// by every rounding.
///
/// Source of the correction: G. Miller, "Note on the bias of information estimates", 1955.
fn divergence(counts: &[u64], kept: usize, levels: usize) -> f64 {
    /// Value that replaces a probability of zero.
    const LEAST: f64 = 1e-9;
    let (inside, outside) = counts.split_at(kept);
    let cut: u64 = outside.iter().sum();
    let inner: u64 = inside.iter().sum();
    let total = (inner + cut) as f64;
    if inner == 0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for level in 0..levels {
        let from = level * kept / levels;
        let to = (level + 1) * kept / levels;
        let bins = &inside[from..to];
        let filled = bins.iter().filter(|&&count| count > 0).count();
        sum -= filled.saturating_sub(1) as f64 / (2.0 * inner as f64);
        let each = bins.iter().sum::<u64>() as f64 / (filled.max(1) as f64 * inner as f64);
        for (at, &count) in bins.iter().enumerate() {
            // What is cut off becomes the greatest magnitude.
            let extra = if from + at + 1 == kept { cut } else { 0 };
            let true_share = (count + extra) as f64 / total;
            if true_share > 0.0 {
                let left = if count > 0 { each } else { LEAST };
                sum += true_share * (true_share / left).ln();
            }
        }
    }
    sum
}

/// `value = (q − zero) · scale` for a `q` of eight bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AffineScale {
    /// Positive.
    pub scale: f32,
    /// The number that stands for zero.
    pub zero: i32,
    /// True if numbers are `INT8`; else they are `UINT8`.
    pub signed: bool,
}

impl AffineScale {
    /// Symmetric numbers are `INT8` around zero, the others `UINT8` over the whole range.
    #[must_use]
    pub fn of(range: ValueRange, symmetric: bool) -> Self {
        let positive = |scale: f32| if scale >= f32::MIN_POSITIVE { scale } else { 1.0 };
        if symmetric {
            let scale = positive(range.max.max(-range.min) / 127.0);
            return Self { scale, zero: 0, signed: true };
        }
        // In two steps: the difference alone may be beyond the greatest number.
        let scale = positive(range.max / 255.0 - range.min / 255.0);
        #[allow(clippy::cast_possible_truncation, reason = "between 0 and 255")]
        let zero = (-range.min / scale).round_ties_even().clamp(0.0, 255.0) as i32;
        Self { scale, zero, signed: false }
    }

    /// The type of the numbers.
    #[must_use]
    pub fn dtype(self) -> DataType {
        if self.signed { DataType::Int8 } else { DataType::Uint8 }
    }

    /// The zero point as a tensor.
    #[must_use]
    pub fn zero_point(self) -> Tensor {
        if self.signed {
            Tensor::scalar(i8::try_from(self.zero).unwrap_or(0))
        } else {
            Tensor::scalar(u8::try_from(self.zero).unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[f32]) -> ValueHistogram {
        let mut histogram = ValueHistogram::default();
        histogram.add(values);
        histogram
    }

    /// A bell around `middle` with one value far outside.
    fn bell(middle: f32, outlier: f32) -> Vec<f32> {
        let noise = |at: u32| {
            let mixed = |salt: u32| {
                let mut x = at.wrapping_mul(0x9e37_79b9) ^ salt;
                x = (x ^ (x >> 15)).wrapping_mul(0x2c1b_3c6d);
                x = (x ^ (x >> 12)).wrapping_mul(0x297a_2d39);
                (x ^ (x >> 15)) as f32 / u32::MAX as f32 - 0.5
            };
            (1..=6).map(mixed).sum::<f32>()
        };
        (0..50_000).map(|at| middle + noise(at)).chain([outlier]).collect()
    }

    #[test]
    fn the_whole_range_is_kept_by_min_max() {
        let values = histogram(&[-1.0, 3.0, 2.0]);
        assert_eq!(
            ValueRange::of(&values, RangeMethod::MinMax, false),
            ValueRange { min: -1.0, max: 3.0 }
        );
        let above = histogram(&[1.0, 3.0]);
        assert_eq!(
            ValueRange::of(&above, RangeMethod::MinMax, false),
            ValueRange { min: 0.0, max: 3.0 }
        );
        let nothing = ValueHistogram::default();
        assert_eq!(
            ValueRange::of(&nothing, RangeMethod::MinMax, true),
            ValueRange { min: 0.0, max: 0.0 }
        );
    }

    #[test]
    fn outliers_are_cut_off_by_percentiles_and_by_entropy() {
        for symmetric in [false, true] {
            let values = histogram(&bell(0.0, 40.0));
            let percentile = ValueRange::of(&values, RangeMethod::Percentile(99.9), symmetric);
            assert!((1.5..3.0).contains(&percentile.max), "{percentile:?}");
            assert!((-3.0..-1.5).contains(&percentile.min), "{percentile:?}");
            let entropy = ValueRange::of(&values, RangeMethod::Entropy, symmetric);
            assert!((1.0..10.0).contains(&entropy.max), "{entropy:?}");
            let whole = ValueRange::of(&values, RangeMethod::Percentile(100.0), symmetric);
            assert!((whole.max - 40.0).abs() <= 0.1, "{whole:?}");
        }
    }

    #[test]
    fn entropy_cuts_little_off_of_few_values() {
        let half: Vec<f32> = bell(0.0, 0.0).iter().take(5000).map(|value| value.max(0.0)).collect();
        let range = ValueRange::of(&histogram(&half), RangeMethod::Entropy, false);
        let above = half.iter().filter(|value| **value > range.max).count();
        assert!(above < 10, "{above} of {} values beyond {range:?}", half.len());
    }

    #[test]
    fn entropy_keeps_a_range_without_outliers() {
        let even: Vec<f32> = (0..20_000).map(|at| at as f32 / 10_000.0).collect();
        let range = ValueRange::of(&histogram(&even), RangeMethod::Entropy, false);
        assert!(range.min == 0.0 && range.max > 1.7, "{range:?}");
    }

    #[test]
    fn zero_is_exact_and_ends_are_within_half_a_step() {
        for (min, max) in [(-1.0, 3.0), (0.0, 6.0), (-4.0, 0.0), (-1e-3, 1e3), (-3e38, 3e38)] {
            for symmetric in [false, true] {
                let range = ValueRange::new(min, max);
                let affine = AffineScale::of(range, symmetric);
                let (low, high) = if symmetric { (-127.0, 127.0) } else { (0.0, 255.0) };
                let back = |value: f32| {
                    let q = (value / affine.scale + affine.zero as f32).round().clamp(low, high);
                    (q - affine.zero as f32) * affine.scale
                };
                assert_eq!(back(0.0), 0.0);
                assert!((back(min) - min).abs() <= affine.scale * 0.5001, "{affine:?}");
                assert!((back(max) - max).abs() <= affine.scale * 0.5001, "{affine:?}");
            }
        }
        assert_eq!(AffineScale::of(ValueRange::new(0.0, 0.0), false).scale, 1.0);
    }
}
