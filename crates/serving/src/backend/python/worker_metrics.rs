//! Families and metrics that a worker holds, by the numbers that it knows them by.

use std::collections::HashMap;
use std::sync::Arc;

use crate::custom_metrics::{CustomFamily, CustomMetric};

/// Metrics that a worker holds.
#[derive(Debug, Default)]
pub(super) struct WorkerMetrics {
    last: u64,
    pub(super) families: HashMap<u64, Arc<CustomFamily>>,
    pub(super) metrics: HashMap<u64, Arc<CustomMetric>>,
}

impl WorkerMetrics {
    /// Python has lost an object.
    pub(super) fn release(&mut self, number: u64) {
        self.families.remove(&number);
        self.metrics.remove(&number);
    }

    /// The number of the next family or metric.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
