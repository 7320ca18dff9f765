//! Which unit a model or a request asks for.

use std::sync::Arc;

use galatea_runtime::PlacementOptions;
use galatea_runtime::device_selector::ExecutionGoal;

use super::ProviderFactory;
use crate::backend::ModelFiles;
use crate::error::ServingError;
use crate::payload::ActiveRequest;
use crate::request::{EXECUTION_LOCATION, ParameterValue};

/// The parameter of models that says what a unit is chosen by.
const EXECUTION_GOAL: &str = "execution_goal";

/// The names of units, and the providers that they are.
const LOCATIONS: &[(&str, Option<&str>)] = &[
    ("auto", None),
    ("cpu", Some("cpu")),
    ("amx", Some("cpu")),
    ("gpu", Some("gpu")),
    ("metal", Some("gpu")),
    ("neural_engine", Some("coreml")),
    ("ane", Some("coreml")),
];

/// The provider that a name stands for; nothing for `auto`.
fn parse(text: &str) -> Result<Option<&'static str>, String> {
    let own = LOCATIONS.iter().find(|(name, _)| text.trim().eq_ignore_ascii_case(name));
    own.map(|(_, provider)| *provider).ok_or_else(|| {
        let names: Vec<&str> = LOCATIONS.iter().map(|(name, _)| *name).collect();
        format!("'{text}' found, expected {}", names.join(", "))
    })
}

/// The provider that a model's parameters ask for.
///
/// # Errors
/// INVALID_ARG with what was found and what was expected.
pub(super) fn of_model(files: &ModelFiles) -> Result<Option<&'static str>, ServingError> {
    let Some(text) = files.parameter(EXECUTION_LOCATION) else { return Ok(None) };
    parse(text).map_err(|error| {
        ServingError::invalid_arg(format!(
            "parameter '{EXECUTION_LOCATION}' of '{}': {error}",
            files.name
        ))
    })
}

/// The provider that the requests of a batch ask for, who all ask for the same.
///
/// # Errors
/// INVALID_ARG with what was found and what was expected.
pub(super) fn of_batch(requests: &[ActiveRequest]) -> Result<Option<&'static str>, ServingError> {
    let parameters = requests.first().map(|first| &first.request.parameters);
    let mut own = parameters.into_iter().flatten();
    match own.find(|(name, _)| name == EXECUTION_LOCATION) {
        None => Ok(None),
        Some((_, ParameterValue::String(text))) => parse(text).map_err(|error| {
            ServingError::invalid_arg(format!("request parameter '{EXECUTION_LOCATION}': {error}"))
        }),
        Some((_, other)) => Err(ServingError::invalid_arg(format!(
            "request parameter '{EXECUTION_LOCATION}': {other:?} found, expected the name of a unit"
        ))),
    }
}

/// The providers with the named one first, which runs whatever it can.
///
/// # Errors
/// INVALID_ARG where there is none of that name.
pub(super) fn first(
    mut providers: ProviderFactory,
    name: &str,
    files: &ModelFiles,
) -> Result<ProviderFactory, ServingError> {
    let Some(at) = providers.iter().position(|provider| provider.name() == name) else {
        let known: Vec<&str> = providers.iter().map(|provider| provider.name()).collect();
        return Err(ServingError::invalid_arg(format!(
            "parameter '{EXECUTION_LOCATION}' of '{}' asks for {name}, which is not here; there are {}",
            files.name,
            known.join(", ")
        )));
    };
    let chosen = providers.remove(at);
    // Those before it are not what was asked for; those behind it take what it cannot run.
    providers.drain(..at);
    providers.insert(0, chosen.forced().unwrap_or_else(|| Arc::clone(&chosen)));
    Ok(providers)
}

/// How runs of a model are divided, with the goal that its parameters ask for.
///
/// # Errors
/// INVALID_ARG with what was found and what was expected.
pub(super) fn routing(
    base: &PlacementOptions,
    files: &ModelFiles,
) -> Result<PlacementOptions, ServingError> {
    let goal = match goal(files)? {
        None => match files.metal.find("power_policy").map(|setting| setting.text.as_str()) {
            Some("low_power") => ExecutionGoal::Power,
            Some("high_performance") => ExecutionGoal::Latency,
            _ => base.goal,
        },
        Some(goal) => goal,
    };
    Ok(PlacementOptions { goal, ..base.clone() })
}

/// Returns the goal that a model's parameters name.
///
/// # Errors
/// INVALID_ARG with what was found and what was expected.
pub(super) fn goal(files: &ModelFiles) -> Result<Option<ExecutionGoal>, ServingError> {
    let goal = files.parameter(EXECUTION_GOAL).map(str::parse::<ExecutionGoal>).transpose();
    goal.map_err(|error| {
        ServingError::invalid_arg(format!(
            "parameter '{EXECUTION_GOAL}' of '{}': {error}",
            files.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_several_names() {
        assert_eq!(parse("Metal"), Ok(Some("gpu")));
        assert_eq!(parse("ANE"), parse("neural_engine"));
        assert_eq!(parse("auto"), Ok(None));
        assert!(parse("tpu").unwrap_err().contains("'tpu' found, expected auto, cpu"));
    }
}
