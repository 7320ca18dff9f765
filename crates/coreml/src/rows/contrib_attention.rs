//! The attention operators of `com.microsoft`, with their masks, biases and caches, as products and shares.

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ops::contrib::{
    ContribAttention, ContribRotaryEmbedding, GroupQueryAttention, MultiHeadAttention,
};
use galatea_graph::ops::transformer::RotaryEmbedding;
use galatea_graph::{Node, ValueId};
use galatea_tensor::DataType;

use super::EmitRow;
use super::attention::{HIDDEN, HIDDEN_HALF};
use super::parts::DecomposedNode;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Attention", projected).of("com.microsoft"),
    EmitRow::onnx("MultiHeadAttention", multi_head).of("com.microsoft"),
    EmitRow::onnx("GroupQueryAttention", grouped).of("com.microsoft"),
    EmitRow::onnx("RotaryEmbedding", rotary),
    EmitRow::onnx("RotaryEmbedding", contrib_rotary).of("com.microsoft"),
];

/// A length as an attribute has it.
pub(super) fn signed(len: usize) -> Result<i64> {
    i64::try_from(len).map_err(|error| UnwritableNode(error.to_string()))
}

/// The lengths of an input of a node, which must be known.
fn lengths<const N: usize>(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    at: usize,
) -> Result<[usize; N]> {
    let shape = emit.shape(emit.input(node, at)?)?;
    let found = shape.clone().try_into();
    found.or_else(|_| refuse(format!("input {at} has shape {shape:?}, expected {N} axes")))
}

/// Queries, keys or values of heads: `[batch, heads, positions, width]`.
#[derive(Clone, Copy, Debug)]
struct ContribHeads {
    value: ValueId,
    shape: [usize; 4],
}

/// Lengths of heads that lie side by side, `[batch, positions, heads · width]`.
#[derive(Clone, Copy)]
struct PackedLengths {
    batch: usize,
    /// Vectors of each sequence of the batch.
    positions: usize,
    /// Elements of all heads of a position.
    hidden: usize,
}

impl PackedLengths {
    /// The lengths of an input of a node.
    fn of(emit: &ProgramEmitter<'_>, node: &Node, at: usize) -> Result<Self> {
        let [batch, positions, hidden] = lengths::<3>(emit, node, at)?;
        Ok(Self { batch, positions, hidden })
    }
}

/// The heads of vectors that lie side by side.
fn apart(
    parts: &mut DecomposedNode,
    value: ValueId,
    packed: PackedLengths,
    heads: usize,
) -> Result<ContribHeads> {
    let PackedLengths { batch, positions, hidden } = packed;
    if heads == 0 || !hidden.is_multiple_of(heads) {
        return refuse(format!("{heads} heads of vectors of {hidden}"));
    }
    let shape = [batch, heads, positions, hidden / heads];
    let cut = [signed(batch)?, signed(positions)?, signed(heads)?, signed(shape[3])?];
    let value = parts.reshape(value, &cut)?;
    Ok(ContribHeads { value: parts.transpose(value, &[0, 2, 1, 3])?, shape })
}

/// The other way.
fn together(parts: &mut DecomposedNode, heads: ContribHeads) -> Result<ValueId> {
    let [batch, count, positions, width] = heads.shape;
    let value = parts.transpose(heads.value, &[0, 2, 1, 3])?;
    parts.reshape(value, &[signed(batch)?, signed(positions)?, signed(count * width)?])
}

/// Steps between the scores and their shares.
#[derive(Debug, Default)]
struct ContribScoring {
    scale: Option<f32>,
    softcap: f32,
    /// Added to the scores.
    biases: Vec<ValueId>,
    /// One more score for each head, `[1, heads, 1, 1]`, which stands for no key.
    sink: Option<ValueId>,
}

