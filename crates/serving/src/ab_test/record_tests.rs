use super::*;

/// Numbers of [0, 1) that look like chance and are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A latency with a long tail.
    fn latency(&mut self, usual_ns: f64) -> f64 {
        let middle: f64 = (0..6).map(|_| self.next()).sum::<f64>() - 3.0;
        usual_ns * (0.4 * middle).exp()
    }
}

/// A variant in a simulated test.
#[derive(Clone, Copy)]
struct Played {
    usual_ns: f64,
    failing: f64,
}

const PLAIN: Played = Played { usual_ns: 1e6, failing: 0.01 };

/// Plays a test until it ends; gives its record and the requests that it took.
fn play(rules: StopRules, share: f64, variants: [Played; 2], seed: u64) -> (AbRecord, u64) {
    let mut noise = Noise(seed);
    for _ in 0..10 {
        noise.next();
    }
    let mut record = AbRecord::new(rules, share);
    let mut requests = 0;
    while record.outcome().is_none() {
        let variant = if noise.next() < share { AbVariant::B } else { AbVariant::A };
        let Played { usual_ns, failing } = variants[variant.index()];
        let answered = (noise.next() >= failing).then(|| noise.latency(usual_ns));
        record.finish(variant, answered);
        requests += 1;
        assert!(requests <= rules.max_requests, "the test does not end");
    }
    (record, requests)
}

fn rules() -> StopRules {
    StopRules { min_requests: 50, max_requests: 10_000, ..StopRules::default() }
}

#[test]
fn a_faster_variant_wins_and_its_speed_is_told() {
    let quick = Played { usual_ns: 0.8e6, ..PLAIN };
    let (mut record, requests) = play(rules(), 0.5, [PLAIN, quick], 7);
    let expected = AbOutcome { winner: AbVariant::B, reason: StopReason::Faster };
    assert_eq!(record.outcome(), Some(expected));
    assert!(requests < 2000, "{requests}");
    let found = record.statistics();
    let latency = found.latency.unwrap();
    assert!(latency.p < found.needed_p && found.needed_p < 0.05 / 2.0, "{found:?}");
    assert!(latency.interval[0] < 0.8 && 0.8 < latency.interval[1] + 0.05, "{latency:?}");
    assert_eq!(found.variants.iter().map(|one| one.requests).sum::<u64>(), requests);
    let [p50, p95, p99] = found.variants[1].percentiles_ms.unwrap();
    assert!(p50 < p95 && p95 <= p99 && (p50 - 0.8).abs() < 0.1, "{found:?}");
    // A slower one loses by the same rule.
    let (record, _) = play(rules(), 0.3, [quick, PLAIN], 8);
    assert_eq!(record.outcome().unwrap().winner, AbVariant::A);
}

#[test]
fn failures_count_before_speed() {
    let broken = Played { usual_ns: 0.5e6, failing: 0.2 };
    let (record, _) = play(rules(), 0.5, [PLAIN, broken], 9);
    let expected = AbOutcome { winner: AbVariant::A, reason: StopReason::FewerFailures };
    assert_eq!(record.outcome(), Some(expected));
}

#[test]
fn bounds_end_a_test_long_before_a_comparison() {
    let bounded = StopRules { max_error_rate: Some(0.05), min_requests: 2000, ..rules() };
    let dead = Played { failing: 1.0, ..PLAIN };
    let (record, requests) = play(bounded, 0.1, [PLAIN, dead], 10);
    let expected = AbOutcome { winner: AbVariant::A, reason: StopReason::ErrorRate };
    assert_eq!((record.outcome(), requests < 1000), (Some(expected), true));
    let (record, _) = play(bounded, 0.5, [dead, PLAIN], 11);
    assert_eq!(record.outcome().unwrap().winner, AbVariant::B);

    let bounded = StopRules { max_latency_ms: Some(5.0), min_requests: 2000, ..rules() };
    let slow = Played { usual_ns: 9e6, failing: 0.0 };
    let (record, requests) = play(bounded, 0.5, [PLAIN, slow], 12);
    let expected = AbOutcome { winner: AbVariant::A, reason: StopReason::Latency };
    assert_eq!((record.outcome(), requests < 200), (Some(expected), true));
}

#[test]
fn equal_variants_are_told_apart_no_more_often_than_the_confidence_allows() {
    let tests = 300;
    let decided = |seed: &u64| {
        let (record, _) = play(rules(), 0.5, [PLAIN, PLAIN], seed * 7919 + 3);
        record.outcome().unwrap().reason != StopReason::Undecided
    };
    let wrong = (0..tests).filter(decided).count();
    // 5 % of 300 are 15; looking at every comparison without a price would give about 45.
    assert!(wrong <= 20, "{wrong} of {tests}");
}

#[test]
fn the_end_is_said_once_and_nothing_comes_after_it() {
    let rules = StopRules { min_requests: 10, max_requests: 20, ..StopRules::default() };
    let mut record = AbRecord::new(rules, 0.5);
    let mut said = Vec::new();
    for _ in 0..30 {
        said.extend(record.finish(AbVariant::A, Some(1e6)));
    }
    assert_eq!(said, [AbOutcome { winner: AbVariant::A, reason: StopReason::Undecided }]);
    let found = record.statistics();
    assert_eq!(found.variants.each_ref().map(|one| one.requests), [20, 0]);
    assert_eq!((found.latency, found.variants[1].error_rate), (None, None));
    let none = VariantStatistics::default();
    assert_eq!(found.variants[1], none);
}
