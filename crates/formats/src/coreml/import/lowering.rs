//! A graph that is being made of a program: its nodes, what is known of its values, and what the
//! program's names stand for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, ONNX_DOMAIN, SubgraphAttribute, ValueId, infer,
};
use galatea_tensor::{DataType, Element as Number, Tensor};

use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilElement, MilTensorType, MilType, MilValue};

pub(super) type Result<T> = std::result::Result<T, CoreMlError>;

/// The version of ONNX's operators that graphs are made of.
const OPSET: i64 = 21;
/// The version of `ai.onnx.ml` for classifiers.
const ML_OPSET: i64 = 3;

/// The most elements of a constant that the program does not hold.
const MAX_MADE: usize = 1 << 24;

/// Meaning of a name of the program.
#[derive(Clone, Debug)]
pub(super) enum BoundName {
    /// A value of the graph.
    Value(ValueId),
    /// A constant, which becomes an initializer where a node reads it.
    Constant(Arc<MilValue>),
    /// A state, by its name.
    State(String),
}

/// One graph: that of the function, or of a block inside of it.
#[derive(Debug)]
struct LoweringFrame {
    graph: Graph,
    facts: Vec<Option<Fact>>,
    bound: HashMap<String, BoundName>,
    /// Initializers of constants that nodes read, by name.
    read: HashMap<String, ValueId>,
    /// Values of the graphs around it that the graph reads, as inputs of it.
    captured: Vec<ValueId>,
    /// Lists that become longer where something is written behind their end.
    growing: HashSet<ValueId>,
}

impl LoweringFrame {
    fn new(name: &str) -> Self {
        let mut graph = Graph::new(name);
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), OPSET);
        graph.opsets.insert(galatea_graph::ML_DOMAIN.to_owned(), ML_OPSET);
        let facts = Vec::new();
        let bound = HashMap::new();
        let read = HashMap::new();
        Self { graph, facts, bound, read, captured: Vec::new(), growing: HashSet::new() }
    }
}

/// The graph in the making.
#[derive(Debug)]
pub(in crate::coreml) struct ProgramLowering {
    frames: Vec<LoweringFrame>,
    /// The values of states at this place of the program, by name.
    states: HashMap<String, ValueId>,
    /// The operation that is being lowered, by its first output: nodes are named so.
    current: String,
    /// Makes names unique over all graphs: inner ones read outer values by name.
    count: usize,
    /// Types of the outputs of the operation, where the program is being written and does not say them
    /// yet.
    pub(super) given: Option<Vec<MilType>>,
}

impl ProgramLowering {
    /// A graph without inputs and nodes.
    pub(in crate::coreml) fn new(name: &str) -> Self {
        let states = HashMap::new();
        let current = String::new();
        Self { frames: vec![LoweringFrame::new(name)], states, current, count: 0, given: None }
    }

    fn frame(&self) -> &LoweringFrame {
        self.frames.last().unwrap_or_else(|| unreachable!("the function's own frame is never left"))
    }

    fn frame_mut(&mut self) -> &mut LoweringFrame {
        self.frames.last_mut().unwrap_or_else(|| unreachable!("as in `frame`"))
    }

    /// The finished graph of the function.
    pub(super) fn into_graph(mut self) -> Graph {
        self.frames.swap_remove(0).graph
    }

    /// The graph that nodes are added to.
    pub(super) fn graph(&self) -> &Graph {
        &self.frame().graph
    }

