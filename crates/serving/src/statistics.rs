//! Statistics of a model version: counts and durations, as the statistics extension and the metrics report them.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use galatea_tensor::OrderedMap;

use crate::latency::{HistogramSnapshot, LatencyRecorder, LatencyStage, SummarySnapshot};

/// A count and the time spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationStatistic {
    /// How often.
    pub count: u64,
    /// Total time in nanoseconds.
    pub ns: u64,
}

impl DurationStatistic {
    fn add(&mut self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}

/// Requests by outcome and by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InferStatistics {
    /// Requests that succeeded, from arrival to response.
    pub success: DurationStatistic,
    /// Requests that failed after they were accepted.
    pub fail: DurationStatistic,
    /// Wait of the successful requests before their execution.
    pub queue: DurationStatistic,
    /// Gathering of inputs, counted for each request of a batch.
    pub compute_input: DurationStatistic,
    /// Execution of the model, counted for each request of a batch.
    pub compute_infer: DurationStatistic,
    /// Scattering of outputs, counted for each request of a batch.
    pub compute_output: DurationStatistic,
    /// Answers from the response cache.
    pub cache_hit: DurationStatistic,
    /// Look-ups and insertions of the response cache.
    pub cache_miss: DurationStatistic,
}

/// Executions with one batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Size of the executed batch.
    pub batch_size: u64,
    /// Gathering of inputs.
    pub compute_input: DurationStatistic,
    /// Execution of the model.
    pub compute_infer: DurationStatistic,
    /// Scattering of outputs.
    pub compute_output: DurationStatistic,
}

/// Responses with one index, of a decoupled model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseStatistics {
    /// Execution until this response.
    pub compute_infer: DurationStatistic,
    /// Making of the outputs.
    pub compute_output: DurationStatistic,
    /// Responses with outputs.
    pub success: DurationStatistic,
    /// Error responses.
    pub fail: DurationStatistic,
    /// Responses without outputs.
    pub empty_response: DurationStatistic,
    /// Responses given up because of cancellation.
    pub cancel: DurationStatistic,
}

/// Memory held by a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Kind of memory, such as `CPU`.
    pub kind: String,
    /// Number of the device.
    pub id: i64,
    /// Bytes.
    pub byte_size: u64,
}

/// Everything that the statistics extension tells about a model version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelStatistics {
    /// Model.
    pub name: String,
    /// Version.
    pub version: String,
    /// Time of the last execution in milliseconds since 1970; 0 for never.
    pub last_inference_ms: u64,
    /// Batch items of successful requests.
    pub inference_count: u64,
    /// Executions of the model.
    pub execution_count: u64,
    /// By outcome and stage.
    pub inference_stats: InferStatistics,
    /// By response index; decoupled models only.
    pub response_stats: OrderedMap<String, ResponseStatistics>,
    /// By size of the executed batch, ascending.
    pub batch_stats: Vec<BatchStatistics>,
    /// Memory, where it is known.
    pub memory_usage: Vec<MemoryUsage>,
}

/// Why an accepted request failed; the `reason` label of `nv_inference_request_failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureReason {
    /// A queue policy refused it.
    Rejected,
    /// Its client gave up.
    Canceled,
    /// The model failed.
    Backend,
    /// Anything else.
    Other,
}

impl FailureReason {
    /// Every reason, in the order of the label values.
    pub const ALL: [Self; 4] = [Self::Backend, Self::Canceled, Self::Other, Self::Rejected];

    /// The label value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rejected => "REJECTED",
            Self::Canceled => "CANCELED",
            Self::Backend => "BACKEND",
            Self::Other => "OTHER",
        }
    }
}

