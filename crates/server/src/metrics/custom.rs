//! Families that models have made.

use galatea_serving::custom_metrics::{FamilySnapshot, MetricKind, MetricSnapshot, MetricValue};
use prometheus::proto::{Bucket, Counter, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};

/// Adds the families to the page. One that the server has too is a part of it if it is of its kind, and left out if not,
/// as a page with two families of one name cannot be read.
pub(super) fn add(page: &mut Vec<MetricFamily>, made: &[FamilySnapshot]) {
    for one in made {
        let kind = kind(one.kind);
        let metrics = one.metrics.iter().map(|metric| self::metric(one.kind, metric)).collect();
        match page.iter_mut().find(|own| own.name() == one.name) {
            Some(own) if own.get_field_type() == kind => own.mut_metric().extend::<Vec<_>>(metrics),
            Some(_) => {
                tracing::debug!(name = %one.name, "a model's metrics have a name of the server's")
            }
            None => page.push(family(&one.name, &one.help, kind, metrics)),
        }
    }
}

fn kind(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Histogram => MetricType::HISTOGRAM,
    }
}

fn metric(kind: MetricKind, of: &MetricSnapshot) -> Metric {
    let pair = |(name, value): (&String, &String)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.clone());
        pair.set_value(value.clone());
        pair
    };
    let mut metric = Metric::from_label(of.labels.iter().map(pair).collect());
    match (&of.value, kind) {
        (MetricValue::Distribution { counts, count, sum }, _) => {
            metric.set_histogram(histogram(&of.bounds, counts, *count, *sum));
        }
        (MetricValue::Number(value), MetricKind::Counter) => {
            let mut counter = Counter::default();
            counter.set_value(*value);
            metric.set_counter(counter);
        }
        (MetricValue::Number(value), _) => metric.set_gauge(gauge(*value)),
    }
    metric
}

fn histogram(bounds: &[f64], counts: &[u64], count: u64, sum: f64) -> Histogram {
    let mut histogram = Histogram::default();
    histogram.set_sample_count(count);
    histogram.set_sample_sum(sum);
    let mut below = 0;
    let bucket = |(bound, count): (&f64, &u64)| {
        below += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(below);
        bucket
    };
    histogram.set_bucket(bounds.iter().zip(counts).map(bucket).collect());
    histogram
}

#[cfg(test)]
mod tests {
    use galatea_serving::custom_metrics::{CustomMetrics, MetricLabels};
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    #[test]
    fn the_page_has_what_models_made() {
        let made = CustomMetrics::default();
        let family_of = |name: &str, kind| made.family(name, "of a model", kind).unwrap();
        let labels = MetricLabels::from([("a".to_owned(), "x\"y".to_owned())]);
        let counter = family_of("c", MetricKind::Counter).metric(labels, None).unwrap();
        counter.increment(1.5).unwrap();
        let histogram = family_of("h", MetricKind::Histogram);
        let histogram = histogram.metric(MetricLabels::new(), Some(vec![1.0, 2.0])).unwrap();
        [0.5, 1.5, 9.0].iter().for_each(|value| histogram.observe(*value).unwrap());
        let own = family("own", "", MetricType::GAUGE, vec![Metric::from_gauge(gauge(1.0))]);
        let mut page = vec![own];
        let _counter =
            family_of("own", MetricKind::Counter).metric(MetricLabels::new(), None).unwrap();
        add(&mut page, &made.snapshot());
        let mut text = Vec::new();
        TextEncoder::new().encode(&page, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "# HELP c of a model",
            "# TYPE c counter",
            r#"c{a="x\"y"} 1.5"#,
            "# TYPE h histogram",
            r#"h_bucket{le="1"} 1"#,
            r#"h_bucket{le="2"} 2"#,
            r#"h_bucket{le="+Inf"} 3"#,
            "h_sum 11",
            "h_count 3",
            "own 1",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} is not in\n{text}");
        }
        assert!(!text.contains("own 0"), "{text}");
    }
}
