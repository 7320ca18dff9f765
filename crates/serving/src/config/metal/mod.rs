//! `metal_config`: what a model, or the server for all models, asks of the units of a machine.
//!
//! An object of JSON with the fields of [`fields::FIELDS`], and `preset`, which stands for several of them. A model
//! has it as the parameter `metal_config` of its configuration, as the file `metal_config.json` beside that, or its
//! fields one by one as parameters of the execution accelerator `metal`; the server has one for all. What is nearer
//! to the model wins, field by field, and in one object a field wins over the preset.

mod batching;
mod contradictions;
mod fields;
pub(crate) mod latency;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use galatea_tensor::{OrderedMap, read_plain_text};
use serde_json::Value;

use super::ModelConfig;
use crate::error::ServingError;
use fields::PRESET;
use latency::LATENCY_GOAL;

/// The file beside `config.pbtxt`, the parameter, and the member that an object may have around it.
const FILE: &str = "metal_config.json";
const PARAMETER: &str = "metal_config";
/// The accelerator whose parameters are fields.
pub(crate) const ACCELERATOR: &str = "metal";
/// Most bytes of the file.
const MAX_BYTES: u64 = 1 << 16;

/// Fields that say how a GPU keeps memory and is kept busy.
const POOL_FIELDS: &[&str] = &[
    "memory_pool_sizes",
    "initial_pool_sizes",
    "max_pool_sizes",
    "use_unified_memory",
    "unified_memory_threshold",
    "gpu_memory_limit",
    "gpu_submission_ms",
];

/// Fields of power, which are settings of the whole server where the server's flag has them.
const POWER_FIELDS: &[&str] = &[
    "power_policy",
    "power_target_watts",
    "enable_thermal_protection",
    "adaptive_frequency",
    "efficiency_core_offload",
];

/// Where a field was found, the farthest from the model first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetalSource {
    /// The server's flag `--backend-config`, for the backend `metal`.
    Backend,
    /// The server's flag `--metal-config`.
    Flag,
    /// The model's `metal_config.json`.
    File,
    /// The parameter `metal_config` of the model's configuration.
    Parameter,
    /// A parameter of its execution accelerator `metal`.
    Accelerator,
}

impl fmt::Display for MetalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backend => "--backend-config=metal",
            Self::Flag => "--metal-config",
            Self::File => FILE,
            Self::Parameter => "parameter 'metal_config'",
            Self::Accelerator => {
                "optimization.execution_accelerators.gpu_execution_accelerator 'metal'"
            }
        })
    }
}

/// A field with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetalSetting {
    /// The field.
    pub field: &'static str,
    /// The value, as a text of the one form that each value has.
    pub text: String,
    /// Where it was found.
    pub place: MetalSource,
    /// Whether a preset says it.
    pub preset: bool,
}

impl MetalSetting {
    /// Whether the model itself asks for just this: then it is an error where it cannot be. What a preset or the
    /// server's flag says is left out for models that it does not fit.
    #[must_use]
    pub fn is_own(&self) -> bool {
        !self.preset && !self.is_for_all()
    }

    /// Whether the server says it for all models.
    fn is_for_all(&self) -> bool {
        matches!(self.place, MetalSource::Backend | MetalSource::Flag)
    }

    /// A sentence on why it is refused.
    #[must_use]
    pub fn refused(&self, why: &str) -> String {
        format!("{}: {} {} found, {why}", self.place, self.field, self.text)
    }
}

/// The fields that are said, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetalConfig {
    settings: Vec<MetalSetting>,
}

