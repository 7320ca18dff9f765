//! A graph that is being written as a program: values of the graph as values of the program.

use std::collections::{HashMap, HashSet};

use galatea_formats::coreml::mil::{
    MilArg, MilBlock, MilBuilder, MilElement, MilOperation, MilVar,
};
use galatea_graph::{Dim, Fact, Graph, Node, ValueId, converted};
use galatea_tensor::{DataType, OrderedSet, Tensor, f16};

use super::ane_values::AneLayoutPlan;
use super::halves;
use super::state_slot::StateSlot;
use super::unwritable::{Result, UnwritableNode, narrow_all, refuse, small_all};
use super::weights::WeightCompression;

/// The most axes of a value.
pub(crate) const MAX_AXES: usize = 5;

/// Constants of the graph in a type of elements.
type TypedConstants = HashMap<(ValueId, MilElement), MilVar>;

/// Casts and constants that already exist at a place of the program.
#[derive(Debug)]
pub(crate) struct KnownCasts(HashMap<(MilVar, MilElement), MilVar>, TypedConstants, TypedConstants);

/// The program in the making.
#[derive(Debug)]
pub(crate) struct ProgramEmitter<'g> {
    graph: &'g Graph,
    facts: &'g [Option<Fact>],
    builder: MilBuilder,
    vars: HashMap<ValueId, MilVar>,
    /// Values in another type of elements than they were computed in.
    casts: HashMap<(MilVar, MilElement), MilVar>,
    /// Constants by what they are in the program.
    constants: HashMap<(ValueId, MilElement), MilVar>,
    /// Values that operations make of constants, which are constants to Core ML.
    fixed: HashSet<ValueId>,
    /// Constant matrices with their axes swapped.
    turned: HashMap<(ValueId, MilElement), MilVar>,
    compression: WeightCompression,
    /// Nodes whose floats are FP32 and stay so, by their first results.
    islands: OrderedSet<String>,
    /// True if operations are those of FP16, whatever floats are.
    as_half: bool,
    /// The values in the form that the Neural Engine favours; `None` if no value needs it.
    pub(super) favoured: Option<AneLayoutPlan>,
    /// The type that floats are computed in where nothing else is said, and that of this node.
    usual: MilElement,
    float: MilElement,
    /// The stem of the names of this node's operations.
    stem: String,
    /// Nobody wants the program: large constants are not made.
    probing: bool,
    /// Inputs that are states, written in place.
    pub(super) slots: HashMap<ValueId, StateSlot>,
    /// The values of states at this place of the program, for those that were read.
    pub(super) held: HashMap<MilVar, MilVar>,
}

/// Constants of more elements are not made where nobody wants the program: weights, not parameters.
const PARAMETERS: usize = 4096;

impl<'g> ProgramEmitter<'g> {
    /// A program of the set of operators of this number, whose floats are computed in `float`.
    pub(crate) fn new(
        graph: &'g Graph,
        facts: &'g [Option<Fact>],
        opset: u32,
        float: MilElement,
        compression: WeightCompression,
    ) -> Self {
        Self {
            graph,
            facts,
            builder: MilBuilder::new("main", opset),
            vars: HashMap::new(),
            casts: HashMap::new(),
            constants: HashMap::new(),
            fixed: HashSet::new(),
            turned: HashMap::new(),
            compression,
            islands: OrderedSet::new(),
            as_half: false,
            favoured: None,
            usual: float,
            float,
            stem: String::new(),
            probing: false,
            slots: HashMap::new(),
            held: HashMap::new(),
        }
    }

    /// The same, to find out what has a form: weights are not made.
    pub(crate) fn probing(self) -> Self {
        Self { probing: true, ..self }
    }

    /// The same with nodes that are computed in FP32, by their first results.
    pub(crate) fn with_islands(self, islands: OrderedSet<String>) -> Self {
        Self { islands, ..self }
    }

    /// Computes nodes in FP32, by their first results, in place of those of before.
    pub(crate) fn set_islands(&mut self, islands: OrderedSet<String>) {
        self.islands = islands;
    }

