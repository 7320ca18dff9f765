//! The backends `metal_mps` and `metal`: graphs of either format, with the GPU preferred.

use std::path::Path;
use std::sync::Arc;

use super::{GraphBackend, found};
use crate::backend::{BackendModel, ModelBackend, ModelFiles, PlacementKind};
use crate::error::ServingError;
use crate::graph_model::ModelFormat;

/// Names in `backend:` of configurations.
const NAMES: [&str; 2] = ["metal_mps", "metal"];

/// Loads graphs, each by the backend of its format, for the GPU where there is one.
#[derive(Debug)]
pub struct MetalBackend {
    name: &'static str,
    onnx: GraphBackend,
    core_ml: GraphBackend,
}

impl MetalBackend {
    /// Returns a backend for each name, of those that load the formats.
    #[must_use]
    pub fn of_formats(onnx: &GraphBackend, core_ml: &GraphBackend) -> [Self; 2] {
        NAMES.map(|name| Self {
            name,
            onnx: onnx.clone().preferring("gpu"),
            core_ml: core_ml.clone().preferring("gpu"),
        })
    }

    /// The format of a version's model: by the ending of the file that the configuration names, else by what is there.
    fn format(&self, files: &ModelFiles) -> ModelFormat {
        let named = Path::new(&files.config.default_model_filename);
        let usual = self.default_model_filename();
        let stated = named.as_os_str() != usual && !named.as_os_str().is_empty();
        let core_ml = match stated {
            true => found::is_of(ModelFormat::CoreMl, named),
            false => {
                let there = |format| !found::candidates(format, &files.version_dir).is_empty();
                !there(ModelFormat::Onnx) && there(ModelFormat::CoreMl)
            }
        };
        if core_ml { ModelFormat::CoreMl } else { ModelFormat::Onnx }
    }
}

impl ModelBackend for MetalBackend {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default_model_filename(&self) -> &str {
        self.onnx.default_model_filename()
    }

    fn default_instance_count(&self, kind: PlacementKind) -> i32 {
        self.onnx.default_instance_count(kind)
    }

    fn takes_metal_config(&self) -> bool {
        true
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        if self.format(files) == ModelFormat::Onnx {
            return self.onnx.load(files);
        }
        let mut files = files.clone();
        let mut config = (*files.config).clone();
        // The core writes the usual name of ONNX files where the configuration names none.
        if config.default_model_filename == self.default_model_filename() {
            self.core_ml.default_model_filename().clone_into(&mut config.default_model_filename);
        }
        files.config = Arc::new(config);
        self.core_ml.load(&files)
    }
}
