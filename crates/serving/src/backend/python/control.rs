//! Repository calls of models: `load_model`, `unload_model` and `is_model_ready`.

use std::fs;
use std::sync::Mutex;

use serde_json::Value;

use super::bls::BlsCallee;
use super::locked;
use crate::backend::{LoadOverrides, UnloadDependents};
use crate::error::ServingError;

/// Models that are being loaded and wait for the load of others, by name. Two that wait for each other would do so for
/// ever.
#[derive(Debug, Default)]
pub(super) struct ModelLoadWaits(Mutex<Vec<(String, String)>>);

impl ModelLoadWaits {
    /// Notes that a model that is being loaded waits for another one.
    fn begin(&self, model: &str, other: &str) -> Result<(), ServingError> {
        let mut waits = locked(&self.0);
        let mut left = vec![other.to_owned()];
        let mut at = 0;
        while let Some(name) = left.get(at).cloned() {
            if name == model {
                return Err(ServingError::unavailable(format!(
                    "'{other}' cannot be loaded while '{model}' is, which waits for it"
                )));
            }
            let next = waits.iter().filter(|(waiting, _)| *waiting == name);
            let next: Vec<String> = next.map(|(_, other)| other.clone()).collect();
            left.extend(next.into_iter().filter(|next| *next == model || *next != name));
            left.truncate(1 << 10);
            at += 1;
        }
        waits.push((model.to_owned(), other.to_owned()));
        Ok(())
    }

    fn end(&self, model: &str, other: &str) {
        let mut waits = locked(&self.0);
        let at = waits.iter().position(|(waiting, of)| waiting == model && of == other);
        if let Some(at) = at {
            waits.swap_remove(at);
        }
    }
}

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
        let bytes = fs::read(place).map_err(|error| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_do_not_wait_for_each_other() {
        let loads = ModelLoadWaits::default();
        assert!(loads.begin("a", "a").is_err());
        loads.begin("a", "b").unwrap();
        loads.begin("b", "c").unwrap();
        assert!(loads.begin("c", "a").unwrap_err().message.contains("'a' cannot be loaded"));
        loads.end("b", "c");
        loads.begin("c", "a").unwrap();
    }
}
