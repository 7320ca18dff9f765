//! The table of families.

use galatea_providers::HostCapabilities;
use galatea_serving::cache::CacheUse;
use galatea_serving::latency::LatencyStage;
use galatea_serving::statistics::{DurationStatistic, ModelMetricsRow};

/// A gauge of the response cache.
#[derive(Debug)]
pub(super) struct CacheGauge {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: fn(&CacheUse) -> f64,
}

macro_rules! gauges {
    ($($name:literal $help:literal $value:expr;)*) => {
        &[$(CacheGauge { name: $name, help: $help, value: $value }),*]
    };
}

/// Gauges of the response cache.
pub(super) const CACHE: &[CacheGauge] = gauges![
    "nv_cache_util" "Cache utilization [0.0 - 1.0]"
        |cache| cache.bytes as f64 / cache.capacity.max(1) as f64;
    "nv_cache_num_entries" "Number of responses stored in response cache"
        |cache| cache.entries as f64;
    "nv_cache_num_hits" "Number of cache hits in response cache" |cache| cache.hits as f64;
    "nv_cache_num_misses" "Number of cache misses in response cache" |cache| cache.misses as f64;
    "nv_cache_num_lookups" "Number of cache lookups in response cache"
        |cache| (cache.hits + cache.misses) as f64;
    "nv_cache_num_evictions" "Number of cache evictions in response cache"
        |cache| cache.evictions as f64;
    "nv_cache_lookup_duration" "Total cache lookup duration (hit and miss), in microseconds"
        |cache| cache.lookup.as_micros() as f64;
    "nv_cache_insertion_duration" "Total cache insertion duration, in microseconds"
        |cache| cache.insertion.as_micros() as f64;
];

/// Families of models with their values.
#[derive(Debug)]
pub(super) struct ModelFamily {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: FamilyValue,
}

/// Kind of value that a family has for each model version.
#[derive(Debug)]
pub(super) enum FamilyValue {
    /// A number that only grows.
    Counter(fn(&ModelMetricsRow) -> u64),
    /// A sum of durations, unless the flags leave those out.
    Duration(fn(&ModelMetricsRow) -> DurationStatistic),
    /// A number that only grows, of models with a response cache.
    Cached(fn(&ModelMetricsRow) -> u64),
    /// A sum of durations, of models with a response cache.
    CachedDuration(fn(&ModelMetricsRow) -> DurationStatistic),
    /// A number that goes up and down.
    Gauge(fn(&ModelMetricsRow) -> f64),
    /// The seconds that loading took, if the flags ask for it.
    LoadDuration,
    /// One number for each reason of failure.
    Failures,
    /// One number for each outcome of requests with a latency goal, where there are any.
    Goals,
    /// Quantiles of the durations of a stage.
    Summary(LatencyStage),
    /// A histogram of the times to first responses.
    FirstResponse,
    /// Arithmetic so far, of models whose arithmetic is counted.
    Operations,
    /// The speed of that arithmetic.
    OperationRate,
}

use FamilyValue::{
    Cached, CachedDuration, Counter, Duration, Failures, FirstResponse, Gauge, Goals, LoadDuration,
    OperationRate, Operations, Summary,
};

macro_rules! families {
    ($($name:literal $help:literal $value:expr;)*) => {
        &[$(ModelFamily { name: $name, help: $help, value: $value }),*]
    };
}

