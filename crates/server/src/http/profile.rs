//! Profiles that are started and stopped.

use std::sync::Arc;
use std::time::Duration;

use galatea_serving::ServingError;
use serde_json::json;

use super::decode::json_error;
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::app::ServerState;
use crate::blocking::run_blocking;
use crate::json::{JsonDocument, JsonKind, JsonValue};
use galatea::profile::{FinishedProfile, MAX_CAPTURED_RUNS, MAX_EVENTS, ProfileRequest};

/// The longest time that a profile may be asked to take, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Says whether a profile is under way, what it has found so far, and what the last one found.
pub(super) fn show(call: &CallContext<'_>) -> EndpointReply {
    let app = Arc::clone(call.app);
    later(call, move || {
        let status = app.profiler().status();
        let mut out = json!({"profiling": status.current.is_some()});
        if let Some(fields) = out.as_object_mut() {
            fields.extend(status.current.map(|current| ("current".to_owned(), current)));
            let last = status.last.map(|last| ("last".to_owned(), last.summary.clone()));
            fields.extend(last);
        }
        Ok(out.to_string().into_bytes())
    })
}

/// Starts a profile; the body may say of what.
pub(super) fn start(call: &CallContext<'_>) -> EndpointReply {
    let wish = wish(&call.body, call.app);
    let app = Arc::clone(call.app);
    later(call, move || {
        let wish = wish?;
        app.profiler().start(&wish).map_err(ServingError::invalid_arg)?;
        Ok(json!({"profiling": true}).to_string().into_bytes())
    })
}

/// Ends the profile and gives what it found, with its events unless `{"trace": false}` is the body.
pub(super) fn stop(call: &CallContext<'_>) -> EndpointReply {
    let with_trace = with_trace(&call.body);
    let app = Arc::clone(call.app);
    later(call, move || {
        let with_trace = with_trace?;
        let found = app.profiler().stop().map_err(ServingError::invalid_arg)?;
        Ok(written(&found, with_trace))
    })
}

/// The events of the last profile, for `chrome://tracing` and Perfetto.
pub(super) fn trace(call: &CallContext<'_>) -> EndpointReply {
    let last = call.app.profiler().status().last;
    let found = last.as_ref().and_then(|last| last.trace.as_deref());
    EndpointReply::Ready(match found {
        Some(trace) => HttpResponse::ok(ContentType::Json, trace.as_bytes().to_vec()),
        None => {
            let error = ServingError::not_found("no profile with events in memory has ended");
            HttpResponse::failure(ContentType::Json, &error)
        }
    })
}

/// Ending a profile waits for what is being written, and starting one for GPUs.
fn later(
    call: &CallContext<'_>,
    work: impl FnOnce() -> Result<Vec<u8>, ServingError> + Send + 'static,
) -> EndpointReply {
    let app = Arc::clone(call.app);
    EndpointReply::Pending(Box::pin(async move {
        match run_blocking(&app, work).await {
            Ok(body) => HttpResponse::ok(ContentType::Json, body),
            Err(error) => HttpResponse::failure(ContentType::Json, &error),
        }
    }))
}

/// The summary, and the events as they are.
fn written(found: &FinishedProfile, with_trace: bool) -> Vec<u8> {
    let mut text = found.summary.to_string();
    if let (true, Some(trace)) = (with_trace, &found.trace)
        && text.pop() == Some('}')
    {
        text.push_str(",\"trace\":");
        text.push_str(trace);
        text.push('}');
    }
    text.into_bytes()
}

fn with_trace(body: &[u8]) -> Result<bool, ServingError> {
    let mut wanted = true;
    each(body, |name, value| match (name, value.kind()) {
        ("trace", JsonKind::Bool(given)) => {
            wanted = given;
            Ok(())
        }
        ("trace", _) => Err(wrong("trace", "true or false")),
        _ => Err(unknown(name, "trace")),
    })?;
    Ok(wanted)
}

