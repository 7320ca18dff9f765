//! Stages of a run: what follows from the shapes of the inputs is planned first, the rest when its lengths appear.
//!
//! Some lengths are known only from values: how many elements are not zero, which boxes are kept, how long a sound
//! is. A stage ends before the nodes that need such a length. The next one is planned with the shapes that the run
//! has found, and with the values of short tensors that say lengths, such as the target of a `Reshape`.

use std::collections::HashMap;

use galatea_graph::{Datum, Fact, Graph, Node, OperatorInputs, ValueId, infer};
use galatea_runtime::RuntimeError;
use galatea_tensor::{DataType, OwnedTensor, Tensor};

/// Most elements of a tensor that is looked at for the lengths that it may say.
const MAX_LENGTHS: usize = 64;

/// Beginning of a stage: what is known and computed before it.
#[derive(Clone, Debug)]
pub(super) struct StageStart {
    /// Facts of all values.
    pub(super) facts: Vec<Option<Fact>>,
    /// Nodes that earlier stages have computed.
    pub(super) done: Vec<bool>,
    /// Values that the stage is given, in the order in which a run holds them.
    pub(super) inputs: Vec<ValueId>,
}

/// Value that a stage hands to later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CarriedValue {
    pub(super) id: ValueId,
    /// True if lengths follow from its elements: the next plan holds for these alone.
    pub(super) says_lengths: bool,
}

/// End of a stage that others follow.
#[derive(Debug)]
pub(super) struct StageEnd {
    facts: Vec<Option<Fact>>,
    done: Vec<bool>,
    /// Values for later stages, in the order of the outputs of this one.
    pub(super) carried: Vec<CarriedValue>,
}

/// Nodes of a stage, and what follows it.
pub(super) struct StageDivision {
    /// Nodes that the stage computes.
    pub(super) now: Vec<bool>,
    /// Values that it hands on; `None` for the last stage.
    pub(super) end: Option<StageEnd>,
}

/// Infers the facts of all values of a graph, for a run with inputs of these shapes.
///
/// # Errors
/// Returns an error if an operator refuses them.
pub(super) fn facts_of(graph: &Graph, inputs: &[Datum]) -> Result<Vec<Option<Fact>>, RuntimeError> {
    let fixed = |(&id, input): (&ValueId, &Datum)| {
        input.as_tensor().map(|tensor| (id, Fact::fixed(tensor.dtype(), tensor.shape())))
    };
    let known: HashMap<ValueId, Fact> = graph.inputs.iter().zip(inputs).filter_map(fixed).collect();
    Ok(infer::facts(graph, &known)?)
}

impl StageStart {
    /// Begins a run with inputs of these shapes.
    ///
    /// # Errors
    /// Fails when an operator refuses them.
    pub(super) fn first(graph: &Graph, inputs: &[Datum]) -> Result<Self, RuntimeError> {
        let facts = facts_of(graph, inputs)?;
        Ok(Self { facts, done: vec![false; graph.nodes.len()], inputs: graph.inputs.clone() })
    }

    /// Divides the nodes that are left: those of this stage, and those whose lengths appear by it.
    ///
    /// `kernels` says which nodes gain by known lengths; where none of the later ones does, all are of this stage.
    pub(super) fn divide(
        &self,
        graph: &Graph,
        needed: &[bool],
        wanted: &[bool],
        kernels: &[bool],
    ) -> StageDivision {
        let left: Vec<bool> = needed.iter().zip(&self.done).map(|(n, done)| *n && !done).collect();
        let (late, lengths) = self.later(graph, &left);
        if !late.iter().zip(kernels).any(|(late, has_kernel)| *late && *has_kernel) {
            return StageDivision { now: left, end: None };
        }
        let now: Vec<bool> = left.iter().zip(&late).map(|(left, late)| *left && !late).collect();
        let done = self.done.iter().zip(&now).map(|(done, now)| *done || *now).collect();
        let carried = self.carried(graph, &late, wanted, &lengths);
        let facts = self.facts.clone();
        StageDivision { now, end: Some(StageEnd { facts, done, carried }) }
    }

    /// Returns which of the nodes that are left need a length or a value that this stage finds, and the values whose
    /// elements say lengths.
    fn later(&self, graph: &Graph, left: &[bool]) -> (Vec<bool>, Vec<ValueId>) {
        let mut late = vec![false; graph.nodes.len()];
        let mut hidden = vec![false; self.facts.len()];
        let mut lengths = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate().filter(|(index, _)| left[*index]) {
            let mut read = node.inputs.iter().flatten();
            let mut is_late = read.any(|id| hidden[id.index()]);
            let is_open = !node.outputs.iter().flatten().all(|&id| self.has_shape(id));
            if is_open && !is_late {
                let told = self.lengths_of(node);
                is_late = !told.is_empty();
                lengths.extend(told);
            }
            late[index] = is_late;
            for &id in node.outputs.iter().flatten() {
                // What is computed now, and has no shape yet, is for later stages.
                hidden[id.index()] = is_late || !self.has_shape(id);
            }
        }
        (late, lengths)
    }