/// Families of models, in the order of the page.
pub(super) const FAMILIES: &[ModelFamily] = families![
    "nv_inference_request_success" "Number of successful inference requests, all batch sizes"
        Counter(|row| row.stats.success.count);
    "nv_inference_request_failure" "Number of failed inference requests, all batch sizes" Failures;
    "nv_inference_count" "Number of inferences performed (does not include cached requests)"
        Counter(|row| row.inference_count);
    "nv_inference_exec_count"
        "Number of model executions performed (does not include cached requests)"
        Counter(|row| row.execution_count);
    "nv_inference_request_duration_us"
        "Cumulative inference request duration in microseconds (includes cached requests)"
        Duration(|row| row.stats.success);
    "nv_inference_queue_duration_us"
        "Cumulative inference queuing duration in microseconds (includes cached requests)"
        Duration(|row| row.stats.queue);
    "nv_inference_compute_input_duration_us"
        "Cumulative compute input duration in microseconds (does not include cached requests)"
        Duration(|row| row.stats.compute_input);
    "nv_inference_compute_infer_duration_us"
        "Cumulative compute inference duration in microseconds (does not include cached requests)"
        Duration(|row| row.stats.compute_infer);
    "nv_inference_compute_output_duration_us"
        "Cumulative inference compute output duration in microseconds (does not include cached requests)"
        Duration(|row| row.stats.compute_output);
    "nv_cache_num_hits_per_model" "Number of cache hits per model"
        Cached(|row| row.stats.cache_hit.count);
    "nv_cache_hit_duration_per_model" "Total cache hit duration per model, in microseconds"
        CachedDuration(|row| row.stats.cache_hit);
    "nv_cache_num_misses_per_model" "Number of cache misses per model"
        Cached(|row| row.stats.cache_miss.count);
    "nv_cache_miss_duration_per_model"
        "Total cache miss (insert+lookup) duration per model, in microseconds"
        CachedDuration(|row| row.stats.cache_miss);
    "nv_inference_pending_request_count"
        "Instantaneous number of pending requests awaiting execution per-model."
        Gauge(|row| row.pending as f64);
    "nv_model_load_duration_secs" "Model load time in seconds"
        LoadDuration;
    "nv_inference_first_response_histogram_ms"
        "Duration from request to first response in milliseconds"
        FirstResponse;
    "nv_inference_request_summary_us"
        "Summary of inference request duration in microseconds (includes cached requests)"
        Summary(LatencyStage::Request);
    "nv_inference_queue_summary_us"
        "Summary of inference queuing duration in microseconds (includes cached requests)"
        Summary(LatencyStage::Queue);
    "nv_inference_compute_input_summary_us"
        "Cumulative compute input duration in microseconds (does not include cached requests)"
        Summary(LatencyStage::ComputeInput);
    "nv_inference_compute_infer_summary_us"
        "Cumulative compute inference duration in microseconds (does not include cached requests)"
        Summary(LatencyStage::ComputeInfer);
    "nv_inference_compute_output_summary_us"
        "Cumulative inference compute output duration in microseconds (does not include cached requests)"
        Summary(LatencyStage::ComputeOutput);
    "nv_cache_hit_summary_per_model" "Summary of cache hit duration per model, in microseconds"
        Summary(LatencyStage::CacheHit);
    "nv_cache_miss_summary_per_model"
        "Summary of cache miss (insert+lookup) duration per model, in microseconds"
        Summary(LatencyStage::CacheMiss);
    "apple_model_goal_total"
        "Requests that met their latency goal, missed it, or were refused because they would have"
        Goals;
    "galatea_compute_operations"
        "Multiplications and additions of products and convolutions that executions have taken"
        Operations;
    "galatea_compute_gflops"
        "Giga-operations per second of compute inference time since the last look at this page"
        OperationRate;
];

/// A gauge of what the machine can do.
#[derive(Debug)]
pub(super) struct CapabilityGauge {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: fn(&HostCapabilities) -> Option<f64>,
}

/// Estimates about the machine, where they are known.
pub(super) const CAPABILITIES: &[CapabilityGauge] = &[
    CapabilityGauge {
        name: "galatea_peak_vector_f32_gflops",
        help: "Estimated peak of FP32 in the vectors of the fast cores, in Gflop/s",
        value: |found| found.peak("vector-f32"),
    },
    CapabilityGauge {
        name: "galatea_peak_matrix_f32_gflops",
        help: "Estimated peak of FP32 in the matrix units of the fast cores, in Gflop/s",
        value: |found| found.peak("matrix-f32"),
    },
    CapabilityGauge {
        name: "galatea_peak_memory_gb_per_s",
        help: "Estimated bandwidth of memory, in 10^9 bytes a second",
        value: |found| found.bandwidth_gb_per_s,
    },
];
