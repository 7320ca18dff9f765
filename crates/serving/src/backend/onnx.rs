//! The `onnxruntime` backend: ONNX files, run by sessions on the execution providers that the server hands over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_formats::onnx;
use galatea_graph::{Fact, Graph, ValueKind};
use galatea_runtime::{ExecutionProvider, IoInfo, OptimiseLevel, Session, SessionOptions};
use galatea_tensor::Tensor;

use super::{
    Backend, Model, ModelFiles, ModelInstance, ModelIo, ModelTensor, OperationCounter, Payload,
    Placement, PlacementKind,
};
use crate::batch;
use crate::config::ModelConfig;
use crate::config::inference::model_instance_group::Kind as GroupKind;
use crate::error::{Code, Error};
use crate::model_cache::{self, ModelCache};

/// Parameters of a configuration that ONNX Runtime knows and that mean nothing to a session here: whatever their
/// value, results and limits are the same.
const WITHOUT_EFFECT: &[&str] = &[
    "inter_op_thread_count",
    "execution_mode",
    "enable_mem_arena",
    "enable_mem_pattern",
    "memory.enable_memory_arena_shrinkage",
];

/// Loads ONNX files. An instance group on the processor has two instances where the configuration gives no number,
/// as with Triton; they share the model's weights.
#[derive(Clone)]
pub struct OnnxBackend {
    providers: Providers,
    /// One provider for each GPU.
    gpus: Providers,
    options: SessionOptions,
    cache: Option<Arc<ModelCache>>,
}

type Providers = Vec<Arc<dyn ExecutionProvider>>;

impl OnnxBackend {
    /// A backend on these providers, preferred ones first. `options` hold where a configuration says nothing else.
    #[must_use]
    pub fn new(providers: Providers, options: SessionOptions) -> Self {
        Self { providers, gpus: Vec::new(), options, cache: None }
    }

    /// The same with a provider for each GPU, in the order of their numbers. An instance on a GPU has that one before
    /// the other providers, which take what it does not.
    #[must_use]
    pub fn with_gpus(self, gpus: Providers) -> Self {
        Self { gpus, ..self }
    }

    /// The same, with prepared models in a cache.
    #[must_use]
    pub fn with_cache(self, cache: Option<ModelCache>) -> Self {
        Self { cache: cache.map(Arc::new), ..self }
    }

    /// The providers of instances at a place.
    fn providers_at(&self, place: PlacementKind) -> Providers {
        let gpu = match place {
            PlacementKind::Gpu(number) => {
                usize::try_from(number).ok().and_then(|number| self.gpus.get(number))
            }
            PlacementKind::Cpu | PlacementKind::Model => None,
        };
        gpu.into_iter().chain(&self.providers).cloned().collect()
    }

    /// The session of a model for instances at a place, and the values of inputs that may be left out.
    fn session(
        &self,
        path: &Path,
        files: &ModelFiles,
        place: PlacementKind,
    ) -> Result<(Session, Vec<(String, Tensor)>), Error> {
        // Who asks for a GPU wants it, and not the processor where that one would be done sooner or has room.
        let kinds = files.config.instance_group.iter().map(|group| group.kind());
        let insists = matches!(place, PlacementKind::Gpu(_))
            && kinds.into_iter().any(|kind| kind == GroupKind::Gpu);
        let mut providers = self.providers_at(place);
        if insists && let Some(first) = providers.first_mut() {
            *first = first.insisting().unwrap_or_else(|| Arc::clone(first));
        }
        configure(&providers, &files.config)?;
        let options = &session_options(&self.options, &providers, files)?;
        let failed = |error: String| {
            Error::internal(format!("failed to load model '{}': {error}", files.name))
        };
        let made = self.session_on(&providers, path, files, options).map_err(failed)?;
        if insists {
            let notes = made.0.explain().notes;
            if !notes.is_empty() {
                return Err(failed(notes.join("; ")));
            }
        }
        Ok(made)
    }

