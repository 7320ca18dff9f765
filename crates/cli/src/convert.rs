//! `galatea convert`: a model in another format.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use galatea_coreml::{ConvertOptions, convert as to_program};
use galatea_formats::{coreml, onnx};
use galatea_graph::Graph;
use galatea_runtime::OptimiseLevel;
use galatea_serving::graph_model::ModelFormat;
use serde_json::json;

use super::arguments::{parsed, path as path_of};
use super::convert_choices::{ChunkChoices, ProgramChoices};
use super::convert_fitting::{ConversionKind, GivenOptions, check_effects, is_package};
use super::model::FunctionChoice;
use super::precision::{self, PrecisionNotes};
use super::precision_choices::PrecisionChoices;
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
    #[command(flatten)]
    function: FunctionChoice,
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

impl ConvertArguments {
    fn given(&self) -> GivenOptions<'_> {
        GivenOptions {
            program: &self.program,
            measured: &self.measured,
            chunks: &self.chunks,
            function: self.function.name.is_some(),
            level: self.level.is_some(),
        }
    }
}

/// Converts a model.
pub(super) fn convert(arguments: &ConvertArguments) -> Result<ExitCode, String> {
    let ConvertArguments { model: source, output: target, json, .. } = arguments;
    let started = Instant::now();
    if let Some(path) = model::checkpoint(source)? {
        arguments.given().check(ConversionKind::Chunks)?;
        return checkpoint(&path, target, arguments, started);
    }
    let path = model::find(source)?;
    let loaded = model::load(&path, arguments.function.name.as_deref())?;
    let nodes = loaded.graph.nodes.len();
    let mut notes = PrecisionNotes::default();
    match ModelFormat::of(target) {
        Some(ModelFormat::CoreMl) if is_package(target) => {
            arguments.given().check(ConversionKind::Package)?;
            let (written, lost) = write_package(&loaded.graph, &path, target, arguments)?;
            notes = written;
            if let Some(lost) = lost {
                return refused(*json, notes, &lost);
            }
        }
        Some(ModelFormat::Onnx) => {
            arguments.given().check(ConversionKind::Onnx)?;
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
    let mut chunks = ChunkOptions::default();
    chunks.convert = arguments.program.options(arguments.level, chunks.convert);
    arguments.chunks.apply(&mut chunks);
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
    let mut options = arguments.program.options(arguments.level, ConvertOptions::default());
    let choices = &arguments.measured;
    let mut notes = PrecisionNotes::default();
    precision::measure(graph, &mut options, choices, &mut notes)?;
    let mut package =
        to_program(graph, &options).map_err(|error| format!("{}: {error}", source.display()))?;
    if let Some(line) = check_effects(&package, &arguments.program, &options)? {
        notes.line(&line);
    }
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