    /// The same with the operations that FP16 would have.
    pub(crate) fn like_half(self, as_half: bool) -> Self {
        Self { as_half, ..self }
    }

    /// Returns whether a node is computed in FP32 and gives FP32.
    pub(crate) fn is_island(&self, node: &Node) -> bool {
        let result = node.output(0).map(|id| self.graph.value(id).name.as_str());
        !self.islands.is_empty() && result.is_some_and(|name| self.islands.contains(name))
    }

    /// Returns whether a node that is computed in FP32 reads a value.
    pub(crate) fn is_read_wide(&self, id: ValueId) -> bool {
        let reads = |node: &&Node| node.inputs.contains(&Some(id));
        let mut readers = self.graph.nodes.iter().filter(reads);
        !self.islands.is_empty() && readers.any(|node| self.is_island(node))
    }

    /// Returns whether this node has the operations that keep to what FP16 holds.
    pub(crate) fn keeps_to_half(&self) -> bool {
        self.float == MilElement::Fp16 || self.as_half
    }

    /// The same in the forms that the Neural Engine favours, as planned for its graph.
    pub(crate) fn favouring(self, plan: Option<AneLayoutPlan>) -> Self {
        Self { favoured: plan, ..self }
    }

    /// The graph that is written.
    pub(super) fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns whether nobody wants the program.
    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    /// Something of this shape in the place of floats that nobody computes.
    pub(crate) fn stand_in(&mut self, shape: &[Option<usize>]) -> Result<MilVar> {
        Ok(self.builder.input("missing", self.float, shape)?)
    }

