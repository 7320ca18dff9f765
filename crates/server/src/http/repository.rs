//! The index of the repositories, load and unload.

use std::sync::Arc;

use bytes::Bytes;
use galatea_serving::core::{LoadOverrides, UnloadDependents};
use galatea_serving::{Core, ServingError};

use super::decode::{check_json_size, json_document, json_error};
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::app::ClientLimits;
use crate::blocking::run_blocking;
use crate::body_budget::has_memory;
use crate::json::{self, JsonDocument, JsonKind, ParseError};

/// Models of the repositories with their states; the body may hold `{"ready": true}`.
pub(super) fn index(call: &CallContext<'_>) -> EndpointReply {
    let ready = match wants_ready(&call.body, call.app.limits()) {
        Ok(ready) => ready,
        Err(error) => {
            return EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error));
        }
    };
    let models = call.app.core().repository_index(ready);
    let mut out = Vec::new();
    json::write_array(&mut out, &models, |out, model| {
        out.extend_from_slice(b"{\"name\":");
        json::write_str(out, model.name.as_bytes());
        let state = model.state.map(|state| state.name().to_owned());
        let rest = [
            (&b",\"version\":"[..], &model.version),
            (b",\"state\":", &state),
            (b",\"reason\":", &model.reason),
        ];
        for (key, value) in rest {
            if let Some(value) = value {
                out.extend_from_slice(key);
                json::write_str(out, value.as_bytes());
            }
        }
        out.push(b'}');
    });
    EndpointReply::Ready(HttpResponse::ok(ContentType::Json, out))
}

fn wants_ready(body: &[u8], limits: ClientLimits) -> Result<bool, ServingError> {
    if body.is_empty() {
        return Ok(false);
    }
    check_json_size(body, limits)?;
    let no_boolean = || ServingError::invalid_arg("Invalid value for 'ready': expected a boolean");
    let document = match JsonDocument::parse(body) {
        Ok(document) => document,
        // Whatever is nested so deep is no boolean.
        Err(ParseError::TooDeep) => return Err(no_boolean()),
        Err(error) => return Err(json_error(error)),
    };
    match document.root().member("ready").map(json::JsonValue::kind) {
        None => Ok(false),
        Some(JsonKind::Bool(ready)) => Ok(ready),
        Some(_) => Err(no_boolean()),
    }
}

/// Loads a model, or loads it anew.
pub(super) fn load(call: &CallContext<'_>) -> EndpointReply {
    match overrides(&call.body, call.app.limits()) {
        Ok(overrides) if !call.in_repository => {
            let rules = call.app.override_rules();
            match rules.check(call.app.core(), call.model, &overrides) {
                Ok(()) => change(call, move |core, model| core.load_model(model, overrides)),
                Err(text) => {
                    EndpointReply::Ready(HttpResponse::error(403, ContentType::Json, &text))
                }
            }
        }
        Ok(_) => change(call, |_, _| Ok(())),
        // A repository in the path is refused before the body is looked at.
        Err(error) => change(call, move |_, _| Err(error)),
    }
}

/// Takes a model out of service.
pub(super) fn unload(call: &CallContext<'_>) -> EndpointReply {
    let dependents = dependents(&call.body);
    change(call, move |core, model| core.unload_model(model, dependents))
}

/// Loads and unloads take their time, so they go to a thread that may wait.
fn change(
    call: &CallContext<'_>,
    act: impl FnOnce(&Core, &str) -> Result<(), ServingError> + Send + 'static,
) -> EndpointReply {
    if call.in_repository {
        let error = ServingError::unsupported("'repository_name' specification is not supported");
        return EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error));
    }
    let app = Arc::clone(call.app);
    let model = call.model.to_owned();
    let core = Arc::clone(app.core());
    EndpointReply::Pending(Box::pin(async move {
        match run_blocking(&app, move || act(&core, &model)).await {
            Ok(()) => HttpResponse::empty(ContentType::Json),
            Err(error) => HttpResponse::failure(ContentType::Json, &error),
        }
    }))
}

/// Reads the overrides of a load, which take the place of files on disk: `{"parameters": {"config": TEXT,
/// "file:PATH": BASE64}}`.
///
/// # Errors
/// Fails when the body is too long or not JSON, or a parameter is none of these.
fn overrides(body: &[u8], limits: ClientLimits) -> Result<LoadOverrides, ServingError> {
    let mut overrides = LoadOverrides::default();
    if body.is_empty() {
        return Ok(overrides);
    }
    let document = json_document(body, limits)?;
    let Some(parameters) = document.root().member("parameters") else { return Ok(overrides) };
    if !matches!(parameters.kind(), JsonKind::Object(_)) {
        return Err(ServingError::internal("attempt to get members for non-object"));
    }
    for (key, value) in parameters.members() {
        let key = String::from_utf8_lossy(key);
        let file = key.strip_prefix("file:");
        if file.is_none() && key != "config" {
            return Err(ServingError::internal("unexpected error on creating Triton parameter"));
        }
        let JsonKind::String(text) = value.kind() else {
            return Err(ServingError::internal("attempt to access JSON non-string as string"));
        };
        match file {
            Some(_) if !has_memory(text.len()) => {
                let text = format!("the system has no memory for a file of {} bytes", text.len());
                return Err(ServingError::unavailable(text));
            }
            Some(path) => overrides.files.push((path.to_owned(), base64(text))),
            None => overrides.config = Some(String::from_utf8_lossy(text).into_owned()),
        }
    }
    Ok(overrides)
}

