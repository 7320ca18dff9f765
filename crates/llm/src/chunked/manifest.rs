//! Description of a folder of chunks.

use std::path::Path;

use galatea_tensor::read_plain_file;
use serde::{Deserialize, Serialize};

use crate::arch::ModelShape;
use crate::error::{LlmError, LlmErrorKind, Result};

/// The file of the manifest.
pub const MANIFEST: &str = "chunks.json";
/// The file of the tables.
pub const TABLES: &str = "tables.safetensors";

/// The version of the manifest.
const VERSION: u32 = 1;
/// Most positions of a state, rows of a function and chunks: more than any model has.
const MOST: usize = 1 << 24;

/// Facts that a runner must know of a folder of chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkManifest {
    /// The version of this description.
    pub version: u32,
    /// Value of `model_type` of the checkpoint.
    pub architecture: String,
    /// Most positions of a sequence.
    pub context: usize,
    /// Positions of a state; 0 where there are no more than a sequence has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state_positions: usize,
    /// Layers of all chunks.
    pub layers: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Length of a key and of a value.
    pub head_size: usize,
    /// Elements of a state for each of these; 0 where there are no more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state_elements: usize,
    /// Tokens that exist.
    pub vocabulary: usize,
    /// Rows of the functions that each package of layers has: `decode` is the one of one row,
    /// `prefill_N` that of `N`.
    pub rows: Vec<usize>,
    /// How many positions rows see in some layers, 0 for all: `mask_N` and `mask`.
    pub windows: Vec<usize>,
    /// The packages of layers, in their order.
    pub chunks: Vec<String>,
    /// The package that makes logits of a row.
    pub head: String,
    /// Keys that are looked up in the tables.
    pub tables: Vec<TableEntry>,
}

