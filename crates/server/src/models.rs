//! What the server makes of the other crates: backends from providers, and tables about models.

use std::sync::Arc;

use galatea_runtime::SessionOptions;
use galatea_serving::Core;
use galatea_serving::backend::Backend;
use galatea_serving::backend::onnx::OnnxBackend;

use crate::table::table;

/// The backends of this program.
#[must_use]
pub fn backends() -> Vec<Arc<dyn Backend>> {
    let providers = galatea_providers::all();
    vec![Arc::new(OnnxBackend::new(providers, SessionOptions::default()))]
}

/// The table of models after loading, as Triton prints it.
#[must_use]
pub fn summary(core: &Core) -> String {
    let rows = core.repository_index(false).into_iter().map(|model| {
        let state = model.state.map_or("UNKNOWN", |state| state.name());
        let status = match model.reason.filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("{state}: {reason}"),
            None => state.to_owned(),
        };
        vec![model.name, model.version.unwrap_or_else(|| "-".to_owned()), status]
    });
    format!("\n{}", table(&["Model", "Version", "Status"], rows))
}
