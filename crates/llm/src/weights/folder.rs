//! Folders of safetensors, whose layers may be codes as MLX writes them.

use std::path::Path;
use std::sync::Arc;

use galatea_formats::blocks::BlockMatrix;
use galatea_formats::mlx::MlxQuantization;
use galatea_formats::safetensors::{self, SafeTensors};
use galatea_graph::blocks::BlockWeights;
use galatea_tensor::Tensor;

use super::{CheckpointWeights, StoredWeight};
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};

/// The weights of a folder.
#[derive(Debug)]
pub struct FolderWeights {
    tensors: SafeTensors,
    /// How layers are stored, where `config.json` says it.
    codes: Option<MlxQuantization>,
}

/// Names that other programs give to low-bit numbers in a form of their own.
const METHOD: &str = "quant_method";

impl FolderWeights {
    /// Maps the files of a folder, or one file.
    ///
    /// # Errors
    /// When files are damaged or do not fit each other, or the configuration asks for codes of a form that is
    /// not known.
    pub fn open(path: &Path, config: &JsonConfig) -> Result<Self> {
        let failed =
            |text: String| LlmError::new(LlmErrorKind::Weights, path.display().to_string(), text);
        let wrong = |text: String| LlmError::new(LlmErrorKind::Config, config.place(), text);
        let codes = MlxQuantization::from_config(&config.value());
        let codes = codes.map_err(|error| wrong(error.to_string()))?;
        if codes.is_none()
            && let Some(other) = config.object("quantization_config")?
        {
            let method = other.text(METHOD)?.unwrap_or("nothing");
            return Err(wrong(format!(
                "quantization_config: {METHOD} '{method}', expected weights as floats, as MLX \
                 quantizes them, or as GGUF"
            )));
        }
        let tensors = safetensors::open(path).map_err(|error| failed(error.to_string()))?;
        Ok(Self { tensors, codes })
    }

    /// Whether the configuration says that layers are codes.
    pub(crate) fn is_coded(&self) -> bool {
        self.codes.is_some()
    }

    /// How each tensor is stored.
    ///
    /// # Errors
    /// Codes that are damaged.
    pub(crate) fn stored(&self) -> Result<Vec<StoredWeight>> {
        let of = |name: String| match self.matrix(&name)? {
            Some(codes) => Ok(StoredWeight {
                kind: format!("MLX {} bits", codes.format().bits()),
                numbers: codes.shape().iter().product(),
                bytes: codes.size_bytes(),
            }),
            None => {
                let tensor = CheckpointWeights::tensor(&self.tensors, &name)?;
                Ok(StoredWeight {
                    kind: tensor.dtype().to_string(),
                    numbers: tensor.elements(),
                    bytes: tensor.size_bytes(),
                })
            }
        };
        self.names().into_iter().map(of).collect()
    }

    /// The codes of a weight, where it has codes.
    fn matrix(&self, name: &str) -> Result<Option<BlockMatrix>> {
        let (Some(codes), Some(layer)) = (&self.codes, name.strip_suffix(".weight")) else {
            return Ok(None);
        };
        codes.matrix(&self.tensors, layer).map_err(|error| failed(name, &error))
    }
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> LlmError {
    LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), error.to_string())
}

impl CheckpointWeights for FolderWeights {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        match self.matrix(name)? {
            Some(matrix) => matrix.dequantize().map_err(|error| failed(name, &error)),
            None => CheckpointWeights::tensor(&self.tensors, name),
        }
    }

    fn blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        match self.matrix(name)? {
            Some(matrix) if matrix.shape().len() == 2 => Ok(Some(Arc::new(matrix))),
            Some(_) => Ok(None),
            None => self.tensors.blocks(name),
        }
    }

    fn release(&self) {
        self.tensors.release();
    }

    fn names(&self) -> Vec<String> {
        let all = self.tensors.tensors();
        let is_part = |name: &str| {
            let layer = [".scales", ".biases"].iter().find_map(|part| name.strip_suffix(part));
            layer.is_some_and(|layer| all.contains_key(&format!("{layer}.weight")))
        };
        let coded = self.codes.is_some();
        all.keys().filter(|name| !(coded && is_part(name))).cloned().collect()
    }
}
