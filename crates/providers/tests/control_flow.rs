//! Models with loops, branches and sequences: every provider gives what ONNX Runtime gives, and the
//! kernels run inside of bodies too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};

use galatea_formats::{npy, onnx};
use galatea_graph::{AttributeValue, Datum, Dim, Fact, Graph, Sequence, Subgraph};
use galatea_providers::{all, by_name};
use galatea_runtime::{OptimiseLevel, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};
use support::{Maker, floats};

/// Written by python/export_control_flow.py.
const MODELS: &[&str] = &["choose", "collect", "condition", "generate", "nested", "repeat"];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_flow").join(name)
}

fn archive(name: &str) -> Vec<(String, Tensor)> {
    npy::read_npz(&data(name)).unwrap()
}

fn options(optimise: OptimiseLevel) -> SessionOptions {
    SessionOptions { threads: 2, optimise, ..SessionOptions::default() }
}

#[test]
fn models_with_control_flow_give_what_onnx_runtime_gives() {
    // Sums of up to 16 products, through up to a dozen rounds.
    let tolerance = Tolerance::Accumulated { terms: 512, accumulator: DataType::Fp32 };
    for name in MODELS {
        let (given, expected) =
            (archive(&format!("{name}.in.npz")), archive(&format!("{name}.out.npz")));
        let given: Vec<(&str, Tensor)> =
            given.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        for (provider, level) in all().into_iter().flat_map(|provider| {
            [OptimiseLevel::O0, OptimiseLevel::default()].map(|level| (provider.clone(), level))
        }) {
            let graph = onnx::load(&data(&format!("{name}.onnx"))).unwrap();
            let session = Session::new(graph, &[provider], &options(level)).unwrap();
            for _ in 0..2 {
                let found = session.run(&given).unwrap();
                assert_eq!(found.len(), expected.len());
                for (info, found) in session.outputs().iter().zip(&found) {
                    let (_, expected) = expected.iter().find(|(n, _)| *n == info.name).unwrap();
                    compare(found, expected, tolerance)
                        .unwrap_or_else(|error| panic!("{name}, '{}': {error}", info.name));
                }
            }
        }
    }
}

/// A body over the iteration, the condition and what is given to `nodes`.
fn body(nodes: impl FnOnce(&mut Maker)) -> Graph {
    let mut maker = Maker::new();
    for (name, dtype) in [("i", DataType::Int64), ("go", DataType::Bool)] {
        let id = maker.graph.value_named(name);
        maker.graph.value_mut(id).declared = Some(Fact::new(dtype, Vec::new()));
        maker.graph.inputs.push(id);
    }
    let go = maker.graph.find_value("go");
    let going = maker.node("Identity", &[], &[go], 1);
    maker.graph.outputs.extend(going[0]);
    nodes(&mut maker);
    maker.graph
}

fn attribute(graph: Graph, captured: usize) -> AttributeValue {
    AttributeValue::Graph(Box::new(Subgraph { graph, captured }))
}

#[test]
fn bodies_are_packed_once_and_weigh_what_they_hold() {
    let inner = body(|maker| {
        let state = Some(maker.graph.value_named("state"));
        let weight = Some(maker.graph.value_named("weight"));
        let product = maker.node("MatMul", &[], &[state, weight], 1);
        let next = maker.node("Tanh", &[], &product, 1);
        maker.graph.outputs.extend(next[0]);
        maker.graph.inputs.extend(state.into_iter().chain(weight));
    });
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 64], 1));
    let weight = maker.graph.value_named("weight");
    maker.graph.value_mut(weight).initializer = Some(floats(&[64, 64], 2));
    let count = maker.constant(Tensor::scalar(5_i64));
    let y = maker.node("Loop", &[("body", attribute(inner, 1))], &[count, None, x], 1);
    maker.graph.outputs = y.iter().flatten().copied().collect();
    let inputs = [("x", floats(&[4, 64], 1))];
    let session = |provider: &str, level| {
        Session::new(maker.graph.clone(), &[by_name(provider).unwrap()], &options(level)).unwrap()
    };
    let expected = session("reference", OptimiseLevel::O0).run(&inputs).unwrap();
    let fast = session("cpu", OptimiseLevel::default());
    let found = fast.run(&inputs).unwrap();
    let tolerance = Tolerance::Accumulated { terms: 512, accumulator: DataType::Fp32 };
    compare(&found[0], &expected[0], tolerance).unwrap();
    // The weight moved into the body and is counted there, with its packed copy.
    let inside = fast.graph().nodes[0].operator.bodies()[0].graph();
    assert!(inside.constant(inside.find_value("weight").unwrap()).is_some());
    assert!(fast.memory().initializer_bytes >= 2 * 64 * 64 * size_of::<f32>());
    assert!(!fast.time_follows_shapes());
}

#[test]
fn a_session_takes_and_gives_sequences_and_optional_values() {
    let mut maker = Maker::new();
    let list = maker.graph.value_named("list");
    let fact = Fact::new(DataType::Fp32, vec![Dim::Unknown]);
    maker.graph.value_mut(list).declared = Some(fact.within(galatea_graph::ValueKind::Sequence));
    maker.graph.inputs.push(list);
    let x = maker.input("x", floats(&[2], 1));
    let longer = maker.node("SequenceInsert", &[], &[Some(list), x], 1);
    let kept = maker.node("Optional", &[], &longer, 1);
    let count = maker.node("SequenceLength", &[], &longer, 1);
    maker.graph.outputs = [longer[0], kept[0], count[0]].into_iter().flatten().collect();
    let (one, two) = (floats(&[3], 2), floats(&[2], 1));
    let sequence = |items| Datum::Sequence(Sequence::new(DataType::Fp32, items).unwrap());
    for provider in all() {
        let session =
            Session::new(maker.graph.clone(), &[provider], &SessionOptions::default()).unwrap();
        let given = [("list", sequence(vec![one.clone()])), ("x", Datum::Tensor(two.clone()))];
        let found = session.run_values(&given).unwrap();
        let expected = sequence(vec![one.clone(), two.clone()]);
        assert_eq!(found[0], expected);
        assert_eq!(found[1], Datum::Optional(Some(Box::new(expected))));
        assert_eq!(found[2], Datum::Tensor(Tensor::scalar(2_i64)));
        let wrong = [("list", Datum::Tensor(one.clone())), ("x", Datum::Tensor(two.clone()))];
        let text = session.run_values(&wrong).unwrap_err().to_string();
        assert!(
            text.contains("input 'list' is a tensor, expected a sequence of type FP32"),
            "{text}"
        );
    }
}
