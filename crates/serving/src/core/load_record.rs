//! Sources of a model, and the record of its last load.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use galatea_tensor::OrderedMap;

use super::loaded::LoadedVersion;
use super::overrides::GivenFolder;
use crate::config::ModelConfig;
use crate::repository::{FolderStamp, ModelId};
use crate::statistics::StatisticsRecorder;

/// Sources of a model's files and of its configuration.
#[derive(Clone, Debug)]
pub(super) struct ModelSource {
    pub(super) dir: PathBuf,
    /// A configuration that a client gave, and when.
    pub(super) given_config: Option<(String, SystemTime)>,
    /// Keeps the folder of files that a client gave.
    pub(super) given_files: Option<Arc<GivenFolder>>,
}

/// Inputs that the versions of a model were made from.
#[derive(Debug)]
pub(super) struct LoadRecord {
    pub(super) source: ModelSource,
    pub(super) config: ModelConfig,
    pub(super) stamps: FolderStamp,
}

/// A model folder whose configuration was read and makes sense.
pub(super) struct PolledModel {
    pub(super) id: ModelId,
    pub(super) dir: PathBuf,
    pub(super) config: ModelConfig,
    pub(super) versions: Vec<i64>,
    /// The folder before it was read.
    pub(super) stamps: FolderStamp,
    /// Counters of versions that are only given other instances, so that they count on.
    pub(super) counters: OrderedMap<i64, Arc<StatisticsRecorder>>,
    /// These versions, which the new ones may take instances from.
    pub(super) before: OrderedMap<i64, Arc<LoadedVersion>>,
}

impl PolledModel {
    /// Returns whether the files that a version is made of are those that the folder had before it was read.
    pub(super) fn is_unchanged(&self, version: i64) -> bool {
        let same = |now: &FolderStamp| {
            (now.outside, now.config) == (self.stamps.outside, self.stamps.config)
                && now.versions.get(&version) == self.stamps.versions.get(&version)
        };
        FolderStamp::of(&self.dir).is_ok_and(|now| same(&now))
    }
}
