//! Statistics of a running test, and the rules that end it.

use galatea_runtime::tune::{ProportionTest, SampleMoments, TrialCount, WelchTest};

use super::plan::{AbVariant, StopRules};
use crate::latency::{RunningQuantiles, TrackedQuantile};

/// Quantiles of latencies that are kept.
const QUANTILES: &[TrackedQuantile] = &[
    TrackedQuantile { quantile: 0.5, error: 0.01 },
    TrackedQuantile { quantile: 0.95, error: 0.005 },
    TrackedQuantile { quantile: 0.99, error: 0.001 },
];
/// Finished requests of a variant before bounds of failures and latency may end the test.
const GUARD_REQUESTS: u64 = 20;
/// Between two looks at the latency bound, in requests of a variant.
const GUARD_STEP: u64 = 20;

/// Reason for which a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The winner fails less often.
    FewerFailures,
    /// The winner is faster.
    Faster,
    /// The other variant fails more often than the rules allow.
    ErrorRate,
    /// The other variant is slower than the rules allow.
    Latency,
    /// No difference was proved with the most requests that the rules allow.
    Undecided,
}

impl StopReason {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FewerFailures => "fewer_failures",
            Self::Faster => "faster",
            Self::ErrorRate => "error_rate",
            Self::Latency => "latency",
            Self::Undecided => "undecided",
        }
    }
}

/// End of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbOutcome {
    /// The variant that has all requests from now on.
    pub winner: AbVariant,
    /// Reason of it.
    pub reason: StopReason,
}

/// Requests of one variant that have ended.
#[derive(Clone, Debug)]
struct VariantRecord {
    trials: TrialCount,
    /// Sum of the latencies of answered requests, in nanoseconds.
    latency_ns: f64,
    /// Logarithms of the same: their means are compared, since times have long tails.
    log_latency: SampleMoments,
    quantiles: RunningQuantiles,
}

impl VariantRecord {
    fn new() -> Self {
        Self {
            trials: TrialCount::default(),
            latency_ns: 0.0,
            log_latency: SampleMoments::default(),
            quantiles: RunningQuantiles::new(QUANTILES),
        }
    }

    fn answered(&self) -> u64 {
        self.trials.trials - self.trials.failures
    }
}

/// Statistics of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantStatistics {
    /// Requests that ended, mistakes of clients and cancelled ones left out.
    pub requests: u64,
    /// Number of them that failed.
    pub failures: u64,
    /// Share of failures and its interval; `None` before the first request.
    pub error_rate: Option<f64>,
    /// Interval of the share with the confidence of the rules.
    pub error_interval: Option<[f64; 2]>,
    /// Sum of the latencies of answered requests, in milliseconds.
    pub latency_sum_ms: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: Option<f64>,
    /// Latency at the 50th, 95th and 99th percentile, in milliseconds.
    pub percentiles_ms: Option<[f64; 3]>,
}

/// Both variants beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct AbStatistics {
    /// Statistics of A and of B.
    pub variants: [VariantStatistics; 2],
    /// Latency of B as a share of A's (of geometric means), with its interval and chance.
    pub latency: Option<WelchTest>,
    /// Share of failures of B less that of A.
    pub failures: Option<ProportionTest>,
    /// Chance below which a difference counts, at one comparison of the test.
    pub needed_p: f64,
    /// End of the test, if it has ended.
    pub outcome: Option<AbOutcome>,
}

/// Requests of a test as they end. What comes after the end of the test changes nothing.
#[derive(Clone, Debug)]
pub struct AbRecord {
    rules: StopRules,
    variants: [VariantRecord; 2],
    /// Requests of each at which the next comparison is due.
    next_look: u64,
    needed_p: f64,
    outcome: Option<AbOutcome>,
}

impl AbRecord {
    /// A test in which B gets this share of requests.
    #[must_use]
    pub fn new(rules: StopRules, share: f64) -> Self {
        // Every comparison may err. The chance that the rules allow is divided among all of them, on two questions.
        let needed_p = (1.0 - rules.confidence) / (2.0 * f64::from(looks(&rules, share)));
        Self {
            variants: [VariantRecord::new(), VariantRecord::new()],
            next_look: rules.min_requests,
            needed_p,
            outcome: None,
            rules,
        }
    }

