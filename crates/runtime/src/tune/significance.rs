//! Tests of running sums: mean times after Welch, and shares of failures.

use super::compare::complementary_error;

/// Iterations of a continued fraction; it converges long before.
const MAX_STEPS: usize = 500;

/// Count, mean and sum of squared distances of values that come one by one.
///
/// Source: B. P. Welford, "Note on a method for calculating corrected sums of squares and products", 1962.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleMoments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl SampleMoments {
    /// Takes a value in.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the values; 0 without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the values, estimated of a sample; 0 of fewer than two.
    #[must_use]
    pub fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.squares / (self.count - 1) as f64 }
    }

    /// Variance of the mean.
    fn mean_variance(&self) -> f64 {
        self.variance() / self.count as f64
    }
}

/// Difference of two means, by the test of Welch: variances may differ.
///
/// Source: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
/// involved", 1947.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WelchTest {
    /// Mean of the second less that of the first.
    pub difference: f64,
    /// Interval that holds the difference with the confidence that was asked for.
    pub interval: [f64; 2],
    /// The chance that samples of equal means differ as much, two-sided.
    pub p: f64,
}

impl WelchTest {
    /// Compares two samples; `None` where one has fewer than two values, or neither varies.
    #[must_use]
    pub fn of(first: &SampleMoments, second: &SampleMoments, confidence: f64) -> Option<Self> {
        if first.count < 2 || second.count < 2 {
            return None;
        }
        let one = first.mean_variance();
        let two = second.mean_variance();
        let error = (one + two).sqrt();
        if error.is_nan() || error <= 0.0 {
            return None;
        }
        let share = |variance: f64, count: u64| variance * variance / (count - 1) as f64;
        let freedom =
            (one + two) * (one + two) / (share(one, first.count) + share(two, second.count));
        let difference = second.mean - first.mean;
        let wide = student_quantile(confidence, freedom) * error;
        let p = student_tails(difference / error, freedom);
        Some(Self { difference, interval: [difference - wide, difference + wide], p })
    }
}

/// Failures among trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCount {
    /// Number of failures.
    pub failures: u64,
    /// Number of trials.
    pub trials: u64,
}

impl TrialCount {
    /// Share of failures; 0 without trials.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.failures as f64 / self.trials.max(1) as f64
    }

    /// Interval of the share, by the score of Wilson.
    ///
    /// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> [f64; 2] {
        if self.trials == 0 {
            return [0.0, 1.0];
        }
        let n = self.trials as f64;
        let z = normal_quantile(confidence);
        let centre = self.share() + z * z / (2.0 * n);
        let wide = z * (self.share() * (1.0 - self.share()) / n + z * z / (4.0 * n * n)).sqrt();
        let all = 1.0 + z * z / n;
        [((centre - wide) / all).max(0.0), ((centre + wide) / all).min(1.0)]
    }
}

/// Difference of two shares of failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProportionTest {
    /// Share of the second less that of the first.
    pub difference: f64,
    /// Interval that holds the difference with the confidence that was asked for.
    pub interval: [f64; 2],
    /// The chance that trials of equal shares differ as much, two-sided.
    pub p: f64,
}

impl ProportionTest {
    /// Compares two shares by the pooled test of two proportions. The interval is made of the intervals of both.
    ///
    /// Source: J. L. Fleiss, B. Levin and M. C. Paik, "Statistical methods for rates and proportions", section 3.2;
    /// R. G. Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10.
    #[must_use]
    pub fn of(first: TrialCount, second: TrialCount, confidence: f64) -> Option<Self> {
        if first.trials == 0 || second.trials == 0 {
            return None;
        }
        let difference = second.share() - first.share();
        let [low_one, high_one] = first.interval(confidence);
        let [low_two, high_two] = second.interval(confidence);
        let length = |a: f64, b: f64| (a * a + b * b).sqrt();
        let below = length(second.share() - low_two, high_one - first.share());
        let above = length(high_two - second.share(), first.share() - low_one);
        let one = first.trials as f64;
        let two = second.trials as f64;
        let pooled = (first.failures + second.failures) as f64 / (one + two);
        let error = (pooled * (1.0 - pooled) * (1.0 / one + 1.0 / two)).sqrt();
        let z = if error > 0.0 { difference / error } else { 0.0 };
        let p = complementary_error(z.abs() / std::f64::consts::SQRT_2).min(1.0);
        Some(Self { difference, interval: [difference - below, difference + above], p })
    }
}

/// Distance from 0 within which a normal number lies with a confidence.
fn normal_quantile(confidence: f64) -> f64 {
    quantile(confidence, |z| complementary_error(z / std::f64::consts::SQRT_2))
}

