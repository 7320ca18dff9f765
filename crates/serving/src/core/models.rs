//! Models and versions with their states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::describe::{ModelIndexEntry, ModelMetadata, ModelState, TensorMetadata};
use crate::config::datatype;
use crate::driver::DriverHandle;
use crate::error::Error;
use crate::payload::ExecutionContext;
use crate::statistics::{ModelMetricsRow, ModelStatistics};
use crate::validate::RequestChecker;

/// A version that serves.
#[derive(Debug)]
pub(super) struct LoadedVersion {
    pub(super) context: Arc<ExecutionContext>,
    pub(super) handle: DriverHandle,
    pub(super) checker: RequestChecker,
    pub(super) labels: BTreeMap<String, Arc<Vec<String>>>,
    pub(super) load_duration: Duration,
}

impl LoadedVersion {
    pub(super) fn statistics(&self) -> ModelStatistics {
        self.context.statistics.snapshot(&self.context.name, &self.context.version)
    }

    pub(super) fn metrics(&self) -> ModelMetricsRow {
        let statistics = self.statistics();
        let config = &self.context.config;
        ModelMetricsRow {
            model: statistics.name,
            version: statistics.version,
            tags: config
                .metric_tags
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            failures: self.context.statistics.failures(),
            inference_count: statistics.inference_count,
            execution_count: statistics.execution_count,
            stats: statistics.inference_stats,
            pending: self.context.pending.load(Ordering::Relaxed),
            load_duration: self.load_duration,
            // There is no cache yet, so no model uses one, whatever its configuration allows.
            response_cache: false,
        }
    }

    pub(super) fn metadata(&self, versions: Vec<String>) -> ModelMetadata {
        let config = &self.context.config;
        let batch = (config.max_batch_size > 0).then_some(-1);
        let tensor = |name: &str, data_type: i32, dims: &[i64]| {
            let shape = batch.into_iter().chain(dims.iter().copied()).collect();
            datatype(data_type).map(|datatype| TensorMetadata {
                name: name.to_owned(),
                datatype,
                shape,
            })
        };
        ModelMetadata {
            name: config.name.clone(),
            versions,
            platform: if config.platform.is_empty() {
                config.backend.clone()
            } else {
                config.platform.clone()
            },
            inputs: config
                .input
                .iter()
                .filter_map(|io| tensor(&io.name, io.data_type, &io.dims))
                .collect(),
            outputs: config
                .output
                .iter()
                .filter_map(|io| tensor(&io.name, io.data_type, &io.dims))
                .collect(),
        }
    }
}

/// A version and its state.
#[derive(Debug)]
pub(super) enum VersionEntry {
    Ready(Arc<LoadedVersion>),
    Unavailable(String),
}

/// The models of all repositories. One that was never loaded has no versions.
#[derive(Debug, Default)]
pub(super) struct Models {
    entries: BTreeMap<String, ModelEntry>,
}

#[derive(Debug, Default)]
struct ModelEntry {
    versions: BTreeMap<i64, VersionEntry>,
    /// Why the model as a whole cannot be used although it was to be loaded; shown in the index.
    reason: Option<String>,
    /// Whether the lifecycle knows the model: it was read, if not loaded.
    attempted: bool,
}

impl Models {
    /// Makes a model known by name.
    pub(super) fn know(&mut self, name: &str) {
        self.entries.entry(name.to_owned()).or_default();
    }

    /// Says that a model as a whole cannot be used.
    pub(super) fn set_unusable(&mut self, name: &str, reason: String) {
        self.entries.entry(name.to_owned()).or_default().reason = Some(reason);
    }

    /// Notes that a load was tried.
    pub(super) fn attempt(&mut self, name: &str) {
        self.entries.entry(name.to_owned()).or_default().attempted = true;
    }

    pub(super) fn set_version(&mut self, name: &str, version: i64, entry: VersionEntry) {
        let model = self.entries.entry(name.to_owned()).or_default();
        model.attempted = true;
        model.versions.insert(version, entry);
    }

