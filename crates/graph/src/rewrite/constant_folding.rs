//! Nodes whose result does not depend on the run's inputs are computed once.

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::{OpDef, OperatorInputs};
use crate::ops;
use crate::ops::quantize::DequantizeLinear;

/// Elements that folding may add to a graph beside as many as its constants have: a node of a few bytes
/// can stand for gigabytes that are cheaper to make in each run. Weights that a model makes of such a
/// node are smaller, and kernels pack only constants.
const MAX_GROWTH: usize = 1 << 23;
/// Elements of a size that a string counts for.
const STRING_ELEMENTS: usize = 8;
/// Nodes of up to this many elements are folded whatever they do: the square is still a number of
/// steps that takes seconds.
const FEW_ELEMENTS: usize = 1 << 15;
/// The most multiplications of a matrix product that is folded.
const MAX_STEPS: usize = 1 << 31;

/// Families whose operators take about as many steps as they have elements.
const LINEAR: &[&[OpDef]] = &[
    ops::activation::OPS,
    ops::cast::OPS,
    ops::generate::OPS,
    ops::index::OPS,
    ops::logic::OPS,
    ops::math::OPS,
    ops::normalize::OPS,
    ops::quantize::OPS,
    ops::reduce::OPS,
    ops::shape::OPS,
];

/// Folds everything but weights that are dequantised: the rules about quantised values look for
/// these.
pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    fold(graph, maps, |node| node.operator::<DequantizeLinear>().is_none())
}

/// Folds weights that are dequantised.
pub(super) fn dequantized(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    fold(graph, maps, |node| node.operator::<DequantizeLinear>().is_some())
}

fn fold(
    graph: &mut Graph,
    maps: &ValueMaps,
    wanted: impl Fn(&Node) -> bool,
) -> Result<usize, GraphError> {
    let mut times = 0;
    let mut budget = FoldingBudget::new(graph);
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        if !wanted(node) {
            continue;
        }
        let mut outputs = node.outputs.iter().flatten().copied().peekable();
        if outputs.peek().is_none() || outputs.any(|id| stays(graph, id)) {
            continue;
        }
        let values = known(graph, maps, node, &mut budget)
            .map_err(|error| GraphError::at(graph.place(index), error))?;
        let Some(values) = values else { continue };
        let slots = std::mem::take(&mut graph.nodes[index].outputs);
        for (slot, value) in slots.iter().zip(values) {
            if let Some(id) = slot {
                graph.value_mut(*id).initializer = Some(value);
            }
        }
        budget.release(graph, index);
        times += 1;
    }
    graph.nodes.retain(|node| node.outputs.iter().any(Option::is_some));
    Ok(times)
}

/// Elements that a graph's constants have while nodes are folded one after the other.
struct FoldingBudget {
    /// How often nodes that are not folded and the graph's outputs read each value.
    reads: Vec<usize>,
    /// Elements of all constants.
    held: usize,
    /// The most that they may be.
    limit: usize,
}

impl FoldingBudget {
    /// The budget of a graph. Its limit stays that of the model's own graph, however often it is folded.
    fn new(graph: &mut Graph) -> Self {
        let mut reads = vec![0; graph.values().len()];
        let read = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        for id in read.chain(&graph.outputs) {
            reads[id.index()] += 1;
        }
        let constants = graph.values().iter().filter_map(|value| value.initializer.as_ref());
        let held = constants.map(size).fold(0, usize::saturating_add);
        let usual = held.saturating_mul(2).saturating_add(MAX_GROWTH);
        let limit = *graph.folding_limit.get_or_insert(usual);
        Self { reads, held, limit }
    }

    /// Returns whether the constants stay within their limit while a node of these inputs is computed
    /// and when its results, of so many elements, have taken its place.
    fn admits(&self, node: &Node, inputs: &[Option<&Tensor>], made: usize) -> bool {
        let mut freed: Vec<ValueId> = Vec::new();
        let mut after = self.held.saturating_add(made);
        for (id, tensor) in node.inputs.iter().zip(inputs) {
            if let (Some(id), Some(tensor)) = (id, tensor)
                && !freed.contains(id)
                && self.reads[id.index()]
                    == node.inputs.iter().filter(|slot| **slot == Some(*id)).count()
            {
                freed.push(*id);
                after = after.saturating_sub(size(tensor));
            }
        }
        after <= self.limit
    }