/// `softmax(scale · Q·Kᵀ + biases) · V`. The scale comes first, so that scores stay within FP16.
fn attend(
    parts: &mut DecomposedNode,
    q: ContribHeads,
    k: ContribHeads,
    v: ContribHeads,
    scoring: &ContribScoring,
) -> Result<ContribHeads> {
    let [batch, heads, queries, width] = q.shape;
    let [_, shared, keys, _] = k.shape;
    if shared == 0 || !heads.is_multiple_of(shared) {
        return refuse(format!("{heads} heads share {shared}"));
    }
    #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
    let scale = parts.float(scoring.scale.unwrap_or_else(|| 1.0 / (width as f32).sqrt()));
    let mut scaled = parts.plain("Mul", &[q.value, scale])?;
    // Heads that share keys lie next to each other: they are more queries of one head.
    let rows = queries * (heads / shared);
    let of_v = v.shape[3];
    let joined = |last: usize| -> Result<[i64; 4]> {
        Ok([signed(batch)?, signed(shared)?, signed(rows)?, signed(last)?])
    };
    let plain = |last: usize| -> Result<[i64; 4]> {
        Ok([signed(batch)?, signed(heads)?, signed(queries)?, signed(last)?])
    };
    let grouped = heads != shared;
    if grouped {
        scaled = parts.reshape(scaled, &joined(width)?)?;
    }
    let turned = parts.transpose(k.value, &[0, 1, 3, 2])?;
    let mut scores = parts.plain("MatMul", &[scaled, turned])?;
    if grouped {
        scores = parts.reshape(scores, &plain(keys)?)?;
    }
    if scoring.softcap > 0.0 {
        let cap = parts.float(scoring.softcap);
        let share = parts.float(1.0 / scoring.softcap);
        let small = parts.plain("Mul", &[scores, share])?;
        let bent = parts.plain("Tanh", &[small])?;
        scores = parts.plain("Mul", &[bent, cap])?;
    }
    for &bias in &scoring.biases {
        scores = parts.plain("Add", &[scores, bias])?;
    }
    if let Some(sink) = scoring.sink {
        let shape = parts.ints(&plain(1)?);
        let column = parts.plain("Expand", &[sink, shape])?;
        scores = parts.concat(&[scores, column], -1)?;
    }
    let mut shares = parts.op("Softmax", &[("axis", (-1_i64).into())], &[scores])?;
    if scoring.sink.is_some() {
        shares = parts.slice(shares, -1, 0, keys, 1)?;
    }
    if grouped {
        shares = parts.reshape(shares, &joined(keys)?)?;
    }
    let mut value = parts.plain("MatMul", &[shares, v.value])?;
    if grouped {
        value = parts.reshape(value, &plain(of_v)?)?;
    }
    Ok(ContribHeads { value, shape: [batch, heads, queries, of_v] })
}

/// Returns the number added to the score of a key that is hidden for good: enough for its share to
/// be 0.
fn hidden(emit: &ProgramEmitter<'_>) -> f32 {
    if emit.keeps_to_half() { HIDDEN_HALF } else { HIDDEN }
}

/// `value` where a condition holds, 0 elsewhere.
fn where_so(parts: &mut DecomposedNode, condition: ValueId, value: f32) -> Result<ValueId> {
    let value = parts.float(value);
    let zero = parts.float(0.0);
    parts.plain("Where", &[condition, value, zero])
}

/// Lengths of scores, `[batch, heads, queries, keys]`.
#[derive(Clone, Copy)]
struct ScoreExtent {
    batch: usize,
    /// Positions that ask.
    queries: usize,
    /// Positions that are asked, those of the past among them.
    keys: usize,
    /// Keys of the past, which come before those of the queries.
    before: usize,
}

/// `[queries, keys]` that hides the keys behind each query.
fn causal(parts: &mut DecomposedNode, extent: ScoreExtent, hidden: f32) -> Result<ValueId> {
    let ScoreExtent { queries, keys, before, .. } = extent;
    let at =
        |query: usize| (0..keys).map(move |key| if key > before + query { hidden } else { 0.0 });
    parts.floats(&[queries, keys], (0..queries).flat_map(at).collect())
}

