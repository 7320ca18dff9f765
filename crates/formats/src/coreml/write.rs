//! Packages from programs.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use galatea_tensor::Tensor;
use prost::Message;

use super::CoreMlModelInfo;
use super::error::CoreMlError;
use super::feature::ModelFeature;
use super::mil::{self, MilElement};
use super::package::{ManifestItem, PackageManifest};
use super::proto::{
    CoreMlMetadataProto, CoreMlModelProto, FunctionDescription, ModelDescription, ModelKind,
};
use super::weights::{MARK, TYPES, UNIT, VERSION};

/// Description of a function in a package.
#[derive(Clone, Debug, Default)]
pub struct WrittenDescription {
    /// Its name.
    pub name: String,
    /// The inputs of a run, in the order of the program's inputs.
    pub inputs: Vec<ModelFeature>,
    /// The outputs of a run.
    pub outputs: Vec<ModelFeature>,
    /// The states, which last from one run to the next.
    pub states: Vec<ModelFeature>,
}

/// A package that is to be written.
#[derive(Clone, Debug)]
pub struct NewPackage {
    /// Version of the format; it must have the program's set of operators.
    pub specification: i32,
    /// The functions.
    pub program: mil::MilProgram,
    /// The descriptions of the functions.
    pub functions: Vec<WrittenDescription>,
    /// The one that is run where none is named.
    pub default_function: String,
    /// The package's description of itself.
    pub info: CoreMlModelInfo,
}

/// The files of a package below `Data`.
const MODEL: &str = "com.apple.CoreML/model.mlmodel";
const WEIGHTS: &str = "com.apple.CoreML/weights";
const WEIGHTS_FILE: &str = "weight.bin";
const AUTHOR: &str = "com.apple.CoreML";

/// Writes a package: a folder that appears when it is whole. What was there under its name is replaced
/// if it is a package too.
///
/// # Errors
/// Fails when the name does not end in `.mlpackage`, something else is there, a file cannot be
/// written, or the description is not that of the program.
pub fn write_package(path: &Path, package: &NewPackage) -> Result<(), CoreMlError> {
    write(path, package).map_err(|error| error.in_file(path))
}

fn write(path: &Path, package: &NewPackage) -> Result<(), CoreMlError> {
    if path.extension().is_none_or(|extension| extension != "mlpackage") {
        return Err(CoreMlError::file("the name of a package ends in '.mlpackage'"));
    }
    let exists = path.symlink_metadata().is_ok();
    if exists && !path.join("Manifest.json").is_file() {
        return Err(CoreMlError::file("it exists and is no package, so it is not replaced"));
    }
    check(package)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let unfinished = parent.join(format!(".{}.{}", name.unwrap_or_default(), std::process::id()));
    let written = fill(&unfinished, package).and_then(|()| {
        if exists {
            fs::remove_dir_all(path).map_err(failed)?;
        }
        fs::rename(&unfinished, path).map_err(failed)
    });
    if written.is_err() {
        // What is left of it is in nobody's way but takes room.
        fs::remove_dir_all(&unfinished).ok();
    }
    written
}

fn failed(error: std::io::Error) -> CoreMlError {
    CoreMlError::file(format!("cannot be written: {error}"))
}

/// Core ML says little about what does not fit together; it is refused here instead.
fn check(package: &NewPackage) -> Result<(), CoreMlError> {
    for described in &package.functions {
        let place = || format!("function '{}'", described.name);
        let Some(function) = package.program.functions.get(&described.name) else {
            return Err(CoreMlError::invalid("the program has no such function").at(place()));
        };
        let newest = format!("CoreML{}", package.specification - 1);
        let newer = |opset: &str| opset.len() > newest.len() || *opset > *newest;
        if newer(&function.opset) {
            let text = format!(
                "its opset is {}, specification {} has {newest}",
                function.opset, package.specification
            );
            return Err(CoreMlError::invalid(text).at(place()));
        }
        let fed = described.inputs.iter().chain(&described.states).map(|feature| &feature.name);
        let inputs: Vec<&String> = function.inputs.iter().map(|(name, _)| name).collect();
        let outputs: Vec<&String> = described.outputs.iter().map(|one| &one.name).collect();
        let mut fed: Vec<&String> = fed.collect();
        let mut sorted = inputs.clone();
        fed.sort();
        sorted.sort();
        if fed != sorted || outputs != function.block.outputs.iter().collect::<Vec<_>>() {
            let text = format!(
                "described with {fed:?} and {outputs:?}, the program has {inputs:?} and {:?}",
                function.block.outputs
            );
            return Err(CoreMlError::invalid(text).at(place()));
        }
    }
    Ok(())
}

fn fill(folder: &Path, package: &NewPackage) -> Result<(), CoreMlError> {
    let data = folder.join("Data");
    let weights = data.join(WEIGHTS);
    fs::create_dir_all(&weights).map_err(failed)?;
    let mut blobs = WeightFileWriter::new(weights.join(WEIGHTS_FILE));
    let mut sink = |element: MilElement, tensor: &Tensor| blobs.add(element, tensor);
    let program = mil::encoded(&package.program, &mut sink)?;
    let used = blobs.finish()?;
    if !used {
        fs::remove_dir(&weights).map_err(failed)?;
    }
    let model = CoreMlModelProto {
        specification_version: package.specification,
        description: Some(description(package)),
        kind: Some(ModelKind::MlProgram(program)),
    };
    fs::write(data.join(MODEL), model.encode_to_vec()).map_err(failed)?;
    let manifest = serde_json::to_vec_pretty(&manifest(used))
        .map_err(|error| CoreMlError::file(error.to_string()))?;
    fs::write(folder.join("Manifest.json"), manifest).map_err(failed)
}

