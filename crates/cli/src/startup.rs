//! The tables that the log shows at the start.

use galatea_serving::Core;
use galatea_serving::backend::ModelBackend;
use galatea_serving::repository::ModelId;
use std::sync::Arc;

use crate::flags::ServerFlags;
use crate::table::table;

/// The backends with their settings.
#[must_use]
pub fn backends(backends: &[Arc<dyn ModelBackend>], core: &Core) -> String {
    let settings = &core.options().backend_config;
    let rows = backends.iter().map(|backend| {
        let name = backend.name();
        let all = ["", name].into_iter().filter_map(|name| settings.get(name)).flatten();
        let members: serde_json::Map<String, serde_json::Value> =
            all.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        let config = serde_json::json!({ "cmdline": members }).to_string();
        vec![name.to_owned(), "built in".to_owned(), config]
    });
    format!("\n{}", table(&["Backend", "Path", "Config"], rows))
}

/// The settings in force.
#[must_use]
pub fn options(core: &Core, flags: &ServerFlags) -> String {
    let metadata = core.metadata();
    let options = core.options();
    let bit = |on: bool| u8::from(on).to_string();
    let mode = flags.text("model-control-mode").to_ascii_uppercase();
    let mut rows = vec![
        ("server_id".to_owned(), metadata.name),
        ("server_version".to_owned(), metadata.version),
        ("server_extensions".to_owned(), metadata.extensions.join(" ")),
    ];
    let paths = options.repositories.iter().enumerate();
    rows.extend(paths.map(|(index, path)| {
        (format!("model_repository_path[{index}]"), path.display().to_string())
    }));
    rows.extend(
        [
            ("model_control_mode", format!("MODE_{mode}")),
            ("strict_model_config", bit(!options.auto_complete)),
            ("model_config_name", options.model_config_name.clone().unwrap_or_default()),
            ("rate_limit", flags.text("rate-limit").to_ascii_uppercase()),
            ("strict_readiness", bit(options.strict_readiness)),
            ("exit_timeout", flags.text("exit-timeout-secs").to_owned()),
            ("cache_enabled", bit(flags.is_set("cache-config"))),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let rows = rows.into_iter().map(|(name, value)| vec![name, value]);
    format!("\n{}", table(&["Option", "Value"], rows))
}

/// Says that the repositories have no model, where they have none: the server is ready then, and answers nobody.
#[must_use]
pub fn nothing_to_serve(core: &Core) -> Option<String> {
    if !core.repository_index(false).is_empty() || !core.load_failures().is_empty() {
        return None;
    }
    let paths = core.options().repositories.iter().map(|path| format!("'{}'", path.display()));
    let paths: Vec<String> = paths.collect();
    Some(format!(
        "there is no model in {}; a model is a folder of its name, with the file in a folder of its version, such as \
         digits/1/model.onnx",
        paths.join(", ")
    ))
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
