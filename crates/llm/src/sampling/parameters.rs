//! How tokens are chosen, as a request states it.

use galatea_tensor::OrderedMap;

use serde::{Deserialize, Deserializer};

use crate::error::{LlmError, LlmErrorKind, Result};

/// The most answers of one request.
const MAX_N: u32 = 128;
/// The most alternatives of a token with log-probabilities.
const MAX_LOGPROBS: u32 = 100;
/// The most stop strings, and the longest one.
const MAX_STOPS: usize = 64;
const MAX_STOP_BYTES: usize = 1024;
/// The most biased tokens.
const MAX_BIASES: usize = 4096;

/// How tokens are chosen and when an answer ends. Names and defaults are those of vLLM.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingParameters {
    /// Divides logits; 0 chooses the most probable token.
    pub temperature: f32,
    /// How many of the most probable tokens remain; 0 and -1 keep all.
    pub top_k: i64,
    /// The share of probability that the most probable tokens that remain have together.
    pub top_p: f32,
    /// The least probability of a token, as a share of that of the most probable one.
    pub min_p: f32,
    /// The share of probability of the tokens whose information is nearest to the expected one
    /// (Meister et al., "Locally Typical Sampling", 2022).
    pub typical_p: f32,
    /// Divides positive and multiplies negative logits of tokens of the prompt and the answer.
    pub repetition_penalty: f32,
    /// Taken from logits of tokens of the answer.
    pub presence_penalty: f32,
    /// Taken from logits of tokens of the answer, for each time that they occur.
    pub frequency_penalty: f32,
    /// Added to logits, by token.
    pub logit_bias: OrderedMap<u32, f32>,
    /// Decides all random choices; without one they differ each time.
    pub seed: Option<u64>,
    /// How many answers.
    pub n: u32,
    /// Only the value of `n` is accepted: answers are not generated to be thrown away.
    pub best_of: Option<u32>,
    /// How many alternatives of each token are told with their log-probabilities; 0 tells that of
    /// the token itself.
    pub logprobs: Option<u32>,
    /// The same for tokens of the prompt.
    pub prompt_logprobs: Option<u32>,
    /// The fewest tokens of an answer: before, nothing ends it.
    pub min_tokens: u32,
    /// The most tokens of an answer; without a limit, as many as the context holds.
    pub max_tokens: Option<u32>,
    /// Texts that end an answer.
    #[serde(deserialize_with = "one_or_many")]
    pub stop: Vec<String>,
    /// Tokens that end an answer.
    pub stop_token_ids: Vec<u32>,
    /// Whether the stop string belongs to the answer.
    pub include_stop_str_in_output: bool,
    /// Whether the model's own end tokens do not end an answer.
    pub ignore_eos: bool,
    /// Whether the text of special tokens is left out of answers.
    pub skip_special_tokens: bool,
}

impl Default for SamplingParameters {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: OrderedMap::new(),
            seed: None,
            n: 1,
            best_of: None,
            logprobs: None,
            prompt_logprobs: None,
            min_tokens: 0,
            max_tokens: Some(16),
            stop: Vec::new(),
            stop_token_ids: Vec::new(),
            include_stop_str_in_output: false,
            ignore_eos: false,
            skip_special_tokens: true,
        }
    }
}

/// A string, a list of strings, or null.
fn one_or_many<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StopCondition {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(input)? {
        None => Vec::new(),
        Some(StopCondition::One(one)) => vec![one],
        Some(StopCondition::Many(many)) => many,
    })
}

impl SamplingParameters {
    /// Whether the most probable token is always chosen.
    pub fn is_greedy(&self) -> bool {
        self.temperature < 1e-5
    }

