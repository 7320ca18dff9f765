//! Models that SageMaker loads and unloads: each comes in a folder of its own, under a name that SageMaker gives. As
//! in Triton the answers are JSON and say that they are plain text.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_serving::core::{LoadOverrides, UnloadDependents, VersionState};
use galatea_serving::{Core, ErrorCode, ServingError};

use super::{archive, bad_request, status};
use crate::blocking::run_blocking;
use crate::http::endpoints::{CallContext, EndpointReply};
use crate::http::infer;
use crate::http::message::{ContentType, HttpMethod, HttpResponse};
use crate::json::{self, JsonDocument, JsonKind};
use crate::sagemaker::HostedModel;

/// The header with the name of the model in the log, and in the server.
const TARGET: &str = "x-amzn-sagemaker-target-model";
/// SageMaker waits six minutes for an unload.
const UNLOADING: Duration = Duration::from_secs(350);
/// Between two looks at whether a model has answered all its requests.
const LOOK: Duration = Duration::from_millis(20);

/// Words of errors that mean that there is no more memory.
const NO_MEMORY: [&str; 9] = [
    "CUDA_OUT_OF_MEMORY",
    "out of memory",
    "Out of memory",
    "Out Of Memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "ailed to allocate memory",
    "No space left on device",
];

/// GET lists the models, POST loads one.
pub(in crate::http) fn models(call: &CallContext<'_>) -> EndpointReply {
    match call.head.method() {
        HttpMethod::Get => EndpointReply::Ready(index(call)),
        HttpMethod::Post => load(call),
        // The path names no model.
        HttpMethod::Delete => EndpointReply::Ready(status(404)),
        HttpMethod::Other => bad_request(),
    }
}

/// GET describes a model, POST loads one whatever the path says, DELETE unloads it.
pub(in crate::http) fn model(call: &CallContext<'_>) -> EndpointReply {
    match call.head.method() {
        HttpMethod::Get => {
            EndpointReply::Ready(match call.app.sagemaker().hosted.models().get(call.model) {
                Some(model) => {
                    let mut out = Vec::new();
                    describe(&mut out, call.model, &model.path);
                    HttpResponse::ok(ContentType::Text, out)
                }
                None => status(404),
            })
        }
        HttpMethod::Post => load(call),
        HttpMethod::Delete => unload(call),
        HttpMethod::Other => bad_request(),
    }
}

/// An inference by one of the models. What fails is the request's fault, or memory's.
pub(in crate::http) fn invoke(call: &CallContext<'_>) -> EndpointReply {
    let Some(model) = call.app.sagemaker().hosted.models().get(call.model).cloned() else {
        return EndpointReply::Ready(status(404));
    };
    let judged = |response: HttpResponse| {
        let status = match response.status {
            200 => 200,
            _ if response
                .body
                .iter()
                .any(|part| means_no_memory(&String::from_utf8_lossy(part))) =>
            {
                507
            }
            _ => 400,
        };
        HttpResponse { status, ..response }
    };
    match infer::infer(&call.of_model(&model.name)) {
        EndpointReply::Ready(response) => EndpointReply::Ready(judged(response)),
        EndpointReply::Pending(later) => {
            EndpointReply::Pending(Box::pin(async move { judged(later.await) }))
        }
    }
}

/// The models that serve.
fn index(call: &CallContext<'_>) -> HttpResponse {
    let models = call.app.sagemaker().hosted.models();
    let ready = |model: &HostedModel| call.app.core().model_ready(&model.name, "").unwrap_or(false);
    let lines: Vec<_> = models.iter().filter(|(_, model)| ready(model)).collect();
    let mut out = b"{\"models\":".to_vec();
    json::write_array(&mut out, &lines, |out, (name, model)| describe(out, name, &model.path));
    out.push(b'}');
    HttpResponse::ok(ContentType::Text, out)
}

fn describe(out: &mut Vec<u8>, name: &str, path: &Path) {
    out.extend_from_slice(b"{\"modelName\":");
    json::write_str(out, name.as_bytes());
    out.extend_from_slice(b",\"modelUrl\":");
    json::write_str(out, path.to_string_lossy().as_bytes());
    out.push(b'}');
}

/// Reads the body of a load: the name that SageMaker gives, and the folder.
fn asked(body: &[u8]) -> Result<(String, String), ServingError> {
    let document = JsonDocument::parse(body).map_err(crate::http::decode::json_error)?;
    let text = |name: &str| match document.root().member(name).map(json::JsonValue::kind) {
        Some(JsonKind::String(text)) if !text.is_empty() => {
            Ok(String::from_utf8_lossy(text).into_owned())
        }
        _ => Err(ServingError::invalid_arg(format!("the load of a model needs '{name}', a text"))),
    };
    Ok((text("model_name")?, text("url")?))
}