    /// Says which operation the next nodes belong to.
    pub(super) fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.current);
    }

    // --- Names ---------------------------------------------------------------------------------

    /// Looks up a name, in this graph or one around it.
    pub(super) fn lookup(&mut self, name: &str) -> Option<BoundName> {
        self.lookup_at(self.frames.len() - 1, name)
    }

    fn lookup_at(&mut self, level: usize, name: &str) -> Option<BoundName> {
        if let Some(found) = self.frames.get(level)?.bound.get(name) {
            return Some(found.clone());
        }
        let outer = self.lookup_at(level.checked_sub(1)?, name)?;
        let BoundName::Value(id) = outer else { return Some(outer) };
        let inner = self.capture(level, id)?;
        self.frames.get_mut(level)?.bound.insert(name.to_owned(), BoundName::Value(inner));
        Some(BoundName::Value(inner))
    }

    /// Makes a name stand for something.
    ///
    /// # Errors
    /// Fails when it does already in this graph.
    pub(super) fn define(&mut self, name: &str, bound: BoundName) -> Result<()> {
        match self.frame_mut().bound.insert(name.to_owned(), bound) {
            None => Ok(()),
            Some(_) => Err(CoreMlError::invalid(format!("the name '{name}' has a value already"))),
        }
    }

    /// The value that a name stands for; constants become initializers.
    pub(super) fn value_of(&mut self, name: &str) -> Result<ValueId> {
        let bound = self.lookup(name).ok_or_else(|| {
            CoreMlError::invalid(format!("nothing before it gives a value '{name}'"))
        })?;
        match bound {
            BoundName::Value(id) => Ok(id),
            BoundName::Constant(value) => {
                if let Some(&id) = self.frame().read.get(name) {
                    return Ok(id);
                }
                let id = self.initializer(&value)?;
                self.frame_mut().read.insert(name.to_owned(), id);
                Ok(id)
            }
            BoundName::State(_) => {
                let text = format!("'{name}' is a state, which only read_state reads");
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// An initializer that holds a constant.
    pub(super) fn initializer(&mut self, value: &MilValue) -> Result<ValueId> {
        match value {
            MilValue::Tensor(_, tensor) => Ok(self.constant(tensor.clone())),
            other => Err(CoreMlError::invalid(format!("{} is no tensor", other.describe()))),
        }
    }

    // --- States --------------------------------------------------------------------------------

    /// Returns the current value of a state.
    pub(super) fn state(&self, name: &str) -> Option<ValueId> {
        self.states.get(name).copied()
    }

    /// Changes what a state holds.
    pub(super) fn set_state(&mut self, name: &str, value: ValueId) {
        self.states.insert(name.to_owned(), value);
    }

    /// Returns whether nodes are added to the graph of a block inside of the function.
    pub(super) fn is_nested(&self) -> bool {
        self.frames.len() > 1
    }

    // --- Lists ---------------------------------------------------------------------------------

    /// Returns whether a list becomes longer where something is written behind its end.
    pub(super) fn grows(&self, list: ValueId) -> bool {
        self.frame().growing.contains(&list)
    }

    /// Makes a list one that grows, if it does.
    pub(super) fn set_growing(&mut self, list: ValueId, grows: bool) {
        if grows {
            self.frame_mut().growing.insert(list);
        }
    }

    // --- Facts ---------------------------------------------------------------------------------

    /// Returns the fact of a value.
    pub(super) fn fact(&self, id: ValueId) -> Result<&Fact> {
        self.frame().facts.get(id.index()).and_then(Option::as_ref).ok_or_else(|| {
            let name = &self.graph().value(id).name;
            CoreMlError::invalid(format!("nothing is known of the value '{name}'"))
        })
    }

    /// The type of a value's elements.
    pub(super) fn dtype(&self, id: ValueId) -> Result<DataType> {
        Ok(self.fact(id)?.dtype)
    }

    /// The number of a value's axes.
    ///
    /// # Errors
    /// Fails when it is not known before a run.
    pub(super) fn rank(&self, id: ValueId) -> Result<usize> {
        Ok(self.dims(id)?.len())
    }

    /// The lengths of a value's axes.
    ///
    /// # Errors
    /// Fails when their number is not known before a run.
    pub(super) fn dims(&self, id: ValueId) -> Result<Vec<Dim>> {
        self.fact(id)?.shape.clone().ok_or_else(|| {
            CoreMlError::unsupported("an input whose number of axes is not known before a run")
        })
    }

    /// A value's shape where every length is known.
    pub(super) fn known_shape(&self, id: ValueId) -> Option<Vec<usize>> {
        self.fact(id).ok()?.known_shape()
    }

    /// The length of an axis.
    ///
    /// # Errors
    /// Fails when it is not known before a run.
    pub(super) fn known_len(&self, id: ValueId, axis: usize) -> Result<usize> {
        self.dims(id)?.get(axis).and_then(Dim::known).ok_or_else(|| {
            CoreMlError::unsupported(format!("axis {axis} whose length is not known before a run"))
        })
    }

    // --- Nodes ---------------------------------------------------------------------------------

    fn fresh(&mut self) -> ValueId {
        self.count += 1;
        let name = format!("{}~{}", self.current, self.count);
        let id = self.frame_mut().graph.value_named(&name);
        let frame = self.frame_mut();
        frame.facts.resize(frame.graph.values().len(), None);
        id
    }

    /// A new initializer.
    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let id = self.fresh();
        let frame = self.frame_mut();
        frame.facts[id.index()] = Some(Fact::constant(tensor.clone()));
        frame.graph.value_mut(id).initializer = Some(tensor);
        id
    }

    /// A new initializer of rank 0.
    pub(super) fn scalar<T: Number>(&mut self, value: T) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    /// A new initializer of 64-bit integers: axes, shapes and the like.
    pub(super) fn integers(&mut self, all: &[i64]) -> ValueId {
        self.constant(Tensor::vector(all.to_vec()))
    }

    /// A new initializer of rank 0 that holds a number in a type of elements.
    ///
    /// # Errors
    /// Fails when the type has no numbers.
    pub(super) fn number(&mut self, value: f64, dtype: DataType) -> Result<ValueId> {
        let wide = Tensor::scalar(value);
        let cast = galatea_graph::converted(&wide, dtype)?;
        Ok(self.constant(cast))
    }

    /// Adds a node of any domain with some inputs left out, and gives its outputs.
    pub(super) fn node_of(
        &mut self,
        operator: (&str, &str),
        attributes: &Attributes,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let outputs: Vec<ValueId> = (0..outputs).map(|_| self.fresh()).collect();
        let mut inputs = inputs.to_vec();
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let slots = outputs.iter().copied().map(Some).collect();
        let name = self.current.clone();
        let frame = self.frame_mut();
        let at = frame.graph.nodes.len();
        frame.graph.add_node(operator.0, operator.1, &name, attributes, inputs, slots)?;
        infer::extend(&frame.graph, &mut frame.facts, at)?;
        Ok(outputs)
    }

    /// Adds a node of ONNX's operators and gives its output.
    pub(super) fn node(
        &mut self,
        operator: &str,
        attributes: &Attributes,
        inputs: &[ValueId],
    ) -> Result<ValueId> {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.node_with(operator, attributes, &inputs)
    }

    /// Adds a node like [`ProgramLowering::node`], with some inputs left out.
    pub(super) fn node_with(
        &mut self,
        operator: &str,
        attributes: &Attributes,
        inputs: &[Option<ValueId>],
    ) -> Result<ValueId> {
        let outputs = self.node_of((ONNX_DOMAIN, operator), attributes, inputs, 1)?;
        outputs.first().copied().ok_or_else(|| CoreMlError::invalid("a node without outputs"))
    }

    /// Adds a node without attributes and gives its output.
    pub(super) fn plain(&mut self, operator: &str, inputs: &[ValueId]) -> Result<ValueId> {
        self.node(operator, &Attributes::new(), inputs)
    }

    /// The value in another type of elements; itself where it has it.
    pub(super) fn cast(&mut self, id: ValueId, dtype: DataType) -> Result<ValueId> {
        if self.dtype(id)? == dtype {
            return Ok(id);
        }
        let number = galatea_graph::onnx_number(dtype)
            .ok_or_else(|| CoreMlError::unsupported(format!("elements of type {dtype} here")))?;
        self.node("Cast", &attributes([("to", number.into())]), &[id])
    }

    /// The value with another shape, whose lengths follow ONNX's rules (-1 is the rest).
    pub(super) fn reshape(&mut self, id: ValueId, shape: &[i64]) -> Result<ValueId> {
        let shape = self.integers(shape);
        // A length of 0 is one.
        self.node("Reshape", &attributes([("allowzero", 1.into())]), &[id, shape])
    }

    /// The value with its axes in another order.
    pub(super) fn transpose(&mut self, id: ValueId, axes: &[usize]) -> Result<ValueId> {
        self.node("Transpose", &attributes([("perm", axes.into())]), &[id])
    }

    /// The value without axes of length 1.
    pub(super) fn squeeze(&mut self, id: ValueId, axes: &[i64]) -> Result<ValueId> {
        let axes = self.integers(axes);
        self.plain("Squeeze", &[id, axes])
    }

    /// The value with new axes of length 1 at these places of the result.
    pub(super) fn unsqueeze(&mut self, id: ValueId, axes: &[i64]) -> Result<ValueId> {
        let axes = self.integers(axes);
        self.plain("Unsqueeze", &[id, axes])
    }

    /// Gives a value without axes one of length 1, and says whether it did: exporters write such values where the
    /// documentation of an operation asks for a rank of at least 1.
    pub(super) fn with_axis(&mut self, id: ValueId) -> Result<(ValueId, bool)> {
        match self.rank(id)? {
            0 => Ok((self.unsqueeze(id, &[0])?, true)),
            _ => Ok((id, false)),
        }
    }

    /// The elements of axes from starts (included) to ends (excluded).
    pub(super) fn slice(
        &mut self,
        id: ValueId,
        axes: &[i64],
        starts: &[i64],
        ends: &[i64],
    ) -> Result<ValueId> {
        let starts = self.integers(starts);
        let ends = self.integers(ends);
        let axes = self.integers(axes);
        self.plain("Slice", &[id, starts, ends, axes])
    }

    /// The shape of a value as 64-bit integers.
    pub(super) fn shape_of(&mut self, id: ValueId) -> Result<ValueId> {
        self.plain("Shape", &[id])
    }

    // --- Subgraphs -----------------------------------------------------------------------------

    /// A subgraph as an attribute. `fill` is called with its own inputs, of which these facts hold,
    /// adds nodes and says what the subgraph gives. What it reads of the graphs around it becomes an
    /// input of the node that has the attribute.
    pub(super) fn subgraph(
        &mut self,
        inputs: &[Fact],
        fill: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<AttributeValue> {
        let outer = self.current.clone();
        self.frames.push(LoweringFrame::new(&outer));
        let ids: Vec<ValueId> = inputs.iter().map(|fact| self.input(fact.clone())).collect();
        let made = fill(self, &ids).and_then(|results| self.end(&results));
        let frame = self.frames.pop();
        self.current = outer;
        made?;
        let mut frame = frame.ok_or_else(|| CoreMlError::invalid("a block without a graph"))?;
        frame.graph.inputs.extend(&frame.captured);
        let subgraph = SubgraphAttribute { graph: frame.graph, captured: frame.captured.len() };
        Ok(AttributeValue::Graph(Box::new(subgraph)))
    }

    /// Makes values the outputs of the graph, as copies: what a subgraph gives must be its own,
    /// neither an input nor a constant.
    fn end(&mut self, results: &[ValueId]) -> Result<()> {
        for &id in results {
            let copy = self.plain("Identity", &[id])?;
            // A loop without iterations gives what is declared.
            let fact = self.fact(copy)?.clone();
            let graph = &mut self.frame_mut().graph;
            graph.value_mut(copy).declared = Some(Fact { value: None, elements: None, ..fact });
            graph.outputs.push(copy);
        }
        Ok(())
    }

    /// Begins a block of a program that is being written: what it adds is there to be typed, until
    /// [`ProgramLowering::leave`], after which the block is read as a whole.
    pub(in crate::coreml) fn enter(&mut self) {
        self.frames.push(LoweringFrame::new("block"));
    }

    /// Ends such a block.
    pub(in crate::coreml) fn leave(&mut self) {
        if self.frames.len() > 1 {
            self.frames.pop();
        }
    }

    /// A value of the graph around the subgraph that is being made, as a value of the subgraph.
    pub(super) fn captured(&mut self, outer: ValueId) -> Result<ValueId> {
        let level = self.frames.len() - 1;
        let found = level.checked_sub(1).and_then(|_| self.capture(level, outer));
        found.ok_or_else(|| CoreMlError::invalid("a value outside of any graph"))
    }

    /// The value of a frame that stands for one of the frame around it.
    fn capture(&mut self, level: usize, outer: ValueId) -> Option<ValueId> {
        let (above, here) = self.frames.split_at_mut(level);
        let above = above.last()?;
        let here = here.first_mut()?;
        let inner = here.graph.value_named(&above.graph.value(outer).name);
        let fact = above.facts.get(outer.index()).cloned().flatten();
        here.facts.resize(here.graph.values().len(), None);
        if let Some(slot) = here.facts.get_mut(inner.index()) {
            *slot = fact;
        }
        if !here.captured.contains(&inner) {
            here.captured.push(inner);
        }
        if above.growing.contains(&outer) {
            here.growing.insert(inner);
        }
        Some(inner)
    }

    /// Gives names a meaning for as long as `lower` runs; what it defines is forgotten too.
    pub(super) fn scoped<T>(
        &mut self,
        own: &[(&str, ValueId)],
        lower: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let kept = (self.frame().bound.clone(), self.frame().read.clone());
        for (name, id) in own {
            self.define(name, BoundName::Value(*id))?;
        }
        let result = lower(self)?;
        let frame = self.frame_mut();
        (frame.bound, frame.read) = kept;
        Ok(result)
    }

    /// A new input of the graph.
    pub(super) fn input(&mut self, fact: Fact) -> ValueId {
        let id = self.fresh();
        self.declare_input(id, fact);
        id
    }

    /// A new input of the graph, of this name.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub(super) fn named_input(&mut self, name: &str, fact: Fact) -> Result<ValueId> {
        if self.graph().find_value(name).is_some() {
            return Err(CoreMlError::invalid(format!("the input '{name}' is there twice")));
        }
        let frame = self.frame_mut();
        let id = frame.graph.value_named(name);
        frame.facts.resize(frame.graph.values().len(), None);
        self.declare_input(id, fact);
        Ok(id)
    }

    fn declare_input(&mut self, id: ValueId, fact: Fact) {
        let frame = self.frame_mut();
        frame.graph.inputs.push(id);
        frame.graph.value_mut(id).declared = Some(fact.clone());
        let name = frame.graph.value(id).name.clone();
        frame.facts[id.index()] = Some(named_lengths(fact, &name));
    }

    /// Makes a value an output of the graph, under this name.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub(super) fn named_output(&mut self, name: &str, id: ValueId) -> Result<()> {
        match self.graph().find_value(name) {
            // An input that is given back keeps its name.
            Some(found) if found == id => {
                self.frame_mut().graph.outputs.push(id);
                return Ok(());
            }
            Some(_) => {
                let text = format!("the output '{name}' has a value already");
                return Err(CoreMlError::invalid(text));
            }
            None => {}
        }
        name.clone_into(&mut self.current);
        let frame = self.frame_mut();
        let to = frame.graph.value_named(name);
        let at = frame.graph.nodes.len();
        let none = Attributes::new();
        let from = vec![Some(id)];
        let slot = vec![Some(to)];
        frame.graph.add_node(ONNX_DOMAIN, "Identity", name, &none, from, slot)?;
        infer::extend(&frame.graph, &mut frame.facts, at)?;
        let fact = frame.facts.get(to.index()).cloned().flatten();
        frame.graph.value_mut(to).declared = fact.map(|fact| Fact { value: None, ..fact });
        frame.graph.outputs.push(to);
        Ok(())
    }
}