/// Counters of one model version for the `nv_inference_*` metric families.
#[derive(Clone, Debug)]
pub struct ModelMetricsRow {
    /// Model.
    pub model: String,
    /// The repository where it lies, if repositories are namespaces; else empty.
    pub namespace: String,
    /// Version.
    pub version: String,
    /// The configuration's metric tags; they become labels with an underscore before the name.
    pub tags: Vec<(String, String)>,
    /// Failures by reason; all four rows are present.
    pub failures: Vec<(FailureReason, u64)>,
    /// Batch items of successful requests.
    pub inference_count: u64,
    /// Executions.
    pub execution_count: u64,
    /// Requests and durations.
    pub stats: InferStatistics,
    /// Requests that wait for an execution.
    pub pending: u64,
    /// Time that loading took.
    pub load_duration: Duration,
    /// Whether the model uses the response cache.
    pub response_cache: bool,
    /// Distributions of durations; empty unless the options ask for them.
    pub summaries: Vec<SummarySnapshot>,
    /// Times to the first response in milliseconds, where the options ask for them.
    pub first_response: Option<HistogramSnapshot>,
    /// Multiplications and additions, where they are counted.
    pub arithmetic: Option<ArithmeticSnapshot>,
    /// Requests with a latency goal, where the model or a request had one.
    pub goals: Option<GoalCounts>,
}

/// Multiplications and additions of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArithmeticSnapshot {
    /// Sum over all executions so far.
    pub operations: u64,
    /// How many there were in a nanosecond of execution since the snapshot before; 0 where nothing was executed.
    pub per_ns: f64,
}

/// Time spent in the stages of one execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComputeTimes {
    /// Gathering of inputs.
    pub input: Duration,
    /// Execution of the model.
    pub infer: Duration,
    /// Scattering of outputs.
    pub output: Duration,
}

/// Adds up the stages of the executions that one request causes, besides the statistics of the models.
#[derive(Debug, Default)]
pub struct StageTimes {
    sums: Mutex<(Duration, ComputeTimes)>,
}

impl StageTimes {
    /// Adds an execution and the wait before it.
    pub fn add(&self, queue: Duration, compute: ComputeTimes) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.0 += queue;
        sums.1.input += compute.input;
        sums.1.infer += compute.infer;
        sums.1.output += compute.output;
    }

    /// The sums of the waits and of the executions.
    #[must_use]
    pub fn sums(&self) -> (Duration, ComputeTimes) {
        *self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests with a latency goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoalCounts {
    /// Number of requests that were answered in time.
    pub met: u64,
    /// Number of requests that were answered later, or with an error.
    pub missed: u64,
    /// Number of requests that were not taken because they would have been answered later.
    pub refused: u64,
}

/// One request of a finished execution.
#[derive(Clone, Copy, Debug)]
pub struct RequestOutcome {
    /// It is no request but fills a gap between sequences: only the size of the batch counts it.
    pub filler: bool,
    /// Why it was answered with an error; `None` if it succeeded.
    pub failure: Option<FailureReason>,
    /// Its batch items; at least 1.
    pub batch_size: u64,
    /// Wait before the execution.
    pub queue: Duration,
    /// From arrival to response.
    pub total: Duration,
    /// How long that should be at most.
    pub goal: Option<Duration>,
}

#[derive(Debug, Default)]
struct VersionCounters {
    goals: GoalCounts,
    last_inference_ms: u64,
    inference_count: u64,
    execution_count: u64,
    stats: InferStatistics,
    batches: OrderedMap<u64, BatchStatistics>,
    failures: OrderedMap<FailureReason, u64>,
    /// By index.
    responses: Vec<ResponseStatistics>,
}

impl VersionCounters {
    fn batch(&mut self, times: ComputeTimes, batch_size: u64, now_ms: u64) {
        self.last_inference_ms = now_ms;
        self.execution_count += 1;
        let batch = self.batches.entry(batch_size).or_default();
        batch.batch_size = batch_size;
        batch.compute_input.add(times.input);
        batch.compute_infer.add(times.infer);
        batch.compute_output.add(times.output);
    }

    fn request(&mut self, times: ComputeTimes, request: &RequestOutcome) {
        if let Some(goal) = request.goal {
            match request.failure {
                None if request.total <= goal => self.goals.met += 1,
                // Who has left waits for nothing.
                Some(FailureReason::Canceled) => {}
                _ => self.goals.missed += 1,
            }
        }
        if let Some(reason) = request.failure {
            self.stats.fail.add(request.total);
            *self.failures.entry(reason).or_default() += 1;
            return;
        }
        self.inference_count += request.batch_size;
        self.stats.success.add(request.total);
        self.stats.queue.add(request.queue);
        self.stats.compute_input.add(times.input);
        self.stats.compute_infer.add(times.infer);
        self.stats.compute_output.add(times.output);
    }
}

/// Kinds of a decoupled model's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// It has outputs.
    Success,
    /// It is an error.
    Fail,
    /// It only says that the request is done.
    Empty,
    /// It was given up because of cancellation.
    Cancel,
}

