//! The RPCs about settings of traces and of the log.

use std::collections::HashMap;

use galatea_serving::ServingError;

use super::proto::inference::log_settings_request::SettingValue as Given;
use super::proto::inference::log_settings_request::setting_value::ParameterChoice as Choice;
use super::proto::inference::log_settings_response::SettingValue as Shown;
use super::proto::inference::log_settings_response::setting_value::ParameterChoice as Value;
use super::proto::inference::trace_setting_request::SettingValue as GivenTrace;
use super::proto::inference::trace_setting_response::SettingValue as ShownTrace;
use super::proto::inference::{
    LogSettingsRequest, LogSettingsResponse, TraceSettingRequest, TraceSettingResponse,
};
use crate::app::ServerState;
use crate::logging::{self, LogChange, TimeFormat};
use crate::trace::{SettingChange, TraceChange, TraceMode, parse};

/// Changes settings of traces, of a model or of all, and shows those in force.
pub(super) fn trace(
    app: &ServerState,
    request: TraceSettingRequest,
) -> Result<TraceSettingResponse, ServingError> {
    let TraceSettingRequest { settings, model_name } = request;
    let known = model_name.is_empty() || app.core().model_ready(&model_name, "").unwrap_or(false);
    if !known {
        return Err(ServingError::invalid_arg(format!("Request for unknown model : {model_name}")));
    }
    if settings.contains_key("trace_file") {
        return Err(ServingError::unsupported(
            "trace file location can not be updated through network protocol",
        ));
    }
    let change = TraceChange {
        level: level(&settings)?,
        rate: setting(&settings, "trace_rate", |text| parse::unsigned("trace_rate", text))?,
        count: setting(&settings, "trace_count", |text| parse::count(text, " "))?,
        log_frequency: setting(&settings, "log_frequency", |text| {
            parse::unsigned("log_frequency", text)
        })?,
    };
    if change != TraceChange::default() {
        app.tracer().change(&model_name, change)?;
    }
    Ok(shown_trace(app, &model_name))
}

fn level(
    settings: &HashMap<String, GivenTrace>,
) -> Result<SettingChange<galatea_serving::trace::TraceLevel>, ServingError> {
    let Some(given) = settings.get("trace_level") else { return Ok(SettingChange::Keep) };
    if given.value.is_empty() {
        return Ok(SettingChange::Clear);
    }
    let level =
        parse::level(given.value.iter().map(String::as_str)).map_err(ServingError::invalid_arg)?;
    Ok(level.map_or(SettingChange::Keep, SettingChange::To))
}

fn setting<T>(
    settings: &HashMap<String, GivenTrace>,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<SettingChange<T>, ServingError> {
    let Some(given) = settings.get(name) else { return Ok(SettingChange::Keep) };
    match given.value.as_slice() {
        [] => Ok(SettingChange::Clear),
        [text] => read(text).map(SettingChange::To).map_err(ServingError::invalid_arg),
        _ => Err(ServingError::invalid_arg(format!("expect only 1 value for '{name}'"))),
    }
}

fn shown_trace(app: &ServerState, model: &str) -> TraceSettingResponse {
    let tracer = app.tracer();
    let view = tracer.view(model);
    let config = tracer.config();
    let levels = parse::level_names(view.level).into_iter().map(str::to_owned).collect();
    let mut settings = vec![
        ("trace_level", levels),
        ("trace_rate", vec![view.rate.to_string()]),
        ("trace_count", vec![view.count.to_string()]),
        ("trace_mode", vec![config.mode.name().to_owned()]),
    ];
    match config.mode {
        TraceMode::Triton => {
            settings.push(("log_frequency", vec![view.log_frequency.to_string()]));
            settings.push(("trace_file", vec![config.file.clone()]));
        }
        TraceMode::OpenTelemetry => {
            let more = config.telemetry.settings().into_iter();
            settings.extend(more.map(|(name, value)| (name, vec![value])));
        }
    }
    let settings =
        settings.into_iter().map(|(name, value)| (name.to_owned(), ShownTrace { value })).collect();
    TraceSettingResponse { settings }
}

/// Changes settings of the log and shows those in force. Settings before a wrong one are changed, as in Triton.
pub(super) fn log(request: LogSettingsRequest) -> Result<LogSettingsResponse, ServingError> {
    let settings = request.settings;
    if settings.contains_key("log_file") {
        return Err(ServingError::unsupported(
            "log file location can not be updated through network protocol",
        ));
    }
    let none = LogChange::default();
    logging::change(LogChange { info: truth(&settings, "log_info")?, ..none });
    logging::change(LogChange { warning: truth(&settings, "log_warning")?, ..none });
    logging::change(LogChange { error: truth(&settings, "log_error")?, ..none });
    match choice(&settings, "log_verbose_level") {
        None => {}
        Some(Some(Choice::Uint32Param(level))) => {
            logging::change(LogChange { verbose: Some(*level), ..none });
        }
        Some(_) => return Err(ServingError::invalid_arg("expect int32 for 'log_verbose_level'")),
    }
    match choice(&settings, "log_format") {
        None => {}
        Some(Some(Choice::StringParam(name))) => {
            let format = TimeFormat::of(name).ok_or_else(|| {
                ServingError::invalid_arg(format!("invalid argument for log_format, got: {name}"))
            })?;
            logging::change(LogChange { format: Some(format), ..none });
        }
        Some(_) => return Err(ServingError::invalid_arg("expect string for 'log_format'")),
    }
    Ok(shown_log())
}

/// Returns the value of a setting: none if the setting is absent, an empty choice if it has no value.
fn choice<'a>(settings: &'a HashMap<String, Given>, name: &str) -> Option<Option<&'a Choice>> {
    settings.get(name).map(|given| given.parameter_choice.as_ref())
}

fn truth(settings: &HashMap<String, Given>, name: &str) -> Result<Option<bool>, ServingError> {
    match choice(settings, name) {
        None => Ok(None),
        Some(Some(Choice::BoolParam(value))) => Ok(Some(*value)),
        Some(_) => Err(ServingError::invalid_arg(format!("expect boolean for '{name}'"))),
    }
}

fn shown_log() -> LogSettingsResponse {
    let settings = logging::settings();
    let values = [
        ("log_file", Value::StringParam(settings.file)),
        ("log_info", Value::BoolParam(settings.info)),
        ("log_warning", Value::BoolParam(settings.warning)),
        ("log_error", Value::BoolParam(settings.error)),
        ("log_verbose_level", Value::Uint32Param(settings.verbose)),
        ("log_format", Value::StringParam(settings.format.name().to_owned())),
    ];
    let shown =
        |(name, value): (&str, Value)| (name.to_owned(), Shown { parameter_choice: Some(value) });
    LogSettingsResponse { settings: values.into_iter().map(shown).collect() }
}
