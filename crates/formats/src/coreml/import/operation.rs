//! Reading the inputs of an operation, and noticing what nobody read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::lowering::{BoundName, ProgramLowering, Result, agrees, type_of};
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilArgument, MilBlock, MilElement, MilOperation, MilType, MilValue};

/// An operation that is being lowered.
pub(super) struct LoweredOperation<'p> {
    operation: &'p MilOperation,
    /// The number of its set of operators: 5 for `CoreML5`.
    pub(super) opset: u32,
    read: RefCell<HashSet<&'static str>>,
}

impl<'p> LoweredOperation<'p> {
    pub(super) fn new(operation: &'p MilOperation, opset: u32) -> Self {
        // What every operation may say beside its inputs.
        Self { operation, opset, read: RefCell::new(HashSet::from(["name"])) }
    }

    /// Names and types of the outputs.
    pub(super) fn outputs(&self) -> &'p [(String, MilType)] {
        &self.operation.outputs
    }

    /// The element type that the program says of an output.
    pub(super) fn output_element(&self, index: usize) -> Option<MilElement> {
        Some(self.operation.outputs.get(index)?.1.as_tensor()?.element)
    }

    /// The blocks.
    pub(super) fn blocks(&self) -> &'p [MilBlock] {
        &self.operation.blocks
    }

    /// An attribute.
    pub(super) fn attribute(&self, name: &'static str) -> Option<&'p Arc<MilValue>> {
        self.read.borrow_mut().insert(name);
        self.operation.attributes.get(name)
    }

    fn arguments(&self, name: &'static str) -> Option<&'p [MilArgument]> {
        self.read.borrow_mut().insert(name);
        self.operation.inputs.get(name).map(Vec::as_slice)
    }

    /// The one argument that an input is bound to, if there is such an input.
    fn argument(&self, name: &'static str) -> Result<Option<&'p MilArgument>> {
        match self.arguments(name) {
            None => Ok(None),
            Some([one]) => Ok(Some(one)),
            Some(all) => Err(CoreMlError::invalid(format!(
                "input '{name}' is bound to {} values, expected one",
                all.len()
            ))),
        }
    }

    /// The name of the value that an input is bound to, such as that of a state.
    pub(super) fn name_of(&self, name: &'static str) -> Result<&'p str> {
        match self.argument(name)? {
            Some(MilArgument::Name(found)) => Ok(found),
            Some(MilArgument::Value(_)) => {
                Err(CoreMlError::invalid(format!("input '{name}' is a constant")))
            }
            None => Err(missing(name)),
        }
    }

    /// Declares that an input or attribute is known and has no effect here.
    pub(super) fn ignore(&self, name: &'static str) {
        self.read.borrow_mut().insert(name);
    }

    /// Ends reading.
    ///
    /// # Errors
    /// Fails when an input or attribute was never read: the program says something that would be
    /// ignored.
    pub(super) fn finish(&self) -> Result<()> {
        let read = self.read.borrow();
        let all = self.operation.inputs.keys().chain(self.operation.attributes.keys());
        match all.into_iter().find(|name| !read.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(CoreMlError::invalid(format!(
                "the operator has no input '{name}' in CoreML{}",
                self.opset
            ))),
        }
    }
}

fn missing(name: &str) -> CoreMlError {
    CoreMlError::invalid(format!("input '{name}' is missing"))
}

impl ProgramLowering {
    fn bound(&mut self, argument: &MilArgument) -> Result<BoundName> {
        match argument {
            MilArgument::Value(value) => Ok(BoundName::Constant(Arc::clone(value))),
            MilArgument::Name(name) => self.lookup(name).ok_or_else(|| {
                CoreMlError::invalid(format!("nothing before it gives a value '{name}'"))
            }),
        }
    }

    fn value(&mut self, argument: &MilArgument) -> Result<ValueId> {
        match argument {
            MilArgument::Value(value) => self.initializer(value),
            MilArgument::Name(name) => self.value_of(name),
        }
    }

    /// The value that an input is bound to, if there is such an input.
    pub(super) fn optional(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<ValueId>> {
        let Some(argument) = op.argument(name)? else { return Ok(None) };
        self.value(argument).map(Some).map_err(|error| error.at(format!("input '{name}'")))
    }

    /// The value that an input is bound to.
    ///
    /// # Errors
    /// Fails when there is no such input.
    pub(super) fn required(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<ValueId> {
        self.optional(op, name)?.ok_or_else(|| missing(name))
    }

    /// The values that an input is bound to, which takes any number.
    ///
    /// # Errors
    /// Fails when there is no such input.
    pub(super) fn several(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Vec<ValueId>> {
        let all = op.arguments(name).ok_or_else(|| missing(name))?;
        let all: Result<Vec<ValueId>> = all.iter().map(|argument| self.value(argument)).collect();
        all.map_err(|error| error.at(format!("input '{name}'")))
    }

    /// The constant that an input (or an attribute) is bound to, if there is one. A value that the
    /// graph computes from constants counts as one.
    ///
    /// # Errors
    /// Fails when the input depends on the run's.
    pub(super) fn constant_of(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<Arc<MilValue>>> {
        let Some(argument) = op.argument(name)? else { return Ok(op.attribute(name).cloned()) };
        let value = self.constant_bound(argument);
        value.map(Some).map_err(|error| error.at(format!("input '{name}'")))
    }

    /// The constant that an argument is.
    fn constant_bound(&mut self, argument: &MilArgument) -> Result<Arc<MilValue>> {
        match self.bound(argument)? {
            BoundName::Constant(value) => Ok(value),
            BoundName::Value(id) => {
                let known = self.fact(id)?.value.clone();
                let element = known.as_ref().and_then(|tensor| MilElement::of(tensor.dtype()));
                match known.zip(element) {
                    Some((tensor, element)) => Ok(Arc::new(MilValue::Tensor(element, tensor))),
                    None => {
                        let text = "it depends on the run's inputs, the operator takes a constant";
                        Err(CoreMlError::invalid(text))
                    }
                }
            }
            BoundName::State(_) => Err(CoreMlError::invalid("it is a state")),
        }
    }

    /// The constants that an input is bound to, which takes any number, if there is such an input.
    pub(super) fn constants(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<Vec<Arc<MilValue>>>> {
        let Some(all) = op.arguments(name) else { return Ok(None) };
        let all: Result<Vec<Arc<MilValue>>> =
            all.iter().map(|argument| self.constant_bound(argument)).collect();
        all.map(Some).map_err(|error| error.at(format!("input '{name}'")))
    }

    /// The constant tensor that an input is bound to, if there is one.
    pub(super) fn tensor(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<(MilElement, Tensor)>> {
        let Some(value) = self.constant_of(op, name)? else { return Ok(None) };
        match &*value {
            MilValue::Tensor(element, tensor) => Ok(Some((*element, tensor.clone()))),
            other => {
                let text = format!("input '{name}' is {}, expected a tensor", other.describe());
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// The constant integers that an input is bound to, if there is one.
    pub(super) fn ints(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<Vec<i64>>> {
        let Some((element, tensor)) = self.tensor(op, name)? else { return Ok(None) };
        match tensor.to_i64_vec() {
            Ok(all) => Ok(Some(all)),
            Err(_) => {
                let text = format!("input '{name}' is {element}, expected integers");
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// The constant integer that an input is bound to, if there is one.
    pub(super) fn int(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<i64>> {
        match self.ints(op, name)?.as_deref() {
            None => Ok(None),
            Some([one]) => Ok(Some(*one)),
            Some(all) => {
                let text = format!("input '{name}' has {} elements, expected one", all.len());
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// The constant truth value that an input is bound to, or its default.
    pub(super) fn flag(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
        default: bool,
    ) -> Result<bool> {
        Ok(self.flags(op, name)?.and_then(|all| all.first().copied()).unwrap_or(default))
    }

    /// The constant truth values that an input is bound to, if there is one.
    pub(super) fn flags(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<Vec<bool>>> {
        let Some((element, tensor)) = self.tensor(op, name)? else { return Ok(None) };
        match tensor.to_vec::<bool>() {
            Ok(all) => Ok(Some(all)),
            Err(_) => {
                let text = format!("input '{name}' is {element}, expected bool");
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// The constant number that an input is bound to, if there is one.
    pub(super) fn float(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<f64>> {
        let Some((element, tensor)) = self.tensor(op, name)? else { return Ok(None) };
        let wide = galatea_graph::converted(&tensor, DataType::Fp64)?;
        match wide.to_vec::<f64>().as_deref() {
            Ok([one]) => Ok(Some(*one)),
            _ => {
                let found = format!("{element}{:?}", tensor.shape());
                let text = format!("input '{name}' is {found}, expected one number");
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// The constant word that an input is bound to, if there is one.
    pub(super) fn word(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<Option<String>> {
        let Some(value) = self.constant_of(op, name)? else { return Ok(None) };
        match value.as_text() {
            Some(text) => Ok(Some(text)),
            None => {
                let text = format!("input '{name}' is {}, expected a text", value.describe());
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// One of several constant words, as its position; absent means the first.
    pub(super) fn choice(
        &mut self,
        op: &LoweredOperation<'_>,
        name: &'static str,
        choices: &[&str],
    ) -> Result<usize> {
        let Some(found) = self.word(op, name)? else { return Ok(0) };
        choices.iter().position(|choice| *choice == found).ok_or_else(|| {
            let choices = choices.join(", ");
            let text = format!("input '{name}' is '{found}', expected one of {choices}");
            CoreMlError::invalid(text)
        })
    }

    /// An axis that counts from the end where it is negative, as a position.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let at = if axis < 0 { axis + signed } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < rank => Ok(at),
            _ => Err(CoreMlError::invalid(format!("axis {axis} of a value of {rank} axes"))),
        }
    }
}

impl ProgramLowering {
    /// Gives an operation's outputs their values, which must be what the program says of them.
    ///
    /// # Errors
    /// Fails when their number, types or shapes differ.
    pub(super) fn give(&mut self, op: &LoweredOperation<'_>, results: &[ValueId]) -> Result<()> {
        let stated = op.outputs();
        if stated.len() != results.len() {
            let stated = stated.len();
            let found = results.len();
            let text = format!("it says {stated} outputs, the operator gives {found}");
            return Err(CoreMlError::invalid(text));
        }
        for ((name, stated), &id) in stated.iter().zip(results) {
            let found = self.fact(id)?;
            if self.given.is_some() {
                let found = type_of(found)?;
                self.define(name, BoundName::Value(id))?;
                self.given.iter_mut().for_each(|all| all.push(found.clone()));
                continue;
            }
            if !agrees(stated, found) {
                let text =
                    format!("output '{name}' is said to be {stated}, the operator gives {found}");
                return Err(CoreMlError::invalid(text));
            }
            self.define(name, BoundName::Value(id))?;
        }
        Ok(())
    }
}
