//! Completions: prompts to the texts that continue them, whole or in pieces.

use std::sync::Arc;

use galatea_llm::chat;
use galatea_llm::engine::{AnswerDelta as Step, GenerationEvent, GenerationRequest};
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::TokenLogprobs;
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::SpecialText;
use galatea_serving::generate::{AnswerForm, GenerateStream, PromptEvent};

use super::chat::{WholeChat, stop_reason};
use super::error::ApiError;
use super::logprobs::{self, CompletionLogprobs, TokenNaming};
use super::request::{CompletionPrompt, CompletionRequest};
use super::run::{PieceReceiver, generation, refusal, surround};
use super::wire::{
    self, AnswerEnvelope, AnswerObject, CompletionChoice, DONE, UsageObject, to_bytes,
};

/// One prompt as the engine has it.
#[derive(Debug)]
struct EncodedPrompt {
    text: String,
    tokens: Vec<u32>,
}

/// Completions that are ready for the engine.
#[derive(Debug)]
pub(crate) struct PreparedCompletion {
    model: Arc<LanguageModel>,
    name: String,
    request: CompletionRequest,
    prompts: Vec<EncodedPrompt>,
}

impl PreparedCompletion {
    /// Makes tokens of the prompts of a request to the model called `name`, and the requests for
    /// the engine.
    ///
    /// # Errors
    /// Fails when a prompt is too long, or a grammar cannot be followed.
    pub(crate) fn prepare(
        model: Arc<LanguageModel>,
        name: &str,
        mut request: CompletionRequest,
    ) -> Result<(Self, Vec<GenerationRequest>), ApiError> {
        let mut prompts = Vec::new();
        let mut jobs = Vec::new();
        for prompt in std::mem::take(&mut request.prompts) {
            let encoded = match prompt {
                CompletionPrompt::Text(text) => {
                    let around = surround(request.add_special_tokens);
                    let tokens = chat::prompt_tokens(&model, &text, around);
                    let tokens = tokens.map_err(|error| refusal(error, "prompt"))?;
                    EncodedPrompt { tokens, text }
                }
                CompletionPrompt::Tokens(tokens) => {
                    let text = if request.echo {
                        model.tokenizer().decode(&tokens, SpecialText::Keep)
                    } else {
                        String::new()
                    };
                    EncodedPrompt { text, tokens }
                }
            };
            jobs.push(generation(&model, &request.common, encoded.tokens.clone(), "prompt")?);
            prompts.push(encoded);
        }
        Ok((Self { model, name: name.to_owned(), request, prompts }, jobs))
    }

    /// Returns the form in which the answers are sent.
    pub(crate) fn form(&self) -> AnswerForm {
        self.request.common.form()
    }

    /// Returns the client's id of the request.
    pub(crate) fn id(&self) -> &str {
        &self.request.common.settings.id
    }