/// Counters of one model version; its instances add to them.
#[derive(Debug, Default)]
pub struct StatisticsRecorder {
    counters: Mutex<VersionCounters>,
    latencies: OnceLock<LatencyRecorder>,
}

impl StatisticsRecorder {
    /// Counts one execution and its requests. `now_ms` is in milliseconds since 1970.
    pub fn execution(&self, times: ComputeTimes, requests: &[RequestOutcome], now_ms: u64) {
        let batch_size = requests.iter().map(|request| request.batch_size).sum();
        let mut counters = self.lock();
        counters.batch(times, batch_size, now_ms);
        for request in requests.iter().filter(|request| !request.filler) {
            counters.request(times, request);
        }
        drop(counters);
        for request in requests.iter().filter(|request| !request.filler) {
            self.observe(times, request);
        }
    }

    /// Counts one execution without its requests.
    pub fn batch(&self, times: ComputeTimes, batch_size: u64, now_ms: u64) {
        self.lock().batch(times, batch_size, now_ms);
    }

    /// Counts one executed request without its execution.
    pub fn request(&self, times: ComputeTimes, request: &RequestOutcome) {
        self.lock().request(times, request);
        self.observe(times, request);
    }

    /// Keeps distributions of durations too, from now on.
    pub(crate) fn keep(&self, latencies: Option<LatencyRecorder>) {
        if let Some(latencies) = latencies {
            // Set once, when the model version is made.
            self.latencies.set(latencies).ok();
        }
    }

    /// The distributions, where they are kept.
    pub(crate) fn latencies(&self) -> Option<&LatencyRecorder> {
        self.latencies.get()
    }

    fn observe(&self, times: ComputeTimes, request: &RequestOutcome) {
        if let (Some(latencies), None) = (self.latencies(), request.failure) {
            latencies.observe(&[
                (LatencyStage::Request, request.total),
                (LatencyStage::Queue, request.queue),
                (LatencyStage::ComputeInput, times.input),
                (LatencyStage::ComputeInfer, times.infer),
                (LatencyStage::ComputeOutput, times.output),
            ]);
        }
    }

    /// Counts a response of a decoupled model by its index.
    pub fn response(&self, index: usize, kind: ResponseKind, infer: Duration, output: Duration) {
        let mut counters = self.lock();
        if counters.responses.len() <= index {
            counters.responses.resize_with(index + 1, ResponseStatistics::default);
        }
        let Some(response) = counters.responses.get_mut(index) else { return };
        let total = infer + output;
        match kind {
            ResponseKind::Success => {
                response.compute_infer.add(infer);
                response.compute_output.add(output);
                response.success.add(total);
            }
            ResponseKind::Fail => {
                response.compute_infer.add(infer);
                response.compute_output.add(output);
                response.fail.add(total);
            }
            ResponseKind::Empty => response.empty_response.add(total),
            ResponseKind::Cancel => response.cancel.add(total),
        }
    }

    /// Counts a request that the response cache answered. `lookup` is the time of finding the answer.
    pub fn cache_hit(&self, total: Duration, lookup: Duration, now_ms: u64) {
        if let Some(latencies) = self.latencies() {
            let queue = total.saturating_sub(lookup);
            latencies.observe(&[(LatencyStage::Queue, queue), (LatencyStage::CacheHit, lookup)]);
            latencies.observe_first_response(total);
        }
        let mut counters = self.lock();
        counters.last_inference_ms = now_ms;
        counters.stats.success.add(total);
        counters.stats.queue.add(total.saturating_sub(lookup));
        counters.stats.cache_hit.add(lookup);
    }

    /// Counts a request that the response cache did not know: the time of looking and of keeping the answer.
    pub fn cache_miss(&self, time: Duration) {
        self.lock().stats.cache_miss.add(time);
        if let Some(latencies) = self.latencies() {
            latencies.observe(&[(LatencyStage::CacheMiss, time)]);
        }
    }

    /// Counts a request that failed before any execution.
    pub fn failure(&self, reason: FailureReason, total: Duration) {
        let mut counters = self.lock();
        counters.stats.fail.add(total);
        *counters.failures.entry(reason).or_default() += 1;
    }

