//! Least work of a plan's dispatches.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Datum, Fact, Graph, ValueId};
use galatea_runtime::{ArithmeticUnit, ArithmeticWork, NodeWork};
use galatea_tensor::DataType;

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
}
