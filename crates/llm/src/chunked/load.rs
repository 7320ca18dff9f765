//! Folders of chunks, written and read.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use galatea_formats::{coreml, safetensors};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, OrderedSet};

use super::engine::{ChunkEngine, FallbackMaker, ReplaceableFunctions};
use super::manifest::{ChunkManifest, MANIFEST, TABLES, TableEntry};
use super::sessions::{ChunkFunction, SessionChunks};
use super::{ChunkFunctions, ChunkModel, ChunkSizes};
use crate::arch::{LookUpKey, RowTable};
use crate::engine::StepModel;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::weights::CheckpointWeights;

/// The words for what says which row.
const KEYS: [(&str, LookUpKey); 2] =
    [("token", LookUpKey::Token), ("position", LookUpKey::Position)];

/// How a folder of chunks is loaded.
#[derive(Clone)]
pub struct ChunkLoadOptions {
    /// Providers that compute where no engine does, preferred ones first.
    pub providers: Vec<Arc<dyn ExecutionProvider>>,
    /// Settings of their sessions.
    pub session: SessionOptions,
    /// Runner of the packages; without one sessions do.
    pub engine: Option<Arc<dyn ChunkEngine>>,
    /// Number of sequences that states are kept for; as many as there is memory for where it is `None`.
    pub sequences: Option<usize>,
    /// The most sequences, where their number is not told.
    pub max_sequences: usize,
    /// The most memory of all states.
    pub cache_bytes: usize,
}

impl std::fmt::Debug for ChunkLoadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkLoadOptions")
            .field("sequences", &self.sequences)
            .field("max_sequences", &self.max_sequences)
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

/// The function of a package of layers that computes so many rows.
#[must_use]
pub fn function_name(rows: usize) -> String {
    if rows == 1 { "decode".to_owned() } else { format!("prefill_{rows}") }
}

fn unwritten(path: &Path, error: impl std::fmt::Display) -> LlmError {
    LlmError::new(
        LlmErrorKind::Read,
        path.display().to_string(),
        format!("cannot be written: {error}"),
    )
}

/// Writes the tables of a model into a folder of chunks, and says what lies there.
///
/// # Errors
/// When the file cannot be written.
pub fn write_tables(folder: &Path, tables: &[RowTable]) -> Result<Vec<TableEntry>> {
    let path = folder.join(TABLES);
    let file = File::create(&path).map_err(|error| unwritten(&path, error))?;
    let all = tables.iter().map(|table| (table.input.as_str(), &table.rows));
    safetensors::write(all, &OrderedMap::new(), BufWriter::new(file))
        .map_err(|error| unwritten(&path, error))?;
    let entry = |table: &RowTable| {
        let by = KEYS.iter().find(|(_, by)| *by == table.by).map_or("", |(word, _)| word);
        TableEntry { input: table.input.clone(), by: by.to_owned(), row: table.row.clone() }
    };
    Ok(tables.iter().map(entry).collect())
}

/// Writes the manifest of a folder of chunks: the last of its files, so that a folder which has it is whole.
///
/// # Errors
/// When the file cannot be written.
pub fn write_manifest(folder: &Path, manifest: &ChunkManifest) -> Result<()> {
    let path = folder.join(MANIFEST);
    let mut text =
        serde_json::to_string_pretty(manifest).map_err(|error| unwritten(&path, error))?;
    text.push('\n');
    std::fs::write(&path, text).map_err(|error| unwritten(&path, error))
}

impl ChunkModel {
    /// Loads a folder of chunks. The engine of the options runs its packages; without one, or where it
    /// refuses them, the interpreter runs their programs on the providers: what they are rewritten to keeps
    /// the rounding of each operation.
    ///
    /// # Errors
    /// Files that are missing, damaged or do not fit each other, and no room for the state of one sequence.
    pub fn load(folder: &Path, options: &ChunkLoadOptions) -> Result<Self> {
        let manifest = ChunkManifest::read(folder)?;
        let shape = manifest.shape();
        let tables = tables(folder, &manifest)?;
        let sequences = sequences(&manifest, options)?;
        let functions = functions(folder, &manifest, options)?;
        let sizes = ChunkSizes {
            shape,
            state_positions: manifest.cache_positions(),
            chunks: manifest.chunks.len(),
            rows: manifest.rows.clone(),
            windows: manifest.windows.clone(),
            sequences,
        };
        let mut weights = 0_u64;
        for file in manifest.chunks.iter().chain([&manifest.head]) {
            weights = weights.saturating_add(weight_bytes(&folder.join(file))?);
        }
        let model = Self::new(sizes, tables, functions)?;
        Ok(Self { weight_bytes: usize::try_from(weights).unwrap_or(usize::MAX), ..model })
    }

    /// Bytes of the weights of all packages.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// Bytes of the keys and values of a position.
    #[must_use]
    pub fn position_bytes(&self) -> usize {
        self.shape().position_bytes(DataType::Fp16)
    }
}