    /// Writes a graph inside of this one, whose inputs are these values. Its floats are of the type that
    /// this node computes in.
    pub(crate) fn nested<T>(
        &mut self,
        graph: &Graph,
        facts: &[Option<Fact>],
        inputs: HashMap<ValueId, MilVar>,
        write: impl FnOnce(&mut ProgramEmitter<'_>) -> Result<T>,
    ) -> Result<T> {
        let opset = self.builder.opset();
        let compression = self.compression;
        let mut inner = ProgramEmitter::new(graph, facts, opset, self.float, compression);
        inner.vars = inputs;
        inner.stem.clone_from(&self.stem);
        inner.probing = self.probing;
        inner.as_half = self.as_half;
        std::mem::swap(&mut inner.builder, &mut self.builder);
        let result = write(&mut inner);
        std::mem::swap(&mut inner.builder, &mut self.builder);
        result
    }

    /// Values in other types of elements than they were computed in, to be put back behind a block.
    pub(crate) fn casts(&self) -> KnownCasts {
        KnownCasts(self.casts.clone(), self.constants.clone(), self.turned.clone())
    }

    /// Forgets what a block has made, which nobody sees behind it.
    pub(crate) fn set_casts(&mut self, casts: KnownCasts) {
        (self.casts, self.constants, self.turned) = (casts.0, casts.1, casts.2);
    }

    /// Adds an operation with blocks.
    pub(crate) fn with_blocks(
        &mut self,
        operator: &str,
        inputs: Vec<(&str, MilArg)>,
        blocks: Vec<MilBlock>,
        outputs: usize,
    ) -> Result<Vec<MilVar>> {
        let stem = self.stem.clone();
        Ok(self.builder.op_with_blocks(operator, &stem, inputs, blocks, outputs)?)
    }

    /// A constant truth value.
    pub(crate) fn truth(&mut self, value: bool) -> Result<MilVar> {
        let stem = format!("{}_constant", self.stem);
        Ok(self.builder.constant(&stem, MilElement::Bool, Tensor::scalar(value))?)
    }

    /// The program's own side.
    pub(crate) fn builder(&mut self) -> &mut MilBuilder {
        &mut self.builder
    }

    /// The finished program.
    pub(crate) fn into_builder(self) -> MilBuilder {
        self.builder
    }

    /// The number of the set of operators.
    pub(crate) fn opset(&self) -> u32 {
        self.builder.opset()
    }

    /// The type that floats are computed in.
    pub(crate) fn float_element(&self) -> MilElement {
        self.float
    }

    /// Begins a node, which computes its floats in FP32 where `wide` says so.
    pub(crate) fn begin(&mut self, node: &Node, wide: bool) {
        let first = node.outputs.iter().flatten().next();
        let name = first.map_or("node", |&id| self.graph.value(id).name.as_str());
        self.stem = name.to_owned();
        let wide = wide || self.is_island(node);
        self.float = if wide { MilElement::Fp32 } else { self.usual };
    }

    /// Returns whether all that a node gives is known before a run: its outputs are constants.
    pub(crate) fn is_known(&self, node: &Node) -> bool {
        let known = |id: &ValueId| self.fact(*id).is_ok_and(|fact| fact.value.is_some());
        node.outputs.iter().flatten().all(known)
    }

    /// Computes this node's floats in FP32 from here on.
    pub(crate) fn widen(&mut self) {
        self.float = MilElement::Fp32;
    }

    /// Computes this node's floats in the usual type from here on, unless it is an island.
    pub(crate) fn narrow_again(&mut self, node: &Node) {
        self.float = if self.is_island(node) { MilElement::Fp32 } else { self.usual };
    }

    /// Gives a value of the graph its form in the program.
    pub(crate) fn set(&mut self, id: ValueId, var: MilVar) {
        self.vars.insert(id, var);
    }

    /// Ends a node: its outputs are what its row has made, floats in the usual type.
    ///
    /// # Errors
    /// Fails when a result has another type or shape than the graph's value.
    pub(crate) fn end(&mut self, node: &Node, results: Vec<MilVar>) -> Result<()> {
        if results.len() < node.outputs.len() {
            return refuse(format!("{} results for {} outputs", results.len(), node.outputs.len()));
        }
        self.float = self.usual;
        let island = self.is_island(node);
        for (slot, var) in node.outputs.iter().zip(results) {
            let Some(id) = *slot else { continue };
            if node.output(0) != Some(id) && !self.is_read(id) {
                continue;
            }
            let var = if island { var } else { self.usual(var)? };
            self.compare(id, &var)?;
            self.vars.insert(id, var);
        }
        Ok(())
    }

    /// The value in the type that floats are usually computed in.
    fn usual(&mut self, var: MilVar) -> Result<MilVar> {
        match self.builder.element(&var)? {
            MilElement::Fp16 | MilElement::Fp32 => self.cast(&var, self.usual),
            _ => Ok(var),
        }
    }

    /// A result must be what the graph's value is.
    fn compare(&self, id: ValueId, var: &MilVar) -> Result<()> {
        let found = self.builder.type_of(var);
        let fact = self.fact(id)?;
        let rank = fact.rank();
        let empty = fact.shape.iter().flatten().any(|dim| *dim == Dim::Known(0));
        if rank.is_some_and(|rank| rank > MAX_AXES) {
            return refuse(format!("{fact} has more than {MAX_AXES} axes, the most of Core ML"));
        }
        if empty {
            return refuse(format!("{fact} has no elements, which Core ML does not have"));
        }
        let shapes = found.and_then(|found| found.shape.as_ref()).zip(fact.shape.as_ref());
        let same = shapes.is_none_or(|(found, expected)| {
            let same = |(found, expected): (&Option<usize>, &Dim)| {
                found.zip(expected.known()).is_none_or(|(found, expected)| found == expected)
            };
            found.len() == expected.len() && found.iter().zip(expected).all(same)
        });
        let element = found.map(|found| found.element);
        let codes = match fact.dtype {
            DataType::Int8 => Some(MilElement::Int8),
            DataType::Uint8 => Some(MilElement::Uint8),
            _ => None,
        };
        let form = form_of(fact.dtype, self.usual);
        let wide = element == Some(MilElement::Fp32) && form == Some(MilElement::Fp16);
        let fits = element == form || element == codes || wide && !self.islands.is_empty();
        match same && element.is_some() && fits {
            true => Ok(()),
            false => {
                let found = found.map_or_else(String::new, ToString::to_string);
                refuse(format!("the program gives {found} for {fact}"))
            }
        }
    }

    // --- What is known of the graph ----------------------------------------------------------------

    /// Returns the fact of a value.
    pub(crate) fn fact(&self, id: ValueId) -> Result<&'g Fact> {
        let found = self.facts.get(id.index()).and_then(Option::as_ref);
        found.ok_or_else(|| UnwritableNode("a value of which nothing is known".to_owned()))
    }

