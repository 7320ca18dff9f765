//! A subject on a unit, as it is told to the process that tests it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Extent of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SelftestEffort {
    Quick,
    Full,
}

/// A subject on a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SubjectTask {
    pub(super) subject: String,
    pub(super) unit: String,
    /// Folder of this task alone, which goes away.
    pub(super) folder: PathBuf,
    pub(super) effort: SelftestEffort,
    /// Package or ONNX model to test; a row of the catalog otherwise.
    pub(super) file: Option<PathBuf>,
    /// Lengths of the models by name.
    pub(super) lengths: Vec<SubjectLength>,
}

/// Length that a model's symbol stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubjectLength {
    pub(super) name: String,
    pub(super) length: usize,
}
