//! Decoders in chunks of fixed lengths beside what was recorded of them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::reference::Reference;
use galatea_formats::safetensors;
use galatea_llm::arch::{self, FixedGraph, FixedOptions};
use galatea_llm::cache::BlockCopy;
use galatea_llm::chunked::{ChunkFunction, ChunkModel, ChunkSizes, SessionChunks};
use galatea_llm::config::JsonConfig;
use galatea_llm::engine::{StepBatch, StepModel};
use galatea_llm::sampling::LogitNeed;
use galatea_runtime::{ExecutionProvider, SessionOptions};
use serde_json::Value;

/// Positions of a state: more than any recorded sequence has, and no multiple of the functions' rows.
const CONTEXT: usize = 42;
/// Rows of the functions.
const ROWS: [usize; 3] = [1, 4, 16];
/// States.
const SEQUENCES: usize = 3;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

fn graph(name: &str, rows: usize, multiple: usize) -> FixedGraph {
    let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
    let weights = safetensors::open(&folder(name)).unwrap();
    let row = arch::architecture(&config).unwrap();
    let options = FixedOptions { rows, context: CONTEXT, multiple, exported: false };
    row.fixed_graph(&config, &weights, &options).unwrap()
}

/// A model whose layers are chunks of their own but for the first two.
fn model(name: &str, multiple: usize) -> ChunkModel {
    let mut functions = Vec::new();
    let graphs = ROWS.map(|rows| graph(name, rows, multiple));
    let layers = graphs[0].shape().layers;
    let mut cuts: Vec<_> = (2..layers).map(|at| at..at + 1).collect();
    cuts.insert(0, 0..2.min(layers));
    for (rows, graph) in ROWS.into_iter().zip(&graphs) {
        for (chunk, cut) in cuts.iter().enumerate() {
            let (graph, states) = (graph.layers(cut.clone()).unwrap(), 2 * cut.len());
            functions.push(((chunk, rows), ChunkFunction { graph, states }));
        }
    }
    let head = ChunkFunction { graph: graphs[0].head().unwrap(), states: 0 };
    functions.push(((cuts.len(), 1), head));
    let mut shape = graphs[0].shape().clone();
    shape.positions = CONTEXT;
    let sizes = ChunkSizes {
        shape,
        state_positions: CONTEXT.next_multiple_of(multiple),
        chunks: cuts.len(),
        rows: ROWS.to_vec(),
        windows: graphs[0].windows(),
        sequences: SEQUENCES,
    };
    let providers: Vec<Arc<dyn ExecutionProvider>> = vec![Arc::new(Reference { failing: None })];
    let functions = SessionChunks::new(functions, providers, SessionOptions::default());
    ChunkModel::new(sizes, graphs[0].tables().to_vec(), Box::new(functions)).unwrap()
}

/// New tokens of the sequence that has a state, and how many it has before them.
type Piece<'t> = (usize, usize, &'t [i64]);

