//! Operators that take parts of a value.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::shape::{CenterCropPad, ReverseSequence, Slice, Trilu};
use galatea_graph::{Fact, Node};

use super::EmitRow;
use super::pad::{with_zeros, zero_of};
use crate::emit::ProgramEmitter;
use crate::lengths::{LengthElement, SliceTake};
use crate::unwritable::{Result, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Slice", slice),
    EmitRow::onnx("CenterCropPad", center_crop_pad),
    EmitRow::onnx("ReverseSequence", reverse_sequence),
    EmitRow::onnx("Trilu", trilu),
];

/// A bound of a slice: a number, or an element of an input that is known in a run only.
#[derive(Clone, Debug)]
enum SliceBound {
    Known(i64),
    Found(MilVar),
}

/// Range that is taken from an axis.
#[derive(Clone, Debug)]
struct AxisRange {
    axis: usize,
    start: SliceBound,
    end: SliceBound,
    step: i64,
}

/// A bound as programs have it: beyond 32 bits there is nothing.
fn near(value: i64) -> LengthElement {
    let limited = value.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX));
    LengthElement::Known(i32::try_from(limited).unwrap_or(i32::MAX))
}

impl SliceBound {
    fn part(self) -> LengthElement {
        match self {
            Self::Known(value) => near(value),
            Self::Found(var) => LengthElement::Found(var),
        }
    }
}

/// The bounds that an input holds.
fn bounds_of(emit: &mut ProgramEmitter<'_>, node: &Node, at: usize) -> Result<Vec<SliceBound>> {
    if let Ok(all) = emit.integers(node, at) {
        return Ok(all.into_iter().map(SliceBound::Known).collect());
    }
    let id = emit.input(node, at)?;
    let fact = emit.fact(id)?;
    let Some(count) = fact.known_shape().and_then(|shape| shape.first().copied()) else {
        return refuse(format!("the number of elements of input {at} is known in a run only"));
    };
    let known = Fact::lengths(fact);
    let vector = emit.var(node, at)?;
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let number = known.as_ref().and_then(|all| all.get(index)?.known());
        all.push(match number.and_then(|number| i64::try_from(number).ok()) {
            Some(number) => SliceBound::Known(number),
            None => SliceBound::Found(emit.element(&vector, index)?),
        });
    }
    Ok(all)
}

fn ranges(emit: &mut ProgramEmitter<'_>, node: &Node, rank: usize) -> Result<Vec<AxisRange>> {
    let Some(operator) = node.operator::<Slice>() else { return refuse("another kind") };
    let known = |all: &[i64]| all.iter().copied().map(SliceBound::Known).collect::<Vec<_>>();
    let (starts, ends, axes, steps) = match &operator.ranges {
        Some(all) => (known(&all.starts), known(&all.ends), all.axes.clone(), None),
        None => {
            let list = |at: usize| node.input(at).map(|_| emit.integers(node, at)).transpose();
            let axes = list(3)?;
            let steps = list(4)?;
            (bounds_of(emit, node, 1)?, bounds_of(emit, node, 2)?, axes, steps)
        }
    };
    let first: Vec<i64> = (0..).take(starts.len()).collect();
    let axes = axes.unwrap_or(first);
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    let bounds = starts.into_iter().zip(ends).zip(axes.into_iter().zip(steps));
    let range = |((start, end), (axis, step))| -> Result<AxisRange> {
        Ok(AxisRange { axis: emit.axis(axis, rank)?, start, end, step })
    };
    bounds.map(range).collect()
}

/// First position and number of positions that a slice takes of an axis of length `len`.
pub(crate) fn resolved(len: i64, start: i64, end: i64, step: i64) -> (i64, i64) {
    let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let start = from_end(start);
    let end = from_end(end);
    let (start, span) = match step > 0 {
        true => {
            let start = start.clamp(0, len);
            (start, end.clamp(0, len) - start)
        }
        false => {
            let start = start.clamp(0, len - 1);
            (start, start - end.clamp(-1, len - 1))
        }
    };
    let step = step.saturating_abs();
    (start, span.max(0) / step + i64::from(span.max(0) % step != 0))
}

