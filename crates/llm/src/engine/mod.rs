//! Generation: many requests at once, step by step, on a thread of the engine's own.
//!
//! [`GenerationEngine::submit`] checks a request and hands it to the thread, which asks the scheduler for a plan,
//! lets the [`StepModel`] compute it, chooses tokens, and tells each request's [`EventSink`] what
//! happened. Between two steps it takes new requests and those that are taken back.
//!
//! Engines of every kind of model are one `RequestEngine` with its queue and its thread. The `StepWorker` says
//! how a step is planned and computed: over blocks, over rows, or over texts.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::cache::BlockCache;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::observe::EngineObserver;
use crate::sampling::TokenSampler;
use crate::schedule::{ArrivingSequence, SequenceScheduler, StepLimits, SwapLimits};
use crate::tokens::Tokenizer;

mod answer;
mod command_loop;
mod life;
mod model;
mod ongoing;
mod request;
mod request_engine;
mod seq2seq;
mod session_model;
mod speculate;
mod statistics;
mod step_tuner;
mod swap_store;
mod worker;

pub(crate) use command_loop::StepWorker;
pub(crate) use life::{EngineShared, RequestLife, RequestSize};
pub use model::{LogitRows, StepBatch, StepModel};
pub use request::{AnswerDelta, EventSink, GenerationEvent, GenerationRequest, TokenUsage};
pub(crate) use request_engine::RequestEngine;
pub use request_engine::RequestTicket;
pub use session_model::SessionModel;
pub use speculate::SpeculationMethod;
pub use statistics::{EngineHistogram, EngineStatistics};
pub(crate) use step_tuner::StepInputs;
pub use step_tuner::{StepKind, StepTuner};

use answer::OngoingAnswer;
use ongoing::{OngoingRequest, OpenAnswer, SubmittedRequest};
use request::EventReceiver;
use speculate::{DraftModel, TokenProposer};
use worker::DecoderWorker;

/// A preempted sequence with fewer positions is computed anew.
const MIN_SWAPPED: usize = 32;

/// Resources that an engine may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// The most sequences that run together.
    pub max_sequences: usize,
    /// The most rows of a step; at least as many as sequences.
    pub max_batched_tokens: usize,
    /// The most requests that wait until their prompt begins to be computed.
    pub max_waiting: usize,
    /// The most tokens of a prompt and an answer together; less than the model's own context, or
    /// nothing.
    pub context: Option<usize>,
    /// Whether requests share what they begin with.
    pub prefix_caching: bool,
    /// How tokens are guessed that one step then confirms.
    pub speculative: Option<SpeculationMethod>,
    /// The most threads that choose the tokens of a step together.
    pub threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_sequences: 64,
            max_batched_tokens: 512,
            max_waiting: 1024,
            context: None,
            prefix_caching: true,
            speculative: None,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

impl EngineOptions {
    fn validate(&self) -> Result<()> {
        let refused =
            |field: &str, message: String| LlmError::new(LlmErrorKind::Parameter, field, message);
        if self.max_sequences == 0 || self.max_batched_tokens < self.max_sequences {
            let text = format!(
                "{} found, expected at least max_sequences, {}, and 1",
                self.max_batched_tokens, self.max_sequences
            );
            return Err(refused("max_batched_tokens", text));
        }
        if self.max_waiting == 0 {
            return Err(refused("max_waiting", "0 found, expected at least 1".to_owned()));
        }
        self.speculative.as_ref().map_or(Ok(()), SpeculationMethod::validate)
    }
}

/// An engine that generates. Dropping it fails all requests and ends its thread.
#[derive(Debug)]
pub struct GenerationEngine {
    requests: RequestEngine<SubmittedRequest>,
    tokenizer: Arc<Tokenizer>,
    vocabulary: usize,
    context: usize,
    /// The most answers of a request where prompts are read whole, and answers begin without them.
    reads: Option<usize>,
}

impl GenerationEngine {
    /// Starts the engine's thread.
    ///
    /// # Errors
    /// Options that contradict each other, a model without blocks, and a thread that does not start.
    pub fn start(
        model: Box<dyn StepModel>,
        tokenizer: Arc<Tokenizer>,
        options: EngineOptions,
    ) -> Result<Self> {
        let proposer = match options.speculative {
            None => None,
            Some(SpeculationMethod::PromptLookup { ngram, .. }) => {
                Some(TokenProposer::Lookup { ngram })
            }
            Some(SpeculationMethod::Draft { .. }) => {
                let text = "Draft found, expected a draft model with it".to_owned();
                return Err(LlmError::new(LlmErrorKind::Parameter, "speculative", text));
            }
        };
        Self::start_with(model, tokenizer, options, proposer)
    }

    /// Starts like [`GenerationEngine::start`], with a smaller model that guesses `max_tokens` tokens at a time.
    ///
    /// # Errors
    /// Fails like [`GenerationEngine::start`], and where the draft model does not know all tokens.
    pub fn start_with_draft(
        model: Box<dyn StepModel>,
        draft: Box<dyn StepModel>,
        max_tokens: usize,
        tokenizer: Arc<Tokenizer>,
        mut options: EngineOptions,
    ) -> Result<Self> {
        let known = draft.shape().vocabulary;
        let wanted = tokenizer.vocabulary_size();
        if known < wanted {
            let text = format!("{known} tokens found, expected the {wanted} of the tokenizer");
            return Err(LlmError::new(LlmErrorKind::Parameter, "draft model", text));
        }
        options.speculative = Some(SpeculationMethod::Draft { max_tokens });
        let draft = DraftModel::new(draft, options.max_batched_tokens);
        let proposer = Some(TokenProposer::Draft(Box::new(draft)));
        Self::start_with(model, tokenizer, options, proposer)
    }

