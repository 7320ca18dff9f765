//! Plans that Core ML has made on this machine for operations that were compiled before: they take
//! precedence over the rules.
//!
//! A plan names, for each operation, the devices that could run it. If it contradicts the rules,
//! the operation's kind is noted in a file for this chip and this build of the system, which the
//! next load reads.

use std::sync::Arc;

use galatea_formats::coreml::NewPackage;
use galatea_runtime::PlacedOperator;
use galatea_tensor::OrderedMap;

use super::compatibility_check::{CompatibilityCheck, is_constant};
use super::engine::{PlanRecorder, records};
use super::neural_engine::NeuralEngine;
use super::planned_elsewhere::{PlannedElsewhere, is_engine};
use super::rules::{RulePlace, rules};

/// Takes note of a plan of a package, where it is not what the rules say. Whether there was something to note.
fn note_plan(
    measured: &mut PlannedElsewhere,
    package: &NewPackage,
    place: RulePlace,
    plan: &[PlacedOperator],
) -> bool {
    // A plan without the engine says nothing of it.
    if !plan.iter().any(|row| row.supported.iter().any(|unit| is_engine(unit))) {
        return false;
    }
    let none = PlannedElsewhere::default();
    let rows: OrderedMap<&str, &PlacedOperator> =
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
                true => measured.forget(&kind),
                false => measured.note(kind, unit),
            };
        }
    }
    changed
}

/// Takes note of the plan of a package that was compiled for an engine.
pub(super) fn note(engine: &NeuralEngine, package: &NewPackage, plan: &[PlacedOperator]) {
    let Some(records) = records() else { return };
    let mut measured = PlannedElsewhere::read(&records);
    let specification = package.specification;
    let opset = u32::try_from(specification - 1).unwrap_or(0);
    if note_plan(&mut measured, package, RulePlace { opset, generation: engine.generation }, plan) {
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