    /// The value at a position of a node's inputs.
    pub(crate) fn input(&self, node: &Node, at: usize) -> Result<ValueId> {
        node.input(at).ok_or_else(|| UnwritableNode(format!("input {at} is absent")))
    }

    /// The shape of a value.
    ///
    /// # Errors
    /// Fails when not all lengths are known before a run.
    pub(crate) fn shape(&self, id: ValueId) -> Result<Vec<usize>> {
        let fact = self.fact(id)?;
        fact.known_shape()
            .ok_or_else(|| UnwritableNode(format!("lengths are known in a run only: {fact}")))
    }

    /// The number of axes of a value.
    pub(crate) fn rank(&self, id: ValueId) -> Result<usize> {
        let found = self.fact(id)?.rank();
        found.ok_or_else(|| UnwritableNode("the number of axes is known in a run only".to_owned()))
    }

    /// The shape of the first output of a node.
    pub(crate) fn output_shape(&self, node: &Node) -> Result<Vec<usize>> {
        match node.output(0) {
            Some(id) => self.shape(id),
            None => refuse("the first output is absent"),
        }
    }

    /// The type of elements of a value of the graph.
    pub(crate) fn dtype(&self, id: ValueId) -> Result<DataType> {
        Ok(self.fact(id)?.dtype)
    }

    /// An input whose value is known before a run.
    pub(crate) fn known(&self, node: &Node, at: usize) -> Option<Tensor> {
        let id = node.input(at)?;
        self.graph.constant(id).cloned().or_else(|| self.fact(id).ok()?.value.clone())
    }

    /// The integers of an input that must be known before a run.
    pub(crate) fn integers(&self, node: &Node, at: usize) -> Result<Vec<i64>> {
        let known = self.known(node, at).and_then(|tensor| tensor.to_i64_vec().ok());
        known.ok_or_else(|| UnwritableNode(format!("input {at} is known in a run only")))
    }

    /// The numbers of an input that must be known before a run.
    pub(crate) fn numbers(&self, node: &Node, at: usize) -> Result<Vec<f32>> {
        let known = self.known(node, at);
        let wide = known.and_then(|tensor| converted(&tensor, DataType::Fp32).ok());
        let wide = wide.and_then(|tensor| tensor.to_vec::<f32>().ok());
        wide.ok_or_else(|| UnwritableNode(format!("input {at} is known in a run only")))
    }

    /// The one number of an input that must be known before a run.
    pub(crate) fn number(&self, node: &Node, at: usize) -> Result<f32> {
        match self.numbers(node, at)?.as_slice() {
            &[one] => Ok(one),
            other => refuse(format!("input {at} has {} elements, expected one", other.len())),
        }
    }

