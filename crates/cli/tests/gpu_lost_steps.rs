//! Language models whose GPU loses a step in the middle of an answer: the text is what it is without a loss, and
//! nothing that the lost step wrote to a cache is used.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use galatea_formats::safetensors;
use galatea_gpu::{DeviceFault, GpuDevice, GpuProvider, PoolConfig, devices};
use galatea_llm::arch::{self, ModelShape, StepOptions};
use galatea_llm::cache::BlockCopy;
use galatea_llm::config::JsonConfig;
use galatea_llm::engine::{
    EngineOptions, GenerationEngine, GenerationEvent, GenerationRequest, LogitRows, RequestTicket,
    SessionModel, StepBatch, StepModel,
};
use galatea_llm::error::Result;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::Tokenizer;
use galatea_runtime::{Session, SessionOptions};
use serde_json::Value;

/// Positions of a block, so that a prompt lies in several, and the blocks.
const BLOCK: usize = 4;
const BLOCKS: usize = 96;

/// Tokens of an answer, and the step in which the GPU begins to fail.
const TOKENS: u32 = 12;
const STEP: usize = 6;

/// A way in which a GPU loses what it computed.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// It reports work as done that it did not do.
    Silent(DeviceFault),
    /// It is gone.
    Gone,
}

/// A model whose GPU fails in a step, and the steps that it was asked for.
struct LosingModel {
    own: SessionModel,
    device: Arc<GpuDevice>,
    loss: Option<Loss>,
    steps: Arc<Mutex<Vec<StepBatch>>>,
}

impl StepModel for LosingModel {
    fn shape(&self) -> &ModelShape {
        self.own.shape()
    }

    fn block_size(&self) -> NonZeroUsize {
        self.own.block_size()
    }

    fn block_count(&self) -> usize {
        self.own.block_count()
    }

    fn copy(&mut self, copies: &[BlockCopy]) -> Result<()> {
        self.own.copy(copies)
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        let mut steps = self.steps.lock().unwrap();
        steps.push(batch.clone());
        let due = steps.len() == STEP;
        drop(steps);
        match self.loss.filter(|_| due) {
            Some(Loss::Silent(fault)) => self.device.act_out(fault, 0),
            Some(Loss::Gone) => self.device.give_up("pulled out"),
            None => {}
        }
        self.own.step(batch)
    }
}

/// The folder of a checkpoint that was trained on books, and its recorded cases.
fn trained() -> Option<(PathBuf, Value)> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let folder = PathBuf::from(shared).join("models");
    let recorded = std::fs::read(folder.join("golden.json")).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    let name = "books-gpt2-5m";
    Some((folder.join(name), recorded[name]["cases"].clone()))
}

fn ids(case: &Value, key: &str) -> Vec<u32> {
    let id = |id: &Value| u32::try_from(id.as_u64().unwrap()).unwrap();
    case[key].as_array().unwrap().iter().map(id).collect()
}

fn model(device: &Arc<GpuDevice>, folder: &Path) -> SessionModel {
    let config = JsonConfig::read(&folder.join("config.json")).unwrap();
    let row = arch::architecture(&config).unwrap();
    let shape = row.shape(&config).unwrap();
    let weights = safetensors::open(folder).unwrap();
    let graph = row.graph_for(&config, &weights, &StepOptions::default()).unwrap();
    let provider = Arc::new(GpuProvider::on(Arc::clone(device)));
    let session = Session::new(graph, &[provider], &SessionOptions::default()).unwrap();
    SessionModel::new(session, shape, NonZeroUsize::new(BLOCK).unwrap(), BLOCKS).unwrap()
}

type Asked = (RequestTicket, Receiver<GenerationEvent>);

fn ask(engine: &GenerationEngine, prompt: &[u32]) -> Asked {
    let sampling = SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(TOKENS),
        ignore_eos: true,
        ..SamplingParameters::default()
    };
    let (priority, client, salt, constraint, id) = (0, 0, 0, None, String::new());
    let prompt = prompt.to_vec();
    let request = GenerationRequest { id, prompt, sampling, constraint, priority, client, salt };
    let (to, events) = mpsc::channel();
    (engine.submit(request, Box::new(move |event| drop(to.send(event)))).unwrap(), events)
}

/// The tokens of a request's answer.
fn answer((_ticket, events): Asked) -> Vec<u32> {
    let mut answer = Vec::new();
    loop {
        match events.recv().unwrap() {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => answer.extend(delta.tokens),
            GenerationEvent::Finished(_) => return answer,
            GenerationEvent::Failed(error) => panic!("{error}"),
        }
    }
}

/// Answers two prompts together and the first one again, on a GPU that loses a step of the first two.
fn answers(loss: Loss, pool: &PoolConfig) {
    let Some((folder, cases)) = trained() else { return };
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return;
    }
    let device = GpuDevice::open_with(0, pool).unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let losing = LosingModel {
        own: model(&device, &folder),
        device: Arc::clone(&device),
        loss: Some(loss),
        steps: Arc::clone(&steps),
    };
    let tokenizer = Arc::new(Tokenizer::from_folder(&folder).unwrap());
    let engine =
        GenerationEngine::start(Box::new(losing), tokenizer, EngineOptions::default()).unwrap();
    let prompts: Vec<Vec<u32>> = (0..2).map(|at| ids(&cases[at], "ids")).collect();
    let expected: Vec<Vec<u32>> = (0..2)
        .map(|at| ids(&cases[at], "greedy_ids")[prompts[at].len()..][..TOKENS as usize].to_vec())
        .collect();
    let asked: Vec<Asked> = prompts.iter().map(|prompt| ask(&engine, prompt)).collect();
    let found: Vec<Vec<u32>> = asked.into_iter().map(answer).collect();
    assert_eq!(found, expected, "{loss:?}");
    assert!(device.alive().is_err(), "{loss:?}: the step was lost");
    // Everything that the answers had until then is computed anew, and not read from the caches of the lost step.
    let later = steps.lock().unwrap().split_off(STEP);
    let begins = |batch: &StepBatch| {
        let rows = batch.starts.iter().zip(batch.starts.iter().skip(1));
        let mut full = rows.filter(|(from, to)| to > from);
        full.all(|(from, _)| batch.positions[usize::try_from(*from).unwrap()] == 0)
    };
    // The commands of the first step may have been ready before the GPU began to fail.
    assert!(later.iter().take(2).any(begins), "{loss:?}: {:?}", later.first());
    // A prompt that the engine knew before is one whose blocks are good.
    assert_eq!(answer(ask(&engine, &prompts[0])), expected[0], "{loss:?}");
    let living = device.living().unwrap();
    let lost = living.counters.lost_runs.load(Ordering::Relaxed);
    assert_eq!(lost, u64::from(matches!(loss, Loss::Silent(_))), "{loss:?}");
}

#[test]
fn an_answer_is_the_same_where_a_step_was_lost_without_a_word() {
    for fault in [DeviceFault::LastDispatch, DeviceFault::IgnoredWork] {
        answers(Loss::Silent(fault), &PoolConfig::default());
    }
}

#[test]
fn an_answer_is_the_same_where_copies_of_a_step_were_lost() {
    answers(Loss::Silent(DeviceFault::LostCopies), &PoolConfig::default().unified_up_to(0));
}

#[test]
fn an_answer_is_the_same_where_the_gpu_went_away() {
    answers(Loss::Gone, &PoolConfig::default());
}