/// A bias on the scores, of which more keys may be known than there are.
fn score_bias(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    keys: usize,
) -> Result<Option<ValueId>> {
    let Some(bias) = parts.optional(emit, node, at)? else { return Ok(None) };
    let [_, _, _, known] = lengths::<4>(emit, node, at)?;
    match known {
        _ if known == keys => Ok(Some(bias)),
        _ if known > keys => parts.slice(bias, 3, 0, keys, 1).map(Some),
        _ => refuse(format!("a bias of {known} keys of {keys}")),
    }
}

/// The mask of keys of an input, as what it adds to the scores.
fn key_mask(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    extent: ScoreExtent,
    value: f32,
) -> Result<Option<ValueId>> {
    let ScoreExtent { batch, queries, keys, before } = extent;
    let Some(mask) = parts.optional(emit, node, at)? else { return Ok(None) };
    let shape = emit.shape(emit.input(node, at)?)?;
    let zero = parts.int(0)?;
    let seen = match *shape.as_slice() {
        [count] if count == batch || count == 2 * batch => {
            let position = parts.counted(&[1, keys])?;
            let ends = parts.slice(mask, 0, 0, batch, 1)?;
            let ends = parts.unsqueeze(ends, &[1])?;
            let mut seen = parts.plain("Less", &[position, ends])?;
            if count == 2 * batch {
                let starts = parts.slice(mask, 0, batch, count, 1)?;
                let starts = parts.unsqueeze(starts, &[1])?;
                let behind = parts.plain("GreaterOrEqual", &[position, starts])?;
                seen = parts.plain("And", &[seen, behind])?;
            }
            parts.unsqueeze(seen, &[1, 2])?
        }
        [own, known] if own == batch && known >= keys => {
            let mask = parts.slice(mask, 1, 0, keys, 1)?;
            let seen = parts.plain("Greater", &[mask, zero])?;
            parts.unsqueeze(seen, &[1, 2])?
        }
        [own, rows, known] if own == batch && rows == queries && known >= keys => {
            let mask = parts.slice(mask, 2, 0, keys, 1)?;
            let seen = parts.plain("Greater", &[mask, zero])?;
            parts.unsqueeze(seen, &[1])?
        }
        [own, 1, rows, known] if own == batch && rows == known && known >= keys => {
            let mask = parts.slice(mask, 2, before, before + queries, 1)?;
            let mask = parts.slice(mask, 3, 0, keys, 1)?;
            parts.plain("Greater", &[mask, zero])?
        }
        _ => {
            return refuse(format!(
                "a mask of shape {shape:?} for {queries} queries and {keys} keys"
            ));
        }
    };
    let gone = parts.plain("Not", &[seen])?;
    where_so(parts, gone, value).map(Some)
}

/// Heads behind those of the past.
fn behind(
    parts: &mut DecomposedNode,
    past: Option<(ValueId, usize)>,
    new: ContribHeads,
) -> Result<ContribHeads> {
    let Some((past, count)) = past else { return Ok(new) };
    let [batch, heads, positions, width] = new.shape;
    let value = parts.concat(&[past, new.value], 2)?;
    Ok(ContribHeads { value, shape: [batch, heads, count + positions, width] })
}

/// Writes those results that somebody reads.
fn written(
    parts: DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    results: &[ValueId],
) -> Result<Vec<MilVar>> {
    let [first, rest @ ..] = results else { return refuse("attention without a result") };
    let read = |at: usize| node.output(at).is_some_and(|id| emit.is_read(id));
    let chosen = rest.iter().zip(1..).map(|(&id, at)| if read(at) { id } else { *first });
    let all: Vec<ValueId> = [*first].into_iter().chain(chosen).collect();
    parts.write(emit, &all)
}

