//! Running a graph with the reference evaluation of its operators.

use galatea_tensor::Tensor;

use crate::collect::collected;
use crate::datum::Datum;
use crate::error::{GraphError, OpError};
use crate::graph::{Graph, Node};
use crate::limits;

/// Nodes with more inputs than this read all of them by sharing: looking for repetitions is not
/// worth it.
const MANY_INPUTS: usize = 64;

/// Computes the outputs of a graph, in order, from its inputs, in order, where all of them are
/// tensors.
///
/// # Errors
/// Fails like [`run_values`], and when an output is no tensor.
pub fn run(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
    let outputs = run_values(graph, inputs.iter().cloned().map(Datum::Tensor).collect())?;
    let tensor = |(id, datum): (&crate::ValueId, Datum)| {
        datum.into_tensor().map_err(|error| {
            GraphError::structure(format!("output '{}': {error}", graph.value(*id).name))
        })
    };
    collected(&mut graph.outputs.iter().zip(outputs).map(tensor))
}

/// Computes the outputs of a graph, in order, from its inputs, in order.
///
/// # Errors
/// Fails when the number of inputs is wrong or an operator refuses its inputs; the error names the
/// node.
pub fn run_values(graph: &Graph, inputs: Vec<Datum>) -> Result<Vec<Datum>, GraphError> {
    let mut run = ReferenceRun::new(graph, inputs)?;
    for index in 0..graph.nodes.len() {
        run.step(index)?;
    }
    run.outputs()
}

/// A run that goes node by node.
#[derive(Debug)]
pub struct ReferenceRun<'g> {
    graph: &'g Graph,
    values: Vec<Option<Datum>>,
    last_use: Vec<usize>,
}

impl<'g> ReferenceRun<'g> {
    /// A run that has computed nothing yet.
    ///
    /// # Errors
    /// Fails when the number of inputs is wrong.
    pub fn new(graph: &'g Graph, inputs: Vec<Datum>) -> Result<Self, GraphError> {
        if inputs.len() != graph.inputs.len() {
            return Err(GraphError::input(format!(
                "the graph has {} inputs, {} were given",
                graph.inputs.len(),
                inputs.len()
            )));
        }
        let initializer = |value: &crate::GraphValue| value.initializer.clone().map(Datum::Tensor);
        let mut values: Vec<Option<Datum>> = graph.values().iter().map(initializer).collect();
        for (id, datum) in graph.inputs.iter().zip(inputs) {
            values[id.index()] = Some(datum);
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
        Ok(Self { graph, values, last_use })
    }

    /// Computes the node at a position; the nodes before it must have been.
    ///
    /// # Errors
    /// Fails when the operator refuses its inputs, or gives fewer outputs than the node wants.
    pub fn step(&mut self, index: usize) -> Result<(), GraphError> {
        let node = &self.graph.nodes[index];
        limits::wanted().map_err(|error| GraphError::at(self.graph.place(index), error))?;
        let mut inputs: Vec<Option<Datum>> = Vec::with_capacity(node.inputs.len());
        let many = node.inputs.len() > MANY_INPUTS;
        for (at, slot) in node.inputs.iter().enumerate() {
            let input = slot.and_then(|id| {
                let again = many || node.inputs[at + 1..].contains(slot);
                let value = &mut self.values[id.index()];
                // The last reader owns the value.
                if self.last_use[id.index()] == index && !again {
                    value.take()
                } else {
                    value.clone()
                }
            });
            inputs.push(input);
        }
        let outputs = compute(node, inputs)
            .map_err(|error| GraphError::at(self.graph.place(index), error))?;
        for (slot, datum) in node.outputs.iter().zip(outputs) {
            if let Some(id) = slot {
                self.values[id.index()] = Some(datum);
            }
        }
        Ok(())
    }

    /// The outputs, once every node has been computed.
    ///
    /// # Errors
    /// Fails when one was not computed.
    pub fn outputs(mut self) -> Result<Vec<Datum>, GraphError> {
        let mut outputs = Vec::with_capacity(self.graph.outputs.len());
        for (at, id) in self.graph.outputs.iter().enumerate() {
            let again = self.graph.outputs[at + 1..].contains(id);
            let value = &mut self.values[id.index()];
            let found = if again { value.clone() } else { value.take() };
            outputs.push(found.ok_or_else(|| {
                let name = &self.graph.value(*id).name;
                GraphError::structure(format!("output '{name}' was not computed"))
            })?);
        }
        Ok(outputs)
    }
}

/// Computes one node.
fn compute(node: &Node, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
    let outputs = node.operator.evaluate(inputs)?;
    let wanted = node.outputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if outputs.len() < wanted {
        return Err(OpError::new(format!(
            "the operator gives {} outputs, the node wants {wanted}",
            outputs.len()
        )));
    }
    Ok(outputs)
}
