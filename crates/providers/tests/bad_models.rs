//! Models with something wrong, through everything that happens to a model: reading, inference,
//! rewriting, planning and a run. What the fuzz targets do with any mutation, this does with fixed
//! mutations of their corpus, so that a build without a fuzzer covers damage too.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use galatea_formats::onnx::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use galatea_graph::Graph;
use galatea_graph::limits::{self, GraphLimits};
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::model::{self, FLOAT};
use galatea_testkit::noise::NoiseGenerator;
use galatea_testkit::{exercise, model_mutation};
use prost::Message;

/// Small limits: a mutation that asks for more than this is an error, soon.
static PROVIDERS: LazyLock<Vec<Arc<dyn ExecutionProvider>>> = LazyLock::new(|| {
    limits::set(GraphLimits { value_bytes: 1 << 20, iterations: 16 }).unwrap();
    galatea_providers::all()
});

/// Bytes as a graph. The limits hold before anything asks for them: they are set once, and the first
/// use sets them too.
fn import(bytes: &[u8]) -> Option<Graph> {
    LazyLock::force(&PROVIDERS);
    exercise::import(bytes)
}

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
    let Some(graph) = import(bytes) else { return (false, false) };
    exercise::rewrite(&graph);
    (true, exercise::run(&graph, providers, &mut NoiseGenerator::new(seed)))
}

