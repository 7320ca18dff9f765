//! Attention, spelled out: the form that the Neural Engine takes whole.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::fused::{FusedAttention, FusedRotary};
use galatea_graph::ops::transformer;
use galatea_graph::{Dim, Node};
use galatea_tensor::{DataType, Tensor};

use super::EmitRow;
use super::matrix::product;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Attention", onnx_attention),
    EmitRow::onnx("Attention", attention).of("ai.galatea"),
    EmitRow::onnx("Rotary", rotary).of("ai.galatea"),
];

/// Number that hides a key in FP16: enough for its share to be 0, and little enough for sums in
/// FP16.
pub(super) const HIDDEN_HALF: f32 = -1e4;
pub(super) const HIDDEN: f32 = -1e30;

/// Heads as `[batch, heads, positions, elements]`.
struct HeadsValue {
    /// The value in the program.
    var: MilVar,
    /// The lengths of the four axes.
    dims: [Dim; 4],
}

/// An input with its axes in the order that the operator names.
fn ordered(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    order: [usize; 4],
) -> Result<HeadsValue> {
    let dims = emit.dims(emit.input(node, at)?)?;
    let Ok(dims) = <[Dim; 4]>::try_from(dims) else {
        return refuse(format!("input {at} has another number of axes than 4"));
    };
    let x = emit.var(node, at)?;
    let var = emit.transpose(&x, &order)?;
    Ok(HeadsValue { var, dims: order.map(|axis| dims[axis].clone()) })
}

/// Queries, keys and values.
struct AttentionHeads {
    q: HeadsValue,
    k: HeadsValue,
    v: HeadsValue,
}

/// Steps between the scores of queries and keys and their shares.
struct AttentionScoring {
    scale: f32,
    mask: Option<MilVar>,
    /// The same, where it is known before a run.
    known: Option<Tensor>,
    causal: bool,
    masked_to_zero: bool,
    softcap: f32,
}

/// `softmax(scale · Q·Kᵀ + mask) · V`.
fn attention(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<FusedAttention>() else {
        return refuse("attention of another kind");
    };
    let heads = AttentionHeads {
        q: ordered(emit, node, 0, operator.q_perm)?,
        k: ordered(emit, node, 1, operator.k_perm)?,
        v: ordered(emit, node, 2, operator.v_perm)?,
    };
    let scoring = AttentionScoring {
        scale: operator.scale,
        mask: emit.optional(node, 3)?,
        known: emit.known(node, 3),
        causal: operator.causal,
        masked_to_zero: operator.masked_to_zero,
        softcap: 0.0,
    };
    let result = attend(emit, heads, scoring)?;
    Ok(vec![emit.transpose(&result, &operator.out_perm)?])
}

/// Packed heads `[batch, positions, heads · elements]` taken apart; others as they are.
fn apart(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    heads: Option<usize>,
) -> Result<HeadsValue> {
    let dims = emit.dims(emit.input(node, at)?)?;
    let (&[_, _, _], Some(heads)) = (&dims.iter().collect::<Vec<_>>()[..], heads) else {
        return ordered(emit, node, at, FusedAttention::IN_ORDER);
    };
    let Some(width) = dims[2].known().filter(|width| heads > 0 && width.is_multiple_of(heads))
    else {
        return refuse(format!("{heads} heads of vectors of {}", dims[2]));
    };
    let x = emit.var(node, at)?;
    let cut = [dims[0].clone(), dims[1].clone(), Dim::Known(heads), Dim::Known(width / heads)];
    let x = emit.reshape_dims(&x, &dims, &cut)?;
    let [batch, positions, heads, width] = cut;
    let var = emit.transpose(&x, &[0, 2, 1, 3])?;
    Ok(HeadsValue { var, dims: [batch, heads, positions, width] })
}

/// Keys or values behind those of the past.
fn behind(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    new: HeadsValue,
    output: usize,
) -> Result<HeadsValue> {
    let Some(past) = emit.optional(node, at)? else { return Ok(new) };
    let total = match node.output(output) {
        Some(id) => emit.dims(id)?.get(2).cloned(),
        None => None,
    };
    let mut dims = new.dims;
    dims[2] = total.unwrap_or(Dim::Unknown);
    Ok(HeadsValue { var: emit.joined(vec![past, new.var], 2)?, dims })
}