/// Axes that run backwards are reversed, and then cut forwards.
fn slice(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let id = emit.input(node, 0)?;
    let dims = emit.dims(id)?;
    let ranges = ranges(emit, node, dims.len())?;
    let mut cut = SliceTake::whole(dims.len());
    let mut reversed = Vec::new();
    let mut cuts = false;
    for AxisRange { axis, start, end, step } in ranges {
        let Some(stride) = i32::try_from(step).ok().filter(|&step| step != 0) else {
            return refuse(format!("a step of {step}"));
        };
        let len = dims[axis].known().and_then(|len| i64::try_from(len).ok());
        let (begin, end) = match (start, end, len) {
            (SliceBound::Known(start), SliceBound::Known(end), Some(len)) => {
                let (first, count) = resolved(len, start, end, step);
                if (first, count, step) == (0, len, 1) {
                    continue;
                }
                let first = if step < 0 { len - 1 - first } else { first };
                let last = first + (count - 1).saturating_mul(step.saturating_abs());
                (near(first), (count > 0 && last + 1 < len).then(|| near(last + 1)))
            }
            (SliceBound::Known(start), SliceBound::Known(end), None) if step < 0 => {
                let whole =
                    (start == -1 || start >= i64::from(i32::MAX)) && end <= i64::from(i32::MIN) + 1;
                if !whole {
                    return refuse("a part backwards of an axis whose length only a run knows");
                }
                (LengthElement::Known(0), None)
            }
            (start, end, _) if step > 0 => {
                let open = matches!(end, SliceBound::Known(end) if end >= i64::from(i32::MAX));
                (start.part(), (!open).then(|| end.part()))
            }
            _ => return refuse("bounds backwards that are known in a run only"),
        };
        if step < 0 {
            reversed.push(small(axis)?);
        }
        let nothing =
            matches!((&begin, &end), (LengthElement::Known(0), None)) && stride.abs() == 1;
        cuts |= !nothing;
        cut.begin[axis] = begin;
        cut.to_last[axis] = end.is_none();
        cut.end[axis] = end.unwrap_or(LengthElement::Known(0));
        cut.stride[axis] = stride.abs();
    }
    let mut x = emit.var(node, 0)?;
    if !reversed.is_empty() {
        x = emit.op("reverse", vec![("x", MilArg::Var(x)), ("axes", MilArg::Ints(reversed))])?;
    }
    Ok(vec![if cuts { emit.cut(&x, cut)? } else { x }])
}

/// Cut around the middle, or with zeros around; of what is odd, more at the end.
fn center_crop_pad(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<CenterCropPad>() else { return refuse("another kind") };
    let id = emit.input(node, 0)?;
    let from = emit.shape(id)?;
    let to = emit.output_shape(node)?;
    if operator.axes.as_ref().is_some_and(|axes| axes.len() > from.len()) {
        return refuse("more axes than there are");
    }
    let mut cut = SliceTake::whole(from.len());
    let mut pairs = Vec::new();
    let mut cuts = false;
    for (axis, (&from, &to)) in from.iter().zip(&to).enumerate() {
        let before = from.saturating_sub(to) / 2;
        if to < from {
            cut = cut.range(axis, before, before + to)?;
            cuts = true;
        }
        let room = to.saturating_sub(from);
        let front = to.saturating_sub(from) / 2;
        pairs.push((front, room - front));
    }
    let mut x = emit.var(node, 0)?;
    if cuts {
        x = emit.cut(&x, cut)?;
    }
    Ok(vec![with_zeros(emit, &x, &pairs)?])
}

fn reverse_sequence(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ReverseSequence>() else { return refuse("another kind") };
    let time = small(operator.time_axis)?;
    let batch = small(operator.batch_axis)?;
    let x = emit.var(node, 0)?;
    let lengths = emit.var(node, 1)?;
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("lengths", MilArg::Var(lengths)),
        ("seq_axis", MilArg::Int(time)),
        ("batch_axis", MilArg::Int(batch)),
    ];
    Ok(vec![emit.op("reverse_sequence", inputs)?])
}

/// A band from the diagonal on; triangles that do not have the diagonal are chosen by a table.
fn trilu(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Trilu>() else { return refuse("another kind") };
    let upper = operator.upper;
    let diagonal = match node.input(1) {
        Some(_) => emit.integers(node, 1)?.first().copied().unwrap_or(0),
        None => 0,
    };
    let dims = emit.dims(emit.input(node, 0)?)?;
    let x = emit.var(node, 0)?;
    let reach = if upper { diagonal.saturating_neg() } else { diagonal };
    if let Ok(reach @ 0..) = i32::try_from(reach.min(i64::from(i32::MAX))) {
        let (below, above) = if upper { (reach, -1) } else { (-1, reach) };
        let inputs = vec![
            ("x", MilArg::Var(x)),
            ("lower", MilArg::Int(below)),
            ("upper", MilArg::Int(above)),
        ];
        return Ok(vec![emit.op("band_part", inputs)?]);
    }
    let [.., rows, columns] = dims.as_slice() else { return refuse("fewer than two axes") };
    let Some((rows, columns)) = rows.known().zip(columns.known()) else {
        return refuse("a triangle beside the diagonal of axes whose lengths only a run knows");
    };
    let kept = |at: usize| {
        let signed = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let above = signed(at % columns) - signed(at / columns);
        i32::from(if upper { above >= diagonal } else { above <= diagonal })
    };
    let table = emit.table(&[rows, columns], (0..rows * columns).map(kept).collect())?;
    let kept = emit.cast(&table, MilElement::Bool)?;
    let zero = zero_of(emit, &x)?;
    Ok(vec![emit.select(&kept, MilArg::Var(x), zero)?])
}
