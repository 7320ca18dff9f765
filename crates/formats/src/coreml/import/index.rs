//! Operators that look elements up.

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("gather", gather),
    LoweringRow::new("gather_along_axis", gather_along_axis),
    LoweringRow::new("gather_nd", gather_nd),
    LoweringRow::new("non_zero", non_zero),
    LoweringRow::new("one_hot", one_hot),
    LoweringRow::new("select", select),
];

/// Reads the number of axes of batches, and whether places are checked (here they always are).
fn batch_dims(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<i64> {
    if op.opset >= 7 {
        low.flag(op, "validate_indices", false)?;
    }
    let found = if op.opset >= 6 { low.int(op, "batch_dims")? } else { None };
    Ok(found.unwrap_or(0))
}

/// Rows of an axis, after `batch_dims` axes that both have.
fn gather(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let indices = low.required(op, "indices")?;
    let indices = low.cast(indices, DataType::Int64)?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    let batch = batch_dims(low, op)?;
    if batch != 0 {
        return gather_in_batches(low, op, x, indices, axis, batch);
    }
    let result = low.node("Gather", &attributes([("axis", axis.into())]), &[x, indices])?;
    low.give(op, &[result])
}

/// The axis is brought behind those of the batches, and the axes before it to their place again.
fn gather_in_batches(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    x: ValueId,
    indices: ValueId,
    axis: i64,
    batch: i64,
) -> Result<()> {
    let rank = low.rank(x)?;
    let of_indices = low.rank(indices)?;
    let axis = low.axis(axis, rank)?;
    let batch = low.axis(batch, of_indices + 1)?;
    if batch > axis {
        let text = format!("axis {axis} is one of the {batch} of the batches");
        return Err(CoreMlError::invalid(text));
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.remove(axis);
    order.insert(batch, axis);
    let turned = low.transpose(x, &order)?;
    let places = low.unsqueeze(indices, &[-1])?;
    let named = attributes([("batch_dims", signed(batch).into())]);
    let found = low.node("GatherND", &named, &[turned, places])?;
    // Batches, indices, axes before the one, axes behind it.
    let looked_up = of_indices - batch;
    let before = axis - batch;
    let total = batch + looked_up + before + (rank - 1 - axis);
    let back = (0..batch)
        .chain(batch + looked_up..batch + looked_up + before)
        .chain(batch..batch + looked_up)
        .chain(batch + looked_up + before..total);
    let back: Vec<usize> = back.collect();
    let result = low.transpose(found, &back)?;
    low.give(op, &[result])
}

/// For each place of `indices`, the element at that position of an axis.
fn gather_along_axis(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let indices = low.required(op, "indices")?;
    let indices = low.cast(indices, DataType::Int64)?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    if op.opset >= 7 {
        low.flag(op, "validate_indices", false)?;
    }
    let named = attributes([("axis", axis.into())]);
    let result = low.node("GatherElements", &named, &[x, indices])?;
    low.give(op, &[result])
}

/// Parts of `x` whose first positions are the last axis of `indices`.
fn gather_nd(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let indices = low.required(op, "indices")?;
    let indices = low.cast(indices, DataType::Int64)?;
    let batch = batch_dims(low, op)?;
    let named = attributes([("batch_dims", batch.into())]);
    let result = low.node("GatherND", &named, &[x, indices])?;
    low.give(op, &[result])
}

/// The places of all elements that are not zero, one a row.
fn non_zero(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let found = low.plain("NonZero", &[x])?;
    let rows = low.transpose(found, &[1, 0])?;
    let result = low.cast(rows, DataType::Int32)?;
    low.give(op, &[result])
}

/// A new axis on which each index is switched on at its place.
fn one_hot(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let indices = low.required(op, "indices")?;
    let count = low.required(op, "one_hot_vector_size")?;
    let count = low.cast(count, DataType::Int64)?;
    let axis = low.int(op, "axis")?.unwrap_or(-1);
    let on = low.tensor(op, "on_value")?;
    let off = low.tensor(op, "off_value")?;
    let dtype = on.as_ref().or(off.as_ref()).map_or(DataType::Int32, |(_, value)| value.dtype());
    let mut number = |given: Option<(_, Tensor)>, default: i64| -> Result<ValueId> {
        let value = given.map_or_else(|| Tensor::scalar(default), |(_, value)| value);
        let value = galatea_graph::converted(&value, dtype)?;
        let value = low.constant(value);
        low.reshape(value, &[1])
    };
    let both = [number(off, 0)?, number(on, 1)?];
    let both = low.node("Concat", &attributes([("axis", 0_i64.into())]), &both)?;
    let named = attributes([("axis", axis.into())]);
    let result = low.node("OneHot", &named, &[indices, count, both])?;
    low.give(op, &[result])
}

/// Elements of `a` where the condition holds, else of `b`.
fn select(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let condition = low.required(op, "cond")?;
    let a = low.required(op, "a")?;
    let b = low.required(op, "b")?;
    let dtype = low.dtype(a)?;
    let b = low.cast(b, dtype)?;
    let condition = low.cast(condition, DataType::Bool)?;
    let result = low.plain("Where", &[condition, a, b])?;
    low.give(op, &[result])
}