    fn names(&self) -> TokenNaming<'_> {
        self.request.common.names(&self.model)
    }

    fn envelope(&self) -> AnswerEnvelope {
        self.request.common.envelope("cmpl-", "text_completion", &self.name)
    }

    /// Returns the number of answers to a prompt.
    fn answers(&self) -> usize {
        self.request.common.answers()
    }

    /// The counts of one prompt, without tokens that are not shown.
    fn usage(&self, of: galatea_llm::engine::TokenUsage) -> UsageObject {
        let shown = if self.request.nothing_new { 0 } else { of.completion_tokens };
        UsageObject::new(of.prompt_tokens, of.cached_tokens, shown)
    }

    /// All answers.
    ///
    /// # Errors
    /// Fails when a request failed.
    pub(crate) async fn whole(&self, mut running: GenerateStream) -> Result<Vec<u8>, ApiError> {
        let n = self.answers();
        let mut found: Vec<WholeChat> = Vec::new();
        found.resize_with(n * self.prompts.len(), WholeChat::default);
        let mut of_prompts = vec![None; self.prompts.len()];
        let mut usage = UsageObject::default();
        while let Some(PromptEvent { prompt: at, event }) = running.next().await? {
            match event {
                GenerationEvent::Started { prompt_logprobs, .. } => {
                    if let Some(slot) = of_prompts.get_mut(at) {
                        *slot = prompt_logprobs;
                    }
                }
                GenerationEvent::Delta(step) => {
                    if let Some(whole) = found.get_mut(at * n + step.index) {
                        whole.add(self.shown(step));
                    }
                }
                GenerationEvent::Finished(of) => usage += self.usage(of),
                GenerationEvent::Failed(error) => return Err(error.into()),
            }
        }
        let choice = |(index, whole)| {
            let at = index / n;
            self.choice(index, at, whole, of_prompts.get(at).and_then(Option::as_deref))
        };
        let choices = found.into_iter().enumerate().map(choice).collect();
        let envelope = self.envelope();
        let mut answer = AnswerObject::new(&envelope, choices);
        answer.usage = Some(Some(usage));
        let one = self.prompts.first().filter(|_| self.request.common.token_ids);
        answer.prompt_token_ids = one.map(|prompt| &*prompt.tokens);
        Ok(to_bytes(&answer))
    }

    /// A piece of an answer as far as the client wants it.
    fn shown(&self, step: Step) -> Step {
        if !self.request.nothing_new {
            return step;
        }
        let finish = step.finish.map(|_| FinishReason::Length);
        Step { text: String::new(), tokens: Vec::new(), logprobs: Vec::new(), finish, ..step }
    }

    fn choice(
        &self,
        index: usize,
        at: usize,
        whole: WholeChat,
        of_prompt: Option<&[Option<TokenLogprobs>]>,
    ) -> CompletionChoice {
        let mut found = CompletionChoice { index, ..CompletionChoice::default() };
        let mut offset = 0;
        if let Some(prompt) = self.prompts.get(at).filter(|_| self.request.echo) {
            found.text.push_str(&prompt.text);
            found.logprobs = self.of_prompt(prompt, of_prompt, &mut offset);
        }
        found.text.push_str(&whole.text);
        if self.request.common.settings.sampling.logprobs.is_some() {
            let logprobs = found.logprobs.get_or_insert_default();
            logprobs.extend(&whole.logprobs, self.names(), &mut offset);
        }
        found.prompt_logprobs = of_prompt.map(|all| logprobs::prompt(all, self.names()));
        found.finish_reason = whole.finish.as_ref().map(FinishReason::as_str);
        found.stop_reason = whole.finish.as_ref().and_then(stop_reason);
        found.token_ids = self.request.common.token_ids.then_some(whole.tokens);
        found
    }

    /// The log-probabilities of a prompt that is part of the answer.
    fn of_prompt(
        &self,
        prompt: &EncodedPrompt,
        known: Option<&[Option<TokenLogprobs>]>,
        offset: &mut usize,
    ) -> Option<CompletionLogprobs> {
        self.request.common.settings.sampling.logprobs?;
        let mut found = CompletionLogprobs::default();
        found.extend_prompt(&prompt.tokens, known.unwrap_or_default(), self.names(), offset);
        Some(found)
    }

    /// The answers in pieces, as fast as the client takes them.
    ///
    /// # Errors
    /// Fails when a request failed. A client that no longer waits for pieces is no error.
    pub(crate) async fn stream(
        &self,
        mut running: GenerateStream,
        to: &PieceReceiver,
    ) -> Result<(), ApiError> {
        let mut stream = CompletionStream::new(self);
        while let Some(PromptEvent { prompt: at, event }) = running.next().await? {
            for piece in stream.take(at, event) {
                if !to.send(piece).await {
                    return Ok(());
                }
            }
        }
        if self.request.common.ends_with_usage() {
            let mut answer = AnswerObject::new(&stream.envelope, Vec::<CompletionChoice>::new());
            answer.usage = Some(Some(stream.usage));
            to.send(wire::event(&answer)).await;
        }
        to.send(DONE.to_vec()).await;
        Ok(())
    }
}

