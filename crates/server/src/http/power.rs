//! Settings of power, which are shown and changed while the server runs.

use galatea::power::{
    MAX_TARGET_WATTS, ModelPowerReport, PowerChange, PowerControl, PowerPolicy, PowerState,
    TargetChange, TargetState,
};
use galatea_serving::ServingError;
use serde_json::{Map, Value, json};

use super::decode::json_error;
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpMethod, HttpResponse};
use crate::json::JsonDocument;

/// Settings by their names here and in `metal_config`, which is understood too.
const NAMES: [(&str, &str); 5] = [
    ("target_watts", "power_target_watts"),
    ("profile", "power_policy"),
    ("thermal_protection", "enable_thermal_protection"),
    ("adaptive_frequency", "adaptive_frequency"),
    ("efficiency_core_offload", "efficiency_core_offload"),
];

/// Shows the settings of power and what was measured; with POST changes them first.
pub(super) fn settings(call: &CallContext<'_>) -> EndpointReply {
    let power = call.app.engine().power();
    let done = match call.head.method() {
        HttpMethod::Post => changed(&call.body, power),
        _ => Ok(()),
    };
    EndpointReply::Ready(match done {
        Ok(()) => HttpResponse::ok(ContentType::Json, described(power).to_string().into_bytes()),
        Err(error) => HttpResponse::failure(ContentType::Json, &error),
    })
}

fn changed(body: &[u8], power: &PowerControl) -> Result<(), ServingError> {
    let change = parsed(body)?;
    let settings = power.change(change).map_err(ServingError::invalid_arg)?;
    tracing::info!(
        target_watts = settings.target_watts,
        profile = %settings.policy,
        thermal_protection = settings.thermal_protection,
        adaptive_frequency = settings.adaptive_frequency,
        "settings of power were changed"
    );
    Ok(())
}

/// Reads the settings that a body changes.
fn parsed(body: &[u8]) -> Result<PowerChange, ServingError> {
    // The reader bounds the depth of what comes from outside.
    JsonDocument::parse(body)
        .map_err(|error| ServingError::invalid_arg(json_error(error).message))?;
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| ServingError::invalid_arg(format!("the body is no JSON: {error}")))?;
    let Value::Object(members) = &value else {
        return Err(ServingError::invalid_arg(format!(
            "{value} found, expected an object of {}",
            known()
        )));
    };
    change_of(members).map_err(ServingError::invalid_arg)
}

fn change_of(members: &Map<String, Value>) -> Result<PowerChange, String> {
    let mut change = PowerChange::default();
    let mut seen: Vec<&str> = Vec::new();
    for (given, value) in members {
        let found = NAMES.iter().find(|(name, other)| name == given || other == given);
        let Some((name, _)) = found else {
            return Err(format!("'{given}' found, expected one of {}", known()));
        };
        if seen.contains(name) {
            return Err(format!("'{given}' found, but {name} is there by another name"));
        }
        seen.push(name);
        let wrong = |expected: &str| format!("{given}: {value} found, expected {expected}");
        let switch = || value.as_bool().ok_or_else(|| wrong("true or false"));
        match *name {
            "target_watts" => {
                change.target = target(value).ok_or_else(|| {
                    wrong(&format!(
                        "watts above 0 and up to {MAX_TARGET_WATTS}, or null for no target"
                    ))
                })?
            }
            "profile" => {
                let policy = value.as_str().and_then(|text| text.parse::<PowerPolicy>().ok());
                let expected = || wrong("high_performance, balanced or low_power");
                change.policy = Some(policy.ok_or_else(expected)?);
            }
            "thermal_protection" => change.thermal_protection = Some(switch()?),
            "adaptive_frequency" => change.adaptive_frequency = Some(switch()?),
            _ => {
                return Err(wrong(
                    "none: threads choose their cores when they start; give it to --metal-config",
                ));
            }
        }
    }
    Ok(change)
}

fn target(value: &Value) -> Option<TargetChange> {
    match value {
        Value::Null => Some(TargetChange::Clear),
        Value::Number(number) => {
            let fits = |watts: &f64| *watts > 0.0 && *watts <= MAX_TARGET_WATTS;
            number.as_f64().filter(fits).map(TargetChange::Set)
        }
        _ => None,
    }
}

fn known() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

fn described(power: &PowerControl) -> Value {
    let settings = power.current_settings();
    let classes = PowerControl::has_thread_classes();
    let state = power.state();
    json!({
        "target_watts": settings.target_watts,
        "target": target_text(power.target_state()),
        "profile": settings.policy.to_string(),
        "thermal_protection": settings.thermal_protection,
        "adaptive_frequency": classes.then_some(settings.adaptive_frequency),
        "efficiency_core_offload": classes.then_some(settings.efficiency_core_offload),
        "pace": state.map_or(1.0, |state| state.allowed.pace),
        "limited_by": state.map_or_else(|| "none".to_owned(), |state| state.allowed.limit.to_string()),
        "measured": state.map(measured),
        "models": power.reports().iter().map(of_model).collect::<Vec<Value>>(),
    })
}

