//! Loops whose number of iterations is known, as the operations of each iteration one behind the other: what
//! they collect has known lengths then, and the Neural Engine runs no loops.

use galatea_formats::coreml::mil::{MilElement, MilVar};
use galatea_graph::ops::control::{Loop, Scan};
use galatea_graph::{Fact, Node, OperatorBody};
use galatea_tensor::Tensor;

use super::EmitRow;
use super::bodies::{captured, inside};
use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::{Result, UnwritableNode, refuse};

pub(super) const ROWS: &[EmitRow] = &[EmitRow::onnx("Scan", scan)];

/// The most iterations that are written one by one.
const MAX_ITERATIONS: usize = 128;
/// The most nodes of all iterations.
const MAX_NODES: usize = 8192;

/// A value, and what is known of it.
type UnrolledValue = (MilVar, Fact);

/// Refuses what becomes too long.
fn check(body: &OperatorBody, iterations: usize) -> Result<()> {
    let nodes = body.graph().nodes.len().saturating_mul(iterations);
    match iterations <= MAX_ITERATIONS && nodes <= MAX_NODES {
        true => Ok(()),
        false => refuse(format!(
            "{iterations} iterations that are written one by one, {MAX_ITERATIONS} with {MAX_NODES} nodes \
             together are the most"
        )),
    }
}

/// Writes one iteration, and gives its results. A length that only a run knows may be another one in the next
/// iteration.
fn iteration(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    body: &OperatorBody,
    own: &[UnrolledValue],
) -> Result<Vec<UnrolledValue>> {
    inside(emit, node, body, own, |inner, id| {
        let fact = inner.fact(id)?.clone();
        if fact.known_shape().is_none() {
            return refuse(format!("a loop that gives {fact}, a length that only a run knows"));
        }
        Ok((inner.value(id)?, fact))
    })
}

/// Stacks the values that iterations have collected, along a new axis.
fn stacked(emit: &mut ProgramEmitter<'_>, values: Vec<MilVar>, axis: usize) -> Result<MilVar> {
    if values.is_empty() {
        return refuse("a loop without iterations");
    }
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        all.push(emit.unsqueeze(&value, &[axis])?);
    }
    let truth = all.first().map(|first| emit.element_of(first)).transpose()?;
    if truth != Some(MilElement::Bool) {
        return emit.concat(all, axis);
    }
    let numbers = all.iter().map(|one| emit.cast(one, MilElement::Int32));
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    let all = emit.concat(numbers, axis)?;
    emit.cast(&all, MilElement::Bool)
}

/// The truth value that a fact says.
fn truth(fact: &Fact) -> Option<bool> {
    fact.value.as_ref()?.to_vec::<bool>().ok()?.first().copied()
}

/// One number in the shape that a body declares for an input of its own.
fn number<T: galatea_tensor::Element>(body: &OperatorBody, at: usize, value: T) -> Result<Tensor> {
    let graph = body.graph();
    let declared = graph.inputs.get(at).and_then(|&id| graph.value(id).declared.as_ref());
    let shape: &[usize] = if declared.and_then(Fact::rank) == Some(1) { &[1] } else { &[] };
    Tensor::from_vec(shape, vec![value]).map_err(|error| UnwritableNode(error.to_string()))
}