    fn fact(&self, id: ValueId) -> Option<&Fact> {
        self.facts.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns whether the shape of a value is known, or it has none.
    fn has_shape(&self, id: ValueId) -> bool {
        self.fact(id).is_some_and(|fact| !fact.is_tensor() || fact.known_shape().is_some())
    }

    /// Returns the short inputs of a node whose elements would tell the shapes of its outputs.
    fn lengths_of(&self, node: &Node) -> Vec<ValueId> {
        // Behind the first input stand parameters; a few operators have nothing but parameters.
        let behind = self.unknown_numbers(node, 1);
        if !behind.is_empty() && self.tell(node, &behind) {
            return behind;
        }
        let all = self.unknown_numbers(node, 0);
        if all.len() > behind.len() && self.tell(node, &all) {
            return all;
        }
        Vec::new()
    }

    /// Returns the inputs from a position on that are short lists of numbers which are not known yet.
    fn unknown_numbers(&self, node: &Node, from: usize) -> Vec<ValueId> {
        let is_short = |id: &ValueId| {
            let fact = self.fact(*id).filter(|fact| fact.is_tensor() && fact.value.is_none());
            fact.filter(|fact| is_number(fact.dtype)).and_then(Fact::known_shape).is_some_and(
                |shape| shape.len() <= 1 && shape.iter().product::<usize>() <= MAX_LENGTHS,
            )
        };
        node.inputs.iter().skip(from).flatten().copied().filter(is_short).collect()
    }

    /// Returns whether the operator's inference looks at these values: with made-up ones it knows its shapes, or
    /// refuses them.
    fn tell(&self, node: &Node, values: &[ValueId]) -> bool {
        let made = |id: ValueId| {
            let fact = self.fact(id)?;
            Some(Fact::constant(made_up(fact.dtype, &fact.known_shape()?)?))
        };
        let mut inputs: Vec<Option<Fact>> = Vec::with_capacity(node.inputs.len());
        for slot in &node.inputs {
            let fact = slot.and_then(|id| if values.contains(&id) { made(id) } else { None });
            inputs.push(fact.or_else(|| slot.and_then(|id| self.fact(id)).cloned()));
        }
        let inputs: Vec<Option<&Fact>> = inputs.iter().map(Option::as_ref).collect();
        let found = node.operator.infer(OperatorInputs::new(&inputs));
        found.map_or(true, |facts| facts.iter().all(|fact| fact.known_shape().is_some()))
    }

    /// Returns what later nodes and the graph's outputs need of what there is at the end of the stage.
    fn carried(
        &self,
        graph: &Graph,
        late: &[bool],
        wanted: &[bool],
        lengths: &[ValueId],
    ) -> Vec<CarriedValue> {
        let later = |index: usize| late[index];
        let mut to_come = vec![false; self.facts.len()];
        let nodes = graph.nodes.iter().enumerate().filter(|(index, _)| later(*index));
        for (_, node) in nodes.clone() {
            node.outputs.iter().flatten().for_each(|id| to_come[id.index()] = true);
        }
        let read = nodes.flat_map(|(_, node)| node.inputs.iter().flatten());
        let outputs = graph.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        let mut seen = vec![false; self.facts.len()];
        let mut carried = Vec::new();
        for &id in read.chain(outputs.map(|(id, _)| id)) {
            let is_known = self.fact(id).is_none_or(|fact| fact.value.is_some());
            if to_come[id.index()] || is_known || std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            carried.push(CarriedValue { id, says_lengths: lengths.contains(&id) });
        }
        carried
    }
}

impl StageEnd {
    /// Begins the stage that follows, with what the run has found.
    ///
    /// # Errors
    /// Fails when an operator refuses the shapes.
    pub(super) fn next(&self, graph: &Graph, found: &[Datum]) -> Result<StageStart, RuntimeError> {
        let mut facts = self.facts.clone();
        for (carried, datum) in self.carried.iter().zip(found) {
            let Some(tensor) = datum.as_tensor() else { continue };
            facts[carried.id.index()] = Some(match carried.says_lengths {
                true => Fact::constant(tensor.clone()),
                false => Fact::fixed(tensor.dtype(), tensor.shape()),
            });
        }
        infer::renew(graph, &mut facts, &self.done)?;
        let inputs = self.carried.iter().map(|carried| carried.id).collect();
        Ok(StageStart { facts, done: self.done.clone(), inputs })
    }

    /// Returns the values that say lengths, of those that the run has found.
    pub(super) fn lengths(&self, found: &[Datum]) -> Vec<Tensor> {
        let told = self.carried.iter().zip(found).filter(|(carried, _)| carried.says_lengths);
        told.filter_map(|(_, datum)| datum.as_tensor().cloned()).collect()
    }
}

/// Returns whether a type can say lengths or factors of lengths.
fn is_number(dtype: DataType) -> bool {
    !matches!(dtype, DataType::Bytes | DataType::Small(_))
}

/// Makes up elements for a list of numbers; those of all types are zero but for the integers of lengths, 1.
fn made_up(dtype: DataType, shape: &[usize]) -> Option<Tensor> {
    let count = shape.iter().product();
    match dtype {
        DataType::Int64 => Tensor::from_vec(shape, vec![1_i64; count]).ok(),
        DataType::Int32 => Tensor::from_vec(shape, vec![1_i32; count]).ok(),
        DataType::Fp32 => Tensor::from_vec(shape, vec![1_f32; count]).ok(),
        DataType::Fp64 => Tensor::from_vec(shape, vec![1_f64; count]).ok(),
        _ => OwnedTensor::zeroed(dtype, shape).ok().map(OwnedTensor::freeze),
    }
}