/// Loads a model from its folder.
fn load(call: &CallContext<'_>) -> EndpointReply {
    let (given, url) = match asked(&call.body) {
        Ok(asked) => asked,
        Err(error) => return EndpointReply::Ready(refusal(&error)),
    };
    let name = call.head.header(TARGET).unwrap_or(&given).to_owned();
    let app = Arc::clone(call.app);
    EndpointReply::Pending(Box::pin(async move {
        let inner = Arc::clone(&app);
        tracing::info!(model = %name, "loading a model of SageMaker's from {url}");
        let loaded = run_blocking(&app, move || {
            let repository = archive::repository(&url, &name)?;
            let core = inner.core();
            let path = repository.path.clone();
            core.register_repository(repository)?;
            let taken = inner.sagemaker().hosted.models().contains_key(&given);
            let loaded = if taken {
                let text = format!("model '{given}' is loaded already");
                Err(ServingError::new(ErrorCode::AlreadyExists, text))
            } else {
                core.load_model(&name, LoadOverrides::default())
            };
            if let Err(error) = loaded {
                core.unregister_repository(&path)?;
                return Err(error);
            }
            inner.sagemaker().hosted.models().insert(given, HostedModel { name, path });
            Ok(())
        });
        loaded.await.map_or_else(|error| refusal(&error), |()| status(200))
    }))
}

/// Unloads a model with its steps, waits until it has answered its requests, and forgets its folder.
fn unload(call: &CallContext<'_>) -> EndpointReply {
    let app = Arc::clone(call.app);
    let Some(model) = app.sagemaker().hosted.models().remove(call.model) else {
        return EndpointReply::Ready(status(404));
    };
    let given = call.model.to_owned();
    EndpointReply::Pending(Box::pin(async move {
        let inner = Arc::clone(&app);
        tracing::info!(model = %model.name, "unloading a model of SageMaker's");
        let unloaded = run_blocking(&app, move || {
            let core = inner.core();
            if let Err(error) = core.unload_model(&model.name, UnloadDependents::Unload) {
                inner.sagemaker().hosted.models().insert(given, model);
                return Err(error);
            }
            await_end(core, &model.name);
            core.unregister_repository(&model.path)
        });
        unloaded.await.map_or_else(|error| refusal(&error), |()| status(200))
    }))
}

/// Waits until a model that was unloaded has answered its requests, as long as SageMaker does.
fn await_end(core: &Core, name: &str) {
    let start = Instant::now();
    let busy = || {
        let index = core.repository_index(false);
        let mut lines = index.iter().filter(|line| line.name == name);
        lines.any(|line| line.state == Some(VersionState::Unloading))
    };
    while busy() {
        if start.elapsed() > UNLOADING {
            return tracing::error!(model = name, "the model still answers requests");
        }
        std::thread::sleep(LOOK);
    }
}

/// 409 for a model that is there already, 507 where memory is short, 400 otherwise.
fn refusal(error: &ServingError) -> HttpResponse {
    let status = match error.code {
        ErrorCode::AlreadyExists => 409,
        _ if means_no_memory(&error.message) => 507,
        _ => 400,
    };
    HttpResponse::error(status, ContentType::Text, &error.message)
}

fn means_no_memory(text: &str) -> bool {
    NO_MEMORY.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_sagemakers_numbers() {
        for (error, status) in [
            (ServingError::new(ErrorCode::AlreadyExists, "there"), 409),
            (ServingError::internal("failed to allocate memory for x"), 507),
            (ServingError::unavailable("CUDA out of memory"), 507),
            (ServingError::not_found("no such model"), 400),
        ] {
            assert_eq!(refusal(&error).status, status, "{error}");
        }
    }

    #[test]
    fn a_load_needs_a_name_and_a_folder() {
        let body = br#"{"model_name":"n","url":"/u"}"#;
        assert_eq!(asked(body).unwrap(), ("n".to_owned(), "/u".to_owned()));
        for (body, text) in [
            (&br#"{"url":"/u"}"#[..], "'model_name'"),
            (br#"{"model_name":"n"}"#, "'url'"),
            (br#"{"model_name":1,"url":"/u"}"#, "'model_name'"),
            (b"[]", "'model_name'"),
            (b"{", "failed to parse the request JSON buffer"),
        ] {
            assert!(asked(body).unwrap_err().message.contains(text), "{text}");
        }
    }
}