/// A loop that collects values: its condition must be known before a run in each iteration.
pub(super) fn collecting(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    operator: &Loop,
) -> Result<Vec<MilVar>> {
    let body = &operator.body;
    let carried = operator.carried;
    let limit = match node.input(0) {
        Some(_) => Some(emit.integers(node, 0)?.first().copied().unwrap_or(0)),
        None => None,
    };
    let mut goes_on = match node.input(1) {
        None => true,
        Some(_) => {
            let known = emit.known(node, 1).and_then(|one| one.to_vec::<bool>().ok());
            let known = known.and_then(|all| all.first().copied());
            known.ok_or_else(|| UnwritableNode("a condition that only a run knows".to_owned()))?
        }
    };
    captured(emit, node, body)?;
    let mut values = Vec::with_capacity(carried);
    for at in 0..carried {
        let id = emit.input(node, at + 2)?;
        values.push((emit.var(node, at + 2)?, emit.fact(id)?.clone()));
    }
    let mut collected: Vec<Vec<MilVar>> = vec![Vec::new(); node.outputs.len() - carried];
    let mut count = 0_i64;
    while goes_on && limit.is_none_or(|limit| count < limit) {
        check(body, usize::try_from(count).unwrap_or(usize::MAX).saturating_add(1))?;
        let place = emit.table(&[], vec![i32::try_from(count).unwrap_or(i32::MAX)])?;
        let holds = emit.truth(true)?;
        let mut own = vec![
            (place, Fact::constant(number(body, 0, count)?)),
            (holds, Fact::constant(number(body, 1, true)?)),
        ];
        own.append(&mut values);
        let mut found = iteration(emit, node, body, &own)?.into_iter();
        let next = found.next().and_then(|(_, fact)| truth(&fact));
        goes_on = next.ok_or_else(|| {
            UnwritableNode(
                "a loop that collects values while a condition holds that only a run knows"
                    .to_owned(),
            )
        })?;
        values.extend(found.by_ref().take(carried));
        for (all, (value, _)) in collected.iter_mut().zip(found) {
            all.push(value);
        }
        count += 1;
    }
    let mut results: Vec<MilVar> = values.into_iter().map(|(value, _)| value).collect();
    for all in collected {
        results.push(stacked(emit, all, 0)?);
    }
    Ok(results)
}

/// One position of an axis, without the axis.
fn position(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    rank: usize,
    axis: usize,
    at: usize,
) -> Result<MilVar> {
    let mut cut = SliceTake::whole(rank).range(axis, at, at + 1)?;
    cut.single[axis] = true;
    emit.as_numbers(x, |emit, x| emit.cut(x, cut))
}

fn scan(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Scan>() else { return refuse("a scan of another kind") };
    if operator.batched {
        return refuse("sequences of their own lengths, as opset 8 has them");
    }
    let body = &operator.body;
    let states = operator.states;
    let mut scanned = Vec::new();
    let mut length = None;
    for (at, walk) in operator.inputs.iter().enumerate() {
        let id = emit.input(node, states + at)?;
        let mut shape = emit.shape(id)?;
        let axis = emit.axis(walk.axis, shape.len())?;
        length = length.or(Some(shape[axis]));
        let rank = shape.len();
        shape.remove(axis);
        let fact = Fact::fixed(emit.dtype(id)?, &shape);
        scanned.push((emit.var(node, states + at)?, rank, axis, fact));
    }
    let length = length.unwrap_or(0);
    check(body, length)?;
    captured(emit, node, body)?;
    let mut values = Vec::with_capacity(states);
    for at in 0..states {
        let id = emit.input(node, at)?;
        values.push((emit.var(node, at)?, emit.fact(id)?.clone()));
    }
    let mut collected: Vec<Vec<MilVar>> = vec![Vec::new(); operator.outputs.len()];
    for step in 0..length {
        let mut own = std::mem::take(&mut values);
        for ((x, rank, axis, fact), walk) in scanned.iter().zip(&operator.inputs) {
            let at = if walk.backwards { length - 1 - step } else { step };
            own.push((position(emit, x, *rank, *axis, at)?, fact.clone()));
        }
        let mut found = iteration(emit, node, body, &own)?.into_iter();
        values.extend(found.by_ref().take(states));
        for (all, (value, _)) in collected.iter_mut().zip(found) {
            all.push(value);
        }
    }
    let mut results: Vec<MilVar> = values.into_iter().map(|(value, _)| value).collect();
    for (mut all, walk) in collected.into_iter().zip(&operator.outputs) {
        if walk.backwards {
            all.reverse();
        }
        let rank = all.first().map_or(Ok(0), |one| emit.shape_of(one).map(|shape| shape.len()))?;
        let axis = emit.axis(walk.axis, rank + 1)?;
        results.push(stacked(emit, all, axis)?);
    }
    Ok(results)
}
