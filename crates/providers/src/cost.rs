//! Predicted times of nodes, from sizes alone.

use galatea_graph::{Dim, Fact, Node};
use galatea_runtime::NodeWork;

/// Elements of a fact; lengths that are not known count as 1.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn elements(fact: &Fact) -> f64 {
    fact.shape.iter().flatten().map(|dim| Dim::known(dim).unwrap_or(1) as f64).product()
}

/// Multiplications and additions of a node, roughly: two per element of the output and element of
/// the second operand's column for products, ten per element for everything else, and no fewer than it
/// cannot do without.
pub(crate) fn operations(node: &Node, facts: &[Option<Fact>]) -> f64 {
    let fact = |id: galatea_graph::ValueId| facts.get(id.index()).and_then(Option::as_ref);
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let least = NodeWork::of(node, &fact).operations as f64;
    least.max(usual_operations(node, facts))
}

fn usual_operations(node: &Node, facts: &[Option<Fact>]) -> f64 {
    let fact = |id: Option<galatea_graph::ValueId>| id.and_then(|id| facts[id.index()].as_ref());
    let written: f64 = node.outputs.iter().filter_map(|&id| fact(id)).map(elements).sum();
    let weights = fact(node.input(1)).map_or(1.0, elements);
    let product = ["MatMul", "Gemm", "Conv", "LSTM", "GRU", "RNN"];
    if !product.iter().any(|name| node.op_type.contains(name)) {
        return 10.0 * written.max(1.0);
    }
    let columns = fact(node.input(1))
        .and_then(|fact| fact.shape.as_ref())
        .and_then(|shape| if node.op_type.contains("Conv") { shape.first() } else { shape.last() })
        .and_then(Dim::known)
        .unwrap_or(1);
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let terms = weights / columns.max(1) as f64;
    2.0 * written.max(1.0) * terms.max(1.0)
}
