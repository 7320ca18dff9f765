//! Branches and loops.

use galatea_graph::{Dim, Fact, ONNX_DOMAIN, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::block as lower_block;
use super::lowering::{ProgramLowering, Result, agrees, attributes};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilBlock, MilType};

pub(super) const ROWS: &[LoweringRow] =
    &[LoweringRow::new("cond", cond), LoweringRow::new("while_loop", while_loop)];

/// The two blocks of an operation.
fn two_blocks<'p>(op: &LoweredOperation<'p>) -> Result<[&'p MilBlock; 2]> {
    match op.blocks() {
        [first, second] => Ok([first, second]),
        other => {
            let text = format!("it has {} blocks, expected two", other.len());
            Err(CoreMlError::invalid(text))
        }
    }
}

/// Lowers a block and gives the values of its outputs.
fn values(low: &mut ProgramLowering, block: &MilBlock, opset: u32) -> Result<Vec<ValueId>> {
    lower_block(low, block, opset)?;
    let value = |name: &String| {
        low.value_of(name).map_err(|error| error.at(format!("the block's output '{name}'")))
    };
    block.outputs.iter().map(value).collect()
}

/// Refuses a condition that is no truth value.
fn check_truth(low: &ProgramLowering, condition: ValueId) -> Result<()> {
    match low.fact(condition)? {
        found if found.dtype == DataType::Bool && found.is_tensor() => Ok(()),
        found => Err(CoreMlError::invalid(format!("the condition is {found}, expected BOOL"))),
    }
}

/// The first block where the condition holds, else the second.
fn cond(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let condition = low.required(op, "pred")?;
    check_truth(low, condition)?;
    let blocks = two_blocks(op)?;
    let expected = op.outputs().len();
    let mut branches = Vec::with_capacity(2);
    let mut growing = vec![false; expected];
    for block in blocks {
        if !block.inputs.is_empty() || block.outputs.len() != expected {
            let taken = block.inputs.len();
            let given = block.outputs.len();
            let text = format!(
                "a block takes {taken} values and gives {given}, expected none and {expected}"
            );
            return Err(CoreMlError::invalid(text));
        }
        branches.push(low.subgraph(&[], |low, _| {
            let found = values(low, block, op.opset)?;
            for (grows, &id) in growing.iter_mut().zip(&found) {
                *grows |= low.grows(id);
            }
            Ok(found)
        })?);
    }
    let names = ["then_branch", "else_branch"];
    let named = attributes(names.into_iter().zip(branches));
    let results = low.node_of((ONNX_DOMAIN, "If"), &named, &[Some(condition)], expected)?;
    for (&result, grows) in results.iter().zip(growing) {
        low.set_growing(result, grows);
    }
    low.give(op, &results)
}

/// Returns the fact that holds for a loop's value in every iteration: its type, as the block states
/// it.
fn carried(low: &ProgramLowering, name: &str, stated: &MilType, first: ValueId) -> Result<Fact> {
    let found = low.fact(first)?;
    if !agrees(stated, found) {
        let text = format!("the block's input '{name}' is said to be {stated}, it is {found}");
        return Err(CoreMlError::invalid(text));
    }
    let known = |len: &Option<usize>| len.map_or(Dim::Unknown, Dim::Known);
    let lengths = |shape: &Vec<Option<usize>>| -> Vec<Dim> { shape.iter().map(known).collect() };
    let shape = match stated {
        MilType::Tensor(tensor) => tensor.shape.as_ref().map(lengths),
        MilType::List(item, _) => item.as_tensor().and_then(|item| {
            let count = match low.grows(first) {
                true => Dim::Unknown,
                false => found.shape.as_ref()?.first()?.clone(),
            };
            let item = lengths(item.shape.as_ref()?);
            Some(std::iter::once(count).chain(item).collect())
        }),
        _ => None,
    };
    // A program that says nothing of the axes leaves their number as it is.
    let shape = shape.or_else(|| Some(vec![Dim::Unknown; found.rank()?]));
    Ok(Fact::shaped(found.dtype, shape))
}

/// The names of a block's inputs with the values that they stand for.
fn named<'b>(block: &'b MilBlock, values: &[ValueId]) -> Vec<(&'b str, ValueId)> {
    block.inputs.iter().map(|(name, _)| name.as_str()).zip(values.iter().copied()).collect()
}

/// The second block as long as the first one gives true for what it carries on. The condition is
/// computed once before the loop, and at the end of each iteration.
fn while_loop(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let first = low.several(op, "loop_vars")?;
    let [condition, body] = two_blocks(op)?;
    let count = first.len();
    let counts = [condition.inputs.len(), body.inputs.len(), body.outputs.len()];
    if counts != [count; 3] || condition.outputs.len() != 1 {
        let text = format!(
            "{count} values with blocks that take {} and {} and give {} and {}",
            counts[0],
            counts[1],
            condition.outputs.len(),
            counts[2]
        );
        return Err(CoreMlError::invalid(text));
    }
    let mut facts = vec![Fact::fixed(DataType::Int64, &[]), Fact::fixed(DataType::Bool, &[])];
    for ((name, stated), &id) in body.inputs.iter().zip(&first) {
        facts.push(carried(low, name, stated, id)?);
    }
    let starts = continues(low, op, condition, &first)?;
    let growing: Vec<bool> = first.iter().map(|&id| low.grows(id)).collect();
    let graph = low.subgraph(&facts, |low, ids| {
        let own = ids.get(2..).unwrap_or(&[]);
        for (&id, &grows) in own.iter().zip(&growing) {
            low.set_growing(id, grows);
        }
        let next = low.scoped(&named(body, own), |low| values(low, body, op.opset))?;
        for ((name, stated), &id) in body.inputs.iter().zip(&next) {
            let found = low.fact(id)?;
            if !agrees(stated, found) {
                let text =
                    format!("the loop's value '{name}' is {stated}, the block gives {found}");
                return Err(CoreMlError::invalid(text));
            }
        }
        let goes_on = continues(low, op, condition, &next)?;
        Ok(std::iter::once(goes_on).chain(next).collect())
    })?;
    let mut inputs = vec![None, Some(starts)];
    inputs.extend(first.into_iter().map(Some));
    let named = attributes([("body", graph)]);
    let results = low.node_of((ONNX_DOMAIN, "Loop"), &named, &inputs, count)?;
    for (&result, grows) in results.iter().zip(growing) {
        low.set_growing(result, grows);
    }
    low.give(op, &results)
}

/// Lowers the block of the condition for some values, and returns the condition's value.
fn continues(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    condition: &MilBlock,
    of: &[ValueId],
) -> Result<ValueId> {
    let found = low.scoped(&named(condition, of), |low| values(low, condition, op.opset))?;
    let Some(&found) = found.first() else {
        return Err(CoreMlError::invalid("the condition gives nothing"));
    };
    check_truth(low, found)?;
    Ok(found)
}