/// Gives every unknown length of an input a name of its own.
fn named_lengths(mut fact: Fact, name: &str) -> Fact {
    for (axis, dim) in fact.shape.iter_mut().flatten().enumerate() {
        if *dim == Dim::Unknown {
            *dim = Dim::Symbol(format!("{name}.{axis}?").into());
        }
    }
    fact
}

/// Returns the type that a program states for a value.
pub(super) fn type_of(found: &Fact) -> Result<MilType> {
    let element = MilElement::of(found.dtype).filter(|_| found.is_tensor());
    let element = element.ok_or_else(|| {
        CoreMlError::unsupported(format!(
            "a value that is {found}, for which programs have no type"
        ))
    })?;
    let shape = found.shape.as_ref().map(|dims| dims.iter().map(Dim::known).collect());
    Ok(MilType::Tensor(MilTensorType { element, shape }))
}

/// Returns whether a value may be what a program says of it: lengths that either does not know
/// agree.
pub(super) fn agrees(stated: &MilType, found: &Fact) -> bool {
    let (element, shape) = match stated {
        MilType::Tensor(MilTensorType { element, shape }) => (element, shape.clone()),
        // A list is a tensor whose first axis counts its items: one that grows is said to be as
        // long as it was in the beginning.
        MilType::List(item, _) => match &**item {
            MilType::Tensor(MilTensorType { element, shape }) => {
                let lengths = |shape: &Vec<_>| std::iter::once(None).chain(shape.clone()).collect();
                (element, shape.as_ref().map(lengths))
            }
            _ => return false,
        },
        // A dictionary is a vector of its values.
        MilType::Dictionary(_) => return true,
        MilType::Tuple(_) | MilType::State(_) => return false,
    };
    let lengths = |stated: &Vec<Option<usize>>, found: &Vec<Dim>| {
        let same = |(stated, found): (&Option<usize>, &Dim)| {
            stated.zip(found.known()).is_none_or(|(stated, found)| stated == found)
        };
        stated.len() == found.len() && stated.iter().zip(found).all(same)
    };
    let shapes = match (&shape, &found.shape) {
        (Some(stated), Some(found)) => lengths(stated, found),
        _ => true,
    };
    found.is_tensor() && element.stored_as() == found.dtype && shapes
}

/// Returns the number of elements that a shape has, where a constant of it is made that the program
/// does not hold: a program of a hundred bytes can ask for any.
///
/// # Errors
/// When there are more than [`MAX_MADE`].
pub(super) fn bounded(shape: &[usize]) -> Result<usize> {
    match galatea_tensor::checked_elements(shape)? {
        count if count <= MAX_MADE => Ok(count),
        count => {
            let text = format!("a constant of {count} elements, at most {MAX_MADE} are made");
            Err(CoreMlError::unsupported(text))
        }
    }
}

/// Attributes from names and values.
pub(super) fn attributes<'a>(
    all: impl IntoIterator<Item = (&'a str, AttributeValue)>,
) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A text as an attribute.
pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}
