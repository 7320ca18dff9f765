//! `galatea convert`: a model in another format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use galatea_coreml::{ConvertOptions, WeightCompression, convert as to_program};
use galatea_formats::{coreml, onnx};
use galatea_graph::Graph;
use galatea_runtime::OptimiseLevel;
use galatea_serving::graph_model::ModelFormat;
use serde_json::json;

use super::arguments::{NamedLength, named_length, number, parsed, path as path_of, worded_choice};
use super::precision::{self, PrecisionChoices, PrecisionNotes};
use super::{model, say};
use galatea::chunks::{ChunkOptions, write_chunks};

/// Command line of `galatea convert`.
#[derive(Debug, Args)]
pub(super) struct ConvertArguments {
    #[arg(value_name = "MODEL", value_parser = path_of)]
    model: PathBuf,
    #[arg(value_name = "OUTPUT", value_parser = path_of)]
    output: PathBuf,
    #[command(flatten)]
    program: ProgramChoices,
    #[command(flatten)]
    measured: PrecisionChoices,
    #[command(flatten)]
    chunks: ChunkChoices,
    #[arg(long, value_name = "NAME", help = "function of a model that has several")]
    function: Option<String>,
    #[arg(
        long,
        value_name = "O0…O3",
        value_parser = parsed::<OptimiseLevel>,
        help = "how far the graph is rewritten [O2; O3 for chunks]"
    )]
    level: Option<OptimiseLevel>,
    #[arg(long, help = "print one line of JSON")]
    json: bool,
}

/// Options for programs that are written.
#[derive(Debug, Args)]
struct ProgramChoices {
    #[arg(
        long,
        value_name = "fp16|fp32",
        value_parser = worded_choice(FLOATS, wrong_float),
        default_value = "fp16",
        help = "what floats are computed in [fp16]"
    )]
    precision: ComputedFloat,
    #[arg(
        long,
        value_name = "6…9",
        value_parser = specification,
        help = "version of Core ML's format: 6 is macOS 12, 9 is macOS 15 [9]"
    )]
    specification: Option<i32>,
    #[arg(
        long = "length",
        value_name = "NAME=N",
        value_parser = named_length,
        help = "number that a named length of the inputs is; repeatable"
    )]
    lengths: Vec<NamedLength>,
    #[arg(
        long = "shape",
        value_name = "INPUT=N,N,…",
        value_parser = InputShape::parse,
        help = "shape of an input; repeatable"
    )]
    shapes: Vec<InputShape>,
    #[arg(
        long = "bucket",
        value_name = "NAME=N,NAME=N…",
        value_parser = LengthSet::parse,
        help = "lengths that the inputs may have together; repeatable"
    )]
    buckets: Vec<LengthSet>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "the most that a length is which each run brings [2048]"
    )]
    longest: Option<usize>,
    #[arg(
        long,
        value_name = "FORM",
        value_parser = compression,
        help = "how they are stored: int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP, sparse:SHARE [as computed]"
    )]
    weights: Option<WeightCompression>,
}

/// Options for language models in chunks.
#[derive(Debug, Args)]
struct ChunkChoices {
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "of a language model: the most tokens of a text [1024]"
    )]
    context: Option<usize>,
    #[arg(
        long,
        value_name = "N,N,…",
        value_parser = RowCounts::parse,
        help = "of a language model: rows of the functions that compute prompts [64,128,512]"
    )]
    prefill: Option<RowCounts>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<u64>,
        help = "of a language model: the most bytes of the weights of a package [1000000000]"
    )]
    chunk_bytes: Option<u64>,
    #[arg(
        long,
        value_name = "FOLDER",
        value_parser = path_of,
        help = "of a language model: where its tokenizer is [the checkpoint's folder]"
    )]
    tokenizer: Option<PathBuf>,
}

/// Type of the floats that a program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComputedFloat {
    Fp16,
    Fp32,
}

/// Words of `--precision`.
const FLOATS: &[(&str, ComputedFloat)] =
    &[("fp16", ComputedFloat::Fp16), ("fp32", ComputedFloat::Fp32)];

fn wrong_float(given: &str) -> String {
    format!(": '{given}' found, expected fp16 or fp32")
}

fn specification(text: &str) -> Result<i32, String> {
    let version = number(text)?;
    match (6..=9).contains(&version) {
        true => Ok(version),
        false => Err(format!(": {version} found, expected 6 to 9")),
    }
}

/// A shape of an input, `INPUT=N,N,…`.
#[derive(Debug, Clone)]
struct InputShape {
    input: String,
    shape: Vec<usize>,
}

