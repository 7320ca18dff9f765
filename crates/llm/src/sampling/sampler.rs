//! The choice of a token, and what a request remembers between its tokens.

use std::hash::{BuildHasher, Hasher, RandomState};

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::{LogitNeed, SamplingParameters, TOP, TokenLogprobs, TopTokens, logprobs, row};
use crate::error::{LlmError, LlmErrorKind, Result};

/// Tokens that are e^-30 times as probable as the first one never come: 2^22 of them together have
/// less than one part in two million.
const NEGLIGIBLE: f32 = -30.0;

/// Candidates that are collected before the smallest of them are dropped, as a multiple of `top_k`.
const SLACK: usize = 8;

/// Which tokens of the prompt a counter has seen; the other bits count those of the answer.
const IN_PROMPT: u32 = 1 << 31;

/// The memory of a step, shared by the requests of an engine.
#[derive(Debug)]
pub struct SamplerScratch {
    candidates: Vec<TokenCandidate>,
    /// The row as the model gave it, for log-probabilities.
    raw: Vec<f32>,
    /// Sums of weights of parts of a row.
    sums: Vec<f64>,
}

impl SamplerScratch {
    /// Memory for rows of `vocabulary_size` logits.
    pub fn new(vocabulary_size: usize) -> Self {
        Self {
            candidates: Vec::with_capacity(vocabulary_size),
            raw: Vec::with_capacity(vocabulary_size),
            sums: Vec::with_capacity(vocabulary_size / 1024 + 1),
        }
    }
}

/// A token that may be chosen: its logit, and later its weight.
#[derive(Debug, Clone, Copy)]
struct TokenCandidate {
    token: u32,
    logit: f32,
    weight: f32,
}

/// Chooses the tokens of one answer.
///
/// A choice depends on the logits, the parameters, the seed and how many tokens were observed
/// before, and on nothing else: not on the other rows of a batch, nor on choices that were thrown
/// away.
#[derive(Debug, Clone)]
pub struct TokenSampler {
    parameters: SamplingParameters,
    generator: Pcg64,
    /// Tokens that end the answer, which must not come before `min_tokens`.
    ends: Vec<u32>,
    /// How often each token occurs; empty without penalties.
    counts: Vec<u32>,
    /// The tokens that occur.
    occurring: Vec<u32>,
    observed: u32,
}

impl TokenSampler {
    /// A sampler for the `index`-th of a request's answers to `prompt`. `eos` are the model's end
    /// tokens.
    ///
    /// # Errors
    /// Parameters out of their ranges ([`SamplingParameters::validate`]).
    pub fn new(
        parameters: &SamplingParameters,
        vocabulary_size: usize,
        prompt: &[u32],
        eos: &[u32],
        index: u32,
    ) -> Result<Self> {
        parameters.validate(vocabulary_size)?;
        let seed = parameters.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let own_ends = if parameters.ignore_eos { &[] } else { eos };
        let mut ends = own_ends.to_vec();
        ends.extend(&parameters.stop_token_ids);
        let mut sampler = Self {
            generator: Pcg64::new(mix(seed), u128::from(index)),
            parameters: parameters.clone(),
            ends,
            counts: Vec::new(),
            occurring: Vec::new(),
            observed: 0,
        };
        if sampler.has_penalties() {
            sampler.counts = vec![0; vocabulary_size];
            let room = prompt.len() + parameters.max_tokens.map_or(0, |most| most as usize);
            sampler.occurring.reserve(room.min(vocabulary_size));
            for token in prompt {
                sampler.count(*token, |count| *count |= IN_PROMPT);
            }
        }
        Ok(sampler)
    }

    /// The parameters.
    pub fn parameters(&self) -> &SamplingParameters {
        &self.parameters
    }

    /// How many tokens of the answer were observed.
    pub fn observed(&self) -> u32 {
        self.observed
    }

    /// Takes a token into the answer, chosen or forced.
    pub fn observe(&mut self, token: u32) {
        self.observed = self.observed.saturating_add(1);
        self.count(token, |count| {
            if *count & !IN_PROMPT < IN_PROMPT - 1 {
                *count += 1;
            }
        });
    }

