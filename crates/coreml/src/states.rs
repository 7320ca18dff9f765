//! States: what a function finds and leaves, in place of inputs and outputs of its graph.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_formats::coreml::{FeatureShapes, FeatureType, ModelFeature};
use galatea_graph::{Fact, Graph, Node, ValueId};

use super::emit::ProgramEmitter;
use super::lengths::{LengthElement, SliceTake};
use super::state_slot::StateSlot;
use super::unwritable::{Result, UnwritableNode, refuse};

/// The set of operators that came with states.
const SINCE: u32 = 8;

/// A state of FP16: values that a run of the graph is given and gives.
///
/// One of several parts has them along its first axis, which is of length 1 in each: the Neural Engine
/// likes few states better than many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewState {
    /// Its name.
    pub name: String,
    /// For each part, the input, and the output that is the input of the next run.
    pub parts: Vec<[String; 2]>,
}

/// The states of a function while it is written.
#[derive(Debug, Default)]
pub(super) struct FunctionState {
    /// The states' entries in the package's description.
    pub(super) features: Vec<ModelFeature>,
    /// Slots that are written after everything is computed.
    last: Vec<StateSlot>,
}

impl FunctionState {
    /// Adds the states to a function, and reads those values that a run needs as they were. Where an
    /// update of some positions is all that becomes of a value, that is written in place.
    ///
    /// # Errors
    /// Fails when the graph has no such values, or they have no form as a state.
    pub(super) fn declare(
        emit: &mut ProgramEmitter<'_>,
        graph: &Graph,
        facts: &[Option<Fact>],
        all: &[NewState],
    ) -> Result<Self> {
        let mut states = Self::default();
        if !all.is_empty() && emit.opset() < SINCE {
            return refuse("states, which came with version 9 of the format");
        }
        let consumers = graph.consumers();
        let mut read = Vec::new();
        for state in all {
            let parts = state.parts.len();
            let mut shape: Option<Vec<usize>> = None;
            let mut ids = Vec::with_capacity(parts);
            for [input, output] in &state.parts {
                let (before, after) = ends(graph, input, output)?;
                for id in [before, after] {
                    let fact = facts.get(id.index()).and_then(Option::as_ref);
                    let found =
                        fact.filter(|fact| fact.dtype.is_float()).and_then(Fact::known_shape);
                    let Some(found) = found else {
                        return refuse(format!(
                            "state '{}' is of floats with known lengths",
                            state.name
                        ));
                    };
                    let fits = shape.as_ref().is_none_or(|shape| *shape == found)
                        && (parts == 1 || found.first() == Some(&1));
                    if !fits {
                        return refuse(format!("part {found:?} of state '{}'", state.name));
                    }
                    shape = Some(found);
                }
                ids.push((before, after));
            }
            let Some(mut shape) = shape else {
                return refuse(format!("state '{}' without parts", state.name));
            };
            if parts > 1 {
                shape[0] = parts;
            }
            let var = emit.builder().state(&state.name, MilElement::Fp16, &shape)?;
            states.features.push(feature(var.name(), &shape));
            for (part, (before, after)) in ids.into_iter().enumerate() {
                let slot =
                    StateSlot { state: var.clone(), part, parts, shape: shape.clone(), after };
                match is_updated(graph, &consumers, before, after) {
                    true => {
                        emit.slots.insert(before, slot);
                    }
                    false => {
                        read.push((before, slot.clone()));
                        states.last.push(slot);
                    }
                }
            }
        }
        for (before, slot) in read {
            let whole = slot.read(emit)?;
            let part = slot.part_of(emit, &whole)?;
            emit.set(before, part);
        }
        Ok(states)
    }

    /// Writes what was not written in place.
    ///
    /// # Errors
    /// Fails when a value has no form.
    pub(super) fn finish(self, emit: &mut ProgramEmitter<'_>) -> Result<Vec<ModelFeature>> {
        for slot in self.last {
            let data = emit.value(slot.after)?;
            let data = emit.cast(&data, MilElement::Fp16)?;
            let data = match slot.parts {
                1 => data,
                _ => {
                    let whole = slot.read(emit)?;
                    let rank = slot.shape.len();
                    let cut = SliceTake::whole(rank).range(0, slot.part, slot.part + 1)?;
                    emit.update(&whole, &data, cut)?
                }
            };
            slot.write(emit, &data)?;
        }
        Ok(self.features)
    }
}

/// An input and an output of a graph by their names.
fn ends(graph: &Graph, input: &str, output: &str) -> Result<(ValueId, ValueId)> {
    let find = |name: &str, among: &[ValueId]| {
        among.iter().copied().find(|&id| graph.value(id).name == name)
    };
    match (find(input, &graph.inputs), find(output, &graph.outputs)) {
        (Some(before), Some(after)) => Ok((before, after)),
        _ => refuse(format!("there is no input '{input}' and output '{output}'")),
    }
}

