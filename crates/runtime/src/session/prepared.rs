//! A graph that is rewritten, with what a run of it takes and returns.

use std::collections::HashMap;

use galatea_graph::{Dim, Fact, Graph, GraphError, ValueId, infer, rewrite};

use crate::binding::IoInfo;
use crate::error::RuntimeError;
use crate::options::OptimiseLevel;

/// A graph that is rewritten, with what a run of it takes and returns.
#[derive(Clone, Debug)]
pub struct PreparedGraph {
    /// The graph, in running order.
    pub graph: Graph,
    /// Inputs that a run must be given.
    pub inputs: Vec<IoInfo>,
    /// Outputs that a run returns.
    pub outputs: Vec<IoInfo>,
}

impl PreparedGraph {
    /// Rewrites a graph as far as a level says.
    ///
    /// # Errors
    /// Fails when the graph is wrong.
    pub fn new(mut graph: Graph, level: OptimiseLevel) -> Result<Self, RuntimeError> {
        graph.sort()?;
        let facts = infer::facts(&graph, &HashMap::new())?;
        let inputs = describe(&graph, &facts, &graph.inputs)?;
        let outputs = describe(&graph, &facts, &graph.outputs)?;
        if level != OptimiseLevel::O0 {
            let report = rewrite::optimise(&mut graph, level)?;
            tracing::debug!(model = %graph.name, %level, ?report, "rewrote the graph");
            graph.sort()?;
        }
        Ok(Self { graph, inputs, outputs })
    }
}

fn describe(
    graph: &Graph,
    facts: &[Option<Fact>],
    ids: &[ValueId],
) -> Result<Vec<IoInfo>, RuntimeError> {
    let describe = |&id: &ValueId| {
        let value = graph.value(id);
        let inferred = facts[id.index()].as_ref();
        let Some(fact) = inferred.or(value.declared.as_ref()) else {
            let text = format!("nothing says what type '{}' has", value.name);
            return Err(GraphError::structure(text).into());
        };
        let declared = value.declared.as_ref().and_then(|fact| fact.shape.as_ref());
        Ok(IoInfo::of(
            graph,
            id,
            &Fact { shape: merge(fact.shape.as_ref(), declared), ..fact.clone() },
        ))
    };
    ids.iter().map(describe).collect()
}

/// Returns the inferred axes with the model's own names where inference knows no number.
fn merge(inferred: Option<&Vec<Dim>>, declared: Option<&Vec<Dim>>) -> Option<Vec<Dim>> {
    match (inferred, declared) {
        (Some(inferred), Some(declared)) if inferred.len() == declared.len() => {
            let pick = |(found, said): (&Dim, &Dim)| match (found, said) {
                (Dim::Known(_), _) | (_, Dim::Unknown) => found.clone(),
                _ => said.clone(),
            };
            Some(inferred.iter().zip(declared).map(pick).collect())
        }
        (Some(inferred), _) => Some(inferred.clone()),
        (None, declared) => declared.cloned(),
    }
}
