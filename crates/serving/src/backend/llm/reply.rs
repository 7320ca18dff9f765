//! Answers under the names of Triton's vLLM backend.

use std::sync::Arc;
use std::time::Instant;

use galatea_llm::LlmError;
use galatea_llm::engine::{AnswerDelta, GenerationEvent};
use galatea_llm::sampling::TokenLogprobs;
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::Tokenizer;
use galatea_tensor::{ByteString, DataType, Tensor};
use serde_json::{Map, Value, json};

use super::of_model;
use super::prompts::PromptObserver;
use super::request::GenerationDemand;
use crate::backend::ActiveRequest;
use crate::error::ServingError;
use crate::request::OutputTensor;
use crate::statistics::ResponseKind;

/// All outputs, with their one dimension.
pub(super) const OUTPUTS: &[(&str, DataType, i64)] = &[
    ("text_output", DataType::Bytes, -1),
    ("finish_reason", DataType::Bytes, -1),
    ("cumulative_logprob", DataType::Fp32, -1),
    ("logprobs", DataType::Bytes, -1),
    ("num_input_tokens", DataType::Uint32, 1),
    ("num_output_tokens", DataType::Uint32, -1),
];

/// One of the answers so far, or since the last response.
#[derive(Clone, Default)]
struct PartialAnswer {
    text: String,
    tokens: usize,
    logprobs: Vec<TokenLogprobs>,
    finish: Option<FinishReason>,
}

/// Makes responses of the engine's events.
pub(super) struct ResponseMaker {
    /// The request, until it has its answer.
    request: Option<ActiveRequest>,
    asked: GenerationDemand,
    /// Not the model: its engine, on whose thread this lives, would wait for itself at its end.
    tokenizer: Arc<Tokenizer>,
    answers: Vec<PartialAnswer>,
    /// Logarithm of the probability so far, for each answer.
    cumulative: Vec<f32>,
    prompt_tokens: usize,
    /// When the last response left, or all began.
    from: Instant,
}

impl ResponseMaker {
    pub(super) fn new(
        request: ActiveRequest,
        asked: GenerationDemand,
        prompt_tokens: usize,
        tokenizer: Arc<Tokenizer>,
    ) -> Self {
        let n = usize::try_from(asked.sampling.n).unwrap_or(1);
        let mut answers = vec![PartialAnswer::default(); n];
        if asked.prepend {
            answers.iter_mut().for_each(|answer| answer.text.clone_from(&asked.text));
        }
        let request = Some(request);
        let cumulative = vec![0.0; n];
        let from = Instant::now();
        Self { request, asked, tokenizer, answers, cumulative, prompt_tokens, from }
    }

    /// Answers with an error what is under way.
    fn fail(&mut self, kind: ResponseKind, error: ServingError) {
        if let Some(request) = self.request.take() {
            request.count_response(kind, self.from, Instant::now());
            request.finish_with(Err(error));
        }
    }

    fn step(&mut self, delta: AnswerDelta) {
        let AnswerDelta { index, text, tokens, logprobs, finish } = delta;
        if let Some(sum) = self.cumulative.get_mut(index) {
            *sum += logprobs.iter().map(|of| of.logprob).sum::<f32>();
        }
        let Some(answer) = self.answers.get_mut(index) else { return };
        answer.text.push_str(&text);
        answer.tokens += tokens.len();
        answer.logprobs.extend(logprobs);
        answer.finish = finish.or(answer.finish.take());
        // Text that is held back comes with a later token.
        let silent = text.is_empty() && answer.finish.is_none();
        // The last piece ends the request: clients wait for a response that says so.
        let ended = self.answers.iter().all(|answer| answer.finish.is_some());
        if !self.asked.stream || silent || ended {
            return;
        }
        let made = Instant::now();
        let outputs = self.outputs();
        self.answers.iter_mut().for_each(|answer| {
            *answer = PartialAnswer { finish: answer.finish.take(), ..PartialAnswer::default() };
        });
        if let Some(request) = self.request.as_mut() {
            let response = wanted(request, outputs);
            request.count_response(kind(&response), self.from, made);
            request.respond(response);
            self.from = Instant::now();
        }
    }

