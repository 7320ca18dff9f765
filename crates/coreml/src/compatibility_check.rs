//! Judgement of whether the engine takes the operations of a program.

use std::collections::{HashMap, HashSet};

use galatea_formats::coreml::mil::{
    MilArgument, MilFunction, MilOperation, MilTensorType, MilType, MilValue,
};

use super::planned_elsewhere::{PlannedElsewhere, is_engine};
use super::rules::{EngineRules, RefusedOperations, RuleCondition, RulePlace};

/// Returns whether an operation is a constant, which nobody runs.
pub(super) fn is_constant(operation: &MilOperation) -> bool {
    operation.operator == "const" || operation.operator.starts_with("constexpr_")
}

/// Constant or type of a value of a program.
#[derive(Clone, Copy)]
enum ProgramValue<'f> {
    Constant(&'f MilValue),
    Value(&'f MilTensorType),
}

/// Every value of a program by name.
fn values(function: &MilFunction) -> HashMap<&str, ProgramValue<'_>> {
    let typed = |found: &'_ MilType| found.as_tensor().is_some();
    let inputs = function.inputs.iter().filter(|(_, found)| typed(found));
    let mut all: HashMap<&str, ProgramValue<'_>> = inputs
        .filter_map(|(name, found)| Some((name.as_str(), ProgramValue::Value(found.as_tensor()?))))
        .collect();
    // Compressed weights are constants too, whose elements nobody looks at.
    let plain = |operation: &&MilOperation| !operation.operator.starts_with("constexpr_");
    for operation in function.block.operations.iter().filter(plain) {
        let constant = operation.attributes.get("val").filter(|_| operation.operator == "const");
        for (name, found) in &operation.outputs {
            let seen = match (constant, found.as_tensor()) {
                (Some(value), _) => ProgramValue::Constant(value),
                (None, Some(found)) => ProgramValue::Value(found),
                (None, None) => continue,
            };
            all.insert(name, seen);
        }
    }
    all
}

/// Compares operations with the rules, and with what Core ML has planned here.
pub(super) struct CompatibilityCheck<'f> {
    rules: &'f EngineRules,
    place: RulePlace,
    measured: &'f PlannedElsewhere,
    values: HashMap<&'f str, ProgramValue<'f>>,
}

/// Neighbouring operations of a program that leave the engine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OffEngineStretch {
    /// Their number.
    pub(super) operations: usize,
    /// Why the first of them leaves.
    pub(super) reason: String,
    /// How often the program changes the unit for them: once at an end, else twice.
    pub(super) changes: usize,
}

impl<'f> CompatibilityCheck<'f> {
    /// Returns a judge of the operations of a function.
    pub(super) fn of(
        rules: &'f EngineRules,
        place: RulePlace,
        measured: &'f PlannedElsewhere,
        function: &'f MilFunction,
    ) -> Self {
        Self { rules, place, measured, values: values(function) }
    }

    /// Why the engine does not take an operation, if it does not.
    pub(super) fn refusal(&self, operation: &MilOperation) -> Option<String> {
        let ruled = self.ruled(operation);
        if self.measured.is_empty() {
            return ruled;
        }
        let kind = self.kind(operation);
        match self.measured.unit(&kind) {
            Some(unit) if is_engine(unit) => None,
            Some(unit) => Some(format!("measured plan: Core ML runs {kind} on the {unit}")),
            None => ruled,
        }
    }

    /// Returns the reason for which the rules alone refuse an operation, if they do.
    pub(super) fn ruled(&self, operation: &MilOperation) -> Option<String> {
        let operator = operation.operator.as_str();
        let mut refusing =
            self.rules.refuses.iter().filter(|rule| rule.speaks_of(self.place, operator));
        if let Some(rule) = refusing.find(|rule| self.holds(rule, operation)) {
            return Some(format!("rule '{}': {operator}: {}", rule.name, rule.reason));
        }
        let taken = self.rules.takes.iter().any(|rule| rule.holds(self.place, operator));
        (!taken).then(|| format!("nothing says that the engine takes '{operator}'"))
    }

    /// Returns a text for the kind of an operation, as a compiler sees it: its operator, and the
    /// types and shapes of its inputs and outputs.
    pub(super) fn kind(&self, operation: &MilOperation) -> String {
        let shown = |found: &MilTensorType| {
            let lengths: Vec<String> = found
                .shape
                .iter()
                .flatten()
                .map(|length| length.map_or_else(|| "?".to_owned(), |length| length.to_string()))
                .collect();
            format!("{}[{}]", found.element, lengths.join(","))
        };
        let read = operation.inputs.values().flatten().filter_map(|argument| match argument {
            MilArgument::Name(name) => match self.values.get(name.as_str())? {
                ProgramValue::Value(found) => Some(shown(found)),
                ProgramValue::Constant(_) => None,
            },
            MilArgument::Value(_) => None,
        });
        let read: Vec<String> = read.collect();
        let given = operation.outputs.iter().filter_map(|(_, found)| found.as_tensor());
        let given: Vec<String> = given.map(shown).collect();
        format!("{} {} from {}", operation.operator, given.join(" "), read.join(" "))
    }

