//! Activity of a server, computed from two readings of its metrics.

use std::time::Duration;

use galatea_tensor::{OrderedMap, OrderedSet};
use serde::Serialize;

use super::page::MetricsPage;

/// A look at a server.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerLook {
    pub(super) page: MetricsPage,
    /// Names and states of models, where the server tells.
    pub(super) index: Vec<IndexedVersion>,
    /// The server's name and version, where it tells.
    pub(super) server: Option<String>,
}

/// A model version of the repository's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedVersion {
    pub(super) model: String,
    pub(super) version: String,
    pub(super) state: String,
}

/// Activity of a server between two readings; values that it does not report are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ServerSnapshot {
    /// Address of the server.
    pub(super) address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// Seconds between the looks.
    pub(super) seconds: f64,
    pub(super) machine: MachineSnapshot,
    pub(super) units: Vec<UnitSnapshot>,
    pub(super) gpus: Vec<GpuSnapshot>,
    pub(super) models: Vec<ModelSnapshot>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct MachineSnapshot {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_used_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_total_bytes: Option<f64>,
    /// Watts by unit.
    #[serde(skip_serializing_if = "OrderedMap::is_empty")]
    pub(super) watts: OrderedMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) celsius: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thermal_state: Option<&'static str>,
    /// The share of its full pace that the server may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pace: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_joule: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct UnitSnapshot {
    pub(super) unit: String,
    pub(super) busy_percent: f64,
    pub(super) runs_per_s: f64,
    pub(super) running: f64,
    pub(super) owed_ms: f64,
    pub(super) open: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct GpuSnapshot {
    pub(super) gpu: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) busy_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_used_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_budget_bytes: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ModelSnapshot {
    pub(super) model: String,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requests_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mean_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99_ms: Option<f64>,
    /// The mean time in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failures_per_s: Option<f64>,
    /// Tokens of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_tokens_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kv_cache_percent: Option<f64>,
}

/// The words for thermal states, by their numbers.
const HEAT: [&str; 4] = ["nominal", "fair", "serious", "critical"];

/// Two looks, and the time between them.
struct LookPair<'l> {
    before: &'l MetricsPage,
    now: &'l MetricsPage,
    seconds: f64,
}

impl ServerSnapshot {
    pub(super) fn of(address: &str, before: &ServerLook, now: &ServerLook, time: Duration) -> Self {
        let seconds = time.as_secs_f64().max(1e-6);
        let between = LookPair { before: &before.page, now: &now.page, seconds };
        Self {
            address: address.to_owned(),
            server: now.server.clone(),
            seconds,
            machine: between.machine(),
            units: between.units(),
            gpus: between.gpus(),
            models: between.models(&now.index),
        }
    }
}