    fn count(&mut self, token: u32, change: impl FnOnce(&mut u32)) {
        if let Some(count) = self.counts.get_mut(token as usize) {
            if *count == 0 {
                self.occurring.push(token);
            }
            change(count);
        }
    }

    fn has_penalties(&self) -> bool {
        let p = &self.parameters;
        p.repetition_penalty != 1.0 || p.presence_penalty != 0.0 || p.frequency_penalty != 0.0
    }

    /// Chooses a token from the row of logits of the next position, which it changes. Logits of -∞
    /// never come. The token is not observed.
    ///
    /// # Errors
    /// A row without a finite logit.
    pub fn sample(&self, logits: &mut [f32], scratch: &mut SamplerScratch) -> Result<u32> {
        self.process(logits);
        let index = if self.parameters.is_greedy() {
            row::argmax(logits)
        } else {
            let largest = row::largest(logits);
            largest.is_finite().then(|| self.choose(logits, largest, scratch)).flatten()
        };
        index.and_then(|index| u32::try_from(index).ok()).ok_or_else(impossible)
    }

    /// Need of the next choice from a row of so many logits; no choice after it needs more, unless the parameters
    /// say [`LogitNeed::Logits`]. Penalties, biases and log-probabilities concern tokens wherever they stand, and
    /// without `top_k` the share of a token depends on all others.
    #[must_use]
    pub fn need(&self, vocabulary_size: usize) -> LogitNeed {
        let p = &self.parameters;
        let changes = self.has_penalties() || self.changes_logits();
        match usize::try_from(p.top_k) {
            _ if changes || p.logprobs.is_some() => LogitNeed::Logits,
            _ if p.is_greedy() => LogitNeed::Best,
            Ok(1..=TOP) if self.top_k(vocabulary_size) > 0 => LogitNeed::Top,
            _ => LogitNeed::Logits,
        }
    }

    /// Chooses from the most probable tokens the one that [`Self::sample`] chooses from all, where
    /// [`Self::need`] says that they are enough.
    ///
    /// # Errors
    /// Fails like [`Self::sample`].
    pub fn sample_top(&self, top: TopTokens<'_>, scratch: &mut SamplerScratch) -> Result<u32> {
        let p = &self.parameters;
        if p.is_greedy() {
            return top.best().ok_or_else(impossible);
        }
        let largest = top.largest();
        let candidates = &mut scratch.candidates;
        if !largest.is_finite() {
            return Err(impossible());
        }
        let least = self.least(largest);
        let most = usize::try_from(p.top_k).unwrap_or(0);
        let likely = top.each().take(most).filter(|(_, logit)| *logit >= least);
        candidates.clear();
        candidates.extend(likely.map(|(token, logit)| TokenCandidate {
            token,
            logit,
            weight: 0.0,
        }));
        let index = self.draw(candidates, largest, None);
        index.and_then(|index| u32::try_from(index).ok()).ok_or_else(impossible)
    }

    /// Chooses like [`Self::sample`], with the log-probabilities of the row as it came, where `logprobs` is set.
    ///
    /// # Errors
    /// Fails like [`Self::sample`].
    pub fn sample_with_logprobs(
        &self,
        logits: &mut [f32],
        scratch: &mut SamplerScratch,
    ) -> Result<(u32, Option<TokenLogprobs>)> {
        let Some(top) = self.parameters.logprobs else {
            return Ok((self.sample(logits, scratch)?, None));
        };
        if !self.changes_logits() {
            let token = self.sample(logits, scratch)?;
            return Ok((token, logprobs(logits, token, top as usize)));
        }
        let mut raw = std::mem::take(&mut scratch.raw);
        raw.clear();
        raw.extend_from_slice(logits);
        let token = self.sample(logits, scratch);
        let told = token.as_ref().ok().and_then(|token| logprobs(&raw, *token, top as usize));
        scratch.raw = raw;
        Ok((token?, told))
    }

    /// Whether [`Self::sample`] changes the next row.
    pub fn changes_logits(&self) -> bool {
        !self.occurring.is_empty()
            || !self.parameters.logit_bias.is_empty()
            || self.observed < self.parameters.min_tokens
    }