/// Rows of all pieces, of which all are wanted.
fn batch(pieces: &[Piece<'_>]) -> StepBatch {
    let mut batch = StepBatch { starts: vec![0], most_blocks: 1, ..StepBatch::default() };
    for &(block, before, tokens) in pieces {
        batch.tokens.extend(tokens);
        batch.positions.extend((before..before + tokens.len()).map(|at| at as i64));
        batch.starts.push(batch.tokens.len() as i64);
        batch.lengths.push((before + tokens.len()) as i64);
        batch.blocks.push(block as i64);
    }
    batch.wanted = (0..batch.tokens.len() as i64).collect();
    batch.need = LogitNeed::Logits;
    batch
}

fn step(model: &mut ChunkModel, pieces: &[Piece<'_>]) -> Vec<Vec<f32>> {
    let batch = batch(pieces);
    let mut logits = model.step(&batch).unwrap();
    (0..batch.wanted.len()).map(|row| logits.row(row).unwrap().to_vec()).collect()
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
}

/// The recorded logits of every sequence, in windows and token by token, and two sequences in turn.
fn check(name: &str, multiple: usize) {
    let golden = std::fs::read(folder(name).join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    let cases: Vec<Vec<i64>> =
        golden["cases"].as_array().unwrap().iter().map(|case| integers(&case["ids"])).collect();
    let mut model = model(name, multiple);
    let mut alone = Vec::new();
    for (tokens, case) in cases.iter().zip(golden["cases"].as_array().unwrap()) {
        let rows = step(&mut model, &[(1, 0, tokens)]);
        let recorded = case["logits"].as_array().unwrap();
        for (row, expected) in rows.iter().rev().zip(recorded.iter().rev()) {
            for (found, expected) in row.iter().zip(expected.as_array().unwrap()) {
                let expected = expected.as_f64().unwrap();
                let distance = (f64::from(*found) - expected).abs();
                // Sums of 40 terms in FP32 on both sides.
                assert!(
                    distance < 1e-4 * expected.abs().max(1.0),
                    "{name}: {found}, not {expected}"
                );
            }
        }
        alone.push(rows);
    }
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    let (first, second) = (&cases[0], &cases[cases.len() - 1]);
    for at in 0..first.len().max(second.len()) {
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        pieces.extend(first.get(at..=at).map(|token| (0, at, token)));
        pieces.extend(second.get(at..=at).map(|token| (2, at, token)));
        let rows = step(&mut model, &pieces);
        let mut expected = Vec::new();
        expected.extend(alone[0].get(at));
        expected.extend(alone[cases.len() - 1].get(at));
        assert!(rows.iter().zip(expected).all(|(a, b)| near(a, b)), "{name}, row {at}");
    }
    // A copy goes on where its original was.
    model.copy(&[BlockCopy { from: 0, to: 1 }]).unwrap();
    let token = [1_i64];
    let both = step(&mut model, &[(0, first.len(), &token), (1, first.len(), &token)]);
    assert_eq!(both[0], both[1], "{name}");
}

#[test]
fn llama_in_chunks_gives_the_recorded_logits() {
    for name in ["llama", "llama-biases", "llama-yarn", "mistral-window"] {
        check(name, 1);
    }
}

#[test]
fn qwen_in_chunks_gives_the_recorded_logits() {
    for name in ["qwen2", "qwen2-window", "qwen3"] {
        check(name, 1);
    }
}

#[test]
fn gpt2_in_chunks_gives_the_recorded_logits() {
    check("gpt2", 1);
}

#[test]
fn gemma3_in_chunks_gives_the_recorded_logits() {
    check("gemma3", 1);
}

#[test]
fn rows_beyond_the_last_position_are_refused() {
    let mut model = model("qwen2", 1);
    let tokens = vec![1_i64; CONTEXT];
    assert_eq!(step(&mut model, &[(0, 0, &tokens)]).len(), CONTEXT);
    let error = model.step(&batch(&[(0, CONTEXT, &[1])])).unwrap_err().to_string();
    assert!(error.contains("sequence 0 has other rows"), "{error}");
    let error = model.step(&batch(&[(SEQUENCES, 0, &[1])])).unwrap_err().to_string();
    assert!(error.contains("sequence 0 has other rows"), "{error}");
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let config = JsonConfig::read(&folder("qwen2").join("config.json")).unwrap();
    let weights = safetensors::open(&folder("qwen2")).unwrap();
    let row = arch::architecture(&config).unwrap();
    for (rows, context) in [(0, 8), (9, 8), (1, 1 << 20)] {
        let error = row
            .fixed_graph(
                &config,
                &weights,
                &FixedOptions { rows, context, multiple: 1, exported: false },
            )
            .unwrap_err();
        assert!(error.to_string().contains("expected rows from 1"), "{error}");
    }
}

#[test]
fn padded_caches_are_multiples_in_both_lengths_and_change_no_logits() {
    let graph = graph("gemma3", 4, 32);
    let size = graph.shape().head_size.next_multiple_of(32);
    for layer in 0..graph.shape().layers {
        for kind in ["key", "value"] {
            let id = graph.graph().inputs.iter().copied();
            let mut named =
                id.filter(|&id| graph.graph().value(id).name == format!("{kind}.{layer}"));
            let fact = graph.graph().value(named.next().unwrap()).declared.clone().unwrap();
            assert_eq!(fact.known_shape().unwrap()[2..], [64, size]);
        }
    }
    assert!(size > graph.shape().head_size && CONTEXT < 64);
    check("gemma3", 32);
    check("gpt2", 32);
}
