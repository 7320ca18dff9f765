//! Attention head by head.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::fused::FusedAttention;
use galatea_graph::{Node, ValueId};

use super::linear::MAX_POSITIONS;
use super::norm::split;
use crate::ane_values::{AneMask, CHANNELS, LayoutAxes, POSITIONS};
use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::Result;

/// Values that one step reads and writes beyond this fall out of the engine's memory.
const WORKING_BYTES: usize = 32 << 20;

/// Queries, keys and values in their forms, with keys as `(B, keys, 1, C)`.
struct AneAttention {
    queries: MilVar,
    keys: Vec<MilVar>,
    values: Vec<MilVar>,
    /// True if the values lie as `(B, keys, 1, C)` too.
    upright: bool,
    heads: usize,
    /// True if a query that sees no key gives zeros.
    to_zero: bool,
}

/// Where the axes of a stored `[B, H, S, D]` lie, of which `perm` says the places.
pub(super) fn stored(shape: &[usize], perm: [usize; 4]) -> LayoutAxes {
    let [batch, head, position, element] = perm;
    LayoutAxes::new(shape, [&[batch], &[head, element], &[position]])
}

/// `softmax(scale · Q·Kᵀ + mask) · V` for each head: scores lie as (B, keys, 1, queries), so that only the
/// keys are turned, once. Long sequences are computed some queries at a time.
pub(super) fn attention(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<FusedAttention>() else { return Ok(false) };
    let ids = [emit.input(node, 0)?, emit.input(node, 1)?, emit.input(node, 2)?];
    let perms = [operator.q_perm, operator.k_perm, operator.v_perm];
    let mut four = Vec::with_capacity(3);
    for (id, perm) in ids.into_iter().zip(perms) {
        let Some(shape) = emit.fixed_floats(id).filter(|shape| shape.len() == 4) else {
            return Ok(false);
        };
        four.push((id, stored(&shape, perm), perm.map(|axis| shape[axis])));
    }
    let [(q, of_q, [batch, heads, queries, width]), (k, of_k, [_, shared, keys, _]), (v, of_v, _)] =
        four.as_slice()
    else {
        return Ok(false);
    };
    let fits = *shared > 0
        && heads.is_multiple_of(*shared)
        && (*queries).max(*keys).max(*heads * *width) <= MAX_POSITIONS;
    let scores = [*batch, *heads, *queries, *keys];
    let masked = node.input(3).is_none_or(|id| is_mask(emit, id, scores));
    if !fits || !masked {
        return Ok(false);
    }
    let key = (node.input(3), operator.causal, scores);
    let to_zero = operator.masked_to_zero;
    let mask = emit.mask(key, to_zero)?;
    let scaled = emit.form_in(*q, of_q)?;
    let scaled = scaled_queries(emit, scaled, operator.scale, to_zero, mask.as_ref())?;
    let cached = |emit: &ProgramEmitter<'_>, id, perm| {
        perm == FusedAttention::IN_ORDER && emit.formed(id).is_none()
    };
    let keys_by_head = match cached(emit, *k, operator.k_perm) {
        true => heads_of(emit, *k, *shared)?,
        false => {
            let keys = emit.form_in(*k, of_k)?;
            let keys = emit.transpose(&keys, &[0, 3, 2, 1])?;
            split(emit, &keys, POSITIONS, *shared)?
        }
    };
    // Turning the shares of few queries costs less than turning all values.
    let upright = cached(emit, *v, operator.v_perm) && queries < width;
    let values = match upright {
        true => heads_of(emit, *v, *shared)?,
        false => {
            let values = emit.form_in(*v, of_v)?;
            split(emit, &values, CHANNELS, *shared)?
        }
    };
    let parts = AneAttention {
        queries: scaled,
        keys: keys_by_head,
        values,
        upright,
        heads: *heads,
        to_zero,
    };
    let most = queries_at_once(*batch, *keys);
    let result = chunks(emit, &parts, *queries, most, mask.as_ref())?;
    let mut back = [0; 4];
    for (stored, &axis) in operator.out_perm.iter().enumerate() {
        back[axis] = stored;
    }
    let out = emit.shape(node.output(0).unwrap_or(*q))?;
    let axes = stored(&out, back);
    emit.end_formed(node, result, axes)
}

/// The heads of a plain `[B, H, S, D]`, such as a cache, each as `(B, S, 1, D)`: nothing is moved.
fn heads_of(emit: &mut ProgramEmitter<'_>, id: ValueId, heads: usize) -> Result<Vec<MilVar>> {
    let plain = emit.value(id)?;
    let apart = split(emit, &plain, 1, heads)?;
    apart.iter().map(|head| emit.transpose(head, &[0, 2, 1, 3])).collect()
}

/// Returns whether a value broadcasts to scores along whole axes.
fn is_mask(emit: &ProgramEmitter<'_>, id: ValueId, scores: [usize; 4]) -> bool {
    let Some(shape) = emit.fixed_floats(id).filter(|shape| (1..=4).contains(&shape.len())) else {
        return false;
    };
    let behind = &scores[4 - shape.len()..];
    let fits = shape.iter().zip(behind).all(|(own, of_scores)| own == of_scores || *own == 1);
    fits && shape.last() == scores.last()
}

