//! `galatea convert`: a model in another format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use galatea_coreml::{ConvertOptions, WeightCompression, convert as to_program};
use galatea_formats::{coreml, onnx};
use galatea_graph::Graph;
use galatea_serving::graph_model::ModelFormat;
use serde_json::json;

use super::arguments::{CommandArguments, CommandOption};
use super::precision::{self, PrecisionNotes};
use super::{model, say};
use galatea::chunks::{ChunkOptions, write_chunks};

const CHOICES: &[CommandOption] = &[
    CommandOption {
        name: "precision",
        value: "fp16|fp32",
        sentence: "what floats are computed in [fp16]",
    },
    CommandOption {
        name: "specification",
        value: "6…9",
        sentence: "version of Core ML's format: 6 is macOS 12, 9 is macOS 15 [9]",
    },
    CommandOption {
        name: "length",
        value: "NAME=N",
        sentence: "number that a named length of the inputs is; repeatable",
    },
    CommandOption {
        name: "shape",
        value: "INPUT=N,N,…",
        sentence: "shape of an input; repeatable",
    },
    CommandOption {
        name: "bucket",
        value: "NAME=N,NAME=N…",
        sentence: "lengths that the inputs may have together; repeatable",
    },
    CommandOption {
        name: "longest",
        value: "N",
        sentence: "the most that a length is which each run brings [2048]",
    },
    CommandOption {
        name: "weights",
        value: "FORM",
        sentence: "how they are stored: int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP, sparse:SHARE [as computed]",
    },
    CommandOption {
        name: "activations",
        value: "int8",
        sentence: "values that layers read have 8 bits too, with scales from --calibration [floats]",
    },
    CommandOption {
        name: "calibration",
        value: "DATA|random",
        sentence: "samples: .npz files or folders of them, each one run, or several along an axis in front; repeatable",
    },
    CommandOption {
        name: "method",
        value: "NAME",
        sentence: "range of activations: minmax, entropy or percentile [minmax]",
    },
    CommandOption {
        name: "percentile",
        value: "P",
        sentence: "share of values in the range, in percent [99.99]",
    },
    CommandOption {
        name: "exclude",
        value: "NODE",
        sentence: "activations of this node, or of this operator, stay floats; repeatable",
    },
    CommandOption {
        name: "accuracy",
        value: "COSINE",
        sentence: "activations of the worst layers stay floats until results agree so far with FP32 [all have 8 bits]",
    },
    CommandOption {
        name: "islands",
        value: "auto|none|NODE,…",
        sentence: "nodes computed in FP32: those whose values FP16 does not hold, none, or these; repeatable [auto with --calibration, else none]",
    },
    CommandOption {
        name: "check",
        value: "DATA|random",
        sentence: "run the package on samples and compare it with the model in FP32; nothing is written where FP32 has numbers that it has not; repeatable",
    },
    CommandOption {
        name: "context",
        value: "N",
        sentence: "of a language model: the most tokens of a text [1024]",
    },
    CommandOption {
        name: "prefill",
        value: "N,N,…",
        sentence: "of a language model: rows of the functions that compute prompts [64,128,512]",
    },
    CommandOption {
        name: "chunk-bytes",
        value: "N",
        sentence: "of a language model: the most bytes of the weights of a package [1000000000]",
    },
    CommandOption {
        name: "tokenizer",
        value: "FOLDER",
        sentence: "of a language model: where its tokenizer is [the checkpoint's folder]",
    },
    CommandOption {
        name: "function",
        value: "NAME",
        sentence: "function of a model that has several",
    },
    CommandOption {
        name: "level",
        value: "O0…O3",
        sentence: "how far the graph is rewritten [O2; O3 for chunks]",
    },
    CommandOption { name: "json", value: "", sentence: "print one line of JSON" },
];

/// Returns the options of the command.
pub(super) fn choices() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Converts a model.
pub(super) fn convert(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let [source, target] = arguments.values() else {
        return Err(format!("expected MODEL and OUTPUT, found {} names", arguments.values().len()));
    };
    let target = PathBuf::from(target);
    let started = Instant::now();
    if let Some(path) = model::checkpoint(source)? {
        return checkpoint(&path, &target, arguments, started);
    }
    let path = model::find(source)?;
    let loaded = model::load(&path, arguments)?;
    let nodes = loaded.graph.nodes.len();
    let mut notes = PrecisionNotes::default();
    match ModelFormat::of(&target) {
        Some(ModelFormat::CoreMl) if target.extension().is_some_and(|end| end == "mlpackage") => {
            let (written, lost) = write_package(&loaded.graph, &path, &target, arguments)?;
            notes = written;
            if let Some(lost) = lost {
                return refused(arguments, notes, &lost);
            }
        }
        Some(ModelFormat::Onnx) => {
            precision::refuse(arguments)?;
            let mut info = loaded.info;
            info.producer_name = "galatea".to_owned();
            info.producer_version = env!("CARGO_PKG_VERSION").to_owned();
            onnx::write_model(&loaded.graph, &info, &target, onnx::WriteOptions::default())
                .map_err(|error| error.to_string())?;
        }
        _ => {
            let text = "the output ends in .mlpackage or .onnx";
            return Err(format!("{text}, found '{}'", target.display()));
        }
    }
    report(arguments, &target, nodes, started, notes);
    Ok(ExitCode::SUCCESS)
}