    /// Counts a request that was not taken because it would not have been answered in time.
    pub(crate) fn refused_goal(&self) {
        self.lock().goals.refused += 1;
    }

    /// Counts a request with a goal that was given up before any execution.
    pub(crate) fn missed_goal(&self) {
        self.lock().goals.missed += 1;
    }

    /// Requests with a latency goal.
    pub(crate) fn goals(&self) -> GoalCounts {
        self.lock().goals
    }

    /// The counters as the statistics extension shows them.
    #[must_use]
    pub fn snapshot(&self, name: &str, version: &str) -> ModelStatistics {
        let counters = self.lock();
        ModelStatistics {
            name: name.to_owned(),
            version: version.to_owned(),
            last_inference_ms: counters.last_inference_ms,
            inference_count: counters.inference_count,
            execution_count: counters.execution_count,
            inference_stats: counters.stats,
            response_stats: by_index(&counters.responses),
            batch_stats: counters.batches.values().copied().collect(),
            memory_usage: Vec::new(),
        }
    }

    /// Failures by reason, all reasons present.
    #[must_use]
    pub fn failures(&self) -> Vec<(FailureReason, u64)> {
        let counters = self.lock();
        let of = |reason| counters.failures.get(&reason).copied().unwrap_or(0);
        FailureReason::ALL.map(|reason| (reason, of(reason))).to_vec()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VersionCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Indices that a response had.
fn by_index(responses: &[ResponseStatistics]) -> OrderedMap<String, ResponseStatistics> {
    let counted = responses.iter().enumerate().filter(|(_, of)| **of != Default::default());
    counted.map(|(index, of)| (index.to_string(), *of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_meet_their_goals_or_miss_them() {
        let recorder = StatisticsRecorder::default();
        let ms = Duration::from_millis;
        let request = |total, failure| RequestOutcome {
            filler: false,
            failure,
            batch_size: 1,
            queue: ms(0),
            total: ms(total),
            goal: Some(ms(10)),
        };
        let failed = Some(FailureReason::Backend);
        let left = Some(FailureReason::Canceled);
        let requests = [request(10, None), request(11, None), request(1, failed), request(1, left)];
        recorder.execution(ComputeTimes::default(), &requests, 0);
        recorder
            .request(ComputeTimes::default(), &RequestOutcome { goal: None, ..request(1, None) });
        recorder.refused_goal();
        assert_eq!(recorder.goals(), GoalCounts { met: 1, missed: 2, refused: 1 });
    }

    #[test]
    fn a_batch_is_one_execution_and_every_request_bears_its_whole_time() {
        let recorder = StatisticsRecorder::default();
        let ms = Duration::from_millis;
        let times = ComputeTimes { input: ms(1), infer: ms(5), output: ms(2) };
        let request = |success: bool, batch_size| RequestOutcome {
            filler: false,
            failure: (!success).then_some(FailureReason::Backend),
            batch_size,
            queue: ms(3),
            total: ms(20),
            goal: None,
        };
        recorder.execution(times, &[request(true, 1), request(true, 2), request(false, 1)], 77);
        recorder.failure(FailureReason::Rejected, ms(9));
        let stats = recorder.snapshot("m", "1");
        assert_eq!(
            (stats.inference_count, stats.execution_count, stats.last_inference_ms),
            (3, 1, 77)
        );
        assert_eq!(stats.inference_stats.success, DurationStatistic { count: 2, ns: 40_000_000 });
        assert_eq!(stats.inference_stats.queue.count, stats.inference_stats.success.count);
        assert_eq!(
            stats.inference_stats.compute_infer,
            DurationStatistic { count: 2, ns: 10_000_000 }
        );
        assert_eq!(stats.inference_stats.fail, DurationStatistic { count: 2, ns: 29_000_000 });
        assert_eq!(stats.batch_stats.len(), 1);
        assert_eq!(
            (stats.batch_stats[0].batch_size, stats.batch_stats[0].compute_infer.count),
            (4, 1)
        );
        assert_eq!(
            recorder.failures(),
            [
                (FailureReason::Backend, 1),
                (FailureReason::Canceled, 0),
                (FailureReason::Other, 0),
                (FailureReason::Rejected, 1)
            ]
        );
    }
}