impl MetalConfig {
    /// Reads an object, or an object whose one member `metal_config` is it.
    ///
    /// # Errors
    /// Names the place, the field, what was found and what was expected.
    pub fn parse(text: &str, place: MetalSource) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("{place}: no JSON: {error}"))?;
        let inner = value.as_object().filter(|object| object.len() == 1);
        let inner = inner.and_then(|object| object.get(PARAMETER)).unwrap_or(&value);
        let Value::Object(object) = inner else {
            return Err(format!("{place}: {inner} found, expected an object of fields"));
        };
        let wrong = |error: String| format!("{place}: {error}");
        let mut config = Self::default();
        if let Some(preset) = object.get(PRESET) {
            let name = preset.as_str();
            let name =
                name.ok_or_else(|| wrong(format!("{PRESET}: {preset} found, expected a name")))?;
            config = Self::of_preset(name, place).map_err(wrong)?;
        }
        for (name, value) in object.iter().filter(|(name, _)| *name != PRESET) {
            let field = fields::find(name).map_err(wrong)?;
            let text = field.of_json(value).map_err(wrong)?;
            config.set(MetalSetting { field: field.name, text, place, preset: false });
        }
        Ok(config)
    }

    /// Settings of the server for all models: `--metal-config`, an object or the path of a file that holds one, and after
    /// it the settings of `--backend-config` for the backend `metal`.
    ///
    /// # Errors
    /// Fails like [`MetalConfig::parse`], and when the file cannot be read.
    pub fn of_server(
        flag: &str,
        settings: Option<&OrderedMap<String, String>>,
    ) -> Result<Self, String> {
        let mut all = match settings {
            Some(settings) => Self::of_parameters(settings, MetalSource::Backend)?,
            None => Self::default(),
        };
        all.set_all(Self::of_flag(flag)?);
        for line in all.settle()? {
            tracing::warn!("metal_config: {line}");
        }
        Ok(all)
    }

    fn of_flag(value: &str) -> Result<Self, String> {
        if value.trim().is_empty() {
            return Ok(Self::default());
        }
        if value.trim_start().starts_with('{') {
            return Self::parse(value, MetalSource::Flag);
        }
        let read =
            read(Path::new(value)).map_err(|error| format!("{}: {error}", MetalSource::Flag))?;
        let text = read.ok_or_else(|| {
            format!("{}: '{value}' found, expected an object of JSON or a file", MetalSource::Flag)
        })?;
        Self::parse(&text, MetalSource::Flag)
    }

    /// Fields of a model: its own before those of all models, but for those on power, which are the
    /// server's.
    ///
    /// # Errors
    /// INVALID_ARG as [`MetalConfig::parse`], with the model.
    pub fn of_model(config: &ModelConfig, dir: &Path, all: &Self) -> Result<Self, ServingError> {
        let mut own = Self::own(config, dir).map_err(|error| {
            ServingError::invalid_arg(format!("model '{}': {error}", config.name))
        })?;
        for setting in &all.settings {
            let says = own.find(setting.field).is_some();
            if !says && !POWER_FIELDS.contains(&setting.field) {
                own.settings.push(setting.clone());
            }
        }
        let lines = own.settle().map_err(|error| {
            ServingError::invalid_arg(format!("model '{}': {error}", config.name))
        })?;
        for line in lines {
            tracing::warn!(model = %config.name, "metal_config: {line}");
        }
        Ok(own)
    }

    /// Fields of a model itself.
    fn own(config: &ModelConfig, dir: &Path) -> Result<Self, String> {
        let mut own = match read(&dir.join(FILE))? {
            Some(text) => Self::parse(&text, MetalSource::File)?,
            None => Self::default(),
        };
        if let Some(parameter) = config.parameters.get(PARAMETER) {
            own.set_all(Self::parse(&parameter.string_value, MetalSource::Parameter)?);
        }
        let wishes = config.optimization.as_ref().and_then(|w| w.execution_accelerators.as_ref());
        let wishes = wishes.into_iter().flat_map(|wishes| &wishes.gpu_execution_accelerator);
        for wish in wishes.filter(|wish| wish.name == ACCELERATOR) {
            own.set_all(Self::of_parameters(&wish.parameters, MetalSource::Accelerator)?);
        }
        Ok(own)
    }

    /// Fields that are single texts.
    fn of_parameters(
        parameters: &OrderedMap<String, String>,
        place: MetalSource,
    ) -> Result<Self, String> {
        let wrong = |error: String| format!("{place}: {error}");
        let mut config = match parameters.get(PRESET) {
            Some(name) => Self::of_preset(name, place).map_err(wrong)?,
            None => Self::default(),
        };
        for (name, text) in parameters.iter().filter(|(name, _)| *name != PRESET) {
            let field = fields::find(name).map_err(wrong)?;
            let text = field.of_text(text).map_err(wrong)?;
            config.set(MetalSetting { field: field.name, text, place, preset: false });
        }
        Ok(config)
    }

    fn of_preset(name: &str, place: MetalSource) -> Result<Self, String> {
        let mut config = Self::default();
        for (name, text) in fields::preset(name)? {
            let field = fields::find(name)?.name;
            config.set(MetalSetting { field, text: (*text).to_owned(), place, preset: true });
        }
        Ok(config)
    }

    fn set(&mut self, setting: MetalSetting) {
        self.settings.retain(|known| known.field != setting.field);
        self.settings.push(setting);
    }

    fn set_all(&mut self, nearer: Self) {
        nearer.settings.into_iter().for_each(|setting| self.set(setting));
    }

    /// Refuses what a backend has no use for, whose models run on no unit that fields are for.
    ///
    /// # Errors
    /// INVALID_ARG for the first such field that the model itself asks for.
    pub(crate) fn check_foreign(&self, model: &str, backend: &str) -> Result<(), ServingError> {
        // What says something to the scheduler is for every backend.
        let scheduled = ["batch_size", LATENCY_GOAL];
        let foreign = self.settings.iter().filter(|setting| !scheduled.contains(&setting.field));
        for setting in foreign.filter(|setting| !setting.is_for_all()) {
            let why = format!("but the backend '{backend}' takes no such field");
            let refused = setting.refused(&why);
            if setting.is_own() {
                return Err(ServingError::invalid_arg(format!("model '{model}': {refused}")));
            }
            tracing::warn!(%model, "metal_config: {refused}");
        }
        Ok(())
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Value and source of a field.
    #[must_use]
    pub fn find(&self, field: &str) -> Option<&MetalSetting> {
        self.settings.iter().find(|setting| setting.field == field)
    }

    /// The setting of a field that is true or false, with its value.
    pub(crate) fn switch(&self, field: &str) -> Option<(&MetalSetting, bool)> {
        self.find(field).map(|setting| (setting, setting.text == "true"))
    }

    /// The same without a field.
    #[must_use]
    pub fn without(&self, field: &str) -> Self {
        let rest = self.settings.iter().filter(|setting| setting.field != field);
        Self { settings: rest.cloned().collect() }
    }

    /// All that is said.
    #[must_use]
    pub fn settings(&self) -> &[MetalSetting] {
        &self.settings
    }

    /// Power settings, by field.
    pub fn power(&self) -> impl Iterator<Item = &MetalSetting> {
        self.settings.iter().filter(|setting| POWER_FIELDS.contains(&setting.field))
    }

    /// Settings of a GPU's memory.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &MetalSetting> {
        self.settings.iter().filter(|setting| POOL_FIELDS.contains(&setting.field))
    }

    /// The same as a GPU's provider takes it.
    pub(crate) fn pool_settings(&self) -> OrderedMap<String, String> {
        let mut given: OrderedMap<String, String> =
            self.pools().map(|one| (one.field.to_owned(), one.text.clone())).collect();
        if given.remove("use_unified_memory").is_some_and(|text| text == "false") {
            given.insert("unified_memory_threshold".to_owned(), "0".to_owned());
        }
        given
    }
}