/// Returns whether all that a graph does with an input is to write positions into it, which gives an
/// output.
fn is_updated(graph: &Graph, consumers: &[Vec<usize>], before: ValueId, after: ValueId) -> bool {
    let Some([only]) = consumers.get(before.index()).map(Vec::as_slice) else { return false };
    let Some(node) = graph.nodes.get(*only) else { return false };
    let mut given = after;
    while let Some(view) = graph.nodes.iter().find(|node| node.output(0) == Some(given))
        && view.op_type == "Identity"
        && let Some(input) = view.input(0)
    {
        given = input;
    }
    node.op_type == "TensorScatter"
        && node.input(0) == Some(before)
        && node.output(0) == Some(given)
        && !graph.outputs.contains(&before)
}

fn feature(name: &str, shape: &[usize]) -> ModelFeature {
    ModelFeature {
        name: name.to_owned(),
        description: String::new(),
        kind: FeatureType::Array {
            dtype: MilElement::Fp16.stored_as(),
            shape: shape.to_vec(),
            shapes: FeatureShapes::Fixed,
            default: None,
        },
        optional: false,
    }
}

impl StateSlot {
    /// Reads the state.
    fn read(&self, emit: &mut ProgramEmitter<'_>) -> Result<MilVar> {
        if let Some(known) = emit.held.get(&self.state) {
            return Ok(known.clone());
        }
        let whole = emit.op("read_state", vec![("input", (&self.state).into())])?;
        emit.held.insert(self.state.clone(), whole.clone());
        Ok(whole)
    }

    fn write(&self, emit: &mut ProgramEmitter<'_>, data: &MilVar) -> Result<()> {
        emit.held.remove(&self.state);
        let inputs = vec![("input", (&self.state).into()), ("data", data.into())];
        emit.op_of("write_state", inputs, 0).map(|_| ())
    }

    /// The part of the state that the value is.
    fn part_of(&self, emit: &mut ProgramEmitter<'_>, whole: &MilVar) -> Result<MilVar> {
        match self.parts {
            1 => Ok(whole.clone()),
            _ => emit
                .cut(whole, SliceTake::whole(self.shape.len()).range(0, self.part, self.part + 1)?),
        }
    }

    /// Writes an update into the state where a cut of the value says, and gives the value after that:
    /// from the state, as converters have it, so that nothing is copied.
    pub(crate) fn update(
        &self,
        emit: &mut ProgramEmitter<'_>,
        update: &MilVar,
        mut cut: SliceTake,
    ) -> Result<MilVar> {
        if self.parts > 1 {
            cut = cut.range(0, self.part, self.part + 1)?;
        }
        let update = emit.cast(update, MilElement::Fp16)?;
        let whole = self.read(emit)?;
        let written = emit.update(&whole, &update, cut)?;
        self.write(emit, &written)?;
        let whole = self.read(emit)?;
        self.part_of(emit, &whole)
    }
}

impl ProgramEmitter<'_> {
    /// A value with a part of it written over.
    ///
    /// # Errors
    /// Before the set of operators that has it.
    pub(crate) fn update(&mut self, x: &MilVar, update: &MilVar, cut: SliceTake) -> Result<MilVar> {
        if self.opset() < SINCE {
            return refuse(
                "positions that are written over, which came with version 9 of the format",
            );
        }
        let none = vec![false; cut.stride.len()];
        let begin = self.vector(cut.begin)?;
        let end = self.vector(cut.end)?;
        let inputs = vec![
            ("x", x.into()),
            ("update", update.into()),
            ("begin", begin),
            ("end", end),
            ("stride", MilArg::Ints(cut.stride)),
            ("begin_mask", MilArg::Bools(none)),
            ("end_mask", MilArg::Bools(cut.to_last)),
            ("squeeze_mask", MilArg::Bools(cut.single)),
        ];
        self.op("slice_update", inputs)
    }

    /// The state that holds the first input of a node, where it is written in place.
    pub(crate) fn slot(&self, node: &Node) -> Option<StateSlot> {
        self.slots.get(&node.input(0)?).cloned()
    }

    /// The positions from `start` on, a vector of one element, along an axis: as many as `count`.
    pub(crate) fn from(
        &mut self,
        rank: usize,
        axis: usize,
        start: &MilVar,
        count: i32,
    ) -> Result<SliceTake> {
        let end = self.op("add", vec![("x", start.into()), ("y", MilArg::Int(count))])?;
        let mut cut = SliceTake::whole(rank);
        let places = (cut.begin.get_mut(axis), cut.end.get_mut(axis), cut.to_last.get_mut(axis));
        let (Some(begin), Some(last), Some(whole)) = places else {
            return Err(UnwritableNode(format!("axis {axis} of {rank}")));
        };
        (*begin, *last, *whole) =
            (LengthElement::Found(start.clone()), LengthElement::Found(end), false);
        Ok(cut)
    }
}
