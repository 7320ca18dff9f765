//! Repositories that come and go while the server runs.

use std::path::Path;
use std::sync::PoisonError;

use super::{ControlMode, Core};
use crate::error::{ErrorCode, ServingError};
use crate::repository::ModelRepository;

impl Core {
    /// Adds a repository, whose models can then be loaded.
    ///
    /// # Errors
    /// UNSUPPORTED in another mode than explicit, INVALID_ARG when there is no such folder, and ALREADY_EXISTS when it
    /// is a repository already or gives a name that another one has given.
    pub fn register_repository(&self, repository: ModelRepository) -> Result<(), ServingError> {
        self.check_registration()?;
        let path = &repository.path;
        if !path.is_dir() {
            let path = path.display();
            return Err(ServingError::invalid_arg(format!(
                "failed to register '{path}', repository not found"
            )));
        }
        let mut registered = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        let mut paths = registered.iter().map(|other| &other.path);
        if paths.any(|other| other == path) || self.options.repositories.contains(path) {
            return Err(ServingError::new(
                ErrorCode::AlreadyExists,
                format!("model repository '{}' has already been registered", path.display()),
            ));
        }
        let given = |name: &&String| {
            registered.iter().any(|other| other.names.values().any(|other| other == *name))
        };
        if let Some(name) = repository.names.values().find(given) {
            return Err(ServingError::new(
                ErrorCode::AlreadyExists,
                format!(
                    "failed to register '{}', there is a conflicting mapping for '{name}'",
                    path.display()
                ),
            ));
        }
        registered.push(repository);
        Ok(())
    }

    /// Removes a repository. Models of it that serve go on.
    ///
    /// # Errors
    /// UNSUPPORTED in another mode than explicit, and INVALID_ARG when no such repository was registered.
    pub fn unregister_repository(&self, path: &Path) -> Result<(), ServingError> {
        self.check_registration()?;
        let mut registered = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        let before = registered.len();
        registered.retain(|other| other.path != path);
        if registered.len() == before {
            let path = path.display();
            return Err(ServingError::invalid_arg(format!(
                "failed to unregister '{path}', repository not found"
            )));
        }
        Ok(())
    }

    fn check_registration(&self) -> Result<(), ServingError> {
        match self.options.control_mode {
            ControlMode::Explicit { .. } => Ok(()),
            ControlMode::None | ControlMode::Poll { .. } => Err(ServingError::unsupported(
                "repository registration is not allowed if model control mode is not EXPLICIT",
            )),
        }
    }

    /// All repositories: those of the start first.
    pub(super) fn repositories(&self) -> Vec<ModelRepository> {
        let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        let given = self.options.repositories.iter().map(|path| path.as_path().into());
        given.chain(registered.iter().cloned()).collect()
    }

    /// Whether a repository gives the name to a folder that is called otherwise.
    pub(super) fn is_renamed(&self, name: &str) -> bool {
        let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        registered.iter().any(|other| other.names.values().any(|other| other == name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use galatea_tensor::OrderedMap;

    use crate::backend::builtin;
    use crate::core::{ControlMode, Core, CoreOptions, LoadOverrides};
    use crate::error::ErrorCode;
    use crate::repository::ModelRepository;

    const CONFIG: &str = "backend: \"identity\" max_batch_size: 1\n\
        input { name: \"I\" data_type: TYPE_FP32 dims: 1 } output { name: \"O\" data_type: TYPE_FP32 dims: 1 }";

    #[test]
    fn models_of_a_registered_repository_load_under_the_names_it_gives() {
        let root = std::env::temp_dir().join(format!("galatea-registered-{}", std::process::id()));
        let first = root.join("first");
        let later = root.join("later");
        fs::create_dir_all(&first).unwrap();
        fs::create_dir_all(later.join("model/1")).unwrap();
        fs::write(later.join("model/config.pbtxt"), format!("name: \"any\" {CONFIG}")).unwrap();
        let options = |control_mode| CoreOptions {
            repositories: vec![first.clone()],
            control_mode,
            ..CoreOptions::default()
        };
        let explicit = ControlMode::Explicit { load: Vec::new() };
        let core = Core::start(options(explicit), builtin::all()).unwrap();
        let names = OrderedMap::from([("model".to_owned(), "given".to_owned())]);
        let repository = ModelRepository { path: later.clone(), names: names.clone() };
        assert!(core.load_model("given", LoadOverrides::default()).is_err());
        core.register_repository(repository.clone()).unwrap();
        core.load_model("given", LoadOverrides::default()).unwrap();
        assert!(core.model_ready("given", "").unwrap());
        let index = core.repository_index(true);
        assert_eq!(index.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["given"]);

        let code = |repository| core.register_repository(repository).unwrap_err().code;
        assert_eq!(code(repository.clone()), ErrorCode::AlreadyExists);
        assert_eq!(code(ModelRepository { path: root.clone(), names }), ErrorCode::AlreadyExists);
        assert_eq!(code(first.as_path().into()), ErrorCode::AlreadyExists);
        assert_eq!(code(root.join("none").as_path().into()), ErrorCode::InvalidArg);
        core.unregister_repository(&later).unwrap();
        assert!(core.repository_index(false).is_empty());
        assert!(core.unregister_repository(&later).is_err());

        let fixed = Core::start(options(ControlMode::None), builtin::all()).unwrap();
        assert_eq!(fixed.register_repository(repository).unwrap_err().code, ErrorCode::Unsupported);
        fs::remove_dir_all(root).unwrap();
    }
}
