//! Models with loops, branches and sequences: every provider gives what ONNX Runtime gives, and the
//! kernels run inside of bodies too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Maker, floats};
use galatea_formats::stored::{self, LargeConstant};
use galatea_formats::{npy, onnx};
use galatea_graph::{
    AttributeValue, Datum, Dim, Fact, Graph, Node, OpError, Operator, OperatorInputs,
    SubgraphAttribute, TensorSequence, ValueId, tensors_only,
};
use galatea_providers::{all, by_name};
use galatea_runtime::{IoInfo, OptimiseLevel, PreparedGraph, Run, Session, SessionOptions};
use galatea_tensor::{Allocation, DataType, HostBuffer, Tensor, Tolerance, compare};
use galatea_testkit::exported::control_flow;

/// Written by python/export_control_flow.py.
const MODELS: &[&str] =
    &["choose", "collect", "condition", "generate", "nested", "recur", "repeat", "until"];

fn archive(name: &str) -> Vec<(String, Tensor)> {
    npy::read_npz(&control_flow(name)).unwrap()
}

fn options(optimise: OptimiseLevel) -> SessionOptions {
    SessionOptions { threads: 2, optimise, ..SessionOptions::default() }
}

/// The same, read from bytes.
fn through_bytes(prepared: &PreparedGraph) -> PreparedGraph {
    let mut file: Vec<u8> = Vec::new();
    let mut place = |tensor: &Tensor| {
        let offset = file.len().next_multiple_of(64);
        file.resize(offset, 0);
        file.extend(tensor.unaligned_bytes().unwrap());
        Ok(LargeConstant { file: 0, offset: offset as u64 })
    };
    let ports = |all: &[IoInfo]| -> Vec<(String, Fact)> {
        all.iter().map(|io| (io.name.clone(), io.fact())).collect()
    };
    let (inputs, outputs) = (ports(&prepared.inputs), ports(&prepared.outputs));
    let (bytes, _) = stored::write(&prepared.graph, &inputs, &outputs, &mut place).unwrap();
    let memory: Arc<dyn Allocation> = Arc::new(HostBuffer::try_copy(&file).unwrap());
    let again = stored::read(&bytes, &[memory]).unwrap();
    let ports = |all: Vec<(String, Fact)>| -> Vec<IoInfo> {
        all.into_iter().map(|(name, fact)| IoInfo::new(name, &fact)).collect()
    };
    let again = PreparedGraph {
        graph: again.graph,
        inputs: ports(again.inputs),
        outputs: ports(again.outputs),
    };
    assert_eq!((&again.inputs, &again.outputs), (&prepared.inputs, &prepared.outputs));
    again
}