    /// An axis that counts from the end where it is negative, as a position.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let at = if axis < 0 { axis + signed } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < rank => Ok(at),
            _ => refuse(format!("axis {axis} of {rank} axes")),
        }
    }

    // --- Values of the program ---------------------------------------------------------------------

    /// The input at a position: floats in the type that this node computes in.
    pub(crate) fn var(&mut self, node: &Node, at: usize) -> Result<MilVar> {
        let id = self.input(node, at)?;
        self.value(id)
    }

    /// The input at a position, if there is one.
    pub(crate) fn optional(&mut self, node: &Node, at: usize) -> Result<Option<MilVar>> {
        node.input(at).map(|id| self.value(id)).transpose()
    }

    /// A value of the graph: floats in the type that this node computes in.
    pub(crate) fn value(&mut self, id: ValueId) -> Result<MilVar> {
        let favoured = self.favoured.as_ref();
        if let Some(var) = favoured.and_then(|favoured| favoured.overlay.get(&id)) {
            return Ok(var.clone());
        }
        if !self.vars.contains_key(&id)
            && let Some(form) = favoured.and_then(|favoured| favoured.forms.get(&id)).cloned()
        {
            let plain = self.plain_of(&form, &self.shape(id)?)?;
            self.vars.insert(id, plain);
        }
        if let Some(var) = self.vars.get(&id).cloned() {
            return match self.builder.element(&var)? {
                MilElement::Fp16 | MilElement::Fp32 => self.cast(&var, self.float),
                // What is computed with them takes 32 bits.
                MilElement::Int8 | MilElement::Uint8 => self.cast(&var, MilElement::Int32),
                _ => Ok(var),
            };
        }
        let Some(tensor) = self.graph.constant(id).cloned() else {
            return match self.fact(id)?.value.clone() {
                Some(tensor) => self.constant_value(id, &tensor),
                None => refuse(format!("nothing gives '{}'", self.graph.value(id).name)),
            };
        };
        self.constant_value(id, &tensor)
    }

    /// A value of the graph as an operation has given it: floats in the type that they were computed in.
    pub(crate) fn given(&mut self, id: ValueId) -> Result<MilVar> {
        match self.vars.get(&id) {
            Some(var) => Ok(var.clone()),
            None => self.value(id),
        }
    }

    /// A value of codes of 8 bits, if that is what it is in the program.
    pub(crate) fn narrow(&self, id: ValueId) -> Result<Option<(MilVar, MilElement)>> {
        let Some(var) = self.vars.get(&id) else { return Ok(None) };
        match self.builder.element(var)? {
            element @ (MilElement::Int8 | MilElement::Uint8) => Ok(Some((var.clone(), element))),
            _ => Ok(None),
        }
    }

    /// A constant that the graph does not have, of which nobody else reads the floats.
    pub(crate) fn tensor(&mut self, tensor: &Tensor) -> Result<MilVar> {
        let stem = format!("{}_constant", self.stem);
        self.stored(&stem, self.float, tensor)
    }

    /// A constant of the graph in another shape.
    pub(super) fn weight(&mut self, id: ValueId, tensor: &Tensor) -> Result<MilVar> {
        let name = self.graph.value(id).name.clone();
        self.stored(&name, self.float, tensor)
    }

    /// Adds an operation that makes a constant in the type of this node's floats, for a value of the
    /// graph.
    pub(crate) fn compressed(
        &mut self,
        operation: MilOperation,
        id: ValueId,
        shape: &[usize],
    ) -> Result<MilVar> {
        let name = self.graph.value(id).name.clone();
        Ok(self.builder.compressed(operation, &name, self.float, shape)?)
    }

    fn constant_value(&mut self, id: ValueId, tensor: &Tensor) -> Result<MilVar> {
        let Some(element) = form_of(tensor.dtype(), self.float) else {
            return refuse(format!("a constant of {}", tensor.dtype()));
        };
        if let Some(var) = self.constants.get(&(id, element)) {
            return Ok(var.clone());
        }
        let name = self.graph.value(id).name.clone();
        let var = self.stored(&name, element, tensor)?;
        self.constants.insert((id, element), var.clone());
        Ok(var)
    }

    /// A constant in the form that weights are stored in.
    fn stored(&mut self, name: &str, element: MilElement, tensor: &Tensor) -> Result<MilVar> {
        if self.probing && tensor.elements() > PARAMETERS {
            let lengths: Vec<Option<usize>> = tensor.shape().iter().map(|&len| Some(len)).collect();
            return Ok(self.builder.input(name, element, &lengths)?);
        }
        match self.compression.apply(&mut self.builder, name, element, tensor)? {
            Some(var) => Ok(var),
            None => {
                let narrow = narrowed(tensor, element)?;
                Ok(self.builder.constant(name, element, narrow)?)
            }
        }
    }

    /// Returns whether a node reads a value, or it is an output.
    pub(crate) fn is_read(&self, id: ValueId) -> bool {
        let reads = |node: &Node| node.inputs.contains(&Some(id));
        self.graph.outputs.contains(&id) || self.graph.nodes.iter().any(reads)
    }

    /// Returns whether a value is a constant of the graph.
    pub(crate) fn is_constant(&self, id: ValueId) -> bool {
        self.graph.constant(id).is_some()
    }

    /// Returns whether a value is a constant to Core ML, of the graph or made of such.
    pub(crate) fn is_fixed(&self, id: ValueId) -> bool {
        let known = || self.fact(id).is_ok_and(|fact| fact.value.is_some());
        self.is_constant(id) || self.fixed.contains(&id) || known()
    }

    /// Says that the outputs of a node are constants to Core ML.
    pub(crate) fn fix(&mut self, node: &Node) {
        self.fixed.extend(node.outputs.iter().flatten());
    }

    /// A constant matrix of the graph with its axes swapped.
    pub(crate) fn turned(&mut self, id: ValueId) -> Result<MilVar> {
        let key = (id, self.float);
        if let Some(known) = self.turned.get(&key) {
            return Ok(known.clone());
        }
        let Some(tensor) = self.graph.constant(id) else { return refuse("it is no constant") };
        let turned = self.swapped(tensor)?;
        let name = self.graph.value(id).name.clone();
        let var = self.stored(&name, self.float, &turned)?;
        self.turned.insert(key, var.clone());
        Ok(var)
    }

    /// A constant matrix with its axes swapped, as a program holds it where that needs no more than rounding.
    pub(super) fn swapped(&self, tensor: &Tensor) -> Result<Tensor> {
        let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
        let rounded = self.compression == WeightCompression::None && self.float == MilElement::Fp16;
        let turned = tensor.permute(&[1, 0]).map_err(|error| failed(&error))?;
        // Nobody reads what is not made.
        if self.probing && turned.elements() > PARAMETERS {
            return Ok(turned);
        }
        match rounded.then(|| halves::turned(tensor)).flatten() {
            Some(turned) => turned.map_err(|error| failed(&error)),
            None => turned.contiguous().map_err(|error| failed(&error)),
        }
    }

    /// A vector of zeros.
    pub(crate) fn zeros(&mut self, len: usize) -> Result<MilVar> {
        self.floats(&[len], vec![0.0; len])
    }

    /// A constant of floats that the graph does not have, in the type that this node computes in.
    pub(crate) fn floats(&mut self, shape: &[usize], all: Vec<f32>) -> Result<MilVar> {
        let wide =
            Tensor::from_vec(shape, all).map_err(|error| UnwritableNode(error.to_string()))?;
        let narrow = narrowed(&wide, self.float)?;
        let stem = format!("{}_constant", self.stem);
        Ok(self.builder.constant(&stem, self.float, narrow)?)
    }

    /// A constant tensor of integers that the graph does not have.
    pub(crate) fn table(&mut self, shape: &[usize], all: Vec<i32>) -> Result<MilVar> {
        let tensor =
            Tensor::from_vec(shape, all).map_err(|error| UnwritableNode(error.to_string()))?;
        let stem = format!("{}_table", self.stem);
        Ok(self.builder.constant(&stem, MilElement::Int32, tensor)?)
    }

    /// A number in the type that this node computes in.
    pub(crate) fn float(&self, value: f32) -> MilArg {
        MilArg::Float(self.float, saturated(value, self.float))
    }

    /// Adds an operation with one output.
    pub(crate) fn op(&mut self, operator: &str, inputs: Vec<(&str, MilArg)>) -> Result<MilVar> {
        let stem = self.stem.clone();
        Ok(self.builder.op(operator, &stem, inputs)?)
    }

    /// Adds an operation with so many outputs.
    pub(crate) fn op_of(
        &mut self,
        operator: &str,
        inputs: Vec<(&str, MilArg)>,
        outputs: usize,
    ) -> Result<Vec<MilVar>> {
        let stem = self.stem.clone();
        Ok(self.builder.op_of(operator, &stem, inputs, outputs)?)
    }

    /// The value in a type of elements.
    pub(crate) fn cast(&mut self, var: &MilVar, element: MilElement) -> Result<MilVar> {
        if self.builder.element(var)? == element {
            return Ok(var.clone());
        }
        if let Some(known) = self.casts.get(&(var.clone(), element)) {
            return Ok(known.clone());
        }
        let word = match element {
            MilElement::Fp16 => "fp16",
            MilElement::Fp32 => "fp32",
            MilElement::Int32 => "int32",
            MilElement::Bool => "bool",
            MilElement::Int8 => "int8",
            MilElement::Uint8 => "uint8",
            MilElement::Int16 => "int16",
            MilElement::Uint16 => "uint16",
            other => return refuse(format!("a cast to {other}")),
        };
        let cast = self.op("cast", vec![("x", var.into()), ("dtype", MilArg::Text(word))])?;
        self.casts.insert((var.clone(), element), cast.clone());
        Ok(cast)
    }

    /// The value with another shape.
    pub(crate) fn reshape(&mut self, var: &MilVar, shape: &[usize]) -> Result<MilVar> {
        if self.builder.shape(var)? == shape {
            return Ok(var.clone());
        }
        if shape.is_empty() {
            return self.scalar(var);
        }
        let shape = MilArg::Ints(small_all(shape)?);
        self.op("reshape", vec![("x", var.into()), ("shape", shape)])
    }

    /// The value with its axes in another order.
    pub(crate) fn transpose(&mut self, var: &MilVar, order: &[usize]) -> Result<MilVar> {
        if order.is_sorted() {
            return Ok(var.clone());
        }
        let order = MilArg::Ints(small_all(order)?);
        self.op("transpose", vec![("x", var.into()), ("perm", order)])
    }

    /// The shape of a value of the program.
    pub(crate) fn shape_of(&self, var: &MilVar) -> Result<Vec<usize>> {
        Ok(self.builder.shape(var)?)
    }

    /// The lengths of a value of the program, as far as they are known; none where not even their number
    /// is.
    pub(crate) fn dims_of(&self, var: &MilVar) -> Option<Vec<Option<usize>>> {
        self.builder.type_of(var)?.shape.clone()
    }

    /// The elements of a value of the program.
    pub(crate) fn element_of(&self, var: &MilVar) -> Result<MilElement> {
        Ok(self.builder.element(var)?)
    }
}