    fn session_on(
        &self,
        providers: &[Arc<dyn ExecutionProvider>],
        path: &Path,
        files: &ModelFiles,
        options: &SessionOptions,
    ) -> Result<(Session, Vec<(String, Tensor)>), String> {
        // Such inputs change the graph: it is another one than that of the file.
        if files.config.input.iter().any(|input| input.optional) {
            let mut graph = onnx::load(path).map_err(|error| error.to_string())?;
            let defaults = defaults(&mut graph, &files.config);
            let session = Session::new(graph, providers, options);
            return Ok((session.map_err(|error| error.to_string())?, defaults));
        }
        let cache = self.cache.as_deref();
        let (session, source) = model_cache::session(cache, path, providers, options)?;
        tracing::debug!(model = %files.name, %source, "prepared the model");
        Ok((session, Vec::new()))
    }
}

impl std::fmt::Debug for OnnxBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxBackend").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Backend for OnnxBackend {
    fn name(&self) -> &'static str {
        "onnxruntime"
    }

    fn platform(&self) -> &'static str {
        "onnxruntime_onnx"
    }

    fn default_model_filename(&self) -> &'static str {
        "model.onnx"
    }

    fn default_instance_count(&self, kind: PlacementKind) -> i32 {
        if kind == PlacementKind::Cpu { 2 } else { 1 }
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn Model>, Error> {
        let config = &files.config;
        let filename = match config.default_model_filename.as_str() {
            "" => self.default_model_filename(),
            given => given,
        };
        let path = files.version_dir.join(filename);
        if !path.exists() {
            let text = format!("unable to find '{}' for model '{}'", path.display(), files.name);
            return Err(Error::unavailable(text));
        }
        let failed = |error: &dyn std::fmt::Display| {
            Error::internal(format!("failed to load model '{}': {error}", files.name))
        };
        let place = first_place(config, self.gpus.len());
        let (session, defaults) = self.session(&path, files, place)?;
        for io in session.inputs().iter().chain(session.outputs()) {
            let (name, kind) = (&io.name, io.kind);
            if kind != ValueKind::Tensor {
                let map = matches!(kind, ValueKind::Map(_) | ValueKind::Maps(_));
                let hint = if map { ZIPMAP_HINT } else { "" };
                let text = format!("'{name}' is {kind}, inputs and outputs must be tensors{hint}");
                return Err(failed(&text));
            }
            if !io.dtype.is_on_wire() {
                let text = format!("'{name}' has type {}, which no request can carry", io.dtype);
                return Err(failed(&text));
            }
        }
        let mut io = ModelIo {
            inputs: session.inputs().iter().map(described).collect(),
            outputs: session.outputs().iter().map(described).collect(),
        };
        for input in &mut io.inputs {
            input.optional = defaults.iter().any(|(name, _)| *name == input.name);
        }
        let made = Made { backend: self.clone(), path, files: files.clone() };
        let sessions = Mutex::new(vec![(place, Arc::new(session))]);
        Ok(Box::new(OnnxModel { sessions, made, io, defaults: defaults.into() }))
    }
}

/// What to do about a model that answers with maps.
const ZIPMAP_HINT: &str = " (skl2onnx gives scores as a tensor with options={'zipmap': False})";

/// Makes inputs of the initializers that the configuration calls optional inputs, and gives their values: the graph
/// runs with these where a request has nothing else.
fn defaults(graph: &mut Graph, config: &ModelConfig) -> Vec<(String, Tensor)> {
    let mut found = Vec::new();
    for input in config.input.iter().filter(|input| input.optional) {
        let Some(id) = graph.find_value(&input.name) else { continue };
        let Some(value) = graph.value_mut(id).initializer.take() else { continue };
        // A default often has fewer elements than the tensors that take its place.
        graph.value_mut(id).declared = Some(Fact::unranked(value.dtype()));
        graph.inputs.push(id);
        found.push((input.name.clone(), value));
    }
    found
}

fn described(info: &IoInfo) -> ModelTensor {
    let dims = info
        .dims
        .iter()
        .map(|dim| dim.known().and_then(|known| i64::try_from(known).ok()).unwrap_or(-1));
    ModelTensor {
        name: info.name.clone(),
        datatype: info.dtype,
        dims: dims.collect(),
        ranked: info.ranked,
        optional: false,
    }
}

