//! Branches and loops, as operations with blocks.

use galatea_formats::coreml::mil::{MilArg, MilBlock, MilTensorType, MilVar};
use galatea_graph::ops::control::{If, Loop};
use galatea_graph::{Fact, Node, OperatorBody};
use galatea_tensor::DataType;

use super::bodies::{captured, inside};
use super::{EmitRow, unrolled};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse};

pub(super) const ROWS: &[EmitRow] =
    &[EmitRow::onnx("If", branches), EmitRow::onnx("Loop", repeated)];

/// Writes a body in a block that has begun, with the values of its outputs, each made in the block.
fn body_of(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    body: &OperatorBody,
    own: &[(MilVar, Fact)],
) -> Result<Vec<MilVar>> {
    inside(emit, node, body, own, |inner, id| {
        let var = inner.value(id)?;
        inner.op("identity", vec![("x", MilArg::Var(var))])
    })
}

/// A block, and the types of what it gives.
fn block(
    emit: &mut ProgramEmitter<'_>,
    inputs: &[(&str, MilTensorType)],
    fill: impl FnOnce(&mut ProgramEmitter<'_>, &[MilVar]) -> Result<Vec<MilVar>>,
) -> Result<(MilBlock, Vec<MilTensorType>)> {
    let own = emit.builder().begin_block(inputs);
    let own = match own {
        Ok(own) => own,
        Err(error) => {
            emit.builder().end_block(&[]);
            return Err(error.into());
        }
    };
    let casts = emit.casts();
    let filled = fill(emit, &own);
    emit.set_casts(casts);
    let outputs = filled.as_deref().unwrap_or(&[]).to_vec();
    let found = outputs.iter().map(|var| emit.builder().type_of(var).cloned());
    let found: Option<Vec<MilTensorType>> = found.collect();
    let block = emit.builder().end_block(&outputs);
    filled?;
    match found {
        Some(types) => Ok((block, types)),
        None => refuse("a block that gives something other than tensors"),
    }
}

/// A truth value or a number without axes.
fn scalar(emit: &mut ProgramEmitter<'_>, node: &Node, at: usize) -> Result<MilVar> {
    let var = emit.var(node, at)?;
    emit.reshape(&var, &[])
}

fn branches(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<If>() else { return refuse("a branch of another kind") };
    let condition = scalar(emit, node, 0)?;
    let mut blocks = Vec::new();
    let mut types = Vec::new();
    for body in &operator.branches {
        captured(emit, node, body)?;
        let (block, found) = block(emit, &[], |emit, _| body_of(emit, node, body, &[]))?;
        blocks.push(block);
        types.push(found);
    }
    if types.first() != types.last() {
        return refuse(format!("branches that give {types:?}"));
    }
    emit.with_blocks("cond", vec![("pred", MilArg::Var(condition))], blocks, node.outputs.len())
}

/// A loop. What values are collected is known only where it can be unrolled.
fn repeated(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Loop>() else { return refuse("a loop of another kind") };
    let body = &operator.body;
    let carried = operator.carried;
    if node.outputs.len() > carried {
        return unrolled::collecting(emit, node, operator);
    }
    captured(emit, node, body)?;
    let limit = node.input(0).map(|_| scalar(emit, node, 0)).transpose()?;
    let number = emit.table(&[], vec![0])?;
    let goes_on = match node.input(1) {
        Some(_) => scalar(emit, node, 1)?,
        None => emit.truth(true)?,
    };
    let mut first = vec![number, goes_on];
    let mut facts = Vec::new();
    facts.push(Fact::fixed(DataType::Int64, &[]));
    facts.push(Fact::fixed(DataType::Bool, &[]));
    for at in 0..carried {
        let id = emit.input(node, at + 2)?;
        first.push(emit.var(node, at + 2)?);
        facts.push(Fact { value: None, elements: None, ..emit.fact(id)?.clone() });
    }
    let types = first.iter().map(|var| emit.builder().type_of(var).cloned());
    let Some(types) = types.collect::<Option<Vec<MilTensorType>>>() else {
        return refuse("a loop that carries something other than tensors");
    };
    let inputs: Vec<(&str, MilTensorType)> =
        types.iter().map(|found| ("carried", found.clone())).collect();
    let (condition, _) = block(emit, &inputs, |emit, own| {
        let [number, goes_on, ..] = own else { return refuse("a loop without its condition") };
        let result = match &limit {
            None => emit.op("identity", vec![("x", goes_on.into())])?,
            Some(limit) => {
                let before = emit.pair("less", number, limit)?;
                emit.pair("logical_and", &before, goes_on)?
            }
        };
        Ok(vec![result])
    })?;
    let (inside, found) = block(emit, &inputs, |emit, own| {
        let Some(number) = own.first() else { return refuse("a loop without its number") };
        let next = emit.pair("add", number, MilArg::Int(1))?;
        let own: Vec<(MilVar, Fact)> = own.iter().cloned().zip(facts).collect();
        let mut all = vec![next];
        all.extend(body_of(emit, node, body, &own)?);
        Ok(all)
    })?;
    if found != types {
        return refuse(format!("a loop that carries {types:?} and gives {found:?}"));
    }
    let inputs = vec![("loop_vars", MilArg::Vars(first))];
    let mut all = emit.with_blocks("while_loop", inputs, vec![condition, inside], types.len())?;
    Ok(all.split_off(2))
}
