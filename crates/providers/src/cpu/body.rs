//! The bodies of loops and branches, run by the same kernels as the graph around them.

use std::fmt;
use std::sync::Arc;

use galatea_graph::{BodyRunner, Datum, Graph, Node, OpError, OperatorBody};
use galatea_runtime::RuntimeError;

use super::executable::CpuExecutable;

/// A prepared body.
struct CpuBody(Arc<CpuExecutable>);

impl fmt::Debug for CpuBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CpuBody")
    }
}

impl BodyRunner for CpuBody {
    fn run(&self, inputs: Vec<Datum>) -> Result<Vec<Datum>, OpError> {
        self.0.run(inputs, None).map_err(|error| OpError::new(error.to_string()))
    }
}

/// Prepares every body in a graph. One that cannot be prepared stays with the reference evaluation:
/// it may be a branch that is never taken.
pub(super) fn prepared(
    graph: Arc<Graph>,
    prepare: &mut dyn FnMut(Arc<Graph>) -> Result<CpuExecutable, RuntimeError>,
) -> (Arc<Graph>, Vec<Arc<CpuExecutable>>) {
    let mut all = Vec::new();
    if graph.nodes.iter().all(|node| node.operator.bodies().is_empty()) {
        return (graph, all);
    }
    let mut one = |node: &Node, body: &OperatorBody| match prepare(Arc::clone(body.graph())) {
        Ok(executable) => {
            let executable = Arc::new(executable);
            all.push(Arc::clone(&executable));
            body.with_runner(Arc::new(CpuBody(executable)))
        }
        Err(error) => {
            tracing::debug!(node = %node.name, body = body.name(), %error, "runs by reference");
            body.clone()
        }
    };
    let mut changed = (*graph).clone();
    for node in &mut changed.nodes {
        let bodies = node.operator.bodies().iter().map(|body| one(node, body)).collect();
        if let Some(operator) = node.operator.with_bodies(bodies) {
            node.operator = operator;
        }
    }
    (Arc::new(changed), all)
}
