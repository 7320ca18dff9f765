//! What the server makes of the other crates: backends from providers, and tables about models.

use std::path::PathBuf;
use std::sync::Arc;

use galatea_runtime::SessionOptions;
use galatea_serving::Core;
use galatea_serving::backend::Backend;
use galatea_serving::backend::builtin;
use galatea_serving::backend::onnx::OnnxBackend;
use galatea_serving::model_cache::ModelCache;
use galatea_serving::repository::ModelId;

use crate::table::table;
use crate::tuning;

/// The backends of this program, with prepared models in a cache.
#[must_use]
pub fn backends(cache: Option<ModelCache>) -> Vec<Arc<dyn Backend>> {
    let providers = galatea_providers::all();
    let options = SessionOptions { choices: tuning::choices(), ..SessionOptions::default() };
    let onnx = OnnxBackend::new(providers, options).with_cache(cache);
    let onnx: Arc<dyn Backend> = Arc::new(onnx);
    std::iter::once(onnx).chain(builtin::all()).collect()
}

/// The cache of prepared models in a folder, or in the system's own where it is empty; none of 0
/// bytes, or where the system has no such folder.
#[must_use]
pub fn model_cache(folder: &str, bytes: u64) -> Option<ModelCache> {
    let folder = match folder {
        "" => ModelCache::default_folder()?,
        given => PathBuf::from(given),
    };
    (bytes > 0).then(|| ModelCache::new(folder, bytes))
}

/// The table of models after loading, as Triton prints it. A model without a version that could be tried has the
/// reason of its failure.
#[must_use]
pub fn summary(core: &Core) -> String {
    let failures = core.load_failures();
    let mut index = core.repository_index(false);
    for model in &mut index {
        let namespace = std::mem::take(&mut model.namespace);
        model.name = ModelId { namespace, name: std::mem::take(&mut model.name) }.to_string();
    }
    // The index leaves out models without a version.
    let unlisted = failures.iter().filter(|failure| index.iter().all(|m| m.name != failure.model));
    let unlisted: Vec<Vec<String>> = unlisted
        .map(|failure| {
            let status = format!("UNAVAILABLE: {}", failure.reason);
            vec![failure.model.clone(), "-".to_owned(), status]
        })
        .collect();
    let rows = index.into_iter().map(|model| {
        let untried = failures.iter().find(|failure| {
            model.state.is_none() && failure.model == model.name && failure.version.is_none()
        });
        let status = match (model.state, untried, model.reason) {
            (None, Some(failure), _) => format!("UNAVAILABLE: {}", failure.reason),
            (None, None, _) => "not loaded".to_owned(),
            (Some(state), _, Some(reason)) if !reason.is_empty() => {
                format!("{}: {reason}", state.name())
            }
            (Some(state), ..) => state.name().to_owned(),
        };
        vec![model.name, model.version.unwrap_or_else(|| "-".to_owned()), status]
    });
    let mut rows: Vec<Vec<String>> = rows.chain(unlisted).collect();
    rows.sort_by(|a, b| a.first().cmp(&b.first()));
    format!("\n{}", table(&["Model", "Version", "Status"], rows))
}
