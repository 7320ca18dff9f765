//! Least work of a plan's dispatches.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Datum, Fact, Graph, Node, ValueId};
use galatea_runtime::{ArithmeticUnit, ArithmeticWork, NodeWork};
use galatea_tensor::{DataType, Tensor};

use super::DeviceAction;
use crate::kernel::{DispatchStep, ShaderBinding, ShaderDispatch};

/// Share of a dispatch in the work of its node: the operands that it sees, memory that the node itself does not
/// know of, and a part of the arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DispatchShare {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Bytes of memory between the dispatches.
    scratch: u64,
    /// Bytes of weights.
    weights: u64,
    /// Its part of the arithmetic, and of how many.
    part: (u64, u64),
    /// Kind of instructions that compute.
    pub(crate) unit: ArithmeticUnit,
}

/// Text by which the source of a shader shows that it multiplies cooperative matrices.
const MATRICES: &str = "coop_mat";

impl DispatchShare {
    /// The shares of the dispatches of a step. The arithmetic belongs to those that read weights, by how
    /// many they read; where none does, to the one with most inputs: those before it arrange operands,
    /// those behind it put parts together.
    pub(crate) fn of(step: &DispatchStep) -> Vec<Self> {
        let mut all: Vec<Self> = step.dispatches.iter().map(|one| Self::seen(one, step)).collect();
        let weights: u64 = all.iter().map(|share| share.weights).sum();
        let most = all.iter().map(|share| share.inputs.len()).max();
        let first = all.iter().position(|share| Some(share.inputs.len()) == most);
        for (at, share) in all.iter_mut().enumerate() {
            share.part = match weights {
                0 => (u64::from(first == Some(at)), 1),
                _ => (share.weights, weights),
            };
        }
        all
    }

    fn seen(dispatch: &ShaderDispatch, step: &DispatchStep) -> Self {
        let unit = match dispatch.shader.source.contains(MATRICES) {
            true => ArithmeticUnit::Matrix,
            false => ArithmeticUnit::Vector,
        };
        let inputs = Vec::new();
        let outputs = Vec::new();
        let mut share = Self { inputs, outputs, scratch: 0, weights: 0, part: (0, 1), unit };
        for binding in &dispatch.bindings {
            match binding {
                ShaderBinding::Input(at) if !share.inputs.contains(at) => share.inputs.push(*at),
                ShaderBinding::Output(at) if !share.outputs.contains(at) => share.outputs.push(*at),
                ShaderBinding::Input(_) | ShaderBinding::Output(_) => {}
                ShaderBinding::Scratch(at) => {
                    share.scratch += step.scratch.get(*at).copied().unwrap_or(0);
                }
                ShaderBinding::Weights(block) => share.weights += block.bytes(),
                ShaderBinding::Part(_, _, bytes) | ShaderBinding::InputPart(_, _, bytes) => {
                    share.weights += bytes;
                }
            }
        }
        share
    }

