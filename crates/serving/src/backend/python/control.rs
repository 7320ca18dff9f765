//! Repository calls of models: `load_model`, `unload_model` and `is_model_ready`.

use std::path::Path;

use galatea_tensor::read_plain_file;
use serde_json::Value;

use super::bls_callee::BlsCallee;
use crate::backend::{LoadOverrides, UnloadDependents};
use crate::error::ServingError;

fn text<'a>(call: &'a Value, name: &str) -> &'a str {
    call.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a version is ready: `model` and `version`.
pub(super) fn is_ready(callee: &BlsCallee, call: &Value) -> Result<Value, ServingError> {
    let model = callee.host()?.model(text(call, "model"), text(call, "version"))?;
    Ok(model.is_some().into())
}

/// Loads a model: `model`, `config` as JSON, `files` with the path of each in the model's folder and where it lies, and
/// `loading` where the calling model is being loaded itself.
pub(super) fn load(callee: &BlsCallee, call: &Value) -> Result<Value, ServingError> {
    let model = text(call, "model");
    let config = call.get("config").and_then(Value::as_str).map(str::to_owned);
    let mut files = Vec::new();
    for (path, place) in call.get("files").and_then(Value::as_object).into_iter().flatten() {
        let place = place.as_str().unwrap_or_default();
        let bytes = read_plain_file(Path::new(place)).map_err(|error| {
            ServingError::internal(format!(
                "the file '{path}' cannot be read at '{place}': {error}"
            ))
        })?;
        files.push((path.clone(), bytes.into()));
    }
    let overrides = LoadOverrides { config, files };
    let host = callee.host()?;
    if !call.get("loading").and_then(Value::as_bool).unwrap_or(false) {
        return host.load(model, overrides).map(|()| Value::Null);
    }
    callee.loads.begin(callee.model(), model)?;
    let loaded = host.load(model, overrides);
    callee.loads.end(callee.model(), model);
    loaded.map(|()| Value::Null)
}

/// Unloads a model: `model`, and with `dependents` what it is composed of.
pub(super) fn unload(callee: &BlsCallee, call: &Value) -> Result<Value, ServingError> {
    let dependents = match call.get("dependents").and_then(Value::as_bool) {
        Some(true) => UnloadDependents::Unload,
        _ => UnloadDependents::Keep,
    };
    callee.host()?.unload(text(call, "model"), dependents).map(|()| Value::Null)
}
