//! The metrics page: Triton's families, and vLLM's of language models, in Prometheus' text format.

mod ab_tests;
mod ane;
mod apple;
mod config;
mod custom;
mod devices;
mod families;
mod gpu;
mod gpu_memory;
mod llm;
mod power;
mod refusals;
mod tuning;

use std::sync::OnceLock;

use galatea_providers::HostCapabilities;
use galatea_serving::Core;
use galatea_serving::ListedCheckpoint;
use galatea_serving::backend::CheckpointHandle;
use galatea_serving::latency::{HistogramSnapshot, LatencyStage, SummarySnapshot};
use galatea_serving::statistics::{DurationStatistic, ModelMetricsRow};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType, Quantile,
    Summary,
};
use prometheus::{Encoder, TextEncoder};

pub use config::MetricsConfig;
use families::{CACHE, CAPABILITIES, FAMILIES, FamilyValue, ModelFamily};
use galatea::Engine;
use galatea::host::{self, HostMonitor};
pub(crate) use gpu::GpuMeters;
pub(crate) use refusals::MemoryRefusals;

/// Parts of a server that have figures for the page.
#[derive(Clone, Copy)]
pub(crate) struct MetricsSources<'a> {
    pub(crate) core: &'a Core,
    pub(crate) config: &'a MetricsConfig,
    pub(crate) engine: &'a Engine,
    /// Readings of the machine; `None` where nobody asks for them.
    pub(crate) host: Option<&'a HostMonitor>,
    /// Meters of the GPUs; `None` where nobody asks for them.
    pub(crate) gpus: Option<&'a GpuMeters>,
    /// Requests and answers that found no memory.
    pub(crate) refusals: MemoryRefusals,
}