/// Attention that projects its input itself.
fn projected(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ContribAttention>() else {
        return refuse("attention of another kind");
    };
    let packed = PackedLengths::of(emit, node, 0)?;
    let [_, columns] = lengths::<2>(emit, node, 1)?;
    let widths = operator.qkv_hidden_sizes.unwrap_or([columns / 3; 3]);
    if widths.iter().sum::<usize>() != columns {
        return refuse(format!("{columns} columns of weights for {widths:?}"));
    }
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let weight = parts.input(emit, node, 1)?;
    let mut all = parts.plain("MatMul", &[x, weight])?;
    if let Some(bias) = parts.optional(emit, node, 2)? {
        all = parts.plain("Add", &[all, bias])?;
    }
    let mut first = 0;
    let mut part = |parts: &mut DecomposedNode, width: usize| {
        let cut = parts.slice(all, 2, first, first + width, 1)?;
        first += width;
        apart(parts, cut, PackedLengths { hidden: width, ..packed }, operator.num_heads)
    };
    let q = part(&mut parts, widths[0])?;
    let mut k = part(&mut parts, widths[1])?;
    let mut v = part(&mut parts, widths[2])?;
    let mut before = 0;
    if node.input(4).is_some() {
        let [_, _, _, count, _] = lengths::<5>(emit, node, 4)?;
        before = count;
        let past = parts.input(emit, node, 4)?;
        let half = |parts: &mut DecomposedNode, which: usize, new: ContribHeads| {
            let half = parts.slice(past, 0, which, which + 1, 1)?;
            let [batch, heads, _, width] = new.shape;
            let shape = [signed(batch)?, signed(heads)?, signed(count)?, signed(width)?];
            let half = parts.reshape(half, &shape)?;
            behind(parts, Some((half, count)), new)
        };
        (k, v) = (half(&mut parts, 0, k)?, half(&mut parts, 1, v)?);
    }
    let queries = packed.positions;
    let keys = before + queries;
    let mut scoring = ContribScoring { scale: operator.scale, ..ContribScoring::default() };
    let value = operator.mask_filter_value;
    let extent = ScoreExtent { batch: packed.batch, queries, keys, before };
    scoring.biases.extend(key_mask(&mut parts, emit, node, 3, extent, value)?);
    scoring.biases.extend(score_bias(&mut parts, emit, node, 5, keys)?);
    if operator.unidirectional {
        let hidden = hidden(emit);
        scoring.biases.push(causal(&mut parts, extent, hidden)?);
    }
    let result = attend(&mut parts, q, k, v, &scoring)?;
    let result = together(&mut parts, result)?;
    let mut results = vec![result];
    if node.output(1).is_some_and(|id| emit.is_read(id)) {
        let k = parts.unsqueeze(k.value, &[0])?;
        let v = parts.unsqueeze(v.value, &[0])?;
        results.push(parts.concat(&[k, v], 0)?);
    } else {
        results.push(result);
    }
    written(parts, emit, node, &results)
}

