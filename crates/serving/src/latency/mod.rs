//! Distributions of latencies: quantiles over the last minute and histograms, where the metrics ask for them.

mod running;
mod sketch;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::ModelConfig;
use crate::config::inference::model_metrics::metric_control::MetricOptions;
pub(crate) use running::RunningQuantiles;
pub use sketch::TrackedQuantile;
use sketch::{QuantileSketch, estimate};

/// The time that quantiles look back on.
const WINDOW: Duration = Duration::from_secs(60);
/// Parts of the window; the oldest is forgotten as a whole.
const PARTS: usize = 5;
/// The family whose buckets a model's configuration can change.
const FIRST_RESPONSE: &str = "nv_inference_first_response_histogram_ms";
/// Bounds of its buckets in milliseconds.
const FIRST_RESPONSE_MS: [f64; 4] = [100.0, 500.0, 2000.0, 5000.0];

/// Which distributions are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyOptions {
    /// Quantiles of the summaries; `None` for no summaries.
    pub summaries: Option<Vec<TrackedQuantile>>,
    /// Whether histograms are kept.
    pub histograms: bool,
}

/// Summarised stages, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyStage {
    /// From arrival to response.
    Request,
    /// Wait before the execution.
    Queue,
    /// Gathering of inputs.
    ComputeInput,
    /// Execution of the model.
    ComputeInfer,
    /// Scattering of outputs.
    ComputeOutput,
    /// Look-ups that found a response in the cache.
    CacheHit,
    /// Look-ups that did not, and insertions.
    CacheMiss,
}

impl LatencyStage {
    /// Every stage.
    pub const ALL: [Self; 7] = [
        Self::Request,
        Self::Queue,
        Self::ComputeInput,
        Self::ComputeInfer,
        Self::ComputeOutput,
        Self::CacheHit,
        Self::CacheMiss,
    ];
}

/// Estimates of a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySnapshot {
    /// Measured values.
    pub stage: LatencyStage,
    /// Values since the start.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
    /// Quantiles over the last minute in microseconds; NaN where it had no values.
    pub quantiles: Vec<(f64, f64)>,
}

/// A histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// Upper bounds of the buckets, and values up to each.
    pub buckets: Vec<(f64, u64)>,
    /// Values in all.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

/// Distributions of one model version.
#[derive(Debug)]
pub(crate) struct LatencyRecorder {
    quantiles: Vec<TrackedQuantile>,
    summaries: Option<Mutex<LatencySummaries>>,
    first_response: Option<Mutex<LatencyHistogram>>,
}

#[derive(Debug)]
struct LatencySummaries {
    /// Start of the newest part.
    turned: Instant,
    newest: usize,
    stages: [LatencySummary; LatencyStage::ALL.len()],
}

#[derive(Debug, Default)]
struct LatencySummary {
    count: u64,
    sum_us: u64,
    parts: [QuantileSketch; PARTS],
}

#[derive(Debug)]
struct LatencyHistogram {
    bounds: Vec<f64>,
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl LatencyRecorder {
    /// Quantiles that the options ask for; `None` where that is nothing.
    pub(crate) fn new(options: &LatencyOptions, config: &ModelConfig) -> Option<Self> {
        let first_response =
            options.histograms.then(|| Mutex::new(LatencyHistogram::new(buckets(config))));
        let summaries = options.summaries.is_some().then(|| {
            Mutex::new(LatencySummaries {
                turned: Instant::now(),
                newest: 0,
                stages: std::array::from_fn(|_| LatencySummary::default()),
            })
        });
        let quantiles = options.summaries.clone().unwrap_or_default();
        (summaries.is_some() || first_response.is_some()).then_some(Self {
            quantiles,
            summaries,
            first_response,
        })
    }

    /// Takes durations in.
    pub(crate) fn observe(&self, durations: &[(LatencyStage, Duration)]) {
        let Some(summaries) = &self.summaries else { return };
        let mut summaries = summaries.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.turn(Instant::now());
        let newest = summaries.newest;
        for &(stage, duration) in durations {
            let Some(summary) = summaries.stages.get_mut(index(stage)) else { continue };
            let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            summary.count += 1;
            summary.sum_us = summary.sum_us.saturating_add(us);
            if let Some(part) = summary.parts.get_mut(newest) {
                part.insert(whole(us), &self.quantiles);
            }
        }
    }

    /// Takes the time to the first response of a request in.
    pub(crate) fn observe_first_response(&self, duration: Duration) {
        if let Some(histogram) = &self.first_response {
            // In whole milliseconds, as Triton counts them.
            let ms = whole(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
            histogram.lock().unwrap_or_else(PoisonError::into_inner).observe(ms);
        }
    }

    /// The summaries of all stages; empty where there are none.
    pub(crate) fn summaries(&self) -> Vec<SummarySnapshot> {
        let Some(summaries) = &self.summaries else { return Vec::new() };
        let mut summaries = summaries.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.turn(Instant::now());
        let snapshot = |(stage, summary): (LatencyStage, &mut LatencySummary)| {
            summary.parts.iter_mut().for_each(|part| part.settle(&self.quantiles));
            let values = estimate(&summary.parts, &self.quantiles);
            let value = |at: usize| values.as_ref().and_then(|all| all.get(at)).copied();
            let quantiles = self.quantiles.iter().enumerate();
            SummarySnapshot {
                stage,
                count: summary.count,
                sum_us: summary.sum_us,
                quantiles: quantiles
                    .map(|(at, wanted)| (wanted.quantile, value(at).unwrap_or(f64::NAN)))
                    .collect(),
            }
        };
        LatencyStage::ALL.into_iter().zip(&mut summaries.stages).map(snapshot).collect()
    }

    /// The histogram of times to first responses, where there is one.
    pub(crate) fn first_response(&self) -> Option<HistogramSnapshot> {
        let histogram = self.first_response.as_ref()?;
        Some(histogram.lock().unwrap_or_else(PoisonError::into_inner).snapshot())
    }
}

fn index(stage: LatencyStage) -> usize {
    LatencyStage::ALL.iter().position(|&other| other == stage).unwrap_or(0)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "durations in microseconds are far below 2^53"
)]
fn whole(units: u64) -> f64 {
    units as f64
}

/// The bounds of a model's buckets: those of its configuration, or the default ones.
fn buckets(config: &ModelConfig) -> Vec<f64> {
    let controls = config.model_metrics.iter().flat_map(|metrics| &metrics.metric_control);
    let own = controls
        .filter(|control| {
            control.metric_identifier.as_ref().is_some_and(|name| name.family == FIRST_RESPONSE)
        })
        .find_map(|control| control.metric_options.as_ref())
        .map(|MetricOptions::HistogramOptions(options)| options.buckets.clone());
    let mut bounds = own.unwrap_or_else(|| FIRST_RESPONSE_MS.to_vec());
    bounds.sort_by(f64::total_cmp);
    bounds
}

impl LatencySummaries {
    /// Forgets the parts whose time is over.
    fn turn(&mut self, now: Instant) {
        let step = WINDOW / u32::try_from(PARTS).unwrap_or(1);
        for _ in 0..PARTS {
            if now.saturating_duration_since(self.turned) < step {
                return;
            }
            self.turned += step;
            self.newest = (self.newest + 1) % PARTS;
            for summary in &mut self.stages {
                if let Some(part) = summary.parts.get_mut(self.newest) {
                    part.clear();
                }
            }
        }
        // Everything was too old.
        self.turned = now;
    }
}

impl LatencyHistogram {
    fn new(bounds: Vec<f64>) -> Self {
        Self { counts: vec![0; bounds.len()], bounds, count: 0, sum: 0.0 }
    }

    fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.sum += value;
    }

    fn snapshot(&self) -> HistogramSnapshot {
        let mut below = 0;
        let cumulated = self.bounds.iter().zip(&self.counts).map(|(&bound, &count)| {
            below += count;
            (bound, below)
        });
        HistogramSnapshot { buckets: cumulated.collect(), count: self.count, sum: self.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    fn options() -> LatencyOptions {
        let quantiles = vec![TrackedQuantile { quantile: 0.5, error: 0.05 }];
        LatencyOptions { summaries: Some(quantiles), histograms: true }
    }

    #[test]
    fn nothing_is_kept_unless_asked_for() {
        let config = from_text("name: \"m\"").unwrap();
        assert!(LatencyRecorder::new(&LatencyOptions::default(), &config).is_none());
        let only = LatencyOptions { summaries: None, histograms: true };
        let kept = LatencyRecorder::new(&only, &config).unwrap();
        assert!(kept.summaries().is_empty() && kept.first_response().is_some());
    }

    #[test]
    fn summaries_count_and_estimate() {
        let latencies =
            LatencyRecorder::new(&options(), &from_text("name: \"m\"").unwrap()).unwrap();
        for us in 1..=100 {
            latencies.observe(&[(LatencyStage::Queue, Duration::from_micros(us))]);
        }
        let summaries = latencies.summaries();
        let of = |stage| summaries.iter().find(|summary| summary.stage == stage).unwrap();
        let queue = of(LatencyStage::Queue);
        assert_eq!((queue.count, queue.sum_us), (100, 5050));
        let (quantile, value) = queue.quantiles[0];
        assert!((quantile - 0.5).abs() < 1e-9 && (45.0..=55.0).contains(&value), "{value}");
        assert!(of(LatencyStage::Request).quantiles[0].1.is_nan());
    }

    #[test]
    fn a_minute_later_quantiles_are_forgotten_and_counts_are_not() {
        let latencies =
            LatencyRecorder::new(&options(), &from_text("name: \"m\"").unwrap()).unwrap();
        latencies.observe(&[(LatencyStage::Queue, Duration::from_micros(7))]);
        {
            let mut summaries = latencies.summaries.as_ref().unwrap().lock().unwrap();
            let later = summaries.turned + WINDOW - Duration::from_secs(20);
            summaries.turn(later);
        }
        assert!(!latencies.summaries()[1].quantiles[0].1.is_nan());
        {
            let mut summaries = latencies.summaries.as_ref().unwrap().lock().unwrap();
            let later = summaries.turned + WINDOW;
            summaries.turn(later);
        }
        let queue = &latencies.summaries()[1];
        assert!(queue.quantiles[0].1.is_nan());
        assert_eq!((queue.count, queue.sum_us), (1, 7));
    }

    #[test]
    fn buckets_come_from_the_configuration() {
        let text = "name: \"m\"";
        let of = |text: &str| {
            let latencies = LatencyRecorder::new(&options(), &from_text(text).unwrap()).unwrap();
            latencies.observe_first_response(Duration::from_micros(150_900));
            latencies.observe_first_response(Duration::from_secs(9));
            latencies.first_response().unwrap()
        };
        let default = of(text);
        assert_eq!(default.buckets, [(100.0, 0), (500.0, 1), (2000.0, 1), (5000.0, 1)]);
        assert_eq!((default.count, default.sum), (2, 9150.0));
        let own = of(&format!(
            "{text} model_metrics {{ metric_control {{ metric_identifier {{ family: \"{FIRST_RESPONSE}\" }} \
             histogram_options {{ buckets: [ 1, 200 ] }} }} }}"
        ));
        assert_eq!(own.buckets, [(1.0, 0), (200.0, 1)]);
    }
}