/// Queries times the scale. Those that see no key become zeros: whatever hides keys then hides all of them
/// alike, and each gets the same share.
fn scaled_queries(
    emit: &mut ProgramEmitter<'_>,
    queries: MilVar,
    scale: f32,
    to_zero: bool,
    mask: Option<&AneMask>,
) -> Result<MilVar> {
    let scale_by = emit.float(scale);
    match mask.and_then(|mask| mask.seen.as_ref()).filter(|_| !to_zero) {
        Some(seen) if emit.shape_of(seen)?[2] == 1 => {
            let factor = emit.pair("mul", seen, scale_by)?;
            emit.pair("mul", &queries, &factor)
        }
        _ if scale == 1.0 => Ok(queries),
        _ => emit.pair("mul", &queries, scale_by),
    }
}

/// Returns how many queries are computed at a time, so that their scores fit.
fn queries_at_once(batch: usize, keys: usize) -> usize {
    // Scores and shares of FP16.
    let of_query = batch * keys * 4;
    let most = (WORKING_BYTES / of_query.max(1)).max(1);
    if most > 32 { most / 32 * 32 } else { most }
}

/// All queries, `most` of them at a time.
fn chunks(
    emit: &mut ProgramEmitter<'_>,
    parts: &AneAttention,
    queries: usize,
    most: usize,
    mask: Option<&AneMask>,
) -> Result<MilVar> {
    let mut results = Vec::new();
    for start in (0..queries).step_by(most) {
        let end = (start + most).min(queries);
        let some = within(emit, &parts.queries, start, end)?;
        let own = match mask {
            None => None,
            Some(AneMask { added, seen }) => Some(AneMask {
                added: within(emit, added, start, end)?,
                seen: match seen {
                    Some(seen) => Some(within(emit, seen, start, end)?),
                    None => None,
                },
            }),
        };
        results.push(heads(emit, parts, &some, own)?);
    }
    emit.concat(results, POSITIONS)
}

/// The positions `start..end` of a form; all of it where it has one position only or no others.
fn within(emit: &mut ProgramEmitter<'_>, x: &MilVar, start: usize, end: usize) -> Result<MilVar> {
    match emit.shape_of(x)?[POSITIONS] {
        1 => Ok(x.clone()),
        len if (start, end) == (0, len) => Ok(x.clone()),
        _ => emit.cut(x, SliceTake::whole(4).range(POSITIONS, start, end)?),
    }
}

/// A part of a mask for each head; one for all where it has one.
fn by_head(emit: &mut ProgramEmitter<'_>, x: Option<MilVar>) -> Result<Vec<MilVar>> {
    match x {
        None => Ok(Vec::new()),
        Some(x) => {
            let count = emit.shape_of(&x)?[2];
            split(emit, &x, 2, count)
        }
    }
}

/// Each head, and all of them one behind the other.
fn heads(
    emit: &mut ProgramEmitter<'_>,
    parts: &AneAttention,
    queries: &MilVar,
    mask: Option<AneMask>,
) -> Result<MilVar> {
    let (added, seen) = mask.map_or((None, None), |mask| (Some(mask.added), mask.seen));
    let added = by_head(emit, added)?;
    let seen = by_head(emit, seen)?;
    let share = parts.heads / parts.keys.len().max(1);
    let mut results = Vec::with_capacity(parts.heads);
    for (head, mut query) in split(emit, queries, CHANNELS, parts.heads)?.into_iter().enumerate() {
        let of = |all: &[MilVar]| all.get(head.min(all.len().wrapping_sub(1))).cloned();
        let key = &parts.keys[head / share];
        let value = &parts.values[head / share];
        let sees = of(&seen);
        if let Some(sees) = sees.as_ref().filter(|_| !parts.to_zero && seen.len() > 1) {
            query = emit.pair("mul", &query, sees)?;
        }
        let mut scores = einsum(emit, key, &query)?;
        if let Some(added) = of(&added) {
            scores = emit.pair("add", &scores, &added)?;
        }
        let softmax = vec![("x", MilArg::Var(scores)), ("axis", MilArg::Int(1))];
        let shares = emit.op("softmax", softmax)?;
        let mut result = match parts.upright {
            true => {
                let rows = emit.transpose(&shares, &[0, 3, 2, 1])?;
                let rows = einsum(emit, &rows, value)?;
                emit.transpose(&rows, &[0, 3, 2, 1])?
            }
            false => einsum(emit, value, &shares)?,
        };
        if let Some(sees) = sees.filter(|_| parts.to_zero) {
            result = emit.pair("mul", &result, &sees)?;
        }
        results.push(result);
    }
    emit.concat(results, CHANNELS)
}

/// `(n, c, h, w)` times `(n, w, h, u)`: the product that Core ML writes so.
fn einsum(emit: &mut ProgramEmitter<'_>, x: &MilVar, y: &MilVar) -> Result<MilVar> {
    let values = MilArg::Vars(vec![x.clone(), y.clone()]);
    emit.op("einsum", vec![("values", values), ("equation", MilArg::Text("nchw,nwhu->nchu"))])
}