/// The type of elements that a value of the graph has in a program; none where there is none.
pub(crate) fn form_of(dtype: DataType, float: MilElement) -> Option<MilElement> {
    Some(match dtype {
        DataType::Fp16 | DataType::Fp32 | DataType::Fp64 | DataType::Bf16 => float,
        DataType::Int64
        | DataType::Int32
        | DataType::Uint32
        | DataType::Uint64
        | DataType::Int16
        | DataType::Uint16
        | DataType::Int8
        | DataType::Uint8 => MilElement::Int32,
        DataType::Bool => MilElement::Bool,
        _ => return None,
    })
}

/// The largest number of FP16.
const LARGEST: f32 = 65504.0;

/// A number that FP16 holds: what is beyond it, such as the -3.4e38 of a mask, becomes the largest that
/// it holds, as sums with infinities end in numbers that are none.
fn saturated(value: f32, element: MilElement) -> f32 {
    match element {
        MilElement::Fp16 if value.is_finite() || value.is_infinite() => {
            value.clamp(-LARGEST, LARGEST)
        }
        _ => value,
    }
}

/// A constant as it is in a program.
fn narrowed(tensor: &Tensor, element: MilElement) -> Result<Tensor> {
    let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
    match element {
        MilElement::Fp16 if tensor.dtype() != DataType::Fp16 => {
            if let Some(narrow) = halves::narrowed(tensor) {
                return narrow.map_err(|error| failed(&error));
            }
            let wide = converted(tensor, DataType::Fp32).map_err(|error| failed(&error))?;
            let all = wide.to_vec::<f32>().map_err(|error| failed(&error))?;
            let narrow = |value: f32| f16::from_f32(saturated(value, element));
            let all = all.into_iter().map(narrow).collect();
            Tensor::from_vec::<f16>(tensor.shape(), all).map_err(|error| failed(&error))
        }
        MilElement::Int32 if tensor.dtype() != DataType::Int32 => {
            let all = tensor.to_i64_vec().map_err(|error| failed(&error))?;
            Tensor::from_vec(tensor.shape(), narrow_all(&all)?).map_err(|error| failed(&error))
        }
        _ => converted(tensor, element.stored_as()).map_err(|error| failed(&error)),
    }
}
