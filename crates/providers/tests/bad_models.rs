//! Models with something wrong, through everything that happens to a model: reading, inference,
//! rewriting, planning and a run. What the fuzz targets do with any mutation, this does with fixed
//! mutations of their corpus, so that a build without a fuzzer covers damage too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use galatea_formats::onnx::proto::ModelProto;
use galatea_graph::limits::{self, Limits};
use galatea_runtime::ExecutionProvider;
use galatea_testkit::noise::Noise;
use galatea_testkit::{exercise, model_mutation};
use prost::Message;

/// Small limits: a mutation that asks for more than this is an error, soon.
static PROVIDERS: LazyLock<Vec<Arc<dyn ExecutionProvider>>> = LazyLock::new(|| {
    limits::set(Limits { value_bytes: 1 << 20, iterations: 16 }).unwrap();
    galatea_providers::all()
});

/// The models of the fuzzers' corpus, in a fixed order.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/models");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Walks through everything; says whether there was a graph, and whether it was run.
fn survives(bytes: &[u8], seed: u64) -> (bool, bool) {
    let providers = &*PROVIDERS;
    let Some(graph) = exercise::import(bytes) else { return (false, false) };
    exercise::rewrite(&graph);
    (true, exercise::run(&graph, providers, &mut Noise::new(seed)))
}

/// Changes of a model's bytes, which mostly do not decode.
fn damaged(bytes: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=noise.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = noise.below(bytes.len());
        match noise.below(4) {
            0 => bytes[at] ^= 1 << noise.below(8),
            1 => bytes[at] = 0xFF,
            2 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Mutations that are tried: each takes some milliseconds without optimisation.
const MUTATIONS: usize = 4000;
/// Larger models are left out: they take longer and break no differently.
const MOST_BYTES: usize = 4096;

#[test]
fn every_seed_of_the_fuzzers_is_read_rewritten_and_run() {
    for (at, bytes) in corpus().iter().enumerate() {
        survives(bytes, at as u64);
    }
}

#[test]
fn damage_is_an_error_or_another_model_never_a_panic() {
    let mut seeds = corpus();
    seeds.retain(|bytes| bytes.len() <= MOST_BYTES);
    let mut noise = Noise::new(1);
    let (mut graphs, mut runs) = (0, 0);
    for round in 0..MUTATIONS {
        let Some(seed) = noise.pick(&seeds) else { return };
        let bytes = match ModelProto::decode(Bytes::copy_from_slice(seed)) {
            Ok(mut model) if round % 8 > 0 => {
                if let (0, Some(other)) = (round % 5, noise.pick(&seeds))
                    && let Ok(other) = ModelProto::decode(Bytes::copy_from_slice(other))
                {
                    model_mutation::join(&mut model, &other, &mut noise);
                }
                model_mutation::mutate(&mut model, &mut noise);
                model.encode_to_vec()
            }
            _ => damaged(seed, &mut noise),
        };
        let (graph, run) = survives(&bytes, round as u64);
        graphs += usize::from(graph);
        runs += usize::from(run);
    }
    // Mutations that never get anywhere would prove nothing.
    assert!(graphs > MUTATIONS / 10, "{graphs} of {MUTATIONS} mutations are graphs");
    assert!(runs > MUTATIONS / 50, "{runs} of {MUTATIONS} mutations run");
}
