//! A model whose next token is a function of all tokens before it, which it reads back from its
//! blocks: a wrong table, a lost copy or a block that is used again too early gives other tokens.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use galatea_llm::arch::ModelShape;
use galatea_llm::cache::{BlockCopy, BlockSwap};
use galatea_llm::engine::{
    AnswerDelta, EngineOptions, GenerationEngine, GenerationEvent, GenerationRequest, LogitRows,
    RequestTicket, StepBatch, StepModel, TokenUsage,
};
use galatea_llm::error::{LlmError, LlmErrorKind, Result};
use galatea_llm::sampling::{SamplingParameters, TokenLogprobs};
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::{GgufVocabulary, Tokenizer};

pub(crate) const VOCABULARY: usize = 300;

/// What a test lets happen in a step, by its number from 0 on.
pub(crate) type Trouble = Box<dyn FnMut(u64, &StepBatch) -> Result<()> + Send>;

pub(crate) struct FakeModel {
    shape: ModelShape,
    size: NonZeroUsize,
    /// The position and token at each place of the blocks.
    places: Vec<Option<(usize, i64)>>,
    /// The same outside the caches.
    store: Vec<Option<(usize, i64)>>,
    trouble: Trouble,
    /// Each so many-th row, as chance has it, favours another token.
    slips: Option<u64>,
    steps: u64,
}

impl FakeModel {
    pub(crate) fn new(blocks: usize, size: usize) -> Self {
        Self {
            shape: ModelShape {
                layers: 1,
                kv_heads: 1,
                head_size: 1,
                vocabulary: VOCABULARY,
                positions: 256,
            },
            size: NonZeroUsize::new(size).unwrap(),
            places: vec![None; blocks * size],
            store: Vec::new(),
            trouble: Box::new(|_, _| Ok(())),
            slips: None,
            steps: 0,
        }
    }

    /// A model that often says the same, but not always.
    pub(crate) fn with_slips(mut self, each: u64) -> Self {
        self.slips = Some(each);
        self
    }

    /// A model with so many logits, of which those behind the tokens are impossible.
    pub(crate) fn with_width(mut self, width: usize) -> Self {
        self.shape.vocabulary = width;
        self
    }

    /// A model with room for so many blocks outside its caches.
    pub(crate) fn with_swap(mut self, blocks: usize) -> Self {
        self.store = vec![None; blocks * self.size.get()];
        self
    }

    pub(crate) fn with_trouble(mut self, trouble: Trouble) -> Self {
        self.trouble = trouble;
        self
    }

    /// A model whose first step waits until something comes, so that all requests come before the second.
    pub(crate) fn held(self) -> (Self, Sender<()>) {
        let (go, going) = mpsc::channel();
        let wait = move |step, _: &StepBatch| {
            if step == 0 {
                going.recv().unwrap();
            }
            Ok(())
        };
        (self.with_trouble(Box::new(wait)), go)
    }

    fn place(&self, batch: &StepBatch, sequence: usize, position: usize) -> usize {
        let block = batch.blocks[sequence * batch.most_blocks + position / self.size];
        usize::try_from(block).unwrap() * self.size.get() + position % self.size
    }
}

