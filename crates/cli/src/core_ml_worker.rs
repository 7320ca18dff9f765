//! `galatea core-ml-worker`: runs packages for the process that has started it. Not for people: it waits for
//! requests on a socket that is its standard input.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use galatea_coreml::engine::{self, CompiledCache, DEFAULT_LIMIT_BYTES, EngineHost, WorkerCommand};
use galatea_serving::model_cache::ModelCache;

/// The command's name.
pub(super) const NAME: &str = "core-ml-worker";

/// Answers requests until the other process lets go.
pub(super) fn serve() -> Result<ExitCode, String> {
    engine::serve_here()
        .map_err(|error| format!("'{NAME}' is started by galatea itself: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Tells the provider of Core ML how workers are started, and where compiled packages are kept. There are no
/// workers where this program's own file is unknown. The folder for what is kept must have been chosen before.
pub(super) fn announce() {
    let Ok(program) = std::env::current_exe() else { return };
    let place = CompiledPlace::choose(ModelCache::default_folder(), &std::env::temp_dir());
    let cache = CompiledCache::new(place.folder, DEFAULT_LIMIT_BYTES);
    let worker = WorkerCommand { program, arguments: vec![NAME.to_owned()] };
    engine::set_host(EngineHost { worker, cache, warning: place.warning });
}

/// Folder of compiled packages, and what is to be said of it.
struct CompiledPlace {
    folder: PathBuf,
    warning: Option<String>,
}

impl CompiledPlace {
    /// Chooses the folder beside the cache of prepared models. Where there is none, since the user has no home,
    /// it is a temporary one of this process, under a name that nobody else can guess.
    fn choose(models: Option<PathBuf>, temporary: &Path) -> Self {
        if let Some(models) = models {
            return Self { folder: models.with_file_name("core-ml"), warning: None };
        }
        let random = RandomState::new().build_hasher().finish();
        let folder = temporary.join(format!("galatea-core-ml-{random:016x}"));
        let warning = format!(
            "this user has no home folder: packages that are compiled for Core ML lie in {} and are compiled anew \
             after each start. Set HOME or --cache-dir to keep them",
            folder.display()
        );
        Self { folder, warning: Some(warning) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_packages_lie_beside_prepared_models() {
        let models = PathBuf::from("/home/a/.cache/galatea/models");
        let place = CompiledPlace::choose(Some(models), Path::new("/tmp"));
        assert_eq!(place.folder, Path::new("/home/a/.cache/galatea/core-ml"));
        assert_eq!(place.warning, None);
    }

    #[test]
    fn a_user_without_a_home_has_workers_and_a_warning() {
        let place = CompiledPlace::choose(None, Path::new("/tmp"));
        assert!(place.folder.starts_with("/tmp") && place.folder != Path::new("/tmp"));
        assert!(place.warning.unwrap().contains("Set HOME or --cache-dir"));
    }
}
