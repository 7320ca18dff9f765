//! Statistical comparison of two candidates' times.

use std::time::Duration;

use super::measure::TuningTarget;

/// The chance below which a difference counts as one.
const SIGNIFICANT: f64 = 0.05;
/// The two-sided 95 % point of the normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;
/// The fewest samples of each from which anything is said.
const LEAST: usize = 5;

/// Result of a comparison: which candidate is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedVerdict {
    /// The first one.
    First,
    /// The second one.
    Second,
    /// Chance may have made the difference.
    Undecided,
}

impl SpeedVerdict {
    /// Its name: `first`, `second` or `undecided`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Undecided => "undecided",
        }
    }
}

/// Times of two candidates beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedTimes {
    /// The median time of each, in nanoseconds.
    pub median_ns: [f64; 2],
    /// The second's time as a share of the first's: the median of the shares of all pairs of samples, after
    /// Hodges and Lehmann.
    pub ratio: f64,
    /// Interval that holds that share with a confidence of 95 %.
    pub interval: [f64; 2],
    /// The chance that samples of equal candidates differ as much: two-sided, by the test of Mann and
    /// Whitney.
    pub p: f64,
    /// Samples of each.
    pub samples: [usize; 2],
    /// The faster candidate.
    pub verdict: SpeedVerdict,
}

impl PairedTimes {
    /// Compares samples. Their distribution does not matter: times have long tails.
    ///
    /// Source: H. Mann and D. Whitney, "On a test of whether one of two random variables is stochastically
    /// larger than the other", 1947; J. Hodges and E. Lehmann, "Estimates of location based on rank tests",
    /// 1963; M. Hollander and D. Wolfe, "Nonparametric Statistical Methods", section 4.3.
    ///
    /// # Errors
    /// Fails when there are fewer than five samples of one, or a time is not above zero.
    pub fn of(first: &[f64], second: &[f64]) -> Result<Self, String> {
        let few = first.len().min(second.len());
        if few < LEAST {
            return Err(format!("{few} samples say nothing; at least {LEAST} of each are needed"));
        }
        let wrong = |time: &&f64| !(time.is_finite() && **time > 0.0);
        if let Some(time) = first.iter().chain(second).find(wrong) {
            return Err(format!("a time of {time} ns cannot be compared"));
        }
        let p = mann_whitney(first, second);
        let mut shares: Vec<f64> =
            first.iter().flat_map(|a| second.iter().map(move |b| (b / a).ln())).collect();
        shares.sort_by(f64::total_cmp);
        let ratio = median(&shares).exp();
        let interval = interval(&shares, first.len(), second.len());
        let verdict = match () {
            () if p >= SIGNIFICANT => SpeedVerdict::Undecided,
            () if ratio > 1.0 => SpeedVerdict::First,
            () if ratio < 1.0 => SpeedVerdict::Second,
            () => SpeedVerdict::Undecided,
        };
        let median_ns = [first, second].map(|times| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            median(&times)
        });
        let samples = [first.len(), second.len()];
        Ok(Self { median_ns, ratio, interval: interval.map(f64::exp), p, samples, verdict })
    }

    /// The comparison in words, of candidates with these names.
    #[must_use]
    pub fn sentence(&self, names: [&str; 2]) -> String {
        let percent = |ratio: f64| format!("{:.1}", (ratio - 1.0) * 100.0);
        let ([first, second], [low, high], p) = (names, self.interval, self.p);
        match self.verdict {
            SpeedVerdict::First => format!(
                "{first} is faster than {second} by {} % (95 % between {} and {}, p = {p:.2e})",
                percent(self.ratio),
                percent(low),
                percent(high),
            ),
            SpeedVerdict::Second => format!(
                "{second} is faster than {first} by {} % (95 % between {} and {}, p = {p:.2e})",
                percent(1.0 / self.ratio),
                percent(1.0 / high),
                percent(1.0 / low),
            ),
            SpeedVerdict::Undecided => format!(
                "no difference of {first} and {second} is certain ({} %, 95 % between {} and {}, p = {p:.2})",
                percent(self.ratio),
                percent(low),
                percent(high),
            ),
        }
    }
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(at(half.saturating_sub(1)), at(half))
    } else {
        at(half)
    }
}

/// The two differences between which the true one lies, of the sorted differences of all pairs.
fn interval(sorted: &[f64], first: usize, second: usize) -> [f64; 2] {
    let m = first as f64;
    let n = second as f64;
    let outside = m * n / 2.0 - NORMAL_95 * (m * n * (m + n + 1.0) / 12.0).sqrt();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not below zero, and less than the number of pairs"
    )]
    let outside = outside.floor().max(0.0) as usize;
    let last = sorted.len().saturating_sub(1);
    let at = |index: usize| sorted.get(index.min(last)).copied().unwrap_or(f64::NAN);
    [at(outside), at(last - outside.min(last))]
}