impl InputShape {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!(": '{text}' found, expected INPUT=N,N,…");
        let (input, lengths) = text.split_once('=').ok_or_else(wrong)?;
        let lengths = lengths.split(',').filter(|len| !len.trim().is_empty());
        let lengths = lengths.map(|len| len.trim().parse().map_err(|_| wrong()));
        Ok(Self { input: input.to_owned(), shape: lengths.collect::<Result<_, _>>()? })
    }
}

/// Lengths that inputs have together.
#[derive(Debug, Clone)]
struct LengthSet(BTreeMap<String, usize>);

impl LengthSet {
    fn parse(text: &str) -> Result<Self, String> {
        let lengths =
            text.split(',').map(|one| named_length(one).map(|one| (one.name, one.length)));
        lengths.collect::<Result<_, _>>().map(Self)
    }
}

/// Rows of functions that compute prompts.
#[derive(Debug, Clone)]
struct RowCounts(Vec<usize>);

impl RowCounts {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |one: &str| format!(": '{one}' found, expected numbers of rows");
        let rows = text.split(',').filter(|one| !one.trim().is_empty());
        let rows = rows.map(|one| one.trim().parse().map_err(|_| wrong(one)));
        rows.collect::<Result<_, _>>().map(Self)
    }
}

/// Converts a model.
pub(super) fn convert(arguments: &ConvertArguments) -> Result<ExitCode, String> {
    let ConvertArguments { model: source, output: target, json, .. } = arguments;
    let started = Instant::now();
    if let Some(path) = model::checkpoint(source)? {
        return checkpoint(&path, target, arguments, started);
    }
    let path = model::find(source)?;
    let loaded = model::load(&path, arguments.function.as_deref())?;
    let nodes = loaded.graph.nodes.len();
    let mut notes = PrecisionNotes::default();
    match ModelFormat::of(target) {
        Some(ModelFormat::CoreMl) if target.extension().is_some_and(|end| end == "mlpackage") => {
            let (written, lost) = write_package(&loaded.graph, &path, target, arguments)?;
            notes = written;
            if let Some(lost) = lost {
                return refused(*json, notes, &lost);
            }
        }
        Some(ModelFormat::Onnx) => {
            arguments.measured.refuse()?;
            let mut info = loaded.info;
            info.producer_name = "galatea".to_owned();
            info.producer_version = env!("CARGO_PKG_VERSION").to_owned();
            onnx::write_model(&loaded.graph, &info, target, onnx::WriteOptions::default())
                .map_err(|error| error.to_string())?;
        }
        _ => {
            let text = "the output ends in .mlpackage or .onnx";
            return Err(format!("{text}, found '{}'", target.display()));
        }
    }
    report(*json, target, nodes, started, notes);
    Ok(ExitCode::SUCCESS)
}

