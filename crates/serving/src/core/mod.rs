//! The facade: models by name and version, and what can be asked of them.

mod describe;
mod options;

pub use describe::{
    EXTENSIONS, LoadFailure, ModelIndexEntry, ModelMetadata, ModelState, ServerMetadata,
    TensorMetadata,
};
pub use options::{ControlMode, CoreOptions, ShutdownReport};
