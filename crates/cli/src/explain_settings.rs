//! Lists the fields that `metal_config` sets for a model of a repository, each with its origin.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use galatea_formats::onnx;
use galatea_runtime::SessionOptions;
use galatea_runtime::power::PowerSettings;
use galatea_serving::config::metal::MetalSetting;
use galatea_serving::config::{self, MetalConfig, ModelConfig};
use galatea_serving::low_bits::{LoadQuantization, LowBits};
use galatea_serving::model_cache::GraphTransform;

use super::engine;
use crate::table::table;

/// Files by which a folder is known as one of a model.
const FILES: [&str; 2] = ["config.pbtxt", "metal_config.json"];

/// The fields that hold for a model, as a table: its own, those of `flag` (as `--metal-config` of the server), and
/// those on power that nobody says. Nothing where a path is in no folder of a model, and nobody says anything.
///
/// # Errors
/// Fails for a configuration that cannot be read, and for a wrong field.
pub(super) fn text(path: &Path, flag: &str) -> Result<Option<String>, String> {
    let server = MetalConfig::of_server(flag, None)?;
    let folder = folder(path);
    if folder.is_none() && server.is_empty() {
        return Ok(None);
    }
    let metal = match &folder {
        Some(folder) => MetalConfig::of_model(&read(folder)?, folder, &server)
            .map_err(|error| error.to_string())?,
        None => MetalConfig::of_model(&ModelConfig::default(), path, &server)
            .map_err(|error| error.to_string())?,
    };
    // Fields that nobody sets are of interest beside those that somebody does.
    if metal.settings().is_empty() && server.power().next().is_none() {
        return Ok(None);
    }
    let own = metal.settings().iter().map(row);
    let of_server = server.power().filter(|setting| metal.find(setting.field).is_none());
    let of_server = of_server.map(|setting| {
        let [field, value, from] = row(setting);
        [field, value, format!("{from}, for the whole server")]
    });
    let unsaid = unsaid()
        .into_iter()
        .filter(|(field, _)| metal.find(field).is_none() && server.find(field).is_none());
    let unsaid =
        unsaid.map(|(field, value)| [field.to_owned(), value, "nobody says it".to_owned()]);
    let rows = own.chain(of_server).chain(unsaid).map(Vec::from);
    Ok(Some(table(&["metal_config", "Value", "From"], rows)))
}

/// Line that a server has in its log about a model whose `precision` is one of weights.
///
/// # Errors
/// Fails for a configuration that cannot be read, and where the model cannot be.
pub(super) fn quantization(
    path: &Path,
    model: &Path,
    flag: &str,
) -> Result<Option<String>, String> {
    let server = MetalConfig::of_server(flag, None)?;
    let folder = folder(path);
    let config = folder.as_ref().map_or_else(|| Ok(ModelConfig::default()), |folder| read(folder));
    let place = folder.as_deref().unwrap_or(path);
    let metal = MetalConfig::of_model(&config?, place, &server);
    let metal = metal.map_err(|error| error.to_string())?;
    let bits = match metal.find("precision").map(|setting| setting.text.as_str()) {
        Some("int8") => LowBits::Int8,
        Some("int4") => LowBits::Int4,
        _ => return Ok(None),
    };
    if model.extension().is_none_or(|end| end != "onnx") {
        return Ok(Some(format!("not {bits}: expected an ONNX model")));
    }
    let graph = onnx::load(model).map_err(|error| error.to_string())?;
    let providers = engine().providers(None)?;
    let change = LoadQuantization::new(bits, place);
    let (_, line) = change.change(graph, &providers, &SessionOptions::default());
    Ok(Some(line))
}

/// Rows of the runs that a server expects of a model: of one where no configuration says anything.
pub(super) fn expected_rows(path: &Path) -> Vec<usize> {
    let config = folder(path).and_then(|folder| read(&folder).ok());
    config.map_or_else(|| vec![1], |config| galatea_serving::backend::graph::expected_rows(&config))
}

fn row(setting: &MetalSetting) -> [String; 3] {
    let preset = if setting.preset { ", by its preset" } else { "" };
    let from = format!("{}{preset}", setting.place);
    [setting.field.to_owned(), setting.text.clone(), from]
}

/// Fields on power with what holds where nobody says anything.
fn unsaid() -> Vec<(&'static str, String)> {
    let usual = PowerSettings::default();
    vec![
        ("power_policy", usual.policy.to_string()),
        ("power_target_watts", usual.target_watts.map_or("none".to_owned(), |w| w.to_string())),
        ("enable_thermal_protection", usual.thermal_protection.to_string()),
        ("adaptive_frequency", usual.adaptive_frequency.to_string()),
        ("efficiency_core_offload", usual.efficiency_core_offload.to_string()),
    ]
}

/// The folder of the model that a path is or lies in: a version's folder lies in it, and files lie in that.
fn folder(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().take(3).filter(|folder| !folder.as_os_str().is_empty());
    let mut known = above.filter(|folder| FILES.iter().any(|name| folder.join(name).is_file()));
    known.next().map(Path::to_owned)
}

fn read(folder: &Path) -> Result<ModelConfig, String> {
    let path = folder.join("config.pbtxt");
    match fs::read_to_string(&path) {
        Ok(text) => {
            config::from_text(&text).map_err(|error| format!("'{}': {error}", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(ModelConfig::default()),
        Err(error) => Err(format!("'{}': {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_shown_with_the_place_that_it_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m");
        fs::create_dir_all(model.join("1")).unwrap();
        fs::write(model.join("1/model.onnx"), "").unwrap();
        let path = |part: &str| model.join(part);
        assert_eq!(text(&path("1/model.onnx"), "").unwrap(), None);
        fs::write(model.join("config.pbtxt"), "max_batch_size: 0").unwrap();
        assert_eq!(text(&path(""), "").unwrap(), None, "a configuration that sets none of them");
        let object = r#"{"preset": "low_latency", "batch_size": 4}"#;
        fs::write(model.join("metal_config.json"), object).unwrap();
        let parameter = r#"parameters { key: "metal_config" value { string_value: "{\"precision\": \"bf16\"}" } }"#;
        fs::write(model.join("config.pbtxt"), parameter).unwrap();
        let flag = r#"{"precision": "fp16", "kernel_fusion": false, "power_target_watts": 9}"#;
        for place in ["", "1", "1/model.onnx"] {
            let text = text(&path(place), flag).unwrap().unwrap();
            let line = |field: &str| text.lines().find(|line| line.contains(field)).unwrap();
            for (field, value, from) in [
                ("precision", "bf16", "parameter 'metal_config'"),
                ("batch_size", "4", "metal_config.json"),
                ("minimize_launches", "true", "metal_config.json, by its preset"),
                ("kernel_fusion", "false", "--metal-config"),
                ("power_target_watts", "9", "--metal-config, for the whole server"),
                ("power_policy", "balanced", "nobody says it"),
            ] {
                let line = line(field);
                assert!(line.contains(value) && line.contains(from), "{line}");
            }
        }
        assert!(text(&path(""), r#"{"precision": 3}"#).unwrap_err().contains("--metal-config"));
    }
}
