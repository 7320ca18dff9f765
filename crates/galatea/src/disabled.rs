//! Backends that `--disable-backends` switches off.

use std::path::Path;
use std::sync::Arc;

use galatea_serving::ServingError;
use galatea_serving::backend::{BackendModel, ModelBackend, ModelFiles, PlacementKind};

/// A backend that recognises its models and loads none of them.
#[derive(Debug)]
struct DisabledBackend {
    inner: Arc<dyn ModelBackend>,
}

impl ModelBackend for DisabledBackend {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn platform(&self) -> &str {
        self.inner.platform()
    }

    fn default_model_filename(&self) -> &str {
        self.inner.default_model_filename()
    }

    fn default_instance_count(&self, kind: PlacementKind) -> i32 {
        self.inner.default_instance_count(kind)
    }

    fn recognises(&self, model_dir: &Path, version_dir: Option<&Path>) -> bool {
        self.inner.recognises(model_dir, version_dir)
    }

    fn takes_metal_config(&self) -> bool {
        self.inner.takes_metal_config()
    }

    fn has_batches(&self) -> bool {
        self.inner.has_batches()
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Err(ServingError::unavailable(format!(
            "model '{}' needs the backend '{}', which --disable-backends switches off",
            files.name,
            self.name()
        )))
    }
}

/// The same backends, without those that values of `--disable-backends` switch off.
///
/// # Errors
/// Returns a sentence about the first name that is not a backend's.
pub fn without_disabled(
    backends: Vec<Arc<dyn ModelBackend>>,
    lists: &[String],
) -> Result<Vec<Arc<dyn ModelBackend>>, String> {
    let names = lists.iter().flat_map(|list| list.split(','));
    let disabled: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    let is = |backend: &Arc<dyn ModelBackend>, name: &str| backend.name() == name;
    if let Some(unknown) = disabled.iter().find(|&&name| !backends.iter().any(|one| is(one, name)))
    {
        let known: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
        return Err(format!(
            "--disable-backends names '{unknown}', which is none of {}",
            known.join(", ")
        ));
    }
    let switched = backends.into_iter().map(|backend| -> Arc<dyn ModelBackend> {
        match disabled.iter().any(|name| is(&backend, name)) {
            true => Arc::new(DisabledBackend { inner: backend }),
            false => backend,
        }
    });
    Ok(switched.collect())
}

#[cfg(test)]
mod tests {
    use galatea_serving::{ControlMode, Core, CoreOptions};

    use super::*;
    use crate::Engine;

    fn backends(argument: &str) -> Result<Vec<Arc<dyn ModelBackend>>, String> {
        without_disabled(Engine::new().backends(None), &[argument.to_owned()])
    }

    #[test]
    fn a_backend_that_is_switched_off_loads_nothing_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        for (name, file) in [("p", "model.py"), ("t", "model.pt")] {
            let backend = if name == "p" { "python" } else { "pytorch" };
            let version = folder.path().join(name).join("1");
            std::fs::create_dir_all(&version).unwrap();
            std::fs::write(version.join(file), "").unwrap();
            let config = format!(
                "backend: \"{backend}\"\ninput {{ name: \"I\" data_type: TYPE_FP32 dims: 1 }}\n\
                 output {{ name: \"O\" data_type: TYPE_FP32 dims: 1 }}\n"
            );
            std::fs::write(folder.path().join(name).join("config.pbtxt"), config).unwrap();
        }
        let options = CoreOptions {
            repositories: vec![folder.path().to_owned()],
            control_mode: ControlMode::Explicit { load: Vec::new() },
            ..CoreOptions::default()
        };
        let core = Core::start(options, backends("python, pytorch").unwrap());
        let core = core.unwrap();
        for name in ["p", "t"] {
            let error = core.load_model(name, Default::default()).unwrap_err();
            assert!(error.message.contains("--disable-backends switches off"), "{}", error.message);
        }
        core.shutdown(std::time::Duration::ZERO);
    }

    #[test]
    fn names_of_no_backend_are_told() {
        let error = backends("pithon").unwrap_err();
        assert!(error.contains("'pithon'") && error.contains("python"), "{error}");
        assert!(backends("").is_ok());
    }
}