/// The page of a server.
#[must_use]
pub(crate) fn render(sources: MetricsSources<'_>) -> String {
    let MetricsSources { core, config, engine, .. } = sources;
    let rows = core.metrics_snapshot();
    let mut page = self::models(&rows, config);
    let mut models = Vec::new();
    let mut encoders = Vec::new();
    let listed = core.checkpoints();
    page.extend(llm::residency(&listed));
    for ListedCheckpoint { name, loaded, .. } in listed {
        match loaded {
            Some(CheckpointHandle::Language(model)) => {
                models.push((name, model.engine().statistics()))
            }
            Some(CheckpointHandle::Encoder(engine)) => encoders.push((name, engine.statistics())),
            None => {}
        }
    }
    let tokens = models.iter().map(|(_, statistics)| statistics.generation_tokens).sum();
    page.extend(power::page(engine.power().state(), tokens));
    page.extend(power::of_models(&engine.power().reports()));
    page.extend(ab_tests::page(&core.ab_reports()));
    page.extend(llm::page(&models, &encoders));
    page.extend(ane::page(galatea_coreml::engine::counts()));
    page.extend(devices::page(&engine.device_reports()));
    let records = || engine.tuning_records().count();
    page.extend(tuning::page(&engine.kernel_tuning().versions(), records));
    let memory = engine.gpus().memory();
    page.extend(gpu_memory::page(&memory));
    // Off a Mac the page is Triton's unless somebody asks for more.
    let counts = cfg!(any(target_os = "macos", apple_doubles)) || config.arithmetic;
    page.extend(apple::page(&apple::AppleFacts {
        gpus: &memory,
        reading: engine.power().state().map(|state| state.reading),
        models: if counts { &rows } else { &[] },
        kernels: engine.profiler().kernels(),
    }));
    let readings = sources.host.map(HostMonitor::gauges).unwrap_or_default();
    let pools = [
        ("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes"),
        ("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes"),
    ];
    // There is no pinned memory, so the pool is empty.
    let pools = pools.into_iter().map(|(name, help)| host::HostGauge { name, help, value: 0.0 });
    let cache = core.cache_use();
    let cache = cache.iter().flat_map(|held| {
        CACHE.iter().map(|gauge| host::HostGauge {
            name: gauge.name,
            help: gauge.help,
            value: (gauge.value)(held),
        })
    });
    let machine = config.arithmetic.then(|| capabilities(machine())).into_iter().flatten();
    page.extend(pools.chain(readings).chain(cache).chain(machine).map(|reading| {
        let metric = Metric::from_gauge(gauge(reading.value));
        family(reading.name, reading.help, MetricType::GAUGE, vec![metric])
    }));
    page.extend(sources.gpus.map(GpuMeters::page).unwrap_or_default());
    page.extend(refusals::page(sources.refusals));
    custom::add(&mut page, &core.custom_metrics());
    let mut text = Vec::new();
    if let Err(error) = TextEncoder::new().encode(&page, &mut text) {
        tracing::error!("the metrics cannot be written: {error}");
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Returns the capabilities of this machine.
fn machine() -> &'static HostCapabilities {
    static FOUND: OnceLock<HostCapabilities> = OnceLock::new();
    FOUND.get_or_init(HostCapabilities::detect)
}

/// The estimates that are known.
fn capabilities(found: &HostCapabilities) -> impl Iterator<Item = host::HostGauge> {
    CAPABILITIES.iter().filter_map(|gauge| {
        let value = (gauge.value)(found)?;
        Some(host::HostGauge { name: gauge.name, help: gauge.help, value })
    })
}

/// The families that have anything to say about the models.
fn models(rows: &[ModelMetricsRow], config: &MetricsConfig) -> Vec<MetricFamily> {
    let of = |wanted: &ModelFamily| {
        let metrics: Vec<Metric> =
            rows.iter().flat_map(|row| metrics(&wanted.value, row, config)).collect();
        let kind = match wanted.value {
            FamilyValue::Gauge(_) | FamilyValue::LoadDuration | FamilyValue::OperationRate => {
                MetricType::GAUGE
            }
            FamilyValue::Summary(_) => MetricType::SUMMARY,
            FamilyValue::FirstResponse => MetricType::HISTOGRAM,
            _ => MetricType::COUNTER,
        };
        (!metrics.is_empty()).then(|| family(wanted.name, wanted.help, kind, metrics))
    };
    FAMILIES.iter().filter_map(of).collect()
}

fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

/// Returns the metrics of a family for a model version.
fn metrics(value: &FamilyValue, row: &ModelMetricsRow, config: &MetricsConfig) -> Vec<Metric> {
    let cached = row.response_cache;
    match value {
        FamilyValue::Counter(read) => vec![counted(row, read(row))],
        FamilyValue::Cached(read) if cached => vec![counted(row, read(row))],
        FamilyValue::Duration(read) if config.counters => vec![counted(row, us(read(row)))],
        FamilyValue::CachedDuration(read) if config.counters && cached => {
            vec![counted(row, us(read(row)))]
        }
        FamilyValue::Gauge(read) => vec![measured(row, read(row))],
        FamilyValue::LoadDuration if config.load_durations => {
            vec![measured(row, row.load_duration.as_secs_f64())]
        }
        FamilyValue::Failures => {
            let reasons = row.failures.iter();
            let failure = reasons.map(|&(reason, count)| {
                let mut metric = counted(row, count);
                metric.set_label(labels(row, Some(("reason", reason.name()))));
                metric
            });
            failure.collect()
        }
        FamilyValue::Goals => {
            let goals = row.goals.iter().flat_map(|goals| {
                [("met", goals.met), ("missed", goals.missed), ("refused", goals.refused)]
            });
            let outcome = goals.map(|(outcome, count)| {
                let mut metric = counted(row, count);
                metric.set_label(labels(row, Some(("outcome", outcome))));
                metric
            });
            outcome.collect()
        }
        FamilyValue::Summary(stage) if summarised(*stage, cached) => {
            let found = row.summaries.iter().filter(|summary| summary.stage == *stage);
            found.map(|summary| summary_metric(row, summary)).collect()
        }
        FamilyValue::FirstResponse => {
            row.first_response.iter().map(|found| histogram_metric(row, found)).collect()
        }
        FamilyValue::Operations if config.arithmetic => {
            row.arithmetic.iter().map(|found| counted(row, found.operations)).collect()
        }
        FamilyValue::OperationRate if config.arithmetic => {
            row.arithmetic.iter().map(|found| measured(row, found.per_ns)).collect()
        }
        FamilyValue::Operations
        | FamilyValue::OperationRate
        | FamilyValue::Cached(_)
        | FamilyValue::CachedDuration(_)
        | FamilyValue::Duration(_)
        | FamilyValue::LoadDuration
        | FamilyValue::Summary(_) => Vec::new(),
    }
}

fn measured(row: &ModelMetricsRow, value: f64) -> Metric {
    let mut metric = Metric::from_gauge(gauge(value));
    metric.set_label(labels(row, None));
    metric
}

/// Models with a cache have summaries of it, and none of whole requests: half of those are no inferences.
fn summarised(stage: LatencyStage, cached: bool) -> bool {
    match stage {
        LatencyStage::Request => !cached,
        LatencyStage::CacheHit | LatencyStage::CacheMiss => cached,
        _ => true,
    }
}

fn us(duration: DurationStatistic) -> u64 {
    duration.ns / 1000
}

fn gauge(value: f64) -> Gauge {
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    gauge
}

fn counted(row: &ModelMetricsRow, value: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value as f64);
    let mut metric = Metric::from_label(labels(row, None));
    metric.set_counter(counter);
    metric
}