/// Queries, keys and values of an operator that is given them, and how many of the three have a bias.
fn given(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    heads: usize,
) -> Result<([ContribHeads; 3], usize)> {
    // One of several that are stored together, `[batch, positions, heads, several, width]`.
    let stored = |parts: &mut DecomposedNode, x: ValueId, shape: [usize; 5], which: usize| {
        let [batch, positions, heads, _, width] = shape;
        let hidden = heads * width;
        let one = parts.slice(x, 3, which, which + 1, 1)?;
        let one = parts.reshape(one, &[signed(batch)?, signed(positions)?, signed(hidden)?])?;
        apart(parts, one, PackedLengths { batch, positions, hidden }, heads)
    };
    let q = parts.input(emit, node, 0)?;
    if emit.rank(emit.input(node, 0)?)? == 5 {
        let shape = lengths::<5>(emit, node, 0)?;
        let all =
            [stored(parts, q, shape, 0)?, stored(parts, q, shape, 1)?, stored(parts, q, shape, 2)?];
        return Ok((all, 3));
    }
    let q = apart(parts, q, PackedLengths::of(emit, node, 0)?, heads)?;
    let k = parts.input(emit, node, 1)?;
    match emit.rank(emit.input(node, 1)?)? {
        5 => {
            let shape = lengths::<5>(emit, node, 1)?;
            Ok(([q, stored(parts, k, shape, 0)?, stored(parts, k, shape, 1)?], 3))
        }
        // Keys by head come from a cache and have their bias already.
        4 => {
            let k = ContribHeads { value: k, shape: lengths::<4>(emit, node, 1)? };
            let v = parts.input(emit, node, 2)?;
            Ok(([q, k, ContribHeads { value: v, shape: lengths::<4>(emit, node, 2)? }], 1))
        }
        _ => {
            let k = apart(parts, k, PackedLengths::of(emit, node, 1)?, heads)?;
            let v = parts.input(emit, node, 2)?;
            Ok(([q, k, apart(parts, v, PackedLengths::of(emit, node, 2)?, heads)?], 3))
        }
    }
}

/// Attention over queries, keys and values.
fn multi_head(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(&operator) = node.operator::<MultiHeadAttention>() else {
        return refuse("attention of another kind");
    };
    let mut parts = DecomposedNode::new();
    let (mut all, biased) = given(&mut parts, emit, node, operator.num_heads)?;
    if let Some(bias) = parts.optional(emit, node, 3)? {
        let mut first = 0;
        for one in all.iter_mut().take(biased) {
            let [_, heads, _, width] = one.shape;
            let own = parts.slice(bias, 0, first, first + heads * width, 1)?;
            first += heads * width;
            let own = parts.reshape(own, &[1, signed(heads)?, 1, signed(width)?])?;
            one.value = parts.plain("Add", &[one.value, own])?;
        }
    }
    let [q, mut k, mut v] = all;
    let mut before = 0;
    if node.input(6).is_some() {
        before = lengths::<4>(emit, node, 6)?[2];
        let keys = parts.input(emit, node, 6)?;
        let values = parts.input(emit, node, 7)?;
        k = behind(&mut parts, Some((keys, before)), k)?;
        v = behind(&mut parts, Some((values, before)), v)?;
    }
    let [batch, _, queries, _] = q.shape;
    let keys = k.shape[2];
    let mut scoring = ContribScoring { scale: operator.scale, ..ContribScoring::default() };
    let extent = ScoreExtent { batch, queries, keys, before };
    let value = operator.mask_filter_value;
    scoring.biases.extend(key_mask(&mut parts, emit, node, 4, extent, value)?);
    scoring.biases.extend(score_bias(&mut parts, emit, node, 5, keys)?);
    if operator.unidirectional {
        let hidden = hidden(emit);
        scoring.biases.push(causal(&mut parts, extent, hidden)?);
    }
    let result = attend(&mut parts, q, k, v, &scoring)?;
    let result = together(&mut parts, result)?;
    written(parts, emit, node, &[result, k.value, v.value])
}

/// Angles by their cosines and sines, both `[…, 1, positions, pairs]`.
#[derive(Clone, Copy)]
struct HeadAngles {
    /// The cosines.
    cos: ValueId,
    /// The sines.
    sin: ValueId,
}