/// Names of all fields.
#[cfg(test)]
pub(crate) fn field_names() -> impl Iterator<Item = &'static str> {
    fields::FIELDS.iter().map(|field| field.name)
}

/// Fields of a model's parameter with others in the place of those that both have. An object with a preset replaces
/// the parameter as a whole, since its fields are to be the preset's.
pub(crate) fn merged(own: Option<&str>, fields: &str) -> String {
    let members = |text: &str| -> Option<serde_json::Map<String, Value>> {
        let value: Value = serde_json::from_str(text).ok()?;
        let inner = value.as_object().filter(|object| object.len() == 1);
        let inner = inner.and_then(|object| object.get(PARAMETER)).unwrap_or(&value);
        inner.as_object().cloned()
    };
    let Some(fields) = members(fields) else { return fields.to_owned() };
    let mut all = match fields.contains_key(PRESET) {
        true => None,
        false => own.and_then(members),
    }
    .unwrap_or_default();
    all.extend(fields);
    Value::Object(all).to_string()
}

/// A file of at most [`MAX_BYTES`], if it is there.
fn read(path: &Path) -> Result<Option<String>, String> {
    let failed = |what: &dyn fmt::Display| format!("failed to read {}: {what}", path.display());
    let found = match fs::metadata(path) {
        Ok(found) => found,
        // A model that is one file has no folder.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(&error)),
    };
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(failed(&format!("expected a file of at most {MAX_BYTES} bytes")));
    }
    read_plain_text(path).map(Some).map_err(|error| failed(&error))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
