//! Reductions.

use galatea_tensor::DataType;

use super::LoweringRow;
use super::elementwise::named_type;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("reduce_argmax", |low, op| position(low, op, "ArgMax")),
    LoweringRow::new("reduce_argmin", |low, op| position(low, op, "ArgMin")),
    LoweringRow::new("reduce_l1_norm", |low, op| reduce(low, op, "ReduceL1")),
    LoweringRow::new("reduce_l2_norm", |low, op| reduce(low, op, "ReduceL2")),
    LoweringRow::new("reduce_log_sum", |low, op| reduce(low, op, "ReduceLogSum")),
    LoweringRow::new("reduce_log_sum_exp", |low, op| reduce(low, op, "ReduceLogSumExp")),
    LoweringRow::new("reduce_max", |low, op| reduce(low, op, "ReduceMax")),
    LoweringRow::new("reduce_mean", |low, op| reduce(low, op, "ReduceMean")),
    LoweringRow::new("reduce_min", |low, op| reduce(low, op, "ReduceMin")),
    LoweringRow::new("reduce_prod", |low, op| reduce(low, op, "ReduceProd")),
    LoweringRow::new("reduce_sum", |low, op| reduce(low, op, "ReduceSum")),
    LoweringRow::new("reduce_sum_square", |low, op| reduce(low, op, "ReduceSumSquare")),
];

/// Over some axes, or all of them.
fn reduce(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let axes = low.ints(op, "axes")?.map(|axes| low.integers(&axes));
    let keep = low.flag(op, "keep_dims", false)?;
    let named = attributes([("keepdims", keep.into())]);
    let result = low.node_with(operator, &named, &[Some(x), axes])?;
    low.give(op, &[result])
}

/// The place of the greatest or least element of an axis; the first where several are equal.
fn position(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
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