/// What the configuration, and after it the server's settings, ask of the session.
fn session_options(
    base: &SessionOptions,
    providers: &[Arc<dyn ExecutionProvider>],
    files: &ModelFiles,
) -> Result<SessionOptions, Error> {
    let mut options = base.clone();
    let parameter =
        |name: &str| files.parameter(name).or_else(|| files.settings.get(name).map(String::as_str));
    if let Some(text) = parameter("intra_op_thread_count") {
        options.threads = text.trim().parse().map_err(|_| {
            let text = format!(
                "parameter 'intra_op_thread_count' must be an integer >= 0, found '{text}'"
            );
            Error::invalid_arg(text)
        })?;
    }
    for name in WITHOUT_EFFECT.iter().filter(|name| files.parameter(name).is_some()) {
        tracing::info!(model = %files.name, parameter = name, "this parameter has no effect here");
    }
    options.optimise = match parameter("optimization_level") {
        Some(text) => text.parse().map_err(|error| {
            Error::invalid_arg(format!("parameter 'optimization_level': {error}"))
        })?,
        None => graph_level(&files.config).unwrap_or(base.optimise),
    };
    if let Some(text) = precision(&files.config).or_else(|| parameter("precision")) {
        options.precision = text
            .parse()
            .map_err(|error| Error::invalid_arg(format!("parameter 'precision': {error}")))?;
    }
    let known: Vec<&str> = providers.iter().map(|provider| provider.name()).collect();
    let preferred = accelerators(&files.config, &known)?;
    if !preferred.is_empty() {
        let all = if options.providers.is_empty() {
            known.iter().map(|&name| name.to_owned()).collect()
        } else {
            std::mem::take(&mut options.providers)
        };
        let rest: Vec<String> = all.into_iter().filter(|name| !preferred.contains(name)).collect();
        options.providers = preferred.into_iter().chain(rest).collect();
    }
    Ok(options)
}

/// Triton's Metal backend as an accelerator, whose parameters say how the GPU keeps memory.
const METAL: &str = "metal";
/// The provider of it.
const GPU: &str = "gpu";

/// Hands the parameters of the accelerator `metal` to the GPU at this place, if there is one.
///
/// # Errors
/// INVALID_ARG with the field, what was found and what was expected.
fn configure(providers: &[Arc<dyn ExecutionProvider>], config: &ModelConfig) -> Result<(), Error> {
    let wishes = config.optimization.as_ref().and_then(|w| w.execution_accelerators.as_ref());
    let wishes = wishes.map_or(&[][..], |wishes| &wishes.gpu_execution_accelerator);
    for wish in wishes.iter().filter(|wish| wish.name == METAL) {
        let Some(gpu) = providers.iter().find(|provider| provider.name() == GPU) else { continue };
        gpu.configure(&wish.parameters).map_err(|problem| {
            let field = "optimization.execution_accelerators.gpu_execution_accelerator";
            Error::invalid_arg(format!("{field} '{METAL}' of model '{}': {problem}", config.name))
        })?;
    }
    Ok(())
}

/// The `precision` among the parameters of an accelerator for the processor.
fn precision(config: &ModelConfig) -> Option<&str> {
    let wishes = config.optimization.as_ref()?.execution_accelerators.as_ref()?;
    let mut wishes = wishes.cpu_execution_accelerator.iter();
    wishes.find_map(|wish| wish.parameters.get("precision")).map(String::as_str)
}

/// What `optimization { graph { level } }` asks for: below 0 the least, above 0 fusions, 0 all, as Triton's ONNX
/// backend has it.
fn graph_level(config: &ModelConfig) -> Option<OptimiseLevel> {
    let level = config.optimization.as_ref()?.graph.as_ref()?.level;
    Some(match level {
        ..0 => OptimiseLevel::O1,
        0 => OptimiseLevel::O3,
        1.. => OptimiseLevel::O2,
    })
}