/// ONNX's own operator, where no rewrite has made it the other.
fn onnx_attention(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<transformer::Attention>() else {
        return refuse("attention of another kind");
    };
    if operator.left_window.is_some() || operator.right_window.is_some() {
        return refuse("queries that see a window of keys");
    }
    let scores = operator.stage.is_some() && node.output(3).is_some_and(|id| emit.is_read(id));
    if scores || node.input(6).is_some() {
        return refuse("scores as an output, or a number of valid keys");
    }
    let q = apart(emit, node, 0, operator.q_num_heads)?;
    let k = apart(emit, node, 1, operator.kv_num_heads)?;
    let v = apart(emit, node, 2, operator.kv_num_heads)?;
    let k = behind(emit, node, 4, k, 1)?;
    let v = behind(emit, node, 5, v, 2)?;
    let Some(width) = q.dims[3].known() else {
        return refuse("the length of vectors is known in a run only");
    };
    #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
    let scale = operator.scale.unwrap_or_else(|| 1.0 / (width as f32).sqrt());
    let mask = match node.input(3) {
        Some(id) => Some(additive(emit, node, id, &k.dims[2])?),
        None => None,
    };
    let causal = operator.is_causal;
    let softcap = operator.softcap;
    if causal && node.input(4).is_none() && !q.dims[2].same(&k.dims[2]) {
        return refuse("queries that see keys up to their own position, with more keys");
    }
    let keys = k.var.clone();
    let values = v.var.clone();
    let batch_dims = [q.dims[0].clone(), q.dims[2].clone(), q.dims[1].clone(), v.dims[3].clone()];
    // A query that sees no key gives zeros.
    let scoring = AttentionScoring {
        scale,
        masked_to_zero: mask.is_some(),
        mask,
        known: emit.known(node, 3),
        causal,
        softcap,
    };
    let mut result = attend(emit, AttentionHeads { q, k, v }, scoring)?;
    if emit.rank(emit.input(node, 0)?)? == 3 {
        result = emit.transpose(&result, &[0, 2, 1, 3])?;
        let merged = batch_dims[2].known().zip(batch_dims[3].known());
        let merged = merged.map_or(Dim::Unknown, |(heads, width)| Dim::Known(heads * width));
        let packed = [batch_dims[0].clone(), batch_dims[1].clone(), merged];
        result = emit.reshape_dims(&result, &batch_dims, &packed)?;
    }
    Ok(vec![result.clone(), keys, values, result])
}

/// A mask as numbers to add; one of truth values says which keys are seen.
fn additive(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    id: galatea_graph::ValueId,
    keys: &Dim,
) -> Result<MilVar> {
    let dims = emit.dims(id)?;
    if !dims.last().is_some_and(|last| last.same(keys) || last.known() == Some(1)) {
        return refuse("a mask of fewer keys than there are");
    }
    let mask = emit.var(node, 3)?;
    match emit.element_of(&mask)? {
        MilElement::Bool => {
            let none = emit.float(0.0);
            let hidden = emit.float(f32::NEG_INFINITY);
            emit.select(&mask, none, hidden)
        }
        MilElement::Int32 => emit.cast(&mask, emit.float_element()),
        _ => Ok(mask),
    }
}