/// Runner of the functions of a folder.
fn functions(
    folder: &Path,
    manifest: &ChunkManifest,
    options: &ChunkLoadOptions,
) -> Result<Box<dyn ChunkFunctions>> {
    let Some(engine) = &options.engine else {
        return sessions(folder, manifest, options.providers.clone(), &options.session);
    };
    let folder = folder.to_owned();
    let manifest = manifest.clone();
    let providers = engine.behind();
    let session = options.session.clone();
    match engine.load(&folder, &manifest) {
        Ok(functions) => {
            let behind: FallbackMaker =
                Box::new(move || sessions(&folder, &manifest, providers, &session));
            Ok(Box::new(ReplaceableFunctions::new(functions, behind)))
        }
        Err(error) => {
            tracing::warn!(%error, "chunks are left to the processor");
            sessions(&folder, &manifest, providers, &session)
        }
    }
}

/// The functions of a folder as sessions.
fn sessions(
    folder: &Path,
    manifest: &ChunkManifest,
    providers: Vec<Arc<dyn ExecutionProvider>>,
    session: &SessionOptions,
) -> Result<Box<dyn ChunkFunctions>> {
    let mut functions = Vec::new();
    for (chunk, name) in manifest.chunks.iter().enumerate() {
        let names: OrderedSet<(String, usize)> =
            manifest.rows.iter().map(|&rows| (function_name(rows), rows)).collect();
        functions.extend(package(&folder.join(name), chunk, &names)?);
    }
    let head = OrderedSet::from([("main".to_owned(), 1)]);
    functions.extend(package(&folder.join(&manifest.head), manifest.chunks.len(), &head)?);
    let session = SessionOptions { optimise: OptimiseLevel::O1, ..session.clone() };
    Ok(Box::new(SessionChunks::new(functions, providers, session)))
}

/// Bytes of the weights of a package: of the files beside its program.
///
/// # Errors
/// When the package cannot be read.
pub fn weight_bytes(package: &Path) -> Result<u64> {
    let folder = package.join("Data/com.apple.CoreML/weights");
    let failed = |error: std::io::Error| {
        LlmError::new(LlmErrorKind::Read, folder.display().to_string(), error.to_string())
    };
    if !folder.is_dir() {
        return Ok(0);
    }
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        bytes =
            bytes.saturating_add(entry.and_then(|entry| entry.metadata()).map_err(failed)?.len());
    }
    Ok(bytes)
}

/// For how many sequences there is room.
fn sequences(manifest: &ChunkManifest, options: &ChunkLoadOptions) -> Result<usize> {
    let position = manifest.shape().position_bytes(DataType::Fp16);
    let each = position.saturating_mul(manifest.cache_positions()).max(1);
    match options.sequences.unwrap_or((options.cache_bytes / each).min(options.max_sequences)) {
        0 => {
            let found = options.cache_bytes;
            let text =
                format!("{found} found, expected at least {each} for the state of a sequence");
            Err(LlmError::new(LlmErrorKind::Parameter, "cache_bytes", text))
        }
        sequences => Ok(sequences),
    }
}

/// The functions of a package, by chunk and rows.
fn package(
    path: &Path,
    chunk: usize,
    names: &OrderedSet<(String, usize)>,
) -> Result<Vec<((usize, usize), ChunkFunction)>> {
    let wrong =
        |text: String| LlmError::new(LlmErrorKind::Weights, path.display().to_string(), text);
    let model = coreml::load(path).map_err(|error| wrong(error.to_string()))?;
    let mut found = Vec::with_capacity(names.len());
    for function in model.functions {
        let rows = names.iter().find(|(name, _)| *name == function.name).map(|(_, rows)| *rows);
        let Some(rows) = rows else { continue };
        let states = function.states.len();
        found.push(((chunk, rows), ChunkFunction { graph: function.graph, states }));
    }
    match found.len() == names.len() {
        true => Ok(found),
        false => {
            let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            Err(wrong(format!("{} of the functions {names} found", found.len())))
        }
    }
}

fn tables(folder: &Path, manifest: &ChunkManifest) -> Result<Vec<RowTable>> {
    let path = folder.join(TABLES);
    let wrong =
        |text: String| LlmError::new(LlmErrorKind::Weights, path.display().to_string(), text);
    let file = safetensors::open(&path).map_err(|error| wrong(error.to_string()))?;
    let mut tables = Vec::with_capacity(manifest.tables.len());
    for entry in &manifest.tables {
        let by = KEYS.iter().find(|(word, _)| *word == entry.by).map(|(_, by)| *by);
        let by =
            by.ok_or_else(|| wrong(format!("'{}' looked up by '{}'", entry.input, entry.by)))?;
        let rows = CheckpointWeights::tensor(&file, &entry.input)?;
        let width = entry.row.iter().try_fold(1_usize, |all, &len| all.checked_mul(len));
        let least = match by {
            LookUpKey::Token => manifest.vocabulary,
            LookUpKey::Position => manifest.context,
        };
        let fits = matches!(rows.shape(), &[count, own] if count >= least && Some(own) == width);
        if !fits {
            let shape = rows.shape();
            let row = &entry.row;
            let text = format!(
                "table '{}' of shape {shape:?}, expected at least {least} rows of {row:?}",
                entry.input
            );
            return Err(wrong(text));
        }
        tables.push(RowTable { input: entry.input.clone(), by, row: entry.row.clone(), rows });
    }
    Ok(tables)
}