/// An input whose rows lie in a table of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// The input, and the tensor in the file of tables.
    pub input: String,
    /// `token` or `position`.
    pub by: String,
    /// The shape of a row.
    pub row: Vec<usize>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ChunkManifest {
    /// A manifest of a model's sizes.
    #[must_use]
    pub fn new(architecture: &str, shape: &ModelShape, context: usize) -> Self {
        Self {
            version: VERSION,
            architecture: architecture.to_owned(),
            context,
            state_positions: 0,
            layers: shape.layers,
            kv_heads: shape.kv_heads,
            head_size: shape.head_size,
            state_elements: 0,
            vocabulary: shape.vocabulary,
            rows: Vec::new(),
            windows: Vec::new(),
            chunks: Vec::new(),
            head: String::new(),
            tables: Vec::new(),
        }
    }

    /// Whether a path is a folder of chunks.
    #[must_use]
    pub fn is_in(path: &Path) -> bool {
        path.is_dir() && path.join(MANIFEST).is_file()
    }

    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// A file that cannot be read, is malformed or says what cannot be.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let place = path.display().to_string();
        let bytes = read_plain_file(&path)
            .map_err(|error| LlmError::new(LlmErrorKind::Read, &place, error.to_string()))?;
        let found: Self = serde_json::from_slice(&bytes)
            .map_err(|error| LlmError::new(LlmErrorKind::Config, &place, error.to_string()))?;
        found.check().map_err(|text| LlmError::new(LlmErrorKind::Config, &place, text))?;
        Ok(found)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.version != VERSION {
            return Err(format!("version {} found, expected {VERSION}", self.version));
        }
        let sizes = [
            ("context", self.context),
            ("layers", self.layers),
            ("kv_heads", self.kv_heads),
            ("head_size", self.head_size),
            ("vocabulary", self.vocabulary),
            ("chunks", self.chunks.len()),
            ("rows", self.rows.len()),
        ];
        if let Some((name, size)) = sizes.iter().find(|(_, size)| *size == 0 || *size > MOST) {
            return Err(format!("{name}: {size} found, expected 1 to {MOST}"));
        }
        let context = self.context;
        if let Some(rows) = self.rows.iter().find(|&&rows| rows == 0 || rows > context) {
            return Err(format!("rows: {rows} found, expected 1 to the context, {context}"));
        }
        for (name, least, found) in [
            ("state_positions", context, self.state_positions),
            ("state_elements", self.head_size, self.state_elements),
        ] {
            if found != 0 && !(least..=MOST).contains(&found) {
                return Err(format!("{name}: {found} found, expected {least} to {MOST}"));
            }
        }
        if !self.rows.contains(&1) {
            return Err(format!("rows: {:?} found, expected 1 among them", self.rows));
        }
        // Files lie in the folder itself.
        let plain = |name: &&String| {
            let mut parts = Path::new(name.as_str()).components();
            let first = matches!(parts.next(), Some(std::path::Component::Normal(_)));
            !(first && parts.next().is_none())
        };
        if let Some(name) = self.chunks.iter().chain([&self.head]).find(plain) {
            return Err(format!("'{name}' found, expected the name of a package in the folder"));
        }
        Ok(())
    }

    /// Returns the positions of a state.
    #[must_use]
    pub fn cache_positions(&self) -> usize {
        self.context.max(self.state_positions)
    }

    /// The sizes that an engine needs: the positions of a sequence, and heads as long as states have them.
    #[must_use]
    pub fn shape(&self) -> ModelShape {
        ModelShape {
            layers: self.layers,
            kv_heads: self.kv_heads,
            head_size: self.head_size.max(self.state_elements),
            vocabulary: self.vocabulary,
            positions: self.context,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_come_back_and_what_cannot_be_is_named() {
        let shape =
            ModelShape { layers: 2, kv_heads: 1, head_size: 4, vocabulary: 9, positions: 64 };
        let mut manifest = ChunkManifest::new("llama", &shape, 32);
        manifest.rows = vec![1, 16];
        manifest.chunks = vec!["layers_0.mlpackage".to_owned()];
        manifest.head = "head.mlpackage".to_owned();
        let folder = tempfile::tempdir().unwrap();
        let write = |manifest: &ChunkManifest| {
            let text = serde_json::to_vec(manifest).unwrap();
            std::fs::write(folder.path().join(MANIFEST), text).unwrap();
            ChunkManifest::read(folder.path())
        };
        assert_eq!(write(&manifest).unwrap(), manifest);
        assert_eq!(manifest.shape().positions, 32);
        // Folders of older versions have no word of padding.
        let text = std::fs::read_to_string(folder.path().join(MANIFEST)).unwrap();
        assert!(!text.contains("state_"), "{text}");
        let mut padded = manifest.clone();
        (padded.context, padded.state_positions, padded.state_elements) = (30, 32, 32);
        assert_eq!(write(&padded).unwrap(), padded);
        assert_eq!((padded.shape().positions, padded.cache_positions()), (30, 32));
        assert_eq!((padded.shape().head_size, manifest.cache_positions()), (32, 32));
        let wrong = |change: fn(&mut ChunkManifest), expected: &str| {
            let mut damaged = manifest.clone();
            change(&mut damaged);
            let error = write(&damaged).unwrap_err().to_string();
            assert!(error.contains(MANIFEST) && error.contains(expected), "{error}");
        };
        wrong(|found| found.version = 2, "version 2 found, expected 1");
        wrong(|found| found.rows = vec![16], "expected 1 among them");
        wrong(|found| found.rows = vec![1, 64], "rows: 64 found");
        wrong(
            |found| found.head = "../head.mlpackage".to_owned(),
            "expected the name of a package",
        );
        wrong(|found| found.vocabulary = 0, "vocabulary: 0 found");
        wrong(|found| found.state_positions = 31, "state_positions: 31 found, expected 32");
        wrong(|found| found.state_elements = 3, "state_elements: 3 found, expected 4");
        std::fs::write(folder.path().join(MANIFEST), r#"{"version": 1}"#).unwrap();
        assert!(ChunkManifest::read(folder.path()).is_err());
    }
}