/// Reads the profile that the body of a start asks for.
fn wish(body: &[u8], app: &ServerState) -> Result<ProfileRequest, ServingError> {
    let mut wish = ProfileRequest::default();
    each(body, |name, value| {
        match (name, value.kind()) {
            ("models", JsonKind::Array(_)) => wish.models = models(value, app)?,
            ("models", _) => return Err(wrong("models", "a list of names")),
            ("seconds", JsonKind::Natural(_) | JsonKind::Double(_)) => {
                wish.time = Some(seconds(value)?)
            }
            ("seconds", _) => return Err(wrong("seconds", "a number of seconds")),
            ("limit", JsonKind::Natural(count)) if count <= MAX_EVENTS => wish.events = count,
            ("limit", _) => {
                let expected = format!("a number of events up to {MAX_EVENTS}");
                return Err(wrong("limit", &expected));
            }
            ("peaks", JsonKind::Bool(given)) => wish.peaks = given,
            ("peaks", _) => return Err(wrong("peaks", "true or false")),
            ("capture_runs", JsonKind::Natural(runs))
                if (1..=MAX_CAPTURED_RUNS).contains(&runs) =>
            {
                wish.captured_runs = runs;
            }
            ("capture_runs", _) => {
                let expected = format!("a number of runs from 1 to {MAX_CAPTURED_RUNS}");
                return Err(wrong("capture_runs", &expected));
            }
            _ => {
                return Err(unknown(name, "models, seconds, limit, peaks and capture_runs"));
            }
        }
        Ok(())
    })?;
    Ok(wish)
}

fn models(value: JsonValue<'_>, app: &ServerState) -> Result<Vec<String>, ServingError> {
    let name = |value: JsonValue<'_>| {
        let JsonKind::String(bytes) = value.kind() else {
            return Err(wrong("models", "a list of names"));
        };
        let name = String::from_utf8_lossy(bytes).into_owned();
        match app.core().model_ready(&name, "") {
            Ok(true) => Ok(name),
            _ => Err(ServingError::invalid_arg(format!("Request for unknown model : {name}"))),
        }
    };
    value.elements().map(name).collect()
}

fn seconds(value: JsonValue<'_>) -> Result<Duration, ServingError> {
    let seconds = match value.kind() {
        JsonKind::Natural(seconds) => seconds as f64,
        JsonKind::Double(seconds) => seconds,
        _ => f64::NAN,
    };
    let fits = seconds > 0.0 && seconds <= MAX_SECONDS;
    let time = fits.then(|| Duration::try_from_secs_f64(seconds).ok()).flatten();
    time.ok_or_else(|| wrong("seconds", &format!("a number above 0 and up to {MAX_SECONDS}")))
}

fn wrong(name: &str, expected: &str) -> ServingError {
    ServingError::invalid_arg(format!("'{name}' expects {expected}"))
}

fn unknown(name: &str, known: &str) -> ServingError {
    ServingError::invalid_arg(format!("unknown member '{name}'; there are {known}"))
}

/// Reads the members of a body, which may be empty.
fn each(
    body: &[u8],
    mut read: impl FnMut(&str, JsonValue<'_>) -> Result<(), ServingError>,
) -> Result<(), ServingError> {
    if body.is_empty() {
        return Ok(());
    }
    let document = JsonDocument::parse(body).map_err(json_error)?;
    let root = document.root();
    if !matches!(root.kind(), JsonKind::Object(_)) {
        return Err(ServingError::invalid_arg("the body of the request is to be a JSON object"));
    }
    root.members().try_for_each(|(name, value)| read(&String::from_utf8_lossy(name), value))
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn events_follow_the_summary() {
        let trace = Some("{\"traceEvents\":[]}".to_owned());
        let found = FinishedProfile { summary: json!({"seconds": 1.0}), trace };
        let read =
            |with_trace| -> Json { serde_json::from_slice(&written(&found, with_trace)).unwrap() };
        assert_eq!(read(true), json!({"seconds": 1.0, "trace": {"traceEvents": []}}));
        assert_eq!(read(false), json!({"seconds": 1.0}));
    }

    #[test]
    fn bodies_of_a_stop_are_read_strictly() {
        assert!(with_trace(b"").unwrap() && with_trace(b"{}").unwrap());
        assert!(!with_trace(b"{\"trace\":false}").unwrap());
        for (body, expected) in [
            ("{\"trace\":1}", "'trace' expects true or false"),
            ("{\"traces\":true}", "unknown member 'traces'; there are trace"),
            ("[]", "is to be a JSON object"),
        ] {
            let error = with_trace(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