#[test]
fn rewritten_graphs_with_bodies_run_after_they_were_stored() {
    for name in MODELS {
        let given = archive(&format!("{name}.in.npz"));
        let given: Vec<(&str, Tensor)> =
            given.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        for level in [OptimiseLevel::O0, OptimiseLevel::O2, OptimiseLevel::O3] {
            let graph = onnx::load(&control_flow(&format!("{name}.onnx"))).unwrap();
            let prepared = PreparedGraph::new(graph, level).unwrap();
            let again = through_bytes(&prepared);
            let provider = by_name("cpu").unwrap();
            let run = |prepared| {
                Session::of_prepared(prepared, &[Arc::clone(&provider)], &options(level))
                    .unwrap()
                    .run_tensors(Run::named(&given))
                    .unwrap()
            };
            for (first, second) in run(prepared).iter().zip(&run(again)) {
                compare(second, first, Tolerance::Exact).unwrap();
            }
        }
    }
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
            let graph = onnx::load(&control_flow(&format!("{name}.onnx"))).unwrap();
            let session = Session::new(graph, &[provider], &options(level)).unwrap();
            for _ in 0..2 {
                let found = session.run_tensors(Run::named(&given)).unwrap();
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
    maker.made.graph
}

fn attribute(graph: Graph, captured: usize) -> AttributeValue {
    AttributeValue::Graph(Box::new(SubgraphAttribute { graph, captured }))
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
    let expected =
        session("reference", OptimiseLevel::O0).run_tensors(Run::named(&inputs)).unwrap();
    let fast = session("cpu", OptimiseLevel::default());
    let found = fast.run_tensors(Run::named(&inputs)).unwrap();
    let tolerance = Tolerance::Accumulated { terms: 512, accumulator: DataType::Fp32 };
    compare(&found[0], &expected[0], tolerance).unwrap();
    let rows = fast.run(Run::named(&inputs).profiled()).unwrap().rows;
    assert_eq!(rows[0].kernel, "bodies");
    // The weight moved into the body and is counted there, with its packed copy.
    let inside = fast.graph().nodes[0].operator.bodies()[0].graph();
    assert!(inside.constant(inside.find_value("weight").unwrap()).is_some());
    assert!(fast.report().memory.initializer_bytes >= 2 * 64 * 64 * size_of::<f32>());
    assert!(!fast.time_follows_shapes());
}

#[test]
fn a_session_takes_and_gives_sequences_and_optional_values() {
    let mut maker = Maker::new();
    let list = maker.graph.value_named("list");
    let fact = Fact::new(DataType::Fp32, vec![Dim::Unknown]);
    maker.graph.value_mut(list).declared = Some(fact.within(galatea_graph::FactKind::Sequence));
    maker.graph.inputs.push(list);
    let x = maker.input("x", floats(&[2], 1));
    let longer = maker.node("SequenceInsert", &[], &[Some(list), x], 1);
    let kept = maker.node("Optional", &[], &longer, 1);
    let count = maker.node("SequenceLength", &[], &longer, 1);
    maker.graph.outputs = [longer[0], kept[0], count[0]].into_iter().flatten().collect();
    let (one, two) = (floats(&[3], 2), floats(&[2], 1));
    let sequence = |items| Datum::Sequence(TensorSequence::new(DataType::Fp32, items).unwrap());
    for provider in all() {
        let session =
            Session::new(maker.graph.clone(), &[provider], &SessionOptions::default()).unwrap();
        let given = [("list", sequence(vec![one.clone()])), ("x", Datum::Tensor(two.clone()))];
        let found = session.run(Run::values(&given)).map(|ran| ran.outputs).unwrap();
        let expected = sequence(vec![one.clone(), two.clone()]);
        assert_eq!(found[0], expected);
        assert_eq!(found[1], Datum::Optional(Some(Box::new(expected))));
        assert_eq!(found[2], Datum::Tensor(Tensor::scalar(2_i64)));
        let wrong = [("list", Datum::Tensor(one.clone())), ("x", Datum::Tensor(two.clone()))];
        let text = session.run(Run::values(&wrong)).map(|ran| ran.outputs).unwrap_err().to_string();
        assert!(
            text.contains("input 'list' is a tensor, expected a sequence of type FP32"),
            "{text}"
        );
    }
}

/// Hands a sequence on and counts how often its list has moved.
#[derive(Debug, Default)]
struct Probe {
    moves: AtomicUsize,
    last: AtomicUsize,
}

#[derive(Debug)]
struct Probed(Arc<Probe>);

impl Operator for Probed {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let sequence = inputs.into_iter().flatten().next().unwrap().into_sequence()?;
        let place = sequence.items().as_ptr().addr();
        if self.0.last.swap(place, Ordering::Relaxed) != place {
            self.0.moves.fetch_add(1, Ordering::Relaxed);
        }
        Ok(vec![Datum::Sequence(sequence)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

/// A branch that reads `list`, `item` and gives one value.
fn branch(op: &str, names: &[&str]) -> AttributeValue {
    let mut maker = Maker::new();
    let inputs: Vec<Option<ValueId>> =
        names.iter().map(|name| Some(maker.graph.value_named(name))).collect();
    maker.graph.inputs.extend(inputs.iter().flatten());
    let output = maker.node(op, &[], &inputs, 1);
    maker.graph.outputs.extend(output[0]);
    attribute(maker.made.graph, names.len())
}

#[test]
fn a_loop_that_appends_to_a_sequence_does_not_copy_it_each_time() {
    const ROUNDS: i64 = 2000;
    let probe = Arc::new(Probe::default());
    let inner = body(|maker| {
        let list = maker.graph.value_named("list");
        let item = maker.graph.value_named("item");
        let fact = Fact::unranked(DataType::Fp32).within(galatea_graph::FactKind::Sequence);
        maker.graph.value_mut(list).declared = Some(fact);
        let two = maker.constant(Tensor::scalar(2_i64));
        let i = maker.graph.find_value("i");
        let rest = maker.node("Mod", &[], &[i, two], 1);
        let odd = maker.node("Cast", &[("to", AttributeValue::Int(9))], &rest, 1);
        let branches = [
            ("then_branch", branch("SequenceInsert", &["list", "item"])),
            ("else_branch", branch("Identity", &["list"])),
        ];
        let longer = maker.node("If", &branches, &odd, 1);
        let probed = maker.graph.value_named("probed");
        maker.graph.nodes.push(Node {
            name: "probe".to_owned(),
            domain: "test".to_owned(),
            op_type: "Probe".to_owned(),
            inputs: longer,
            outputs: vec![Some(probed)],
            operator: Arc::new(Probed(Arc::clone(&probe))),
            parsed: None,
        });
        maker.graph.outputs.push(probed);
        maker.graph.inputs.extend([list, item]);
    });
    let mut maker = Maker::new();
    let item = maker.graph.value_named("item");
    maker.graph.value_mut(item).declared = Some(Fact::fixed(DataType::Fp32, &[4]));
    maker.graph.inputs.push(item);
    let count = maker.constant(Tensor::scalar(ROUNDS));
    let empty = maker.node("SequenceEmpty", &[], &[], 1)[0];
    let list = maker.node("Loop", &[("body", attribute(inner, 1))], &[count, None, empty], 1);
    maker.graph.outputs.extend(list[0]);
    for provider in all() {
        probe.moves.store(0, Ordering::Relaxed);
        let session =
            Session::new(maker.graph.clone(), &[provider], &SessionOptions::default()).unwrap();
        let found = session
            .run(Run::values(&[("item", Datum::Tensor(floats(&[4], 1)))]))
            .map(|ran| ran.outputs)
            .unwrap();
        let list = found.into_iter().next().unwrap().into_sequence().unwrap();
        assert_eq!(list.items().len(), usize::try_from(ROUNDS / 2).unwrap());
        // The list grows by doubling: it moves a dozen times.
        let moves = probe.moves.load(Ordering::Relaxed);
        assert!(moves < 100, "the list moved {moves} times in {ROUNDS} rounds");
    }
}
