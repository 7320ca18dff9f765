//! The provider `coreml`: what it claims runs as a program of FP16, the rest elsewhere.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use galatea_graph::{Attributes, Fact, Graph, ONNX_DOMAIN, ValueId};
use galatea_providers::coreml::CoreMlProvider;
use galatea_providers::reference::ReferenceProvider;
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, f16};

fn graph(dtype: DataType, operators: &[&str]) -> Graph {
    let mut graph = Graph::new("chain");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 26);
    let mut at: ValueId = graph.value_named("x");
    graph.value_mut(at).declared = Some(Fact::fixed(dtype, &[2, 3]));
    graph.inputs.push(at);
    for (index, operator) in operators.iter().enumerate() {
        let to = graph.value_named(&format!("{operator}_{index}"));
        let inputs = match *operator {
            "Add" | "Mul" => vec![Some(at), Some(at)],
            "CumProd" => vec![Some(at), Some(graph.add_constant("axis", Tensor::scalar(1_i64)))],
            _ => vec![Some(at)],
        };
        let none = Attributes::new();
        graph.add_node((ONNX_DOMAIN, operator), "", &none, inputs, vec![Some(to)]).unwrap();
        at = to;
    }
    graph.outputs.push(at);
    graph
}

fn session(graph: Graph, provider: CoreMlProvider) -> Session {
    let first = provider.insisting().unwrap();
    let providers: Vec<Arc<dyn ExecutionProvider>> = vec![first, Arc::new(ReferenceProvider)];
    let options = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    Session::new(graph, &providers, &options).unwrap()
}

#[test]
fn each_operation_rounds_to_halves_unless_told_otherwise() {
    let x = Tensor::from_vec(&[2, 3], vec![0.1_f32, 0.2, 0.3, 0.7, 1.1, 2.3]).unwrap();
    let run = |provider| {
        let session = session(graph(DataType::Fp32, &["Exp", "Mul"]), provider);
        assert_eq!(session.partition_providers(), ["coreml"]);
        session.run(&[("x", x.clone())]).unwrap()[0].to_vec::<f32>().unwrap()
    };
    let half = |value: f32| f16::from_f32(value).to_f32();
    let halves = |value: f32| {
        let exp = half(half(value).exp());
        half(exp * exp)
    };
    let values = x.to_vec::<f32>().unwrap();
    let rounded: Vec<f32> = values.iter().copied().map(halves).collect();
    assert_eq!(run(CoreMlProvider::new()), rounded);
    let single = CoreMlProvider::new();
    single.configure(&BTreeMap::from([("precision".to_owned(), "fp32".to_owned())])).unwrap();
    for (found, value) in run(single).into_iter().zip(values) {
        assert!((found - (2.0 * value).exp()).abs() < 1e-4 * found, "{found} of {value}");
    }
}

#[test]
fn what_has_no_operation_runs_elsewhere() {
    let session =
        session(graph(DataType::Fp32, &["Tanh", "CumProd", "Exp"]), CoreMlProvider::new());
    assert_eq!(session.partition_providers(), ["coreml", "reference", "coreml"]);
    let x = Tensor::from_vec(&[2, 3], vec![0.5_f32; 6]).unwrap();
    let found = session.run(&[("x", x)]).unwrap()[0].to_vec::<f32>().unwrap();
    let expected = [1, 2, 3].map(|power| 0.5_f32.tanh().powi(power).exp());
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 2e-3;
    assert!(found.iter().zip(expected.iter().cycle()).all(near), "{found:?}, {expected:?}");
}

#[test]
fn integers_of_64_bits_are_refused_when_32_do_not_hold_them() {
    let session = session(graph(DataType::Int64, &["Add"]), CoreMlProvider::new());
    let small = Tensor::from_vec(&[2, 3], vec![1_i64, 2, 3, -4, 5, 6]).unwrap();
    let found = session.run(&[("x", small)]).unwrap();
    assert_eq!(found[0].to_vec::<i64>().unwrap(), [2, 4, 6, -8, 10, 12]);
    let large = Tensor::from_vec(&[2, 3], vec![1_i64 << 40; 6]).unwrap();
    let error = session.run(&[("x", large)]).unwrap_err().to_string();
    assert!(error.contains("1099511627776 is beyond the 32 bits that a program has"), "{error}");
}

#[test]
fn a_setting_that_there_is_not_is_named() {
    let provider = CoreMlProvider::new();
    let set = |name: &str, value: &str| {
        provider.configure(&BTreeMap::from([(name.to_owned(), value.to_owned())])).unwrap_err()
    };
    assert_eq!(set("precision", "int8"), "precision 'int8' found, expected fp16 or fp32");
    assert_eq!(set("speed", "high"), "'speed' found, expected precision, worker, power_mode");
}
