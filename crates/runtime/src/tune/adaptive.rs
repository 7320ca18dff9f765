//! A model of the times that says where to look: Bayesian search with a Gaussian process.
//!
//! Source: J. Mockus, "On Bayesian methods for seeking the extremum", 1974; C. Rasmussen and
//! C. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, algorithm 2.1.

use super::config_space::ConfigSpace;
use super::strategy::{MeasuredCandidate, RepeatableRandom, SearchStrategy, ranked, unseen};

/// Distances within which times are alike, of which the likeliest is taken.
const LENGTHS: [f64; 4] = [0.15, 0.3, 0.6, 1.2];
/// Variance of a measurement beside that of the times.
const NOISE: f64 = 1e-3;
/// The improvement that is worth another trial, as a share of the time.
const WORTH: f64 = 2e-3;
/// The most candidates that an improvement is looked for at.
const LOOKED_AT: usize = 2048;
/// The most trials that the model is made of: the fastest and the latest.
const MODELLED: usize = 160;

/// Bayesian search.
#[derive(Clone, Debug)]
pub(super) struct BayesianSearch {
    random: RepeatableRandom,
}

impl BayesianSearch {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: RepeatableRandom::new(seed) }
    }
}

impl SearchStrategy for BayesianSearch {
    fn next(&mut self, space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize> {
        let first = (2 * space.axes().len() + 2).min(space.len());
        let mut open = unseen(space, seen);
        if seen.len() < first {
            let mut chosen = Vec::new();
            if seen.is_empty() && !open.is_empty() {
                chosen.push(open.remove(0));
            }
            while seen.len() + chosen.len() < first && !open.is_empty() {
                chosen.push(open.swap_remove(self.random.below(open.len())));
            }
            return chosen;
        }
        while open.len() > LOOKED_AT {
            open.swap_remove(self.random.below(open.len()));
        }
        let mut known = ranked(seen);
        known.truncate(MODELLED);
        let points: Vec<(Vec<f64>, f64)> = known
            .iter()
            .map(|&(candidate, time)| (space.place(candidate), time.max(1e-3).ln()))
            .collect();
        let Some(model) = GaussianProcess::likeliest(&points) else {
            return open.into_iter().take(1).collect();
        };
        let gain = |candidate: usize| model.improvement(&space.place(candidate));
        let best = open.iter().map(|&candidate| (candidate, gain(candidate)));
        match best.max_by(|a, b| a.1.total_cmp(&b.1)) {
            // In logarithms a difference is a share.
            Some((candidate, gain)) if gain > WORTH => vec![candidate],
            _ => Vec::new(),
        }
    }
}

/// A Gaussian process through some times.
struct GaussianProcess<'p> {
    points: &'p [(Vec<f64>, f64)],
    length: f64,
    mean: f64,
    spread: f64,
    least: f64,
    /// Lower factor of the covariance of the points.
    factor: Vec<f64>,
    /// The covariance's inverse times the times.
    weights: Vec<f64>,
}

fn covariance(a: &[f64], b: &[f64], length: f64) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    // Matérn with ν = 5/2: times have bends, which a Gaussian kernel would smooth away.
    let r = (5.0 * square).sqrt() / length;
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

