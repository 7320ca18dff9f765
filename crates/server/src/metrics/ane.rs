//! Counts of the engine behind the provider of Core ML.

use galatea_coreml::engine::EngineCounts;
use prometheus::proto::{Counter, Metric, MetricFamily, MetricType};

use super::family;

struct AneFamily {
    name: &'static str,
    help: &'static str,
    value: fn(&EngineCounts) -> u64,
}

const FAMILIES: &[AneFamily] = &[
    AneFamily {
        name: "ane_compiles_total",
        help: "Packages that were compiled for Core ML",
        value: |counts| counts.compiles,
    },
    AneFamily {
        name: "ane_cache_hits_total",
        help: "Packages that were found compiled for Core ML",
        value: |counts| counts.cache_hits,
    },
    AneFamily {
        name: "ane_predictions_total",
        help: "Predictions of Core ML's engine",
        value: |counts| counts.predictions,
    },
    AneFamily {
        name: "ane_worker_restarts_total",
        help: "Workers of Core ML that were started after another one ended",
        value: |counts| counts.worker_restarts,
    },
    AneFamily {
        name: "ane_fallbacks_total",
        help: "Runs that Core ML's engine failed or lost, and partitions that it was given up for, answered by others",
        value: |counts| counts.fallbacks,
    },
    AneFamily {
        name: "ane_nonfinite_total",
        help: "Runs of Core ML programs that gave no finite numbers where FP32 has some, answered by others",
        value: |counts| counts.nonfinite,
    },
    AneFamily {
        name: "ane_comparisons_total",
        help: "Runs of Core ML programs whose results were compared with those of other devices",
        value: |counts| counts.comparisons,
    },
];

/// The families; none where no engine was ever asked.
pub(super) fn page(counts: EngineCounts) -> Vec<MetricFamily> {
    if counts == EngineCounts::default() {
        return Vec::new();
    }
    let row = |row: &AneFamily| {
        let mut counter = Counter::default();
        counter.set_value((row.value)(&counts) as f64);
        let mut metric = Metric::default();
        metric.set_counter(counter);
        family(row.name, row.help, MetricType::COUNTER, vec![metric])
    };
    FAMILIES.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_was_never_asked_has_no_families() {
        assert!(page(EngineCounts::default()).is_empty());
        let page = page(EngineCounts { worker_restarts: 2, ..EngineCounts::default() });
        let found = page.iter().find(|one| one.name() == "ane_worker_restarts_total").unwrap();
        assert_eq!(found.get_metric()[0].get_counter().get_value(), 2.0);
        assert_eq!(page.len(), FAMILIES.len());
    }
}
