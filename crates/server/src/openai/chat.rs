//! Chats: messages to a prompt, and answers back, whole or in pieces.

use std::sync::Arc;

use galatea_llm::chat::{
    AnswerPiece, AnswerReader, AnswerReading, ChatOptions, ChatPrompt, NO_TEMPLATE,
};
use galatea_llm::engine::{AnswerDelta as Step, GenerationEvent, GenerationRequest};
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::TokenLogprobs;
use galatea_llm::stop::FinishReason;
use galatea_serving::generate::{AnswerForm, GenerateStream, PromptEvent};
use serde_json::Value;

use super::error::ApiError;
use super::logprobs::{self, ChatLogprobs, TokenNaming};
use super::request::ChatRequest;
use super::run::{PieceReceiver, generation, refusal};
use super::wire::{
    self, AnswerEnvelope, AnswerObject, ChatChoice, ChatPiece, DONE, DeltaObject, UsageObject,
    WireCall, to_bytes,
};

/// A chat that is ready for the engine.
#[derive(Debug)]
pub(crate) struct PreparedChat {
    model: Arc<LanguageModel>,
    name: String,
    request: ChatRequest,
    prompt: Vec<u32>,
    reading: AnswerReading,
}

impl PreparedChat {
    /// Makes the prompt of a request to the model called `name`, and the request for the engine.
    ///
    /// # Errors
    /// Fails when the template refuses the messages, the prompt is too long, or a grammar cannot be followed.
    pub(crate) fn prepare(
        model: Arc<LanguageModel>,
        name: &str,
        mut request: ChatRequest,
    ) -> Result<(Self, GenerationRequest), ApiError> {
        if model.template().is_none() {
            let message = format!("the model '{name}' {NO_TEMPLATE}");
            return Err(ApiError::field("messages", message));
        }
        let options = ChatOptions {
            has_tools: !request.tools.is_empty(),
            choice: request.choice.clone(),
            single_call: !request.parallel,
            reasoning: request.reasoning,
            add_special_tokens: request.add_special_tokens,
        };
        let settings = &mut request.common.settings;
        let made = ChatPrompt::new(&model, &request.conversation, &options, settings);
        let ChatPrompt { tokens: prompt, reading } =
            made.map_err(|error| refusal(error, "messages"))?;
        let job = generation(&model, &request.common, prompt.clone(), "messages")?;
        Ok((Self { model, name: name.to_owned(), request, prompt, reading }, job))
    }

    /// Returns the form in which the answer is sent.
    pub(crate) fn form(&self) -> AnswerForm {
        self.request.common.form()
    }

    /// Returns the client's id of the request.
    pub(crate) fn id(&self) -> &str {
        &self.request.common.settings.id
    }

    /// Returns a reader for the answer as it arrives.
    pub(crate) fn reader(&self) -> AnswerReader {
        AnswerReader::new(self.reading.clone())
    }

