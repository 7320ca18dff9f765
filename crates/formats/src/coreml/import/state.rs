//! States: what a run finds and leaves.

use super::LoweringRow;
use super::lowering::{BoundName, ProgramLowering, Result};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::since(8, "read_state", read_state),
    LoweringRow::since(8, "write_state", write_state),
];

/// The state that the operation is about.
fn state<'p>(low: &mut ProgramLowering, op: &LoweredOperation<'p>) -> Result<String> {
    let name = op.name_of("input")?;
    match low.lookup(name) {
        Some(BoundName::State(state)) => Ok(state),
        Some(_) => Err(CoreMlError::invalid(format!("'{name}' is no state"))),
        None => Err(CoreMlError::invalid(format!("there is no state '{name}'"))),
    }
}

fn read_state(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let name = state(low, op)?;
    if low.is_nested() {
        return Err(CoreMlError::unsupported("a state that is read inside of a block"));
    }
    let value = low.state(&name);
    let value = value.ok_or_else(|| CoreMlError::invalid(format!("there is no state '{name}'")))?;
    low.give(op, &[value])
}

/// Sets the value that is read of the state from here on, and left for the next run.
fn write_state(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let name = state(low, op)?;
    if low.is_nested() {
        return Err(CoreMlError::unsupported("a state that is written inside of a block"));
    }
    let value = low.required(op, "data")?;
    let held = low.state(&name).map(|held| low.fact(held).cloned()).transpose()?;
    let written = low.fact(value)?;
    let fits = held.as_ref().is_some_and(|held| {
        let same = match (held.known_shape(), written.known_shape()) {
            (Some(held), Some(written)) => held == written,
            (held, written) => held.is_none() || written.is_none(),
        };
        same && held.dtype == written.dtype
    });
    if !fits {
        let held = held.map_or_else(String::new, |held| held.to_string());
        let text = format!("the state '{name}' holds {held}, the data are {written}");
        return Err(CoreMlError::invalid(text));
    }
    low.set_state(&name, value);
    // Some producers give the state's value a name.
    match op.outputs().is_empty() {
        true => Ok(()),
        false => low.give(op, &[value]),
    }
}
