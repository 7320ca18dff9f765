//! Language models whose GPU loses a step in the middle of an answer: the text is what it is without a loss, and
//! nothing that the lost step wrote to a cache is used.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use galatea_gpu::{DeviceFault, GpuDevice, GpuProvider, PoolConfig, devices};
use galatea_llm::arch::ModelShape;
use galatea_llm::cache::BlockCopy;
use galatea_llm::engine::{
    EngineOptions, GenerationEngine, LogitRows, SessionModel, StepBatch, StepModel,
};
use galatea_llm::error::Result;
use galatea_llm::tokens::Tokenizer;

use crate::gpu_language::{AskedRequest, StepGraph, TrainedCheckpoint, ask, greedy, ids, trained};

/// Tokens of an answer, and the step in which the GPU begins to fail.
const TOKENS: u32 = 12;
const STEP: usize = 6;

/// A way in which a GPU loses what it computed.
#[derive(Clone, Copy, Debug)]
enum StepLoss {
    /// It reports work as done that it did not do.
    Silent(DeviceFault),
    /// It is gone.
    Gone,
}

/// A model whose GPU fails in a step, and the steps that it was asked for.
struct LosingModel {
    own: SessionModel,
    device: Arc<GpuDevice>,
    loss: Option<StepLoss>,
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
            Some(StepLoss::Silent(fault)) => self.device.act_out(fault, 0),
            Some(StepLoss::Gone) => self.device.give_up("pulled out"),
            None => {}
        }
        self.own.step(batch)
    }
}

/// Answers two prompts together and the first one again, on a GPU that loses a step of the first two.
fn answers(loss: StepLoss, pool: &PoolConfig) {
    let Some(TrainedCheckpoint { folder, cases }) = trained("books-gpt2-5m") else { return };
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return;
    }
    let device = GpuDevice::open_with(0, pool).unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let losing = LosingModel {
        own: StepGraph::of(&folder).on(Arc::new(GpuProvider::on(Arc::clone(&device)))),
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
    let asked: Vec<AskedRequest> =
        prompts.iter().map(|prompt| ask(&engine, prompt, &greedy(TOKENS))).collect();
    let found: Vec<Vec<u32>> = asked.into_iter().map(AskedRequest::answer).collect();
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
    let again = ask(&engine, &prompts[0], &greedy(TOKENS)).answer();
    assert_eq!(again, expected[0], "{loss:?}");
    let living = device.living().unwrap();
    let lost = living.counters.lost_runs.load(Ordering::Relaxed);
    assert_eq!(lost, u64::from(matches!(loss, StepLoss::Silent(_))), "{loss:?}");
}

#[test]
fn an_answer_is_the_same_where_a_step_was_lost_without_a_word() {
    for fault in [DeviceFault::LastDispatch, DeviceFault::IgnoredWork] {
        answers(StepLoss::Silent(fault), &PoolConfig::default());
    }
}

#[test]
fn an_answer_is_the_same_where_copies_of_a_step_were_lost() {
    answers(StepLoss::Silent(DeviceFault::LostCopies), &PoolConfig::default().unified_up_to(0));
}

#[test]
fn an_answer_is_the_same_where_the_gpu_went_away() {
    answers(StepLoss::Gone, &PoolConfig::default());
}
