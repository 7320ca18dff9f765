//! What an engine adds to the time of a model's steps.
//!
//! `cargo bench -p galatea-llm --bench engine`
//!
//! The model gives the same logits again and again; the time inside it is left out.

#![allow(clippy::print_stdout, reason = "a benchmark reports on its terminal")]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use galatea_llm::arch::ModelShape;
use galatea_llm::cache::BlockCopy;
use galatea_llm::engine::{
    EngineOptions, GenerationEngine, GenerationEvent, GenerationRequest, LogitRows, StepBatch,
    StepModel,
};
use galatea_llm::error::Result;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::{GgufVocabulary, Tokenizer};

/// A model whose work is to copy logits.
struct Copies {
    shape: ModelShape,
    row: Vec<f32>,
    /// The memory of the logits.
    values: Vec<f32>,
    /// Nanoseconds inside the model.
    inside: Arc<AtomicU64>,
}

impl StepModel for Copies {
    fn shape(&self) -> &ModelShape {
        &self.shape
    }

    fn block_size(&self) -> NonZeroUsize {
        NonZeroUsize::MIN.saturating_add(15)
    }

    fn block_count(&self) -> usize {
        8192
    }

    fn copy(&mut self, _copies: &[BlockCopy]) -> Result<()> {
        Ok(())
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        let start = Instant::now();
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        for _ in &batch.wanted {
            values.extend_from_slice(&self.row);
        }
        let logits = LogitRows::new(values, self.row.len());
        let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.inside.fetch_add(time, Ordering::Relaxed);
        logits
    }

    fn take_back(&mut self, logits: LogitRows) {
        self.values = logits.into_values().unwrap_or_default();
    }
}

fn tokenizer(size: usize) -> Result<Arc<Tokenizer>> {
    let mut vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: "gpt-2".to_owned(),
        tokens: vec!["<end>".to_owned()],
        token_types: vec![3],
        eos: Some(0),
        ..GgufVocabulary::default()
    };
    let bytes = (0x21..=0x7E).chain(0xA1..=0xAC).chain(0xAE..=0xFF).chain(0x100..=0x143);
    vocabulary.tokens.extend(bytes.filter_map(char::from_u32).map(String::from));
    vocabulary.tokens.extend((vocabulary.tokens.len()..size).map(|id| format!("w{id}")));
    vocabulary.token_types.resize(size, 1);
    Ok(Arc::new(Tokenizer::from_gguf(&vocabulary)?))
}

/// Microseconds of a step outside the model, with so many sequences at once.
fn measure(tokenizer: &Arc<Tokenizer>, row: &[f32], sequences: u32, tokens: u32) -> Result<f64> {
    let inside = Arc::new(AtomicU64::new(0));
    let shape =
        ModelShape { layers: 1, kv_heads: 1, head_size: 1, vocabulary: row.len(), positions: 4096 };
    let model =
        Copies { shape, row: row.to_vec(), values: Vec::new(), inside: Arc::clone(&inside) };
    let options = EngineOptions { max_batched_tokens: 65_536, ..EngineOptions::default() };
    let engine = GenerationEngine::start(Box::new(model), Arc::clone(tokenizer), options)?;
    let sampling = SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(tokens),
        ignore_eos: true,
        ..SamplingParameters::default()
    };
    let (sender, receiver) = mpsc::channel();
    for client in 0..u64::from(sequences) {
        let sender = sender.clone();
        let request = GenerationRequest {
            prompt: (0..900).map(|at| 1 + (at * 7) % 250).collect(),
            sampling: sampling.clone(),
            constraint: None,
            priority: 0,
            client,
            salt: client,
            id: String::new(),
        };
        let sink = Box::new(move |event| match event {
            GenerationEvent::Started { .. } => {
                let _ = sender.send(true);
            }
            GenerationEvent::Finished(_) => {
                let _ = sender.send(false);
            }
            _ => {}
        });
        engine.submit(request, sink)?.detach();
    }
    // From when all have begun until all have ended.
    let events = |began: bool| receiver.iter().filter(move |found| *found == began);
    let _ = events(true).take(sequences as usize).count();
    let (start, before) = (Instant::now(), inside.load(Ordering::Relaxed));
    let steps = engine.statistics().steps;
    let _ = events(false).take(sequences as usize).count();
    let time = start.elapsed().as_secs_f64() * 1e6;
    let model = (inside.load(Ordering::Relaxed) - before) as f64 / 1e3;
    Ok((time - model) / (engine.statistics().steps - steps) as f64)
}

fn main() -> Result<()> {
    println!("outside the model, best of 5");
    for vocabulary in [300, 151_936] {
        let tokenizer = tokenizer(vocabulary)?;
        let mut row = vec![0.5; vocabulary];
        row[77] = 9.0;
        let few = if vocabulary > 1000 { 4 } else { 1 };
        for (sequences, tokens) in [(1, 2000), (16, 400), (64, 200)] {
            let tokens = tokens / few;
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                best = best.min(measure(&tokenizer, &row, sequences, tokens)?);
            }
            println!(
                "{vocabulary:>7} tokens known, {sequences:>2} sequences: {best:8.1} µs a step"
            );
        }
    }
    Ok(())
}