fn description(package: &NewPackage) -> ModelDescription {
    let info = &package.info;
    let metadata = CoreMlMetadataProto {
        short_description: info.description.clone(),
        version_string: info.version.clone(),
        author: info.author.clone(),
        license: info.license.clone(),
        user_defined: info.metadata.clone(),
    };
    let each = |all: &[ModelFeature]| all.iter().map(ModelFeature::write).collect();
    let states = |all: &[ModelFeature]| all.iter().map(ModelFeature::write_state).collect();
    let mut description =
        ModelDescription { metadata: Some(metadata), ..ModelDescription::default() };
    match package.functions.as_slice() {
        // Where there is one, it is called `main` and described by the model.
        [one] if one.name == "main" => {
            description.input = each(&one.inputs);
            description.output = each(&one.outputs);
            description.state = states(&one.states);
        }
        all => {
            let function = |one: &WrittenDescription| FunctionDescription {
                name: one.name.clone(),
                input: each(&one.inputs),
                output: each(&one.outputs),
                state: states(&one.states),
                ..FunctionDescription::default()
            };
            description.functions = all.iter().map(function).collect();
            description.default_function_name.clone_from(&package.default_function);
        }
    }
    description
}

/// The entries of a package, whose identifiers are only told apart: they are always the same, so that
/// equal models are equal files.
fn manifest(weights: bool) -> PackageManifest {
    let item = |name: &str, path: &str, description: &str| ManifestItem {
        author: AUTHOR.to_owned(),
        description: description.to_owned(),
        name: name.to_owned(),
        path: path.to_owned(),
    };
    let root = "6B2F0E3C-3C5B-4E0B-9D63-6D6F64656C00".to_owned();
    let mut entries = galatea_tensor::OrderedMap::new();
    entries.insert(root.clone(), item("model.mlmodel", MODEL, "CoreML Model Specification"));
    if weights {
        let identifier = "6B2F0E3C-3C5B-4E0B-9D63-776569676874".to_owned();
        entries.insert(identifier, item("weights", WEIGHTS, "CoreML Model Weights"));
    }
    PackageManifest {
        file_format_version: "1.0.0".to_owned(),
        item_info_entries: entries,
        root_model_identifier: root,
    }
}

/// The file of weights while it is written, one blob after the other; constants of the same bytes are
/// one.
struct WeightFileWriter {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    at: u64,
    count: u32,
    /// Written constants and their offsets, by type and fingerprint.
    known: HashMap<(MilElement, u64), Vec<(Tensor, u64)>>,
}

impl WeightFileWriter {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, at: 0, count: 0, known: HashMap::new() }
    }

    /// Writes a blob, and gives the offset of its description.
    fn add(&mut self, element: MilElement, tensor: &Tensor) -> Result<u64, CoreMlError> {
        // Strings and views have no bytes to compare.
        let bytes = tensor.unaligned_bytes().ok();
        let key = bytes.map(|bytes| (element, mil::fingerprint(bytes)));
        let known = key.and_then(|key| self.known.get(&key)).into_iter().flatten();
        let mut same = known.filter(|(other, _)| mil::same_bytes(other, tensor));
        if let Some(&(_, offset)) = same.next() {
            return Ok(offset);
        }
        let Some((number, _)) = TYPES.iter().find(|(_, known)| *known == element) else {
            return Err(CoreMlError::unsupported(format!("a blob of {element}")));
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = File::create(&self.path).map_err(failed)?;
                let file = none.insert(BufWriter::new(file));
                // The header is written at the end, when the count is known.
                file.write_all(&[0; UNIT]).map_err(failed)?;
                self.at = long(UNIT);
                file
            }
        };
        let bits = element.bits() * tensor.elements();
        let padding = long(bits.next_multiple_of(8) - bits);
        let offset = self.at;
        let unit = long(UNIT);
        let len = long(bits.div_ceil(8));
        let mut described = Vec::with_capacity(UNIT);
        described.extend(MARK.to_le_bytes());
        described.extend(number.to_le_bytes());
        for field in [len, offset + unit, padding] {
            described.extend(field.to_le_bytes());
        }
        described.resize(UNIT, 0);
        file.write_all(&described).map_err(failed)?;
        write_elements(file, element, tensor)?;
        let end = offset + unit + len;
        let aligned = end.next_multiple_of(unit);
        let gap = usize::try_from(aligned - end).unwrap_or(0);
        file.write_all(&[0; UNIT][..gap.min(UNIT)]).map_err(failed)?;
        (self.at, self.count) = (aligned, self.count + 1);
        if let Some(key) = key {
            self.known.entry(key).or_default().push((tensor.clone(), offset));
        }
        Ok(offset)
    }

    /// Ends the file; says whether there is one.
    fn finish(self) -> Result<bool, CoreMlError> {
        let Some(mut file) = self.file else { return Ok(false) };
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        file.write_all(&self.count.to_le_bytes()).map_err(failed)?;
        file.write_all(&VERSION.to_le_bytes()).map_err(failed)?;
        file.flush().map_err(failed)?;
        Ok(true)
    }
}

fn long(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Elements that lie together are written from where they are, others by way of a copy of them.
fn write_elements(
    file: &mut BufWriter<File>,
    element: MilElement,
    tensor: &Tensor,
) -> Result<(), CoreMlError> {
    match tensor.unaligned_bytes() {
        Ok(bytes) if element.bits() >= 8 => file.write_all(bytes).map_err(failed),
        _ => file.write_all(&mil::raw(element, tensor)?).map_err(failed),
    }
}
