//! Settings of traces and of the log.

use galatea_serving::{ErrorCode, ServingError};

use super::decode::json_document;
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpMethod, HttpResponse};
use crate::app::ServerState;
use crate::json::{self, JsonKind, JsonValue, WrongType};
use crate::logging::{self, LogChange, TimeFormat};
use crate::trace::{SettingChange, TraceChange, TraceMode, parse};

/// Shows the settings of traces, of a model or of all, and with POST changes them first.
pub(super) fn trace(call: &CallContext<'_>) -> EndpointReply {
    let model = call.model;
    let known = model.is_empty() || call.app.core().model_ready(model, "").unwrap_or(false);
    let done = if known {
        posted(call, |document| change_trace(call.app, model, document))
    } else {
        Err(ServingError::invalid_arg(format!("Request for unknown model : {model}")))
    };
    reply(done.map(|()| write_trace(call.app, model)))
}

/// Shows the settings of the log, and with POST changes them first.
pub(super) fn log(call: &CallContext<'_>) -> EndpointReply {
    reply(posted(call, change_log).map(|()| write_log()))
}

fn reply(done: Result<Vec<u8>, ServingError>) -> EndpointReply {
    EndpointReply::Ready(match done {
        Ok(body) => HttpResponse::ok(ContentType::Json, body),
        Err(error) => HttpResponse::failure(ContentType::Json, &error),
    })
}

fn posted(
    call: &CallContext<'_>,
    change: impl FnOnce(JsonValue<'_>) -> Result<(), ServingError>,
) -> Result<(), ServingError> {
    if call.head.method() != HttpMethod::Post {
        return Ok(());
    }
    let document = json_document(&call.body, call.app.limits())?;
    change(document.root())
}

fn wrong(error: WrongType) -> ServingError {
    ServingError::internal(error)
}

fn text(value: JsonValue<'_>) -> Result<String, ServingError> {
    value.as_string().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).map_err(wrong)
}

fn change_trace(app: &ServerState, model: &str, root: JsonValue<'_>) -> Result<(), ServingError> {
    if root.member("trace_file").is_some() {
        return Err(ServingError::unsupported(
            "trace file location can not be updated through network protocol",
        ));
    }
    let change = TraceChange {
        level: level(root)?,
        rate: setting(root, "trace_rate", |text| parse::unsigned("trace_rate", text))?,
        count: setting(root, "trace_count", |text| parse::count(text, ""))?,
        log_frequency: setting(root, "log_frequency", |text| {
            parse::unsigned("log_frequency", text)
        })?,
    };
    if change == TraceChange::default() {
        return Ok(());
    }
    app.tracer().change(model, change).map(|_| ())
}

fn level(
    root: JsonValue<'_>,
) -> Result<SettingChange<galatea_serving::trace::TraceLevel>, ServingError> {
    let Some(value) = root.member("trace_level") else { return Ok(SettingChange::Keep) };
    if value.kind() == JsonKind::Null {
        return Ok(SettingChange::Clear);
    }
    value.as_array().map_err(wrong)?;
    let names: Vec<String> = value.elements().map(text).collect::<Result<_, _>>()?;
    let level =
        parse::level(names.iter().map(String::as_str)).map_err(ServingError::invalid_arg)?;
    Ok(level.map_or(SettingChange::Keep, SettingChange::To))
}

/// A setting whose number comes as a text.
fn setting<T>(
    root: JsonValue<'_>,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<SettingChange<T>, ServingError> {
    match root.member(name) {
        None => Ok(SettingChange::Keep),
        Some(value) if value.kind() == JsonKind::Null => Ok(SettingChange::Clear),
        Some(value) => {
            read(&text(value)?).map(SettingChange::To).map_err(ServingError::invalid_arg)
        }
    }
}

fn write_trace(app: &ServerState, model: &str) -> Vec<u8> {
    let tracer = app.tracer();
    let view = tracer.view(model);
    let mut out = b"{\"trace_level\":".to_vec();
    json::write_array(&mut out, &parse::level_names(view.level), |out, name| {
        json::write_str(out, name.as_bytes());
    });
    member(&mut out, "trace_rate", &view.rate.to_string());
    member(&mut out, "trace_count", &view.count.to_string());
    let config = tracer.config();
    if config.mode == TraceMode::Triton {
        member(&mut out, "log_frequency", &view.log_frequency.to_string());
        member(&mut out, "trace_file", &config.file);
    }
    member(&mut out, "trace_mode", config.mode.name());
    if config.mode == TraceMode::OpenTelemetry {
        for (name, value) in config.telemetry.settings() {
            member(&mut out, name, &value);
        }
    }
    out.push(b'}');
    out
}

fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b',');
    json::write_str(out, name.as_bytes());
    out.push(b':');
    json::write_str(out, value.as_bytes());
}

/// Settings before a wrong one are changed, as in Triton.
fn change_log(root: JsonValue<'_>) -> Result<(), ServingError> {
    let given = |name: &str| root.member(name).filter(|value| value.kind() != JsonKind::Null);
    if given("log_file").is_some() {
        return Err(ServingError::unsupported(
            "log file location can not be updated through network protocol",
        ));
    }
    let truth = |name: &str| given(name).map(JsonValue::as_bool).transpose().map_err(wrong);
    let none = LogChange::default();
    logging::change(LogChange { info: truth("log_info")?, ..none });
    logging::change(LogChange { warning: truth("log_warning")?, ..none });
    logging::change(LogChange { error: truth("log_error")?, ..none });
    if let Some(value) = given("log_verbose_level") {
        // Only the lower 32 bits count.
        let bits = value.as_unsigned().map_err(wrong)? & u64::from(u32::MAX);
        logging::change(LogChange { verbose: u32::try_from(bits).ok(), ..none });
    }
    if let Some(value) = given("log_format") {
        let name = text(value)?;
        let format = TimeFormat::of(&name).ok_or_else(|| {
            ServingError::new(
                ErrorCode::Unavailable,
                format!("invalid argument for --log_format, got: {name}"),
            )
        })?;
        logging::change(LogChange { format: Some(format), ..none });
    }
    Ok(())
}

fn write_log() -> Vec<u8> {
    let settings = logging::settings();
    let mut out = b"{\"log_file\":".to_vec();
    json::write_str(&mut out, settings.file.as_bytes());
    let rest = format!(
        ",\"log_info\":{},\"log_warning\":{},\"log_error\":{},\"log_verbose_level\":{},\"log_format\":\"{}\"}}",
        settings.info,
        settings.warning,
        settings.error,
        settings.verbose,
        settings.format.name()
    );
    out.extend_from_slice(rest.as_bytes());
    out
}
