//! Counters of an engine, which only grow, and what it does now.

use std::time::Instant;

use galatea_tensor::OrderedMap;

use crate::sampling::SamplingParameters;

/// Bounds of times until the first token, in seconds, as vLLM has them.
const FIRST_TOKEN: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// Bounds of times between tokens.
const BETWEEN_TOKENS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
/// Bounds of times of whole requests and their phases.
const REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
/// Bounds of numbers of tokens.
const TOKENS: &[f64] =
    &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5];
/// Bounds of rows of a step.
const ROWS: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];
/// Bounds of numbers of answers.
const ANSWERS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];

/// How often values lay where.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineHistogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl EngineHistogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// For times of whole requests and their phases.
    fn of_requests() -> Self {
        Self::new(REQUEST)
    }

    /// For numbers of tokens.
    fn of_tokens() -> Self {
        Self::new(TOKENS)
    }

    /// For rows of steps.
    fn of_steps() -> Self {
        Self::new(ROWS)
    }

    /// Counts a value.
    pub(crate) fn observe(&mut self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += value;
    }

    /// The greatest value of each part but the last one, which has no bound.
    #[must_use]
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// How many values lie in each part.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The sum of all values.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Bounds that grow by a third each, from a millisecond on: quantiles between them are off by a sixth at most.
const FINE: &[f64] = &[
    0.001, 0.00133, 0.00178, 0.00237, 0.00316, 0.00422, 0.00562, 0.0075, 0.01, 0.0133, 0.0178,
    0.0237, 0.0316, 0.0422, 0.0562, 0.075, 0.1, 0.133, 0.178, 0.237, 0.316, 0.422, 0.562, 0.75,
    1.0, 1.33, 1.78, 2.37, 3.16, 4.22, 5.62, 7.5, 10.0, 13.3, 17.8, 23.7, 31.6, 42.2, 56.2, 75.0,
    100.0, 133.0, 178.0, 237.0, 316.0, 422.0, 562.0, 750.0, 1000.0,
];

/// The numbers of an engine. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineStatistics {
    /// Sequences that run now.
    pub running: usize,
    /// Requests and preempted sequences that wait now.
    pub waiting: usize,
    /// Number of them whose blocks are kept outside the caches.
    pub swapped: usize,
    /// Blocks that there are.
    pub blocks: usize,
    /// Blocks that sequences have now.
    pub active_blocks: usize,
    /// Blocks that nobody has, whose contents may be used again.
    pub cached_blocks: usize,
    /// Blocks that there is room for outside the caches.
    pub swap_blocks: usize,
    /// Blocks that are kept there now.
    pub swapped_blocks: usize,
    /// Positions of a block.
    pub block_size: usize,
    /// Steps that were computed.
    pub steps: u64,
    /// Sequences that had to give their blocks back.
    pub preemptions: u64,
    /// Blocks that were copied out of the caches.
    pub swapped_out: u64,
    /// Blocks that were brought back.
    pub swapped_in: u64,
    /// Tokens of prompts that were looked up in the cache.
    pub prefix_queries: u64,
    /// Number of them that were found.
    pub prefix_hits: u64,
    /// Tokens of prompts that were computed or found.
    pub prompt_tokens: u64,
    /// Tokens that were generated.
    pub generation_tokens: u64,
    /// Requests that came.
    pub requests: u64,
    /// Requests that were refused because too many waited.
    pub refused: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were taken back.
    pub cancelled: u64,
    /// Answers that ended, by the word of their reason.
    pub finished: OrderedMap<&'static str, u64>,
    /// Guesses of speculation.
    pub drafts: u64,
    /// Tokens of these.
    pub draft_tokens: u64,
    /// Number of them that were the model's own.
    pub accepted_tokens: u64,
    /// From submission until the first token.
    pub time_to_first_token: EngineHistogram,
    /// Between tokens of an answer.
    pub inter_token_latency: EngineHistogram,
    /// From submission until the end.
    pub request_latency: EngineHistogram,
    /// The same in finer buckets.
    pub fine_request_latency: EngineHistogram,
    /// From submission until the prompt began to be computed.
    pub queue_time: EngineHistogram,
    /// From then until the end.
    pub inference_time: EngineHistogram,
    /// From when the prompt began to be computed until the first token.
    pub prefill_time: EngineHistogram,
    /// From the first token until the end.
    pub decode_time: EngineHistogram,
    /// Tokens of the prompt of a request.
    pub request_prompt_tokens: EngineHistogram,
    /// Tokens of the answers of a request.
    pub request_generation_tokens: EngineHistogram,
    /// The most tokens that a request's answers may have.
    pub request_max_tokens: EngineHistogram,
    /// Answers of a request.
    pub request_answers: EngineHistogram,
    /// Rows of a step.
    pub step_tokens: EngineHistogram,
}

