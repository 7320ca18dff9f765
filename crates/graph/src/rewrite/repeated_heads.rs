//! Key and value heads that a model repeats for its query heads are shared instead: the fused
//! attention reads each of them for several queries (grouped-query attention).

use super::ValueMaps;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::fused::FusedAttention;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = (|| {
        let attention = node.operator::<FusedAttention>()?;
        let (k, copies) = before_repeating(graph, maps, node.input(1)?, attention.k_perm)?;
        let (v, same) = before_repeating(graph, maps, node.input(2)?, attention.v_perm)?;
        if copies != same {
            return None;
        }
        let inputs = vec![node.input(0), Some(k), Some(v), node.input(3)];
        Some(make_node(GALATEA_DOMAIN, "Attention", node, attention.clone(), inputs))
    })();
    Ok(found.map(|node| vec![node]))
}

/// The heads before `[B, H, T, D] → [B, H, 1, T, D] → [B, H, n, T, D] → [B, H·n, T, D]`, and `n`.
fn before_repeating(
    graph: &Graph,
    maps: &ValueMaps,
    id: ValueId,
    perm: [usize; 4],
) -> Option<(ValueId, usize)> {
    let shape = |id: ValueId| maps.fact(id)?.shape.as_deref();
    let expand = maps.written_by(graph, id, "Reshape")?.input(0)?;
    let unsqueezed = maps.written_by(graph, expand, "Expand")?.input(0)?;
    let index = maps.producer(unsqueezed)?;
    let before = &graph.nodes[index];
    if !matches!(before.op_type.as_str(), "Unsqueeze" | "Reshape") || perm[..2] != [0, 1] {
        return None;
    }
    let heads = before.input(0)?;
    let [b, h, t, d] = shape(heads)? else { return None };
    let copies = shape(expand)?.get(2)?.known()?;
    let joined = Dim::Known(h.known()?.checked_mul(copies)?);
    let is = |id: ValueId, expected: &[&Dim]| {
        shape(id).is_some_and(|found| {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.same(b))
        })
    };
    let fits = is(unsqueezed, &[b, h, &Dim::Known(1), t, d])
        && is(expand, &[b, h, &Dim::Known(copies), t, d])
        && is(id, &[b, &joined, t, d]);
    fits.then_some((heads, copies))
}