fn summary_metric(row: &ModelMetricsRow, found: &SummarySnapshot) -> Metric {
    let mut summary = Summary::default();
    summary.set_sample_count(found.count);
    summary.set_sample_sum(found.sum_us as f64);
    let quantile = |&(quantile, value): &(f64, f64)| {
        let mut estimate = Quantile::default();
        estimate.set_quantile(quantile);
        estimate.set_value(value);
        estimate
    };
    summary.set_quantile(found.quantiles.iter().map(quantile).collect());
    let mut metric = Metric::from_label(labels(row, None));
    metric.set_summary(summary);
    metric
}

fn histogram_metric(row: &ModelMetricsRow, found: &HistogramSnapshot) -> Metric {
    let mut histogram = Histogram::default();
    histogram.set_sample_count(found.count);
    histogram.set_sample_sum(found.sum);
    let bucket = |&(bound, count): &(f64, u64)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    };
    histogram.set_bucket(found.buckets.iter().map(bucket).collect());
    let mut metric = Metric::from_label(labels(row, None));
    metric.set_histogram(histogram);
    metric
}

/// Labels in alphabetical order; tags of the model have an underscore before their names.
fn labels(row: &ModelMetricsRow, more: Option<(&str, &str)>) -> Vec<LabelPair> {
    let mut labels: Vec<(String, &str)> =
        row.tags.iter().map(|(key, value)| (format!("_{key}"), value.as_str())).collect();
    labels.push(("model".to_owned(), &row.model));
    if !row.namespace.is_empty() {
        labels.push(("namespace".to_owned(), &row.namespace));
    }
    labels.push(("version".to_owned(), &row.version));
    labels.extend(more.map(|(name, value)| (name.to_owned(), value)));
    labels.sort();
    let pair = |(name, value): (String, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name);
        pair.set_value(value.to_owned());
        pair
    };
    labels.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_serving::statistics::{
        ArithmeticSnapshot, FailureReason, GoalCounts, InferStatistics,
    };
    use std::time::Duration;

    fn row() -> ModelMetricsRow {
        ModelMetricsRow {
            model: "m".to_owned(),
            namespace: String::new(),
            version: "1".to_owned(),
            tags: vec![("team".to_owned(), "a\"b".to_owned())],
            failures: FailureReason::ALL.iter().map(|&reason| (reason, 2)).collect(),
            inference_count: 7,
            execution_count: 3,
            stats: InferStatistics {
                success: DurationStatistic { count: 3, ns: 21_958_063 },
                ..InferStatistics::default()
            },
            pending: 1,
            load_duration: Duration::from_millis(250),
            response_cache: false,
            summaries: LatencyStage::ALL
                .map(|stage| SummarySnapshot {
                    stage,
                    count: 2,
                    sum_us: 30,
                    quantiles: vec![(0.5, 12.0), (0.999, f64::NAN)],
                })
                .to_vec(),
            first_response: Some(HistogramSnapshot {
                buckets: vec![(100.0, 1), (500.0, 3)],
                count: 4,
                sum: 5000.5,
            }),
            arithmetic: None,
            goals: None,
        }
    }

    fn page(row: ModelMetricsRow, config: &MetricsConfig) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&models(&[row], config), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn check(page: &str, present: &[&str], absent: &[&str]) {
        for text in present {
            assert!(page.contains(&format!("{text}\n")), "{text} is not in\n{page}");
        }
        for text in absent {
            assert!(!page.contains(text), "{text} is in\n{page}");
        }
    }

    #[test]
    fn series_have_sorted_labels_and_tags() {
        let config = MetricsConfig { load_durations: true, ..MetricsConfig::default() };
        let page = page(row(), &config);
        let present = [
            "# HELP nv_inference_count Number of inferences performed (does not include cached requests)",
            "# TYPE nv_inference_count counter",
            "nv_inference_count{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 7",
            "nv_inference_request_failure{_team=\"a\\\"b\",model=\"m\",reason=\"CANCELED\",version=\"1\"} 2",
            "nv_inference_request_duration_us{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 21958",
            "nv_model_load_duration_secs{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 0.25",
        ];
        check(&page, &present, &["nv_cache_num_hits_per_model", "nv_cache_hit_summary"]);
    }

    #[test]
    fn peaks_are_on_the_page_where_they_are_known() {
        let mut found = machine().clone();
        (found.peaks, found.bandwidth_gb_per_s) = (Vec::new(), None);
        assert_eq!(capabilities(&found).count(), 0);
        found.peaks.push(galatea_providers::PeakEstimate { unit: "matrix-f32", gflops: 1200.0 });
        let all: Vec<host::HostGauge> = capabilities(&found).collect();
        assert_eq!((all[0].name, all[0].value), ("galatea_peak_matrix_f32_gflops", 1200.0));
    }

    #[test]
    fn arithmetic_is_on_the_page_where_it_is_counted() {
        let arithmetic = Some(ArithmeticSnapshot { operations: 9_000_000_000, per_ns: 12.5 });
        let row = ModelMetricsRow { arithmetic, tags: Vec::new(), ..row() };
        let present = [
            "# TYPE galatea_compute_operations counter",
            "galatea_compute_operations{model=\"m\",version=\"1\"} 9000000000",
            "# TYPE galatea_compute_gflops gauge",
            "galatea_compute_gflops{model=\"m\",version=\"1\"} 12.5",
        ];
        let config = MetricsConfig { arithmetic: true, ..MetricsConfig::default() };
        check(&page(row.clone(), &config), &present, &[]);
        check(&page(row.clone(), &MetricsConfig::default()), &[], &["galatea_compute"]);
        let row = ModelMetricsRow { arithmetic: None, ..row };
        check(&page(row, &config), &[], &["galatea_compute"]);
    }

    #[test]
    fn goals_are_on_the_page_where_there_are_any() {
        let goals = Some(GoalCounts { met: 5, missed: 0, refused: 2 });
        let row = ModelMetricsRow { goals, tags: Vec::new(), ..row() };
        let present = [
            "# TYPE apple_model_goal_total counter",
            "apple_model_goal_total{model=\"m\",outcome=\"met\",version=\"1\"} 5",
            "apple_model_goal_total{model=\"m\",outcome=\"missed\",version=\"1\"} 0",
            "apple_model_goal_total{model=\"m\",outcome=\"refused\",version=\"1\"} 2",
        ];
        check(&page(row.clone(), &MetricsConfig::default()), &present, &[]);
        let row = ModelMetricsRow { goals: None, ..row };
        check(&page(row, &MetricsConfig::default()), &[], &["goal"]);
    }

    #[test]
    fn a_namespace_is_a_label_where_there_is_one() {
        let row = ModelMetricsRow { namespace: "/models/a".to_owned(), ..row() };
        let present = [
            "nv_inference_count{_team=\"a\\\"b\",model=\"m\",namespace=\"/models/a\",version=\"1\"} 7",
        ];
        check(&page(row, &MetricsConfig::default()), &present, &["namespace=\"\""]);
    }

    #[test]
    fn distributions_have_their_label_last() {
        let row = ModelMetricsRow { tags: Vec::new(), ..row() };
        let config = MetricsConfig { counters: false, ..MetricsConfig::default() };
        let present = [
            "# TYPE nv_inference_queue_summary_us summary",
            "nv_inference_queue_summary_us{model=\"m\",version=\"1\",quantile=\"0.5\"} 12",
            "nv_inference_queue_summary_us{model=\"m\",version=\"1\",quantile=\"0.999\"} NaN",
            "nv_inference_queue_summary_us_sum{model=\"m\",version=\"1\"} 30",
            "nv_inference_queue_summary_us_count{model=\"m\",version=\"1\"} 2",
            "# TYPE nv_inference_first_response_histogram_ms histogram",
            "nv_inference_first_response_histogram_ms_bucket{model=\"m\",version=\"1\",le=\"500\"} 3",
            "nv_inference_first_response_histogram_ms_bucket{model=\"m\",version=\"1\",le=\"+Inf\"} 4",
            "nv_inference_first_response_histogram_ms_sum{model=\"m\",version=\"1\"} 5000.5",
        ];
        check(&page(row, &config), &present, &["_duration_us", "nv_cache"]);
    }

    #[test]
    fn models_with_a_cache_have_its_families() {
        let row = ModelMetricsRow { response_cache: true, tags: Vec::new(), ..row() };
        let present = [
            "nv_cache_num_hits_per_model{model=\"m\",version=\"1\"} 0",
            "nv_cache_miss_duration_per_model{model=\"m\",version=\"1\"} 0",
            "nv_cache_miss_summary_per_model_count{model=\"m\",version=\"1\"} 2",
        ];
        check(
            &page(row, &MetricsConfig::default()),
            &present,
            &["nv_inference_request_summary_us", "nv_model_load_duration_secs"],
        );
    }
}
