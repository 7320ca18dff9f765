//! Decoders of checkpoints as packages of Core ML: chunks of layers with functions of fixed lengths.

mod engine;

use std::ops::Range;
use std::path::{Path, PathBuf};

use galatea_coreml::{ConvertOptions, NewFunction, NewState, WeightCompression, convert_functions};
use galatea_formats::coreml::{self, NewPackage};
use galatea_graph::Graph;
use galatea_graph::rewrite::RewriteLevel;
use galatea_llm::arch::{self, FixedGraph, FixedOptions, ModelArchitecture};
use galatea_llm::chunked::{self, ChunkManifest};
use galatea_llm::config::JsonConfig;
use galatea_llm::gguf::GgufCheckpoint;
use galatea_llm::weights::{CheckpointWeights, FolderWeights};

pub use engine::ChunkRunner;

/// Positions of a state where nothing is said: what the Neural Engine is known to cope with.
const CONTEXT: usize = 1024;
/// Number of which lengths of states are multiples: the Neural Engine fails on others.
const STATE_MULTIPLE: usize = 32;
/// Rows of the functions that compute prompts where nothing is said.
const PREFILL: [usize; 3] = [64, 128, 512];
/// Bytes of the weights of a chunk where nothing is said.
const CHUNK_BYTES: u64 = 1_000_000_000;
/// The function of a package that has one.
const MAIN: &str = "main";

/// Files beside the weights of a folder that a runner needs.
const BESIDE: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
];

/// Options for cutting a decoder into chunks.
#[derive(Clone, Debug)]
pub struct ChunkOptions {
    /// Positions of a state; 1024 or as many as the model has.
    pub context: Option<usize>,
    /// Rows of the functions that compute prompts; those of 64, 128 and 512 that the context has room for.
    pub prefill: Option<Vec<usize>>,
    /// The most bytes of the weights of a package; a layer is never cut.
    pub chunk_bytes: u64,
    /// A folder whose tokenizer is taken, where that is not the checkpoint's.
    pub tokenizer: Option<PathBuf>,
    /// Options for writing programs.
    pub convert: ConvertOptions,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        // Rows are handed from chunk to chunk as they are computed, in the forms of the Neural Engine.
        let usual = ConvertOptions::default();
        let convert = ConvertOptions { half_border: true, level: RewriteLevel::O3, ..usual };
        Self { context: None, prefill: None, chunk_bytes: CHUNK_BYTES, tokenizer: None, convert }
    }
}

/// A checkpoint that is being cut.
struct CheckpointCutter<'c> {
    architecture: &'static ModelArchitecture,
    config: JsonConfig,
    weights: Box<dyn CheckpointWeights>,
    options: &'c ChunkOptions,
    context: usize,
    rows: Vec<usize>,
}

