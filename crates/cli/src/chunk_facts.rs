//! Facts that commands print about a folder of chunks: its packages, their functions and states, and the
//! share that a chip's Neural Engine is predicted to take.

use std::path::Path;
use std::process::ExitCode;

use galatea_coreml::{CostForecast, NeuralEngine, forecast};
use galatea_formats::coreml::{self, mil};
use galatea_formats::safetensors;
use galatea_llm::chunked::{ChunkManifest, TABLES, weight_bytes};
use serde_json::{Value, json};

use super::model::SessionChoices;
use super::say;
use crate::table::table;

/// A state of a package's functions.
struct ChunkState {
    name: String,
    /// Type and lengths.
    kind: String,
    bytes: usize,
}

/// A package of the folder.
struct ChunkPackage {
    file: String,
    functions: Vec<String>,
    states: Vec<ChunkState>,
    weight_bytes: u64,
    program: mil::MilProgram,
}

/// A table of the folder.
struct ChunkTable {
    input: String,
    by: String,
    shape: Vec<usize>,
    bytes: usize,
}

struct ChunkFolder {
    manifest: ChunkManifest,
    packages: Vec<ChunkPackage>,
    tables: Vec<ChunkTable>,
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl ChunkPackage {
    fn read(folder: &Path, file: &str) -> Result<Self, String> {
        let path = folder.join(file);
        let program = coreml::load_program(&path).map_err(text_of)?;
        let weight_bytes = weight_bytes(&path).map_err(text_of)?;
        let mut states: Vec<ChunkState> = Vec::new();
        for (name, kind) in program.functions.values().flat_map(|function| &function.inputs) {
            let mil::MilType::State(kind) = kind else { continue };
            if states.iter().any(|state| state.name == *name) {
                continue;
            }
            let lengths = kind.shape.iter().flatten().map(|len| len.unwrap_or(0));
            let elements = lengths.fold(1_usize, usize::saturating_mul);
            let bytes = elements.saturating_mul(kind.element.bits()) / 8;
            states.push(ChunkState { name: name.clone(), kind: kind.to_string(), bytes });
        }
        let functions = program.functions.keys().cloned().collect();
        Ok(Self { file: file.to_owned(), functions, states, weight_bytes, program })
    }
}

impl ChunkFolder {
    fn read(folder: &Path) -> Result<Self, String> {
        let manifest = ChunkManifest::read(folder).map_err(text_of)?;
        let files = manifest.chunks.iter().chain([&manifest.head]);
        let packages =
            files.map(|file| ChunkPackage::read(folder, file)).collect::<Result<_, _>>()?;
        let path = folder.join(TABLES);
        let file = safetensors::open(&path).map_err(text_of)?;
        let mut tables = Vec::with_capacity(manifest.tables.len());
        for entry in &manifest.tables {
            let found = file.tensor(&entry.input).map_err(text_of)?;
            let shape = found.shape().to_vec();
            let bytes = found.size_bytes();
            tables.push(ChunkTable {
                input: entry.input.clone(),
                by: entry.by.clone(),
                shape,
                bytes,
            });
        }
        Ok(Self { manifest, packages, tables })
    }

    /// Bytes of the states of a sequence.
    fn state_bytes(&self) -> usize {
        self.packages.iter().flat_map(|package| &package.states).map(|state| state.bytes).sum()
    }

    fn weight_bytes(&self) -> u64 {
        self.packages.iter().map(|package| package.weight_bytes).sum()
    }

    fn json(&self, path: &Path) -> Value {
        let packages = self.packages.iter().map(|package| {
            let state = |state: &ChunkState| json!({"name": state.name, "type": state.kind, "bytes": state.bytes});
            json!({
                "file": package.file,
                "functions": package.functions,
                "states": package.states.iter().map(state).collect::<Vec<_>>(),
                "weight_bytes": package.weight_bytes,
            })
        });
        let tables = self.tables.iter().map(|table| {
            json!({"input": table.input, "by": table.by, "shape": table.shape, "bytes": table.bytes})
        });
        let found = &self.manifest;
        json!({
            "file": path.display().to_string(),
            "format": "chunks",
            "architecture": found.architecture,
            "layers": found.layers,
            "kv_heads": found.kv_heads,
            "head_size": found.head_size,
            "context": found.context,
            "vocabulary": found.vocabulary,
            "rows": found.rows,
            "state_bytes": self.state_bytes(),
            "weight_bytes": self.weight_bytes(),
            "packages": packages.collect::<Vec<_>>(),
            "tables": tables.collect::<Vec<_>>(),
        })
    }