fn target_text(state: TargetState) -> String {
    match state {
        TargetState::None => "none".to_owned(),
        TargetState::Held => "held".to_owned(),
        TargetState::Unreachable(Some(idle)) => {
            format!("not held: the machine draws {idle:.1} W without work")
        }
        TargetState::Unreachable(None) => {
            "not held: the machine draws more without work".to_owned()
        }
        TargetState::Unmeasured => "not held: this machine does not say what it draws".to_owned(),
    }
}

fn measured(state: PowerState) -> Value {
    let draw = &state.reading.draw;
    json!({
        "watts": {
            "cpu": draw.cpu,
            "gpu": draw.gpu,
            "neural_engine": draw.engine,
            "memory": draw.memory,
            "chip": draw.chip(),
            "system": draw.system,
        },
        "idle_watts": state.idle_watts,
        "thermal_state": state.reading.thermal.map(|thermal| thermal.name()),
        "celsius": state.reading.celsius,
        "low_power_mode": state.reading.low_power,
    })
}

fn of_model(report: &ModelPowerReport) -> Value {
    let ModelPowerReport { name, watts, target, pace } = report;
    json!({"model": name, "watts": watts, "target_watts": target, "pace": pace})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_both_names() {
        let found =
            parsed(br#"{"target_watts": 12, "profile": "low_power", "thermal_protection": false}"#);
        let expected = PowerChange {
            target: TargetChange::Set(12.0),
            policy: Some(PowerPolicy::LowPower),
            thermal_protection: Some(false),
            adaptive_frequency: None,
        };
        assert_eq!(found.unwrap(), expected);
        let found = parsed(br#"{"power_target_watts": null, "power_policy": "balanced", "adaptive_frequency": true}"#);
        let expected = PowerChange {
            target: TargetChange::Clear,
            policy: Some(PowerPolicy::Balanced),
            thermal_protection: None,
            adaptive_frequency: Some(true),
        };
        assert_eq!(found.unwrap(), expected);
        assert_eq!(parsed(b"{}").unwrap(), PowerChange::default());
    }

    #[test]
    fn mistakes_are_named_with_what_was_found_and_expected() {
        for (body, said) in [
            ("[]", "[] found, expected an object of target_watts, profile"),
            ("7", "7 found, expected an object"),
            (r#"{"watts": 7}"#, "'watts' found, expected one of target_watts, profile"),
            (
                r#"{"target_watts": "7"}"#,
                "target_watts: \"7\" found, expected watts above 0 and up to 1000, or null",
            ),
            (r#"{"target_watts": 0}"#, "target_watts: 0 found, expected watts above 0"),
            (r#"{"target_watts": -5.5}"#, "target_watts: -5.5 found"),
            (r#"{"target_watts": 1001}"#, "target_watts: 1001 found"),
            (r#"{"target_watts": true}"#, "target_watts: true found"),
            (r#"{"target_watts": [7]}"#, "target_watts: [7] found"),
            (
                r#"{"profile": "fast"}"#,
                "profile: \"fast\" found, expected high_performance, balanced or low_power",
            ),
            (r#"{"profile": 1}"#, "profile: 1 found"),
            (r#"{"profile": null}"#, "profile: null found"),
            (
                r#"{"thermal_protection": "yes"}"#,
                "thermal_protection: \"yes\" found, expected true or false",
            ),
            (
                r#"{"enable_thermal_protection": 0}"#,
                "enable_thermal_protection: 0 found, expected true or false",
            ),
            (r#"{"adaptive_frequency": 1}"#, "adaptive_frequency: 1 found, expected true or false"),
            (
                r#"{"efficiency_core_offload": true}"#,
                "efficiency_core_offload: true found, expected none: threads",
            ),
            (
                r#"{"profile": "balanced", "power_policy": "balanced"}"#,
                "profile is there by another name",
            ),
        ] {
            let error = parsed(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(said), "{body}: {error}");
        }
        for body in ["", "{", "nonsense"] {
            let error = parsed(body.as_bytes()).unwrap_err();
            assert_eq!(error.code, galatea_serving::ErrorCode::InvalidArg, "{body}: {error}");
        }
    }

    #[test]
    fn what_the_host_does_not_say_is_absent() {
        let power = PowerControl::new(std::sync::Arc::default());
        let found = described(&power);
        assert_eq!((&found["measured"], &found["target"]), (&Value::Null, &json!("none")));
        assert_eq!((&found["profile"], &found["pace"]), (&json!("balanced"), &json!(1.0)));
        power.change(parsed(br#"{"target_watts": 9}"#).unwrap()).unwrap();
        let found = described(&power);
        assert_eq!(found["target_watts"], 9.0);
        assert_eq!(found["target"], "not held: this machine does not say what it draws");
    }
}