    /// Changes of single logits: penalties, biases, and ends that come too early.
    fn process(&self, logits: &mut [f32]) {
        let p = &self.parameters;
        for &token in &self.occurring {
            let (Some(logit), Some(count)) =
                (logits.get_mut(token as usize), self.counts.get(token as usize))
            else {
                continue;
            };
            *logit *=
                if *logit > 0.0 { p.repetition_penalty.recip() } else { p.repetition_penalty };
            let times = count & !IN_PROMPT;
            if times > 0 {
                #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^24")]
                let times = times as f32;
                *logit -= p.presence_penalty + p.frequency_penalty * times;
            }
        }
        for (token, bias) in &p.logit_bias {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += bias;
            }
        }
        if self.observed < p.min_tokens {
            for token in &self.ends {
                if let Some(logit) = logits.get_mut(*token as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
    }

    fn choose(&self, logits: &[f32], largest: f32, scratch: &mut SamplerScratch) -> Option<usize> {
        let p = &self.parameters;
        let scale = p.temperature.recip();
        let top_k = self.top_k(logits.len());
        if top_k == 0 && p.top_p >= 1.0 && p.min_p <= 0.0 && p.typical_p >= 1.0 {
            let sums = &mut scratch.sums;
            let sum = row::sum_parts(logits, largest, scale, sums);
            return row::index_at_sum(logits, sums, largest, scale, self.random() * sum);
        }
        let least = self.least(largest);
        let candidates = &mut scratch.candidates;
        // Without other limits, top-p is a share of all tokens, of which few are collected.
        let of_all = p.top_p < 1.0 && top_k == 0 && p.min_p <= 0.0;
        let wanted = of_all.then(|| row::sum_exp(logits, largest, scale) * f64::from(p.top_p));
        if top_k > 0 {
            collect_top_k(logits, least, top_k, candidates);
        } else if let Some(wanted) = wanted {
            collect_share(logits, largest, least, scale, wanted, candidates);
        } else {
            collect_from(logits, least, candidates);
        }
        self.draw(candidates, largest, wanted)
    }

    /// How many of so many tokens remain; 0 where all do.
    fn top_k(&self, vocabulary_size: usize) -> usize {
        let top_k = usize::try_from(self.parameters.top_k).unwrap_or(0);
        if top_k >= vocabulary_size { 0 } else { top_k }
    }

    /// The logit below which no token comes.
    fn least(&self, largest: f32) -> f32 {
        let p = &self.parameters;
        let nats = if p.min_p > 0.0 { p.min_p.ln().max(NEGLIGIBLE) } else { NEGLIGIBLE };
        largest + nats * p.temperature
    }

    /// Draws one of the candidates. `wanted` is the weight that top-p keeps, where that is no share of theirs.
    fn draw(
        &self,
        candidates: &mut Vec<TokenCandidate>,
        largest: f32,
        wanted: Option<f64>,
    ) -> Option<usize> {
        let p = &self.parameters;
        let scale = p.temperature.recip();
        candidates.sort_unstable_by(by_logit);
        let mut sum = weigh(candidates, largest, scale);
        if p.top_p < 1.0 {
            sum = keep_share(candidates, wanted.unwrap_or(sum * f64::from(p.top_p)));
        }
        if p.typical_p < 1.0 {
            sum = keep_typical(candidates, sum, f64::from(p.typical_p));
        }
        pick(candidates, self.random() * sum)
    }

    /// A number from 0 up to 1 that depends on the seed and the position alone.
    fn random(&self) -> f64 {
        let mut generator = self.generator.clone();
        generator.advance(u128::from(self.observed));
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let bits = (generator.next_u64() >> 11) as f64;
        bits / (1u64 << 53) as f64
    }
}

/// Spreads a seed over the generator's state, as neighbouring seeds are common.
fn mix(seed: u64) -> u128 {
    let step = |x: u64| {
        let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    };
    u128::from(step(seed)) << 64 | u128::from(step(seed ^ u64::MAX))
}

fn impossible() -> LlmError {
    let text = "no token is possible: all logits are -inf or NaN";
    LlmError::new(LlmErrorKind::Parameter, "logits", text)
}

/// The more probable token first; of equal ones the lower id. No candidate is NaN, and zeros are equal.
fn by_logit(a: &TokenCandidate, b: &TokenCandidate) -> std::cmp::Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(std::cmp::Ordering::Equal).then(a.token.cmp(&b.token))
}

fn candidate(index: usize, logit: f32) -> TokenCandidate {
    TokenCandidate { token: u32::try_from(index).unwrap_or(u32::MAX), logit, weight: 0.0 }
}

fn collect_from(logits: &[f32], least: f32, candidates: &mut Vec<TokenCandidate>) {
    candidates.clear();
    row::visit_from(logits, least, |i, logit| {
        candidates.push(candidate(i, logit));
        least
    });
}

/// Collects at least the `top_k` most probable tokens: whenever there are several times as many, a
/// partial selection drops the others and raises the least logit.
fn collect_top_k(logits: &[f32], least: f32, top_k: usize, candidates: &mut Vec<TokenCandidate>) {
    candidates.clear();
    let full = (top_k * SLACK).max(256);
    let mut least = least;
    row::visit_from(logits, least, |i, logit| {
        candidates.push(candidate(i, logit));
        if candidates.len() >= full {
            let (_, last, _) = candidates.select_nth_unstable_by(top_k - 1, by_logit);
            least = last.logit;
            candidates.truncate(top_k);
        }
        least
    });
    if candidates.len() > top_k {
        candidates.select_nth_unstable_by(top_k - 1, by_logit);
        candidates.truncate(top_k);
    }
}

/// Collects tokens from the most probable one down, until their weights reach `wanted`.
fn collect_share(
    logits: &[f32],
    largest: f32,
    least: f32,
    scale: f32,
    wanted: f64,
    candidates: &mut Vec<TokenCandidate>,
) {
    let mut nats = 4.0;
    loop {
        let from = (largest - nats / scale).max(least);
        collect_from(logits, from, candidates);
        // Rounding may make the sum a little larger than its parts.
        if from <= least || weigh(candidates, largest, scale) >= wanted * (1.0 + 1e-5) {
            return;
        }
        nats *= 1.5;
    }
}

/// Gives candidates their weights, and their sum.
fn weigh(candidates: &mut [TokenCandidate], largest: f32, scale: f32) -> f64 {
    let mut sum = 0.0;
    for candidate in candidates {
        candidate.weight = row::weight(candidate.logit, largest, scale);
        sum += f64::from(candidate.weight);
    }
    sum
}

/// Keeps the first candidates whose weights reach `wanted`, and gives their sum.
fn keep_share(candidates: &mut Vec<TokenCandidate>, wanted: f64) -> f64 {
    let mut sum = 0.0;
    let mut kept = 0;
    for candidate in candidates.iter() {
        sum += f64::from(candidate.weight);
        kept += 1;
        if sum >= wanted {
            break;
        }
    }
    candidates.truncate(kept);
    sum
}

/// Keeps the candidates whose information is nearest to the entropy until they have the share
/// `typical_p` of `total`.
fn keep_typical(candidates: &mut Vec<TokenCandidate>, total: f64, typical_p: f64) -> f64 {
    let information = |candidate: &TokenCandidate| (total / f64::from(candidate.weight)).ln();
    let entropy: f64 = candidates
        .iter()
        .filter(|candidate| candidate.weight > row::NO_WEIGHT)
        .map(|candidate| f64::from(candidate.weight) / total * information(candidate))
        .sum();
    let distance = |candidate: &TokenCandidate| (information(candidate) - entropy).abs();
    candidates.sort_unstable_by(|a, b| distance(a).total_cmp(&distance(b)).then(by_logit(a, b)));
    keep_share(candidates, total * typical_p)
}

/// The candidate at which the running sum of weights passes `target`.
fn pick(candidates: &[TokenCandidate], target: f64) -> Option<usize> {
    let mut sum = 0.0;
    let mut last = None;
    for candidate in candidates.iter().filter(|candidate| candidate.weight > row::NO_WEIGHT) {
        sum += f64::from(candidate.weight);
        last = Some(candidate.token as usize);
        if target < sum {
            break;
        }
    }
    last
}