    fn text(&self, path: &Path) -> String {
        let found = &self.manifest;
        let state = |state: &ChunkState| {
            format!("{} {}, {}", state.name, state.kind, size(state.bytes as f64))
        };
        let packages = self.packages.iter().map(|package| {
            let states: Vec<String> = package.states.iter().map(state).collect();
            let bytes = size(package.weight_bytes as f64);
            vec![package.file.clone(), package.functions.join("\n"), states.join("\n"), bytes]
        });
        let tables = self.tables.iter().map(|table| {
            let shape = format!("{:?}", table.shape);
            vec![table.input.clone(), table.by.clone(), shape, size(table.bytes as f64)]
        });
        let lines = [
            path.display().to_string(),
            format!("{} in chunks for the Neural Engine", found.architecture),
            format!(
                "{} layers, {} heads of keys and values, each of {}",
                found.layers, found.kv_heads, found.head_size
            ),
            format!("context {}, vocabulary {}", found.context, found.vocabulary),
            format!(
                "{} of weights, {} for the states of a sequence",
                size(self.weight_bytes() as f64),
                size(self.state_bytes() as f64)
            ),
            table(&["Package", "Functions", "States", "Weights"], packages).trim_end().to_owned(),
            table(&["Table", "Looked up by", "Shape", "Size"], tables).trim_end().to_owned(),
        ];
        lines.join("\n")
    }
}

/// Bytes for people.
fn size(bytes: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

/// `galatea inspect` of a folder of chunks.
///
/// # Errors
/// Fails for missing or damaged files.
pub(super) fn inspect(path: &Path, json: bool) -> Result<String, String> {
    let folder = ChunkFolder::read(path)?;
    Ok(match json {
        true => folder.json(path).to_string(),
        false => folder.text(path),
    })
}

/// The engine that `--provider coreml:CHIP` names, or this machine's.
fn engine(provider: Option<&str>) -> Result<NeuralEngine, String> {
    let name = provider.unwrap_or("coreml");
    let wrong = |why: &str| {
        format!("provider '{name}' found, expected coreml:CHIP, such as coreml:M4: {why}")
    };
    match name.split_once(':') {
        Some(("coreml", chip)) => {
            NeuralEngine::of(chip).ok_or_else(|| wrong("nothing is known of this chip"))
        }
        None if name == "coreml" => {
            NeuralEngine::detect().ok_or_else(|| wrong("this machine has no Neural Engine"))
        }
        _ => Err(wrong("chunks are explained as a Neural Engine runs them")),
    }
}

/// `galatea explain` of a folder of chunks: what the engine is predicted to take of each function, and the
/// reasons for what it is not.
///
/// # Errors
/// Fails for missing or damaged files, and for a provider that is no Neural Engine.
pub(super) fn explain(
    path: &Path,
    session: &SessionChoices,
    brief: bool,
) -> Result<ExitCode, String> {
    let SessionChoices { provider, function, precision, level } = session;
    let rows = [
        ("function", function.name.is_some()),
        ("precision", precision.is_some()),
        ("level", level.is_some()),
    ];
    if let Some((option, _)) = rows.into_iter().find(|(_, given)| *given) {
        return Err(format!(
            "--{option} is for models that are graphs; chunks are as they were converted"
        ));
    }
    let engine = engine(provider.as_deref())?;
    let folder = ChunkFolder::read(path)?;
    say(&format!("{}: predicted for {}", path.display(), engine.chip));
    let mut rows = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut steps: Vec<(String, f64)> = Vec::new();
    for package in &folder.packages {
        for (name, function) in &package.program.functions {
            let CostForecast { taken, left, engine_ms, weight_bytes } = forecast(function, &engine);
            let others: usize = left.values().sum();
            rows.push(vec![
                package.file.clone(),
                name.clone(),
                taken.to_string(),
                others.to_string(),
                size(weight_bytes),
                format!("{engine_ms:.3} ms"),
            ]);
            match steps.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += engine_ms,
                None => steps.push((name.clone(), engine_ms)),
            }
            let place = format!("{}, {name}", package.file);
            reasons
                .extend(left.into_iter().map(|(why, count)| format!("{place}: {count} × {why}")));
        }
    }
    let head = ["Package", "Function", "Taken", "Left", "Weights read", "On the engine"];
    say(table(&head, rows).trim_end());
    let of_head = steps.iter().find(|(name, _)| name == "main").map_or(0.0, |(_, ms)| *ms);
    for (name, ms) in steps.iter().filter(|(name, _)| name != "main") {
        let rows: f64 = name.strip_prefix("prefill_").and_then(|n| n.parse().ok()).unwrap_or(1.0);
        // Logits are made of the last row of a prompt only.
        let whole = if rows > 1.0 { *ms } else { ms + of_head };
        say(&format!("{name}: {whole:.3} ms, {:.1} tokens/s", rows * 1e3 / whole.max(1e-9)));
    }
    if !brief {
        reasons.iter().for_each(|reason| say(reason));
    }
    Ok(ExitCode::SUCCESS)
}