/// Completions on their way.
struct CompletionStream<'a> {
    of: &'a PreparedCompletion,
    envelope: AnswerEnvelope,
    /// For each answer, the characters behind which its next token stands.
    offsets: Vec<usize>,
    /// For each prompt, the tokens that the cache had and those of its answers so far.
    told: Vec<(usize, usize)>,
    usage: UsageObject,
}

impl<'a> CompletionStream<'a> {
    fn new(of: &'a PreparedCompletion) -> Self {
        let prompts = of.prompts.len();
        let offsets = vec![0; of.answers() * prompts];
        let told = vec![(0, 0); prompts];
        Self { of, envelope: of.envelope(), offsets, told, usage: UsageObject::default() }
    }

    /// The pieces that an event makes.
    fn take(&mut self, at: usize, event: GenerationEvent) -> Vec<Vec<u8>> {
        match event {
            GenerationEvent::Started { cached_tokens, prompt_logprobs } => {
                if let Some(told) = self.told.get_mut(at) {
                    told.0 = cached_tokens;
                }
                self.begin(at, prompt_logprobs.as_deref())
            }
            GenerationEvent::Delta(step) => self.step(at, step).into_iter().collect(),
            GenerationEvent::Finished(of) => {
                self.usage += self.of.usage(of);
                Vec::new()
            }
            GenerationEvent::Failed(_) => Vec::new(),
        }
    }

    fn write(&self, at: usize, choice: CompletionChoice, first: bool) -> Vec<u8> {
        let mut answer = AnswerObject::new(&self.envelope, vec![choice]);
        let prompt = self.of.prompts.get(at).map(|prompt| &*prompt.tokens);
        answer.prompt_token_ids = prompt.filter(|_| first && self.of.request.common.token_ids);
        let (cached, told) = self.told.get(at).copied().unwrap_or_default();
        let now = UsageObject::new(prompt.map_or(0, <[u32]>::len), cached, told);
        answer.usage = self.of.request.common.usage_of_piece(now);
        wire::event(&answer)
    }

    /// The prompt as the first piece of its answers, where it is asked for.
    fn begin(&mut self, at: usize, known: Option<&[Option<TokenLogprobs>]>) -> Vec<Vec<u8>> {
        let Some(prompt) = self.of.prompts.get(at) else { return Vec::new() };
        let common = &self.of.request.common;
        if !self.of.request.echo && known.is_none() && !common.token_ids {
            return Vec::new();
        }
        let n = self.of.answers();
        let mut pieces = Vec::new();
        for index in at * n..(at + 1) * n {
            let mut choice = CompletionChoice { index, ..CompletionChoice::default() };
            if self.of.request.echo {
                choice.text.clone_from(&prompt.text);
                let mut offset = 0;
                choice.logprobs = self.of.of_prompt(prompt, known, &mut offset);
                if let Some(slot) = self.offsets.get_mut(index) {
                    *slot = offset;
                }
            }
            choice.prompt_logprobs = known.map(|all| logprobs::prompt(all, self.of.names()));
            pieces.push(self.write(at, choice, true));
        }
        pieces
    }

    fn step(&mut self, at: usize, step: Step) -> Option<Vec<u8>> {
        let step = self.of.shown(step);
        let common = &self.of.request.common;
        if let Some(told) = self.told.get_mut(at) {
            told.1 += step.tokens.len();
        }
        let silent = step.text.is_empty() && step.finish.is_none();
        if silent && step.logprobs.is_empty() && !common.token_ids {
            return None;
        }
        let index = at * self.of.answers() + step.index;
        let offset = self.offsets.get_mut(index)?;
        let mut logprobs = CompletionLogprobs::default();
        logprobs.extend(&step.logprobs, self.of.names(), offset);
        let choice = CompletionChoice {
            index,
            text: step.text,
            logprobs: (common.settings.sampling.logprobs.is_some() && !step.tokens.is_empty())
                .then_some(logprobs),
            finish_reason: step.finish.as_ref().map(FinishReason::as_str),
            stop_reason: step.finish.as_ref().and_then(stop_reason),
            prompt_logprobs: None,
            token_ids: common.token_ids.then_some(step.tokens),
        };
        Some(self.write(at, choice, false))
    }
}