/// The logits behind some tokens: noise, and one token that is far more probable.
pub(crate) fn logits_behind(tokens: &[i64]) -> Vec<f32> {
    let mut state = 0xCBF2_9CE4_8422_2325_u64;
    for token in tokens {
        state = (state ^ token.unsigned_abs()).wrapping_mul(0x0100_0000_01B3);
        state ^= state >> 29;
    }
    let mut row: Vec<f32> = (0..VOCABULARY as u64)
        .map(|at| {
            let noise = (state ^ (at << 17)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            noise as f32 / 16_777_216.0
        })
        .collect();
    // Not the end token, which is 0.
    row[1 + (state % (VOCABULARY as u64 - 1)) as usize] += 4.0;
    row
}

/// The tokens that follow a prompt.
pub(crate) fn expected(prompt: &[u32], count: usize) -> Vec<u32> {
    let mut tokens: Vec<i64> = prompt.iter().copied().map(i64::from).collect();
    for _ in 0..count {
        let row = logits_behind(&tokens);
        let best = (0..VOCABULARY).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        tokens.push(best as i64);
    }
    tokens[prompt.len()..].iter().map(|token| *token as u32).collect()
}

impl StepModel for FakeModel {
    fn shape(&self) -> &ModelShape {
        &self.shape
    }

    fn block_size(&self) -> NonZeroUsize {
        self.size
    }

    fn block_count(&self) -> usize {
        self.places.len() / self.size
    }

    fn copy(&mut self, copies: &[BlockCopy]) -> Result<()> {
        let size = self.size.get();
        for copy in copies {
            self.places.copy_within(copy.from * size..(copy.from + 1) * size, copy.to * size);
        }
        Ok(())
    }

    fn swap_blocks(&self) -> usize {
        self.store.len() / self.size
    }

    fn swap(&mut self, swaps: &[BlockSwap]) -> Result<()> {
        let range = |at: usize| at * self.size.get()..(at + 1) * self.size.get();
        for swap in swaps {
            match *swap {
                BlockSwap::Out { block, slot } => {
                    self.store[range(slot)].copy_from_slice(&self.places[range(block)]);
                }
                BlockSwap::In { slot, block } => {
                    self.places[range(block)].copy_from_slice(&self.store[range(slot)]);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        self.steps += 1;
        if let Err(error) = (self.trouble)(self.steps - 1, batch) {
            // Nothing that was computed survives.
            self.places.fill(None);
            return Err(error);
        }
        let rows = |sequence: usize| {
            let row = |at: usize| usize::try_from(batch.starts[at]).unwrap();
            row(sequence)..row(sequence + 1)
        };
        for sequence in 0..batch.sequences() {
            let length = usize::try_from(batch.lengths[sequence]).unwrap();
            for (at, row) in rows(sequence).enumerate() {
                let position = length - rows(sequence).len() + at;
                assert_eq!(batch.positions[row], position as i64);
                let place = self.place(batch, sequence, position);
                self.places[place] = Some((position, batch.tokens[row]));
            }
        }
        let mut values = Vec::new();
        for &row in &batch.wanted {
            let row = usize::try_from(row).unwrap();
            let sequence = (0..batch.sequences()).find(|s| rows(*s).contains(&row)).unwrap();
            let position = usize::try_from(batch.positions[row]).unwrap();
            let tokens: Vec<i64> = (0..=position)
                .map(|position| {
                    let found = self.places[self.place(batch, sequence, position)];
                    let (at, token) = found.expect("a position that was never written is read");
                    assert_eq!(at, position, "a block of another position is read");
                    token
                })
                .collect();
            let mut row = logits_behind(&tokens);
            let sum: i64 = tokens.iter().sum();
            if self.slips.is_some_and(|each| sum.unsigned_abs().is_multiple_of(each)) {
                row[5] += 50.0;
            }
            row.resize(self.shape.vocabulary, f32::NEG_INFINITY);
            values.extend(row);
        }
        LogitRows::new(values, self.shape.vocabulary)
    }
}

/// A byte-level vocabulary: an end token, all bytes, and words.
pub(crate) fn tokenizer() -> Arc<Tokenizer> {
    let mut vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: "gpt-2".to_owned(),
        tokens: vec!["<end>".to_owned()],
        token_types: vec![3],
        eos: Some(0),
        ..GgufVocabulary::default()
    };
    for code in (0x21..=0x7E).chain(0xA1..=0xAC).chain(0xAE..=0xFF).chain(0x100..=0x143) {
        vocabulary.tokens.push(char::from_u32(code).unwrap().to_string());
    }
    vocabulary.tokens.extend((vocabulary.tokens.len()..VOCABULARY).map(|id| format!("w{id}")));
    vocabulary.token_types.resize(VOCABULARY, 1);
    Arc::new(Tokenizer::from_gguf(&vocabulary).unwrap())
}

pub(crate) fn start(model: FakeModel, options: EngineOptions) -> GenerationEngine {
    GenerationEngine::start(Box::new(model), tokenizer(), options).unwrap()
}

/// Options for few short sequences.
pub(crate) fn options(max_sequences: usize, max_batched_tokens: usize) -> EngineOptions {
    EngineOptions { max_sequences, max_batched_tokens, ..EngineOptions::default() }
}

pub(crate) fn greedy(tokens: u32) -> SamplingParameters {
    SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(tokens),
        ..SamplingParameters::default()
    }
}

pub(crate) fn request(prompt: &[u32], sampling: SamplingParameters) -> GenerationRequest {
    GenerationRequest {
        prompt: prompt.to_vec(),
        sampling,
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
        id: String::new(),
    }
}

/// An answer put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    pub(crate) tokens: Vec<u32>,
    pub(crate) text: String,
    pub(crate) logprobs: Vec<TokenLogprobs>,
    pub(crate) finish: Option<FinishReason>,
}

/// All that a request was told.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answers: Vec<Text>,
    pub(crate) cached: Option<usize>,
    pub(crate) prompt_logprobs: Option<Vec<Option<TokenLogprobs>>>,
    pub(crate) usage: Option<TokenUsage>,
    pub(crate) error: Option<LlmError>,
}