    fn work(&self, node: &NodeWork) -> ArithmeticWork {
        let sum =
            |of: &[u64], at: &[usize]| -> u64 { at.iter().filter_map(|&at| of.get(at)).sum() };
        let (own, all) = self.part;
        let part = |amount: u64| {
            let part = u128::from(amount) * u128::from(own) / u128::from(all.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        // Of a table only some rows are read.
        let weights = match node.weights {
            0 => self.weights,
            held => self.weights.min(part(held)),
        };
        let seen = sum(&node.reads, &self.inputs) + sum(&node.writes, &self.outputs);
        ArithmeticWork { operations: part(node.operations), bytes: seen + self.scratch + weights }
    }
}

/// Returns the most work of each dispatch for inputs of these shapes, whatever their elements are.
pub(crate) fn most_work(
    graph: &Graph,
    facts: &[Option<Fact>],
    actions: &[DeviceAction],
) -> Vec<ArithmeticWork> {
    let known = |id: ValueId| facts.get(id.index()).and_then(Option::as_ref);
    let mut nodes: HashMap<usize, NodeWork> = HashMap::new();
    let shares = actions.iter().filter_map(|action| match action {
        DeviceAction::Dispatch { node, share, .. } => Some((*node, share)),
        DeviceAction::Copy { .. } => None,
    });
    let work = |(at, share): (usize, &DispatchShare)| {
        let node = &graph.nodes[at];
        let work = nodes.entry(at).or_insert_with(|| {
            let work = NodeWork::of(node, &known);
            if work.open { longest(node, facts).unwrap_or(work) } else { work }
        });
        share.work(work)
    };
    shares.map(work).collect()
}

/// Returns the work of paged attention whose sequences fill all blocks that they have.
fn longest(node: &Node, facts: &[Option<Fact>]) -> Option<NodeWork> {
    let slot = |at: usize| node.input(at);
    let fact = |at: usize| facts.get(slot(at)?.index())?.as_ref();
    let shape = |at: usize| fact(at).and_then(Fact::known_shape);
    let number = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    let rows = *shape(0)?.first()?;
    let blocks = shape(7)?;
    let sequences = *blocks.first()?;
    let context = blocks.get(1)?.saturating_mul(*shape(3)?.get(BLOCK_AXIS)?);
    // All sequences have a row at least, and the first one has the others.
    let first = rows.saturating_sub(sequences.saturating_sub(1));
    let starts = [0].into_iter().chain((0..sequences).map(|at| number(first + at)));
    let starts = Tensor::vector(starts.collect::<Vec<i64>>());
    let lengths = Tensor::vector(vec![number(context); sequences]);
    let told = [(slot(5)?, starts), (slot(6)?, lengths)].map(|(id, numbers)| {
        let fact = facts.get(id.index()).and_then(Option::as_ref)?;
        Some((id, Fact { value: Some(numbers), ..fact.clone() }))
    });
    let told: HashMap<ValueId, Fact> = told.into_iter().collect::<Option<_>>()?;
    let known =
        |id: ValueId| told.get(&id).or_else(|| facts.get(id.index()).and_then(Option::as_ref));
    Some(NodeWork::of(node, &known)).filter(|work| !work.open)
}

/// Axis of a cache along which the positions of a block lie.
const BLOCK_AXIS: usize = 3;

/// The work of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanWork {
    /// Work of each dispatch, without what depends on elements of inputs.
    fixed: Vec<ArithmeticWork>,
    /// Nodes whose work depends on them.
    open: HashSet<usize>,
    /// Facts of the operands of those nodes.
    facts: HashMap<ValueId, Fact>,
}

impl PlanWork {
    /// The work of dispatches with what is known of values.
    pub(crate) fn new(graph: &Graph, facts: &[Option<Fact>], actions: &[DeviceAction]) -> Self {
        let mut plan = Self::default();
        let mut nodes: HashMap<usize, NodeWork> = HashMap::new();
        let known = |id: ValueId| facts[id.index()].as_ref();
        for action in actions {
            let DeviceAction::Dispatch { node, share, .. } = action else { continue };
            let work =
                nodes.entry(*node).or_insert_with(|| NodeWork::of(&graph.nodes[*node], &known));
            if work.open {
                plan.open.insert(*node);
                let node = &graph.nodes[*node];
                let operands = node.inputs.iter().chain(&node.outputs).flatten();
                let fact = |&id: &ValueId| Some((id, facts[id.index()].clone()?));
                plan.facts.extend(operands.filter_map(fact));
            }
            plan.fixed.push(share.work(work));
        }
        plan
    }

    /// The work of all dispatches of a run with these inputs.
    pub(crate) fn total(
        &self,
        graph: &Graph,
        actions: &[DeviceAction],
        inputs: &[Datum],
    ) -> ArithmeticWork {
        self.of_run(graph, actions, inputs)
            .into_iter()
            .fold(ArithmeticWork::default(), ArithmeticWork::plus)
    }

