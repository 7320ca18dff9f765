//! `galatea core-ml-worker`: runs packages for the process that has started it. Not for people: it waits for
//! requests on a socket that is its standard input.

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

/// Tells the provider of Core ML how workers are started, and where compiled packages are kept: beside the
/// cache of prepared models. Where either is unknown, there are no workers.
pub(super) fn announce() {
    let Ok(program) = std::env::current_exe() else { return };
    let Some(models) = ModelCache::default_folder() else { return };
    let cache = CompiledCache::new(models.with_file_name("core-ml"), DEFAULT_LIMIT_BYTES);
    let worker = WorkerCommand { program, arguments: vec![NAME.to_owned()] };
    engine::set_host(EngineHost { worker, cache });
}
