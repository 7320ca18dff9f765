//! Bodies of operators, written where the program is.

use std::collections::HashMap;

use galatea_formats::coreml::mil::{MilElement, MilVar};
use galatea_graph::{Fact, Node, OperatorBody, ValueId, infer, rewrite};

use crate::emit::ProgramEmitter;
use crate::ranges;
use crate::unwritable::{Result, UnwritableNode};

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