    /// The work of each dispatch of a run with these inputs.
    pub(crate) fn of_run(
        &self,
        graph: &Graph,
        actions: &[DeviceAction],
        inputs: &[Datum],
    ) -> Vec<ArithmeticWork> {
        let mut all = self.fixed.clone();
        if self.open.is_empty() {
            return all;
        }
        let numbers = |(&id, input): (&ValueId, &Datum)| {
            let fact = self.facts.get(&id)?;
            let tensor = input.as_tensor()?;
            // Lists of numbers come from the host; to look at a cache would bring it there.
            matches!(fact.dtype, DataType::Int64 | DataType::Int32)
                .then(|| (id, Fact { value: Some(tensor.clone()), ..fact.clone() }))
        };
        let told: HashMap<ValueId, Fact> =
            graph.inputs.iter().zip(inputs).filter_map(numbers).collect();
        let known = |id: ValueId| told.get(&id).or_else(|| self.facts.get(&id));
        let shares = actions.iter().filter_map(|action| match action {
            DeviceAction::Dispatch { node, share, .. } => Some((*node, share)),
            DeviceAction::Copy { .. } => None,
        });
        let mut last: Option<(usize, NodeWork)> = None;
        for (at, (node, share)) in shares.enumerate() {
            if !self.open.contains(&node) {
                continue;
            }
            let work = match last.take() {
                Some((known, work)) if known == node => work,
                _ => NodeWork::of(&graph.nodes[node], &known),
            };
            all[at] = share.work(&work);
            last = Some((node, work));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use galatea_graph::{AttributeValue, Attributes, infer};

    use super::*;
    use crate::device::KernelShader;

    fn dispatch(source: &str, bindings: Vec<ShaderBinding>) -> ShaderDispatch {
        ShaderDispatch {
            shader: KernelShader::new("s", source),
            bindings,
            params: Vec::new(),
            groups: [1; 3],
        }
    }

    #[test]
    fn the_dispatch_with_most_operands_has_the_arithmetic() {
        let mut step = DispatchStep::default();
        let parts = step.scratch(100);
        step.dispatches = vec![
            dispatch("", vec![ShaderBinding::Input(0), ShaderBinding::Scratch(parts)]),
            dispatch(
                "coop_mat",
                vec![
                    ShaderBinding::Input(0),
                    ShaderBinding::Input(1),
                    ShaderBinding::Scratch(parts),
                ],
            ),
            dispatch("", vec![ShaderBinding::Scratch(parts), ShaderBinding::Output(0)]),
        ];
        let shares = DispatchShare::of(&step);
        let node =
            NodeWork { operations: 7, reads: vec![10, 20], writes: vec![5], ..NodeWork::default() };
        let works: Vec<ArithmeticWork> = shares.iter().map(|share| share.work(&node)).collect();
        let work = |operations, bytes| ArithmeticWork { operations, bytes };
        assert_eq!(works, [work(0, 110), work(7, 130), work(0, 105)]);
        let units: Vec<ArithmeticUnit> = shares.iter().map(|share| share.unit).collect();
        assert_eq!(units, [ArithmeticUnit::Vector, ArithmeticUnit::Matrix, ArithmeticUnit::Vector]);
    }

    /// Paged attention of so many rows of two sequences, with up to 100 blocks of 8 positions each.
    fn paged(rows: usize) -> (Graph, Vec<Option<Fact>>) {
        let mut graph = Graph::new("paged");
        graph.opsets = [("ai.galatea".to_owned(), 1)].into_iter().collect();
        let whole = DataType::Int64;
        let real = DataType::Fp32;
        let inputs: [(DataType, &[usize]); 8] = [
            (real, &[rows, 16]),
            (real, &[rows, 8]),
            (real, &[rows, 8]),
            (real, &[100, 2, 4, 8]),
            (real, &[100, 2, 8, 4]),
            (whole, &[3]),
            (whole, &[2]),
            (whole, &[2, 100]),
        ];
        let declared = |(at, (dtype, shape)): (usize, (DataType, &[usize]))| {
            let id = graph.value_named(&format!("i{at}"));
            graph.value_mut(id).declared = Some(Fact::fixed(dtype, shape));
            id
        };
        let given: Vec<ValueId> = inputs.into_iter().enumerate().map(declared).collect();
        let made: Vec<ValueId> = ["o", "keys", "values"].map(|name| graph.value_named(name)).into();
        let mut attributes = Attributes::new();
        for (name, value) in [("num_heads", 4), ("kv_num_heads", 2)] {
            attributes.insert(name.to_owned(), AttributeValue::Int(value));
        }
        let slots = |ids: &[ValueId]| ids.iter().copied().map(Some).collect();
        let (from, to) = (slots(&given), slots(&made));
        graph.add_node("ai.galatea", "PagedAttention", "", &attributes, from, to).unwrap();
        (graph.inputs, graph.outputs) = (given, made);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        (graph, facts)
    }

    #[test]
    fn the_most_work_of_paged_attention_fills_the_blocks_that_there_are() {
        let operations = |rows| {
            let (graph, facts) = paged(rows);
            let node = &graph.nodes[0];
            let known = |id: ValueId| facts[id.index()].as_ref();
            assert!(NodeWork::of(node, &known).open);
            longest(node, &facts).unwrap().operations
        };
        // Each row meets nearly 800 positions with 4 heads, for scores and for sums of values.
        let all = |rows: u64| 2 * rows * 800 * 4 * (4 + 4);
        assert_eq!(operations(2), all(2));
        assert!(operations(64) <= all(64) && operations(64) > all(64) * 9 / 10);
    }
}
