//! Operators that take parts of a value, write parts of it, or put something around it.

use galatea_graph::{Dim, Fact, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, bounded, text};
use super::operation::LoweredOperation;
use super::shape::{needed, signed, table};
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("slice_by_index", slice_by_index),
    LoweringRow::since(8, "slice_update", slice_update),
    LoweringRow::new("slice_by_size", slice_by_size),
    LoweringRow::new("sliding_windows", sliding_windows),
    LoweringRow::new("reverse", reverse),
    LoweringRow::new("reverse_sequence", reverse_sequence),
    LoweringRow::new("pad", pad),
    LoweringRow::new("crop", crop),
];

/// The bounds of a slice, as values of INT64 with one element for each axis.
struct SliceBoundValues {
    starts: ValueId,
    ends: ValueId,
    steps: Vec<i64>,
    /// Axes that the result does not have.
    single: Vec<i64>,
}

/// Reads `begin`, `end`, `stride` and the masks of a slice of `x`.
fn bounds(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    x: ValueId,
) -> Result<SliceBoundValues> {
    let rank = low.rank(x)?;
    let steps = low.ints(op, "stride")?.unwrap_or_else(|| vec![1; rank]);
    let mut masks = |name| -> Result<Vec<bool>> {
        let found = low.flags(op, name)?.unwrap_or_else(|| vec![false; rank]);
        match found.len() == rank {
            true => Ok(found),
            false => Err(CoreMlError::invalid(format!(
                "input '{name}' has {} elements, x has {rank} axes",
                found.len()
            ))),
        }
    };
    let from_first = masks("begin_mask")?;
    let to_last = masks("end_mask")?;
    let single = masks("squeeze_mask")?;
    if steps.len() != rank || steps.contains(&0) {
        return Err(CoreMlError::invalid(format!("input 'stride' is {steps:?} for {rank} axes")));
    }
    let steps: Vec<i64> =
        steps.iter().zip(&single).map(|(&step, &single)| if single { 1 } else { step }).collect();
    let begin = low.required(op, "begin")?;
    let end = low.required(op, "end")?;
    let begin = low.cast(begin, DataType::Int64)?;
    let end = low.cast(end, DataType::Int64)?;
    // A slice that goes backwards starts at the last element, and ends before the first.
    let backwards = |step: i64| step < 0;
    let first: Vec<i64> =
        steps.iter().map(|&step| if backwards(step) { i64::MAX } else { 0 }).collect();
    let last: Vec<i64> =
        steps.iter().map(|&step| if backwards(step) { i64::MIN } else { i64::MAX }).collect();
    let starts = chosen(low, &from_first, &first, begin)?;
    let ends = chosen(low, &to_last, &last, end)?;
    let ends = match single.contains(&true) {
        true => behind(low, starts, ends, &single)?,
        false => ends,
    };
    let axes = single.iter().enumerate().filter(|(_, single)| **single);
    let single = axes.map(|(axis, _)| signed(axis)).collect();
    Ok(SliceBoundValues { starts, ends, steps, single })
}

/// The constants where a mask is set, else the elements of a value.
fn chosen(
    low: &mut ProgramLowering,
    mask: &[bool],
    constants: &[i64],
    other: ValueId,
) -> Result<ValueId> {
    if !mask.contains(&true) {
        return Ok(other);
    }
    let constants = low.integers(constants);
    if !mask.contains(&false) {
        return Ok(constants);
    }
    let mask = low.constant(galatea_tensor::Tensor::vector(mask.to_vec()));
    low.plain("Where", &[mask, constants, other])
}

