//! Operators that look elements up.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::Row;
use super::lowering::{Lowering, Result, attributes};
use super::operation::Op;
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[Row] = &[Row::new("gather", gather), Row::new("select", select)];

/// Rows of an axis, after `batch_dims` axes that both have.
fn gather(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let (x, indices) = (low.required(op, "x")?, low.required(op, "indices")?);
    let indices = low.cast(indices, DataType::Int64)?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    op.ignore("validate_indices");
    let batch = low.int(op, "batch_dims")?.unwrap_or(0);
    if batch != 0 {
        return gather_in_batches(low, op, (x, indices), axis, batch);
    }
    let result = low.node("Gather", &attributes([("axis", axis.into())]), &[x, indices])?;
    low.give(op, &[result])
}

/// The axis is brought behind those of the batches, and the axes before it to their place again.
fn gather_in_batches(
    low: &mut Lowering,
    op: &Op<'_>,
    (x, indices): (ValueId, ValueId),
    axis: i64,
    batch: i64,
) -> Result<()> {
    let (rank, of_indices) = (low.rank(x)?, low.rank(indices)?);
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
    let (looked_up, before) = (of_indices - batch, axis - batch);
    let total = batch + looked_up + before + (rank - 1 - axis);
    let back = (0..batch)
        .chain(batch + looked_up..batch + looked_up + before)
        .chain(batch..batch + looked_up)
        .chain(batch + looked_up + before..total);
    let back: Vec<usize> = back.collect();
    let result = low.transpose(found, &back)?;
    low.give(op, &[result])
}

/// Elements of `a` where the condition holds, else of `b`.
fn select(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let condition = low.required(op, "cond")?;
    let (a, b) = (low.required(op, "a")?, low.required(op, "b")?);
    let dtype = low.dtype(a)?;
    let b = low.cast(b, dtype)?;
    let condition = low.cast(condition, DataType::Bool)?;
    let result = low.plain("Where", &[condition, a, b])?;
    low.give(op, &[result])
}
