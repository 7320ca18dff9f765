//! Running a graph with the reference evaluation of its operators.

use galatea_tensor::Tensor;

use crate::error::{GraphError, OpError};
use crate::graph::{Graph, Node};
use crate::operator::Inputs;

/// Computes the outputs of a graph, in order, from its inputs, in order.
///
/// # Errors
/// When the number of inputs is wrong or an operator refuses its inputs; the error names the node.
pub fn run(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
    if inputs.len() != graph.inputs.len() {
        return Err(GraphError::input(format!(
            "the graph has {} inputs, {} were given",
            graph.inputs.len(),
            inputs.len()
        )));
    }
    let mut values: Vec<Option<Tensor>> =
        graph.values().iter().map(|value| value.initializer.clone()).collect();
    for (id, tensor) in graph.inputs.iter().zip(inputs) {
        values[id.index()] = Some(tensor.clone());
    }
    let mut last_use = vec![0; values.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for id in node.inputs.iter().flatten() {
            last_use[id.index()] = index;
        }
    }
    for id in &graph.outputs {
        last_use[id.index()] = usize::MAX;
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let outputs =
            run_node(node, &values).map_err(|error| GraphError::at(graph.place(index), error))?;
        for (slot, tensor) in node.outputs.iter().zip(outputs) {
            if let Some(id) = slot {
                values[id.index()] = Some(tensor);
            }
        }
        for id in node.inputs.iter().flatten() {
            if last_use[id.index()] == index {
                values[id.index()] = None;
            }
        }
    }
    let result = |id: &crate::ValueId| {
        values[id.index()].clone().ok_or_else(|| {
            GraphError::structure(format!("output '{}' was not computed", graph.value(*id).name))
        })
    };
    graph.outputs.iter().map(result).collect()
}

/// Computes one node from the values written so far.
///
/// # Errors
/// When the operator refuses its inputs, or gives fewer outputs than the node wants.
pub fn run_node(node: &Node, values: &[Option<Tensor>]) -> Result<Vec<Tensor>, OpError> {
    let inputs: Vec<Option<&Tensor>> =
        node.inputs.iter().map(|slot| slot.and_then(|id| values[id.index()].as_ref())).collect();
    let outputs = node.operator.reference(Inputs::new(&inputs))?;
    let wanted = node.outputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if outputs.len() < wanted {
        return Err(OpError::new(format!(
            "the operator gives {} outputs, the node wants {wanted}",
            outputs.len()
        )));
    }
    Ok(outputs)
}