/// The scale comes first, so that scores stay within FP16.
fn attend(
    emit: &mut ProgramEmitter<'_>,
    heads: AttentionHeads,
    scoring: AttentionScoring,
) -> Result<MilVar> {
    let AttentionHeads { q, k, v } = heads;
    let mut scaled = q.var;
    if scoring.scale != 1.0 {
        let scale = emit.float(scoring.scale);
        scaled = emit.pair("mul", &scaled, scale)?;
    }
    let [batch, heads, queries, _] = &q.dims;
    let own = heads.known();
    let shared = k.dims[1].known();
    let (Some(own), Some(shared)) = (own, shared) else {
        return refuse("the number of heads is known in a run only");
    };
    if shared == 0 || !own.is_multiple_of(shared) {
        return refuse(format!("{own} heads share {shared}"));
    }
    // Heads that share keys lie next to each other: they are more queries of one head.
    let grouped = own != shared;
    let keys = k.dims[2].clone();
    let joined = |last: &Dim| {
        let rows = queries.known().map_or(Dim::Unknown, |len| Dim::Known(len * (own / shared)));
        [batch.clone(), Dim::Known(shared), rows, last.clone()]
    };
    if grouped {
        scaled = emit.reshape_dims(&scaled, &q.dims, &joined(&q.dims[3]))?;
    }
    let mut scores = product(emit, &scaled, &k.var, false, true)?;
    let plain = [batch.clone(), heads.clone(), queries.clone(), keys.clone()];
    if grouped {
        scores = emit.reshape_dims(&scores, &joined(&keys), &plain)?;
    }
    if scoring.softcap > 0.0 {
        let cap = emit.float(scoring.softcap);
        let share = emit.float(1.0 / scoring.softcap);
        let small = emit.pair("mul", &scores, share)?;
        let bent = emit.op("tanh", vec![("x", MilArg::Var(small))])?;
        scores = emit.pair("mul", &bent, cap)?;
    }
    let (scores, seen) = masked(emit, &scoring, scores, queries, &keys)?;
    let softmax = vec![("x", MilArg::Var(scores)), ("axis", MilArg::Int(-1))];
    let mut shares = emit.op("softmax", softmax)?;
    if grouped {
        shares = emit.reshape_dims(&shares, &plain, &joined(&keys))?;
    }
    let mut result = product(emit, &shares, &v.var, false, false)?;
    if grouped {
        let whole = [batch.clone(), heads.clone(), queries.clone(), v.dims[3].clone()];
        result = emit.reshape_dims(&result, &joined(&v.dims[3]), &whole)?;
    }
    match seen {
        Some(seen) => emit.pair("mul", &result, &seen),
        None => Ok(result),
    }
}

/// The scores with what hides keys, and 1 for each query that sees one where others give zeros.
fn masked(
    emit: &mut ProgramEmitter<'_>,
    scoring: &AttentionScoring,
    mut scores: MilVar,
    queries: &Dim,
    keys: &Dim,
) -> Result<(MilVar, Option<MilVar>)> {
    // Infinities would end in numbers that are none.
    let (least, most) = match emit.float_element() {
        MilElement::Fp16 => (HIDDEN_HALF, 65504.0),
        _ => (HIDDEN, f32::MAX),
    };
    let behind = match scoring.causal {
        true => Some(causal(emit, &scores, queries, keys)?),
        false => None,
    };
    let mut seen = None;
    let known = scoring.known.as_ref().filter(|_| behind.is_none() || !scoring.masked_to_zero);
    if let Some(known) = known {
        let (mask, rows) = constant_mask(emit, known, least, most)?;
        seen = rows.filter(|_| scoring.masked_to_zero);
        scores = emit.pair("add", &scores, &mask)?;
    } else if let Some(mask) = &scoring.mask {
        let low = emit.float(least);
        let high = emit.float(most);
        let inputs = vec![("x", mask.into()), ("alpha", low), ("beta", high)];
        let mask = emit.op("clip", inputs)?;
        if scoring.masked_to_zero {
            let both = match &behind {
                Some(behind) => emit.pair("minimum", &mask, behind)?,
                None => mask.clone(),
            };
            let inputs = vec![
                ("x", MilArg::Var(both)),
                ("axes", MilArg::Ints(vec![-1])),
                ("keep_dims", MilArg::Bool(true)),
            ];
            let best = emit.op("reduce_max", inputs)?;
            let least = emit.float(least);
            let any = emit.pair("greater", &best, least)?;
            seen = Some(emit.cast(&any, emit.float_element())?);
        }
        scores = emit.pair("add", &scores, &mask)?;
    }
    if let Some(behind) = behind {
        scores = emit.pair("add", &scores, &behind)?;
    }
    Ok((scores, seen))
}

/// A mask that is known before a run within these limits, and 1 for each row in which something is seen
/// where others see nothing.
fn constant_mask(
    emit: &mut ProgramEmitter<'_>,
    known: &Tensor,
    least: f32,
    most: f32,
) -> Result<(MilVar, Option<MilVar>)> {
    let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
    let wide = galatea_graph::converted(known, DataType::Fp32).map_err(|error| failed(&error))?;
    let all = wide.to_vec::<f32>().map_err(|error| failed(&error))?;
    let truths = known.dtype() == DataType::Bool;
    let limited = |value: f32| match truths {
        true if value != 0.0 => 0.0,
        true => least,
        false => value.clamp(least, most),
    };
    let all: Vec<f32> = all.into_iter().map(limited).collect();
    let mut rows = known.shape().to_vec();
    let width = rows.last_mut().map_or(1, |last| std::mem::replace(last, 1));
    let seen = |row: &[f32]| f32::from(u8::from(row.iter().any(|&value| value > least)));
    let seen: Vec<f32> = all.chunks(width.max(1)).map(seen).collect();
    let mask = emit.floats(known.shape(), all)?;
    match seen.contains(&0.0) {
        true => Ok((mask, Some(emit.floats(&rows, seen)?))),
        false => Ok((mask, None)),
    }
}

