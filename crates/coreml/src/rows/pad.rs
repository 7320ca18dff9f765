//! `Pad`.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::shape::{Pad, PadMode};
use galatea_graph::{Dim, Node};

use super::EmitRow;
use super::take::{looked_up, part_of};
use crate::emit::ProgramEmitter;
use crate::lengths::{LengthElement, SliceTake};
use crate::unwritable::{Result, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] = &[EmitRow::onnx("Pad", pad)];

/// Amounts in front of and behind each axis; negative ones cut.
fn amounts(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &Pad,
    rank: usize,
) -> Result<Vec<(i64, i64)>> {
    let pads = match &operator.pads {
        Some(pads) => pads.clone(),
        None => emit.integers(node, 1)?,
    };
    let axes = match node.input(3) {
        Some(_) => emit.integers(node, 3)?,
        None => (0..).take(rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return refuse(format!("{} pads for {} axes", pads.len(), axes.len()));
    }
    let mut pairs = vec![(0, 0); rank];
    for (at, &axis) in axes.iter().enumerate() {
        pairs[emit.axis(axis, rank)?] = (pads[at], pads[at + axes.len()]);
    }
    Ok(pairs)
}

fn pad(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Pad>() else { return refuse("another kind") };
    let mode = operator.mode;
    let mut dims = emit.dims(emit.input(node, 0)?)?;
    let pairs = amounts(emit, node, operator, dims.len())?;
    let mut x = emit.var(node, 0)?;
    // What is cut is cut first.
    let mut cut = SliceTake::whole(dims.len());
    let mut cuts = false;
    for (axis, &(begin, end)) in pairs.iter().enumerate() {
        if begin.min(end) >= 0 {
            continue;
        }
        let Some(len) = dims[axis].known() else {
            return refuse("a cut of an axis whose length only a run knows");
        };
        let amount = |pad: i64| usize::try_from(pad.saturating_neg()).unwrap_or(0);
        let first = amount(begin);
        let last = len.saturating_sub(amount(end));
        cut = cut.range(axis, first, last)?;
        dims[axis] = Dim::Known(last.saturating_sub(first));
        cuts = true;
    }
    if cuts {
        x = emit.cut(&x, cut)?;
    }
    let amount = |pad: i64| usize::try_from(pad).unwrap_or(0);
    let pairs: Vec<(usize, usize)> =
        pairs.into_iter().map(|(begin, end)| (amount(begin), amount(end))).collect();
    let result = match mode {
        PadMode::Constant => {
            let value = value(emit, node, operator.value, &x)?;
            constant(emit, &x, &dims, &pairs, value)?
        }
        _ => from_itself(emit, &x, &dims, &pairs, mode)?,
    };
    Ok(vec![result])
}

/// Returns the value that fills the frame.
fn value(emit: &mut ProgramEmitter<'_>, node: &Node, attribute: f32, x: &MilVar) -> Result<MilArg> {
    let given = match node.input(2) {
        Some(id) if emit.fact(id)?.known_shape().is_none_or(|shape| !shape.contains(&0)) => {
            emit.number(node, 2)?
        }
        _ => attribute,
    };
    #[allow(clippy::cast_possible_truncation, reason = "an integer that passed through a float")]
    Ok(match emit.element_of(x)? {
        MilElement::Int32 if given.abs() < 16_777_216.0 => MilArg::Int(given as i32),
        MilElement::Int32 => return refuse(format!("a frame of {given}")),
        MilElement::Bool => MilArg::Bool(given != 0.0),
        _ => emit.float(given),
    })
}

/// The amounts as the operator takes them: pairs of the last axes.
fn pairs_of(pairs: &[(usize, usize)]) -> Result<MilArg> {
    let first = pairs.iter().position(|pair| *pair != (0, 0)).unwrap_or(0);
    let all = pairs.iter().skip(first).flat_map(|&(begin, end)| [begin, end]);
    Ok(MilArg::Ints(small_all(&all.collect::<Vec<usize>>())?))
}

fn padded(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    pairs: &[(usize, usize)],
    mode: &'static str,
    value: MilArg,
) -> Result<MilVar> {
    let inputs = vec![
        ("x", x.into()),
        ("pad", pairs_of(pairs)?),
        ("mode", MilArg::Text(mode)),
        ("constant_val", value),
    ];
    emit.op("pad", inputs)
}

/// Floats have an operator; values of other types get constants at their sides.
fn constant(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    dims: &[Dim],
    pairs: &[(usize, usize)],
    value: MilArg,
) -> Result<MilVar> {
    if pairs.iter().all(|pair| *pair == (0, 0)) {
        return Ok(x.clone());
    }
    if matches!(emit.element_of(x)?, MilElement::Fp16 | MilElement::Fp32) {
        return padded(emit, x, pairs, "constant", value);
    }
    let mut x = x.clone();
    let mut dims = dims.to_vec();
    for (axis, &(begin, end)) in pairs.iter().enumerate() {
        let mut parts = Vec::with_capacity(3);
        for (amount, before) in [(begin, true), (end, false)] {
            if !before {
                parts.push(x.clone());
            }
            if amount == 0 {
                continue;
            }
            let mut shape = Vec::with_capacity(dims.len());
            for (at, dim) in dims.iter().enumerate() {
                shape.push(match at == axis {
                    true => LengthElement::Known(small(amount)?),
                    false => emit.length(&x, at, dim)?,
                });
            }
            let shape = emit.vector(shape)?;
            parts.push(emit.fill(shape, value.clone())?);
        }
        x = emit.concat(parts, axis)?;
        dims[axis] = dims[axis].known().map_or(Dim::Unknown, |len| Dim::Known(len + begin + end));
    }
    Ok(x)
}

/// Zero in the type of a value.
pub(super) fn zero_of(emit: &mut ProgramEmitter<'_>, x: &MilVar) -> Result<MilArg> {
    Ok(match emit.element_of(x)? {
        MilElement::Int32 => MilArg::Int(0),
        MilElement::Bool => MilArg::Bool(false),
        element => MilArg::Float(element, 0.0),
    })
}

/// Zeros around a value.
pub(super) fn with_zeros(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    pairs: &[(usize, usize)],
) -> Result<MilVar> {
    let zero = zero_of(emit, x)?;
    let dims: Vec<Dim> = emit.shape_of(x)?.into_iter().map(Dim::Known).collect();
    constant(emit, x, &dims, pairs, zero)
}

/// A frame of the value's own elements. The operator mirrors an axis once at most and repeats an edge
/// no more often than the axis is long; the rest is looked up.
fn from_itself(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    dims: &[Dim],
    pairs: &[(usize, usize)],
    mode: PadMode,
) -> Result<MilVar> {
    if pairs.iter().all(|pair| *pair == (0, 0)) {
        return Ok(x.clone());
    }
    let word = match mode {
        PadMode::Reflect => Some("reflect"),
        PadMode::Edge => Some("replicate"),
        PadMode::Constant | PadMode::Wrap => None,
    };
    let fits = dims.iter().zip(pairs).all(|(dim, &(begin, end))| {
        let most = begin.max(end) + usize::from(mode == PadMode::Reflect);
        begin.max(end) == 0 || dim.known().is_none_or(|len| most <= len)
    });
    let is_float = matches!(emit.element_of(x)?, MilElement::Fp16 | MilElement::Fp32);
    if let (Some(word), true, true) = (word, fits, is_float) {
        let zero = emit.float(0.0);
        return padded(emit, x, pairs, word, zero);
    }
    let mut x = x.clone();
    for (axis, &(begin, end)) in pairs.iter().enumerate() {
        if (begin, end) == (0, 0) {
            continue;
        }
        x = match (mode, dims[axis].known()) {
            (_, Some(len)) => looked_up(emit, &x, axis, &sources(len, begin, end, mode))?,
            (PadMode::Edge, None) => edged(emit, &x, dims.len(), axis, begin, end)?,
            _ => return refuse("a frame of an axis whose length only a run knows"),
        };
    }
    Ok(x)
}

/// The place of each element of an axis of length `len` with its frame.
fn sources(len: usize, begin: usize, end: usize, mode: PadMode) -> Vec<usize> {
    let signed = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let count = signed(len);
    let last = signed(len) - 1;
    let place = |at: usize| {
        let from = signed(at) - signed(begin);
        let inside = match mode {
            PadMode::Wrap => from.rem_euclid(count.max(1)),
            PadMode::Reflect if last > 0 => {
                let folded = from.rem_euclid(2 * last);
                folded.min(2 * last - folded)
            }
            _ => from.clamp(0, last.max(0)),
        };
        usize::try_from(inside).unwrap_or(0)
    };
    (0..len + begin + end).map(place).collect()
}

/// The first and last elements of an axis again and again.
fn edged(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    rank: usize,
    axis: usize,
    begin: usize,
    end: usize,
) -> Result<MilVar> {
    let repeated = |emit: &mut ProgramEmitter<'_>, edge: MilVar, count: usize| -> Result<MilVar> {
        let mut repeats = vec![1; rank];
        repeats[axis] = small(count)?;
        emit.op("tile", vec![("x", MilArg::Var(edge)), ("reps", MilArg::Ints(repeats))])
    };
    let mut parts = Vec::with_capacity(3);
    if begin > 0 {
        let first = part_of(emit, x, rank, axis, 0, 1)?;
        parts.push(repeated(emit, first, begin)?);
    }
    parts.push(x.clone());
    if end > 0 {
        let mut cut = SliceTake::whole(rank);
        cut.begin[axis] = LengthElement::Known(-1);
        let last = emit.cut(x, cut)?;
        parts.push(repeated(emit, last, end)?);
    }
    emit.concat(parts, axis)
}