    fn start_with(
        model: Box<dyn StepModel>,
        tokenizer: Arc<Tokenizer>,
        options: EngineOptions,
        proposer: Option<TokenProposer>,
    ) -> Result<Self> {
        options.validate()?;
        let size = model.block_size();
        let blocks = model.block_count();
        let vocabulary = model.shape().vocabulary;
        let own = model.shape().positions.min(size.get().saturating_mul(blocks));
        let context = options.context.unwrap_or(own);
        if context > own || context < 2 {
            let text =
                format!("{context} tokens found, expected 2 to {own}, for which there is room");
            return Err(LlmError::new(LlmErrorKind::Parameter, "context", text));
        }
        let statistics = EngineStatistics {
            swap_blocks: model.swap_blocks(),
            ..EngineStatistics::new(blocks, size.get())
        };
        let shared = EngineShared::new("engine", options.max_waiting, statistics);
        let limits = StepLimits {
            max_sequences: options.max_sequences,
            max_batched_tokens: options.max_batched_tokens,
            prefix_caching: options.prefix_caching,
            swap: SwapLimits { blocks: model.swap_blocks(), least_positions: MIN_SWAPPED },
        };
        let scheduler = SequenceScheduler::new(limits, BlockCache::new(blocks, size));
        let mut worker = DecoderWorker::new(
            model,
            Arc::clone(&tokenizer),
            scheduler,
            Arc::clone(&shared),
            options.threads,
        );
        if let (Some(proposer), Some(speculation)) = (proposer, options.speculative) {
            worker.speculate(proposer, speculation.max_tokens());
        }
        let requests = RequestEngine::start(shared, worker)?;
        Ok(Self { requests, tokenizer, vocabulary, context, reads: None })
    }

    /// The most tokens of a prompt and an answer together.
    #[must_use]
    pub fn context(&self) -> usize {
        self.context
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Takes a request. Its events go to `sink`, the first one maybe before this returns.
    ///
    /// # Errors
    /// [`LlmErrorKind::Parameter`] for what cannot be generated, [`LlmErrorKind::Overloaded`] where too many requests
    /// wait, [`LlmErrorKind::Unavailable`] where the engine stops. The sink is told nothing then.
    pub fn submit(&self, request: GenerationRequest, sink: EventSink) -> Result<RequestTicket> {
        let answer = self.check(&request)?;
        let GenerationRequest { prompt, sampling, constraint, priority, client, salt, id: name } =
            request;
        let size = RequestSize { sequences: u64::from(sampling.n), tokens: prompt.len() };
        self.requests.submit(name, size, move |life| {
            let id = life.number();
            let every_row = sampling.prompt_logprobs.is_some();
            SubmittedRequest {
                arrival: ArrivingSequence { id, tokens: prompt, client, priority, salt, every_row },
                request: OngoingRequest {
                    life,
                    reply: EventReceiver::new(sink),
                    // The first answer has its own.
                    constraint: constraint.filter(|_| sampling.n > 1),
                    open: vec![OpenAnswer::new(id, answer)],
                    prompt_logprobs: sampling.prompt_logprobs.map(|_| vec![None]),
                    sampling,
                },
            }
        })
    }

    /// Compares a request with what can be generated, and makes its first answer.
    fn check(&self, request: &GenerationRequest) -> Result<OngoingAnswer> {
        let found = request.prompt.len();
        let most = self.context - 1;
        let refused =
            |message: String| Err(LlmError::new(LlmErrorKind::Parameter, "prompt", message));
        if found == 0 {
            return refused("0 tokens found, expected at least 1".to_owned());
        }
        if found > most {
            return refused(format!(
                "{found} tokens found, expected at most {most}: the context has {} and the answer \
                 needs one",
                self.context
            ));
        }
        let known = |token: &u32| (*token as usize) < self.vocabulary;
        if let Some(token) = request.prompt.iter().find(|token| !known(token)) {
            return refused(format!("token {token} found, expected less than {}", self.vocabulary));
        }
        if let Some(most) = self.reads {
            seq2seq::check(request, most)?;
        }
        let before = if self.reads.is_some() { &[] } else { request.prompt.as_slice() };
        let sampler =
            TokenSampler::new(&request.sampling, self.vocabulary, before, self.tokenizer.eos(), 0)?;
        let room = u32::try_from(self.context - found).unwrap_or(u32::MAX);
        Ok(OngoingAnswer::new(0, sampler, request.constraint.clone(), room))
    }

    /// Counters so far.
    #[must_use]
    pub fn statistics(&self) -> EngineStatistics {
        self.requests.statistics()
    }

    /// Tells somebody of every step and every request from now on; the first one who asks stays.
    pub fn observe(&self, observer: Arc<dyn EngineObserver>) {
        self.requests.observe(observer);
    }

    /// Takes no more requests. Those that are there go on.
    pub fn refuse_requests(&self) {
        self.requests.refuse_requests();
    }
}