    /// Compares each field with its range.
    ///
    /// # Errors
    /// The first field that is out of its range, with its value and the range.
    pub fn validate(&self, vocabulary_size: usize) -> Result<()> {
        for (field, value, low, high) in [
            ("temperature", self.temperature, 0.0, 100.0),
            ("min_p", self.min_p, 0.0, 1.0),
            ("presence_penalty", self.presence_penalty, -2.0, 2.0),
            ("frequency_penalty", self.frequency_penalty, -2.0, 2.0),
        ] {
            check(field, value, (low..=high).contains(&value), &format!("{low} to {high}"))?;
        }
        for (field, value, high) in [
            ("top_p", self.top_p, 1.0),
            ("typical_p", self.typical_p, 1.0),
            ("repetition_penalty", self.repetition_penalty, 100.0),
        ] {
            let inside = value > 0.0 && value <= high;
            check(field, value, inside, &format!("more than 0, at most {high}"))?;
        }
        let size = i64::try_from(vocabulary_size).unwrap_or(i64::MAX);
        check("top_k", self.top_k, self.top_k >= -1, &format!("-1 to {size}"))?;
        self.validate_counts()?;
        self.validate_stops()?;
        self.validate_tokens(vocabulary_size)
    }

    fn validate_counts(&self) -> Result<()> {
        check("n", self.n, (1..=MAX_N).contains(&self.n), &format!("1 to {MAX_N}"))?;
        if self.n > 1 && self.is_greedy() {
            check("n", self.n, false, "1 where temperature is 0: all answers would be the same")?;
        }
        if let Some(best_of) = self.best_of {
            check("best_of", best_of, best_of == self.n, &format!("the value of n, {}", self.n))?;
        }
        for (field, value) in
            [("logprobs", self.logprobs), ("prompt_logprobs", self.prompt_logprobs)]
        {
            if let Some(value) = value {
                check(field, value, value <= MAX_LOGPROBS, &format!("0 to {MAX_LOGPROBS}"))?;
            }
        }
        if let Some(most) = self.max_tokens {
            check("max_tokens", most, most >= 1, "at least 1")?;
            let range = format!("0 to max_tokens, {most}");
            check("min_tokens", self.min_tokens, self.min_tokens <= most, &range)?;
        }
        Ok(())
    }

    fn validate_stops(&self) -> Result<()> {
        let count = self.stop.len();
        check("stop", count, count <= MAX_STOPS, &format!("at most {MAX_STOPS} strings"))?;
        for (i, stop) in self.stop.iter().enumerate() {
            let inside = (1..=MAX_STOP_BYTES).contains(&stop.len());
            let range = format!("1 to {MAX_STOP_BYTES} bytes");
            check(&format!("stop[{i}]"), format!("{} bytes", stop.len()), inside, &range)?;
        }
        Ok(())
    }

    fn validate_tokens(&self, vocabulary_size: usize) -> Result<()> {
        let count = self.logit_bias.len();
        check("logit_bias", count, count <= MAX_BIASES, &format!("at most {MAX_BIASES} tokens"))?;
        let range = format!("a token below {vocabulary_size}");
        let known = |id: u32| usize::try_from(id).is_ok_and(|id| id < vocabulary_size);
        for (id, bias) in &self.logit_bias {
            check("logit_bias", id, known(*id), &range)?;
            let inside = (-100.0..=100.0).contains(bias);
            check(&format!("logit_bias[{id}]"), bias, inside, "-100 to 100")?;
        }
        let count = self.stop_token_ids.len();
        check("stop_token_ids", count, count <= MAX_BIASES, &format!("at most {MAX_BIASES}"))?;
        for (i, id) in self.stop_token_ids.iter().enumerate() {
            check(&format!("stop_token_ids[{i}]"), id, known(*id), &range)?;
        }
        Ok(())
    }
}

/// The error of a field outside its range. NaN lies in no range.
fn check(field: &str, value: impl std::fmt::Display, inside: bool, range: &str) -> Result<()> {
    if inside {
        return Ok(());
    }
    Err(LlmError::new(LlmErrorKind::Parameter, field, format!("{value} found, expected {range}")))
}
