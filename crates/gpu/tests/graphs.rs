//! A small graph whose values are read again later, so that what shares memory shows, in both precisions and
//! with lengths that only a run tells.

use crate::support;
use crate::support::node::floats;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId, evaluate};
use galatea_runtime::{Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn add<const N: usize>(
    graph: &mut Graph,
    op: &str,
    attributes: [(&str, AttributeValue); N],
    inputs: &[ValueId],
) -> ValueId {
    let all: Attributes =
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let result = graph.fresh_value("value");
    let inputs = inputs.iter().map(|&id| Some(id)).collect();
    graph.add_node("", op, op, &all, inputs, vec![Some(result)]).unwrap();
    result
}

fn graph() -> Graph {
    let mut graph = Graph::new("small");
    graph.opsets = [(String::new(), 21)].into_iter().collect();
    let x = graph.value_named("x");
    let dims = vec![Dim::symbol("batch"), Dim::symbol("sequence"), Dim::Known(24)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    let scale = graph.add_constant("scale", floats(&[24], 1.0));
    let picks = graph.add_constant("picks", Tensor::vector(vec![5_i64, 0, 23, -2]));
    let axes = graph.add_constant("axes", Tensor::vector(vec![1_i64]));
    let turned = || AttributeValue::Ints(vec![0, 2, 1]);
    let int = AttributeValue::Int;
    let normal = add(&mut graph, "LayerNormalization", [("axis", int(-1))], &[x, scale]);
    let sum = add(&mut graph, "Add", [], &[x, normal]);
    let up = add(&mut graph, "Transpose", [("perm", turned())], &[sum]);
    let soft = add(&mut graph, "Softmax", [("axis", int(1))], &[up]);
    let active = add(&mut graph, "Gelu", [], &[up]);
    let product = add(&mut graph, "Mul", [], &[soft, active]);
    let joined = add(&mut graph, "Concat", [("axis", int(1))], &[product, up, soft]);
    let some = add(&mut graph, "Gather", [("axis", int(1))], &[joined, picks]);
    let mean = add(&mut graph, "ReduceMean", [], &[joined, axes]);
    let result = add(&mut graph, "Sub", [], &[some, mean]);
    let back = add(&mut graph, "Transpose", [("perm", turned())], &[joined]);
    graph.inputs = vec![x];
    graph.outputs = vec![result, back, sum];
    graph
}

#[test]
fn a_small_graph_agrees_in_both_precisions_for_all_lengths() {
    let Some(device) = support::device() else { return };
    let graph = graph();
    for (precision, tolerance) in [(Precision::Fp32, 1e-5), (Precision::Fp16, 2e-2)] {
        let options = SessionOptions { precision, ..SessionOptions::default() };
        let session = support::session(&device, &graph, &options).unwrap();
        for (batch, sequence) in [(1, 1), (2, 9), (3, 40), (2, 9)] {
            let x = floats(&[batch, sequence, 24], 2.0);
            let expected = evaluate::run(&graph, std::slice::from_ref(&x)).unwrap();
            let found = session.run_tensors(Run::named(&[("x", x)])).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                compare(found, expected, Tolerance::Within(tolerance)).unwrap();
            }
        }
    }
}
