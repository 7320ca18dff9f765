//! Which lengths of a graph count rows that know nothing of each other: these may be padded, so that what the
//! padding gives is cut off, and divided between units.

use std::collections::HashMap;

use galatea_tensor::OrderedSet;

use crate::collect::collected_some;
use crate::ops::activation::{LogSoftmax, Softmax};
use crate::ops::normalize::{
    BatchNormalization, LayerNormalization, LpNormalization, RmsNormalization,
};
use crate::ops::shape::{Dropout, DropoutMode};
use crate::traits::RowIndependence;
use crate::{Dim, Fact, Graph, Node, ValueId};

/// How a value depends on a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthDependence {
    /// Not at all.
    Free,
    /// The length is that of its first axis, and each row is made of the same row of what it comes from.
    Rows,
    /// It is made of lengths alone.
    Lengths,
}

/// The lengths with names whose rows are independent in a whole graph: all inputs that have one have it as
/// their first axis and nowhere else, and so have the outputs that come from it.
#[must_use]
pub fn independent(graph: &Graph, facts: &[Option<Fact>]) -> OrderedSet<String> {
    let first = |id: &ValueId| {
        let shape = facts.get(id.index())?.as_ref()?.shape.as_ref()?;
        match shape.first()? {
            Dim::Symbol(name) => Some(name.to_string()),
            _ => None,
        }
    };
    let names: OrderedSet<String> = graph.inputs.iter().filter_map(first).collect();
    names.into_iter().filter(|name| is_independent(graph, facts, name)).collect()
}

fn is_independent(graph: &Graph, facts: &[Option<Fact>], name: &str) -> bool {
    let mut kinds: HashMap<ValueId, LengthDependence> = HashMap::new();
    let fact = |id: ValueId| facts.get(id.index()).and_then(Option::as_ref);
    for &id in &graph.inputs {
        match fact(id).and_then(|fact| place(fact, name)) {
            Some(kind) => kinds.insert(id, kind),
            None => return false,
        };
    }
    for node in &graph.nodes {
        for &id in node.outputs.iter().flatten() {
            let Some(known) = fact(id) else { return false };
            let kind = match known.value.is_some() {
                true => Some(LengthDependence::Free),
                false => given(graph, facts, node, &kinds, known, name),
            };
            match kind {
                Some(kind) => kinds.insert(id, kind),
                None => return false,
            };
        }
    }
    let of = |id: &ValueId| kinds.get(id).copied().unwrap_or(LengthDependence::Free);
    graph.outputs.iter().all(|id| of(id) != LengthDependence::Lengths)
}

/// Returns whether a length is that of the first axis alone, or of none; neither where it stands
/// elsewhere.
fn place(fact: &Fact, name: &str) -> Option<LengthDependence> {
    let shape = fact.shape.as_ref().filter(|_| fact.is_tensor())?;
    let speaks = |dim: &Dim| *dim == Dim::Unknown || dim.names().iter().any(|one| one == name);
    let (first, rest) = match shape.split_first() {
        Some((first, rest)) => (Some(first), rest),
        None => (None, &shape[..]),
    };
    if rest.iter().any(speaks) {
        return None;
    }
    match first {
        Some(Dim::Symbol(own)) if **own == *name => Some(LengthDependence::Rows),
        Some(other) if speaks(other) => None,
        _ => Some(LengthDependence::Free),
    }
}

