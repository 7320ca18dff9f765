//! Measures of likeness between two results.

use galatea_tensor::{DataType, Tensor, TensorError};

/// Likeness of results to those in FP32, over all samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputLikeness {
    /// The cosine of the angle between all values as vectors: 1 where they differ by a factor only.
    pub cosine: f64,
    /// Signal to noise, in decibels: the square of the values to that of the differences.
    pub sqnr_db: f64,
    /// Mean Kullback-Leibler divergence of rows as distributions, in nats: rows that sum to one as
    /// they are, others after softmax.
    pub divergence: f64,
    /// Share of the rows whose greatest value is at the same place.
    pub top1: f64,
    /// Number of rows.
    pub rows: u64,
}

/// Sums from which a [`OutputLikeness`] is computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LikenessSums {
    product: f64,
    first: f64,
    second: f64,
    difference: f64,
    divergence: f64,
    same: u64,
    rows: u64,
}

impl LikenessSums {
    /// Adds a result of FP32 and what another graph has in its place.
    pub(super) fn add(&mut self, first: &Tensor, second: &Tensor) -> Result<(), TensorError> {
        let width = first.shape().last().copied().unwrap_or(1).max(1);
        if first.dtype() != DataType::Fp32 {
            // Labels and counts: rows are elements, which are equal or not.
            let a = first.to_i64_vec()?;
            let b = second.to_i64_vec()?;
            let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            self.same += equal as u64;
            self.rows += a.len() as u64;
            let equal = equal as f64;
            let all = a.len() as f64;
            self.product += equal;
            self.first += all;
            self.second += all;
            self.difference += all - equal;
            return Ok(());
        }
        let a = first.to_vec::<f32>()?;
        let b = second.to_vec::<f32>()?;
        for (&a, &b) in a.iter().zip(&b) {
            let a = f64::from(a);
            let b = f64::from(b);
            // Such as the infinities of a mask, which no sum holds.
            if !a.is_finite() && (a == b || a.is_nan() && b.is_nan()) {
                continue;
            }
            self.product += a * b;
            self.first += a * a;
            self.second += b * b;
            self.difference += (a - b) * (a - b);
        }
        for (a, b) in a.chunks(width).zip(b.chunks(width)) {
            self.rows += 1;
            self.same += u64::from(same_best(a, b));
            self.divergence += divergence(a, b);
        }
        Ok(())
    }

    /// The likeness so far.
    pub(super) fn likeness(&self) -> OutputLikeness {
        let norm = (self.first * self.second).sqrt();
        let both_zero = self.first == 0.0 && self.second == 0.0;
        let cosine = self.product / norm;
        // Not `f64::min` alone, which takes the other side of what is no number.
        let cosine = if norm > 0.0 && cosine.is_finite() { cosine.min(1.0) } else { 0.0 };
        let rows = self.rows.max(1) as f64;
        OutputLikeness {
            cosine: if both_zero { 1.0 } else { cosine },
            sqnr_db: decibels(self.first, self.difference),
            divergence: self.divergence / rows,
            top1: if self.rows == 0 { 1.0 } else { self.same as f64 / rows },
            rows: self.rows,
        }
    }
}

/// Most decibels that are told apart: FP32 itself is not more exact.
const MAX_DECIBELS: f64 = 200.0;

fn decibels(signal: f64, noise: f64) -> f64 {
    if noise == 0.0 {
        return MAX_DECIBELS;
    }
    let found = 10.0 * (signal / noise).log10();
    if found.is_nan() { -MAX_DECIBELS } else { found.clamp(-MAX_DECIBELS, MAX_DECIBELS) }
}

/// Whether the greatest value of two rows is at the same place. A row with elements that are no numbers has none, which is
/// the same in both only where these are.
fn same_best(first: &[f32], second: &[f32]) -> bool {
    let unclear = |row: &[f32]| row.iter().any(|value| value.is_nan());
    match (unclear(first), unclear(second)) {
        (false, false) => greatest(first) == greatest(second),
        (true, true) => first.iter().zip(second).all(|(a, b)| a.is_nan() == b.is_nan()),
        _ => false,
    }
}

/// The position of the first greatest value.
fn greatest(row: &[f32]) -> usize {
    let mut best = 0;
    for (at, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = at;
        }
    }
    best
}

