//! Core ML models to [`Graph`]s and back: packages (`.mlpackage`), single files (`.mlmodel`), and programs that Core
//! ML has compiled (`.mlmodelc`).
//!
//! [`load`] reads a model of any kind that is supported: programs of the Model Intermediate Language
//! (ML programs, specification 6 and newer), neural networks and pipelines. Each [`Function`] of a
//! model is a graph of ONNX's operators, so that any provider runs it; constants share the mapped
//! file of weights where they are stored as they are computed with. What is said about values is
//! compared with what the operators make of them: nothing is believed, nothing is skipped.
//!
//! Sources: the messages and operators of coremltools 9.0.

mod compiled;
mod error;
mod feature;
mod import;
pub mod mil;
mod network;
mod package;
mod program;
pub mod proto;
mod weights;
mod write;

pub use error::{CoreMlError, CoreMlErrorKind};
pub use feature::{ColorOrder, FeatureShapes, FeatureType, ModelFeature};
pub use import::operators;
pub use write::{NewPackage, WrittenDescription, write_package};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use galatea_graph::Graph;
use galatea_tensor::{MappedFile, OrderedMap};
use prost::Message;

use proto::ModelKind;
use weights::WeightFiles;

/// The oldest version of the format that is read.
pub const OLDEST_SPECIFICATION: i32 = 1;
/// The newest version of the format that is read.
pub const NEWEST_SPECIFICATION: i32 = 10;

/// A model.
#[derive(Clone, Debug)]
pub struct LoadedCoreMl {
    /// Version of the format: 6 and above are programs.
    pub specification: i32,
    /// Its functions; a model that has one calls it `main`.
    pub functions: Vec<CoreMlFunction>,
    /// The position of the function that is run where none is named.
    pub default_function: usize,
    /// The file's description of itself.
    pub info: CoreMlModelInfo,
    /// The files that constants lie in, mapped.
    pub files: Vec<CoreMlFile>,
}

/// A mapped file of a model.
#[derive(Clone, Debug)]
pub struct CoreMlFile {
    /// The path.
    pub path: PathBuf,
    /// Its bytes.
    pub memory: Arc<MappedFile>,
}

/// Description of a file by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreMlModelInfo {
    /// The purpose of the model.
    pub description: String,
    /// Its version.
    pub version: String,
    /// Its author.
    pub author: String,
    /// Its licence.
    pub license: String,
    /// Free text by key.
    pub metadata: OrderedMap<String, String>,
}

/// A function of a model.
#[derive(Clone, Debug)]
pub struct CoreMlFunction {
    /// Its name.
    pub name: String,
    /// The computation. Its inputs are the function's, then its states; its outputs the function's,
    /// then its states as a run leaves them.
    pub graph: Graph,
    /// The inputs of a run.
    pub inputs: Vec<ModelFeature>,
    /// The outputs of a run.
    pub outputs: Vec<ModelFeature>,
    /// The states, which last from one run to the next: zeros before the first.
    pub states: Vec<ModelFeature>,
    /// The labels of a classifier, in the order of their probabilities.
    pub labels: Option<ClassifierClasses>,
}

/// Labels of a classifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifierClasses {
    /// The output that is the most probable label.
    pub predicted: String,
    /// The output with all probabilities.
    pub probabilities: String,
    /// The labels as texts.
    pub names: Vec<String>,
}

impl LoadedCoreMl {
    /// The function of a name; the default one where none is given.
    ///
    /// # Errors
    /// Fails when there is none; the error names those that there are.
    pub fn function(&self, name: Option<&str>) -> Result<&CoreMlFunction, CoreMlError> {
        let found = match name {
            Some(name) => self.functions.iter().find(|function| function.name == name),
            None => self.functions.get(self.default_function),
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = self.functions.iter().map(|one| one.name.as_str()).collect();
            let name = name.unwrap_or_default();
            let known = known.join(", ");
            CoreMlError::invalid(format!("there is no function '{name}', only {known}"))
        })
    }
}

/// Returns whether a path is one of a Core ML model: a package, a compiled folder, or a file
/// `.mlmodel`.
#[must_use]
pub fn is_model(path: &Path) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("mlpackage" | "mlmodelc") => path.is_dir(),
        Some("mlmodel") => path.is_file(),
        _ => false,
    }
}

/// Reads a package, a folder that Core ML has compiled, or a file `.mlmodel`.
///
/// # Errors
/// Fails when a file cannot be read, is damaged or says something that is not supported; the error
/// names the file and the function and operation, or the layer.
pub fn load(path: &Path) -> Result<LoadedCoreMl, CoreMlError> {
    if compiled::is_compiled(path) {
        return compiled::load(path).map_err(|error| error.in_file(path));
    }
    let file = match path.is_dir() {
        true => package::model_file(path)?,
        false => path.to_owned(),
    };
    let memory = weights::map_file(&file)?;
    let read = || {
        let bytes = Bytes::from_owner(MappedModel(Arc::clone(&memory)));
        read_model(bytes, file.parent())
    };
    read().map_err(|error| error.in_file(path))
}

