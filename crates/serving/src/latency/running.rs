//! Quantiles of all values since a beginning.

use super::sketch::{QuantileSketch, TrackedQuantile, estimate};

/// Quantiles of a stream of values, in little memory.
#[derive(Clone, Debug)]
pub(crate) struct RunningQuantiles {
    wanted: &'static [TrackedQuantile],
    sketch: QuantileSketch,
}

impl RunningQuantiles {
    /// No values yet.
    pub(crate) fn new(wanted: &'static [TrackedQuantile]) -> Self {
        Self { wanted, sketch: QuantileSketch::default() }
    }

    /// Takes a value in.
    pub(crate) fn insert(&mut self, value: f64) {
        self.sketch.insert(value, self.wanted);
    }

    /// Estimates of the wanted quantiles; none without values.
    pub(crate) fn estimates(&mut self) -> Option<Vec<f64>> {
        self.sketch.settle(self.wanted);
        estimate(std::slice::from_ref(&self.sketch), self.wanted)
    }
}