/// How what a node gives depends on the length; none where it is not known to keep rows apart.
fn given(
    graph: &Graph,
    facts: &[Option<Fact>],
    node: &Node,
    kinds: &HashMap<ValueId, LengthDependence>,
    fact: &Fact,
    name: &str,
) -> Option<LengthDependence> {
    let of = |id: ValueId| match graph.constant(id) {
        Some(_) => Some(LengthDependence::Free),
        None => kinds.get(&id).copied(),
    };
    let inputs: Vec<LengthDependence> = collected_some(
        &mut node.inputs.iter().map(|id| id.map_or(Some(LengthDependence::Free), of)),
    )?;
    let op = node.op_type.as_str();
    let has = |kind: LengthDependence| inputs.contains(&kind);
    let traits = node.traits();
    if !node.domain.is_empty() && traits.rows == RowIndependence::Mixed {
        return None;
    }
    if op == "Shape" {
        return if has(LengthDependence::Rows) {
            Some(LengthDependence::Lengths)
        } else {
            inputs.first().copied()
        };
    }
    if has(LengthDependence::Lengths) && !has(LengthDependence::Rows) && traits.on_lengths {
        return Some(LengthDependence::Lengths);
    }
    // Lengths say what shape something gets, and nothing else.
    let shapes = |at: usize| {
        inputs.iter().enumerate().all(|(i, kind)| *kind != LengthDependence::Lengths || i == at)
    };
    let fits = match op {
        "Reshape" | "Expand" => shapes(1),
        "ConstantOfShape" => shapes(0),
        _ => !has(LengthDependence::Lengths),
    };
    let here = place(fact, name)?;
    if !fits {
        return None;
    }
    match (here, has(LengthDependence::Rows)) {
        // The same for each row, or for all.
        (_, false) if op == "Expand" || op == "ConstantOfShape" => Some(here),
        (LengthDependence::Free, false) if !has(LengthDependence::Lengths) => {
            Some(LengthDependence::Free)
        }
        (LengthDependence::Rows, true) if keeps_apart(graph, facts, node, &inputs) => {
            Some(LengthDependence::Rows)
        }
        _ => None,
    }
}

/// Returns whether a node keeps rows apart whose first axis its result has again.
fn keeps_apart(
    graph: &Graph,
    facts: &[Option<Fact>],
    node: &Node,
    inputs: &[LengthDependence],
) -> bool {
    let value = |at: usize| {
        let id = node.input(at)?;
        let known = facts.get(id.index())?.as_ref()?.value.as_ref();
        graph.constant(id).or(known)?.to_i64_vec().ok()
    };
    let rank = node.input(0).and_then(|id| facts.get(id.index())?.as_ref()?.rank());
    let elsewhere = |axis: i64| match (usize::try_from(axis), rank) {
        (Ok(axis), _) => axis > 0,
        (Err(_), Some(rank)) => axis + i64::try_from(rank).unwrap_or(0) > 0,
        (Err(_), None) => false,
    };
    let rows = |at: usize| inputs.get(at) == Some(&LengthDependence::Rows);
    let only_first = inputs.iter().skip(1).all(|kind| *kind == LengthDependence::Free);
    match node.op_type.as_str() {
        "Softmax" => node.operator::<Softmax>().is_some_and(|op| elsewhere(op.axis)),
        "LogSoftmax" => node.operator::<LogSoftmax>().is_some_and(|op| elsewhere(op.axis)),
        "LayerNormalization" => {
            only_first && node.operator::<LayerNormalization>().is_some_and(|op| elsewhere(op.axis))
        }
        "RMSNormalization" => {
            only_first && node.operator::<RmsNormalization>().is_some_and(|op| elsewhere(op.axis))
        }
        "LpNormalization" => {
            node.operator::<LpNormalization>().is_some_and(|op| elsewhere(op.axis))
        }
        // A row of a table that has rows for each row would come from anywhere.
        "Gather" => !(rows(0) && rows(1)),
        "Slice" => value(3).is_some_and(|axes| axes.iter().all(|&axis| elsewhere(axis))),
        "Pad" => {
            let axes = node.input(3).is_none();
            axes && value(1)
                .zip(rank)
                .is_some_and(|(pads, rank)| pads.first() == Some(&0) && pads.get(rank) == Some(&0))
        }
        // In training it chooses elements by their place in the whole.
        "Dropout" => node.operator::<Dropout>().is_some_and(|op| match op.training {
            DropoutMode::Never => true,
            DropoutMode::Always(_) => false,
            DropoutMode::ByInput => node.input(2).is_none() || value(2) == Some(vec![0]),
        }),
        // Of a batch in training it takes the mean.
        "BatchNormalization" => {
            let trains = node.operator::<BatchNormalization>().is_none_or(|op| op.training != 0);
            only_first && !trains
        }
        // Weights are those of all rows; what is added has rows too.
        "FusedConv" | "QLinearConvAdd" => inputs.get(1) == Some(&LengthDependence::Free),
        _ => match node.traits().rows {
            RowIndependence::Mixed => false,
            RowIndependence::Apart => true,
            RowIndependence::ApartFromWeights => only_first,
        },
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