    /// End of the test, if it has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<AbOutcome> {
        self.outcome
    }

    /// Takes in a request that was answered after so many nanoseconds, or failed. Says how the test ends, once.
    pub fn finish(&mut self, variant: AbVariant, answered_ns: Option<f64>) -> Option<AbOutcome> {
        if self.outcome.is_some() {
            return None;
        }
        let record = &mut self.variants[variant.index()];
        record.trials.trials += 1;
        match answered_ns {
            None => record.trials.failures += 1,
            Some(ns) => {
                let ns = ns.max(1.0);
                record.latency_ns += ns;
                record.log_latency.add(ns.ln());
                record.quantiles.insert(ns);
            }
        }
        self.outcome = self.judge(variant);
        self.outcome
    }

    fn judge(&mut self, variant: AbVariant) -> Option<AbOutcome> {
        if let Some(reason) = self.breaks(variant) {
            return Some(AbOutcome { winner: variant.other(), reason });
        }
        let counts = self.variants.each_ref().map(|record| record.trials.trials);
        let all = counts[0] + counts[1];
        let last = all >= self.rules.max_requests;
        if counts[0].min(counts[1]) < self.next_look && !last {
            return None;
        }
        self.next_look = self.next_look.saturating_mul(2);
        let undecided = AbOutcome { winner: AbVariant::A, reason: StopReason::Undecided };
        self.compare().or_else(|| last.then_some(undecided))
    }

    /// Bound that a variant has passed.
    fn breaks(&mut self, variant: AbVariant) -> Option<StopReason> {
        let confidence = self.rules.confidence;
        let record = &mut self.variants[variant.index()];
        let count = record.trials.trials;
        if count < GUARD_REQUESTS {
            return None;
        }
        if let Some(most) = self.rules.max_error_rate
            && record.trials.interval(confidence)[0] > most
        {
            return Some(StopReason::ErrorRate);
        }
        let most = self.rules.max_latency_ms?;
        if !count.is_multiple_of(GUARD_STEP) || record.answered() < GUARD_REQUESTS {
            return None;
        }
        let found = record.quantiles.estimates()?;
        (found.get(1)? / 1e6 > most).then_some(StopReason::Latency)
    }

    /// Variant that is proved better: by failures first, then by latency.
    fn compare(&self) -> Option<AbOutcome> {
        let better = |difference: f64| if difference > 0.0 { AbVariant::A } else { AbVariant::B };
        let failures = self.failures().filter(|test| test.p < self.needed_p);
        if let Some(test) = failures {
            let winner = better(test.difference);
            return Some(AbOutcome { winner, reason: StopReason::FewerFailures });
        }
        let latency = self.latency().filter(|test| test.p < self.needed_p)?;
        Some(AbOutcome { winner: better(latency.difference), reason: StopReason::Faster })
    }

    fn failures(&self) -> Option<ProportionTest> {
        let [a, b] = self.variants.each_ref().map(|record| record.trials);
        ProportionTest::of(a, b, self.rules.confidence)
    }

    fn latency(&self) -> Option<WelchTest> {
        let [a, b] = self.variants.each_ref().map(|record| &record.log_latency);
        WelchTest::of(a, b, self.rules.confidence)
    }

    /// Numbers of the test so far.
    pub fn statistics(&mut self) -> AbStatistics {
        let confidence = self.rules.confidence;
        let ratio = |test: WelchTest| WelchTest {
            difference: test.difference.exp(),
            interval: test.interval.map(f64::exp),
            p: test.p,
        };
        let latency = self.latency().map(ratio);
        let failures = self.failures();
        let of = |record: &mut VariantRecord| {
            let trials = record.trials;
            let some = trials.trials > 0;
            let sum_ms = record.latency_ns / 1e6;
            let answered = record.answered();
            let estimates = record.quantiles.estimates();
            let percentiles = estimates.and_then(|found| <[f64; 3]>::try_from(found).ok());
            VariantStatistics {
                requests: trials.trials,
                failures: trials.failures,
                error_rate: some.then(|| trials.share()),
                error_interval: some.then(|| trials.interval(confidence)),
                latency_sum_ms: sum_ms,
                mean_ms: (answered > 0).then(|| sum_ms / answered as f64),
                percentiles_ms: percentiles.map(|found| found.map(|ns| ns / 1e6)),
            }
        };
        AbStatistics {
            variants: self.variants.each_mut().map(of),
            latency,
            failures,
            needed_p: self.needed_p,
            outcome: self.outcome,
        }
    }
}

/// Comparisons that a test makes at most: at the fewest requests of each, at twice that and so on, and at its end.
fn looks(rules: &StopRules, share: f64) -> u32 {
    let smaller = rules.max_requests as f64 * share.min(1.0 - share);
    let mut looks = 1;
    let mut at = rules.min_requests as f64;
    while at <= smaller {
        looks += 1;
        at *= 2.0;
    }
    looks
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