/// The ends, but the place behind the start where only one element is taken: behind the last
/// element, at -1, that is the largest number.
fn behind(
    low: &mut ProgramLowering,
    starts: ValueId,
    ends: ValueId,
    single: &[bool],
) -> Result<ValueId> {
    let one = low.integers(&[1]);
    let last = low.integers(&[-1]);
    let next = low.plain("Add", &[starts, one])?;
    let at_last = low.plain("Equal", &[starts, last])?;
    let most = low.integers(&[i64::MAX]);
    let next = low.plain("Where", &[at_last, most, next])?;
    let mask = low.constant(galatea_tensor::Tensor::vector(single.to_vec()));
    low.plain("Where", &[mask, next, ends])
}

fn every_axis(low: &mut ProgramLowering, rank: usize) -> ValueId {
    let axes: Vec<i64> = (0..rank).map(signed).collect();
    low.integers(&axes)
}

fn slice_by_index(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let bounds = bounds(low, op, x)?;
    let rank = low.rank(x)?;
    let axes = every_axis(low, rank);
    let steps = low.integers(&bounds.steps);
    let mut result = low.plain("Slice", &[x, bounds.starts, bounds.ends, axes, steps])?;
    if !bounds.single.is_empty() {
        result = low.squeeze(result, &bounds.single)?;
    }
    low.give(op, &[result])
}

/// `x` with a slice of it overwritten: rows behind the last axis that is cut, each at its places along that
/// one and the axes before it. Nothing is as long as `x` but `x` itself.
fn slice_update(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let update = low.required(op, "update")?;
    let bounds = bounds(low, op, x)?;
    let update = match bounds.single.is_empty() {
        true => update,
        false => low.unsqueeze(update, &bounds.single)?,
    };
    let depth = cut_axes(low, &bounds, x).max(1).min(low.rank(x)?);
    if depth == 0 {
        return low.give(op, &[update]);
    }
    let each = (0..depth).map(|axis| places(low, &bounds, x, update, axis));
    let each = each.collect::<Result<Vec<ValueId>>>()?;
    let mut lengths = Vec::with_capacity(depth);
    for &places in &each {
        lengths.push(low.shape_of(places)?);
    }
    let along_first = attributes([("axis", 0_i64.into())]);
    let lengths = low.node("Concat", &along_first, &lengths)?;
    let mut grids = Vec::with_capacity(depth);
    for (axis, places) in each.into_iter().enumerate() {
        let others: Vec<i64> = (0..depth).filter(|&other| other != axis).map(signed).collect();
        let places = if others.is_empty() { places } else { low.unsqueeze(places, &others)? };
        let grid = low.plain("Expand", &[places, lengths])?;
        grids.push(low.unsqueeze(grid, &[signed(depth)])?);
    }
    let along_last = attributes([("axis", signed(depth).into())]);
    let grid = low.node("Concat", &along_last, &grids)?;
    let written = low.plain("ScatterND", &[x, grid, update])?;
    low.give(op, &[written])
}

/// The places along an axis that a slice has. How many they are is known where the update says so: then
/// they are counted from the first one on.
fn places(
    low: &mut ProgramLowering,
    bounds: &SliceBoundValues,
    x: ValueId,
    update: ValueId,
    axis: usize,
) -> Result<ValueId> {
    let zero = low.scalar(0_i64);
    let one = low.scalar(1_i64);
    let at = [signed(axis)];
    let start = low.slice(bounds.starts, &[0], &at, &[at[0] + 1])?;
    let end = low.slice(bounds.ends, &[0], &at, &[at[0] + 1])?;
    let step = bounds.steps.get(axis).copied().unwrap_or(1);
    let count = low.dims(update)?.get(axis).and_then(Dim::known);
    let known = low.fact(start)?.value.is_some() && low.fact(end)?.value.is_some();
    if let Some(count) = count.filter(|_| !known && step > 0) {
        let count = i64::try_from(bounded(&[count])?).unwrap_or(i64::MAX);
        let steps: Vec<i64> = (0..count).map(|at| at.saturating_mul(step)).collect();
        let steps = low.integers(&steps);
        return low.plain("Add", &[start, steps]);
    }
    let shape = low.shape_of(x)?;
    let len = low.slice(shape, &[0], &at, &[at[0] + 1])?;
    let len = low.squeeze(len, &[0])?;
    let all = low.plain("Range", &[zero, len, one])?;
    let first = low.integers(&[0]);
    let step = low.integers(&[step]);
    low.plain("Slice", &[all, start, end, first, step])
}

