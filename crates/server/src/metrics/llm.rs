//! Families of language models, under vLLM's names.

use galatea_llm::engine::{EngineStatistics, Histogram as Distribution};
use prometheus::proto::{Bucket, Counter, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};

/// What a family has for each model.
enum Value {
    /// A number that goes up and down.
    Gauge(fn(&EngineStatistics) -> f64),
    /// A number that only grows.
    Counter(fn(&EngineStatistics) -> u64),
    /// How often values lay where.
    Histogram(fn(&EngineStatistics) -> &Distribution),
    /// A number that only grows for each reason why answers end.
    Finished,
}

struct Family {
    name: &'static str,
    help: &'static str,
    value: Value,
}

macro_rules! families {
    ($($name:literal $help:literal $value:expr;)*) => {
        &[$(Family { name: $name, help: $help, value: $value }),*]
    };
}

use Value::{Counter as Count, Finished, Gauge, Histogram as Spread};

/// The share of blocks that sequences have.
fn used(of: &EngineStatistics) -> f64 {
    of.active_blocks as f64 / of.blocks.max(1) as f64
}

const FAMILIES: &[Family] = families![
    "vllm:num_requests_running" "Number of sequences in model execution batches"
        Gauge(|of| of.running as f64);
    "vllm:num_requests_waiting" "Number of requests waiting to be processed"
        Gauge(|of| of.waiting as f64);
    "vllm:kv_cache_usage_perc" "KV-cache usage. 1 means 100 percent usage" Gauge(used);
    "vllm:gpu_cache_usage_perc" "The older name of vllm:kv_cache_usage_perc" Gauge(used);
    "vllm:prefix_cache_queries_total" "Prefix cache queries, in terms of number of queried tokens"
        Count(|of| of.prefix_queries);
    "vllm:prefix_cache_hits_total" "Prefix cache hits, in terms of number of cached tokens"
        Count(|of| of.prefix_hits);
    "vllm:num_preemptions_total" "Cumulative number of preemptions" Count(|of| of.preemptions);
    "vllm:prompt_tokens_total" "Number of prefill tokens processed" Count(|of| of.prompt_tokens);
    "vllm:generation_tokens_total" "Number of generation tokens processed"
        Count(|of| of.generation_tokens);
    "vllm:spec_decode_num_draft_tokens_total" "Number of draft tokens" Count(|of| of.draft_tokens);
    "vllm:spec_decode_num_accepted_tokens_total" "Number of accepted tokens"
        Count(|of| of.accepted_tokens);
    "vllm:request_success_total" "Count of successfully processed requests" Finished;
    "vllm:time_to_first_token_seconds" "Histogram of time to first token in seconds"
        Spread(|of| &of.time_to_first_token);
    "vllm:inter_token_latency_seconds" "Histogram of inter-token latency in seconds"
        Spread(|of| &of.inter_token_latency);
    "vllm:time_per_output_token_seconds" "The older name of vllm:inter_token_latency_seconds"
        Spread(|of| &of.inter_token_latency);
    "vllm:e2e_request_latency_seconds" "Histogram of e2e request latency in seconds"
        Spread(|of| &of.request_latency);
    "vllm:request_queue_time_seconds" "Histogram of time spent in WAITING phase for request"
        Spread(|of| &of.queue_time);
    "vllm:request_prefill_time_seconds" "Histogram of time spent in PREFILL phase for request"
        Spread(|of| &of.prefill_time);
    "vllm:request_decode_time_seconds" "Histogram of time spent in DECODE phase for request"
        Spread(|of| &of.decode_time);
    "vllm:request_prompt_tokens" "Number of prefill tokens processed"
        Spread(|of| &of.request_prompt_tokens);
    "vllm:request_generation_tokens" "Number of generation tokens processed"
        Spread(|of| &of.request_generation_tokens);
    "vllm:request_max_num_generation_tokens" "Histogram of maximum number of requested generation tokens"
        Spread(|of| &of.request_max_tokens);
    "vllm:request_params_n" "Histogram of the n request parameter" Spread(|of| &of.request_answers);
    "vllm:iteration_tokens_total" "Histogram of number of tokens per engine_step"
        Spread(|of| &of.step_tokens);
];

/// The families of these models; none without a model.
pub(super) fn page(models: &[(String, EngineStatistics)]) -> Vec<MetricFamily> {
    let of = |wanted: &Family| {
        let (name, help) = (wanted.name, wanted.help);
        let kind = match wanted.value {
            Value::Gauge(_) => MetricType::GAUGE,
            Value::Counter(_) | Value::Finished => MetricType::COUNTER,
            Value::Histogram(_) => MetricType::HISTOGRAM,
        };
        let metrics = models.iter().flat_map(|(model, of)| metrics(&wanted.value, model, of));
        family(name, help, kind, metrics.collect())
    };
    let known = FAMILIES.iter().filter(|_| !models.is_empty());
    known.map(of).filter(|family| !family.get_metric().is_empty()).collect()
}

fn metrics(value: &Value, model: &str, of: &EngineStatistics) -> Vec<Metric> {
    let named = vec![label("model_name", model)];
    match value {
        Value::Gauge(read) => {
            let mut metric = Metric::from_gauge(gauge(read(of)));
            metric.set_label(named);
            vec![metric]
        }
        Value::Counter(read) => vec![counted(named, read(of))],
        Value::Histogram(read) => {
            let mut metric = Metric::from_label(named);
            metric.set_histogram(histogram(read(of)));
            vec![metric]
        }
        Value::Finished => {
            let reasons = of.finished.iter();
            let labels =
                |reason| vec![label("finished_reason", reason), label("model_name", model)];
            reasons.map(|(reason, count)| counted(labels(reason), *count)).collect()
        }
    }
}

fn label(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

fn counted(labels: Vec<LabelPair>, value: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value as f64);
    let mut metric = Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

fn histogram(of: &Distribution) -> Histogram {
    let mut histogram = Histogram::default();
    histogram.set_sample_count(of.count());
    histogram.set_sample_sum(of.sum());
    let mut sum = 0;
    let buckets = of.bounds().iter().zip(of.counts()).map(|(bound, count)| {
        sum += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(sum);
        bucket
    });
    histogram.set_bucket(buckets.collect());
    histogram
}