/// Writes a language model as a folder of chunks.
fn checkpoint(
    path: &Path,
    target: &Path,
    arguments: &ConvertArguments,
    started: Instant,
) -> Result<ExitCode, String> {
    if ModelFormat::of(target).is_some() {
        let text =
            "a language model becomes a folder of packages, expected a name without an extension";
        return Err(format!("{text}, found '{}'", target.display()));
    }
    arguments.measured.refuse()?;
    let ChunkChoices { context, prefill, chunk_bytes, tokenizer } = &arguments.chunks;
    let mut chunks = ChunkOptions::default();
    chunks.convert = arguments.options(chunks.convert);
    chunks.context = *context;
    chunks.chunk_bytes = chunk_bytes.unwrap_or(chunks.chunk_bytes);
    chunks.tokenizer.clone_from(tokenizer);
    chunks.prefill = prefill.as_ref().map(|rows| rows.0.clone());
    let manifest = write_chunks(path, target, &chunks)?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes = bytes_of(target);
    let packages = manifest.chunks.len() + 1;
    let context = manifest.context;
    let file = target.display().to_string();
    if arguments.json {
        let found = json!({
            "file": file, "packages": packages, "context": context, "rows": manifest.rows,
            "bytes": bytes, "seconds": seconds,
        });
        say(&found.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let megabytes = bytes as f64 / 1e6;
    let rows: Vec<String> = manifest.rows.iter().map(ToString::to_string).collect();
    let rows = rows.join(", ");
    say(&format!(
        "{file}: {packages} packages with functions of {rows} rows, {context} positions, {megabytes:.1} MB, in \
         {seconds:.2} s"
    ));
    Ok(ExitCode::SUCCESS)
}

fn report(json: bool, target: &Path, nodes: usize, started: Instant, notes: PrecisionNotes) {
    let seconds = started.elapsed().as_secs_f64();
    let bytes = bytes_of(target);
    if json {
        let file = target.display().to_string();
        let mut found = json!({"file": file, "nodes": nodes, "bytes": bytes, "seconds": seconds});
        if let Some(found) = found.as_object_mut() {
            found.extend(notes.json);
        }
        say(&found.to_string());
        return;
    }
    if !notes.text.is_empty() {
        say(notes.text.trim_end());
    }
    let megabytes = bytes as f64 / 1e6;
    say(&format!("{}: {nodes} nodes, {megabytes:.1} MB, in {seconds:.2} s", target.display()));
}

/// Bytes of a file, or of all files of a folder.
fn bytes_of(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Err(_) => path.metadata().map_or(0, |found| found.len()),
        Ok(entries) => entries.flatten().map(|entry| bytes_of(&entry.path())).sum(),
    }
}

/// Prints findings of a check, for which nothing is written.
fn refused(json: bool, notes: PrecisionNotes, lost: &str) -> Result<ExitCode, String> {
    if json {
        let mut found = json!({"file": null, "failed": lost});
        if let Some(found) = found.as_object_mut() {
            found.extend(notes.json);
        }
        say(&found.to_string());
    } else if !notes.text.is_empty() {
        say(notes.text.trim_end());
    }
    Err(format!("--check: {lost}; nothing is written"))
}

/// A package under another name beside its place, which goes when the value does.
struct UncheckedPackage(PathBuf);

impl UncheckedPackage {
    fn beside(target: &Path) -> Self {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Self(target.with_file_name(format!(".{}.{name}", std::process::id())))
    }
}

impl Drop for UncheckedPackage {
    fn drop(&mut self) {
        // What is left over is in nobody's way.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Writes a graph as a package, unless a check finds that it has lost numbers, and gives what was lost.
fn write_package(
    graph: &Graph,
    source: &Path,
    target: &Path,
    arguments: &ConvertArguments,
) -> Result<(PrecisionNotes, Option<String>), String> {
    let mut options = arguments.options(ConvertOptions::default());
    let choices = &arguments.measured;
    let mut notes = PrecisionNotes::default();
    precision::measure(graph, &mut options, choices, &mut notes)?;
    let mut package =
        to_program(graph, &options).map_err(|error| format!("{}: {error}", source.display()))?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    package.info.metadata.insert("ai.galatea.version".to_owned(), version);
    let write =
        |path: &Path| coreml::write_package(path, &package).map_err(|error| error.to_string());
    let mut lost = None;
    if choices.checks() {
        let unchecked = UncheckedPackage::beside(target);
        write(&unchecked.0)?;
        lost = precision::check(graph, &unchecked.0, &options, choices, &mut notes)?;
    }
    if lost.is_none() {
        write(target)?;
    }
    Ok((notes, lost))
}

impl ConvertArguments {
    /// Returns the options for writing programs; options that are not given stay as in `usual`.
    fn options(&self, usual: ConvertOptions) -> ConvertOptions {
        let given = &self.program;
        let mut options = ConvertOptions {
            half: given.precision == ComputedFloat::Fp16,
            specification: given.specification.unwrap_or(usual.specification),
            compression: given.weights.unwrap_or(usual.compression),
            longest: given.longest.unwrap_or(usual.longest),
            level: self.level.unwrap_or(usual.level),
            ..usual
        };
        let lengths = given.lengths.iter().map(|one| (one.name.clone(), one.length));
        options.lengths.extend(lengths);
        options.buckets.extend(given.buckets.iter().map(|set| set.0.clone()));
        let shapes = given.shapes.iter().map(|one| (one.input.clone(), one.shape.clone()));
        options.shapes.extend(shapes);
        options
    }
}

/// The form of weights that a word names.
fn compression(text: &str) -> Result<WeightCompression, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let wrong = || {
        format!(
            ": '{text}' found, expected int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP or \
             sparse:SHARE"
        )
    };
    let found = match parts.as_slice() {
        ["int8"] => WeightCompression::Int8,
        ["int4"] => WeightCompression::Int4 { block: 32 },
        ["int4", block] => WeightCompression::Int4 { block: block.parse().map_err(|_| wrong())? },
        ["palette", bits] => {
            WeightCompression::Palette { bits: bits.parse().map_err(|_| wrong())?, group: 0 }
        }
        ["palette", bits, group] => WeightCompression::Palette {
            bits: bits.parse().map_err(|_| wrong())?,
            group: group.parse().map_err(|_| wrong())?,
        },
        ["sparse", share] => {
            WeightCompression::Sparse { share: share.parse().map_err(|_| wrong())? }
        }
        _ => return Err(wrong()),
    };
    let sound = match found {
        WeightCompression::Palette { bits, .. } => matches!(bits, 1 | 2 | 3 | 4 | 6 | 8),
        WeightCompression::Sparse { share } => (0.0..=1.0).contains(&share),
        _ => true,
    };
    if sound { Ok(found) } else { Err(wrong()) }
}