/// Reads whether the body is `{"parameters": {"unload_dependents": true}}`. As in Triton, another or an
/// unreadable body does not stop the unload.
fn dependents(body: &[u8]) -> UnloadDependents {
    let document = JsonDocument::parse(body);
    let wanted = document.as_ref().ok().and_then(|document| {
        document.root().member("parameters")?.member("unload_dependents").map(json::JsonValue::kind)
    });
    match wanted {
        Some(JsonKind::Bool(true)) => UnloadDependents::Unload,
        _ => UnloadDependents::Keep,
    }
}

/// Decodes base64 as Triton does: what is not of the alphabet is skipped, bits that make no byte are dropped.
fn base64(text: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let mut bits = 0_u32;
    let mut count = 0_u32;
    for sextet in text.iter().filter_map(|&letter| sextet(letter)) {
        bits = (bits << 6) | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    Bytes::from(bytes)
}

fn sextet(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use galatea_serving::ErrorCode;

    use super::*;
    use crate::client_pace::CLIENT_STALL;

    const LIMITS: ClientLimits = ClientLimits { max_input_bytes: 1 << 20, stall: CLIENT_STALL };

    #[test]
    fn loads_take_a_configuration_and_files() {
        for body in ["", "{}", "[]", r#"{"parameters":{}}"#, r#"{"other":1}"#] {
            let given = overrides(body.as_bytes(), LIMITS).unwrap();
            assert!(given.config.is_none() && given.files.is_empty(), "{body}");
        }
        let body = r#"{"parameters":{"config":"{\"a\": 1}","file:1/m.txt":"aGVsbG8=","file:":""}}"#;
        let given = overrides(body.as_bytes(), LIMITS).unwrap();
        assert_eq!(given.config.as_deref(), Some("{\"a\": 1}"));
        let files =
            [("1/m.txt".to_owned(), Bytes::from_static(b"hello")), (String::new(), Bytes::new())];
        assert_eq!(given.files, files);
    }

    #[test]
    fn loads_refuse_what_they_do_not_know() {
        let cases = [
            (
                "{",
                "failed to parse the request JSON buffer: Missing a name for object member. at 1",
            ),
            (r#"{"parameters":{"foo":"bar"}}"#, "unexpected error on creating Triton parameter"),
            (r#"{"parameters":{"config":5}}"#, "attempt to access JSON non-string as string"),
            (r#"{"parameters":{"config":{}}}"#, "attempt to access JSON non-string as string"),
            (r#"{"parameters":{"file:a":[]}}"#, "attempt to access JSON non-string as string"),
            (r#"{"parameters":[]}"#, "attempt to get members for non-object"),
        ];
        for (body, text) in cases {
            let error = overrides(body.as_bytes(), LIMITS).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (ErrorCode::Internal, text), "{body}");
        }
    }

    #[test]
    fn unloads_take_dependents_along_only_on_a_plain_yes() {
        let taken = |body: &str| dependents(body.as_bytes()) == UnloadDependents::Unload;
        assert!(taken(r#"{"parameters":{"unload_dependents":true}}"#));
        for body in [
            "",
            "{",
            "[]",
            r#"{"parameters":{"unload_dependents":false}}"#,
            r#"{"parameters":{"unload_dependents":"true"}}"#,
            r#"{"parameters":{"foo":true}}"#,
            r#"{"unload_dependents":true}"#,
        ] {
            assert!(!taken(body), "{body}");
        }
    }

    #[test]
    fn the_index_is_filtered_by_a_boolean() {
        let wants_ready = |body: &str| wants_ready(body.as_bytes(), LIMITS);
        assert!(wants_ready(r#"{"ready":true}"#).unwrap());
        for body in ["", "{}", "[]", r#"{"ready":false}"#] {
            assert!(!wants_ready(body).unwrap(), "{body}");
        }
        let nested =
            |depth: usize| format!("{{\"ready\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let deep = format!("{{\"ready\":{}1{}}}", "{\"a\":".repeat(300), "}".repeat(300));
        let other = [r#"{"ready":"yes"}"#, r#"{"ready":1}"#, r#"{"ready":null}"#];
        let other = other.map(str::to_owned).into_iter();
        for body in other.chain([nested(1), nested(99), nested(5000), deep]) {
            let error = wants_ready(&body).unwrap_err();
            assert_eq!(error.message, "Invalid value for 'ready': expected a boolean");
            assert_eq!(error.code, ErrorCode::InvalidArg);
        }
    }

    #[test]
    fn bodies_are_as_long_as_the_limit_for_json_permits() {
        let limits = ClientLimits { max_input_bytes: 20, ..LIMITS };
        let body = r#"{"parameters":{}}"#;
        overrides(body.as_bytes(), limits).unwrap();
        let longer = format!("{body}    ");
        let text = "request JSON size of 21 bytes exceeds the maximum allowed input size of 20 bytes. Use \
                    --http-max-input-size to increase the limit.";
        let error = overrides(longer.as_bytes(), limits).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::InvalidArg, text));
        assert_eq!(wants_ready(longer.as_bytes(), limits).unwrap_err().message, text);
    }

    #[test]
    fn base64_is_read_with_and_without_padding() {
        let cases: [(&str, &[u8]); 8] = [
            ("", b""),
            ("Zg==", b"f"),
            ("Zm8", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9v\nYmFy", b"foobar"),
            ("+/+/", &[0xFB, 0xFF, 0xBF]),
            ("A", b""),
            ("!!!notbase64", &[0x9E, 0x8B, 0x5B, 0x6A, 0xC7, 0xBA]),
        ];
        for (text, bytes) in cases {
            assert_eq!(base64(text.as_bytes()), bytes, "{text}");
        }
    }
}