/// Pairs of elements turned by angles.
fn turned(
    parts: &mut DecomposedNode,
    x: ContribHeads,
    angles: HeadAngles,
    pairs: usize,
    interleaved: bool,
) -> Result<ContribHeads> {
    let [batch, heads, positions, width] = x.shape;
    let both = 2 * pairs;
    if both > width {
        return refuse(format!("{pairs} pairs of vectors of {width}"));
    }
    let (first, second) = match interleaved {
        true => (parts.slice(x.value, 3, 0, both, 2)?, parts.slice(x.value, 3, 1, both, 2)?),
        false => (parts.slice(x.value, 3, 0, pairs, 1)?, parts.slice(x.value, 3, pairs, both, 1)?),
    };
    let mut product = |x: ValueId, y: ValueId| parts.plain("Mul", &[x, y]);
    let a = product(first, angles.cos)?;
    let b = product(second, angles.sin)?;
    let c = product(first, angles.sin)?;
    let d = product(second, angles.cos)?;
    let front = parts.plain("Sub", &[a, b])?;
    let back = parts.plain("Add", &[c, d])?;
    let mut all = match interleaved {
        false => parts.concat(&[front, back], 3)?,
        true => {
            let front = parts.unsqueeze(front, &[4])?;
            let back = parts.unsqueeze(back, &[4])?;
            let side = parts.concat(&[front, back], 4)?;
            let shape = [signed(batch)?, signed(heads)?, signed(positions)?, signed(both)?];
            parts.reshape(side, &shape)?
        }
    };
    if both < width {
        let rest = parts.slice(x.value, 3, both, width, 1)?;
        all = parts.concat(&[all, rest], 3)?;
    }
    Ok(ContribHeads { value: all, shape: x.shape })
}

/// Vectors with heads of their own axis, or side by side.
fn vectors(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    heads: Option<usize>,
) -> Result<(ContribHeads, bool)> {
    let x = parts.input(emit, node, 0)?;
    match (emit.rank(emit.input(node, 0)?)?, heads) {
        (3, Some(heads)) => Ok((apart(parts, x, PackedLengths::of(emit, node, 0)?, heads)?, true)),
        _ => Ok((ContribHeads { value: x, shape: lengths::<4>(emit, node, 0)? }, false)),
    }
}

/// The rows of the caches at these positions, for all heads: cosines of the input `cos`, sines of `sin`.
fn looked_up(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    cos: usize,
    sin: usize,
    positions: ValueId,
) -> Result<HeadAngles> {
    let mut each = |at: usize| {
        let cache = parts.input(emit, node, at)?;
        let rows = parts.plain("Gather", &[cache, positions])?;
        parts.unsqueeze(rows, &[1])
    };
    Ok(HeadAngles { cos: each(cos)?, sin: each(sin)? })
}

/// ONNX's own operator.
fn rotary(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<RotaryEmbedding>() else {
        return refuse("a rotation of another kind");
    };
    let mut parts = DecomposedNode::new();
    let (x, packed) = vectors(&mut parts, emit, node, operator.num_heads)?;
    let pairs = operator.pairs(x.shape[3]).or_else(|error| refuse(error.to_string()))?;
    let angles = match parts.optional(emit, node, 3)? {
        Some(positions) => looked_up(&mut parts, emit, node, 1, 2, positions)?,
        None => {
            let cos = parts.input(emit, node, 1)?;
            let sin = parts.input(emit, node, 2)?;
            HeadAngles { cos: parts.unsqueeze(cos, &[1])?, sin: parts.unsqueeze(sin, &[1])? }
        }
    };
    let result = turned(&mut parts, x, angles, pairs, operator.interleaved)?;
    let result = if packed { together(&mut parts, result)? } else { result.value };
    parts.write(emit, &[result])
}

/// The operator that was before ONNX had one.
fn contrib_rotary(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ContribRotaryEmbedding>() else {
        return refuse("a rotation of another kind");
    };
    let [_, pairs] = lengths::<2>(emit, node, 2)?;
    let hidden = emit.known_length(emit.input(node, 0)?, emit.rank(emit.input(node, 0)?)? - 1)?;
    // Without a number of heads the caches say how wide one is.
    let heads = operator.rotary.num_heads.or_else(|| hidden.checked_div(2 * pairs));
    let mut parts = DecomposedNode::new();
    let (x, packed) = vectors(&mut parts, emit, node, heads)?;
    let positions = parts.input(emit, node, 1)?;
    let positions = match emit.rank(emit.input(node, 1)?)? {
        2 => positions,
        _ => {
            let counted = parts.counted(&[1, x.shape[2]])?;
            let first = parts.reshape(positions, &[1, 1])?;
            parts.plain("Add", &[counted, first])?
        }
    };
    let angles = looked_up(&mut parts, emit, node, 2, 3, positions)?;
    let result = turned(&mut parts, x, angles, pairs, operator.rotary.interleaved)?;
    let result = if packed { together(&mut parts, result)? } else { result.value };
    parts.write(emit, &[result])
}