/// Distance from 0 within which Student's t lies with a confidence.
fn student_quantile(confidence: f64, freedom: f64) -> f64 {
    quantile(confidence, |t| student_tails(t, freedom))
}

/// The place beyond which `tails` is what a confidence leaves; `tails` falls.
fn quantile(confidence: f64, tails: impl Fn(f64) -> f64) -> f64 {
    let left = (1.0 - confidence).clamp(1e-12, 1.0);
    let mut low = 0.0;
    let mut high = 1.0;
    while tails(high) > left && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if tails(middle) > left {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The chance that Student's t lies as far from 0, on either side.
fn student_tails(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)).clamp(0.0, 1.0)
}

/// The regularised incomplete beta function.
///
/// Source: W. Press et al., "Numerical Recipes in C", second edition, section 6.4.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Continued fraction of the incomplete beta function, by the method of Lentz.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let safe = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=MAX_STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / safe(1.0 + even * d);
        c = safe(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / safe(1.0 + odd * d);
        c = safe(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// Logarithm of the gamma function, for numbers above 0.
///
/// Source: W. Press et al., "Numerical Recipes in C", second edition, section 6.1.
fn log_gamma(x: f64) -> f64 {
    const FACTORS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let shifted = x + 5.5;
    let tail = shifted - (x + 0.5) * shifted.ln();
    let mut sum = 1.000_000_000_190_015;
    let mut at = x;
    for factor in FACTORS {
        at += 1.0;
        sum += factor / at;
    }
    (2.506_628_274_631_000_5 * sum / x).ln() - tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> SampleMoments {
        let mut found = SampleMoments::default();
        values.iter().for_each(|&value| found.add(value));
        found
    }

    #[test]
    fn quantiles_agree_with_published_tables() {
        for (confidence, freedom, expected) in [
            (0.95, 1.0, 12.706),
            (0.95, 10.0, 2.228),
            (0.99, 30.0, 2.750),
            (0.90, 120.0, 1.658),
            (0.95, 1e6, 1.960),
        ] {
            let found = student_quantile(confidence, freedom);
            assert!((found - expected).abs() < 6e-4, "{confidence} {freedom}: {found}");
        }
        assert!((normal_quantile(0.95) - 1.959_964).abs() < 1e-5);
        assert!((normal_quantile(0.999) - 3.290_527).abs() < 1e-5);
    }

    /// The numbers are those of `scipy.stats.ttest_ind(a, b, equal_var=False)`.
    #[test]
    fn means_of_unequal_variances_are_compared_after_welch() {
        let a = moments(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6]);
        let b = moments(&[27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1]);
        let found = WelchTest::of(&a, &b, 0.95).unwrap();
        assert!((found.p - 0.050_387_716_566).abs() < 1e-6, "{found:?}");
        let [low, high] = found.interval;
        assert!(low < found.difference && found.difference < high, "{found:?}");
        let back = WelchTest::of(&b, &a, 0.95).unwrap();
        assert!(
            (back.difference + found.difference).abs() < 1e-12 && (back.p - found.p).abs() < 1e-12
        );
        let flat = moments(&[1.0; 9]);
        assert_eq!(WelchTest::of(&flat, &flat, 0.95), None);
        assert_eq!(WelchTest::of(&moments(&[1.0]), &a, 0.95), None);
    }

    #[test]
    fn shares_of_failures_are_compared() {
        let of = |failures, trials| TrialCount { failures, trials };
        // Newcombe's example (a): 56 of 70 and 48 of 80.
        let found = ProportionTest::of(of(48, 80), of(56, 70), 0.95).unwrap();
        assert!((found.difference - 0.2).abs() < 1e-12, "{found:?}");
        assert!((found.interval[0] - 0.0524).abs() < 1e-4, "{found:?}");
        assert!((found.interval[1] - 0.3339).abs() < 1e-4, "{found:?}");
        assert!((found.p - 0.008_1).abs() < 5e-4, "{found:?}");
        let none = ProportionTest::of(of(0, 50), of(0, 60), 0.95).unwrap();
        assert_eq!((none.difference, none.p), (0.0, 1.0));
        assert_eq!(ProportionTest::of(of(0, 0), of(0, 60), 0.95), None);
        // Wilson's interval of no failure among ten.
        let [low, high] = of(0, 10).interval(0.95);
        assert!(low == 0.0 && (high - 0.2775).abs() < 1e-4, "{low} {high}");
        assert_eq!(of(0, 0).interval(0.95), [0.0, 1.0]);
    }
}