    /// The version wanted, or the latest that is ready.
    pub(super) fn find(
        &self,
        name: &str,
        version: Option<i64>,
    ) -> Result<&Arc<LoadedVersion>, Error> {
        let entry = self.entries.get(name).filter(|entry| entry.attempted).ok_or_else(|| {
            Error::not_found(format!("Request for unknown model: '{name}' is not found"))
        })?;
        let Some(version) = version else {
            let ready = entry.versions.values().rev().find_map(VersionEntry::ready);
            let none = || format!("Request for unknown model: '{name}' has no available versions");
            return ready.ok_or_else(|| Error::not_found(none()));
        };
        let text =
            |what| format!("Request for unknown model: '{name}' version {version} is not {what}");
        match entry.versions.get(&version) {
            None => Err(Error::not_found(text("found"))),
            Some(VersionEntry::Ready(loaded)) => Ok(loaded),
            Some(VersionEntry::Unavailable(_)) => Err(Error::unavailable(text("at ready state"))),
        }
    }

    pub(super) fn ready_of(&self, name: &str) -> impl Iterator<Item = (i64, &Arc<LoadedVersion>)> {
        let versions = self.entries.get(name).map(|entry| &entry.versions);
        versions.into_iter().flatten().filter_map(|(&number, entry)| Some((number, entry.ready()?)))
    }

    pub(super) fn ready_versions(&self, name: &str) -> Vec<String> {
        self.ready_of(name).map(|(number, _)| number.to_string()).collect()
    }

    pub(super) fn all_ready(&self) -> impl Iterator<Item = &Arc<LoadedVersion>> {
        self.entries
            .values()
            .flat_map(|entry| entry.versions.values())
            .filter_map(VersionEntry::ready)
    }

    pub(super) fn unanswered(&self) -> usize {
        self.all_ready().map(|loaded| loaded.context.unanswered()).sum()
    }

    pub(super) fn index(&self, ready_only: bool) -> Vec<ModelIndexEntry> {
        let mut lines = Vec::new();
        for (name, entry) in &self.entries {
            let line = |version: Option<i64>, state, reason| ModelIndexEntry {
                name: name.clone(),
                version: version.map(|version| version.to_string()),
                state,
                reason,
            };
            if entry.versions.is_empty() && !ready_only {
                let state = entry.reason.as_ref().map(|_| ModelState::Unavailable);
                lines.push(line(None, state, entry.reason.clone()));
            }
            for (&number, version) in &entry.versions {
                match version {
                    VersionEntry::Ready(_) => {
                        lines.push(line(Some(number), Some(ModelState::Ready), None))
                    }
                    VersionEntry::Unavailable(_) if ready_only => {}
                    VersionEntry::Unavailable(reason) => {
                        let state = Some(ModelState::Unavailable);
                        lines.push(line(Some(number), state, Some(reason.clone())));
                    }
                }
            }
        }
        lines
    }
}

impl VersionEntry {
    fn ready(&self) -> Option<&Arc<LoadedVersion>> {
        match self {
            Self::Ready(loaded) => Some(loaded),
            Self::Unavailable(_) => None,
        }
    }
}

/// Reads a version as C's `stol` does, whose results Triton's clients know: leading digits count, what follows does
/// not. Empty is the latest version.
///
/// # Errors
/// When there are no digits, too many of them, or a negative number.
pub(super) fn parse_version(text: &str) -> Result<Option<i64>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let trimmed = text.trim_start();
    let signed = trimmed.starts_with(['-', '+']);
    let digits = trimmed.chars().skip(usize::from(signed)).take_while(char::is_ascii_digit).count();
    let number: String = trimmed.chars().take(digits + usize::from(signed)).collect();
    match number.parse::<i64>() {
        Ok(version) if version >= 0 => Ok(Some(version)),
        Ok(_) => Err(Error::invalid_arg(format!(
            "invalid model version specified '{text}' , version should be an integral value > 0"
        ))),
        Err(_) => Err(Error::invalid_arg(format!(
            "failed to get model version from specified version string '{text}' (details: stol), version should be an \
             integral value > 0"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_triton_reads_them() {
        assert_eq!(parse_version("").unwrap(), None);
        assert_eq!(parse_version("01").unwrap(), Some(1));
        assert_eq!(parse_version("1abc").unwrap(), Some(1));
        assert_eq!(parse_version("0").unwrap(), Some(0));
        let message = |text| parse_version(text).unwrap_err().message;
        assert_eq!(
            message("-1"),
            "invalid model version specified '-1' , version should be an integral value > 0"
        );
        for text in ["x", "-", "9223372036854775808"] {
            assert!(
                message(text)
                    .contains(&format!("version string '{text}' (details: stol), version should"))
            );
        }
    }
}
