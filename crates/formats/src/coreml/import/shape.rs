//! Operators that change shapes, and those that put values together or take them apart.

use galatea_graph::{Dim, Fact, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::MilValue;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("reshape", reshape),
    LoweringRow::since(6, "reshape_like", reshape_like),
    LoweringRow::new("transpose", transpose),
    LoweringRow::new("squeeze", squeeze),
    LoweringRow::new("expand_dims", expand_dims),
    LoweringRow::new("concat", concat),
    LoweringRow::new("stack", stack),
    LoweringRow::new("split", split),
    LoweringRow::new("flatten2d", flatten2d),
    LoweringRow::new("tile", tile),
    LoweringRow::new("shape", shape),
    LoweringRow::new("depth_to_space", |low, op| depth_to_space(low, op, "block_size", "DCR")),
    LoweringRow::new("pixel_shuffle", |low, op| depth_to_space(low, op, "upscale_factor", "CRD")),
    LoweringRow::new("space_to_depth", space_to_depth),
    LoweringRow::since(6, "pixel_unshuffle", pixel_unshuffle),
    LoweringRow::new("space_to_batch", space_to_batch),
    LoweringRow::new("batch_to_space", batch_to_space),
];

/// The constant integers of an input that must be there.
pub(super) fn needed(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<Vec<i64>> {
    low.ints(op, name)?.ok_or_else(|| CoreMlError::invalid(format!("input '{name}' is missing")))
}

/// A length as a number with a sign.
pub(super) fn signed(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// A length of 0 is the one that is there: before CoreML7 where as many lengths are given as `x` has
/// axes; from then on lengths and axes are counted from the last, and 1 stands where there is none.
fn reshape(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let target = low.required(op, "shape")?;
    let mut target = low.cast(target, DataType::Int64)?;
    let rank = low.rank(x)?;
    let count = low.known_len(target, 0);
    let keeps = may_have_zero(low.fact(target)?);
    if let Some(count) = count.ok().filter(|&count| op.opset >= 7 && keeps && count != rank) {
        let first = signed(rank.saturating_sub(count));
        let kept = low.node("Shape", &attributes([("start", first.into())]), &[x])?;
        let ones = low.integers(&vec![1; count.saturating_sub(rank)]);
        let kept = low.node("Concat", &attributes([("axis", 0_i64.into())]), &[ones, kept])?;
        let zero = low.integers(&[0]);
        let keeps = low.plain("Equal", &[target, zero])?;
        target = low.plain("Where", &[keeps, kept, target])?;
    }
    let result = low.plain("Reshape", &[x, target])?;
    low.give(op, &[result])
}

/// Returns whether integers may be 0 as far as is known before a run. A length that the value took from
/// an axis is none: nobody reshapes what is empty by its own lengths.
fn may_have_zero(fact: &Fact) -> bool {
    match (fact.integers(), &fact.elements) {
        (Some(all), _) => all.contains(&0),
        (None, Some(all)) => all.iter().any(|dim| matches!(dim, Dim::Known(0) | Dim::Unknown)),
        (None, None) => true,
    }
}

/// The numbers of constants that an input is bound to, one or several.
fn each(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<Vec<i64>> {
    let all = low.constants(op, name)?;
    let all = all.ok_or_else(|| CoreMlError::invalid(format!("input '{name}' is missing")))?;
    let mut numbers = Vec::new();
    for value in all {
        match &*value {
            // Truth values count as 0 and 1.
            MilValue::Tensor(_, tensor) => {
                numbers.extend(galatea_graph::converted(tensor, DataType::Int64)?.to_i64_vec()?);
            }
            other => {
                let text = format!("input '{name}' is {}, expected integers", other.describe());
                return Err(CoreMlError::invalid(text));
            }
        }
    }
    Ok(numbers)
}

/// The axes `begins[i]..ends[i]` of `x` take the lengths that as many axes of the `i`-th reference
/// have; masks stand for the first axis and for the number of axes.
fn reshape_like(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let references = low.several(op, "ref_tensors")?;
    let begins = each(low, op, "begins")?;
    let ends = each(low, op, "ends")?;
    let end_masks = each(low, op, "end_masks")?;
    if begins.len() != references.len() || ends.len() != references.len() {
        let text = format!("{} references with {begins:?} to {ends:?}", references.len());
        return Err(CoreMlError::invalid(text));
    }
    let mut lengths = Vec::new();
    for (index, reference) in references.into_iter().enumerate() {
        let rank = low.rank(reference)?;
        let at = |all: &[i64]| all.get(index).copied().unwrap_or(0);
        let begin = low.axis(at(&begins), rank)?;
        let end = match end_masks.get(index) {
            Some(1) => rank,
            _ => match at(&ends) {
                end if end < 0 => low.axis(end, rank)?,
                end => usize::try_from(end).unwrap_or(usize::MAX).min(rank),
            },
        };
        let named =
            attributes([("start", signed(begin).into()), ("end", signed(end.max(begin)).into())]);
        lengths.push(low.node("Shape", &named, &[reference])?);
    }
    let target = low.node("Concat", &attributes([("axis", 0_i64.into())]), &lengths)?;
    let result = low.node("Reshape", &attributes([("allowzero", 1_i64.into())]), &[x, target])?;
    low.give(op, &[result])
}

fn transpose(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let rank = low.rank(x)?;
    let order = needed(low, op, "perm")?;
    let order: Vec<usize> =
        order.iter().map(|&axis| low.axis(axis, rank)).collect::<Result<_>>()?;
    let result = low.transpose(x, &order)?;
    low.give(op, &[result])
}

/// Without axes of length 1; axes that are longer stay. One whose length is not known before a run
/// counts as longer, unless the program says that it goes.
fn squeeze(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dims = low.dims(x)?;
    let named = low.ints(op, "axes")?;
    let all = named.clone().unwrap_or_else(|| (0..dims.len()).map(signed).collect());
    let all = all.iter().map(|&axis| low.axis(axis, dims.len())).collect::<Result<Vec<_>>>()?;
    let stated = op.outputs().first().and_then(|(_, stated)| stated.as_tensor()?.shape.as_ref());
    let fits = stated.is_some_and(|left| left.len() + all.len() == dims.len());
    // A program that is being written says by its axes alone which ones go.
    let every = named.is_some() && (fits || low.given.is_some());
    let goes = |axis: &usize| match dims.get(*axis).and_then(Dim::known) {
        Some(len) => len == 1,
        None => every,
    };
    let axes: Vec<i64> = all.into_iter().filter(goes).map(signed).collect();
    let result = if axes.is_empty() { x } else { low.squeeze(x, &axes)? };
    low.give(op, &[result])
}

fn expand_dims(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let axes = needed(low, op, "axes")?;
    let result = low.unsqueeze(x, &axes)?;
    low.give(op, &[result])
}

fn axis_of(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<i64> {
    low.int(op, "axis")?.ok_or_else(|| CoreMlError::invalid("input 'axis' is missing"))
}

/// Side by side, or with `interleave` the first elements of all, then the second ones.
fn concat(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let values = low.several(op, "values")?;
    let values = scalars_as_vectors(low, values)?;
    let axis = axis_of(low, op)?;
    let interleave = low.flag(op, "interleave", false)?;
    let Some(&first) = values.first() else {
        return Err(CoreMlError::invalid("input 'values' has no values"));
    };
    let rank = low.rank(first)?;
    let at = signed(low.axis(axis, rank)?);
    let result = match interleave {
        false => low.node("Concat", &attributes([("axis", at.into())]), &values)?,
        true => {
            let stacked = stacked(low, &values, at + 1)?;
            // The new axis lies behind the one that they are interleaved on.
            let shape = low.shape_of(first)?;
            let front = low.slice(shape, &[0], &[0], &[at])?;
            let behind = low.slice(shape, &[0], &[at + 1], &[i64::MAX])?;
            let rest = low.integers(&[-1]);
            let named = attributes([("axis", 0_i64.into())]);
            let target = low.node("Concat", &named, &[front, rest, behind])?;
            low.plain("Reshape", &[stacked, target])?
        }
    };
    low.give(op, &[result])
}

/// Gives values without axes one of length 1. coremltools joins single lengths so for shapes, repeats and bounds of
/// models with open lengths, although the operation's documentation asks for a rank of at least 1.
fn scalars_as_vectors(low: &mut ProgramLowering, values: Vec<ValueId>) -> Result<Vec<ValueId>> {
    values.into_iter().map(|value| low.with_axis(value).map(|(value, _)| value)).collect()
}

/// Values along a new axis.
pub(super) fn stacked(low: &mut ProgramLowering, values: &[ValueId], axis: i64) -> Result<ValueId> {
    let values = values.iter().map(|&value| low.unsqueeze(value, &[axis]));
    let values = values.collect::<Result<Vec<_>>>()?;
    low.node("Concat", &attributes([("axis", axis.into())]), &values)
}

fn stack(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let values = low.several(op, "values")?;
    let axis = axis_of(low, op)?;
    let result = stacked(low, &values, axis)?;
    low.give(op, &[result])
}

fn split(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let axis = axis_of(low, op)?;
    let sizes = low.ints(op, "split_sizes")?;
    let count = low.int(op, "num_splits")?;
    let parts = match (&sizes, count) {
        (Some(sizes), _) => sizes.len(),
        (None, Some(count)) => usize::try_from(count).unwrap_or(0),
        (None, None) => {
            return Err(CoreMlError::invalid("there is neither 'num_splits' nor 'split_sizes'"));
        }
    };
    if parts == 0 || parts != op.outputs().len() {
        let text = format!("{parts} parts, the operation has {} outputs", op.outputs().len());
        return Err(CoreMlError::invalid(text));
    }
    let mut named = attributes([("axis", axis.into())]);
    let sizes = sizes.map(|sizes| low.integers(&sizes));
    if sizes.is_none() {
        let at = low.axis(axis, low.rank(x)?)?;
        let len = low.dims(x)?.get(at).and_then(Dim::known);
        if let Some(len) = len.filter(|len| !len.is_multiple_of(parts)) {
            let text = format!("axis {axis} of length {len} has no {parts} equal parts");
            return Err(CoreMlError::invalid(text));
        }
        named.insert("num_outputs".to_owned(), signed(parts).into());
    }
    let results = low.node_of((ONNX_DOMAIN, "Split"), &named, &[Some(x), sizes], parts)?;
    low.give(op, &results)
}

fn flatten2d(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let axis = low.int(op, "axis")?.unwrap_or(1);
    let result = low.node("Flatten", &attributes([("axis", axis.into())]), &[x])?;
    low.give(op, &[result])
}

fn tile(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let repeats = low.required(op, "reps")?;
    let repeats = low.cast(repeats, DataType::Int64)?;
    let result = low.plain("Tile", &[x, repeats])?;
    low.give(op, &[result])
}

fn shape(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let found = low.shape_of(x)?;
    let dtype = op.output_element(0).map_or(DataType::Int32, |element| element.stored_as());
    let result = low.cast(found, dtype)?;
    low.give(op, &[result])
}

fn block_of(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<i64> {
    match low.int(op, name)? {
        Some(block) if block > 0 => Ok(block),
        Some(block) => Err(CoreMlError::invalid(format!("input '{name}' is {block}"))),
        None => Err(CoreMlError::invalid(format!("input '{name}' is missing"))),
    }
}

fn depth_to_space(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    order: &str,
) -> Result<()> {
    let x = low.required(op, "x")?;
    let block = block_of(low, op, name)?;
    let named = attributes([("blocksize", block.into()), ("mode", text(order))]);
    let result = low.node("DepthToSpace", &named, &[x])?;
    low.give(op, &[result])
}

fn space_to_depth(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let block = block_of(low, op, "block_size")?;
    let result = low.node("SpaceToDepth", &attributes([("blocksize", block.into())]), &[x])?;
    low.give(op, &[result])
}

/// The lengths of a value of four axes: the batch may be unknown, the others not.
fn image(low: &ProgramLowering, x: ValueId) -> Result<[i64; 3]> {
    if low.rank(x)? != 4 {
        return Err(CoreMlError::invalid(format!("x has {} axes, expected 4", low.rank(x)?)));
    }
    let len = |axis| low.known_len(x, axis).map(signed);
    Ok([len(1)?, len(2)?, len(3)?])
}

/// The inverse of `pixel_shuffle`: each channel becomes the channels of its places in a block.
fn pixel_unshuffle(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let block = block_of(low, op, "downscale_factor")?;
    let [channels, height, width] = image(low, x)?;
    let rows = height / block;
    let columns = width / block;
    let cut = low.reshape(x, &[-1, channels, rows, block, columns, block])?;
    let moved = low.transpose(cut, &[0, 1, 3, 5, 2, 4])?;
    let result = low.reshape(moved, &[-1, channels * block * block, rows, columns])?;
    low.give(op, &[result])
}

/// Two numbers for both axes of space.
fn pair(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<[i64; 2]> {
    match needed(low, op, name)?.as_slice() {
        &[a, b] if a > 0 && b > 0 => Ok([a, b]),
        other => Err(CoreMlError::invalid(format!("input '{name}' is {other:?}"))),
    }
}

/// Amounts in front and behind, for both axes of space.
fn margins(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<[i64; 4]> {
    match needed(low, op, name)?.as_slice() {
        &[top, bottom, left, right] if top.min(bottom).min(left).min(right) >= 0 => {
            Ok([top, bottom, left, right])
        }
        other => Err(CoreMlError::invalid(format!("input '{name}' is {other:?}"))),
    }
}

/// Blocks of space become batches, the place in the block counting slowest.
fn space_to_batch(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let [tall, wide] = pair(low, op, "block_shape")?;
    let [top, bottom, left, right] = margins(low, op, "paddings")?;
    let amounts = low.integers(&[0, 0, top, left, 0, 0, bottom, right]);
    let x = low.plain("Pad", &[x, amounts])?;
    let [channels, height, width] = image(low, x)?;
    let rows = height / tall;
    let columns = width / wide;
    let cut = low.reshape(x, &[-1, channels, rows, tall, columns, wide])?;
    let moved = low.transpose(cut, &[3, 5, 0, 1, 2, 4])?;
    let result = low.reshape(moved, &[-1, channels, rows, columns])?;
    low.give(op, &[result])
}

/// The inverse of `space_to_batch`, and then without the margins.
fn batch_to_space(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let [tall, wide] = pair(low, op, "block_shape")?;
    let [top, bottom, left, right] = margins(low, op, "crops")?;
    let [channels, rows, columns] = image(low, x)?;
    let cut = low.reshape(x, &[tall, wide, -1, channels, rows, columns])?;
    let moved = low.transpose(cut, &[2, 3, 4, 0, 5, 1])?;
    let height = rows * tall;
    let width = columns * wide;
    let whole = low.reshape(moved, &[-1, channels, height, width])?;
    let result = low.slice(whole, &[2, 3], &[top, left], &[height - bottom, width - right])?;
    low.give(op, &[result])
}

/// A constant vector of INT64 as a tensor of a shape.
pub(super) fn table(low: &mut ProgramLowering, shape: &[usize], all: Vec<i64>) -> Result<ValueId> {
    Ok(low.constant(Tensor::from_vec(shape, all)?))
}