/// Values that are the same for all steps of a grouped attention.
struct GroupedAttention<'a> {
    operator: &'a GroupQueryAttention,
    /// Positions of the caches that are given, and of those that result.
    stored: usize,
    total: usize,
    /// The position of each query, `[batch, queries]`, and how many positions of the past each of the batch
    /// has, `[batch, 1]`.
    own: ValueId,
    past: ValueId,
    /// How many keys each of the batch has, `[batch, 1]`.
    keys: ValueId,
}

impl GroupedAttention<'_> {
    /// The cache with new vectors behind the past of each of the batch: a product with ones where a new
    /// vector belongs, as no operation writes at places of its own for each of a batch.
    fn appended(
        &self,
        parts: &mut DecomposedNode,
        past: Option<ValueId>,
        new: ContribHeads,
    ) -> Result<ContribHeads> {
        let [batch, heads, _, width] = new.shape;
        let position = parts.counted(&[1, self.total, 1])?;
        let own = parts.unsqueeze(self.own, &[1])?;
        let here = parts.plain("Equal", &[position, own])?;
        let here = parts.cast(here, DataType::Fp32)?;
        let here = parts.unsqueeze(here, &[1])?;
        let mut value = parts.plain("MatMul", &[here, new.value])?;
        if let Some(mut past) = past {
            let more = self.total.saturating_sub(self.stored);
            if more > 0 {
                let shape = [batch, heads, more, width];
                let zeros = parts.floats(&shape, vec![0.0; shape.iter().product()])?;
                past = parts.concat(&[past, zeros], 2)?;
            }
            let position = parts.counted(&[1, self.total])?;
            let kept = parts.plain("Less", &[position, self.past])?;
            let kept = parts.unsqueeze(kept, &[1, 3])?;
            value = parts.plain("Where", &[kept, past, value])?;
        }
        Ok(ContribHeads { value, shape: [batch, heads, self.total, width] })
    }

    /// Makes the mask that hides keys from queries that do not see them, `[batch, 1, queries,
    /// keys]`.
    fn mask(&self, parts: &mut DecomposedNode, hidden: f32) -> Result<ValueId> {
        let position = parts.counted(&[1, 1, self.total])?;
        let own = parts.unsqueeze(self.own, &[2])?;
        let mut gone = match self.operator.causal {
            true => parts.plain("Greater", &[position, own])?,
            false => {
                let keys = parts.unsqueeze(self.keys, &[2])?;
                parts.plain("GreaterOrEqual", &[position, keys])?
            }
        };
        if let Some(window) = self.operator.window {
            let window = parts.int(window)?;
            let reached = parts.plain("Add", &[position, window])?;
            let before = parts.plain("LessOrEqual", &[reached, own])?;
            gone = parts.plain("Or", &[gone, before])?;
        }
        let mask = where_so(parts, gone, hidden)?;
        parts.unsqueeze(mask, &[1])
    }
}

