//! Latency goals: how soon requests are to be answered, and which are not taken because they would not be.

use std::time::Duration;

use crate::config::metal::latency::{LATENCY_GOAL, MAX_MS, of_ms};
use crate::config::{MetalConfig, ModelConfig};
use crate::error::ServingError;
use crate::request::{InferenceRequest, ParameterValue};

/// The parameter of models that says which requests are taken.
const ADMISSION: &str = "admission";
/// Which requests are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionRule {
    /// All.
    #[default]
    All,
    /// Requests that are predicted to be answered within their targets.
    InTime,
}

/// Latency settings of a model's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyTargets {
    /// From the arrival of a request to its answer, where the request says nothing else.
    pub latency: Option<Duration>,
    /// Which requests are taken.
    pub admission: AdmissionRule,
}

fn expected() -> String {
    format!("expected milliseconds above 0 and up to {MAX_MS}")
}

impl LatencyTargets {
    /// Settings of a model's parameters, and after them of its `metal_config`.
    ///
    /// # Errors
    /// INVALID_ARG with the parameter, what was found and what was expected; also where a model asks for it whose
    /// requests have any number of answers, or are answered by other models.
    pub(crate) fn of_model(
        config: &ModelConfig,
        metal: &MetalConfig,
    ) -> Result<Self, ServingError> {
        let parameter = |name: &str| config.parameters.get(name).map(|one| one.string_value.trim());
        let wrong = |name: &str, found: &str, expected: &str| {
            let text = format!(
                "parameter '{name}' of model '{}': '{found}' found, {expected}",
                config.name
            );
            Err(ServingError::invalid_arg(text))
        };
        let stated = parameter(LATENCY_GOAL);
        let field = metal.find(LATENCY_GOAL);
        let latency = match (stated, field) {
            (Some(text), _) => match text.parse().ok().and_then(of_ms) {
                None => return wrong(LATENCY_GOAL, text, &expected()),
                goal => goal,
            },
            (None, field) => field.and_then(|field| of_ms(field.text.parse().ok()?)),
        };
        let admission = match parameter(ADMISSION) {
            None | Some("all") => AdmissionRule::All,
            Some("in_time") => AdmissionRule::InTime,
            Some(text) => return wrong(ADMISSION, text, "expected all or in_time"),
        };
        let goals = Self { latency, admission };
        let Some(why) = unfit(config, admission).filter(|_| goals != Self::default()) else {
            return Ok(goals);
        };
        match (stated, field) {
            (Some(text), _) => wrong(LATENCY_GOAL, text, why),
            (None, Some(field)) if field.is_own() => Err(ServingError::invalid_arg(format!(
                "model '{}': {}",
                config.name,
                field.refused(why)
            ))),
            _ if admission == AdmissionRule::InTime => wrong(ADMISSION, "in_time", why),
            _ => Ok(Self::default()),
        }
    }

    /// The goal of a request: its own, or the model's.
    ///
    /// # Errors
    /// INVALID_ARG with what was found and what was expected.
    pub(crate) fn of_request(
        &self,
        request: &InferenceRequest,
    ) -> Result<Option<Duration>, ServingError> {
        let own = request.parameters.iter().find(|(name, _)| name == LATENCY_GOAL);
        let Some((_, value)) = own else { return Ok(self.latency) };
        let ms = match value {
            ParameterValue::Int(ms) => ms.to_string().parse().ok(),
            ParameterValue::Uint(ms) => ms.to_string().parse().ok(),
            ParameterValue::Double(ms) => Some(*ms),
            ParameterValue::Bool(_) | ParameterValue::String(_) => None,
        };
        match ms.and_then(of_ms) {
            None => {
                let text =
                    format!("request parameter '{LATENCY_GOAL}': {value:?} found, {}", expected());
                Err(ServingError::invalid_arg(text))
            }
            goal => Ok(goal),
        }
    }
}

/// Why a model can have no goal, or no such admission.
fn unfit(config: &ModelConfig, admission: AdmissionRule) -> Option<&'static str> {
    use crate::config::inference::model_config::SchedulingChoice;
    match &config.scheduling_choice {
        _ if config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled) => {
            Some("expected none: its requests have any number of answers")
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) => Some(
            "expected none: its steps are requests to other models, which have goals of their own",
        ),
        Some(SchedulingChoice::SequenceBatching(_)) if admission == AdmissionRule::InTime => {
            Some("expected all: a sequence cannot go on without one of its requests")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;
    use crate::config::metal::MetalSource;

    fn parameter(name: &str, value: &str) -> String {
        format!("parameters {{ key: '{name}' value {{ string_value: '{value}' }} }} ")
    }

    fn of(config: &str, metal: &str) -> Result<LatencyTargets, String> {
        let config = from_text(&format!("name: 'm' {config}")).unwrap();
        let metal = MetalConfig::parse(metal, MetalSource::Parameter)?;
        LatencyTargets::of_model(&config, &metal).map_err(|error| error.message)
    }

    #[test]
    fn the_models_own_parameter_wins_over_the_field() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(of("", "{}"), Ok(LatencyTargets::default()));
        assert_eq!(of("", r#"{"latency_goal_ms": 20}"#).unwrap().latency, ms(20));
        let own = parameter("latency_goal_ms", "7") + &parameter("admission", "in_time");
        let both = of(&own, r#"{"latency_goal_ms": 20}"#);
        assert_eq!(both, Ok(LatencyTargets { latency: ms(7), admission: AdmissionRule::InTime }));
    }

    #[test]
    fn mistakes_are_named_with_what_was_found() {
        let sequences = "sequence_batching {} ".to_owned();
        for (config, metal, said) in [
            (
                parameter("latency_goal_ms", "soon"),
                "{}",
                "'soon' found, expected milliseconds above 0",
            ),
            (
                parameter("latency_goal_ms", "-1"),
                "{}",
                "parameter 'latency_goal_ms' of model 'm': '-1'",
            ),
            (parameter("latency_goal_ms", "inf"), "{}", "up to 3600000"),
            (parameter("admission", "some"), "{}", "'some' found, expected all or in_time"),
            (String::new(), r#"{"latency_goal_ms": 0}"#, "latency_goal_ms: 0 found"),
            (sequences + &parameter("admission", "in_time"), "{}", "expected all: a sequence"),
            (
                "model_transaction_policy { decoupled: true }".to_owned(),
                r#"{"latency_goal_ms": 5}"#,
                "model 'm': parameter 'metal_config': latency_goal_ms 5 found, expected none",
            ),
        ] {
            let error = of(&config, metal).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_request_may_have_a_goal_of_its_own() {
        let goals =
            LatencyTargets { latency: Some(Duration::from_millis(9)), ..LatencyTargets::default() };
        let of = |value: Option<ParameterValue>| {
            let given = value.map(|value| (LATENCY_GOAL.to_owned(), value));
            let parameters = given.into_iter().collect();
            goals.of_request(&InferenceRequest { parameters, ..InferenceRequest::default() })
        };
        assert_eq!(of(None).unwrap(), goals.latency);
        assert_eq!(of(Some(ParameterValue::Int(3))).unwrap(), Some(Duration::from_millis(3)));
        assert_eq!(
            of(Some(ParameterValue::Double(0.5))).unwrap(),
            Some(Duration::from_micros(500))
        );
        for value in [
            ParameterValue::Int(-3),
            ParameterValue::Double(f64::NAN),
            ParameterValue::String("3".to_owned()),
        ] {
            let error = of(Some(value)).unwrap_err();
            assert!(error.message.contains("found, expected milliseconds above 0"), "{error}");
        }
    }
}
