//! Operators that sort.

use galatea_graph::{ONNX_DOMAIN, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::elementwise::named_type;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] =
    &[LoweringRow::new("argsort", argsort), LoweringRow::new("topk", topk)];

/// The `count` first elements of an axis in order, and their places; all where it is absent.
fn ranked(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    count: Option<i64>,
    sorted: bool,
) -> Result<[ValueId; 2]> {
    let x = low.required(op, "x")?;
    let (x, scalar) = low.with_axis(x)?;
    let axis = low.int(op, "axis")?.unwrap_or(-1);
    let axis = signed(low.axis(axis, low.rank(x)?)?);
    let ascending = low.flag(op, "ascending", false)?;
    let count = match count {
        Some(count) => low.integers(&[count]),
        None => {
            let named = attributes([("start", axis.into()), ("end", (axis + 1).into())]);
            low.node("Shape", &named, &[x])?
        }
    };
    let named = attributes([
        ("axis", axis.into()),
        ("largest", (!ascending).into()),
        ("sorted", sorted.into()),
    ]);
    match *low.node_of((ONNX_DOMAIN, "TopK"), &named, &[Some(x), Some(count)], 2)? {
        [values, places] if scalar => Ok([low.reshape(values, &[])?, low.reshape(places, &[])?]),
        [values, places] => Ok([values, places]),
        _ => Err(CoreMlError::invalid("a sort without results")),
    }
}

/// The places of the elements of an axis in order.
fn argsort(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let [_, places] = ranked(low, op, None, true)?;
    let result = low.cast(places, DataType::Int32)?;
    low.give(op, &[result])
}

/// The greatest or least elements of an axis and, if wanted, their places.
fn topk(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let count = low.int(op, "k")?.unwrap_or(1);
    let mut sorted = true;
    let mut with_places = true;
    let mut dtype = DataType::Int32;
    if op.opset >= 6 {
        sorted = low.flag(op, "sort", true)?;
        with_places = low.flag(op, "return_indices", true)?;
    }
    if op.opset >= 7 {
        dtype = named_type(low, op, "output_indices_dtype")?.unwrap_or(dtype);
    }
    let count = Some(count).filter(|&count| count != -1);
    let [values, places] = ranked(low, op, count, sorted)?;
    if !with_places {
        return low.give(op, &[values]);
    }
    let places = low.cast(places, dtype)?;
    low.give(op, &[values, places])
}