/// Returns the number of axes up to the last one that a slice cuts, as far as is known before a
/// run.
fn cut_axes(low: &ProgramLowering, bounds: &SliceBoundValues, x: ValueId) -> usize {
    let Ok(dims) = low.dims(x) else { return 0 };
    let numbers = |id| low.fact(id).ok().and_then(Fact::lengths);
    let starts = numbers(bounds.starts);
    let ends = numbers(bounds.ends);
    let at = |all: &Option<Vec<Dim>>, axis: usize| all.as_ref()?.get(axis)?.known();
    let whole = |axis: usize| {
        let to_last = at(&ends, axis).is_some_and(|end| {
            let len = dims.get(axis).and_then(Dim::known);
            len.is_some_and(|len| end >= len) || signed(end) == i64::MAX
        });
        at(&starts, axis) == Some(0) && to_last && bounds.steps.get(axis) == Some(&1)
    };
    (0..dims.len()).rev().find(|&axis| !whole(axis)).map_or(0, |axis| axis + 1)
}

/// From `begin` on, as many elements as `size` says; -1 is all that are left.
fn slice_by_size(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let begin = low.required(op, "begin")?;
    let size = low.required(op, "size")?;
    let begin = low.cast(begin, DataType::Int64)?;
    let size = low.cast(size, DataType::Int64)?;
    let end = low.plain("Add", &[begin, size])?;
    // A slice that starts at -2 and has two elements ends at the last one.
    let zero = low.integers(&[0]);
    let most = low.integers(&[i64::MAX]);
    let counts_from_end = low.plain("Less", &[begin, zero])?;
    let reaches = low.plain("GreaterOrEqual", &[end, zero])?;
    let past = low.plain("And", &[counts_from_end, reaches])?;
    let rest = low.plain("Less", &[size, zero])?;
    let open = low.plain("Or", &[past, rest])?;
    let end = low.plain("Where", &[open, most, end])?;
    let rank = low.rank(x)?;
    let axes = every_axis(low, rank);
    let result = low.plain("Slice", &[x, begin, end, axes])?;
    low.give(op, &[result])
}

/// Windows of an axis, one after the other along a new axis before it.
fn sliding_windows(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let rank = low.rank(x)?;
    let axis = low.int(op, "axis")?.unwrap_or(-1);
    let axis = low.axis(axis, rank)?;
    let size = low.int(op, "size")?;
    let size = size.and_then(|size| usize::try_from(size).ok()).filter(|&size| size > 0);
    let size = size.ok_or_else(|| CoreMlError::invalid("input 'size' must be 1 or more"))?;
    let step = low.int(op, "stride")?.unwrap_or(1);
    let step = usize::try_from(step).ok().filter(|&step| step > 0);
    let step = step.ok_or_else(|| CoreMlError::invalid("input 'stride' must be 1 or more"))?;
    let len = low.known_len(x, axis)?;
    let Some(room) = len.checked_sub(size) else {
        let text = format!("windows of {size} on an axis of length {len}");
        return Err(CoreMlError::invalid(text));
    };
    let count = room / step + 1;
    let place = |index: usize| signed((index / size) * step + index % size);
    let all = bounded(&[count, size])?;
    let places = table(low, &[count, size], (0..all).map(place).collect())?;
    let named = attributes([("axis", signed(axis).into())]);
    let result = low.node("Gather", &named, &[x, places])?;
    low.give(op, &[result])
}

