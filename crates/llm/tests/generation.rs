//! Trained checkpoints in the engine, beside what the reference library generated.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};

use crate::losing::LosingReference;
use crate::reference::Reference;
use galatea_formats::safetensors;
use galatea_graph::Graph;
use galatea_llm::arch::{self, ModelShape};
use galatea_llm::cache::{BlockCopy, BlockSwap};
use galatea_llm::config::JsonConfig;
use galatea_llm::engine::{
    EngineOptions, EngineStatistics, GenerationEngine, GenerationEvent, GenerationRequest,
    LogitRows, SessionModel, SpeculationMethod, StepBatch, StepModel,
};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::{SpecialText, Tokenizer};
use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use serde_json::Value;

/// A model whose first step waits until something comes, so that all requests come before the second.
struct Held(SessionModel, Option<Receiver<()>>);

impl StepModel for Held {
    fn shape(&self) -> &ModelShape {
        self.0.shape()
    }

    fn block_size(&self) -> NonZeroUsize {
        self.0.block_size()
    }

    fn block_count(&self) -> usize {
        self.0.block_count()
    }

    fn copy(&mut self, copies: &[BlockCopy]) -> galatea_llm::error::Result<()> {
        self.0.copy(copies)
    }

    fn swap_blocks(&self) -> usize {
        self.0.swap_blocks()
    }

    fn swap(&mut self, swaps: &[BlockSwap]) -> galatea_llm::error::Result<()> {
        self.0.swap(swaps)
    }

    fn take_back(&mut self, logits: LogitRows) {
        self.0.take_back(logits);
    }

    fn step(&mut self, batch: &StepBatch) -> galatea_llm::error::Result<LogitRows> {
        if let Some(going) = self.1.take() {
            going.recv().unwrap();
        }
        self.0.step(batch)
    }
}

/// A checkpoint and the recorded results of it.
struct Checkpoint {
    graph: Graph,
    shape: ModelShape,
    tokenizer: Arc<Tokenizer>,
    cases: Vec<Case>,
}

struct Case {
    prompt: Vec<u32>,
    greedy: Vec<u32>,
}

const NAME: &str = "books-qwen2-draft-2m";

fn checkpoint() -> Option<&'static Checkpoint> {
    static CHECKPOINT: OnceLock<Option<Checkpoint>> = OnceLock::new();
    CHECKPOINT.get_or_init(load).as_ref()
}

fn load() -> Option<Checkpoint> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let models = PathBuf::from(shared).join("models");
    let golden = std::fs::read(models.join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    let folder = models.join(NAME);
    let config = JsonConfig::read(&folder.join("config.json")).unwrap();
    let weights = safetensors::open(&folder).unwrap();
    let row = arch::architecture(&config).unwrap();
    let ids = |case: &Value, key: &str| -> Vec<u32> {
        let ids = case[key].as_array().unwrap().iter();
        ids.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
    };
    let case = |case: &Value| {
        let prompt = ids(case, "ids");
        let greedy = ids(case, "greedy_ids").split_off(prompt.len());
        Case { prompt, greedy }
    };
    Some(Checkpoint {
        graph: row.graph(&config, &weights).unwrap(),
        shape: row.shape(&config).unwrap(),
        tokenizer: Arc::new(Tokenizer::from_folder(&folder).unwrap()),
        cases: golden[NAME]["cases"].as_array().unwrap().iter().map(case).collect(),
    })
}

fn options(max_sequences: usize, max_batched_tokens: usize) -> EngineOptions {
    EngineOptions { max_sequences, max_batched_tokens, ..EngineOptions::default() }
}

impl Checkpoint {
    fn model(&self, blocks: usize) -> SessionModel {
        self.failing_model(blocks, None)
    }

    fn failing_model(&self, blocks: usize, failing: Option<usize>) -> SessionModel {
        self.model_on(blocks, Arc::new(Reference { failing }))
    }

    fn model_on(&self, blocks: usize, provider: Arc<dyn ExecutionProvider>) -> SessionModel {
        let session =
            Session::new(self.graph.clone(), &[provider], &SessionOptions::default()).unwrap();
        let size = NonZeroUsize::new(4).unwrap();
        SessionModel::new(session, self.shape.clone(), size, blocks).unwrap()
    }

