//! What the dispatches of a plan have to do at least.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Datum, Fact, Graph, ValueId};
use galatea_runtime::{NodeWork, Unit, Work};
use galatea_tensor::DataType;

use super::Action;
use crate::kernel::{Binding, Dispatch, Step};

/// What a dispatch has of the work of its node: the operands that it sees, memory that the node itself
/// knows nothing of, and a part of the arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Bytes of memory between the dispatches.
    scratch: u64,
    /// Bytes of weights.
    weights: u64,
    /// Its part of the arithmetic, and of how many.
    part: (u64, u64),
    /// What computes.
    pub(crate) unit: Unit,
}

/// How the text of a shader says that it multiplies matrices as a whole.
const MATRICES: &str = "coop_mat";

impl Share {
    /// The shares of the dispatches of a step. The arithmetic belongs to those that read weights, by how
    /// many they read; where none does, to the one with most inputs: those before it arrange operands,
    /// those behind it put parts together.
    pub(crate) fn of(step: &Step) -> Vec<Self> {
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

    fn seen(dispatch: &Dispatch, step: &Step) -> Self {
        let unit = match dispatch.shader.source.contains(MATRICES) {
            true => Unit::Matrix,
            false => Unit::Vector,
        };
        let (inputs, outputs) = (Vec::new(), Vec::new());
        let mut share = Self { inputs, outputs, scratch: 0, weights: 0, part: (0, 1), unit };
        for binding in &dispatch.bindings {
            match binding {
                Binding::Input(at) if !share.inputs.contains(at) => share.inputs.push(*at),
                Binding::Output(at) if !share.outputs.contains(at) => share.outputs.push(*at),
                Binding::Input(_) | Binding::Output(_) => {}
                Binding::Scratch(at) => {
                    share.scratch += step.scratch.get(*at).copied().unwrap_or(0);
                }
                Binding::Weights(block) => share.weights += block.bytes(),
                Binding::Part(_, _, bytes) | Binding::InputPart(_, _, bytes) => {
                    share.weights += bytes;
                }
            }
        }
        share
    }

    fn work(&self, node: &NodeWork) -> Work {
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
        Work { operations: part(node.operations), bytes: seen + self.scratch + weights }
    }
}

/// The work of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanWork {
    /// Of each dispatch, without what depends on elements of inputs.
    fixed: Vec<Work>,
    /// Nodes whose work depends on them.
    open: HashSet<usize>,
    /// What is known of the operands of those nodes.
    facts: HashMap<ValueId, Fact>,
}

impl PlanWork {
    /// The work of dispatches with what is known of values.
    pub(crate) fn new(graph: &Graph, facts: &[Option<Fact>], actions: &[Action]) -> Self {
        let mut plan = Self::default();
        let mut nodes: HashMap<usize, NodeWork> = HashMap::new();
        let known = |id: ValueId| facts[id.index()].as_ref();
        for action in actions {
            let Action::Dispatch { node, share, .. } = action else { continue };
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
    pub(crate) fn total(&self, graph: &Graph, actions: &[Action], inputs: &[Datum]) -> Work {
        self.of_run(graph, actions, inputs).into_iter().fold(Work::default(), Work::plus)
    }

    /// The work of each dispatch of a run with these inputs.
    pub(crate) fn of_run(&self, graph: &Graph, actions: &[Action], inputs: &[Datum]) -> Vec<Work> {
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
            Action::Dispatch { node, share, .. } => Some((*node, share)),
            Action::Copy { .. } => None,
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
    use crate::device::Shader;

    fn dispatch(source: &str, bindings: Vec<Binding>) -> Dispatch {
        Dispatch { shader: Shader::new("s", source), bindings, params: Vec::new(), groups: [1; 3] }
    }

    #[test]
    fn the_dispatch_with_most_operands_has_the_arithmetic() {
        let mut step = Step::default();
        let parts = step.scratch(100);
        step.dispatches = vec![
            dispatch("", vec![Binding::Input(0), Binding::Scratch(parts)]),
            dispatch(
                "coop_mat",
                vec![Binding::Input(0), Binding::Input(1), Binding::Scratch(parts)],
            ),
            dispatch("", vec![Binding::Scratch(parts), Binding::Output(0)]),
        ];
        let shares = Share::of(&step);
        let node =
            NodeWork { operations: 7, reads: vec![10, 20], writes: vec![5], ..NodeWork::default() };
        let works: Vec<Work> = shares.iter().map(|share| share.work(&node)).collect();
        let work = |operations, bytes| Work { operations, bytes };
        assert_eq!(works, [work(0, 110), work(7, 130), work(0, 105)]);
        let units: Vec<Unit> = shares.iter().map(|share| share.unit).collect();
        assert_eq!(units, [Unit::Vector, Unit::Matrix, Unit::Vector]);
    }
}
