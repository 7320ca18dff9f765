//! Tests of the nodes that the GPU provider takes of whole models: all of them, but for a list with reasons.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_formats::{onnx, safetensors};
use galatea_gpu::{GpuDevice, GpuProvider, devices};
use galatea_graph::{Graph, infer};
use galatea_llm::arch::{self, T5Architecture};
use galatea_llm::config::JsonConfig;
use galatea_runtime::{ClaimRequest, ExecutionProvider, PreparedGraph, SessionOptions};
use galatea_tensor::{OrderedMap, OrderedSet};

/// With this variable set to a folder, ONNX files in it are looked at too.
const FOLDER: &str = "GALATEA_GPU_MODELS";

/// Encoders and encoder-decoders that are recorded.
const ENCODERS: &[&str] =
    &["bert-cls", "bert-rank", "distilbert-mean", "roberta-max", "xlm-roberta-rank"];
const WRITERS: &[&str] = &["t5", "flan-t5"];

/// The device under test. None where the host has none, which is said.
fn device() -> Option<Arc<GpuDevice>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some(GpuDevice::open(0).unwrap())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Operators that the GPU does not take, with the reasons.
fn unclaimed(device: &Arc<GpuDevice>, graph: Graph) -> OrderedSet<(String, String)> {
    let prepared = PreparedGraph::new(graph, SessionOptions::default().optimise).unwrap();
    let facts = infer::facts(&prepared.graph, &HashMap::new()).unwrap();
    let claims =
        GpuProvider::on(Arc::clone(device)).claim(&ClaimRequest::new(&prepared.graph, &facts));
    let taken: HashSet<usize> = claims.claims.iter().flat_map(|c| c.nodes.clone()).collect();
    let reasons: HashMap<usize, String> =
        claims.refusals.into_iter().map(|refusal| (refusal.node, refusal.reason)).collect();
    let nodes = prepared.graph.nodes.iter().enumerate();
    let left = nodes.filter(|(at, _)| !taken.contains(at));
    left.map(|(at, node)| (node.operator_name(), reasons.get(&at).cloned().unwrap_or_default()))
        .collect()
}

/// The graphs of recorded encoders and encoder-decoders.
fn texts() -> OrderedMap<String, Graph> {
    let golden = root().join("golden/llm");
    let mut all = OrderedMap::new();
    for name in ENCODERS {
        let config = JsonConfig::read(&golden.join(name).join("config.json")).unwrap();
        let weights = safetensors::open(&golden.join(name)).unwrap();
        let row = arch::encoder(&config).unwrap().unwrap();
        all.insert((*name).to_owned(), row.graph(&config, &weights).unwrap());
    }
    for name in WRITERS {
        let config = JsonConfig::read(&golden.join(name).join("config.json")).unwrap();
        let weights = safetensors::open(&golden.join(name)).unwrap();
        let model = T5Architecture::new(&config).unwrap();
        all.insert(format!("{name} encoder"), model.encoder(&weights).unwrap());
        all.insert(format!("{name} decoder"), model.decoder(&weights).unwrap());
    }
    all
}

/// The ONNX files in folders of a folder, and in it.
fn files(folder: &Path) -> OrderedMap<String, Graph> {
    let mut all = OrderedMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        let inner = entry.join("1/model.onnx");
        let path = if inner.exists() { inner } else { entry.clone() };
        if path.extension().is_some_and(|extension| extension == "onnx") {
            let name = entry.file_stem().unwrap().to_string_lossy().into_owned();
            all.insert(name, onnx::load(&path).unwrap());
        }
    }
    all
}

#[test]
fn the_gpu_takes_every_node_of_text_models() {
    let Some(device) = device() else { return };
    let left = texts().into_iter().map(|(name, graph)| (name, unclaimed(&device, graph)));
    let left: OrderedMap<_, _> = left.filter(|(_, left)| !left.is_empty()).collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn the_gpu_takes_every_node_of_samples() {
    let Some(device) = device() else { return };
    let mut all = files(&root().join("examples/models"));
    if let Some(folder) = std::env::var_os(FOLDER) {
        all.extend(files(Path::new(&folder)));
    }
    let mut left = OrderedMap::new();
    for (name, graph) in all {
        let mut own = unclaimed(&device, graph);
        // Text is for processors.
        own.retain(|(_, reason)| !reason.ends_with("is BYTES"));
        if !own.is_empty() {
            left.insert(name, own);
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}