/// Changes of a model's bytes, which mostly do not decode.
fn damaged(bytes: &[u8], noise: &mut NoiseGenerator) -> Vec<u8> {
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

/// Mutations that are tried: each takes about a millisecond without optimisation. The environment
/// variable `GALATEA_MUTATIONS` asks for another number, and so for others.
const MUTATIONS: usize = 8000;
/// Larger models are left out: they take longer and break no differently.
const MAX_BYTES: usize = 4096;

#[test]
fn every_seed_of_the_fuzzers_is_read_rewritten_and_run() {
    for (at, bytes) in corpus().iter().enumerate() {
        survives(bytes, at as u64);
    }
}

#[test]
fn damage_is_an_error_or_another_model_never_a_panic() {
    let mut seeds = corpus();
    seeds.retain(|bytes| bytes.len() <= MAX_BYTES);
    let asked = std::env::var("GALATEA_MUTATIONS").ok();
    let count = asked.map_or(MUTATIONS, |count| count.parse().unwrap());
    let mut noise = NoiseGenerator::new(count as u64);
    let (mut graphs, mut runs) = (0, 0);
    for round in 0..count {
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
    assert!(graphs > count / 10, "{graphs} of {count} mutations are graphs");
    assert!(runs > count / 50, "{runs} of {count} mutations run");
}

/// A graph of one node over these inputs and constants, and what every provider says of it.
fn refusals(node: NodeProto, inputs: &[(&str, &[usize])], constants: &[(&str, &[usize])]) {
    let text = |shape: &[usize]| shape.iter().map(usize::to_string).collect::<Vec<_>>();
    let value = |&(name, shape): &(&str, &[usize])| {
        let text = text(shape);
        model::value(name, FLOAT, &text.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let constant = |&(name, shape): &(&str, &[usize])| {
        let dims: Vec<i64> = shape.iter().map(|&len| i64::try_from(len).unwrap()).collect();
        model::floats(name, &dims, &vec![0.5; shape.iter().product()])
    };
    let graph = GraphProto {
        output: vec![ValueInfoProto { name: node.output[0].clone(), r#type: None }],
        node: vec![node],
        input: inputs.iter().map(value).collect(),
        initializer: constants.iter().map(constant).collect(),
        ..GraphProto::default()
    };
    let graph = import(&model::encode(&model::model(graph, 23))).unwrap();
    for provider in &*PROVIDERS {
        let options = SessionOptions { threads: 1, ..SessionOptions::default() };
        let Ok(session) = Session::new(graph.clone(), &[Arc::clone(provider)], &options) else {
            continue;
        };
        let given: Vec<(&str, Tensor)> = inputs
            .iter()
            .map(|(name, shape)| (*name, Tensor::zeros(DataType::Fp32, shape).unwrap()))
            .collect();
        assert!(
            session.run_tensors(Run::named(&given)).is_err(),
            "{} computes it",
            provider.name()
        );
    }
}

#[test]
fn values_of_another_batch_than_their_keys_are_refused() {
    let node = model::node("Attention", &["q", "k", "v"], &["y"]);
    refusals(node, &[("q", &[2, 9, 4, 8]), ("k", &[2, 3, 6, 8]), ("v", &[1, 3, 6, 8])], &[]);
}

#[test]
fn a_bias_of_a_convolution_has_an_element_for_each_channel() {
    let node = model::node("Conv", &["x", "w", "b"], &["y"]);
    for bias in [&[1, 0, 2][..], &[3], &[5], &[1, 4], &[]] {
        refusals(node.clone(), &[("x", &[2, 4, 6, 6])], &[("w", &[4, 4, 3, 3]), ("b", bias)]);
    }
}

#[test]
fn weights_of_another_hidden_size_than_the_attribute_are_refused() {
    for hidden_size in [1, 3] {
        let mut node = model::node("LSTM", &["x", "w", "r"], &["y"]);
        node.attribute = vec![model::int("hidden_size", hidden_size)];
        refusals(node, &[("x", &[1, 1, 3])], &[("w", &[1, 8, 3]), ("r", &[1, 8, 2])]);
    }
}

#[test]
fn a_result_of_more_axes_than_a_tensor_has_is_refused_by_its_node() {
    let mut unsqueeze = model::node("Unsqueeze", &["x", "axes"], &["y"]);
    unsqueeze.name = "wide".to_owned();
    let axes: Vec<i64> = (0..100).collect();
    let graph = GraphProto {
        node: vec![unsqueeze],
        input: vec![model::value("x", FLOAT, &["2"])],
        output: vec![ValueInfoProto { name: "y".to_owned(), r#type: None }],
        initializer: vec![model::int64s("axes", &[100], &axes)],
        ..GraphProto::default()
    };
    let graph = import(&model::encode(&model::model(graph, 23))).unwrap();
    let text = Session::new(graph, &PROVIDERS, &SessionOptions::default()).unwrap_err().to_string();
    assert!(text.contains("'wide' (Unsqueeze)"), "{text}");
    assert!(text.ends_with("a result of 101 axes, at most 64 are possible"), "{text}");
}

#[test]
fn windows_whose_steps_are_beyond_the_kernels_run_by_the_reference() {
    let x: (&str, &[usize]) = ("x", &[1, 1, 2, 2]);
    for (name, list) in
        [("strides", [1, 1 << 31]), ("strides", [1 << 62, 1]), ("dilations", [1 << 40, 1])]
    {
        for op in ["AveragePool", "MaxPool", "Conv"] {
            let mut node = model::node(op, &["x"], &["y"]);
            node.attribute = vec![
                model::ints("kernel_shape", &[2, 2]),
                model::ints("pads", &[1, 1, 1, 1]),
                model::ints(name, &list),
            ];
            let mut graph = GraphProto {
                output: vec![ValueInfoProto { name: "y".to_owned(), r#type: None }],
                input: vec![model::value("x", FLOAT, &["1", "1", "2", "2"])],
                ..GraphProto::default()
            };
            if op == "Conv" {
                node.input.push("w".to_owned());
                graph.initializer = vec![model::floats("w", &[1, 1, 2, 2], &[1.0; 4])];
            }
            graph.node = vec![node];
            let graph = import(&model::encode(&model::model(graph, 19))).unwrap();
            let answer = |provider: &Arc<dyn ExecutionProvider>| {
                let options = SessionOptions { threads: 1, ..SessionOptions::default() };
                let session =
                    Session::new(graph.clone(), &[Arc::clone(provider)], &options).ok()?;
                session
                    .run_tensors(Run::named(&[(x.0, Tensor::zeros(DataType::Fp32, x.1).unwrap())]))
                    .ok()
            };
            let answers: Vec<_> = PROVIDERS.iter().map(answer).collect();
            assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{op} {name} {list:?}");
        }
    }
}
