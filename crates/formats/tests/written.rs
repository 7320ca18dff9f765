//! Graphs that are written as ONNX and read again.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use galatea_formats::onnx::{self, WriteOptions};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, Node};
use galatea_tensor::{DataType, SmallType, Tensor};

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

/// A node's operator and constants, and the names of what it reads and writes.
fn described(graph: &Graph, node: &Node) -> String {
    let value = |id| (graph.value(id).name.clone(), graph.constant(id).cloned());
    let inputs: Vec<_> = node.inputs.iter().map(|slot| slot.map(value)).collect();
    let outputs: Vec<_> = node.outputs.iter().map(|slot| slot.map(value)).collect();
    let bodies = node.operator.bodies().iter();
    let bodies: Vec<Vec<String>> = bodies
        .map(|body| body.graph().nodes.iter().map(|node| described(body.graph(), node)).collect())
        .collect();
    format!("{} {:?} {inputs:?} {outputs:?} {bodies:?}", node.operator_name(), node.operator)
}

fn assert_same(graph: &Graph, again: &Graph) {
    assert_eq!(graph.nodes.len(), again.nodes.len());
    for (node, found) in graph.nodes.iter().zip(&again.nodes) {
        assert_eq!(described(graph, node), described(again, found));
    }
    let ports = |graph: &Graph, ids: &[galatea_graph::ValueId]| -> Vec<_> {
        let port = |&id| (graph.value(id).name.clone(), graph.value(id).declared.clone());
        ids.iter().map(port).collect()
    };
    assert_eq!(ports(graph, &graph.inputs), ports(again, &again.inputs));
    assert_eq!(ports(graph, &graph.outputs), ports(again, &again.outputs));
    assert_eq!(graph.opsets, again.opsets);
}

#[test]
fn the_sample_models_are_read_as_they_were_written() {
    let all = samples();
    assert!(all.len() >= 20, "{all:?}");
    for path in all {
        let model = onnx::load_model(&path).unwrap();
        let bytes = onnx::to_bytes(&model.graph, &model.info).unwrap();
        let again = onnx::parse_model(Bytes::from(bytes), None).unwrap();
        assert_same(&model.graph, &again.graph);
        assert_eq!(model.info.producer_name, again.info.producer_name);
    }
}

/// `y = x · w` with weights of a type.
fn product(weights: Tensor) -> Graph {
    let mut graph = Graph::new("product");
    graph.opsets.insert(String::new(), 21);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    let dims = vec![Dim::symbol("n"), Dim::Known(weights.shape()[0])];
    graph.value_mut(x).declared = Some(Fact::new(weights.dtype(), dims));
    let w = graph.value_named("w");
    graph.value_mut(w).initializer = Some(weights);
    graph.inputs = vec![x];
    graph.outputs = vec![y];
    let inputs = vec![Some(x), Some(w)];
    graph.add_node("", "MatMul", "product", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
    graph
}

#[test]
fn large_constants_go_into_a_file_beside_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let weights = (0..1024_u16).map(f32::from).collect();
    let graph = product(Tensor::from_vec(&[32, 32], weights).unwrap());
    let options = WriteOptions { inline_bytes: 1000 };
    onnx::write_model(&graph, &onnx::OnnxModelInfo::default(), &path, options).unwrap();
    assert!(path.metadata().unwrap().len() < 1000);
    assert_eq!(folder.path().join("model.onnx.data").metadata().unwrap().len(), 4096);
    let again = onnx::load_model(&path).unwrap();
    let w = again.graph.find_value("w").unwrap();
    let (found, wanted) = (again.graph.constant(w), graph.constant(graph.find_value("w").unwrap()));
    assert_eq!(found, wanted);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn numbers_of_few_bits_are_packed() {
    let mut graph = product(Tensor::zeros(DataType::Fp32, &[3, 5]).unwrap());
    let small = DataType::Small(SmallType::Int4);
    let codes: Vec<u8> = (0..15).collect();
    let quantised = Tensor::from_bytes(small, &[3, 5], &codes).unwrap();
    let w = graph.find_value("w").unwrap();
    graph.value_mut(w).initializer = None;
    let q = graph.value_named("q");
    graph.value_mut(q).initializer = Some(quantised.clone());
    let scale = graph.value_named("scale");
    graph.value_mut(scale).initializer = Some(Tensor::vector(vec![0.5_f32; 5]));
    let axis = Attributes::from([("axis".to_owned(), AttributeValue::Int(1))]);
    let inputs = vec![Some(q), Some(scale)];
    graph.add_node("", "DequantizeLinear", "w", &axis, inputs, vec![Some(w)]).unwrap();
    graph.sort().unwrap();
    let bytes = onnx::to_bytes(&graph, &onnx::OnnxModelInfo::default()).unwrap();
    let again = onnx::parse(Bytes::from(bytes), None).unwrap();
    assert_eq!(again.constant(again.find_value("q").unwrap()), Some(&quantised));
}

#[test]
fn what_has_no_form_in_onnx_is_refused_by_name() {
    let path = samples().into_iter().find(|path| path.to_string_lossy().contains("digits"));
    let mut graph = onnx::load(&path.unwrap()).unwrap();
    galatea_graph::rewrite::optimise(&mut graph, galatea_graph::rewrite::RewriteLevel::O3).unwrap();
    graph.sort().unwrap();
    let error = onnx::to_bytes(&graph, &onnx::OnnxModelInfo::default()).unwrap_err().to_string();
    assert!(error.contains("graph.node[") && error.contains("ai.galatea"), "{error}");
}