/// Queries, keys and values of the new positions.
fn projections(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    operator: &GroupQueryAttention,
) -> Result<[ContribHeads; 3]> {
    let counts = [operator.num_heads, operator.kv_num_heads, operator.kv_num_heads];
    if node.input(1).is_some() {
        let mut each = |at: usize| {
            let x = parts.input(emit, node, at)?;
            apart(parts, x, PackedLengths::of(emit, node, at)?, counts[at])
        };
        return Ok([each(0)?, each(1)?, each(2)?]);
    }
    let packed = PackedLengths::of(emit, node, 0)?;
    let all = counts.iter().sum::<usize>();
    if all == 0 || !packed.hidden.is_multiple_of(all) {
        return refuse(format!("{all} heads of vectors of {}", packed.hidden));
    }
    let x = parts.input(emit, node, 0)?;
    let width = packed.hidden / all;
    let mut first = 0;
    let mut each = |count: usize| {
        let hidden = count * width;
        let part = parts.slice(x, 2, first, first + hidden, 1)?;
        first += hidden;
        apart(parts, part, PackedLengths { hidden, ..packed }, count)
    };
    Ok([each(counts[0])?, each(counts[1])?, each(counts[2])?])
}

/// Attention of groups of heads with caches, whose past may end elsewhere for each of the batch.
fn grouped(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GroupQueryAttention>() else {
        return refuse("attention of another kind");
    };
    if (12..16).any(|at| node.input(at).is_some()) {
        return refuse("caches of codes");
    }
    let mut parts = DecomposedNode::new();
    let [mut q, mut k, v] = projections(&mut parts, emit, node, operator)?;
    let [batch, heads, queries, _] = q.shape;
    let longest = emit.integers(node, 6)?;
    let &[longest] = longest.as_slice() else { return refuse("more than one longest length") };
    let longest = usize::try_from(longest).map_err(|error| UnwritableNode(error.to_string()))?;
    let stored = match node.input(3) {
        Some(_) => lengths::<4>(emit, node, 3)?[2],
        None => 0,
    };
    let last = parts.input(emit, node, 5)?;
    let last = parts.reshape(last, &[signed(batch)?, 1])?;
    let one = parts.int(1)?;
    let keys = parts.plain("Add", &[last, one])?;
    let zero = parts.int(0)?;
    // The first call has no past, whatever its padding.
    let past = match longest == queries {
        true => parts.plain("Mul", &[keys, zero])?,
        false => {
            let new = parts.int(queries)?;
            let past = parts.plain("Sub", &[keys, new])?;
            parts.plain("Max", &[past, zero])?
        }
    };
    let counted = parts.counted(&[1, queries])?;
    let own = parts.plain("Add", &[past, counted])?;
    let total = longest.max(stored);
    let all = GroupedAttention { operator, stored, total, own, past, keys };
    if let Some(rotary) = &operator.rotary {
        let [_, pairs] = lengths::<2>(emit, node, 7)?;
        let positions = parts.optional(emit, node, 9)?.unwrap_or(own);
        let angles = looked_up(&mut parts, emit, node, 7, 8, positions)?;
        q = turned(&mut parts, q, angles, pairs, rotary.interleaved)?;
        k = turned(&mut parts, k, angles, pairs, rotary.interleaved)?;
    }
    let keys = parts.optional(emit, node, 3)?;
    let values = parts.optional(emit, node, 4)?;
    let k = all.appended(&mut parts, keys, k)?;
    let v = all.appended(&mut parts, values, v)?;
    let mut scoring = ContribScoring {
        scale: operator.scale,
        softcap: operator.softcap,
        ..ContribScoring::default()
    };
    scoring.biases.extend(score_bias(&mut parts, emit, node, 10, total)?);
    let hidden = hidden(emit);
    scoring.biases.push(all.mask(&mut parts, hidden)?);
    scoring.sink = match parts.optional(emit, node, 11)? {
        Some(sinks) => Some(parts.reshape(sinks, &[1, signed(heads)?, 1, 1])?),
        None if operator.smooth_softmax => Some(parts.floats(&[1, 1, 1, 1], vec![0.0])?),
        None => None,
    };
    let result = attend(&mut parts, q, k, v, &scoring)?;
    let result = together(&mut parts, result)?;
    written(parts, emit, node, &[result, k.value, v.value])
}
