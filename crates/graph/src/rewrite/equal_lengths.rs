//! Values that certainly hold the same lengths become one, however each is computed: layers that
//! ask the shapes of their own tensors then share masks, positions and biases.

use std::collections::HashMap;

use galatea_tensor::DataType;

use super::ValueMaps;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, ValueId};

/// Type, shape and elements of a scalar or vector of lengths.
type LengthVector = (DataType, Vec<usize>, Vec<Dim>);

pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    let mut first: HashMap<LengthVector, ValueId> = HashMap::new();
    let mut same: HashMap<ValueId, ValueId> = HashMap::new();
    let outputs = graph.outputs.clone();
    for node in &mut graph.nodes {
        for input in node.inputs.iter_mut().flatten() {
            *input = same.get(input).copied().unwrap_or(*input);
        }
        for &id in node.outputs.iter().flatten() {
            let Some(lengths) = lengths(maps, id) else { continue };
            match first.get(&lengths) {
                // An output of the graph keeps its name, so it needs a node that writes it.
                Some(&other) if !outputs.contains(&id) => {
                    same.insert(id, other);
                }
                Some(_) => {}
                None => {
                    first.insert(lengths, id);
                }
            }
        }
    }
    Ok(same.len())
}

/// The lengths that a value holds, where all are certain and one has a name: numbers are constants
/// by now.
fn lengths(maps: &ValueMaps, id: ValueId) -> Option<LengthVector> {
    let fact = maps.fact(id)?;
    let elements = fact.elements.as_ref()?;
    let certain = !elements.contains(&Dim::Unknown)
        && elements.iter().any(|dim| matches!(dim, Dim::Symbol(_)));
    (certain && fact.value.is_none()).then_some((fact.dtype, fact.known_shape()?, elements.clone()))
}