/// The accelerators that the configuration asks for, as names of providers.
///
/// # Errors
/// When one for the processor is not known. One for GPUs that is not known counts for GPUs only, as with Triton, and
/// is left out here with a line in the log.
fn accelerators(config: &ModelConfig, known: &[&str]) -> Result<Vec<String>, Error> {
    let wishes =
        config.optimization.as_ref().and_then(|wishes| wishes.execution_accelerators.as_ref());
    let Some(wishes) = wishes else { return Ok(Vec::new()) };
    let mut preferred = Vec::new();
    for wish in &wishes.cpu_execution_accelerator {
        if !known.contains(&wish.name.as_str()) {
            return Err(Error::invalid_arg(format!(
                "unknown Execution Accelerator '{}' is requested; the execution providers here are {}",
                wish.name,
                known.join(", ")
            )));
        }
        preferred.push(wish.name.clone());
    }
    for wish in &wishes.gpu_execution_accelerator {
        let name = if wish.name == METAL { GPU } else { wish.name.as_str() };
        if known.contains(&name) {
            preferred.push(name.to_owned());
        } else {
            tracing::warn!(model = %config.name, accelerator = %wish.name, "this GPU accelerator is not here");
        }
    }
    Ok(preferred)
}

/// Where the first instance of a model is going to be: its session says what the model takes.
fn first_place(config: &ModelConfig, gpus: usize) -> PlacementKind {
    let Some(group) = config.instance_group.first() else {
        return if gpus > 0 { PlacementKind::Gpu(0) } else { PlacementKind::Cpu };
    };
    let first = group.gpus.first().and_then(|&number| u32::try_from(number).ok());
    match group.kind() {
        GroupKind::Gpu => PlacementKind::Gpu(first.unwrap_or(0)),
        GroupKind::Auto if gpus > 0 => PlacementKind::Gpu(first.unwrap_or(0)),
        GroupKind::Auto | GroupKind::Cpu | GroupKind::Model => PlacementKind::Cpu,
    }
}

/// What further sessions of a model are made from.
struct Made {
    backend: OnnxBackend,
    path: PathBuf,
    files: ModelFiles,
}

struct OnnxModel {
    /// One for each place that an instance has: those at the same place share weights.
    sessions: Mutex<Vec<(PlacementKind, Arc<Session>)>>,
    made: Made,
    io: ModelIo,
    /// Inputs that a request may leave out, with what they are then.
    defaults: Arc<[(String, Tensor)]>,
}

impl Model for OnnxModel {
    fn io(&self) -> Option<&ModelIo> {
        Some(&self.io)
    }

    fn operations(&self) -> Option<OperationCounter> {
        // Whoever counts keeps no memory of a model that is gone.
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.first().map(|(_, session)| Arc::downgrade(session))?;
        Some(Arc::new(move || session.upgrade().map_or(0, |session| session.plans().operations)))
    }

    fn instance(&self, placement: &Placement) -> Result<Box<dyn ModelInstance>, Error> {
        let place = match placement.kind {
            PlacementKind::Model => PlacementKind::Cpu,
            place => place,
        };
        let session = self.session(place)?;
        let defaults = Arc::clone(&self.defaults);
        Ok(Box::new(OnnxInstance { movable: session.time_follows_shapes(), session, defaults }))
    }
}

impl OnnxModel {
    /// The session of a place, made when its first instance is.
    fn session(&self, place: PlacementKind) -> Result<Arc<Session>, Error> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, session)) = sessions.iter().find(|(known, _)| *known == place) {
            return Ok(Arc::clone(session));
        }
        let Made { backend, path, files } = &self.made;
        let session = Arc::new(backend.session(path, files, place)?.0);
        sessions.push((place, Arc::clone(&session)));
        Ok(session)
    }
}

struct OnnxInstance {
    session: Arc<Session>,
    movable: bool,
    defaults: Arc<[(String, Tensor)]>,
}

impl ModelInstance for OnnxInstance {
    fn time_depends_on_sizes_only(&self) -> bool {
        self.movable
    }

    fn execute(&mut self, payload: Payload) {
        batch::execute(payload, |inputs| {
            let absent = self
                .defaults
                .iter()
                .filter(|(name, _)| inputs.iter().all(|(given, _)| given != name));
            let named: Vec<(&str, Tensor)> = inputs
                .iter()
                .chain(absent)
                .map(|(name, tensor)| (name.as_str(), tensor.clone()))
                .collect();
            let outputs = self.session.run(&named).map_err(|error| {
                let code = if error.is_input() { Code::InvalidArg } else { Code::Internal };
                Error::new(code, error.to_string())
            })?;
            let names = self.session.outputs().iter().map(|info| info.name.clone());
            Ok(names.zip(outputs).collect())
        });
    }
}