fn divergence(first: &[f32], second: &[f32]) -> f64 {
    /// Value that replaces a probability of zero.
    const LEAST: f64 = 1e-12;
    let whole = |row: &[f32]| {
        let sum: f64 = row.iter().map(|&value| f64::from(value)).sum();
        (sum - 1.0).abs() < 1e-3 && row.iter().all(|&value| value >= 0.0)
    };
    let as_they_are = whole(first) && whole(second) && first.len() > 1;
    let shares = |row: &[f32]| -> Vec<f64> {
        if as_they_are {
            return row.iter().map(|&value| f64::from(value)).collect();
        }
        let most = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let powers: Vec<f64> = row.iter().map(|&value| (f64::from(value) - most).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect()
    };
    let a = shares(first);
    let b = shares(second);
    let term = |(a, b): (&f64, &f64)| if *a > 0.0 { a * (a / b.max(LEAST)).ln() } else { 0.0 };
    let sum: f64 = a.iter().zip(&b).map(term).sum();
    let none = |shares: &[f64]| shares.iter().any(|share| share.is_nan());
    let lost = none(&b) && !none(&a);
    match () {
        // A term takes `LEAST` in the place of what is no number.
        () if lost => f64::INFINITY,
        () if sum.is_finite() => sum.max(0.0),
        // Not `f64::max`, which makes zero of what is no number.
        () if same_best(first, second) && first.iter().any(|value| !value.is_finite()) => 0.0,
        () => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(shape: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(shape, values).unwrap()
    }

    #[test]
    fn equal_results_are_alike_in_every_way() {
        let mut sums = LikenessSums::default();
        let x = rows(&[2, 3], &[0.1, 2.0, -1.0, 5.0, 0.0, 0.0]);
        sums.add(&x, &x).unwrap();
        let found = sums.likeness();
        assert!((found.cosine - 1.0).abs() < 1e-12 && found.top1 == 1.0 && found.rows == 2);
        assert_eq!((found.divergence, found.sqnr_db), (0.0, MAX_DECIBELS));
        assert_eq!(LikenessSums::default().likeness().top1, 1.0);
    }

    #[test]
    fn differences_are_measured() {
        let mut sums = LikenessSums::default();
        let a = rows(&[2, 2], &[1.0, 0.0, 0.0, 1.0]);
        let b = rows(&[2, 2], &[0.9, 0.1, 0.6, 0.4]);
        sums.add(&a, &b).unwrap();
        let found = sums.likeness();
        assert_eq!(found.top1, 0.5);
        // The rows are distributions: ln(1/0.9) and ln(1/0.4).
        let wanted = -(0.9_f64.ln() + 0.4_f64.ln()) / 2.0;
        assert!((found.divergence - wanted).abs() < 1e-6, "{found:?}");
        let noise = 2.0 * 0.01 + 2.0 * 0.36;
        assert!((found.sqnr_db - 10.0 * (2.0_f64 / noise).log10()).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn labels_are_equal_or_not_and_broken_results_are_unlike() {
        let mut sums = LikenessSums::default();
        let labels = |values: Vec<i64>| Tensor::vector(values);
        sums.add(&labels(vec![1, 2, 3, 4]), &labels(vec![1, 2, 3, 0])).unwrap();
        assert_eq!(sums.likeness().top1, 0.75);
        let mut sums = LikenessSums::default();
        sums.add(&rows(&[1, 2], &[1.0, 2.0]), &rows(&[1, 2], &[f32::NAN, 1.0])).unwrap();
        assert!(sums.likeness().sqnr_db < 0.0, "{:?}", sums.likeness());
        assert_eq!(sums.likeness().cosine, 0.0);
        assert_eq!(sums.likeness().divergence, f64::INFINITY);
        assert_eq!(sums.likeness().top1, 0.0);
        for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut sums = LikenessSums::default();
            // The first element is the greatest.
            sums.add(&rows(&[1, 2], &[3.0, 2.0]), &rows(&[1, 2], &[broken; 2])).unwrap();
            let found = sums.likeness();
            let like = found.cosine > 0.0 || found.sqnr_db > 0.0 || found.divergence < 1.0;
            assert!(!like && (found.top1 == 0.0 || !broken.is_nan()), "{broken}: {found:?}");
        }
    }
}
