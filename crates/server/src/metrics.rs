//! The metrics page: Triton's families in Prometheus' text format.

use std::fmt::Write;

use galatea_serving::statistics::{DurationStatistic, FailureReason, ModelMetricsRow};

use crate::app::App;
use crate::host;

/// A family with one or more series for each model version.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: Value,
}

enum Value {
    /// One number.
    One(fn(&ModelMetricsRow) -> f64),
    /// One number, only for models with a response cache.
    Cached(fn(&ModelMetricsRow) -> f64),
    /// One number for each reason of failure.
    Failures,
}

fn us(duration: DurationStatistic) -> f64 {
    (duration.ns / 1000) as f64
}

macro_rules! families {
    ($($name:literal $kind:literal $help:literal $value:expr;)*) => {
        &[$(Family { name: $name, kind: $kind, help: $help, value: $value }),*]
    };
}

/// Families of models, in the order of the page.
const FAMILIES: &[Family] = families![
    "nv_inference_request_success" "counter"
        "Number of successful inference requests, all batch sizes"
        Value::One(|row| row.stats.success.count as f64);
    "nv_inference_request_failure" "counter"
        "Number of failed inference requests, all batch sizes"
        Value::Failures;
    "nv_inference_count" "counter"
        "Number of inferences performed (does not include cached requests)"
        Value::One(|row| row.inference_count as f64);
    "nv_inference_exec_count" "counter"
        "Number of model executions performed (does not include cached requests)"
        Value::One(|row| row.execution_count as f64);
    "nv_inference_request_duration_us" "counter"
        "Cumulative inference request duration in microseconds (includes cached requests)"
        Value::One(|row| us(row.stats.success));
    "nv_inference_queue_duration_us" "counter"
        "Cumulative inference queuing duration in microseconds (includes cached requests)"
        Value::One(|row| us(row.stats.queue));
    "nv_inference_compute_input_duration_us" "counter"
        "Cumulative compute input duration in microseconds (does not include cached requests)"
        Value::One(|row| us(row.stats.compute_input));
    "nv_inference_compute_infer_duration_us" "counter"
        "Cumulative compute inference duration in microseconds (does not include cached requests)"
        Value::One(|row| us(row.stats.compute_infer));
    "nv_inference_compute_output_duration_us" "counter"
        "Cumulative inference compute output duration in microseconds (does not include cached requests)"
        Value::One(|row| us(row.stats.compute_output));
    "nv_cache_num_hits_per_model" "counter"
        "Number of cache hits per model"
        Value::Cached(|row| row.stats.cache_hit.count as f64);
    "nv_cache_hit_duration_per_model" "counter"
        "Total cache hit duration per model, in microseconds"
        Value::Cached(|row| us(row.stats.cache_hit));
    "nv_cache_num_misses_per_model" "counter"
        "Number of cache misses per model"
        Value::Cached(|row| row.stats.cache_miss.count as f64);
    "nv_cache_miss_duration_per_model" "counter"
        "Total cache miss (insert+lookup) duration per model, in microseconds"
        Value::Cached(|row| us(row.stats.cache_miss));
    "nv_inference_pending_request_count" "gauge"
        "Instantaneous number of pending requests awaiting execution per-model."
        Value::One(|row| row.pending as f64);
    "nv_model_load_duration_secs" "gauge"
        "Model load time in seconds"
        Value::One(|row| row.load_duration.as_secs_f64());
];

/// The page of a server.
#[must_use]
pub fn render(app: &App) -> String {
    let mut page = models(&app.core().metrics_snapshot());
    let gauges = if app.host_metrics() { host::gauges() } else { Vec::new() };
    for gauge in gauges {
        head(&mut page, gauge.name, "gauge", gauge.help);
        line(&mut page, gauge.name, "", gauge.value);
    }
    page
}

fn models(rows: &[ModelMetricsRow]) -> String {
    let mut page = String::with_capacity(4096 + rows.len() * 2048);
    for family in FAMILIES {
        head(&mut page, family.name, family.kind, family.help);
        for row in rows {
            match &family.value {
                Value::One(value) => line(&mut page, family.name, &labels(row, None), value(row)),
                Value::Cached(value) if row.response_cache => {
                    line(&mut page, family.name, &labels(row, None), value(row));
                }
                Value::Cached(_) => {}
                Value::Failures => {
                    for &(reason, count) in &row.failures {
                        line(&mut page, family.name, &labels(row, Some(reason)), count as f64);
                    }
                }
            }
        }
    }
    page
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n").ok();
}

fn line(page: &mut String, name: &str, labels: &str, value: f64) {
    writeln!(page, "{name}{labels} {value}").ok();
}

/// Labels in alphabetical order; tags of the model have an underscore before their names.
fn labels(row: &ModelMetricsRow, reason: Option<FailureReason>) -> String {
    let mut labels: Vec<(String, &str)> =
        row.tags.iter().map(|(key, value)| (format!("_{key}"), value.as_str())).collect();
    labels.push(("model".to_owned(), &row.model));
    labels.push(("version".to_owned(), &row.version));
    if let Some(reason) = reason {
        labels.push(("reason".to_owned(), reason.name()));
    }
    labels.sort();
    let texts: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", texts.join(","))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_serving::statistics::InferStatistics;
    use std::time::Duration;

    fn row() -> ModelMetricsRow {
        ModelMetricsRow {
            model: "m".to_owned(),
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
        }
    }

    #[test]
    fn series_have_sorted_labels_and_tags() {
        let page = models(&[row()]);
        for text in [
            "# HELP nv_inference_count Number of inferences performed (does not include cached requests)\n",
            "# TYPE nv_inference_count counter\n",
            "nv_inference_count{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 7\n",
            "nv_inference_request_failure{_team=\"a\\\"b\",model=\"m\",reason=\"CANCELED\",version=\"1\"} 2\n",
            "nv_inference_request_duration_us{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 21958\n",
            "nv_model_load_duration_secs{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 0.25\n",
        ] {
            assert!(page.contains(text), "{text} is not in\n{page}");
        }
        assert!(!page.contains("nv_cache_num_hits_per_model{"));
    }
}