    /// Lets go of the constants that nobody reads but a node that has been folded.
    fn release(&mut self, graph: &mut Graph, index: usize) {
        for id in std::mem::take(&mut graph.nodes[index].inputs).into_iter().flatten() {
            let reads = &mut self.reads[id.index()];
            *reads = reads.saturating_sub(1);
            if *reads == 0
                && let Some(freed) = graph.value_mut(id).initializer.take()
            {
                self.held = self.held.saturating_sub(size(&freed));
            }
        }
    }
}

/// Elements that a tensor counts for.
fn size(tensor: &Tensor) -> usize {
    let each = if tensor.dtype() == DataType::Bytes { STRING_ELEMENTS } else { 1 };
    tensor.elements().saturating_mul(each)
}

/// Returns whether a value needs a node that writes it.
fn stays(graph: &Graph, id: ValueId) -> bool {
    graph.outputs.contains(&id) || graph.constant(id).is_some()
}

/// The node's results, when they are known.
fn known(
    graph: &Graph,
    maps: &ValueMaps,
    node: &Node,
    budget: &mut FoldingBudget,
) -> Result<Option<Vec<Tensor>>, crate::OpError> {
    let fact = |slot: &Option<ValueId>| slot.and_then(|id| maps.fact(id));
    let inferred: Option<Vec<Tensor>> = collected_some(
        &mut node.outputs.iter().map(|slot| fact(slot).and_then(|fact| fact.value.clone())),
    );
    if let Some(inferred) = &inferred {
        // Inference has a bound of its own.
        budget.held = inferred.iter().map(size).fold(budget.held, usize::saturating_add);
    }
    if inferred.is_some() || !node.operator.is_deterministic() {
        return Ok(inferred);
    }
    let inputs: Option<Vec<Option<&Tensor>>> =
        collected_some(&mut node.inputs.iter().map(|slot| match slot {
            None => Some(None),
            Some(id) => graph.constant(*id).map(Some),
        }));
    let Some(inputs) = inputs else { return Ok(None) };
    let given = inputs.iter().flatten().map(|tensor| tensor.elements()).sum();
    let elements = |slot: &Option<ValueId>| -> Option<usize> {
        if slot.is_none() {
            return Some(0);
        }
        let fact = fact(slot).filter(|fact| fact.is_tensor())?;
        let each = if fact.dtype == DataType::Bytes { STRING_ELEMENTS } else { 1 };
        fact.known_shape()?.iter().try_fold(each, |n, &dim| n.checked_mul(dim))
    };
    let made: Option<Vec<usize>> = collected_some(&mut node.outputs.iter().map(elements));
    let Some(made) = made else { return Ok(None) };
    let made = made.iter().fold(0_usize, |sum, &n| sum.saturating_add(n));
    if !budget.admits(node, &inputs, made) || !is_quick(node, &inputs, given, made) {
        return Ok(None);
    }
    budget.held = budget.held.saturating_add(made);
    node.operator.reference(OperatorInputs::new(&inputs)).map(Some)
}

