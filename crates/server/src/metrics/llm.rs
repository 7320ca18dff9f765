//! Families of language models, under vLLM's names.

use galatea_llm::engine::{EngineHistogram as Distribution, EngineStatistics};
use galatea_serving::ListedCheckpoint;
use prometheus::proto::{Bucket, Counter, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};

/// Kind of value that a family has for each model.
enum LlmFamilyValue {
    /// A number that goes up and down.
    Gauge(fn(&EngineStatistics) -> f64),
    /// A number that only grows.
    Counter(fn(&EngineStatistics) -> u64),
    /// A distribution of values in buckets.
    Histogram(fn(&EngineStatistics) -> &Distribution),
    /// Numbers that only grow, one for each reason why answers end.
    Finished,
}

/// Models that have a family.
#[derive(PartialEq, Eq)]
enum FamilyScope {
    /// Models that generate text, and encoders.
    AllModels,
    /// Models that generate text.
    Generators,
}

struct LlmFamily {
    name: &'static str,
    help: &'static str,
    scope: FamilyScope,
    value: LlmFamilyValue,
}

macro_rules! families {
    ($($name:literal $help:literal $scope:ident $value:expr;)*) => {
        &[$(LlmFamily {
            name: $name,
            help: $help,
            scope: FamilyScope::$scope,
            value: $value,
        }),*]
    };
}

use LlmFamilyValue::{Counter as Count, Finished, Gauge, Histogram as Spread};

/// The share of blocks that sequences have.
fn used(of: &EngineStatistics) -> f64 {
    of.active_blocks as f64 / of.blocks.max(1) as f64
}

const FAMILIES: &[LlmFamily] = families![
    "vllm:num_requests_running" "Number of sequences in model execution batches"
        AllModels Gauge(|of| of.running as f64);
    "vllm:num_requests_waiting" "Number of requests waiting to be processed"
        AllModels Gauge(|of| of.waiting as f64);
    "vllm:num_requests_swapped" "Number of requests swapped to CPU"
        Generators Gauge(|of| of.swapped as f64);
    "vllm:kv_cache_usage_perc" "KV-cache usage. 1 means 100 percent usage"
        Generators Gauge(used);
    "vllm:gpu_cache_usage_perc" "The older name of vllm:kv_cache_usage_perc"
        Generators Gauge(used);
    "vllm:cpu_cache_usage_perc" "Usage of the swap space. 1 means 100 percent usage"
        Generators Gauge(|of| of.swapped_blocks as f64 / of.swap_blocks.max(1) as f64);
    "vllm:prefix_cache_queries_total" "Prefix cache queries, in terms of number of queried tokens"
        Generators Count(|of| of.prefix_queries);
    "vllm:prefix_cache_hits_total" "Prefix cache hits, in terms of number of cached tokens"
        Generators Count(|of| of.prefix_hits);
    "vllm:num_preemptions_total" "Cumulative number of preemptions"
        Generators Count(|of| of.preemptions);
    "vllm:prompt_tokens_total" "Number of prefill tokens processed"
        AllModels Count(|of| of.prompt_tokens);
    "vllm:generation_tokens_total" "Number of generation tokens processed"
        Generators Count(|of| of.generation_tokens);
    "vllm:spec_decode_num_draft_tokens_total" "Number of draft tokens"
        Generators Count(|of| of.draft_tokens);
    "vllm:spec_decode_num_accepted_tokens_total" "Number of accepted tokens"
        Generators Count(|of| of.accepted_tokens);
    "vllm:request_success_total" "Count of successfully processed requests"
        AllModels Finished;
    "vllm:time_to_first_token_seconds" "Histogram of time to first token in seconds"
        Generators Spread(|of| &of.time_to_first_token);
    "vllm:inter_token_latency_seconds" "Histogram of inter-token latency in seconds"
        Generators Spread(|of| &of.inter_token_latency);
    "vllm:time_per_output_token_seconds" "The older name of vllm:inter_token_latency_seconds"
        Generators Spread(|of| &of.inter_token_latency);
    "vllm:e2e_request_latency_seconds" "Histogram of e2e request latency in seconds"
        AllModels Spread(|of| &of.request_latency);
    "galatea_request_latency_seconds" "vllm:e2e_request_latency_seconds in buckets that grow by a third each"
        AllModels Spread(|of| &of.fine_request_latency);
    "vllm:request_queue_time_seconds" "Histogram of time spent in WAITING phase for request"
        AllModels Spread(|of| &of.queue_time);
    "vllm:request_prefill_time_seconds" "Histogram of time spent in PREFILL phase for request"
        Generators Spread(|of| &of.prefill_time);
    "vllm:request_decode_time_seconds" "Histogram of time spent in DECODE phase for request"
        Generators Spread(|of| &of.decode_time);
    "vllm:request_prompt_tokens" "Number of prefill tokens processed"
        AllModels Spread(|of| &of.request_prompt_tokens);
    "vllm:request_generation_tokens" "Number of generation tokens processed"
        Generators Spread(|of| &of.request_generation_tokens);
    "vllm:request_max_num_generation_tokens" "Histogram of maximum number of requested generation tokens"
        Generators Spread(|of| &of.request_max_tokens);
    "vllm:request_params_n" "Histogram of the n request parameter"
        Generators Spread(|of| &of.request_answers);
    "vllm:iteration_tokens_total" "Histogram of number of tokens per engine_step"
        AllModels Spread(|of| &of.step_tokens);
];

/// The families of these models; none without a model.
pub(super) fn page(
    models: &[(String, EngineStatistics)],
    encoders: &[(String, EngineStatistics)],
) -> Vec<MetricFamily> {
    let of = |wanted: &LlmFamily| {
        let kind = match wanted.value {
            Gauge(_) => MetricType::GAUGE,
            Count(_) | Finished => MetricType::COUNTER,
            Spread(_) => MetricType::HISTOGRAM,
        };
        let all = wanted.scope == FamilyScope::AllModels;
        let encoders = if all { encoders } else { &[] };
        let models = models.iter().chain(encoders);
        let values = models.flat_map(|(model, of)| metrics(&wanted.value, model, of));
        family(wanted.name, wanted.help, kind, values.collect())
    };
    FAMILIES.iter().map(of).filter(|family| !family.get_metric().is_empty()).collect()
}

/// Returns the family of memory that models take under a limit; none if there is no limit.
pub(super) fn residency(models: &[ListedCheckpoint]) -> Option<MetricFamily> {
    let of = |model: &ListedCheckpoint| {
        let mut metric = Metric::from_gauge(gauge(model.memory_bytes? as f64));
        metric.set_label(vec![label("model_name", &model.name)]);
        Some(metric)
    };
    let metrics: Vec<Metric> = models.iter().filter_map(of).collect();
    let help = "Memory of a language model under --model-memory-limit; 0 while it is unloaded";
    let name = "galatea_model_memory_bytes";
    (!metrics.is_empty()).then(|| family(name, help, MetricType::GAUGE, metrics))
}

fn metrics(value: &LlmFamilyValue, model: &str, of: &EngineStatistics) -> Vec<Metric> {
    let named = vec![label("model_name", model)];
    match value {
        Gauge(read) => {
            let mut metric = Metric::from_gauge(gauge(read(of)));
            metric.set_label(named);
            vec![metric]
        }
        Count(read) => vec![counted(named, read(of))],
        Spread(read) => {
            let mut metric = Metric::from_label(named);
            metric.set_histogram(histogram(read(of)));
            vec![metric]
        }
        Finished => {
            let labels =
                |reason| vec![label("finished_reason", reason), label("model_name", model)];
            let reasons = of.finished.iter();
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
