//! Tokens chosen by the GPU, or from what it brings back, beside those chosen from all logits.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use galatea_formats::safetensors;
use galatea_gpu::{GpuDevice, GpuProvider, devices};
use galatea_llm::arch::ModelShape;
use galatea_llm::cache::BlockCopy;
use galatea_llm::engine::{
    EngineOptions, GenerationEngine, LogitRows, SessionModel, StepBatch, StepModel,
};
use galatea_llm::error::Result;
use galatea_llm::sampling::{LogitNeed, LogitRow, SamplingParameters, TOP};
use galatea_llm::tokens::Tokenizer;
use galatea_llm::weights::CheckpointWeights;
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::ExecutionProvider;
use galatea_tensor::{Tensor, bf16};

use crate::gpu_language::{
    AskedRequest, StepGraph, TrainedCheckpoint, ask, config, greedy, ids, trained,
};

/// The device under test, opened for one test alone: its counters are looked at. None where the host has
/// none, which is said.
fn device() -> Option<Arc<GpuDevice>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some(GpuDevice::open(0).unwrap())
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

fn model(provider: Arc<dyn ExecutionProvider>, folder: &Path) -> SessionModel {
    StepGraph::of(folder).with_choices().on(provider)
}

fn gpu(device: &Arc<GpuDevice>) -> Arc<dyn ExecutionProvider> {
    Arc::new(GpuProvider::on(Arc::clone(device)))
}

/// A first step of sequences that begin with these tokens.
fn first_step(prompts: &[&[u32]], need: LogitNeed) -> StepBatch {
    let mut batch = StepBatch { starts: vec![0], most_blocks: 8, need, ..StepBatch::default() };
    for (at, prompt) in prompts.iter().enumerate() {
        batch.tokens.extend(prompt.iter().copied().map(i64::from));
        batch.positions.extend(0..prompt.len() as i64);
        batch.starts.push(batch.tokens.len() as i64);
        batch.lengths.push(prompt.len() as i64);
        batch.blocks.extend((at * 8..at * 8 + 8).map(|block| block as i64));
        batch.wanted.push(batch.tokens.len() as i64 - 1);
    }
    batch
}

/// The place of the first largest number.
fn argmax(row: &[f32]) -> u32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter().position(|logit| *logit == largest).unwrap() as u32
}

#[test]
fn a_step_brings_back_what_its_choices_need() {
    let Some(device) = device() else { return };
    let Some(TrainedCheckpoint { folder, cases }) = trained("books-qwen2-13m") else { return };
    let prompts: Vec<Vec<u32>> = (0..3).map(|at| ids(&cases[at], "ids")).collect();
    let prompts: Vec<&[u32]> =
        prompts.iter().map(|prompt| &prompt[..prompt.len().min(20)]).collect();
    let mut model = model(gpu(&device), &folder);
    let mut step = |need: LogitNeed| {
        let read = || device.counters.download_bytes.load(Ordering::Relaxed);
        let before = read();
        let logits = model.step(&first_step(&prompts, need)).unwrap();
        (logits, read() - before)
    };
    let (mut all, bytes) = step(LogitNeed::Logits);
    // Where memory is shared, large outputs are read where they are.
    assert!(bytes == 3 * 8192 * 4 || device.capabilities().unified, "{bytes}");
    let (mut best, bytes) = step(LogitNeed::Best);
    // A token of 8 bytes and its logit.
    assert_eq!(bytes, 3 * 12);
    let (mut top, bytes) = step(LogitNeed::Top);
    assert_eq!(bytes, (3 * 12 * TOP) as u64);
    assert_eq!((best.rows(), best.width(), top.rows(), top.width()), (3, 8192, 3, 8192));
    for row in 0..3 {
        let logits = all.row(row).unwrap().to_vec();
        assert_eq!((best.best(row), top.best(row)), (Some(argmax(&logits)), Some(argmax(&logits))));
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
        let values: Vec<f32> = order.iter().take(TOP).map(|at| logits[*at]).collect();
        let tokens: Vec<u32> = order.iter().take(TOP).map(|at| *at as u32).collect();
        let Some(LogitRow::Top(found)) = top.choices(row) else { panic!("all logits came") };
        assert_eq!(found, galatea_llm::sampling::TopTokens::new(&values, &tokens));
    }
}

#[test]
fn the_processor_gives_all_logits_whatever_is_needed() {
    let cpu = Arc::new(CpuProvider::new());
    let mut model = model(cpu, &golden("llama"));
    for need in [LogitNeed::Best, LogitNeed::Top, LogitNeed::Logits] {
        let mut logits = model.step(&first_step(&[&[1, 2, 3]], need)).unwrap();
        assert!(logits.row(0).is_some(), "{need:?}");
    }
}

/// Weights that give some token a logit that is no number.
struct Poisoned<W>(W);

/// Number of the poisoned token.
const POISONED: usize = 5;