impl Outcome {
    pub(crate) fn tokens(&self) -> &[u32] {
        assert_eq!(self.error, None);
        &self.answers[0].tokens
    }
}

/// A request whose events are collected.
pub(crate) struct Asked {
    pub(crate) ticket: Option<RequestTicket>,
    pub(crate) events: Receiver<GenerationEvent>,
}

impl Asked {
    pub(crate) fn next(&self) -> GenerationEvent {
        self.events.recv_timeout(Duration::from_secs(60)).expect("an event comes")
    }

    /// Waits for the last event, and checks that none comes behind it.
    pub(crate) fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        loop {
            match self.next() {
                GenerationEvent::Started { cached_tokens, prompt_logprobs } => {
                    assert_eq!(outcome.cached, None, "it begins once");
                    outcome.cached = Some(cached_tokens);
                    outcome.prompt_logprobs = prompt_logprobs;
                }
                GenerationEvent::Delta(delta) => outcome.add(delta),
                GenerationEvent::Finished(usage) => {
                    outcome.usage = Some(usage);
                    break;
                }
                GenerationEvent::Failed(error) => {
                    outcome.error = Some(error);
                    break;
                }
            }
        }
        if let Some(ticket) = self.ticket.take() {
            ticket.detach();
        }
        assert!(self.events.recv().is_err(), "the last event is the last");
        outcome
    }
}

impl Outcome {
    fn add(&mut self, delta: AnswerDelta) {
        if self.answers.len() <= delta.index {
            self.answers.resize(delta.index + 1, Text::default());
        }
        let answer = &mut self.answers[delta.index];
        assert_eq!(answer.finish, None, "an answer that has ended goes on");
        answer.tokens.extend(delta.tokens);
        answer.text.push_str(&delta.text);
        answer.logprobs.extend(delta.logprobs);
        answer.finish = delta.finish;
    }
}

/// Submits a request.
pub(crate) fn ask(engine: &GenerationEngine, request: GenerationRequest) -> Asked {
    let (sender, events) = mpsc::channel();
    let sink = Box::new(move |event| {
        let _ = sender.send(event);
    });
    Asked { ticket: Some(engine.submit(request, sink).unwrap()), events }
}

pub(crate) fn refused(engine: &GenerationEngine, request: GenerationRequest) -> LlmError {
    let told = engine.submit(request, Box::new(|event| panic!("{event:?} for a refused request")));
    told.map(RequestTicket::detach).unwrap_err()
}

pub(crate) fn failure(message: &str) -> LlmError {
    LlmError::new(LlmErrorKind::Model, "fake", message)
}
