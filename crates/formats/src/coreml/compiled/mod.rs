//! Folders that Core ML has compiled (`.mlmodelc`): a program as text (`model.mil`), its weights, and its description
//! (`metadata.json`).
//!
//! The text is what Core ML's compiler writes for ML programs. Neural networks and pipelines are compiled to forms of
//! the system's own, which only Core ML reads. Source: `model.mil` and `metadata.json` of models that are published
//! compiled; the order of blocks and attributes of control flow is taken in every form.

mod constants;
mod description;
mod parser;
mod tokens;

use std::path::Path;

use super::error::CoreMlError;
use super::mil::{self, MilFunction, MilProgram};
use super::weights::WeightFiles;
use super::{CoreMlFile, LoadedCoreMl, program as ml_program, weights};

/// Result of reading a part of a folder.
type CompiledResult<T> = Result<T, CoreMlError>;

/// The program of a folder.
const PROGRAM: &str = "model.mil";
/// The description of a folder.
const METADATA: &str = "metadata.json";
/// Files by which folders of other kinds are told.
const OTHER_KINDS: [(&str, &str); 3] = [
    ("model.espresso.net", "a compiled neural network"),
    ("model0", "a compiled pipeline"),
    ("coremldata.bin", "a compiled model that is no program"),
];
/// The most bytes of a program's text; weights lie in files of their own.
const MAX_TEXT_BYTES: u64 = 1 << 30;
/// The most bytes of a description.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// Returns whether a folder is one that Core ML has compiled: it has no manifest, and a compiler's file.
pub(super) fn is_compiled(path: &Path) -> bool {
    let has = |name: &str| path.join(name).exists();
    path.is_dir()
        && !has("Manifest.json")
        && (has(PROGRAM) || OTHER_KINDS.iter().any(|(file, _)| has(file)))
}

/// Reads a compiled folder.
///
/// # Errors
/// Fails when the folder holds no program, or a file is damaged; the error tells the file and the line.
pub(super) fn load(folder: &Path) -> Result<LoadedCoreMl, CoreMlError> {
    let mut weights = WeightFiles::new(Some(folder));
    let program = program(folder, &mut weights)?;
    let metadata = folder.join(METADATA);
    let read = || match metadata.exists() {
        true => description::read(&text(&metadata, MAX_METADATA_BYTES)?, &program),
        false => Ok(description::of_signatures(&program)),
    };
    let found = read().map_err(|error| error.at(METADATA))?;
    let specification = found.specification.unwrap_or_else(|| specification_of(&program));
    let (functions, default_function) =
        ml_program::functions(program, specification, found.program)?;
    let files = weights.into_files().into_iter();
    let files = files.map(|(path, memory)| CoreMlFile { path, memory }).collect();
    Ok(LoadedCoreMl { specification, functions, default_function, info: found.info, files })
}

/// Reads the program of a compiled folder as it is written.
///
/// # Errors
/// Fails like [`load`].
pub(super) fn program(folder: &Path, weights: &mut WeightFiles) -> Result<MilProgram, CoreMlError> {
    let path = folder.join(PROGRAM);
    if !path.exists() {
        let other = OTHER_KINDS.iter().find(|(file, _)| folder.join(file).exists());
        let kind = other.map_or("a folder without a program", |(_, kind)| *kind);
        let text = format!(
            "{kind}, which only Core ML reads; give the package or the .mlmodel that it was compiled from"
        );
        return Err(CoreMlError::unsupported(text));
    }
    let mut read = || parser::program(&text(&path, MAX_TEXT_BYTES)?, weights);
    read().map_err(|error| error.at(PROGRAM))
}

/// The version of the format that has a program's newest set of operators.
fn specification_of(program: &MilProgram) -> i32 {
    let number = |function: &MilFunction| -> Option<i32> {
        function.opset.strip_prefix("CoreML")?.parse().ok()
    };
    program
        .functions
        .values()
        .filter_map(number)
        .max()
        .map_or(super::OLDEST_SPECIFICATION, |opset| opset + 1)
}

/// The text of a plain file of bounded length.
fn text(path: &Path, most_bytes: u64) -> Result<String, CoreMlError> {
    let memory = weights::map_file(path)?;
    let bytes: &[u8] = (*memory).as_ref();
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most_bytes {
        let text = format!("{} bytes, at most {most_bytes} are read", bytes.len());
        return Err(CoreMlError::invalid(text));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let text = format!("no text in UTF-8 from byte {}", error.valid_up_to());
            Err(CoreMlError::invalid(text))
        }
    }
}