    fn engine(&self, blocks: usize, options: EngineOptions) -> GenerationEngine {
        GenerationEngine::start(Box::new(self.model(blocks)), Arc::clone(&self.tokenizer), options)
            .unwrap()
    }

    /// An engine that waits until something comes.
    fn held(&self, blocks: usize, options: EngineOptions) -> (GenerationEngine, Sender<()>) {
        let (go, going) = mpsc::channel();
        let model = Box::new(Held(self.model(blocks), Some(going)));
        (GenerationEngine::start(model, Arc::clone(&self.tokenizer), options).unwrap(), go)
    }
}

fn greedy(tokens: u32) -> SamplingParameters {
    SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(tokens),
        ..SamplingParameters::default()
    }
}

fn submit(
    engine: &GenerationEngine,
    prompt: &[u32],
    sampling: SamplingParameters,
) -> Receiver<GenerationEvent> {
    let (sender, events) = mpsc::channel();
    let sink = Box::new(move |event| {
        let _ = sender.send(event);
    });
    let prompt = prompt.to_vec();
    let (priority, client, salt, constraint, id) = (0, 0, 0, None, String::new());
    let request = GenerationRequest { prompt, sampling, constraint, priority, client, salt, id };
    engine.submit(request, sink).unwrap().detach();
    events
}

/// The tokens and text of each answer, and how many tokens were in the cache.
fn answers(events: &Receiver<GenerationEvent>, n: usize) -> (Vec<(Vec<u32>, String)>, usize) {
    let mut answers = vec![(Vec::new(), String::new()); n];
    for event in events {
        match event {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => {
                answers[delta.index].0.extend(delta.tokens);
                answers[delta.index].1.push_str(&delta.text);
            }
            GenerationEvent::Finished(usage) => return (answers, usage.cached_tokens),
            GenerationEvent::Failed(error) => panic!("{error}"),
        }
    }
    panic!("no last event came");
}

/// Generates what was recorded, all at once, and compares.
fn check(
    checkpoint: &Checkpoint,
    (engine, go): (GenerationEngine, Sender<()>),
    tokens: u32,
) -> EngineStatistics {
    let ask = |case: &Case| submit(&engine, &case.prompt, greedy(tokens));
    let asked: Vec<_> = checkpoint.cases.iter().map(ask).collect();
    go.send(()).unwrap();
    for (case, events) in checkpoint.cases.iter().zip(asked) {
        let (answers, _) = answers(&events, 1);
        let expected = &case.greedy[..tokens as usize];
        assert_eq!(answers[0].0, expected);
        assert_eq!(answers[0].1, checkpoint.tokenizer.decode(expected, SpecialText::Skip));
    }
    engine.statistics()
}

#[test]
fn several_at_once_get_the_recorded_tokens() {
    let Some(checkpoint) = checkpoint() else { return };
    let statistics = check(checkpoint, checkpoint.held(64, options(8, 64)), 12);
    // The first request may be alone in the first step.
    assert!(statistics.steps <= 13 && statistics.preemptions == 0, "{statistics:?}");
}

#[test]
fn pieces_of_prompts_and_few_blocks_change_nothing() {
    let Some(checkpoint) = checkpoint() else { return };
    let statistics = check(checkpoint, checkpoint.held(12, options(4, 4)), 10);
    assert!(statistics.preemptions > 0, "{statistics:?}");
    assert_eq!(statistics.active_blocks, 0);
}

#[test]
fn requests_that_are_preempted_say_what_they_say_alone() {
    let Some(checkpoint) = checkpoint() else { return };
    let text: Vec<u32> = checkpoint.cases.iter().flat_map(|case| case.prompt.clone()).collect();
    let prompts = [0, 1, 2]
        .map(|at| -> Vec<u32> { text.iter().cycle().skip(at).take(40).copied().collect() });
    let run = |blocks: usize, swap_bytes: usize| {
        let (go, going) = mpsc::channel();
        let model = checkpoint.model(blocks).with_swap_space(swap_bytes);
        let options = EngineOptions { prefix_caching: false, ..options(3, 128) };
        let model = Box::new(Held(model, Some(going)));
        let engine =
            GenerationEngine::start(model, Arc::clone(&checkpoint.tokenizer), options).unwrap();
        let asked = prompts.each_ref().map(|prompt| submit(&engine, prompt, greedy(10)));
        go.send(()).unwrap();
        let said = asked.map(|events| answers(&events, 1).0.remove(0).0);
        (said, engine.statistics())
    };
    let (alone, calm) = run(64, 0);
    assert_eq!(calm.preemptions, 0);
    for (swap_bytes, kept) in [(0, false), (1 << 30, true)] {
        let (said, statistics) = run(24, swap_bytes);
        assert_eq!(said, alone);
        assert!(statistics.preemptions > 0, "{statistics:?}");
        assert_eq!(statistics.swapped_in > 0, kept, "{statistics:?}");
    }
}

