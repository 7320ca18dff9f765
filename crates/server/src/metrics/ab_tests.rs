//! Families of A/B tests: requests, failures and latency of each variant, and what the comparison says.

use galatea_serving::ab_test::{AbReport, AbVariant, VariantStatistics};
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary};

use super::{family, gauge};

/// Quantiles of the summary, in the order of the statistics.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// The families; none where no model has a test.
pub(super) fn page(reports: &[AbReport]) -> Vec<MetricFamily> {
    let counted = |value: fn(&VariantStatistics) -> u64| {
        of_variants(reports, |report, variant| {
            let mut counter = Counter::default();
            counter.set_value(value(&report.statistics.variants[variant.index()]) as f64);
            let mut metric = Metric::default();
            metric.set_counter(counter);
            metric
        })
    };
    let share = of_variants(reports, |report, variant| {
        Metric::from_gauge(gauge(report.variants[variant.index()].share))
    });
    let won = of_variants(reports, |report, variant| {
        let winner = report.statistics.outcome.is_some_and(|outcome| outcome.winner == variant);
        Metric::from_gauge(gauge(f64::from(u8::from(winner))))
    });
    let running = of_models(reports, "", |report| {
        vec![("", f64::from(u8::from(report.statistics.outcome.is_none())))]
    });
    let ratio = of_models(reports, "bound", |report| match report.statistics.latency {
        None => Vec::new(),
        Some(test) => vec![
            ("estimate", test.difference),
            ("low", test.interval[0]),
            ("high", test.interval[1]),
        ],
    });
    let chance = of_models(reports, "of", |report| {
        let latency = report.statistics.latency.map(|test| ("latency", test.p));
        let failures = report.statistics.failures.map(|test| ("errors", test.p));
        latency.into_iter().chain(failures).collect()
    });
    let gauges = MetricType::GAUGE;
    let all = [
        (
            "galatea_ab_requests_total",
            "Requests of an A/B test that ended, by variant",
            MetricType::COUNTER,
            counted(|found| found.requests),
        ),
        (
            "galatea_ab_failures_total",
            "Requests of an A/B test that failed, by variant",
            MetricType::COUNTER,
            counted(|found| found.failures),
        ),
        (
            "galatea_ab_latency_seconds",
            "Latency of answered requests of an A/B test, by variant",
            MetricType::SUMMARY,
            of_variants(reports, |report, variant| {
                summary(&report.statistics.variants[variant.index()])
            }),
        ),
        ("galatea_ab_share", "Share of requests that go to a variant now", gauges, share),
        ("galatea_ab_running", "1 while an A/B test runs, 0 when it has ended", gauges, running),
        ("galatea_ab_winner", "1 for the variant that an A/B test has chosen", gauges, won),
        (
            "galatea_ab_latency_ratio",
            "Latency of variant b as a share of that of a, with its interval",
            gauges,
            ratio,
        ),
        (
            "galatea_ab_p_value",
            "Chance that equal variants differ as much, of latency and of errors",
            gauges,
            chance,
        ),
    ];
    let there = all.into_iter().filter(|(.., metrics)| !metrics.is_empty());
    there.map(|(name, help, kind, metrics)| family(name, help, kind, metrics)).collect()
}

/// One metric for each variant of each test.
fn of_variants(
    reports: &[AbReport],
    metric: impl Fn(&AbReport, AbVariant) -> Metric,
) -> Vec<Metric> {
    let mut all = Vec::new();
    for report in reports {
        for variant in AbVariant::ALL {
            let mut one = metric(report, variant);
            let version = report.variants[variant.index()].version.to_string();
            one.set_label(vec![
                label("model", &report.model),
                label("variant", variant.name()),
                label("version", &version),
            ]);
            all.push(one);
        }
    }
    all
}

/// Gauges of each test, with a label that tells them apart; without one where its name is empty.
fn of_models(
    reports: &[AbReport],
    name: &str,
    values: impl Fn(&AbReport) -> Vec<(&'static str, f64)>,
) -> Vec<Metric> {
    let mut all = Vec::new();
    for report in reports {
        for (value, number) in values(report) {
            let mut one = Metric::from_gauge(gauge(number));
            let mut labels = vec![label("model", &report.model)];
            labels.extend((!name.is_empty()).then(|| label(name, value)));
            labels.sort_by(|a, b| a.name().cmp(b.name()));
            one.set_label(labels);
            all.push(one);
        }
    }
    all
}

fn summary(found: &VariantStatistics) -> Metric {
    let mut summary = Summary::default();
    summary.set_sample_count(found.requests - found.failures);
    summary.set_sample_sum(found.latency_sum_ms / 1e3);
    let quantiles = QUANTILES.iter().zip(found.percentiles_ms.unwrap_or([f64::NAN; 3]));
    let quantile = |(&quantile, ms): (&f64, f64)| {
        let mut estimate = Quantile::default();
        estimate.set_quantile(quantile);
        estimate.set_value(ms / 1e3);
        estimate
    };
    summary.set_quantile(quantiles.map(quantile).collect());
    let mut metric = Metric::default();
    metric.set_summary(summary);
    metric
}

fn label(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