impl<W: CheckpointWeights> CheckpointWeights for Poisoned<W> {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        let tensor = self.0.tensor(name)?;
        if name != "lm_head.weight" && name != "model.embed_tokens.weight" {
            return Ok(tensor);
        }
        let mut all = tensor.to_vec::<bf16>().unwrap();
        let width = tensor.shape()[1];
        all[POISONED * width..(POISONED + 1) * width].fill(bf16::NAN);
        Ok(Tensor::from_vec(tensor.shape(), all).unwrap())
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

#[test]
fn a_logit_that_is_no_number_is_never_chosen() {
    let Some(device) = device() else { return };
    let folder = golden("llama");
    let weights = Poisoned(safetensors::open(&folder).unwrap());
    let graph = StepGraph::new(&config(&folder), &weights).with_choices();
    let mut model = graph.on(gpu(&device));
    for need in [LogitNeed::Best, LogitNeed::Top] {
        let mut logits = model.step(&first_step(&[&[1, 2, 3]], need)).unwrap();
        let row = logits.row(0).unwrap().to_vec();
        assert!(row[POISONED].is_nan());
        assert_eq!(logits.best(0), Some(argmax(&row)));
    }
}

/// A model that is always asked for all logits, or is watched.
struct Watched {
    own: SessionModel,
    always: Option<LogitNeed>,
    needs: Arc<Mutex<Vec<LogitNeed>>>,
}

impl StepModel for Watched {
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
        self.needs.lock().unwrap().push(batch.need);
        let need = self.always.unwrap_or(batch.need);
        self.own.step(&StepBatch { need, ..batch.clone() })
    }
}

/// Ways to choose that need one token, few and all logits.
fn ways() -> Vec<SamplingParameters> {
    let greedy = greedy(12);
    let likely = SamplingParameters {
        temperature: 1.3,
        top_k: 40,
        top_p: 0.95,
        seed: Some(11),
        ..greedy.clone()
    };
    vec![
        greedy.clone(),
        likely.clone(),
        SamplingParameters { n: 3, top_k: 64, typical_p: 0.9, min_p: 0.01, ..likely.clone() },
        SamplingParameters { top_k: 0, ..likely },
        SamplingParameters { repetition_penalty: 1.2, ..greedy },
    ]
}

#[test]
fn tokens_are_those_that_are_chosen_from_all_logits() {
    let Some(device) = device() else { return };
    let Some(TrainedCheckpoint { folder, cases }) = trained("books-qwen2-13m") else { return };
    let tokenizer = Arc::new(Tokenizer::from_folder(&folder).unwrap());
    let prompts: Vec<Vec<u32>> = (0..2).map(|at| ids(&cases[at], "ids")).collect();
    let mut found: Vec<Vec<Vec<Vec<u32>>>> = Vec::new();
    for always in [None, Some(LogitNeed::Logits)] {
        let needs = Arc::new(Mutex::new(Vec::new()));
        let own = model(gpu(&device), &folder);
        let watched = Box::new(Watched { own, always, needs: Arc::clone(&needs) });
        let options = EngineOptions { prefix_caching: false, ..EngineOptions::default() };
        let engine = GenerationEngine::start(watched, Arc::clone(&tokenizer), options).unwrap();
        let mut told = Vec::new();
        for (way, most) in ways().iter().zip([
            LogitNeed::Best,
            LogitNeed::Top,
            LogitNeed::Top,
            LogitNeed::Logits,
            LogitNeed::Logits,
        ]) {
            needs.lock().unwrap().clear();
            told.push(ask(&engine, &prompts[0], way).answers());
            assert_eq!(needs.lock().unwrap().iter().max(), Some(&most), "{way:?}");
        }
        // Some alike and some not, together.
        let asked = [0, 1, 0, 2, 3].map(|way| ask(&engine, &prompts[1], &ways()[way]));
        told.extend(asked.map(AskedRequest::answers));
        found.push(told);
    }
    assert_eq!(found[0], found[1]);
    let recorded = ids(&cases[0], "greedy_ids").split_off(prompts[0].len());
    assert_eq!(found[0][0][0], recorded[..12]);
}

#[test]
fn a_greedy_answer_brings_back_a_token_a_step() {
    let Some(device) = device() else { return };
    let Some(TrainedCheckpoint { folder, cases }) = trained("books-gpt2-5m") else { return };
    let tokenizer = Arc::new(Tokenizer::from_folder(&folder).unwrap());
    let own = Box::new(model(gpu(&device), &folder));
    let engine = GenerationEngine::start(own, tokenizer, EngineOptions::default()).unwrap();
    let prompt = ids(&cases[0], "ids");
    let before = device.counters.download_bytes.load(Ordering::Relaxed);
    let answer = ask(&engine, &prompt, &ways()[0]).answer();
    let read = device.counters.download_bytes.load(Ordering::Relaxed) - before;
    assert_eq!(answer, ids(&cases[0], "greedy_ids")[prompt.len()..prompt.len() + 12]);
    assert_eq!(read, 12 * 12, "bytes of 12 steps");
}
