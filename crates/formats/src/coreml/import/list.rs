//! Lists of values of one type and shape. A list is a tensor whose first axis counts its items, so
//! that it goes through loops and devices as any value does. Items that nobody wrote are zeros;
//! lengths of items that are known in a run only are 0 until the first one is written.

use galatea_graph::{AttributeValue, Dim, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::elementwise::named_type;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilElement, MilType, MilValue};

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("make_list", make_list),
    LoweringRow::new("list_length", list_length),
    LoweringRow::new("list_read", list_read),
    LoweringRow::new("list_write", list_write),
    LoweringRow::new("list_gather", list_gather),
    LoweringRow::new("list_scatter", list_scatter),
];

/// The lengths of an item: numbers, and texts for those that are known in a run only.
fn item_lengths(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Option<Vec<i64>>> {
    let Some(all) = low.constants(op, "elem_shape")? else { return Ok(None) };
    let mut lengths = Vec::new();
    for value in all {
        match &*value {
            MilValue::Tensor(MilElement::String, texts) => {
                lengths.resize(lengths.len() + texts.elements(), 0);
            }
            MilValue::Tensor(_, numbers) => lengths.extend(numbers.to_i64_vec()?),
            other => {
                let text = format!("input 'elem_shape' is {}", other.describe());
                return Err(CoreMlError::invalid(text));
            }
        }
    }
    match lengths.iter().find(|len| **len < 0) {
        None => Ok(Some(lengths)),
        Some(len) => Err(CoreMlError::invalid(format!("an item's length is {len}"))),
    }
}

/// The lengths of an item as the operation states them of its result.
fn stated_lengths(op: &LoweredOperation<'_>) -> Option<Vec<i64>> {
    let Some((_, MilType::List(item, _))) = op.outputs().first() else { return None };
    let shape = item.as_tensor()?.shape.as_ref()?;
    Some(shape.iter().map(|len| len.map_or(0, signed)).collect())
}

fn make_list(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let dtype = named_type(low, op, "dtype")?.unwrap_or(DataType::Fp32);
    let grows = low.flag(op, "dynamic_length", true)?;
    let item = item_lengths(low, op)?.or_else(|| stated_lengths(op)).ok_or_else(|| {
        CoreMlError::unsupported("a list of items whose number of axes is not known before a run")
    })?;
    let count = match low.optional(op, "init_length")? {
        Some(count) => {
            let count = low.cast(count, DataType::Int64)?;
            low.reshape(count, &[1])?
        }
        None => low.integers(&[1]),
    };
    let item = low.integers(&item);
    let shape = low.node("Concat", &attributes([("axis", 0_i64.into())]), &[count, item])?;
    let zero = Tensor::zeros(dtype, &[1])?;
    let result = low.node(
        "ConstantOfShape",
        &attributes([("value", AttributeValue::Tensor(zero))]),
        &[shape],
    )?;
    low.set_growing(result, grows);
    low.give(op, &[result])
}

/// Returns the number of items: one element of INT64.
fn length(low: &mut ProgramLowering, list: ValueId) -> Result<ValueId> {
    let named = attributes([("start", 0_i64.into()), ("end", 1_i64.into())]);
    low.node("Shape", &named, &[list])
}

fn list_length(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let list = low.required(op, "ls")?;
    let count = length(low, list)?;
    let count = low.squeeze(count, &[0])?;
    let result = low.cast(count, DataType::Int32)?;
    low.give(op, &[result])
}

fn taken(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    list: ValueId,
    places: ValueId,
) -> Result<()> {
    let result = low.node("Gather", &attributes([("axis", 0_i64.into())]), &[list, places])?;
    low.give(op, &[result])
}

/// An input as a place in a list, a tensor of this shape.
fn places(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    shape: &[i64],
) -> Result<ValueId> {
    let found = low.required(op, name)?;
    let found = low.cast(found, DataType::Int64)?;
    low.reshape(found, shape)
}

fn list_read(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let list = low.required(op, "ls")?;
    let place = places(low, op, "index", &[])?;
    taken(low, op, list, place)
}

fn list_gather(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let list = low.required(op, "ls")?;
    let places = places(low, op, "indices", &[-1])?;
    taken(low, op, list, places)
}

fn list_write(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let list = low.required(op, "ls")?;
    let place = places(low, op, "index", &[1])?;
    let item = low.required(op, "value")?;
    let item = low.unsqueeze(item, &[0])?;
    written(low, op, list, place, item)
}

fn list_scatter(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let list = low.required(op, "ls")?;
    let places = places(low, op, "indices", &[-1])?;
    let items = low.required(op, "value")?;
    written(low, op, list, places, items)
}

/// The list with items written at some places, grown to hold them where it may.
fn written(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    list: ValueId,
    places: ValueId,
    items: ValueId,
) -> Result<()> {
    if low.dtype(list)? != low.dtype(items)? || low.rank(list)? != low.rank(items)? {
        let list = low.fact(list)?;
        let items = low.fact(items)?;
        let text = format!("items {items} are written to a list that is {list}");
        return Err(CoreMlError::invalid(text));
    }
    let grows = low.grows(list);
    let list = grown(low, list, places, items)?;
    let places = low.unsqueeze(places, &[-1])?;
    let result = low.plain("ScatterND", &[list, places, items])?;
    low.set_growing(result, grows);
    low.give(op, &[result])
}

/// The list with zeros behind its items, as far as the places go, and with items of the lengths
/// that they have where the list has none yet.
fn grown(
    low: &mut ProgramLowering,
    list: ValueId,
    places: ValueId,
    items: ValueId,
) -> Result<ValueId> {
    let fixed = !low.grows(list);
    let known = |dim: &Dim| dim.known().is_some_and(|len| len > 0);
    let shaped = low.dims(list)?.iter().skip(1).all(known) || low.dims(list)? == low.dims(items)?;
    if fixed && shaped {
        return Ok(list);
    }
    let zero = low.integers(&[0]);
    let more = match fixed {
        true => zero,
        false => {
            let count = length(low, list)?;
            let one = low.integers(&[1]);
            let named = attributes([("keepdims", true.into())]);
            let last = low.node("ReduceMax", &named, &[places])?;
            let needed = low.plain("Add", &[last, one])?;
            let more = low.plain("Sub", &[needed, count])?;
            low.plain("Max", &[more, zero])?
        }
    };
    let rank = low.rank(list)?;
    let mut amounts = vec![low.integers(&vec![0; rank]), more];
    if rank > 1 {
        let named = attributes([("start", 1_i64.into())]);
        let found = low.node("Shape", &named, &[list])?;
        let wanted = low.node("Shape", &named, &[items])?;
        let none = low.plain("Equal", &[found, zero])?;
        amounts.push(low.plain("Where", &[none, wanted, zero])?);
    }
    let amounts = low.node("Concat", &attributes([("axis", 0_i64.into())]), &amounts)?;
    low.plain("Pad", &[list, amounts])
}