/// Returns whether computing a node takes seconds at most.
fn is_quick(node: &Node, inputs: &[Option<&Tensor>], given: usize, made: usize) -> bool {
    let is = |def: &OpDef| def.domain == node.domain && def.name == node.op_type;
    if given.saturating_add(made) <= FEW_ELEMENTS || LINEAR.iter().any(|all| all.iter().any(is)) {
        return true;
    }
    let product = ["MatMul", "Gemm"].contains(&node.op_type.as_str());
    let axes = inputs.first().copied().flatten().map_or(&[][..], Tensor::shape);
    let inner = axes.iter().rev().take(2).copied().max().unwrap_or(1);
    product && made.saturating_mul(inner) <= MAX_STEPS
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use super::*;
    use crate::attribute::{AttributeValue, Attributes};
    use crate::fact::Fact;
    use crate::rewrite::{RewriteLevel, optimise};

    const LIMIT: usize = 1 << 12;

    struct FoldedGraphMaker(Graph);

    impl FoldedGraphMaker {
        fn new() -> Self {
            let mut graph = Graph::new("test");
            graph.opsets.insert(String::new(), 17);
            graph.folding_limit = Some(LIMIT);
            Self(graph)
        }

        fn constant<T: galatea_tensor::Element>(&mut self, shape: &[usize], all: &[T]) -> ValueId {
            self.0.add_constant("c", Tensor::from_slice(shape, all).unwrap())
        }

        fn node(&mut self, op_type: &str, inputs: &[ValueId], list: &Attributes) -> ValueId {
            let output = self.0.fresh_value(op_type);
            let inputs = inputs.iter().copied().map(Some).collect();
            self.0.add_node("", op_type, "", list, inputs, vec![Some(output)]).unwrap();
            output
        }

        fn input(&mut self, shape: &[usize]) -> ValueId {
            let id = self.0.fresh_value("x");
            self.0.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, shape));
            self.0.inputs.push(id);
            id
        }

        /// Rewrites the graph and returns the elements of its constants.
        fn folded(&mut self, output: ValueId) -> usize {
            self.0.outputs.push(output);
            optimise(&mut self.0, RewriteLevel::O1).unwrap();
            self.0.values().iter().filter_map(|value| value.initializer.as_ref()).map(size).sum()
        }

        fn count(&self, op_type: &str) -> usize {
            self.0.nodes.iter().filter(|node| node.op_type == op_type).count()
        }
    }

    #[test]
    fn constants_that_double_with_every_node_stay_within_the_limit() {
        for op_type in ["Tile", "Concat", "Expand"] {
            let mut made = FoldedGraphMaker::new();
            let mut value = made.constant(&[1, 1], &[1.5_f32]);
            for step in 0..28 {
                value = match op_type {
                    "Tile" => {
                        let twice = made.constant(&[2], &[1_i64, 2]);
                        made.node("Tile", &[value, twice], &Attributes::new())
                    }
                    "Concat" => {
                        let list = [("axis".to_owned(), AttributeValue::Int(1))];
                        made.node("Concat", &[value, value], &list.into_iter().collect())
                    }
                    _ => {
                        let shape = made.constant(&[2], &[2_i64, 1 << step]);
                        let wide = made.node("Expand", &[value, shape], &Attributes::new());
                        let row = made.constant(&[2], &[1_i64, -1]);
                        made.node("Reshape", &[wide, row], &Attributes::new())
                    }
                };
            }
            let total = made.node("ReduceSum", &[value], &Attributes::new());
            let x = made.input(&[1, 1]);
            let y = made.node("Add", &[total, x], &Attributes::new());
            let held = made.folded(y);
            assert!(held <= LIMIT, "{op_type}: {held}");
            let left = made.count(op_type);
            assert!((15..20).contains(&left), "{op_type}: {left} are left to the run");
        }
    }

    #[test]
    fn variants_of_one_weight_stay_within_the_limit() {
        let mut made = FoldedGraphMaker::new();
        let weight = made.constant(&[40, 40], &[0.5_f32; 1600]);
        let mut sum = made.input(&[40, 40]);
        for factor in 0..9_u8 {
            let factor = made.constant(&[], &[f32::from(factor) + 2.0]);
            let variant = made.node("Mul", &[weight, factor], &Attributes::new());
            let x = made.input(&[40, 40]);
            let product = made.node("MatMul", &[x, variant], &Attributes::new());
            sum = made.node("Add", &[sum, product], &Attributes::new());
        }
        let held = made.folded(sum);
        assert!(held <= LIMIT, "{held}");
        assert_eq!(made.count("Mul"), 8, "one fits");
    }

    #[test]
    fn a_chain_of_functions_of_one_weight_needs_no_growth() {
        let mut made = FoldedGraphMaker::new();
        let mut weight = made.constant(&[50, 40], &[0.5_f32; 2000]);
        for _ in 0..30 {
            weight = made.node("Tanh", &[weight], &Attributes::new());
        }
        let x = made.input(&[2, 50]);
        let y = made.node("MatMul", &[x, weight], &Attributes::new());
        assert_eq!(made.folded(y), 2000);
        assert_eq!(made.count("Tanh"), 0);
    }
}