impl<'p> GaussianProcess<'p> {
    fn likeliest(points: &'p [(Vec<f64>, f64)]) -> Option<Self> {
        let models = LENGTHS.iter().filter_map(|&length| Self::new(points, length));
        let best = models.max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(model, _)| model)
    }

    /// The model, and the logarithm of its likelihood.
    fn new(points: &'p [(Vec<f64>, f64)], length: f64) -> Option<(Self, f64)> {
        let count = points.len();
        let mean = points.iter().map(|(_, time)| time).sum::<f64>() / count.max(1) as f64;
        let square = points.iter().map(|(_, time)| (time - mean) * (time - mean)).sum::<f64>();
        let spread = (square / count.max(1) as f64).sqrt().max(1e-6);
        let times: Vec<f64> = points.iter().map(|(_, time)| (time - mean) / spread).collect();
        let mut factor = vec![0.0; count * count];
        for row in 0..count {
            for column in 0..=row {
                let noise = if row == column { NOISE } else { 0.0 };
                let own = covariance(&points[row].0, &points[column].0, length) + noise;
                let dot: f64 = (0..column)
                    .map(|at| factor[row * count + at] * factor[column * count + at])
                    .sum();
                factor[row * count + column] = if row == column {
                    let left = own - dot;
                    (left > 0.0).then_some(left.sqrt())?
                } else {
                    (own - dot) / factor[column * count + column]
                };
            }
        }
        let half = forward(&factor, &times);
        let weights = backward(&factor, &half);
        let fit: f64 = half.iter().map(|value| value * value).sum();
        let volume: f64 = (0..count).map(|at| factor[at * count + at].ln()).sum();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let model = Self { points, length, mean, spread, least, factor, weights };
        (count > 0).then_some((model, -0.5 * fit - volume))
    }

    /// By how much a place is expected to be faster than the fastest so far, as a share.
    fn improvement(&self, place: &[f64]) -> f64 {
        let with: Vec<f64> =
            self.points.iter().map(|(point, _)| covariance(point, place, self.length)).collect();
        let expected: f64 = with.iter().zip(&self.weights).map(|(a, b)| a * b).sum();
        let half = forward(&self.factor, &with);
        let known: f64 = half.iter().map(|value| value * value).sum();
        let deviation = (1.0 - known).max(1e-12).sqrt();
        let gain = self.least - expected;
        let z = gain / deviation;
        debug_assert!(self.mean.is_finite());
        (gain * normal_share(z) + deviation * normal_density(z)) * self.spread
    }
}

/// Solves `L·x = b`.
fn forward(factor: &[f64], right: &[f64]) -> Vec<f64> {
    let count = right.len();
    let mut solved = Vec::with_capacity(count);
    for row in 0..count {
        let line = &factor[row * count..][..=row];
        let dot: f64 = line.iter().zip(&solved).map(|(a, b): (&f64, &f64)| a * b).sum();
        solved.push((right[row] - dot) / line[row]);
    }
    solved
}

/// Solves `Lᵀ·x = b`.
fn backward(factor: &[f64], right: &[f64]) -> Vec<f64> {
    let count = right.len();
    let mut solved = right.to_vec();
    for row in (0..count).rev() {
        let dot: f64 = (row + 1..count).map(|at| factor[at * count + row] * solved[at]).sum();
        solved[row] = (solved[row] - dot) / factor[row * count + row];
    }
    solved
}

fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The share of a normal distribution below `z`.
///
/// Source: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.2.17.
fn normal_share(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let factors = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = factors.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    let above = normal_density(z) * sum;
    if z >= 0.0 { 1.0 - above } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_right_to_seven_digits() {
        for (z, share) in
            [(0.0, 0.5), (1.0, 0.841_344_75), (-2.0, 0.022_750_13), (3.0, 0.998_650_1)]
        {
            assert!((normal_share(z) - share).abs() < 1e-7, "{z}: {}", normal_share(z));
        }
    }

    #[test]
    fn the_model_goes_through_its_points_and_expects_most_between_them() {
        let points: Vec<(Vec<f64>, f64)> =
            [0.0, 0.25, 0.75, 1.0].iter().map(|&x: &f64| (vec![x], (x - 0.5).powi(2))).collect();
        let model = GaussianProcess::likeliest(&points).unwrap();
        let gain = |x: f64| model.improvement(&[x]);
        assert!(gain(0.5) > 10.0 * gain(0.25).max(gain(0.0)), "{} {}", gain(0.5), gain(0.25));
        assert!(gain(0.5) > gain(0.9));
    }
}
