//! Reductions.

use galatea_tensor::DataType;

use super::Row;
use super::elementwise::named_type;
use super::lowering::{Lowering, Result, attributes};
use super::operation::Op;

pub(super) const ROWS: &[Row] = &[
    Row::new("reduce_argmax", |low, op| position(low, op, "ArgMax")),
    Row::new("reduce_argmin", |low, op| position(low, op, "ArgMin")),
    Row::new("reduce_l1_norm", |low, op| reduce(low, op, "ReduceL1")),
    Row::new("reduce_l2_norm", |low, op| reduce(low, op, "ReduceL2")),
    Row::new("reduce_log_sum", |low, op| reduce(low, op, "ReduceLogSum")),
    Row::new("reduce_log_sum_exp", |low, op| reduce(low, op, "ReduceLogSumExp")),
    Row::new("reduce_max", |low, op| reduce(low, op, "ReduceMax")),
    Row::new("reduce_mean", |low, op| reduce(low, op, "ReduceMean")),
    Row::new("reduce_min", |low, op| reduce(low, op, "ReduceMin")),
    Row::new("reduce_prod", |low, op| reduce(low, op, "ReduceProd")),
    Row::new("reduce_sum", |low, op| reduce(low, op, "ReduceSum")),
    Row::new("reduce_sum_square", |low, op| reduce(low, op, "ReduceSumSquare")),
];

/// Over some axes, or all of them.
fn reduce(low: &mut Lowering, op: &Op<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let axes = low.ints(op, "axes")?.map(|axes| low.integers(&axes));
    let keep = low.flag(op, "keep_dims", false)?;
    let named = attributes([("keepdims", keep.into())]);
    let result = low.node_with(operator, &named, &[Some(x), axes])?;
    low.give(op, &[result])
}

/// The place of the greatest or least element of an axis; the first where several are equal.
fn position(low: &mut Lowering, op: &Op<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let axis = low.int(op, "axis")?.unwrap_or(-1);
    let keep = low.flag(op, "keep_dims", false)?;
    let dtype = named_type(low, op, "output_dtype")?.unwrap_or(DataType::Int32);
    low.axis(axis, low.rank(x)?)?;
    let named = attributes([("axis", axis.into()), ("keepdims", keep.into())]);
    let found = low.node(operator, &named, &[x])?;
    let result = low.cast(found, dtype)?;
    low.give(op, &[result])
}