    fn end(&mut self) {
        // Who was taken back while it waited has no answers that ended.
        let cancelled = |answer: &PartialAnswer| {
            answer.finish.as_ref().is_none_or(|why| *why == FinishReason::Cancelled)
        };
        if self.answers.iter().any(cancelled) {
            let error = ServingError::cancelled("Request was cancelled");
            return self.fail(ResponseKind::Cancel, error);
        }
        let made = Instant::now();
        let outputs = self.outputs();
        let Some(request) = self.request.take() else { return };
        let response = wanted(&request, outputs);
        request.count_response(kind(&response), self.from, made);
        request.finish_with(response);
    }

    /// The outputs that the request asks for.
    fn outputs(&self) -> Result<Vec<(String, Tensor)>, ServingError> {
        let asked = &self.asked;
        let n = self.answers.len();
        let mut outputs = Vec::new();
        let mut add = |name: &str, tensor: Tensor| outputs.push((name.to_owned(), tensor));
        let texts = |of: &dyn Fn(&PartialAnswer) -> String| {
            let texts: Vec<ByteString> =
                self.answers.iter().map(|answer| ByteString::from(of(answer))).collect();
            Tensor::from_vec(&[n], texts)
        };
        add("text_output", texts(&|answer| answer.text.clone())?);
        if asked.finish_reason {
            let reason = |answer: &PartialAnswer| {
                answer.finish.as_ref().map_or("None", FinishReason::as_str)
            };
            add("finish_reason", texts(&|answer| reason(answer).to_owned())?);
        }
        if asked.cumulative_logprob {
            add("cumulative_logprob", Tensor::from_vec(&[n], self.cumulative.clone())?);
        }
        if asked.logprobs {
            add("logprobs", texts(&|answer| self.logprobs(answer).to_string())?);
        }
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        if asked.input_tokens {
            add("num_input_tokens", Tensor::from_vec(&[1], vec![count(self.prompt_tokens)])?);
        }
        if asked.output_tokens {
            let counts = self.answers.iter().map(|answer| count(answer.tokens)).collect();
            add("num_output_tokens", Tensor::from_vec(&[n], counts)?);
        }
        Ok(outputs)
    }

    /// For each token an object from token numbers to probabilities.
    fn logprobs(&self, answer: &PartialAnswer) -> Value {
        if self.asked.sampling.logprobs.is_none() {
            return Value::Null;
        }
        let text = |token: u32| {
            let bytes = self.tokenizer.token_bytes(token).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let entry = |token: u32, logprob: f32, rank: usize| json!({"logprob": logprob, "rank": rank, "decoded_token": text(token)});
        let one = |of: &TokenLogprobs| {
            let rank = usize::try_from(of.rank).unwrap_or(usize::MAX);
            let mut found = Map::new();
            found.insert(of.token.to_string(), entry(of.token, of.logprob, rank));
            for (at, &(token, logprob)) in of.top.iter().enumerate() {
                found.entry(token.to_string()).or_insert_with(|| entry(token, logprob, at + 1));
            }
            Value::Object(found)
        };
        answer.logprobs.iter().map(one).collect()
    }
}

impl PromptObserver for ResponseMaker {
    fn take(&mut self, _prompt: usize, event: GenerationEvent) {
        match event {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => self.step(delta),
            GenerationEvent::Finished(_) => self.end(),
            GenerationEvent::Failed(error) => self.fail(ResponseKind::Fail, of_model(&error)),
        }
    }

    fn refuse(&mut self, error: LlmError) {
        self.fail(ResponseKind::Fail, of_model(&error));
    }
}

fn wanted(
    request: &ActiveRequest,
    outputs: Result<Vec<(String, Tensor)>, ServingError>,
) -> Result<Vec<OutputTensor>, ServingError> {
    request.wanted(outputs?)
}

fn kind(response: &Result<Vec<OutputTensor>, ServingError>) -> ResponseKind {
    if response.is_ok() { ResponseKind::Success } else { ResponseKind::Fail }
}
