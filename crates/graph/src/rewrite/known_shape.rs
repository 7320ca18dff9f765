//! A `Reshape` whose target is computed in the run, but known by its lengths' names, gets a constant
//! target, so that the computation of the target disappears.

use galatea_tensor::Tensor;

use super::ValueMaps;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node};
use crate::ops::shape::Reshape;

pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    let mut times = 0;
    for index in 0..graph.nodes.len() {
        let Some(target) = constant_target(graph, maps, &graph.nodes[index]) else { continue };
        let Ok(tensor) = Tensor::from_vec(&[target.len()], target) else { continue };
        let name = graph.nodes[index].name.clone();
        let constant = graph.add_constant(&format!("{name}.shape"), tensor);
        let node = &mut graph.nodes[index];
        node.inputs[1] = Some(constant);
        node.operator = std::sync::Arc::new(Reshape { allow_zero: false }) as _;
        times += 1;
    }
    Ok(times)
}

/// The target of numbers, copied axes (0) and at most one open axis (-1) that gives the shape which
/// inference sees.
fn constant_target(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<Vec<i64>> {
    node.operator::<Reshape>()?;
    let data = node.input(0)?;
    let shape = node.input(1)?;
    if graph.constant(shape).is_some() {
        return None;
    }
    let input = maps.fact(data)?.shape.as_ref()?;
    let output = maps.fact(node.output(0)?)?.shape.as_ref()?;
    let copied: Vec<bool> = output
        .iter()
        .enumerate()
        .map(|(at, dim)| input.get(at).is_some_and(|i| i.same(dim)))
        .collect();
    let entry = |(at, dim): (usize, &Dim)| match dim {
        // A 0 would copy the input's axis.
        Dim::Known(0) => None,
        Dim::Known(len) => i64::try_from(*len).ok(),
        Dim::Symbol(_) if copied[at] => Some(0),
        _ => Some(-1),
    };
    let target: Vec<i64> = collected_some(&mut output.iter().enumerate().map(entry))?;
    let open = target.iter().filter(|&&entry| entry == -1).count();
    // An open axis beside a copied one of length 0 could have any length.
    let certain = open == 0 || (open == 1 && !target.contains(&0));
    certain.then_some(target)
}
