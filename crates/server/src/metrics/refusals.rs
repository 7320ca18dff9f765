//! Counts of requests and answers for which there was no memory beside those of other clients.

use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::family;

/// Counts of refusals for lack of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemoryRefusals {
    /// Bodies and messages of requests.
    pub(crate) requests: u64,
    /// Answers.
    pub(crate) answers: u64,
}

/// Gives the family once anything was refused.
pub(super) fn page(refusals: MemoryRefusals) -> Option<MetricFamily> {
    if refusals == MemoryRefusals::default() {
        return None;
    }
    let counts = [("requests", refusals.requests), ("answers", refusals.answers)];
    let name = "galatea_memory_refusals_total";
    let help = "Requests, and answers that clients do not read, that found no memory beside those of other clients";
    let metrics = counts.into_iter().map(|(of, count)| metric(of, count)).collect();
    Some(family(name, help, MetricType::COUNTER, metrics))
}

#[allow(clippy::cast_precision_loss, reason = "counters of Prometheus are doubles")]
fn metric(of: &str, count: u64) -> Metric {
    let mut label = LabelPair::default();
    label.set_name("of".to_owned());
    label.set_value(of.to_owned());
    let mut counter = Counter::default();
    counter.set_value(count as f64);
    let mut metric = Metric::default();
    metric.set_counter(counter);
    metric.set_label(vec![label]);
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_apart_and_shown_once_there_are_any() {
        assert_eq!(page(MemoryRefusals::default()), None);
        let found = page(MemoryRefusals { requests: 0, answers: 3 }).unwrap();
        let values: Vec<f64> =
            found.get_metric().iter().map(|metric| metric.get_counter().get_value()).collect();
        assert_eq!(values, [0.0, 3.0]);
    }
}
