//! Nodes that become one dispatch: sums behind products with weights of few bits, and rotations by the same angles.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::matrices::{Made, Scales};
use crate::support;
use crate::support::node::floats;
use galatea_gpu::GpuDevice;
use galatea_graph::blocks::{BlockWeights, CodeFormat, CodeMeaning};
use galatea_graph::ops::fused::BlockMatMul;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId, evaluate};
use galatea_runtime::{Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn small() -> Graph {
    let mut graph = Graph::new("small");
    graph.opsets = [(String::new(), 23), ("ai.galatea".into(), 1)].into_iter().collect();
    graph
}

fn input(graph: &mut Graph, name: &str, dtype: DataType, dims: Vec<Dim>) -> ValueId {
    let id = graph.value_named(name);
    graph.value_mut(id).declared = Some(Fact::new(dtype, dims));
    graph.inputs.push(id);
    id
}

fn node(graph: &mut Graph, op: &str, heads: Option<i64>, inputs: &[ValueId]) -> ValueId {
    let heads = heads.map(|heads| ("num_heads".to_owned(), AttributeValue::Int(heads)));
    let attributes: Attributes = heads.into_iter().collect();
    let result = graph.fresh_value("value");
    let inputs = inputs.iter().copied().map(Some).collect();
    graph.add_node("", op, op, &attributes, inputs, vec![Some(result)]).unwrap();
    result
}

/// The outputs on the device, compared with the reference, and the dispatches of a run.
fn dispatches(device: &Arc<GpuDevice>, graph: &Graph, inputs: &[Tensor], tolerance: f64) -> u64 {
    let session = support::session(device, graph, &SessionOptions::default()).unwrap();
    let expected = evaluate::run(graph, inputs).unwrap();
    let before = device.counters.dispatches.load(Ordering::Relaxed);
    let found = session.run_tensors(Run::owned(inputs.to_vec())).unwrap();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        compare(found, expected, Tolerance::Within(tolerance)).unwrap();
    }
    device.counters.dispatches.load(Ordering::Relaxed) - before
}

/// `x · W + bias`, to which the graph may add `rest`; `kept` where somebody else wants the product too.
fn product(rows: usize, added: bool, kept: bool, bias: bool) -> (Graph, Vec<Tensor>) {
    let mut graph = small();
    let (n, k) = (36, 96);
    let lead = Dim::symbol("rows");
    let x = input(&mut graph, "x", DataType::Fp32, vec![lead.clone(), Dim::Known(k)]);
    let format = (CodeFormat::new(4, 32, CodeMeaning::Zero(8.)), Scales::Floats(DataType::Fp16));
    let weights =
        Made { rows: n, columns: k, format: format.0, scales: format.1, seed: 3, at: None };
    let weights: Arc<dyn BlockWeights> = Arc::new(weights);
    let op = Arc::new(BlockMatMul::new(vec![weights]).unwrap());
    let y = graph.fresh_value("y");
    let bias = bias.then(|| graph.add_constant("bias", floats(&[n], 1.0)));
    graph.add_operator("ai.galatea", "BlockMatMul", op, vec![Some(x), bias], vec![Some(y)]);
    let mut inputs = vec![floats(&[rows, k], 1.0)];
    let mut result = y;
    if added {
        let rest = input(&mut graph, "rest", DataType::Fp32, vec![lead, Dim::Known(n)]);
        inputs.push(floats(&[rows, n], 2.0));
        result = node(&mut graph, "Add", None, &[rest, y]);
    }
    graph.outputs = if kept { vec![result, y] } else { vec![result] };
    (graph, inputs)
}

#[test]
fn a_sum_is_part_of_the_product_before_it() {
    let Some(device) = support::own_device() else { return };
    for (rows, bias) in [(1, false), (1, true), (7, false), (40, true)] {
        let (plain, inputs) = product(rows, false, false, bias);
        let alone = dispatches(&device, &plain, &inputs, 1e-4);
        let (with_sum, inputs) = product(rows, true, false, bias);
        let both = dispatches(&device, &with_sum, &inputs, 1e-4);
        assert_eq!(both, alone, "{rows} rows");
    }
}

#[test]
fn a_product_that_is_an_output_stays_by_itself() {
    let Some(device) = support::own_device() else { return };
    let (plain, inputs) = product(5, false, false, false);
    let alone = dispatches(&device, &plain, &inputs, 1e-4);
    let (both, inputs) = product(5, true, true, false);
    assert_eq!(dispatches(&device, &both, &inputs, 1e-4), alone + 1);
}

/// Queries and keys of so many heads turned by tables; `chained` where the keys are made of turned queries.
fn turned(rows: usize, heads: [usize; 2], chained: bool) -> (Graph, Vec<Tensor>) {
    let mut graph = small();
    let (width, positions) = (8, 64);
    let lead = [Dim::Known(1), Dim::symbol("rows")];
    let of = |count: usize| lead.iter().cloned().chain([Dim::Known(count * width)]).collect();
    let q = input(&mut graph, "q", DataType::Fp32, of(heads[0]));
    let at = input(&mut graph, "at", DataType::Int64, lead.to_vec());
    let cos = graph.add_constant("cos", floats(&[positions, width / 2], 1.0));
    let sin = graph.add_constant("sin", floats(&[positions, width / 2], 0.5));
    let numbers: Vec<i64> = (0..rows).map(|row| i64::try_from(row * 5 % 64).unwrap()).collect();
    let numbers = Tensor::from_vec(&[1, rows], numbers).unwrap();
    let mut inputs = vec![floats(&[1, rows, heads[0] * width], 1.0), numbers];
    let count = |heads: usize| Some(i64::try_from(heads).unwrap());
    let first = node(&mut graph, "RotaryEmbedding", count(heads[0]), &[q, cos, sin, at]);
    let k = if chained {
        node(&mut graph, "Neg", None, &[first])
    } else {
        inputs.push(floats(&[1, rows, heads[1] * width], 3.0));
        input(&mut graph, "k", DataType::Fp32, of(heads[1]))
    };
    let second = node(&mut graph, "RotaryEmbedding", count(heads[1]), &[k, cos, sin, at]);
    graph.outputs = vec![first, second];
    (graph, inputs)
}

#[test]
fn queries_and_keys_turn_at_once() {
    let Some(device) = support::own_device() else { return };
    for (rows, heads) in [(1, [7, 1]), (5, [4, 4]), (33, [3, 2])] {
        let (graph, inputs) = turned(rows, heads, false);
        assert_eq!(dispatches(&device, &graph, &inputs, 1e-5), 1, "{rows} rows");
    }
}

#[test]
fn what_depends_on_a_rotation_turns_after_it() {
    let Some(device) = support::own_device() else { return };
    let (graph, inputs) = turned(6, [3, 3], true);
    assert_eq!(dispatches(&device, &graph, &inputs, 1e-5), 3);
}