#[test]
fn what_is_in_the_cache_changes_nothing() {
    let Some(checkpoint) = checkpoint() else { return };
    let engine = checkpoint.engine(64, options(4, 64));
    let case = &checkpoint.cases[3];
    for cached in [0, 8] {
        let (answers, found) = answers(&submit(&engine, &case.prompt, greedy(6)), 1);
        assert_eq!((&answers[0].0[..], found), (&case.greedy[..6], cached));
    }
}

#[test]
fn a_run_that_fails_takes_its_request_and_leaves_the_next_ones_right() {
    let Some(checkpoint) = checkpoint() else { return };
    let model = Box::new(checkpoint.failing_model(64, Some(2)));
    let tokenizer = Arc::clone(&checkpoint.tokenizer);
    let engine = GenerationEngine::start(model, tokenizer, options(4, 64)).unwrap();
    let case = &checkpoint.cases[3];
    let last = submit(&engine, &case.prompt, greedy(6)).iter().last();
    let Some(GenerationEvent::Failed(error)) = last else { panic!("{last:?}") };
    assert_eq!(error.to_string(), "step: execution provider 'reference': it is on fire");
    // The caches went with the run, and are not looked into.
    let (answers, found) = answers(&submit(&engine, &case.prompt, greedy(6)), 1);
    assert_eq!((&answers[0].0[..], found), (&case.greedy[..6], 0));
}

#[test]
fn steps_that_are_lost_with_their_device_are_computed_anew() {
    let Some(checkpoint) = checkpoint() else { return };
    let (go, going) = mpsc::channel();
    let model = Box::new(Held(checkpoint.model_on(64, Arc::new(LosingReference)), Some(going)));
    let tokenizer = Arc::clone(&checkpoint.tokenizer);
    let engine = GenerationEngine::start(model, tokenizer, options(4, 64)).unwrap();
    let statistics = check(checkpoint, (engine, go), 10);
    // Neither rows nor blocks of before are taken for those of the new device.
    assert!(statistics.steps > 12 && statistics.active_blocks == 0, "{statistics:?}");
}

#[test]
fn guessed_tokens_change_nothing() {
    let Some(checkpoint) = checkpoint() else { return };
    let speculative = Some(SpeculationMethod::PromptLookup { max_tokens: 4, ngram: 2 });
    let looking_up = EngineOptions { speculative, ..options(4, 32) };
    check(checkpoint, checkpoint.held(32, looking_up), 10);
    // The model itself guesses, so it is right but for rounding.
    let (go, going) = mpsc::channel();
    let model = Box::new(Held(checkpoint.model(32), Some(going)));
    let draft = Box::new(checkpoint.model(32));
    let (tokenizer, options) = (Arc::clone(&checkpoint.tokenizer), options(4, 32));
    let engine = GenerationEngine::start_with_draft(model, draft, 3, tokenizer, options).unwrap();
    let statistics = check(checkpoint, (engine, go), 5);
    assert!(statistics.accepted_tokens > 10, "{statistics:?}");
}

#[test]
fn several_answers_go_on_from_one_prompt() {
    let Some(checkpoint) = checkpoint() else { return };
    let sampling = |n| SamplingParameters {
        temperature: 1.0,
        seed: Some(5),
        n,
        max_tokens: Some(6),
        ..SamplingParameters::default()
    };
    let prompt = &checkpoint.cases[0].prompt;
    let engine = checkpoint.engine(64, options(4, 64));
    let (three, _) = answers(&submit(&engine, prompt, sampling(3)), 3);
    let (one, _) = answers(&submit(&engine, prompt, sampling(1)), 1);
    assert_eq!(three[0], one[0]);
    assert!(three[1] != three[0] && three[2] != three[1], "{three:?}");
    // The prompt's last block is not whole, so it was copied.
    assert!(!prompt.len().is_multiple_of(4));
}