/// The two-sided chance that equal distributions give ranks as uneven.
fn mann_whitney(first: &[f64], second: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = first.iter().map(|&time| (time, true)).collect();
    all.extend(second.iter().map(|&time| (time, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = 0.0;
    let mut ties = 0.0;
    let mut at = 0;
    while at < all.len() {
        let equal = all[at..].iter().take_while(|(time, _)| *time == all[at].0).count();
        // Equal times share their ranks, which are counted from 1.
        let rank = at as f64 + (equal as f64 + 1.0) / 2.0;
        ranks += all[at..at + equal].iter().filter(|(_, own)| *own).count() as f64 * rank;
        let equals = equal as f64;
        ties += equals * equals * equals - equals;
        at += equal;
    }
    let m = first.len() as f64;
    let n = second.len() as f64;
    let u = ranks - m * (m + 1.0) / 2.0;
    let both = m + n;
    let variance = m * n / 12.0 * (both + 1.0 - ties / (both * (both - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    // U is a whole number, the normal distribution is not.
    let z = ((u - m * n / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    // The approximation is above 1 by its error where ranks are even.
    complementary_error(z / std::f64::consts::SQRT_2).min(1.0)
}

/// `erfc(x)` for `x` of at least 0, with a relative error below 1.2e-7.
///
/// Source: W. Press et al., "Numerical Recipes in C", second edition, section 6.2.
pub(super) fn complementary_error(x: f64) -> f64 {
    const FACTORS: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = FACTORS.iter().fold(0.0, |sum, factor| sum * t + factor);
    t * (-x * x + sum).exp()
}

/// Agreement of the results of two candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResultAgreement {
    /// The largest distance of two results, relative to the largest expected one; infinite where the
    /// candidates give results of different numbers.
    pub apart: f32,
    /// The distance of each from what is expected, where that is known from elsewhere.
    pub off: Option<[f32; 2]>,
    /// The distance up to which results are the same.
    pub tolerance: f32,
}

impl ResultAgreement {
    /// Returns whether the results agree.
    #[must_use]
    pub fn holds(&self) -> bool {
        let all = self.off.into_iter().flatten().chain([self.apart]);
        all.into_iter().all(|far| far <= self.tolerance)
    }
}

/// The largest distance, relative to the largest number of `right`.
fn distance(found: &[f32], right: &[f32]) -> f32 {
    if found.len() != right.len() {
        return f32::INFINITY;
    }
    let finite = right.iter().filter(|x| x.is_finite());
    let most = finite.fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let far = |(a, b): (&f32, &f32)| match () {
        () if a == b || a.is_nan() && b.is_nan() => 0.0,
        () if (a - b).is_nan() => f32::INFINITY,
        () => (a - b).abs() / most,
    };
    found.iter().zip(right).map(far).fold(0.0, f32::max)
}

/// Two candidates and the settings of their comparison.
#[derive(Debug)]
pub struct CandidatePair<'a> {
    /// Device that runs them.
    pub device: &'a mut dyn TuningTarget,
    /// The numbers of both.
    pub candidates: [usize; 2],
    /// The most samples of each.
    pub samples: usize,
    /// The most time to take, once there are enough samples to say anything.
    pub time: Duration,
    /// Distance that results may have if the device states none.
    pub tolerance: f32,
}

impl std::fmt::Debug for dyn TuningTarget + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a device")
    }
}

impl CandidatePair<'_> {
    /// Compares what both compute, then takes samples of both in turn: a load on the machine falls on each,
    /// and neither always comes first.
    ///
    /// # Errors
    /// Fails when one of them cannot run.
    pub fn run(
        self,
        clock: &mut dyn FnMut() -> Duration,
    ) -> Result<(PairedTimes, ResultAgreement), String> {
        let Self { device, candidates, samples, time, tolerance } = self;
        let expected = device.expected()?;
        let [first, second] = candidates;
        let results = [device.compute(first)?, device.compute(second)?];
        let agreement = ResultAgreement {
            apart: distance(&results[1], &results[0]),
            off: expected.map(|right| results.each_ref().map(|found| distance(found, &right))),
            tolerance: device.tolerance().unwrap_or(tolerance),
        };
        // The first samples are of a machine that is not warm yet.
        for candidate in candidates {
            device.sample(candidate)?;
        }
        let start = clock();
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..samples.max(LEAST) {
            if round >= LEAST && clock().saturating_sub(start) >= time {
                break;
            }
            for turn in 0..2 {
                let which = (round + turn) % 2;
                times[which].push(device.sample(candidates[which])?);
            }
        }
        Ok((PairedTimes::of(&times[0], &times[1])?, agreement))
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategy::RepeatableRandom;
    use super::*;

    /// Times with a tail to the right.
    fn times(count: usize, usual: f64, seed: u64) -> Vec<f64> {
        let mut random = RepeatableRandom::new(seed);
        let time = |_| {
            let share = random.below(1000) as f64 / 1000.0;
            usual * (1.0 + 0.05 * share + if random.chance(10) { 0.5 } else { 0.0 })
        };
        (0..count).map(time).collect()
    }

    #[test]
    fn the_test_agrees_with_published_tables() {
        // Hollander and Wolfe, table 4.1: permeability of membranes at term and between the 12th and 26th week.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let p = mann_whitney(&term, &early);
        // W = 35 against a mean of 25: z = (10 − 0.5) / √(10·5·16/12).
        assert!((p - 0.244_7).abs() < 5e-4, "{p}");
        assert!((mann_whitney(&[1.0; 6], &[1.0; 6]) - 1.0).abs() < 1e-12);
        let even = mann_whitney(&[1.0, 4.0], &[2.0, 3.0]);
        assert!((1.0 - 1e-6..=1.0).contains(&even), "{even}");
        for (z, chance) in [(0.0, 1.0), (1.0, 0.317_310_5), (1.959_964, 0.05), (4.0, 6.334e-5)] {
            let found = complementary_error(z / std::f64::consts::SQRT_2);
            assert!((found - chance).abs() < 1e-6 * chance + 1e-8, "{z}: {found}");
        }
    }

    #[test]
    fn a_clear_difference_is_found_with_its_size() {
        let slow = times(40, 120.0, 1);
        let fast = times(40, 100.0, 2);
        let found = PairedTimes::of(&slow, &fast).unwrap();
        assert_eq!(found.verdict, SpeedVerdict::Second);
        let [low, high] = found.interval;
        assert!(low < found.ratio && found.ratio < high && low < 1.0 / 1.2 && 1.0 / 1.2 < high);
        assert!(found.p < 1e-6 && high - low < 0.05, "{found:?}");
        let turned = PairedTimes::of(&fast, &slow).unwrap();
        assert_eq!(turned.verdict, SpeedVerdict::First);
        assert!((turned.ratio * found.ratio - 1.0).abs() < 1e-9);
        let text = turned.sentence(["A", "B"]);
        assert!(text.starts_with("A is faster than B by 2") || text.contains("by 19."), "{text}");
    }

    #[test]
    fn equal_candidates_differ_about_as_often_as_chance_allows() {
        let mut differ = 0;
        let mut outside = 0;
        for seed in 0..200 {
            let a = times(15, 100.0, 2 * seed + 1);
            let b = times(15, 100.0, 7919 * seed + 2);
            let found = PairedTimes::of(&a, &b).unwrap();
            differ += usize::from(found.verdict != SpeedVerdict::Undecided);
            outside += usize::from(found.interval[0] > 1.0 || found.interval[1] < 1.0);
        }
        assert!(differ <= 22 && outside <= 22, "{differ} {outside} of 200");
    }

    #[test]
    fn few_or_impossible_times_are_refused() {
        assert!(PairedTimes::of(&[1.0; 4], &[1.0; 9]).unwrap_err().contains("4 samples"));
        let mut wrong = [1.0; 6];
        wrong[3] = 0.0;
        assert!(PairedTimes::of(&[1.0; 6], &wrong).unwrap_err().contains("a time of 0"));
    }

    /// Two candidates that are slower whenever the machine is, which it is more and more.
    struct Drifting {
        asked: Vec<usize>,
        results: [Vec<f32>; 2],
    }

    impl TuningTarget for Drifting {
        fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
            Ok(self.results[candidate].clone())
        }

        fn sample(&mut self, candidate: usize) -> Result<f64, String> {
            self.asked.push(candidate);
            let drift = 1.0 + self.asked.len() as f64 / 50.0;
            Ok([100.0, 104.0][candidate] * drift)
        }
    }

    #[test]
    fn candidates_take_turns_and_their_results_are_compared() {
        let results = [vec![1.0, -4.0], vec![1.0, -4.004]];
        let mut device = Drifting { asked: Vec::new(), results };
        let mut calls = 0;
        let mut clock = || {
            calls += 1;
            Duration::from_secs(calls)
        };
        let pair = CandidatePair {
            device: &mut device,
            candidates: [0, 1],
            samples: 30,
            time: Duration::from_secs(1000),
            tolerance: 1e-2,
        };
        let (found, agreement) = pair.run(&mut clock).unwrap();
        assert_eq!(found.samples, [30, 30]);
        assert!((found.ratio - 1.04).abs() < 0.02, "{found:?}");
        assert!(agreement.holds() && (agreement.apart - 1e-3).abs() < 1e-5, "{agreement:?}");
        assert_eq!(device.asked[2..8], [0, 1, 1, 0, 0, 1]);
        device.results[1].pop();
        let pair = CandidatePair {
            device: &mut device,
            candidates: [0, 1],
            samples: 30,
            time: Duration::from_secs(8),
            tolerance: 1e-2,
        };
        let (found, agreement) = pair.run(&mut clock).unwrap();
        assert!(!agreement.holds() && found.samples[0] < 30);
    }
}
