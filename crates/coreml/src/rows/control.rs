//! Branches and loops, as operations with blocks.

use std::collections::HashMap;

use galatea_formats::coreml::mil::{MilArg, MilBlock, MilElement, MilTensorType, MilVar};
use galatea_graph::ops::control::{If, Loop};
use galatea_graph::{Fact, Node, OperatorBody, ValueId, infer, rewrite};
use galatea_tensor::DataType;

use super::{EmitRow, unrolled};
use crate::emit::{ProgramEmitter, Result, UnwritableNode, refuse};
use crate::ranges;

pub(super) const ROWS: &[EmitRow] =
    &[EmitRow::onnx("If", branches), EmitRow::onnx("Loop", repeated)];

/// Writes a body where the program is: its own inputs are `own`, with these facts. `give` makes each of its
/// outputs.
pub(super) fn inside<T>(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    body: &OperatorBody,
    own: &[(MilVar, Fact)],
    give: impl Fn(&mut ProgramEmitter<'_>, ValueId) -> Result<T>,
) -> Result<Vec<T>> {
    let mut graph = (**body.graph()).clone();
    let mut vars = HashMap::new();
    let captured = body.captures().iter().map(|&at| {
        let id = emit.input(node, at)?;
        Ok((emit.value(id)?, emit.fact(id)?.clone()))
    });
    let captured = captured.collect::<Result<Vec<_>>>()?;
    for (id, (var, fact)) in graph.inputs.clone().into_iter().zip(own.iter().chain(&captured)) {
        graph.value_mut(id).declared = Some(fact.clone());
        vars.insert(id, var.clone());
    }
    let failed = |error: galatea_graph::GraphError| UnwritableNode(error.to_string());
    graph.sort().map_err(failed)?;
    let rules: Vec<&str> = rewrite::TIDYING.iter().map(|rule| rule.name).collect();
    rewrite::run_named(&mut graph, &rules).map_err(failed)?;
    let facts = infer::facts(&graph, &HashMap::new()).map_err(failed)?;
    emit.nested(&graph, &facts, vars, |inner| {
        if inner.float_element() == MilElement::Fp16 {
            inner.set_islands(ranges::proven(&graph, &facts));
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let written = super::emit(inner, node);
            written.map_err(|refused| {
                UnwritableNode(format!("{}: {}", graph.place(index), refused.0))
            })?;
        }
        graph.outputs.iter().map(|&id| give(inner, id)).collect()
    })
}

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

/// Makes the values that a body reads from around it, before its block begins.
pub(super) fn captured(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    body: &OperatorBody,
) -> Result<()> {
    for &at in body.captures() {
        let id = emit.input(node, at)?;
        let var = emit.value(id)?;
        emit.set(id, var);
    }
    Ok(())
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
