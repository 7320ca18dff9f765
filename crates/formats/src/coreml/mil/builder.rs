//! Functions that are written operation by operation, each checked as it is added.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_tensor::{ByteString, OrderedMap, Tensor};

use super::{
    MilArgument, MilBlock, MilElement, MilFunction, MilOperation, MilTensorType, MilType, MilValue,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::import::ProgramLowering;

type Result<T> = std::result::Result<T, CoreMlError>;

/// A value of the function that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MilVar {
    name: Arc<str>,
}

impl MilVar {
    /// Its name in the program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Value to which an input of an operation is bound.
#[derive(Clone, Debug)]
pub enum MilArg {
    /// A value.
    Var(MilVar),
    /// Values, for an input that takes any number.
    Vars(Vec<MilVar>),
    /// An integer.
    Int(i32),
    /// Integers.
    Ints(Vec<i32>),
    /// A number of the type that the operation computes in.
    Float(MilElement, f32),
    /// A truth value.
    Bool(bool),
    /// Truth values.
    Bools(Vec<bool>),
    /// A word.
    Text(&'static str),
    /// Any constant.
    Value(Arc<MilValue>),
}

impl From<&MilVar> for MilArg {
    fn from(var: &MilVar) -> Self {
        Self::Var(var.clone())
    }
}

/// A function that is being written. Each operation is read as the interpreter reads it, which gives
/// the types of its outputs and refuses what Core ML would: unknown or missing inputs, wrong types and
/// shapes, operators that the set does not have.
#[derive(Debug)]
pub struct MilBuilder {
    opset: u32,
    lowering: ProgramLowering,
    function: MilFunction,
    types: HashMap<Arc<str>, MilType>,
    taken: HashSet<String>,
    /// Constants that stand for parameters, by what they are: each is written once.
    literals: HashMap<String, MilVar>,
    /// The interrupted blocks around the block that is being written, outermost first.
    around: Vec<InterruptedBlock>,
}

/// Block that is interrupted by a block inside it.
#[derive(Debug)]
struct InterruptedBlock {
    block: MilBlock,
    literals: HashMap<String, MilVar>,
}

impl MilBuilder {
    /// A function in the set of operators of this number: 5 for `CoreML5`.
    #[must_use]
    pub fn new(name: &str, opset: u32) -> Self {
        let function = MilFunction {
            inputs: Vec::new(),
            opset: format!("CoreML{opset}"),
            block: MilBlock::default(),
        };
        Self {
            opset,
            lowering: ProgramLowering::new(name),
            function,
            types: HashMap::new(),
            taken: HashSet::new(),
            literals: HashMap::new(),
            around: Vec::new(),
        }
    }

    /// The number of its set of operators.
    #[must_use]
    pub fn opset(&self) -> u32 {
        self.opset
    }

    /// An identifier that is not taken, as much like a stem as the language allows: letters, digits
    /// and underscores, the first no digit.
    pub fn fresh_name(&mut self, stem: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = stem.chars().map(letter).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name.insert(0, '_');
        }
        let mut free = name.clone();
        let mut count = 0;
        while !self.taken.insert(free.clone()) {
            count += 1;
            free = format!("{name}_{count}");
        }
        free
    }

    /// Keeps an identifier for an output, so that nothing else takes it before [`MilBuilder::output_as`].
    pub fn reserve(&mut self, stem: &str) -> String {
        self.fresh_name(stem)
    }

    /// Adds an operation whose output has an identifier that was reserved, and makes it an output of the
    /// function.
    ///
    /// # Errors
    /// Fails like [`MilBuilder::op`].
    pub fn output_as(
        &mut self,
        reserved: &str,
        operator: &str,
        inputs: Vec<(&str, MilArg)>,
    ) -> Result<MilVar> {
        let mut bound = OrderedMap::new();
        for (name, arg) in inputs {
            bound.insert(name.to_owned(), self.arguments(name, arg)?);
        }
        let operation = MilOperation {
            operator: operator.to_owned(),
            inputs: bound,
            ..MilOperation::default()
        };
        // From here on the first name that is asked for is this one.
        self.taken.remove(reserved);
        let mut outputs = self.add(operation, reserved, 1)?;
        let var = outputs.pop();
        let var = var.ok_or_else(|| CoreMlError::invalid("an operation without outputs"))?;
        self.output(&var);
        Ok(var)
    }

    /// Adds an input; `None` is a length that is known in a run only.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn input(
        &mut self,
        stem: &str,
        element: MilElement,
        shape: &[Option<usize>],
    ) -> Result<MilVar> {
        let name = self.fresh_name(stem);
        let found = MilTensorType { element, shape: Some(shape.to_vec()) };
        self.lowering.declare(&name, &found)?;
        Ok(self.enter(name, MilType::Tensor(found)))
    }