    /// The stretches of a function that leave the engine. Casts of what goes in and comes out are no part of it.
    pub(super) fn stretches(&self, function: &MilFunction) -> Vec<OffEngineStretch> {
        let inputs: HashSet<&str> = function.inputs.iter().map(|(name, _)| name.as_str()).collect();
        let outputs: HashSet<&str> = function.block.outputs.iter().map(String::as_str).collect();
        let border = |operation: &MilOperation| {
            let reads = operation.inputs.get("x").into_iter().flatten();
            let from_outside = reads.into_iter().any(
                |argument| matches!(argument, MilArgument::Name(name) if inputs.contains(name.as_str())),
            );
            let given = operation.outputs.iter().any(|(name, _)| outputs.contains(name.as_str()));
            operation.operator == "cast" && (from_outside || given)
        };
        let real = function.block.operations.iter();
        let real = real.filter(|operation| !is_constant(operation) && !border(operation));
        let judged: Vec<Option<String>> = real.map(|operation| self.refusal(operation)).collect();
        let mut stretches = Vec::new();
        let mut at = 0;
        for chunk in judged.chunk_by(|a, b| a.is_some() == b.is_some()) {
            let before = at > 0;
            let behind = at + chunk.len() < judged.len();
            at += chunk.len();
            if let Some(Some(reason)) = chunk.first() {
                stretches.push(OffEngineStretch {
                    operations: chunk.len(),
                    reason: reason.clone(),
                    changes: usize::from(before) + usize::from(behind),
                });
            }
        }
        stretches
    }

    fn holds(&self, rule: &RefusedOperations, operation: &MilOperation) -> bool {
        rule.conditions.iter().all(|condition| match condition {
            RuleCondition::Elements { types, apart_from } => {
                let one_of = |found: &MilTensorType| types.contains(&found.element.to_string());
                self.any_but(apart_from, operation, one_of)
            }
            RuleCondition::AxesAbove(most) => {
                let rank = |found: &MilTensorType| found.shape.as_ref().map_or(0, Vec::len);
                self.any(operation, |found| rank(found) > *most)
            }
            RuleCondition::LengthAbove(axis, most) => self.any(operation, |found| {
                let length = found.shape.as_ref().and_then(|shape| axis.of(shape));
                length.is_some_and(|length| length > *most)
            }),
            RuleCondition::Open => self.any(operation, |found| {
                found.shape.as_ref().is_none_or(|shape| shape.contains(&None))
            }),
            RuleCondition::ParameterAbove(name, most) => {
                let bound = operation.inputs.get(name).into_iter().flatten();
                bound
                    .filter_map(|argument| self.integers(argument))
                    .flatten()
                    .any(|one| one > *most)
            }
        })
    }

    /// Returns whether this holds of a value that the operation gives, or reads and that is no
    /// constant.
    fn any(&self, operation: &MilOperation, holds: impl Fn(&MilTensorType) -> bool) -> bool {
        self.any_but(&[], operation, holds)
    }

    /// Checks like [`CompatibilityCheck::any`] values that other parameters read than these.
    fn any_but(
        &self,
        apart_from: &[String],
        operation: &MilOperation,
        holds: impl Fn(&MilTensorType) -> bool,
    ) -> bool {
        let inputs = operation.inputs.iter().filter(|(name, _)| !apart_from.contains(name));
        let read = inputs.flat_map(|(_, all)| all).filter_map(|argument| match argument {
            MilArgument::Name(name) => match self.values.get(name.as_str())? {
                ProgramValue::Value(found) => Some(*found),
                ProgramValue::Constant(_) => None,
            },
            MilArgument::Value(_) => None,
        });
        let given = operation.outputs.iter().filter_map(|(_, found)| found.as_tensor());
        read.chain(given).any(holds)
    }

    /// The type of a value that is no constant.
    pub(super) fn type_of(&self, argument: &MilArgument) -> Option<&MilTensorType> {
        match argument {
            MilArgument::Name(name) => match self.values.get(name.as_str())? {
                ProgramValue::Value(found) => Some(found),
                ProgramValue::Constant(_) => None,
            },
            MilArgument::Value(_) => None,
        }
    }

    /// The constant that an argument is.
    fn constant<'a>(&'a self, argument: &'a MilArgument) -> Option<&'a MilValue> {
        match argument {
            MilArgument::Value(value) => Some(value.as_ref()),
            MilArgument::Name(name) => match self.values.get(name.as_str())? {
                ProgramValue::Constant(value) => Some(value),
                ProgramValue::Value(_) => None,
            },
        }
    }

    /// The lengths of a value, with 1 for those that only a run brings.
    pub(super) fn shape_of(&self, argument: &MilArgument) -> Option<Vec<usize>> {
        match self.constant(argument) {
            Some(MilValue::Tensor(_, tensor)) => Some(tensor.shape().to_vec()),
            Some(_) => None,
            None => {
                let shape = self.type_of(argument)?.shape.as_ref()?;
                Some(shape.iter().map(|len| len.unwrap_or(1)).collect())
            }
        }
    }

    /// Returns whether a parameter is true.
    pub(super) fn truth(&self, operation: &MilOperation, name: &str) -> bool {
        let given = operation.inputs.get(name).and_then(|all| all.first());
        match given.and_then(|argument| self.constant(argument)) {
            Some(MilValue::Tensor(_, tensor)) => tensor.item::<bool>().unwrap_or(false),
            _ => false,
        }
    }

    fn integers(&self, argument: &MilArgument) -> Option<Vec<i64>> {
        let value = match argument {
            MilArgument::Value(value) => value.as_ref(),
            MilArgument::Name(name) => match self.values.get(name.as_str())? {
                ProgramValue::Constant(value) => value,
                ProgramValue::Value(_) => return None,
            },
        };
        match value {
            MilValue::Tensor(_, tensor) => tensor.to_i64_vec().ok(),
            _ => None,
        }
    }
}
