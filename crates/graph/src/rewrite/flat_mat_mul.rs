//! A product of rows that were flattened for it and get their axes back afterwards works on the axes
//! as they are: `Reshape(-1, K) → FusedMatMul → Reshape(…, N)` becomes one `FusedMatMul`, after a
//! reshape that joins inner axes, such as heads, where the rows were flattened from those.

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::fused::FusedMatMul;
use crate::ops::shape::Reshape;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let Some(found) = find(graph, maps, &graph.nodes[index]) else { return Ok(None) };
    let node = graph.nodes[index].clone();
    let mut inputs = found.product.inputs.clone();
    let mut made = Vec::new();
    inputs[0] = Some(found.rows);
    if let Some(columns) = found.joined {
        let target = std::iter::repeat_n(0, found.lead).chain([columns]).collect();
        let target = graph.add_constant("rows.shape", Tensor::vector::<i64>(target));
        let rows = graph.fresh_value("rows");
        made.push(Node {
            outputs: vec![Some(rows)],
            ..make_node(
                ONNX_DOMAIN,
                "Reshape",
                &node,
                Reshape { allow_zero: false },
                vec![Some(found.rows), Some(target)],
            )
        });
        inputs[0] = Some(rows);
    }
    made.push(Node { inputs, outputs: node.outputs, ..found.product });
    Ok(Some(made))
}

/// A product whose rows need not be flat.
struct FlatProductMatch {
    product: Node,
    rows: ValueId,
    /// How many axes lie before the columns.
    lead: usize,
    /// How many columns the inner axes of the rows make, where there are several.
    joined: Option<i64>,
}

fn find(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<FlatProductMatch> {
    if node.op_type != "Reshape" || !node.domain.is_empty() {
        return None;
    }
    let product = maps.written_by(graph, node.input(0)?, "FusedMatMul")?;
    product.operator::<FusedMatMul>()?;
    // A residual has the shape of the flat rows.
    if product.input(3).is_some() || !maps.read_once(graph, node.input(0)?) {
        return None;
    }
    let flat = maps.written_by(graph, product.input(0)?, "Reshape")?;
    let rows = flat.input(0)?;
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    let before = shape(rows)?;
    let after = shape(node.output(0)?)?;
    let lead = after.len().checked_sub(1).filter(|&lead| lead > 0 && before.len() > lead)?;
    let same_rows = before.iter().zip(after).take(lead).all(|(a, b)| a.same(b));
    let columns = shape(product.input(0)?)?.last()?;
    let same_columns = after.last()?.same(shape(node.input(0)?)?.last()?);
    if !same_rows || !same_columns {
        return None;
    }
    let joined = match &before[lead..] {
        [own] if own.same(columns) => None,
        [_] => return None,
        inner => {
            let joined = inner.iter().map(Dim::known).product::<Option<usize>>();
            let whole = joined.filter(|&joined| joined > 0 && columns.known() == Some(joined));
            Some(i64::try_from(whole?).ok()?)
        }
    };
    Some(FlatProductMatch { product: product.clone(), rows, lead, joined })
}
