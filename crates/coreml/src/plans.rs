//! Plans that Core ML has made on this machine for operations that were compiled before: they take
//! precedence over the rules.
//!
//! A plan names, for each operation, the devices that could run it. If it contradicts the rules,
//! the operation's kind is noted in a file for this chip and this build of the system, which the
//! next load reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use galatea_apple::ChipIdentity;
use galatea_formats::coreml::NewPackage;
use galatea_runtime::PlacedOperator;

use super::compatibility_check::{CompatibilityCheck, is_constant};
use super::engine::{PlanRecorder, TextRecords, facts, records};
use super::neural_engine::NeuralEngine;
use super::rules::{RulePlace, rules};

/// Kind of the files with noted kinds of operations.
const KIND: &str = "plan";
/// Separator of a kind and its device.
const ON: &str = " => ";
/// The most kinds; where there are more, no others are noted.
const MAX_KINDS: usize = 4096;

/// Returns whether a unit, as Core ML or a note names it, is the Neural Engine.
pub(super) fn is_engine(unit: &str) -> bool {
    unit.starts_with("Neural Engine")
}

/// The kinds of operations that were planned on another unit than the rules say, with that unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlannedElsewhere(BTreeMap<String, String>);

impl PlannedElsewhere {
    /// Returns the notes for an engine; none if it is not the engine of this machine.
    pub(super) fn of(engine: Option<&NeuralEngine>) -> Self {
        let here = ChipIdentity::detect()
            .is_ok_and(|chip| engine.is_some_and(|one| one.chip == chip.name));
        let records = records().filter(|_| here);
        records.map_or_else(Self::default, |records| Self::read(&records))
    }

    fn read(records: &TextRecords) -> Self {
        let text = records.read(KIND, number(records)).unwrap_or_default();
        let row = |line: &str| {
            let (kind, unit) = line.split_once(ON)?;
            Some((kind.to_owned(), unit.to_owned()))
        };
        // A line that was cut off is left out, and found out anew.
        Self(text.lines().filter_map(row).take(MAX_KINDS).collect())
    }

    fn write(&self, records: &TextRecords) {
        let lines: Vec<String> =
            self.0.iter().map(|(kind, unit)| format!("{kind}{ON}{unit}\n")).collect();
        records.write(KIND, number(records), &lines.concat());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The unit that a kind of operation was planned on, where that was noted.
    pub(super) fn unit(&self, kind: &str) -> Option<&str> {
        self.0.get(kind).map(String::as_str)
    }

    /// Takes note of a plan of a package, where it is not what the rules say. Whether there was something to note.
    fn note(&mut self, package: &NewPackage, place: RulePlace, plan: &[PlacedOperator]) -> bool {
        // A plan without the engine says nothing of it.
        if !plan.iter().any(|row| row.supported.iter().any(|unit| is_engine(unit))) {
            return false;
        }
        let none = Self::default();
        let rows: BTreeMap<&str, &PlacedOperator> =
            plan.iter().filter_map(|row| Some((row.outputs.first()?.as_str(), row))).collect();
        let mut changed = false;
        for function in package.program.functions.values() {
            let judge = CompatibilityCheck::of(rules(), place, &none, function);
            for operation in function.block.operations.iter().filter(|one| !is_constant(one)) {
                let row = operation.outputs.first().and_then(|(name, _)| rows.get(name.as_str()));
                let Some(row) = row.filter(|row| !row.supported.is_empty()) else { continue };
                let could = row.supported.iter().find(|unit| is_engine(unit));
                let unit = could.unwrap_or(&row.planned);
                if unit.contains('\n') {
                    continue;
                }
                let kind = judge.kind(operation);
                let as_ruled = judge.ruled(operation).is_none() == could.is_some();
                changed |= match as_ruled {
                    true => self.0.remove(&kind).is_some(),
                    false if self.0.len() >= MAX_KINDS => false,
                    false => self.0.insert(kind, unit.clone()).as_ref() != Some(unit),
                };
            }
        }
        changed
    }
}

/// The number of this machine's file.
fn number(records: &TextRecords) -> u128 {
    records.digest(&|to| to.write(facts().as_bytes()))
}

/// Takes note of the plan of a package that was compiled for an engine.
pub(super) fn note(engine: &NeuralEngine, package: &NewPackage, plan: &[PlacedOperator]) {
    let Some(records) = records() else { return };
    let mut measured = PlannedElsewhere::read(&records);
    let specification = package.specification;
    let opset = u32::try_from(specification - 1).unwrap_or(0);
    if measured.note(package, RulePlace { opset, generation: engine.generation }, plan) {
        measured.write(&records);
    }
}

/// Returns the function that notes the plans of an engine's packages; none where there is no engine.
pub(super) fn noted(engine: Option<&NeuralEngine>) -> Option<PlanRecorder> {
    let engine = engine?.clone();
    Some(Arc::new(move |package, plan| note(&engine, package, plan)))
}

#[cfg(test)]
#[path = "plans_tests.rs"]
mod tests;
