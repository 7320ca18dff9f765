//! Tests of what stays as it is, and why.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use galatea_graph::{Attributes, Dim, Fact, ONNX_DOMAIN};
use galatea_tensor::DataType;

use super::*;

/// A graph of one operator with inputs of these axes, and constant weights as its second input.
fn graph(op: &str, dims: &[Dim], weights: &[usize]) -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
    let x = graph.value_named("x");
    let w = graph.value_named("w");
    let y = graph.value_named("y");
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims.to_vec()));
    let count = weights.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|at| (at % 7) as f32 - 3.0).collect();
    graph.value_mut(w).initializer = Some(Tensor::from_vec(weights, values).unwrap());
    (graph.inputs, graph.outputs) = (vec![x], vec![y]);
    let none = Attributes::new();
    graph.add_node(ONNX_DOMAIN, op, "", &none, vec![Some(x), Some(w)], vec![Some(y)]).unwrap();
    graph
}

fn why(graph: &Graph, bits: LowBits) -> String {
    let folder = tempfile::tempdir().unwrap();
    LoadQuantization::new(bits, folder.path()).quantized(graph, &[], 1).unwrap_err()
}

#[test]
fn made_samples_are_of_one_row_and_differ() {
    let graph = graph("MatMul", &[Dim::symbol("batch"), Dim::Known(8)], &[8, 4]);
    let made = made_samples(&graph).unwrap();
    assert_eq!(made.len(), 8);
    assert!(made.iter().all(|sample| sample[0].1.shape() == [1, 8]));
    let values = |at: usize| made[at][0].1.to_vec::<f32>().unwrap();
    assert_ne!(values(0), values(1));
}

#[test]
fn a_model_without_layers_to_quantize_says_so() {
    let image = [Dim::Known(1), Dim::Known(1), Dim::Known(4), Dim::Known(4)];
    let conv = graph("Conv", &image, &[1, 1, 3, 3]);
    let text = why(&conv, LowBits::Int8);
    assert!(text.contains("need samples of inputs in the model's folder 'calibration'"), "{text}");
    let add = graph("Add", &[Dim::Known(8)], &[8]);
    assert!(why(&add, LowBits::Int4).contains("no layer that can become"));
}

#[test]
fn a_quantized_model_stays_as_it_is() {
    let mut graph = graph("MatMul", &[Dim::Known(2), Dim::Known(8)], &[8, 4]);
    let y = graph.outputs[0];
    let outputs: Vec<_> = ["q", "s", "z"].map(|name| Some(graph.value_named(name))).to_vec();
    let none = Attributes::new();
    let inputs = vec![Some(y)];
    graph.add_node(ONNX_DOMAIN, "DynamicQuantizeLinear", "", &none, inputs, outputs).unwrap();
    let text = why(&graph, LowBits::Int8);
    assert!(text.contains("quantized already (DynamicQuantizeLinear)"), "{text}");
}

#[test]
fn samples_decide_the_form_and_belong_to_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let plain = LoadQuantization::new(LowBits::Int8, folder.path());
    assert_eq!(plain.options().mode, QuantizeMode::Dynamic);
    fs::create_dir(folder.path().join(SAMPLES)).unwrap();
    let path = folder.path().join(SAMPLES).join("a.npz");
    fs::write(&path, "one").unwrap();
    let calibrated = LoadQuantization::new(LowBits::Int8, folder.path());
    assert_eq!(calibrated.options().mode, QuantizeMode::Static);
    let name = calibrated.name().unwrap();
    assert_ne!(name, plain.name().unwrap());
    fs::write(&path, "two").unwrap();
    assert_ne!(name, calibrated.name().unwrap());
    let int4 = LoadQuantization::new(LowBits::Int4, folder.path());
    assert_eq!(int4.options().algorithm, RoundingAlgorithm::Gptq);
    assert!(int4.name().unwrap().starts_with("int4 Int4"));
}