impl EngineStatistics {
    /// Nothing has happened yet.
    pub(crate) fn new(blocks: usize, block_size: usize) -> Self {
        Self {
            running: 0,
            waiting: 0,
            swapped: 0,
            blocks,
            active_blocks: 0,
            cached_blocks: 0,
            swap_blocks: 0,
            swapped_blocks: 0,
            block_size,
            steps: 0,
            preemptions: 0,
            swapped_out: 0,
            swapped_in: 0,
            prefix_queries: 0,
            prefix_hits: 0,
            prompt_tokens: 0,
            generation_tokens: 0,
            requests: 0,
            refused: 0,
            failed: 0,
            cancelled: 0,
            finished: OrderedMap::new(),
            drafts: 0,
            draft_tokens: 0,
            accepted_tokens: 0,
            time_to_first_token: EngineHistogram::new(FIRST_TOKEN),
            inter_token_latency: EngineHistogram::new(BETWEEN_TOKENS),
            request_latency: EngineHistogram::of_requests(),
            fine_request_latency: EngineHistogram::new(FINE),
            queue_time: EngineHistogram::of_requests(),
            inference_time: EngineHistogram::of_requests(),
            prefill_time: EngineHistogram::of_requests(),
            decode_time: EngineHistogram::of_requests(),
            request_prompt_tokens: EngineHistogram::of_tokens(),
            request_generation_tokens: EngineHistogram::of_tokens(),
            request_max_tokens: EngineHistogram::of_tokens(),
            request_answers: EngineHistogram::new(ANSWERS),
            step_tokens: EngineHistogram::of_steps(),
        }
    }

    /// Counts a request that was taken, with so many tokens of its prompt or texts.
    pub(super) fn take_in(&mut self, tokens: usize) {
        self.requests += 1;
        self.request_prompt_tokens.observe(tokens as f64);
    }

    /// Counts what a request asks for.
    pub(super) fn note_sampling(&mut self, sampling: &SamplingParameters) {
        self.request_answers.observe(f64::from(sampling.n));
        if let Some(most) = sampling.max_tokens {
            self.request_max_tokens.observe(f64::from(most));
        }
    }

    /// Counts the end of a request with so many tokens of its answers. The times are those of its
    /// submission, of when its prompt began to be computed, and of its first token.
    pub(super) fn end(&mut self, now: Instant, times: [Option<Instant>; 3], tokens: usize) {
        let since = |from: Instant| now.saturating_duration_since(from).as_secs_f64();
        let [submitted, admitted, first] = times;
        if let Some(submitted) = submitted {
            self.request_latency.observe(since(submitted));
            self.fine_request_latency.observe(since(submitted));
        }
        self.request_generation_tokens.observe(tokens as f64);
        if let (Some(admitted), Some(first)) = (admitted, first) {
            let prefill = first.saturating_duration_since(admitted);
            self.inference_time.observe(since(admitted));
            self.prefill_time.observe(prefill.as_secs_f64());
            self.decode_time.observe(since(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_a_bound_belongs_to_the_part_below() {
        let mut histogram = EngineHistogram::new(ANSWERS);
        for value in [1.0, 1.5, 2.0, 100.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.counts(), [1, 2, 0, 0, 0, 1]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 104.5));
    }
}