/// Writes a language model as a folder of chunks.
fn checkpoint(
    path: &Path,
    target: &Path,
    arguments: &CommandArguments,
    started: Instant,
) -> Result<ExitCode, String> {
    if ModelFormat::of(target).is_some() {
        let text =
            "a language model becomes a folder of packages, expected a name without an extension";
        return Err(format!("{text}, found '{}'", target.display()));
    }
    precision::refuse(arguments)?;
    let mut chunks = ChunkOptions::default();
    chunks.convert = options(arguments, chunks.convert)?;
    let number = |name: &str| {
        let wrong = |text: &str| format!("--{name}: '{text}' found, expected a number");
        arguments.last(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    };
    chunks.context = number("context")?;
    chunks.chunk_bytes = arguments.number("chunk-bytes", chunks.chunk_bytes)?;
    chunks.tokenizer = arguments.last("tokenizer").map(PathBuf::from);
    if let Some(text) = arguments.last("prefill") {
        let wrong = |one: &str| format!("--prefill: '{one}' found, expected numbers of rows");
        let rows = text.split(',').filter(|one| !one.trim().is_empty());
        let rows = rows.map(|one| one.trim().parse().map_err(|_| wrong(one)));
        chunks.prefill = Some(rows.collect::<Result<_, _>>()?);
    }
    let manifest = write_chunks(path, target, &chunks)?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes = bytes_of(target);
    let packages = manifest.chunks.len() + 1;
    let context = manifest.context;
    let file = target.display().to_string();
    if arguments.has("json") {
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

fn report(
    arguments: &CommandArguments,
    target: &Path,
    nodes: usize,
    started: Instant,
    notes: PrecisionNotes,
) {
    let seconds = started.elapsed().as_secs_f64();
    let bytes = bytes_of(target);
    if arguments.has("json") {
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
fn refused(
    arguments: &CommandArguments,
    notes: PrecisionNotes,
    lost: &str,
) -> Result<ExitCode, String> {
    if arguments.has("json") {
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
    arguments: &CommandArguments,
) -> Result<(PrecisionNotes, Option<String>), String> {
    let mut options = options(arguments, ConvertOptions::default())?;
    let mut notes = PrecisionNotes::default();
    precision::measure(graph, &mut options, arguments, &mut notes)?;
    let mut package =
        to_program(graph, &options).map_err(|error| format!("{}: {error}", source.display()))?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    package.info.metadata.insert("ai.galatea.version".to_owned(), version);
    let write =
        |path: &Path| coreml::write_package(path, &package).map_err(|error| error.to_string());
    let mut lost = None;
    if arguments.has("check") {
        let unchecked = UncheckedPackage::beside(target);
        write(&unchecked.0)?;
        lost = precision::check(graph, &unchecked.0, &options, arguments, &mut notes)?;
    }
    if lost.is_none() {
        write(target)?;
    }
    Ok((notes, lost))
}

/// Reads the options for writing programs; options that are not given stay as in `usual`.
fn options(arguments: &CommandArguments, usual: ConvertOptions) -> Result<ConvertOptions, String> {
    let half = match arguments.last("precision") {
        None | Some("fp16") => true,
        Some("fp32") => false,
        Some(other) => return Err(format!("--precision: '{other}' found, expected fp16 or fp32")),
    };
    let mut options = ConvertOptions { half, ..usual };
    options.specification = arguments.number("specification", options.specification)?;
    if !(6..=9).contains(&options.specification) {
        let text = "expected 6 to 9";
        return Err(format!("--specification: {} found, {text}", options.specification));
    }
    if let Some(text) = arguments.last("weights") {
        options.compression = compression(text)?;
    }
    options.longest = arguments.number("longest", options.longest)?;
    if arguments.last("level").is_some() {
        options.level = model::level(arguments)?;
    }
    for text in arguments.all("length") {
        let (name, number) = length("length", text)?;
        options.lengths.insert(name, number);
    }
    for text in arguments.all("bucket") {
        let lengths = text.split(',').map(|one| length("bucket", one));
        options.buckets.push(lengths.collect::<Result<BTreeMap<_, _>, _>>()?);
    }
    for text in arguments.all("shape") {
        let wrong = || format!("--shape: '{text}' found, expected INPUT=N,N,…");
        let (name, lengths) = text.split_once('=').ok_or_else(wrong)?;
        let lengths = lengths.split(',').filter(|len| !len.trim().is_empty());
        let lengths = lengths.map(|len| len.trim().parse().map_err(|_| wrong()));
        options.shapes.insert(name.to_owned(), lengths.collect::<Result<_, _>>()?);
    }
    Ok(options)
}

/// The form of weights that a word names.
fn compression(text: &str) -> Result<WeightCompression, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let wrong = || {
        format!(
            "--weights: '{text}' found, expected int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP or \
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

/// A named length: `NAME=N`.
fn length(option: &str, text: &str) -> Result<(String, usize), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(name, number)| Some((name.trim().to_owned(), number.trim().parse().ok()?)));
    parsed.ok_or_else(|| format!("--{option}: '{text}' found, expected NAME=N"))
}