fn reverse(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let rank = low.rank(x)?;
    let axes = low.ints(op, "axes")?.unwrap_or_else(|| (0..rank).map(signed).collect());
    let count = axes.len();
    let starts = low.integers(&vec![-1; count]);
    let ends = low.integers(&vec![i64::MIN; count]);
    let axes = low.integers(&axes);
    let steps = low.integers(&vec![-1; count]);
    let result = low.plain("Slice", &[x, starts, ends, axes, steps])?;
    low.give(op, &[result])
}

/// The first elements of each row in reverse, as many as `lengths` says.
fn reverse_sequence(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let lengths = low.required(op, "lengths")?;
    let lengths = low.cast(lengths, DataType::Int64)?;
    let rank = low.rank(x)?;
    let seq = low.int(op, "seq_axis")?.unwrap_or(0);
    let seq = low.axis(seq, rank)?;
    let batch = low.int(op, "batch_axis")?.unwrap_or(0);
    let batch = low.axis(batch, rank)?;
    if seq == batch {
        return Err(CoreMlError::invalid(format!("seq_axis and batch_axis are both {seq}")));
    }
    // ONNX's operator has the batch first and the sequence second.
    let mut order = vec![batch, seq];
    order.extend((0..rank).filter(|axis| *axis != batch && *axis != seq));
    let mut back = vec![0; rank];
    for (to, &from) in order.iter().enumerate() {
        if let Some(slot) = back.get_mut(from) {
            *slot = to;
        }
    }
    let turned = low.transpose(x, &order)?;
    let named = attributes([("batch_axis", 0_i64.into()), ("time_axis", 1_i64.into())]);
    let turned = low.node("ReverseSequence", &named, &[turned, lengths])?;
    let result = low.transpose(turned, &back)?;
    low.give(op, &[result])
}

/// Around the last axes: amounts in front of and behind each.
fn pad(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let rank = low.rank(x)?;
    let dtype = low.dtype(x)?;
    let mode = low.choice(op, "mode", &["constant", "reflect", "replicate"])?;
    let mode = ["constant", "reflect", "edge"].get(mode).copied().unwrap_or("constant");
    let value = low.float(op, "constant_val")?.unwrap_or(0.0);
    let amounts = low.required(op, "pad")?;
    let amounts = low.cast(amounts, DataType::Int64)?;
    let count = low.known_len(amounts, 0)?;
    if count == 0 && rank == 0 {
        return low.give(op, &[x]);
    }
    if !count.is_multiple_of(2) || count / 2 > rank || count == 0 {
        let text = format!("input 'pad' has {count} elements, x has {rank} axes");
        return Err(CoreMlError::invalid(text));
    }
    // ONNX's operator has all amounts in front, then all behind.
    let pairs = low.reshape(amounts, &[-1, 2])?;
    let halves = low.transpose(pairs, &[1, 0])?;
    let amounts = low.reshape(halves, &[-1])?;
    let axes: Vec<i64> = (rank - count / 2..rank).map(signed).collect();
    let axes = low.integers(&axes);
    let value = low.number(value, dtype)?;
    let named = attributes([("mode", text(mode))]);
    let result = low.node("Pad", &named, &[x, amounts, value, axes])?;
    low.give(op, &[result])
}

/// Without so many rows and columns at each side.
fn crop(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let rank = signed(low.rank(x)?);
    let rows = needed(low, op, "crop_height")?;
    let columns = needed(low, op, "crop_width")?;
    let (&[top, bottom], &[left, right]) = (rows.as_slice(), columns.as_slice()) else {
        let text = format!("crop_height is {rows:?} and crop_width {columns:?}, expected two each");
        return Err(CoreMlError::invalid(text));
    };
    let end = |amount: i64| if amount == 0 { i64::MAX } else { -amount };
    let axes = [rank - 2, rank - 1];
    let result = low.slice(x, &axes, &[top, left], &[end(bottom), end(right)])?;
    low.give(op, &[result])
}
