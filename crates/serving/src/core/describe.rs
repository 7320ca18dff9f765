//! Descriptions of the core and its models.

use galatea_tensor::DataType;

/// Extensions of the protocol that the server speaks, in the order in which Triton names them.
pub const EXTENSIONS: &[&str] = &[
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
];

/// The server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMetadata {
    /// Name given by the `id` option.
    pub name: String,
    /// Version of Galatea.
    pub version: String,
    /// See [`EXTENSIONS`].
    pub extensions: Vec<String>,
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMetadata {
    /// Name.
    pub name: String,
    /// Element type.
    pub datatype: DataType,
    /// Dimensions, with -1 where any size fits, and the batch dimension first where the model batches.
    pub shape: Vec<i64>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMetadata {
    /// Name.
    pub name: String,
    /// Versions that are ready, or the one asked for.
    pub versions: Vec<String>,
    /// Platform, or else the backend.
    pub platform: String,
    /// Inputs.
    pub inputs: Vec<TensorMetadata>,
    /// Outputs.
    pub outputs: Vec<TensorMetadata>,
}

/// State of a model version in the repository index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Not known.
    Unknown,
    /// Serving.
    Ready,
    /// Not serving.
    Unavailable,
    /// Being loaded.
    Loading,
    /// Being unloaded.
    Unloading,
}

impl VersionState {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Ready => "READY",
            Self::Unavailable => "UNAVAILABLE",
            Self::Loading => "LOADING",
            Self::Unloading => "UNLOADING",
        }
    }
}

/// A line of the repository index. A model that was never loaded has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIndexEntry {
    /// Model.
    pub name: String,
    /// The repository where it lies, if repositories are namespaces; else empty.
    pub namespace: String,
    /// Version.
    pub version: Option<String>,
    /// State.
    pub state: Option<VersionState>,
    /// Why it is not ready.
    pub reason: Option<String>,
}

/// How far a model came that could not be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedStage {
    /// Its folder or configuration cannot be used, so that nothing was tried; the server is ready without it.
    Reading,
    /// It was tried; a server with strict readiness is not ready.
    Loading,
}

/// A model that could not be loaded at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFailure {
    /// Model, with its namespace before it where repositories are namespaces.
    pub model: String,
    /// Version, if the failure is one version's.
    pub version: Option<String>,
    /// Error, where something went wrong.
    pub reason: String,
    /// How far it came.
    pub stage: FailedStage,
}
