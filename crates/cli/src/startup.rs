//! The tables that the log shows at the start.

use galatea::host;
use galatea_server::server::FrontEndAddresses;
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
        ("server_extensions".to_owned(), folded(&metadata.extensions)),
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

/// Columns of a cell that has several words.
const CELL_WIDTH: usize = 60;

/// Words in lines that terminals have room for.
fn folded(words: &[String]) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= CELL_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines.join("\n")
}

/// Line that ends the start: where the server is, how many models serve, and what computes.
#[must_use]
pub fn ready(core: &Core, addresses: &FrontEndAddresses) -> String {
    let places = [
        ("HTTP at http://", addresses.http),
        ("gRPC at ", addresses.grpc),
        ("OpenAI at http://", addresses.openai),
        ("metrics at http://", addresses.metrics),
    ];
    let places =
        places.into_iter().filter_map(|(name, address)| Some(format!("{name}{}", address?)));
    let places: Vec<String> = places.collect();
    let serving = core.repository_index(true).len();
    let models = if serving == 1 { "model version" } else { "model versions" };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = host::machine_memory_bytes();
    let memory = memory
        .map_or_else(String::new, |bytes| format!(", {:.0} GB of memory", bytes as f64 / 1e9));
    format!(
        "Serving {serving} {models}: {}. CPU with {cores} threads{memory}{}",
        places.join(", "),
        gpus()
    )
}

/// Says where the program has no GPUs; others tell of theirs when one is opened.
fn gpus() -> &'static str {
    match cfg!(any(feature = "gpu", target_os = "macos")) {
        true => "",
        false => {
            "; GPUs are not used: the program was built without the cargo feature galatea-cli/gpu"
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_folded_to_the_width_of_a_cell() {
        let words: Vec<String> = (0..30).map(|at| format!("extension_{at}")).collect();
        let text = folded(&words);
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= CELL_WIDTH));
        let found: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(found, words.iter().map(String::as_str).collect::<Vec<_>>());
        let long = "x".repeat(90);
        assert_eq!(folded(std::slice::from_ref(&long)), long, "a word is never cut");
        assert_eq!(folded(&[]), "");
    }
}