    fn names(&self) -> TokenNaming<'_> {
        self.request.common.names(&self.model)
    }

    fn envelope(&self, object: &'static str) -> AnswerEnvelope {
        self.request.common.envelope("chatcmpl-", object, &self.name)
    }

    fn logprobs(&self, tokens: &[TokenLogprobs]) -> Option<ChatLogprobs> {
        let wanted = self.request.common.settings.sampling.logprobs.is_some();
        wanted.then(|| ChatLogprobs::of(tokens, self.names()))
    }

    /// The whole answer.
    ///
    /// # Errors
    /// Fails when a request failed.
    pub(crate) async fn whole(&self, mut running: GenerateStream) -> Result<Vec<u8>, ApiError> {
        let mut found: Vec<WholeChat> = Vec::new();
        found.resize_with(self.request.common.answers(), WholeChat::default);
        let mut usage = UsageObject::default();
        let mut of_prompt = None;
        while let Some(PromptEvent { event, .. }) = running.next().await? {
            match event {
                GenerationEvent::Started { prompt_logprobs, .. } => of_prompt = prompt_logprobs,
                GenerationEvent::Delta(step) => {
                    if let Some(whole) = found.get_mut(step.index) {
                        whole.add(step);
                    }
                }
                GenerationEvent::Finished(of) => {
                    usage =
                        UsageObject::new(of.prompt_tokens, of.cached_tokens, of.completion_tokens);
                }
                GenerationEvent::Failed(error) => return Err(error.into()),
            }
        }
        let choices =
            found.into_iter().enumerate().map(|(index, whole)| self.choice(index, whole)).collect();
        let envelope = self.envelope("chat.completion");
        let mut answer = AnswerObject::new(&envelope, choices);
        answer.usage = Some(Some(usage));
        answer.prompt_logprobs = of_prompt.map(|all| logprobs::prompt(&all, self.names()));
        answer.prompt_token_ids = self.request.common.token_ids.then_some(&*self.prompt);
        Ok(to_bytes(&answer))
    }

    fn choice(&self, index: usize, whole: WholeChat) -> ChatChoice {
        let mut message = self.reading.whole(&whole.text);
        if let Some(echo) = &self.request.echo {
            message.content.insert_str(0, echo);
        }
        let calls = message.calls.len();
        ChatChoice {
            index,
            message: message.into(),
            logprobs: self.logprobs(&whole.logprobs),
            finish_reason: whole.finish.as_ref().map(|why| self.reading.finish(why, calls)),
            stop_reason: whole.finish.as_ref().and_then(stop_reason),
            token_ids: self.request.common.token_ids.then_some(whole.tokens),
        }
    }

    /// The answer in pieces, as fast as the client takes them.
    ///
    /// # Errors
    /// Fails when a request failed. A client that no longer waits for pieces is no error.
    pub(crate) async fn stream(
        &self,
        mut running: GenerateStream,
        to: &PieceReceiver,
    ) -> Result<(), ApiError> {
        let mut stream = ChatStream::new(self);
        while let Some(PromptEvent { event, .. }) = running.next().await? {
            for piece in stream.take(event) {
                if !to.send(piece).await {
                    return Ok(());
                }
            }
        }
        to.send(DONE.to_vec()).await;
        Ok(())
    }
}

/// Why an answer ended early, as vLLM tells it: the stop string or token.
pub(crate) fn stop_reason(reason: &FinishReason) -> Option<Value> {
    match reason {
        FinishReason::StopString(text) => Some(Value::from(text.as_str())),
        FinishReason::StopToken(token) => Some(Value::from(*token)),
        _ => None,
    }
}

/// All of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct WholeChat {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) logprobs: Vec<TokenLogprobs>,
    pub(crate) finish: Option<FinishReason>,
}

impl WholeChat {
    /// Adds the next piece.
    pub(crate) fn add(&mut self, step: Step) {
        self.text.push_str(&step.text);
        self.tokens.extend(step.tokens);
        self.logprobs.extend(step.logprobs);
        self.finish = step.finish.or(self.finish.take());
    }
}

/// A chat's answers on their way.
struct ChatStream<'a> {
    chat: &'a PreparedChat,
    envelope: AnswerEnvelope,
    readers: Vec<AnswerReader>,
    cached: usize,
    /// Tokens of all answers so far.
    told: usize,
}

impl<'a> ChatStream<'a> {
    fn new(chat: &'a PreparedChat) -> Self {
        let mut readers = Vec::new();
        readers.resize_with(chat.request.common.answers(), || chat.reader());
        let envelope = chat.envelope("chat.completion.chunk");
        Self { chat, envelope, readers, cached: 0, told: 0 }
    }