/// Reads the program of a package or a compiled folder as it is written, without making graphs of it.
///
/// # Errors
/// Fails like [`load`], and when the model is no program.
pub fn load_program(path: &Path) -> Result<mil::MilProgram, CoreMlError> {
    let read = || {
        if compiled::is_compiled(path) {
            return compiled::program(path, &mut WeightFiles::new(Some(path)));
        }
        let file = match path.is_dir() {
            true => package::model_file(path)?,
            false => path.to_owned(),
        };
        let memory = weights::map_file(&file)?;
        let model: proto::CoreMlModelProto = decode(Bytes::from_owner(MappedModel(memory)))?;
        match &model.kind {
            Some(ModelKind::MlProgram(found)) => {
                mil::program(found, &mut WeightFiles::new(file.parent()))
            }
            _ => Err(CoreMlError::invalid("a model of another kind, expected a program")),
        }
    };
    read().map_err(|error: CoreMlError| error.in_file(path))
}

/// The bytes of a mapped file, for what wants to own them.
struct MappedModel(Arc<MappedFile>);

impl AsRef<[u8]> for MappedModel {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Reads a model in memory; files of weights are looked up in `folder`, which `@model_path` stands
/// for.
///
/// # Errors
/// Fails like [`load`].
pub fn read_model(bytes: Bytes, folder: Option<&Path>) -> Result<LoadedCoreMl, CoreMlError> {
    let model: proto::CoreMlModelProto = decode(bytes)?;
    let version = model.specification_version;
    if !(OLDEST_SPECIFICATION..=NEWEST_SPECIFICATION).contains(&version) {
        let text = format!(
            "specification version {version}, {OLDEST_SPECIFICATION} to {NEWEST_SPECIFICATION} \
             are supported"
        );
        return Err(CoreMlError::new(CoreMlErrorKind::Version(text)));
    }
    let none = proto::ModelDescription::default();
    let description = model.description.as_ref().unwrap_or(&none);
    let mut weights = WeightFiles::new(folder);
    let (functions, default_function) = functions(&model, &mut weights)?;
    let files = weights.into_files().into_iter();
    let files = files.map(|(path, memory)| CoreMlFile { path, memory }).collect();
    let info = info(description);
    Ok(LoadedCoreMl { specification: version, functions, default_function, info, files })
}

/// The functions of a model of any kind, and the position of the default one.
fn functions(
    model: &proto::CoreMlModelProto,
    weights: &mut WeightFiles,
) -> Result<(Vec<CoreMlFunction>, usize), CoreMlError> {
    let none = proto::ModelDescription::default();
    let description = model.description.as_ref().unwrap_or(&none);
    let Some(kind) = &model.kind else {
        return Err(CoreMlError::invalid("the file holds no model: not one of Core ML?"));
    };
    if let ModelKind::MlProgram(found) = kind {
        let described = program::described(description)?;
        let program = mil::program(found, weights)?;
        return program::functions(program, model.specification_version, described);
    }
    let mut member = |model: &proto::CoreMlModelProto| {
        let (functions, default) = functions(model, weights)?;
        let missing = || CoreMlError::invalid("it has no function");
        functions.into_iter().nth(default).ok_or_else(missing)
    };
    let made = network::of_model(kind, description)
        .or_else(|| network::pipeline::of_model(model, &mut member));
    match made {
        Some(made) => Ok((vec![made?], 0)),
        None => Err(CoreMlError::unsupported(format!("a model of the kind '{}'", kind.name()))),
    }
}

fn info(description: &proto::ModelDescription) -> CoreMlModelInfo {
    let Some(found) = &description.metadata else { return CoreMlModelInfo::default() };
    CoreMlModelInfo {
        description: found.short_description.clone(),
        version: found.version_string.clone(),
        author: found.author.clone(),
        license: found.license.clone(),
        metadata: found.user_defined.clone(),
    }
}

/// The graph that the interpreter makes of a function: its inputs, then its states; its outputs, then
/// its states as a run leaves them.
///
/// # Errors
/// Fails when an operation is not known, or says what is not so.
pub fn interpret(name: &str, function: &mil::MilFunction) -> Result<Graph, CoreMlError> {
    import::function(name, function).map(|(graph, _)| graph)
}

/// Decodes a message; on failure says how far it got.
fn decode<M: Message + Default>(mut bytes: Bytes) -> Result<M, CoreMlError> {
    let total = bytes.len();
    M::decode(&mut bytes).map_err(|error| {
        let offset_bytes = total - bytes.remaining();
        let text = error.to_string();
        CoreMlError::new(CoreMlErrorKind::Encoding { offset_bytes, text })
    })
}
