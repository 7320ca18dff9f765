use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_graph::rewrite::{self, RewriteLevel};
use galatea_tensor::{Allocation, HostBuffer};

use super::*;
use crate::onnx;

/// The sample models that are ONNX files, and those on which rewriting is tested.
fn samples() -> Vec<PathBuf> {
    let files = |folder: &str, file: &str| -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        let inside = |entry: PathBuf| if file.is_empty() { entry } else { entry.join(file) };
        entries.map(inside).filter(|path| path.is_file()).collect()
    };
    let mut all = files("../../examples/models", "1/model.onnx");
    all.extend(files("../testkit/exports", ""));
    all
}

/// The bytes of a rewritten graph, and a file with its large constants.
fn stored(path: &Path, level: RewriteLevel) -> (Vec<u8>, Vec<Arc<dyn Allocation>>) {
    let mut graph = onnx::load(path).unwrap();
    rewrite::optimise(&mut graph, level).unwrap();
    graph.sort().unwrap();
    let mut file: Vec<u8> = Vec::new();
    let ports = |ids: &[galatea_graph::ValueId]| -> Vec<(String, Fact)> {
        let fact = |id| graph.value(id).declared.clone();
        let port = |&id| {
            let unknown = || Fact::unranked(DataType::Fp32);
            (graph.value(id).name.clone(), fact(id).unwrap_or_else(unknown))
        };
        ids.iter().map(port).collect()
    };
    let inputs = ports(&graph.inputs);
    let outputs = ports(&graph.outputs);
    let mut place = |tensor: &Tensor| {
        let offset = file.len().next_multiple_of(64);
        file.resize(offset, 0);
        file.extend(tensor.unaligned_bytes().unwrap());
        Ok(LargeConstant { file: 0, offset: offset as u64 })
    };
    let (bytes, _) = write(&graph, &inputs, &outputs, &mut place).unwrap();
    let memory: Arc<dyn Allocation> = Arc::new(HostBuffer::try_copy(&file).unwrap());
    let again = read(&bytes, &[Arc::clone(&memory)]).unwrap();
    for (node, found) in graph.nodes.iter().zip(&again.graph.nodes) {
        let constants = |graph: &Graph, node: &galatea_graph::Node| -> Vec<Option<Tensor>> {
            node.inputs.iter().map(|slot| slot.and_then(|id| graph.constant(id).cloned())).collect()
        };
        assert_eq!(constants(&graph, node), constants(&again.graph, found), "{}", node.name);
        assert_eq!((&node.name, &node.op_type), (&found.name, &found.op_type));
        assert_eq!(format!("{:?}", node.operator), format!("{:?}", found.operator));
    }
    assert_eq!(again.inputs, inputs);
    (bytes, vec![memory])
}

#[test]
fn the_sample_models_are_read_as_they_were_written() {
    let all = samples();
    assert!(all.len() >= 20, "{all:?}");
    for path in all {
        for level in [RewriteLevel::O0, RewriteLevel::O1, RewriteLevel::O2, RewriteLevel::O3] {
            stored(&path, level);
        }
    }
}

#[test]
fn damaged_bytes_are_errors_or_other_graphs_and_never_panics() {
    let path = samples().into_iter().find(|path| path.to_string_lossy().contains("digits"));
    let (bytes, files) = stored(&path.unwrap(), RewriteLevel::O3);
    for end in 0..bytes.len() {
        let _ = read(&bytes[..end], &files);
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let _ = read(&damaged, &files);
    }
    assert!(read(&bytes, &[]).is_err());
}
