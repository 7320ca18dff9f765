//! A product of rows that were flattened for it and get their axes back afterwards works on the axes
//! as they are: `Reshape(-1, K) → FusedMatMul → Reshape(…, N)` becomes one `FusedMatMul`.

use super::Maps;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node};
use crate::ops::fused::FusedMatMul;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    Ok(whole(graph, maps, node).map(|node| vec![node]))
}

fn whole(graph: &Graph, maps: &Maps, node: &Node) -> Option<Node> {
    if node.op_type != "Reshape" || !node.domain.is_empty() {
        return None;
    }
    let rows = node.input(0)?;
    let product = maps.written_by(graph, rows, "FusedMatMul")?;
    // A residual has the shape of the flat rows.
    if product.input(3).is_some() || !maps.read_once(graph, rows) {
        return None;
    }
    let flat = maps.written_by(graph, product.input(0)?, "Reshape")?;
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    let (before, after) = (shape(flat.input(0)?)?, shape(node.output(0)?)?);
    let (flat_in, flat_out) = (shape(product.input(0)?)?, shape(rows)?);
    let same_rows = before.len() == after.len()
        && before.len() >= 2
        && before.iter().zip(after).take(before.len() - 1).all(|(a, b)| a.same(b));
    let ends = |a: &[Dim], b: &[Dim]| a.last().zip(b.last()).is_some_and(|(a, b)| a.same(b));
    let fits = same_rows && ends(before, flat_in) && ends(after, flat_out);
    let mut inputs = product.inputs.clone();
    inputs[0] = flat.input(0);
    let operator = product.operator::<FusedMatMul>()?.clone();
    fits.then(|| make_node((GALATEA_DOMAIN, "FusedMatMul"), node, operator, inputs))
}