/// Writes a decoder's checkpoint, a folder or a GGUF file, as a folder of chunks; gives the manifest.
///
/// # Errors
/// Fails for a checkpoint that cannot be read, lengths that it has no positions for, nodes that a program
/// cannot express, and files that cannot be written.
pub fn write_chunks(
    source: &Path,
    target: &Path,
    options: &ChunkOptions,
) -> Result<ChunkManifest, String> {
    let cutter = CheckpointCutter::open(source, options)?;
    prepare(target)?;
    let manifest = cutter.write(target)?;
    let folder = match &options.tokenizer {
        Some(folder) => Some(folder.as_path()),
        None => source.is_dir().then_some(source),
    };
    let settings = source.is_dir().then_some(source);
    for (at, name) in BESIDE.iter().enumerate() {
        // The first two are the model's, the others the tokenizer's.
        let from = if at < 2 { settings } else { folder };
        let Some(from) = from.map(|from| from.join(name)).filter(|from| from.is_file()) else {
            continue;
        };
        let to = target.join(name);
        let failed = |error| format!("'{}' to '{}': {error}", from.display(), to.display());
        std::fs::copy(&from, &to).map_err(failed)?;
    }
    chunked::write_manifest(target, &manifest).map_err(text_of)?;
    Ok(manifest)
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Makes the folder, which holds chunks or nothing so far.
fn prepare(target: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("'{}': {error}", target.display());
    if target.exists() && !ChunkManifest::is_in(target) {
        let mut entries = std::fs::read_dir(target).map_err(failed)?;
        if entries.next().is_some() {
            let text = "it is not empty and holds no chunks, so it is not written over";
            return Err(format!("'{}': {text}", target.display()));
        }
    }
    std::fs::create_dir_all(target).map_err(failed)?;
    // Until all is written there are no chunks.
    match std::fs::remove_file(target.join(chunked::MANIFEST)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

impl<'c> CheckpointCutter<'c> {
    fn open(source: &Path, options: &'c ChunkOptions) -> Result<Self, String> {
        let (config, weights): (JsonConfig, Box<dyn CheckpointWeights>) = if source.is_dir() {
            let config = JsonConfig::read(&source.join("config.json")).map_err(text_of)?;
            let weights = FolderWeights::open(source, &config).map_err(text_of)?;
            (config, Box::new(weights))
        } else {
            let file = GgufCheckpoint::open(source).map_err(text_of)?;
            (file.config().clone(), Box::new(file))
        };
        let architecture = arch::architecture(&config).map_err(text_of)?;
        let shape = architecture.shape(&config).map_err(text_of)?;
        let context = options.context.unwrap_or(CONTEXT.min(shape.positions));
        let fitting = || PREFILL.into_iter().filter(|&rows| rows <= context).collect();
        let mut rows = options.prefill.clone().unwrap_or_else(fitting);
        rows.push(1);
        rows.sort_unstable();
        rows.dedup();
        Ok(Self { architecture, config, weights, options, context, rows })
    }

    fn lengths(&self, rows: usize, exported: bool) -> FixedOptions {
        FixedOptions { rows, context: self.context, multiple: STATE_MULTIPLE, exported }
    }

    fn graph(&self, rows: usize) -> Result<FixedGraph, String> {
        let exported = self.options.convert.level == RewriteLevel::O3;
        let options = self.lengths(rows, exported);
        let graph = self.architecture.fixed_graph(&self.config, &*self.weights, &options);
        graph.map_err(text_of)
    }

    fn write(&self, target: &Path) -> Result<ChunkManifest, String> {
        let graphs = self.rows.iter().map(|&rows| self.graph(rows));
        let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
        let one = graphs.first().ok_or("there are no functions")?;
        let name = self.config.text("model_type").map_err(text_of)?.unwrap_or_default();
        let mut manifest = ChunkManifest::new(name, one.shape(), self.context);
        manifest.rows.clone_from(&self.rows);
        let lengths = self.lengths(1, false);
        let beyond = |own: usize, padded: usize| if own == padded { 0 } else { padded };
        manifest.state_positions = beyond(self.context, lengths.cache_positions());
        let head_size = one.shape().head_size;
        manifest.state_elements = beyond(head_size, lengths.padded(head_size));
        manifest.windows = one.windows();
        for (chunk, layers) in self.cuts(one).into_iter().enumerate() {
            let parts = graphs.iter().map(|graph| graph.layers(layers.clone()).map_err(text_of));
            let parts = parts.collect::<Result<Vec<Graph>, _>>()?;
            let states = states(&layers);
            let names: Vec<String> =
                self.rows.iter().map(|&rows| chunked::function_name(rows)).collect();
            let functions = parts.iter().zip(&names).map(|(graph, name)| NewFunction {
                name,
                graph,
                states: &states,
            });
            let file = format!("layers_{chunk}.mlpackage");
            self.package(target, &file, convert_functions(functions, &self.options.convert))?;
            manifest.chunks.push(file);
        }
        let head = one.head().map_err(text_of)?;
        let function = NewFunction { name: MAIN, graph: &head, states: &[] };
        let file = "head.mlpackage".to_owned();
        self.package(target, &file, convert_functions([function], &self.options.convert))?;
        manifest.head = file;
        manifest.tables = chunked::write_tables(target, one.tables()).map_err(text_of)?;
        Ok(manifest)
    }

    fn package(
        &self,
        target: &Path,
        file: &str,
        made: Result<NewPackage, galatea_coreml::ConvertError>,
    ) -> Result<(), String> {
        let mut package = made.map_err(|error| format!("{file}: {error}"))?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        package.info.metadata.insert("ai.galatea.version".to_owned(), version);
        coreml::write_package(&target.join(file), &package).map_err(text_of)?;
        self.weights.release();
        Ok(())
    }

    /// The layers of each chunk: as many as the bytes have room for, and at least one.
    fn cuts(&self, graph: &FixedGraph) -> Vec<Range<usize>> {
        let (layers, _) = graph.weights();
        let bits = u128::from(bits(&self.options.convert));
        let most = u128::from(self.options.chunk_bytes);
        let mut cuts = Vec::new();
        let mut from = 0;
        let mut bytes = 0_u128;
        for (layer, numbers) in layers.iter().enumerate() {
            let own = u128::try_from(*numbers).unwrap_or(u128::MAX).saturating_mul(bits) / 8;
            if layer > from && bytes.saturating_add(own) > most {
                cuts.push(from..layer);
                (from, bytes) = (layer, 0);
            }
            bytes = bytes.saturating_add(own);
        }
        cuts.push(from..layers.len());
        cuts
    }
}

/// Bits of a weight.
fn bits(options: &ConvertOptions) -> u32 {
    match options.compression {
        WeightCompression::Int8 => 8,
        WeightCompression::Int4 { .. } => 4,
        WeightCompression::Palette { bits, .. } => bits,
        _ if options.half => 16,
        _ => 32,
    }
}

/// Keys and values of some layers: two states of all of them.
fn states(layers: &Range<usize>) -> Vec<NewState> {
    let state = |kind: &str| NewState {
        name: kind.to_owned(),
        parts: layers
            .clone()
            .map(|layer| [format!("{kind}.{layer}"), format!("{kind}.{layer}.after")])
            .collect(),
    };
    vec![state("key"), state("value")]
}
