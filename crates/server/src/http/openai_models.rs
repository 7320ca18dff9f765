//! The models as OpenAI's clients see them: their list, and their load and unload as Triton's front end for this
//! protocol has them.

use std::sync::{Arc, OnceLock};

use galatea_serving::core::{ControlMode, LoadOverrides, UnloadDependents};
use galatea_serving::{Core, ListedCheckpoint, ServingError};
use serde_json::{Value, json};

use super::endpoints::{CallContext, EndpointReply};
use super::openai::{refusal, reply};
use crate::blocking::run_blocking;
use crate::openai::error::ApiError;
use crate::openai::wire::now;

/// `/v1/models`: every model that serves, also those that take tensors alone.
pub(super) fn models(call: &CallContext<'_>) -> EndpointReply {
    let core = call.app.core();
    let checkpoints = core.checkpoints();
    let of_name =
        |name: &String| described(name, checkpoints.iter().find(|listed| listed.name == *name));
    let data: Vec<Value> = core.ready_names().iter().map(of_name).collect();
    let list = json!({"object": "list", "data": data});
    EndpointReply::Ready(reply(Ok(list.to_string().into_bytes())))
}

/// `/v1/models/{model}`
pub(super) fn model(call: &CallContext<'_>) -> EndpointReply {
    let core = call.app.core();
    let found = match core.resolve(call.model, "").map(|model| model.listed_checkpoint()) {
        _ if !core.is_live() => Err(ApiError::unavailable("the server stops")),
        Ok(listed) => Ok(described(call.model, listed.as_ref()).to_string().into_bytes()),
        Err(_) => Err(ApiError::no_model(call.model)),
    };
    EndpointReply::Ready(reply(found))
}

fn described(name: &str, listed: Option<&ListedCheckpoint>) -> Value {
    json!({
        "id": name, "object": "model", "created": started(), "owned_by": "galatea",
        "root": name, "parent": null, "max_model_len": listed.map(|listed| listed.traits.context),
    })
}

/// Returns the time of the first listing of models in Unix seconds, which stands for their creation time.
fn started() -> u64 {
    static STARTED: OnceLock<u64> = OnceLock::new();
    *STARTED.get_or_init(now)
}

/// `/v1/models/{model}/load`
pub(super) fn load(call: &CallContext<'_>) -> EndpointReply {
    change(call, |core, model| {
        if core.resolve(model, "").is_ok() {
            return Err(ApiError::invalid(format!("Model '{model}' is already loaded")));
        }
        core.load_model(model, LoadOverrides::default())
            .map_err(|error| not_loaded(model, error))?;
        let listed = core.resolve(model, "").ok().and_then(|model| model.listed_checkpoint());
        Ok(described(model, listed.as_ref()))
    })
}

/// `/v1/models/{model}/unload`
pub(super) fn unload(call: &CallContext<'_>) -> EndpointReply {
    change(call, |core, model| {
        if core.resolve(model, "").is_err() {
            return Err(ApiError::invalid(format!("Model '{model}' is not loaded")));
        }
        core.unload_model(model, UnloadDependents::Keep)?;
        Ok(json!({"id": model, "object": "model", "deleted": true}))
    })
}

/// Makes a mistake of the request of a model that is absent or cannot be loaded.
fn not_loaded(model: &str, error: ServingError) -> ApiError {
    match crate::status::http(error.code) {
        503 => error.into(),
        _ => ApiError::field("model", format!("'{model}' cannot be loaded: {}", error.message)),
    }
}

/// Loads and unloads take their time, so they go to a thread that may wait.
fn change(
    call: &CallContext<'_>,
    act: impl FnOnce(&Core, &str) -> Result<Value, ApiError> + Send + 'static,
) -> EndpointReply {
    let core = Arc::clone(call.app.core());
    if !matches!(core.options().control_mode, ControlMode::Explicit { .. }) {
        let text = "Model load/unload requires --model-control-mode=explicit";
        return EndpointReply::Ready(refusal(&ApiError::invalid(text)));
    }
    let app = Arc::clone(call.app);
    let model = call.model.to_owned();
    EndpointReply::Pending(Box::pin(async move {
        let done = run_blocking(&app, move || Ok(act(&core, &model))).await;
        let done = done.unwrap_or_else(|error| Err(error.into()));
        reply(done.map(|answer| answer.to_string().into_bytes()))
    }))
}