    /// The pieces that an event makes.
    fn take(&mut self, event: GenerationEvent) -> Vec<Vec<u8>> {
        match event {
            GenerationEvent::Started { cached_tokens, prompt_logprobs } => {
                self.cached = cached_tokens;
                self.begin(prompt_logprobs.as_deref())
            }
            GenerationEvent::Delta(step) => self.step(step).into_iter().collect(),
            GenerationEvent::Finished(of) => {
                let wanted = self.chat.request.common.ends_with_usage();
                let usage =
                    UsageObject::new(of.prompt_tokens, of.cached_tokens, of.completion_tokens);
                let mut answer = AnswerObject::new(&self.envelope, Vec::<ChatPiece>::new());
                answer.usage = Some(Some(usage));
                wanted.then(|| wire::event(&answer)).into_iter().collect()
            }
            GenerationEvent::Failed(_) => Vec::new(),
        }
    }

    fn usage(&self) -> Option<Option<UsageObject>> {
        let now = UsageObject::new(self.chat.prompt.len(), self.cached, self.told);
        self.chat.request.common.usage_of_piece(now)
    }

    /// The first piece of each answer: who speaks.
    fn begin(&self, of_prompt: Option<&[Option<TokenLogprobs>]>) -> Vec<Vec<u8>> {
        let first = |index: usize| {
            let content = self.chat.request.echo.clone().unwrap_or_default();
            let delta = DeltaObject {
                role: Some("assistant"),
                content: Some(content),
                ..DeltaObject::default()
            };
            let mut answer = AnswerObject::new(&self.envelope, vec![piece(index, delta)]);
            answer.usage = self.usage();
            if index == 0 {
                let ids = self.chat.request.common.token_ids;
                answer.prompt_token_ids = ids.then_some(&*self.chat.prompt);
                let names = self.chat.names();
                answer.prompt_logprobs = of_prompt.map(|all| logprobs::prompt(all, names));
            }
            wire::event(&answer)
        };
        (0..self.readers.len()).map(first).collect()
    }

    fn step(&mut self, step: Step) -> Option<Vec<u8>> {
        self.told += step.tokens.len();
        let reader = self.readers.get_mut(step.index)?;
        let mut pieces = reader.push(&step.text);
        if step.finish.is_some() {
            pieces.extend(reader.finish());
        }
        let calls = reader.calls();
        let common = &self.chat.request.common;
        let silent = pieces.is_empty() && step.finish.is_none();
        if silent && step.logprobs.is_empty() && !common.token_ids {
            return None;
        }
        let mut found = piece(step.index, delta(pieces));
        found.logprobs = self.chat.logprobs(&step.logprobs).filter(|_| !step.tokens.is_empty());
        found.token_ids = common.token_ids.then_some(step.tokens);
        if let Some(why) = &step.finish {
            found.finish_reason = Some(self.chat.reading.finish(why, calls));
            found.stop_reason = stop_reason(why);
        }
        let mut answer = AnswerObject::new(&self.envelope, vec![found]);
        answer.usage = self.usage();
        Some(wire::event(&answer))
    }
}

fn piece(index: usize, delta: DeltaObject) -> ChatPiece {
    ChatPiece {
        index,
        delta,
        logprobs: None,
        finish_reason: None,
        stop_reason: None,
        token_ids: None,
    }
}

/// Joins pieces to one addition to a message.
fn delta(pieces: Vec<AnswerPiece>) -> DeltaObject {
    let mut delta = DeltaObject::default();
    for piece in pieces {
        match piece {
            AnswerPiece::Reasoning(text) => {
                delta.reasoning_content.get_or_insert_default().push_str(&text);
            }
            AnswerPiece::Content(text) => delta.content.get_or_insert_default().push_str(&text),
            AnswerPiece::Call { index, name } => {
                delta.tool_calls.push(WireCall::begin(index, name))
            }
            AnswerPiece::Arguments { index, text } => {
                let grown = delta.tool_calls.last_mut().is_some_and(|last| last.grow(index, &text));
                if !grown {
                    delta.tool_calls.push(WireCall::arguments(index, text));
                }
            }
        }
    }
    delta
}