/// `[queries, keys]` of what hides the keys behind each query; the queries are the last positions.
fn causal(
    emit: &mut ProgramEmitter<'_>,
    scores: &MilVar,
    queries: &Dim,
    keys: &Dim,
) -> Result<MilVar> {
    let hidden = if emit.float_element() == MilElement::Fp16 { HIDDEN_HALF } else { HIDDEN };
    if let (Some(rows), Some(columns)) = (queries.known(), keys.known()) {
        let at = |row: usize| {
            let hides = move |key: usize| key + rows > row + columns;
            (0..columns).map(move |key| if hides(key) { hidden } else { 0.0 })
        };
        return emit.floats(&[rows, columns], (0..rows).flat_map(at).collect());
    }
    let counted = |emit: &mut ProgramEmitter<'_>, end: &MilVar, axis: i32| {
        let inputs = vec![("start", MilArg::Int(0)), ("end", end.into()), ("step", MilArg::Int(1))];
        let all = emit.op("range_1d", inputs)?;
        emit.op("expand_dims", vec![("x", MilArg::Var(all)), ("axes", MilArg::Ints(vec![axis]))])
    };
    let rows = emit.length_of(scores, 2)?;
    let columns = emit.length_of(scores, 3)?;
    let row = counted(emit, &rows, 1)?;
    let key = counted(emit, &columns, 0)?;
    let before = emit.pair("sub", &columns, &rows)?;
    let last = emit.pair("add", &row, &before)?;
    let hides = emit.pair("greater", &key, &last)?;
    let hidden = emit.float(hidden);
    let nothing = emit.float(0.0);
    emit.select(&hides, hidden, nothing)
}

/// Halves of vectors turned by angles.
fn rotary(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<FusedRotary>() else {
        return refuse("a rotation of another kind");
    };
    let x = ordered(emit, node, 0, operator.perm)?;
    let cos = emit.var(node, 1)?;
    let sin = emit.var(node, 2)?;
    let Some(width) = x.dims[3].known() else {
        return refuse("the length of vectors is known in a run only");
    };
    let last = emit.dims(emit.input(node, 1)?)?.last().and_then(Dim::known);
    let Some(last) = last else {
        return refuse("the number of cosines is known in a run only");
    };
    let (first, second) = halves(emit, &x.var)?;
    let join = |emit: &mut ProgramEmitter<'_>, a: MilVar, b: MilVar| {
        let inputs = vec![
            ("values", MilArg::Vars(vec![a, b])),
            ("axis", MilArg::Int(-1)),
            ("interleave", MilArg::Bool(false)),
        ];
        emit.op("concat", inputs)
    };
    if last == width {
        let minus = emit.float(-1.0);
        let turned = emit.pair("mul", &second, minus)?;
        let turned = join(emit, turned, first)?;
        let a = emit.pair("mul", &x.var, &cos)?;
        let b = emit.pair("mul", &turned, &sin)?;
        return Ok(vec![emit.pair("add", &a, &b)?]);
    }
    if last * 2 != width && last != 1 {
        return refuse(format!("{last} cosines for vectors of {width}"));
    }
    let a = emit.pair("mul", &first, &cos)?;
    let b = emit.pair("mul", &second, &sin)?;
    let front = emit.pair("sub", &a, &b)?;
    let a = emit.pair("mul", &second, &cos)?;
    let b = emit.pair("mul", &first, &sin)?;
    let behind = emit.pair("add", &a, &b)?;
    Ok(vec![join(emit, front, behind)?])
}

/// Both halves of the last axis.
fn halves(emit: &mut ProgramEmitter<'_>, x: &MilVar) -> Result<(MilVar, MilVar)> {
    let inputs =
        vec![("x", x.into()), ("num_splits", MilArg::Int(small(2)?)), ("axis", MilArg::Int(-1))];
    let mut parts = emit.op_of("split", inputs, 2)?.into_iter();
    match (parts.next(), parts.next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => refuse("a split without parts"),
    }
}
