//! Operators that make values: fills, ranges, bands, sums along an axis.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("fill", fill),
    LoweringRow::since(6, "fill_like", fill_like),
    LoweringRow::new("range_1d", range_1d),
    LoweringRow::new("band_part", band_part),
    LoweringRow::new("cumsum", cumsum),
];

/// A constant everywhere in a shape.
pub(super) fn filled(low: &mut ProgramLowering, shape: ValueId, value: &Tensor) -> Result<ValueId> {
    let value = AttributeValue::Tensor(value.contiguous()?.reshape(&[1])?);
    low.node("ConstantOfShape", &attributes([("value", value)]), &[shape])
}

/// The input `value`, or zero in FP32.
fn value(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Tensor> {
    Ok(low.tensor(op, "value")?.map_or_else(|| Tensor::scalar(0.0_f32), |(_, value)| value))
}

fn fill(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let shape = low.required(op, "shape")?;
    let shape = low.cast(shape, DataType::Int64)?;
    let value = value(low, op)?;
    let result = filled(low, shape, &value)?;
    low.give(op, &[result])
}

fn fill_like(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let reference = low.required(op, "ref_tensor")?;
    let shape = low.shape_of(reference)?;
    let value = value(low, op)?;
    let result = filled(low, shape, &value)?;
    low.give(op, &[result])
}

/// From `start` to before `end`.
fn range_1d(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let start = low.required(op, "start")?;
    let dtype = low.dtype(start)?;
    let mut bounds = vec![start];
    for name in ["end", "step"] {
        let bound = low.required(op, name)?;
        bounds.push(low.cast(bound, dtype)?);
    }
    let result = low.plain("Range", &bounds)?;
    low.give(op, &[result])
}

/// Zeros outside of a band around the diagonal of the last two axes: so many diagonals below it
/// and so many above it, all where the number is negative.
fn band_part(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let mut x = low.required(op, "x")?;
    let below = low.int(op, "lower")?.unwrap_or(-1);
    let above = low.int(op, "upper")?.unwrap_or(-1);
    for (count, first, upper) in [(below, below.saturating_neg(), true), (above, above, false)] {
        if count >= 0 {
            let first = low.scalar(first);
            x = low.node("Trilu", &attributes([("upper", upper.into())]), &[x, first])?;
        }
    }
    low.give(op, &[x])
}

/// Running sums.
fn cumsum(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    let axis = low.scalar(axis);
    let exclusive = low.flag(op, "exclusive", false)?;
    let reverse = low.flag(op, "reverse", false)?;
    let named = attributes([("exclusive", exclusive.into()), ("reverse", reverse.into())]);
    let result = low.node("CumSum", &named, &[x, axis])?;
    low.give(op, &[result])
}
