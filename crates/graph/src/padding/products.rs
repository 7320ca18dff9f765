//! Operators that put elements together.

use super::{InputPlaces, PaddedValue, PaddingContent, PaddingWalk, padded_axes, resolved};
use crate::ops::activation::Softmax;
use crate::ops::fused::{FusedAttention, FusedMatMul};
use crate::ops::matrix::Gemm;
use crate::ops::normalize::{LayerNormalization, RmsNormalization};
use crate::ops::reduce::{Reduce, ReduceKind};
use crate::{Node, ValueId};

/// Returns whether the terms of a sum along an axis of two operands are 0 behind what is real.
fn vanishes(one: Option<&PaddingContent>, other: Option<&PaddingContent>) -> Result<(), String> {
    match (one, other) {
        (None, None) => Ok(()),
        (Some(one), Some(other)) if one.is_zero() || other.is_zero() => Ok(()),
        (Some(_), Some(_)) => Err("it adds up what stands behind the length".to_owned()),
        _ => Err("one operand has the length where the other has another one".to_owned()),
    }
}

/// `MatMul` and `FusedMatMul`.
pub(super) fn mat_mul(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let ((a, left), (b, right)) = (walk.data(node, 0)?, walk.data(node, 1)?);
    for at in 2..node.inputs.len() {
        if matches!(walk.given(node, at), Some((_, PaddedValue::Lengths))) {
            return Err("it computes with lengths".to_owned());
        }
    }
    let trans_b = node.operator::<FusedMatMul>().is_some_and(|op| op.trans_b);
    let inner_a = walk.dims(a)?.len().checked_sub(1).ok_or("a scalar is multiplied")?;
    let rank = walk.dims(b)?.len();
    let inner_b = rank.checked_sub(if trans_b { 1 } else { rank.min(2) });
    let inner_b = inner_b.ok_or("a scalar is multiplied")?;
    vanishes(left.get(&inner_a), right.get(&inner_b))?;
    Ok(vec![walk.anything(node)?])
}

pub(super) fn gemm(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let ((_, left), (_, right)) = (walk.data(node, 0)?, walk.data(node, 1)?);
    let op = node.operator::<Gemm>().ok_or("no product")?;
    let inner_a = usize::from(!op.trans_a);
    let inner_b = usize::from(op.trans_b);
    vanishes(left.get(&inner_a), right.get(&inner_b))?;
    Ok(vec![walk.anything(node)?])
}

pub(super) fn softmax(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let axis = resolved(node.operator::<Softmax>().ok_or("no axis")?.axis, walk.dims(id)?.len())?;
    // A row of which all is hidden may have no shares at all.
    if own.iter().any(|(&at, behind)| at != axis && behind.hides().is_some()) {
        return Err("what stands behind the length sees nothing".to_owned());
    }
    let share = |(&at, behind): (&usize, &PaddingContent)| match at == axis {
        false => Ok((at, PaddingContent::Any)),
        true => {
            let by = behind.hides().ok_or("what stands behind the length gets a share")?;
            Ok((at, PaddingContent::Number(0.0, by)))
        }
    };
    let axes = padded_axes(own.iter().map(share).collect::<Result<Vec<_>, String>>()?);
    if let Some(PaddingContent::Number(_, by)) = axes.get(&axis) {
        walk.masks = walk.masks.with(*by);
    }
    Ok(vec![PaddedValue::Data(axes)])
}

/// The fused form: scores, mask, shares and their sum.
pub(super) fn attention(
    walk: &mut PaddingWalk<'_>,
    node: &Node,
) -> Result<Vec<PaddedValue>, String> {
    let op = node.operator::<FusedAttention>().ok_or("another attention")?.clone();
    let values = [walk.data(node, 0)?.1, walk.data(node, 1)?.1, walk.data(node, 2)?.1];
    let perms = [op.q_perm, op.k_perm, op.v_perm];
    let has = |of: usize, axis: usize| values[of].contains_key(&perms[of][axis]);
    // Neither batches, heads nor the elements of a head are padded.
    if (0..3).any(|of| [0, 1, 3].into_iter().any(|axis| has(of, axis))) {
        return Err("another axis than that of positions has the length".to_owned());
    }
    let queries = has(0, 2);
    let keys = has(1, 2);
    if keys != has(2, 2) {
        return Err("keys and values have other lengths".to_owned());
    }
    let mask = match node.input(3) {
        Some(id) => hidden_by(walk, id)?,
        None => None,
    };
    match mask {
        Some(by) if keys => walk.masks = walk.masks.with(by),
        _ if !keys || (op.causal && queries) => {}
        _ => return Err("queries see the keys that stand behind the length".to_owned()),
    }
    Ok(vec![walk.anything(node)?])
}

/// Because of which inputs a mask hides all positions behind the length of its last axis, if it does.
fn hidden_by(walk: &PaddingWalk<'_>, mask: ValueId) -> Result<Option<InputPlaces>, String> {
    let PaddedValue::Data(axes) = walk.kind(mask) else {
        return Err("the mask is computed of lengths".to_owned());
    };
    let last = walk.dims(mask)?.len().checked_sub(1);
    if axes.iter().any(|(&at, behind)| Some(at) != last && behind.hides().is_some()) {
        return Err("what stands behind the length sees nothing".to_owned());
    }
    Ok(last.and_then(|last| axes.get(&last)).and_then(|behind| behind.hides()))
}

/// `LayerNormalization` and `RMSNormalization`: means along the last axes.
pub(super) fn normalize(
    walk: &mut PaddingWalk<'_>,
    node: &Node,
) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let layer = node.operator::<LayerNormalization>().map(|op| op.axis);
    let axis = layer.or(node.operator::<RmsNormalization>().map(|op| op.axis)).ok_or("no axis")?;
    let first = resolved(axis, walk.dims(id)?.len())?;
    if own.keys().any(|&at| at >= first) || !walk.is_free_from(node, 1) {
        return Err("it takes the mean along the length".to_owned());
    }
    let kept = padded_axes(own.keys().map(|&at| (at, PaddingContent::Any)));
    let outputs = node.outputs.iter().map(|_| PaddedValue::Data(kept.clone()));
    Ok(outputs.collect())
}

pub(super) fn reduce(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let rank = walk.dims(id)?.len();
    let op = node.operator::<Reduce>().ok_or("no axes")?;
    let axes = op.axes.clone().or_else(|| walk.integers(node, 1));
    let axes = match axes {
        Some(axes) if !axes.is_empty() => {
            axes.iter().map(|&axis| resolved(axis, rank)).collect::<Result<Vec<_>, _>>()?
        }
        None if node.input(1).is_some() => return Err("its axes are not known".to_owned()),
        _ if op.noop_with_empty_axes => Vec::new(),
        _ => (0..rank).collect(),
    };
    for axis in axes.iter().filter(|axis| own.contains_key(axis)) {
        let behind = own.get(axis).copied().unwrap_or(PaddingContent::Any);
        match op.kind {
            ReduceKind::Sum | ReduceKind::L1 | ReduceKind::L2 | ReduceKind::SumSquare
                if behind.is_zero() => {}
            ReduceKind::Max => {
                let by = behind.hides().ok_or("what stands behind may be the largest")?;
                walk.masks = walk.masks.with(by);
            }
            _ => return Err("it puts what stands behind the length to the rest".to_owned()),
        }
    }
    Ok(vec![walk.anything(node)?])
}