impl LookPair<'_> {
    fn now(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.now.sum(name, labels).filter(|value| value.is_finite())
    }

    /// Returns the growth of a counter; one that fell was reset by a restart of the server.
    fn grew(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let now = self.now(name, labels)?;
        let before = self.before.sum(name, labels).unwrap_or(0.0);
        Some(if before <= now { now - before } else { now })
    }

    /// Returns the growth of a counter per second.
    fn rate(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.grew(name, labels).map(|grew| grew / self.seconds)
    }

    /// Returns the growth of one counter per step of another.
    fn each(&self, sum: &str, count: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let sum = self.grew(sum, labels)?;
        let count = self.grew(count, labels)?;
        (count > 0.0).then(|| sum / count)
    }

    fn machine(&self) -> MachineSnapshot {
        let one = |name: &str| self.now(name, &[]);
        let watts = self.now.all("apple_power_watts").iter();
        let heat = one("apple_thermal_state").and_then(|state| {
            HEAT.iter().enumerate().find(|(at, _)| *at as f64 == state).map(|(_, word)| *word)
        });
        MachineSnapshot {
            cpu_percent: one("nv_cpu_utilization").map(|share| share * 100.0),
            memory_used_bytes: one("nv_cpu_memory_used_bytes"),
            memory_total_bytes: one("nv_cpu_memory_total_bytes"),
            watts: watts.map(|of| (of.label("unit").to_owned(), of.value)).collect(),
            celsius: one("apple_temperature_celsius"),
            thermal_state: heat,
            pace: one("apple_pace_ratio"),
            tokens_per_joule: one("apple_tokens_per_joule"),
        }
    }

    fn units(&self) -> Vec<UnitSnapshot> {
        let of = |name: &str| {
            let labels = [("unit", name)];
            let busy = self.rate("apple_unit_busy_seconds_total", &labels).unwrap_or(0.0);
            UnitSnapshot {
                unit: name.to_owned(),
                busy_percent: (busy * 100.0).clamp(0.0, 100.0),
                runs_per_s: self.rate("apple_unit_runs_total", &labels).unwrap_or(0.0),
                running: self.now("apple_unit_running", &labels).unwrap_or(0.0),
                owed_ms: self.now("apple_unit_owed_seconds", &labels).unwrap_or(0.0) * 1e3,
                open: self.now("apple_unit_open", &labels) != Some(0.0),
            }
        };
        let all = self.now.all("apple_unit_busy_seconds_total").iter();
        all.map(|series| of(series.label("unit"))).collect()
    }

    fn gpus(&self) -> Vec<GpuSnapshot> {
        let names = ["metal_gpu_utilization_percent", "metal_memory_stats"];
        let series = names.iter().flat_map(|name| self.now.all(name));
        let known: OrderedMap<&str, &str> =
            series.map(|series| (series.label("gpu"), series.label("name"))).collect();
        let of = |(gpu, name): (&str, &str)| {
            let labels = [("gpu", gpu)];
            let memory = |kind| self.now("metal_memory_stats", &[("gpu", gpu), ("kind", kind)]);
            GpuSnapshot {
                gpu: gpu.to_owned(),
                name: name.to_owned(),
                busy_percent: self.now("metal_gpu_utilization_percent", &labels),
                gb_per_s: self.now("metal_memory_bandwidth_gbps", &labels),
                memory_used_bytes: memory("used"),
                memory_budget_bytes: memory("budget"),
            }
        };
        known.into_iter().map(of).collect()
    }

    fn models(&self, index: &[IndexedVersion]) -> Vec<ModelSnapshot> {
        let counted = self.now.all("nv_inference_request_success").iter();
        let counted = counted.map(|one| (one.label("model"), one.label("version")));
        let indexed = index.iter().map(|one| (one.model.as_str(), one.version.as_str()));
        let mut known: OrderedSet<(&str, &str)> = counted.chain(indexed).collect();
        let served: OrderedSet<&str> = known.iter().map(|(model, _)| *model).collect();
        let language = self.now.all("vllm:num_requests_running").iter();
        let language = language.map(|one| one.label("model_name"));
        known.extend(language.filter(|name| !served.contains(name)).map(|name| (name, "")));
        known.into_iter().map(|(model, version)| self.model(model, version, index)).collect()
    }

    fn model(&self, model: &str, version: &str, index: &[IndexedVersion]) -> ModelSnapshot {
        let labels = [("model", model), ("version", version)];
        let own = [("model_name", model)];
        let state = index.iter().find(|one| one.model == model && one.version == version);
        let state = state.map(|one| one.state.clone()).filter(|state| !state.is_empty());
        let success = self.rate("nv_inference_request_success", &labels);
        let milli = |micros: f64| micros / 1e3;
        let count = "nv_inference_request_success";
        let quantile = |quantile: &'static str| {
            let [model, version] = labels;
            self.now("nv_inference_request_summary_us", &[model, version, ("quantile", quantile)])
        };
        let latency = "vllm:e2e_request_latency_seconds";
        // Other servers have vLLM's buckets alone, the first of which ends at 0.3 s.
        let spread = |share: f64| {
            let fine = self.spread("galatea_request_latency_seconds", &own, share);
            fine.or_else(|| self.spread(latency, &own, share)).map(|seconds| seconds * 1e3)
        };
        let each = |name: &str| {
            let sum = format!("{name}_sum");
            let count = format!("{name}_count");
            self.each(&sum, &count, &own).map(|seconds| seconds * 1e3)
        };
        // The requests of OpenAI's front ends go past the counters of inferences.
        let language = self.rate("vllm:e2e_request_latency_seconds_count", &own);
        let mean = self.each("nv_inference_request_duration_us", count, &labels).map(milli);
        let queue = self.each("nv_inference_queue_duration_us", count, &labels).map(milli);
        let waiting = self.now("vllm:num_requests_waiting", &own);
        ModelSnapshot {
            model: model.to_owned(),
            version: version.to_owned(),
            state,
            requests_per_s: language.or(success),
            mean_ms: each(latency).or(mean),
            p50_ms: spread(0.5).or_else(|| quantile("0.5").map(milli)),
            p99_ms: spread(0.99).or_else(|| quantile("0.99").map(milli)),
            queue_ms: each("vllm:request_queue_time_seconds").or(queue),
            pending: waiting.or_else(|| self.now("nv_inference_pending_request_count", &labels)),
            failures_per_s: self.rate("nv_inference_request_failure", &labels),
            tokens_per_s: self.rate("vllm:generation_tokens_total", &own),
            prompt_tokens_per_s: self.rate("vllm:prompt_tokens_total", &own),
            kv_cache_percent: self.now("vllm:kv_cache_usage_perc", &own).map(|share| share * 100.0),
        }
    }

    /// The value that a share of what a histogram counted between the looks does not exceed, as if values lay evenly
    /// in their bucket. Nothing where it lies in the first bucket, which has no beginning to count from.
    fn spread(&self, name: &str, labels: &[(&str, &str)], share: f64) -> Option<f64> {
        let name = format!("{name}_bucket");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for series in self.now.all(&name) {
            let mine = labels.iter().all(|(label, value)| series.label(label) == *value);
            let Some(bound) = mine.then(|| series.label("le").parse().ok()).flatten() else {
                continue;
            };
            let mut full = labels.to_vec();
            full.push(("le", series.label("le")));
            let before = self.before.sum(&name, &full).unwrap_or(0.0);
            buckets.push((bound, series.value - before));
        }
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = buckets.last().map(|(_, count)| count * share).filter(|count| *count > 0.0)?;
        let mut from = 0.0;
        let mut below = 0.0;
        for (bound, count) in buckets {
            if count >= wanted && count > below {
                let part = (wanted - below) / (count - below);
                // Of what lies beyond all bounds no more is known.
                let value = if bound.is_finite() { from + (bound - from) * part } else { from };
                return (from > 0.0).then_some(value);
            }
            if bound.is_finite() {
                from = bound;
            }
            below = count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str) -> ServerLook {
        ServerLook { page: MetricsPage::parse(text), ..ServerLook::default() }
    }

    #[test]
    fn rates_are_of_what_lies_between_two_looks() {
        let before = look(
            "apple_unit_busy_seconds_total{unit=\"cpu\"} 10\napple_unit_runs_total{unit=\"cpu\"} 100\n\
             nv_inference_request_success{model=\"m\",version=\"1\"} 4\n\
             nv_inference_request_duration_us{model=\"m\",version=\"1\"} 1000\n\
             nv_inference_request_failure{model=\"m\",version=\"1\",reason=\"OTHER\"} 1\n",
        );
        let now = look(
            "apple_unit_busy_seconds_total{unit=\"cpu\"} 11\napple_unit_runs_total{unit=\"cpu\"} 120\n\
             apple_unit_owed_seconds{unit=\"cpu\"} 0.5\napple_unit_open{unit=\"cpu\"} 0\n\
             apple_power_watts{unit=\"gpu\"} 4\napple_thermal_state 2\nnv_cpu_utilization 0.5\n\
             nv_inference_request_success{model=\"m\",version=\"1\"} 14\n\
             nv_inference_request_duration_us{model=\"m\",version=\"1\"} 51000\n\
             nv_inference_request_summary_us{model=\"m\",version=\"1\",quantile=\"0.99\"} 7000\n\
             nv_inference_request_summary_us{model=\"m\",version=\"1\",quantile=\"0.5\"} NaN\n\
             nv_inference_request_failure{model=\"m\",version=\"1\",reason=\"OTHER\"} 5\n",
        );
        let found = ServerSnapshot::of("a", &before, &now, Duration::from_secs(2));
        let unit = &found.units[0];
        assert_eq!((unit.busy_percent, unit.runs_per_s, unit.owed_ms), (50.0, 10.0, 500.0));
        assert!(!unit.open);
        let model = &found.models[0];
        assert_eq!((model.requests_per_s, model.mean_ms), (Some(5.0), Some(5.0)));
        assert_eq!((model.p50_ms, model.p99_ms), (None, Some(7.0)));
        assert_eq!((model.failures_per_s, model.tokens_per_s), (Some(2.0), None));
        let machine = &found.machine;
        assert_eq!((machine.thermal_state, machine.cpu_percent), (Some("serious"), Some(50.0)));
        assert_eq!((machine.watts["gpu"], machine.celsius), (4.0, None));
    }

    #[test]
    fn language_models_have_quantiles_of_their_histograms() {
        let before = look(
            "vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"1\"} 10\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"2\"} 10\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"+Inf\"} 10\n",
        );
        let now = look(
            "vllm:num_requests_running{model_name=\"c\"} 1\nvllm:kv_cache_usage_perc{model_name=\"c\"} 0.25\n\
             vllm:generation_tokens_total{model_name=\"c\"} 50\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"1\"} 10\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"2\"} 18\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"+Inf\"} 20\n",
        );
        let found = ServerSnapshot::of("a", &before, &now, Duration::from_secs(1));
        let model = &found.models[0];
        // Of ten, eight lie between one and two seconds.
        assert_eq!((model.p50_ms, model.p99_ms), (Some(1625.0), Some(2000.0)));
        assert_eq!((model.tokens_per_s, model.kv_cache_percent), (Some(50.0), Some(25.0)));
    }

    #[test]
    fn short_requests_have_quantiles_of_fine_buckets_or_none() {
        let coarse = "vllm:num_requests_running{model_name=\"c\"} 1\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"0.3\"} 10\n\
             vllm:e2e_request_latency_seconds_bucket{model_name=\"c\",le=\"+Inf\"} 10\n";
        let fine = "galatea_request_latency_seconds_bucket{model_name=\"c\",le=\"0.0178\"} 0\n\
             galatea_request_latency_seconds_bucket{model_name=\"c\",le=\"0.0237\"} 10\n\
             galatea_request_latency_seconds_bucket{model_name=\"c\",le=\"+Inf\"} 10\n";
        let found = |text: &str| {
            let now = look(text);
            let second = Duration::from_secs(1);
            ServerSnapshot::of("a", &ServerLook::default(), &now, second).models[0].p50_ms
        };
        assert_eq!(found(coarse), None, "the middle of the first bucket would be made up");
        let middle = found(&format!("{coarse}{fine}")).unwrap();
        assert!((17.8..=23.7).contains(&middle), "{middle}");
    }

    #[test]
    fn a_counter_that_fell_began_anew() {
        let page = |count: u32| {
            look(&format!(
                "apple_unit_busy_seconds_total{{unit=\"a\"}} {count}\napple_unit_runs_total{{unit=\"a\"}} {count}\n"
            ))
        };
        let found = ServerSnapshot::of("a", &page(100), &page(3), Duration::from_secs(1));
        assert_eq!(found.units[0].runs_per_s, 3.0);
    }
}