    /// Adds a state, of which `read_state` and `write_state` take the value.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn state(&mut self, stem: &str, element: MilElement, shape: &[usize]) -> Result<MilVar> {
        let name = self.fresh_name(stem);
        let shape = shape.iter().map(|&len| Some(len)).collect();
        let found = MilTensorType { element, shape: Some(shape) };
        self.lowering.declare_state(&name, &found)?;
        Ok(self.enter(name, MilType::State(found)))
    }

    fn enter(&mut self, name: String, stated: MilType) -> MilVar {
        let var = MilVar { name: Arc::from(name.as_str()) };
        self.function.inputs.push((name, stated.clone()));
        self.types.insert(Arc::clone(&var.name), stated);
        var
    }

    /// Returns the operations that the current block has so far.
    #[must_use]
    pub fn operations(&self) -> &[MilOperation] {
        &self.function.block.operations
    }

    /// The type of a value.
    #[must_use]
    pub fn type_of(&self, var: &MilVar) -> Option<&MilTensorType> {
        self.types.get(&var.name)?.as_tensor()
    }

    /// The elements of a value.
    ///
    /// # Errors
    /// Fails when it is no tensor.
    pub fn element(&self, var: &MilVar) -> Result<MilElement> {
        let found = self.type_of(var).map(|found| found.element);
        found.ok_or_else(|| CoreMlError::invalid(format!("'{}' is no tensor", var.name)))
    }

    /// The shape of a value.
    ///
    /// # Errors
    /// Fails when not all of it is known.
    pub fn shape(&self, var: &MilVar) -> Result<Vec<usize>> {
        let known = |found: &MilTensorType| found.shape.as_ref()?.iter().copied().collect();
        let found: Option<Vec<usize>> = self.type_of(var).and_then(known);
        found.ok_or_else(|| CoreMlError::invalid(format!("'{}' has no known shape", var.name)))
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// Fails when its type has no form in a program.
    pub fn constant(&mut self, stem: &str, element: MilElement, tensor: Tensor) -> Result<MilVar> {
        self.value(stem, Arc::new(MilValue::Tensor(element, tensor)))
    }

    /// Adds a constant of any kind.
    ///
    /// # Errors
    /// Fails like [`MilBuilder::constant`].
    pub fn value(&mut self, stem: &str, value: Arc<MilValue>) -> Result<MilVar> {
        let attributes = OrderedMap::from([("val".to_owned(), value)]);
        let operation =
            MilOperation { operator: "const".to_owned(), attributes, ..MilOperation::default() };
        let mut outputs = self.add(operation, stem, 1)?;
        outputs.pop().ok_or_else(|| CoreMlError::invalid("a constant without a value"))
    }

    /// Adds an operation with one output.
    ///
    /// # Errors
    /// Fails when the operator is not known, or refuses its inputs.
    pub fn op(
        &mut self,
        operator: &str,
        stem: &str,
        inputs: Vec<(&str, MilArg)>,
    ) -> Result<MilVar> {
        let mut outputs = self.op_of(operator, stem, inputs, 1)?;
        outputs.pop().ok_or_else(|| CoreMlError::invalid("an operation without outputs"))
    }

    /// Adds an operation with so many outputs.
    ///
    /// # Errors
    /// Fails like [`MilBuilder::op`].
    pub fn op_of(
        &mut self,
        operator: &str,
        stem: &str,
        inputs: Vec<(&str, MilArg)>,
        outputs: usize,
    ) -> Result<Vec<MilVar>> {
        let mut bound = OrderedMap::new();
        for (name, arg) in inputs {
            bound.insert(name.to_owned(), self.arguments(name, arg)?);
        }
        let operation = MilOperation {
            operator: operator.to_owned(),
            inputs: bound,
            ..MilOperation::default()
        };
        self.add(operation, stem, outputs)
    }

    fn arguments(&mut self, name: &str, arg: MilArg) -> Result<Vec<MilArgument>> {
        let named = |var: MilVar| MilArgument::Name(var.name.to_string());
        Ok(match arg {
            MilArg::Var(var) => vec![named(var)],
            MilArg::Vars(all) => all.into_iter().map(named).collect(),
            MilArg::Value(value) => vec![MilArgument::Value(value)],
            literal => vec![named(self.literal(name, literal)?)],
        })
    }

    /// The constant that stands for a parameter.
    fn literal(&mut self, stem: &str, literal: MilArg) -> Result<MilVar> {
        // coremltools' loader writes into the bounds of slices while it reads them: others must not share
        // what it changes.
        let shared = !matches!(literal, MilArg::Ints(_));
        let key = format!("{literal:?}");
        if let Some(known) = self.literals.get(&key).filter(|_| shared) {
            return Ok(known.clone());
        }
        let (element, tensor) = match literal {
            MilArg::Int(value) => (MilElement::Int32, Tensor::scalar(value)),
            MilArg::Ints(all) => (MilElement::Int32, Tensor::vector(all)),
            MilArg::Bool(value) => (MilElement::Bool, Tensor::scalar(value)),
            MilArg::Bools(all) => (MilElement::Bool, Tensor::vector(all)),
            MilArg::Text(word) => (MilElement::String, Tensor::scalar(ByteString::from(word))),
            MilArg::Float(element, value) => {
                let wide = Tensor::scalar(value);
                (element, galatea_graph::converted(&wide, element.stored_as())?)
            }
            MilArg::Var(_) | MilArg::Vars(_) | MilArg::Value(_) => {
                return Err(CoreMlError::invalid("a value is no literal"));
            }
        };
        let var = self.constant(&format!("const_{stem}"), element, tensor)?;
        self.literals.insert(key, var.clone());
        Ok(var)
    }

    /// Reads an operation, fills the types of its outputs in, and adds it.
    fn add(
        &mut self,
        mut operation: MilOperation,
        stem: &str,
        outputs: usize,
    ) -> Result<Vec<MilVar>> {
        // A state is written without an output.
        let names: Vec<String> = (0..outputs).map(|_| self.fresh_name(stem)).collect();
        let first = names.first().cloned().unwrap_or_else(|| self.fresh_name(stem));
        operation.outputs =
            names.iter().map(|name| (name.clone(), MilType::Tuple(Vec::new()))).collect();
        let name = MilValue::Tensor(MilElement::String, Tensor::scalar(ByteString::from(first)));
        operation.attributes.insert("name".to_owned(), Arc::new(name));
        let types = self.lowering.add(&operation, self.opset)?;
        for ((_, stated), found) in operation.outputs.iter_mut().zip(&types) {
            *stated = found.clone();
        }
        self.function.block.operations.push(operation);
        let vars = names.iter().zip(types).map(|(name, found)| {
            let var = MilVar { name: Arc::from(name.as_str()) };
            self.types.insert(Arc::clone(&var.name), found);
            var
        });
        Ok(vars.collect())
    }

    /// Begins a block inside of the function, with inputs of these types: what is added from here on
    /// belongs to it, until [`MilBuilder::end_block`].
    ///
    /// # Errors
    /// Fails when an input's name is taken.
    pub fn begin_block(&mut self, inputs: &[(&str, MilTensorType)]) -> Result<Vec<MilVar>> {
        let block = std::mem::take(&mut self.function.block);
        self.around.push(InterruptedBlock { block, literals: self.literals.clone() });
        self.lowering.enter();
        let mut vars = Vec::with_capacity(inputs.len());
        for (stem, found) in inputs {
            let name = self.fresh_name(stem);
            self.lowering.declare_inner(&name, found)?;
            let var = MilVar { name: Arc::from(name.as_str()) };
            self.function.block.inputs.push((name, MilType::Tensor(found.clone())));
            self.types.insert(Arc::clone(&var.name), MilType::Tensor(found.clone()));
            vars.push(var);
        }
        Ok(vars)
    }

    /// Ends the innermost block, whose outputs are these values.
    pub fn end_block(&mut self, outputs: &[MilVar]) -> MilBlock {
        let Some(around) = self.around.pop() else { return MilBlock::default() };
        let mut block = std::mem::replace(&mut self.function.block, around.block);
        block.outputs = outputs.iter().map(|var| var.name.to_string()).collect();
        // What the block made is not seen outside of it.
        self.literals = around.literals;
        self.lowering.leave();
        block
    }

    /// Adds an operation with blocks.
    ///
    /// # Errors
    /// Fails like [`MilBuilder::op`].
    pub fn op_with_blocks(
        &mut self,
        operator: &str,
        stem: &str,
        inputs: Vec<(&str, MilArg)>,
        blocks: Vec<MilBlock>,
        outputs: usize,
    ) -> Result<Vec<MilVar>> {
        let mut bound = OrderedMap::new();
        for (name, arg) in inputs {
            bound.insert(name.to_owned(), self.arguments(name, arg)?);
        }
        let operator = operator.to_owned();
        let operation = MilOperation { operator, inputs: bound, blocks, ..MilOperation::default() };
        self.add(operation, stem, outputs)
    }

    /// Makes a value an output of the function.
    pub fn output(&mut self, var: &MilVar) {
        self.function.block.outputs.push(var.name.to_string());
    }

    /// Adds an operation that makes a constant of compressed ones, whose type is known: nobody expands
    /// it here.
    ///
    /// # Errors
    /// Fails when a name is taken.
    pub fn compressed(
        &mut self,
        operation: MilOperation,
        stem: &str,
        element: MilElement,
        shape: &[usize],
    ) -> Result<MilVar> {
        let name = self.fresh_name(stem);
        let lengths = shape.iter().map(|&len| Some(len)).collect();
        let found = MilTensorType { element, shape: Some(lengths) };
        self.lowering.declare(&name, &found)?;
        let mut operation = operation;
        let own =
            MilValue::Tensor(MilElement::String, Tensor::scalar(ByteString::from(name.as_str())));
        operation.attributes.insert("name".to_owned(), Arc::new(own));
        operation.outputs = vec![(name.clone(), MilType::Tensor(found.clone()))];
        self.function.block.operations.push(operation);
        let var = MilVar { name: Arc::from(name.as_str()) };
        self.types.insert(Arc::clone(&var.name), MilType::Tensor(found));
        Ok(var)
    }

    /// The finished function.
    #[must_use]
    pub fn finish(self) -> MilFunction {
        self.function
    }
}
