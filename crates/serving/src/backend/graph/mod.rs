//! The backends `onnxruntime` and `coreml`: models that are graphs, run by sessions on the execution providers that
//! the server hands over.

mod found;
mod kernels;
mod location;
pub(super) mod metal;
mod metal_backend;
mod options;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use galatea_formats::coreml::{FeatureShapes, FeatureType, ModelFeature};
use galatea_graph::{Dim, Fact, FactKind, Graph};
use galatea_runtime::{
    ExecutionProvider, IoInfo, PaceSource, PlacementOptions, Run, RuntimeError, Session,
    SessionOptions, TuningStep, WatchSource,
};
use galatea_tensor::{
    InterruptibleScope, MappedFileSet, OrderedMap, OrderedSet, Tensor, collect_mapped_files,
};

use self::kernels::GraphKernelTuner;
pub use self::kernels::expected_rows;
pub use self::metal_backend::MetalBackend;
use super::{
    BackendModel, BackgroundTuner, BatchPayload, HostLink, InstancePlacement, KernelTuner,
    KernelTuningPolicy, ModelBackend, ModelFiles, ModelInstance, ModelIo, ModelTensor,
    OperationCounter, PlacementKind, StateBinding,
};
use crate::batch;
use crate::config::inference::ModelInstanceGroup;
use crate::config::inference::model_instance_group::Kind as GroupKind;
use crate::config::{MetalConfig, ModelConfig};
use crate::error::{ErrorCode, ServingError};
use crate::graph_model::{self, FunctionInterface, ModelFormat};
use crate::low_bits::LoadQuantization;
use crate::model_cache::{self, GraphTransform, ModelCache, PreparedSession};

/// The parameter that names the function of a model of Core ML that has several.
const FUNCTION: &str = "function_name";
/// Instances of a model whose runs are divided between units, where its configuration says nothing.
const MAX_INSTANCES: usize = 4;

/// Loads models of one format. An instance group on the processor has two instances where the configuration gives no
/// number, as with Triton; they share the model's weights.
#[derive(Clone)]
pub struct GraphBackend {
    format: ModelFormat,
    providers: ProviderFactory,
    /// One provider for each GPU.
    gpus: ProviderFactory,
    /// Providers of models whose configuration names them as accelerators.
    optional: ProviderFactory,
    /// The units among which runs of a model are divided that asks for none.
    shared: Option<(ProviderFactory, PlacementOptions)>,
    options: SessionOptions,
    cache: Option<Arc<ModelCache>>,
    power: Option<PowerOf>,
    /// Name of the provider that comes first where a model asks for none.
    preferred: Option<&'static str>,
    tuning: KernelTuningPolicy,
}

/// Power settings of a model's runs, where it has any.
#[derive(Clone, Debug, Default)]
pub struct ModelPower {
    /// Power gates that runs pass.
    pub pace: PaceSource,
    /// Hook of threads that gather inputs and scatter outputs of the model, called once in each.
    pub aside: Option<fn()>,
}

/// Decides that, of the model's name and what it says.
pub type PowerOf = Arc<dyn Fn(&str, &MetalConfig) -> Result<ModelPower, String> + Send + Sync>;

type ProviderFactory = Vec<Arc<dyn ExecutionProvider>>;

impl GraphBackend {
    /// A backend of files of ONNX on these providers, preferred ones first. `options` hold where a configuration says
    /// nothing else.
    #[must_use]
    pub fn onnx(providers: ProviderFactory, options: SessionOptions) -> Self {
        let gpus = Vec::new();
        let optional = Vec::new();
        let shared = None;
        let format = ModelFormat::Onnx;
        let (cache, power, preferred) = (None, None, None);
        let tuning = KernelTuningPolicy::default();
        Self { format, providers, gpus, optional, shared, options, cache, power, preferred, tuning }
    }

    /// A backend of packages and files of Core ML, else as [`GraphBackend::onnx`].
    #[must_use]
    pub fn core_ml(providers: ProviderFactory, options: SessionOptions) -> Self {
        Self { format: ModelFormat::CoreMl, ..Self::onnx(providers, options) }
    }

    /// The same with a provider for each GPU, in the order of their numbers. An instance on a GPU has that one before
    /// the other providers, which take what it does not.
    #[must_use]
    pub fn with_gpus(self, gpus: ProviderFactory) -> Self {
        Self { gpus, ..self }
    }

    /// The same with providers of models whose configuration names them as accelerators; no other model sees them.
    #[must_use]
    pub fn with_optional(self, optional: ProviderFactory) -> Self {
        Self { optional, ..self }
    }

    /// The same with units among which runs of a model are divided whose configuration asks for none; preferred ones
    /// first.
    #[must_use]
    pub fn with_shared(
        self,
        providers: ProviderFactory,
        routing: Option<PlacementOptions>,
    ) -> Self {
        Self { shared: routing.map(|routing| (providers, routing)), ..self }
    }

    /// The same, where somebody decides what becomes of the runs of models that say something on power.
    #[must_use]
    pub fn with_power(self, power: PowerOf) -> Self {
        Self { power: Some(power), ..self }
    }

    /// The same, with prepared models in a cache.
    #[must_use]
    pub fn with_cache(self, cache: Option<ModelCache>) -> Self {
        Self { cache: cache.map(Arc::new), ..self }
    }

    /// The same, with another policy on tuning kernels in idle moments.
    #[must_use]
    pub fn with_tuning(self, tuning: KernelTuningPolicy) -> Self {
        Self { tuning, ..self }
    }

    /// The same, with the provider of this name first for models that ask for no unit.
    #[must_use]
    fn preferring(self, name: &'static str) -> Self {
        Self { preferred: Some(name), ..self }
    }

    /// The name of the preferred provider, if it is among those of a model that asks for none.
    fn preference(&self, providers: &ProviderFactory, files: &ModelFiles) -> Option<&'static str> {
        let name = self.preferred?;
        let kinds = || files.config.instance_group.iter().map(|group| group.kind());
        if kinds().any(|kind| kind == GroupKind::Cpu) {
            return None;
        }
        let here = providers.iter().any(|provider| provider.name() == name);
        if !here {
            tracing::warn!(model = %files.name, "there is no {name} here, which its backend prefers: other units run it");
        }
        here.then_some(name)
    }

    /// The providers of instances at a place.
    fn providers_at(&self, place: PlacementKind) -> ProviderFactory {
        let gpu = match place {
            PlacementKind::Gpu(number) => {
                usize::try_from(number).ok().and_then(|number| self.gpus.get(number))
            }
            PlacementKind::Cpu | PlacementKind::Model => None,
        };
        gpu.into_iter().chain(&self.providers).cloned().collect()
    }

    /// The session of a model for instances at a place.
    fn session(
        &self,
        path: &Path,
        files: &ModelFiles,
        place: PlacementKind,
    ) -> Result<LoadedGraph, ServingError> {
        let kinds = || files.config.instance_group.iter().map(|group| group.kind());
        // Who asks for a GPU wants it, and not the processor where that one would be done sooner or has room.
        let insists =
            matches!(place, PlacementKind::Gpu(_)) && kinds().any(|kind| kind == GroupKind::Gpu);
        let asks = kinds().any(|kind| matches!(kind, GroupKind::Gpu | GroupKind::Cpu));
        let shared = self.shared.as_ref().filter(|_| !asks && !options::accelerated(&files.config));
        let mut providers = match shared {
            Some((providers, _)) => providers.clone(),
            None => self.providers_at(place),
        };
        // Also where one unit leaves nothing to choose.
        location::goal(files)?;
        let location = location::of_model(files)?;
        let location = location.or_else(|| self.preference(&providers, files));
        if let Some(name) = location {
            providers = location::first(providers, name, files)?;
        } else if insists && let Some(first) = providers.first_mut() {
            *first = first.forced().unwrap_or_else(|| Arc::clone(first));
        }
        let routing = shared.filter(|_| location.is_none());
        let routing = routing.map(|(_, base)| location::routing(base, files)).transpose()?;
        let providers = options::configured(providers, &self.optional, files)?;
        let options =
            options::session_options(&self.options, &providers, files, self.tuning, self.format)?;
        let power = self.power_of(files)?;
        let pace = power.as_ref().map_or(&options.pace, |power| &power.pace).clone();
        let watch = WatchSource { model: files.name.as_str().into(), ..options.watch.clone() };
        let options = &SessionOptions { routing, pace, watch, ..options };
        let failed = |error: String| {
            ServingError::internal(format!("failed to load model '{}': {error}", files.name))
        };
        let mut made = self.session_on(&providers, path, files, options).map_err(failed)?;
        made.aside = power.and_then(|power| power.aside);
        metal::tell_quantized(files, options::states_precision(files), made.session.graph());
        if insists {
            let notes = made.session.explain().notes;
            if !notes.is_empty() {
                return Err(failed(notes.join("; ")));
            }
        }
        Ok(made)
    }

    /// Power settings of a model's runs, where it has any.
    ///
    /// # Errors
    /// INVALID_ARG with the field, what was found and what was expected.
    fn power_of(&self, files: &ModelFiles) -> Result<Option<ModelPower>, ServingError> {
        let power = self.power.as_ref().filter(|_| files.metal.power().next().is_some());
        let power = power.map(|power| power(&files.name, &files.metal)).transpose();
        power.map_err(|error| ServingError::invalid_arg(format!("model '{}': {error}", files.name)))
    }

    fn session_on(
        &self,
        providers: &[Arc<dyn ExecutionProvider>],
        path: &Path,
        files: &ModelFiles,
        options: &SessionOptions,
    ) -> Result<LoadedGraph, String> {
        let prepare =
            |graph| Session::new(graph, providers, options).map_err(|error| error.to_string());
        if self.format == ModelFormat::CoreMl {
            let model = graph_model::read_core_ml(path, files.parameter(FUNCTION))?;
            let states = model.interface.states.iter();
            let states = states.map(|state| (state.input.clone(), state.zeros.clone()));
            let defaults = states.chain(model.interface.defaults.iter().cloned()).collect();
            let session = prepare(model.graph)?;
            let interface = Some(model.interface);
            return Ok(LoadedGraph { session, defaults, interface, aside: None });
        }
        let stated = options::states_precision(files);
        let quantization = metal::low_bits(&files.metal, providers, stated)
            .map(|bits| LoadQuantization::new(bits, &files.model_dir));
        // Such inputs change the graph: it is another one than that of the file.
        if !files.config.input.iter().any(|input| input.optional) {
            let cache = self.cache.as_deref();
            let change = quantization.as_ref().map(|one| one as &dyn GraphTransform);
            let prepared = model_cache::changed_session(cache, path, providers, options, change)?;
            let PreparedSession { session, origin, change } = prepared;
            tracing::debug!(model = %files.name, %origin, "prepared the model");
            if !needs_other_graph(&session, &files.config) {
                if let Some(line) = change {
                    tell_quantization(&files.name, &line);
                }
                return Ok(LoadedGraph {
                    session,
                    defaults: Vec::new(),
                    interface: None,
                    aside: None,
                });
            }
        }
        let mut graph = graph_model::read_onnx(path)?;
        if let Some(quantization) = &quantization {
            let (changed, line) = quantization.change(graph, providers, options);
            graph = changed;
            tell_quantization(&files.name, &line);
        }
        let defaults = defaults(&mut graph, &files.config);
        graph_model::maps_as_tensors(&mut graph)?;
        let session = prepare(graph)?;
        Ok(LoadedGraph { session, defaults, interface: None, aside: None })
    }
}

/// Says in the log what became of the weights of a model.
fn tell_quantization(model: &str, line: &str) {
    match line.starts_with("not ") {
        true => tracing::warn!(%model, "metal_config: {line}; the model computes as it says"),
        false => tracing::info!(%model, "metal_config: {line}"),
    }
}

/// A session on a model.
struct LoadedGraph {
    session: Session,
    /// Values of inputs that a request leaves out.
    defaults: Vec<(String, Tensor)>,
    /// Interface of a Core ML model: inputs, outputs and states.
    interface: Option<FunctionInterface>,
    /// Hook that the threads of instances call first.
    aside: Option<fn()>,
}

impl std::fmt::Debug for GraphBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphBackend")
            .field("format", &self.format)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ModelBackend for GraphBackend {
    fn name(&self) -> &'static str {
        match self.format {
            ModelFormat::Onnx => "onnxruntime",
            ModelFormat::CoreMl => "coreml",
        }
    }

    fn platform(&self) -> &'static str {
        match self.format {
            ModelFormat::Onnx => "onnxruntime_onnx",
            ModelFormat::CoreMl => "coreml",
        }
    }

    fn default_model_filename(&self) -> &'static str {
        match self.format {
            ModelFormat::Onnx => "model.onnx",
            ModelFormat::CoreMl => "model.mlpackage",
        }
    }

    fn recognises(&self, _model_dir: &Path, version_dir: Option<&Path>) -> bool {
        version_dir.is_some_and(|folder| found::holds_one(self.format, folder))
    }

    fn default_instance_count(&self, kind: PlacementKind) -> i32 {
        let least = if kind == PlacementKind::Cpu { 2 } else { 1 };
        // Where runs are divided, one waits while each unit has one.
        let shared = self.shared.as_ref().map(|(providers, _)| providers);
        let units = shared.map(|all| all.iter().filter(|one| !one.traits().is_fallback).count());
        let wished = units.map_or(0, |units| (units + 1).min(MAX_INSTANCES));
        i32::try_from(wished).map_or(least, |wished| wished.max(least))
    }

    fn takes_metal_config(&self) -> bool {
        true
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let config = &files.config;
        let path = found::model_path(self.format, self.default_model_filename(), files)?;
        let failed = |error: &dyn std::fmt::Display| {
            ServingError::internal(format!("failed to load model '{}': {error}", files.name))
        };
        let place = first_place(config, self.gpus.len());
        let (loaded, mapped) = collect_mapped_files(|| self.session(&path, files, place));
        let LoadedGraph { session, defaults, interface, aside } = loaded?;
        for io in session.inputs().iter().chain(session.outputs()) {
            let name = &io.name;
            let kind = io.kind;
            if kind != FactKind::Tensor {
                let map = matches!(kind, FactKind::Map(_) | FactKind::Maps(_));
                let hint = if map { ZIPMAP_HINT } else { "" };
                let text = format!("'{name}' is {kind}, inputs and outputs must be tensors{hint}");
                return Err(failed(&text));
            }
            if !io.dtype.is_on_wire() {
                let text = format!("'{name}' has type {}, which no request can carry", io.dtype);
                return Err(failed(&text));
            }
        }
        let states = interface.iter().flat_map(|interface| &interface.states);
        let mut io = ModelIo {
            inputs: session.inputs().iter().map(described).collect(),
            outputs: session.outputs().iter().map(described).collect(),
            states: states.map(state).collect(),
            picky: interface.iter().flat_map(|interface| &interface.inputs).any(is_picky),
        };
        for input in &mut io.inputs {
            input.optional = defaults.iter().any(|(name, _)| *name == input.name);
        }
        let made = SessionSource { backend: self.clone(), path, files: files.clone() };
        let sessions = Mutex::new(vec![(place, Arc::new(session))]);
        let mapped = Mutex::new(mapped);
        let interface = interface.map(Arc::new);
        let defaults = defaults.into();
        Ok(Box::new(GraphModel { sessions, mapped, made, io, defaults, interface, aside }))
    }
}

/// Treatment of a model that answers with maps.
const ZIPMAP_HINT: &str = " (skl2onnx gives scores as a tensor with options={'zipmap': False})";

/// Returns whether a model is served by another graph than that of its file: its outputs are maps, or the
/// configuration has inputs that are initializers of the file.
fn needs_other_graph(session: &Session, config: &ModelConfig) -> bool {
    let maps = |io: &IoInfo| matches!(io.kind, FactKind::Map(_) | FactKind::Maps(_));
    let has = |name: &str| session.inputs().iter().any(|info| info.name == name);
    session.outputs().iter().any(maps) || config.input.iter().any(|input| !has(&input.name))
}

/// Makes inputs of the initializers that the configuration calls inputs, and gives the values of optional ones: the graph
/// runs with these where a request has nothing else.
fn defaults(graph: &mut Graph, config: &ModelConfig) -> Vec<(String, Tensor)> {
    let mut found = Vec::new();
    for input in &config.input {
        let Some(id) = graph.find_value(&input.name) else { continue };
        let Some(value) = graph.value_mut(id).initializer.take() else { continue };
        // A default often has fewer elements than the tensors that take its place.
        graph.value_mut(id).declared = Some(Fact::unranked(value.dtype()));
        graph.inputs.push(id);
        if input.optional {
            found.push((input.name.clone(), value));
        }
    }
    found
}

fn state(state: &graph_model::RunState) -> StateBinding {
    let dims = state.zeros.shape().iter().map(|&len| i64::try_from(len).unwrap_or(i64::MAX));
    StateBinding {
        input: state.input.clone(),
        output: state.output.clone(),
        datatype: state.zeros.dtype(),
        dims: dims.collect(),
    }
}

/// Whether an input takes only some lengths of its first axis.
fn is_picky(feature: &ModelFeature) -> bool {
    let FeatureType::Array { shapes, .. } = &feature.kind else { return false };
    match shapes {
        FeatureShapes::Fixed => false,
        FeatureShapes::Enumerated(_) => true,
        FeatureShapes::Range(bounds) => {
            bounds.first().is_some_and(|&(low, high)| low > 1 || high.is_some())
        }
    }
}

/// Describes a tensor to clients. A value without axes has one element: configurations and requests know no scalars.
fn described(info: &IoInfo) -> ModelTensor {
    let known = |dim: &Dim| dim.known().and_then(|known| i64::try_from(known).ok()).unwrap_or(-1);
    let dims = match info.ranked && info.dims.is_empty() {
        true => vec![1],
        false => info.dims.iter().map(known).collect(),
    };
    ModelTensor {
        name: info.name.clone(),
        datatype: info.dtype,
        dims,
        ranked: info.ranked,
        optional: false,
    }
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

/// Source of further sessions of a model.
struct SessionSource {
    backend: GraphBackend,
    path: PathBuf,
    files: ModelFiles,
}

struct GraphModel {
    /// One for each place that an instance has: those at the same place share weights.
    sessions: Mutex<Vec<(PlacementKind, Arc<Session>)>>,
    /// Files that they were made of.
    mapped: Mutex<MappedFileSet>,
    made: SessionSource,
    io: ModelIo,
    /// Inputs that a request may leave out, with what they are then.
    defaults: Arc<[(String, Tensor)]>,
    interface: Option<Arc<FunctionInterface>>,
    aside: Option<fn()>,
}

impl BackendModel for GraphModel {
    fn io(&self) -> Option<&ModelIo> {
        Some(&self.io)
    }

    fn labels(&self) -> OrderedMap<String, Vec<String>> {
        let labels = self.interface.as_ref().and_then(|interface| interface.labels.as_ref());
        labels
            .map(|labels| (labels.probabilities.clone(), labels.names.clone()))
            .into_iter()
            .collect()
    }

    fn operations(&self) -> Option<OperationCounter> {
        // Whoever counts keeps no memory of a model that is gone.
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.first().map(|(_, session)| Arc::downgrade(session))?;
        Some(Arc::new(move || {
            session.upgrade().map_or(0, |session| session.report().plans.operations)
        }))
    }

    fn background_tuner(&self) -> Option<BackgroundTuner> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let divided = sessions.iter().filter(|(_, session)| session.divides());
        // Whoever tends keeps no memory of a model that is gone.
        let divided: Vec<Weak<Session>> =
            divided.map(|(_, session)| Arc::downgrade(session)).collect();
        let tunes = self.made.files.metal.switch("enable_auto_tuning");
        let any = !divided.is_empty() && tunes.is_none_or(|(_, tunes)| tunes);
        let model = self.made.files.name.clone();
        let tend = move |limit: Duration| {
            let live: Vec<Arc<Session>> = divided.iter().filter_map(Weak::upgrade).collect();
            live.iter().any(|session| match session.tune_placements(limit) {
                Ok(tended) => tended == TuningStep::Measured,
                Err(error) => {
                    tracing::info!(%model, "its ways could not be measured: {error}");
                    false
                }
            })
        };
        any.then(|| BackgroundTuner::new(tend))
    }

    fn kernel_tuner(&self, config: &ModelConfig) -> Option<Arc<dyn KernelTuner>> {
        let SessionSource { backend, files, .. } = &self.made;
        let enabled = files.metal.switch("enable_auto_tuning").map(|(_, enabled)| enabled);
        if !backend.tuning.models.measures(enabled) {
            return None;
        }
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions: Vec<_> = sessions.iter().map(|(_, session)| Arc::clone(session)).collect();
        let policy = metal::tuning_policy(&backend.tuning, &files.metal);
        Some(Arc::new(GraphKernelTuner::new(&files.name, &sessions, config, &policy)))
    }

    fn seats_groups(&self, groups: &[ModelInstanceGroup]) -> bool {
        // Which providers a session has depends on the devices that are asked for.
        let devices = |groups: &[ModelInstanceGroup]| -> OrderedSet<(i32, Vec<i32>)> {
            groups.iter().map(|group| (group.kind, group.gpus.clone())).collect()
        };
        devices(groups) == devices(&self.made.files.config.instance_group)
    }

    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let place = match placement.kind {
            PlacementKind::Model => PlacementKind::Cpu,
            place => place,
        };
        let session = self.session(place)?;
        let defaults = Arc::clone(&self.defaults);
        let interface = self.interface.clone();
        let movable = session.time_follows_shapes();
        let aside = self.aside;
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let host = self.made.files.host.clone();
        let instance = GraphInstance { session, movable, defaults, interface, aside, mapped, host };
        Ok(Box::new(instance))
    }
}

impl GraphModel {
    /// The session of a place, made when its first instance is.
    fn session(&self, place: PlacementKind) -> Result<Arc<Session>, ServingError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, session)) = sessions.iter().find(|(known, _)| *known == place) {
            return Ok(Arc::clone(session));
        }
        let SessionSource { backend, path, files } = &self.made;
        let (made, mapped) = collect_mapped_files(|| backend.session(path, files, place));
        let session = Arc::new(made?.session);
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner).extend(mapped);
        sessions.push((place, Arc::clone(&session)));
        Ok(session)
    }
}

struct GraphInstance {
    session: Arc<Session>,
    movable: bool,
    defaults: Arc<[(String, Tensor)]>,
    interface: Option<Arc<FunctionInterface>>,
    /// Hook that its thread calls before the first batch.
    aside: Option<fn()>,
    /// Files of the model that may be mapped.
    mapped: MappedFileSet,
    /// The server, which loads the model again when one of them changes.
    host: HostLink,
}

impl ModelInstance for GraphInstance {
    fn time_depends_on_sizes_only(&self) -> bool {
        self.movable
    }

    fn execute(&mut self, payload: BatchPayload) {
        if let Some(aside) = self.aside.take() {
            aside();
        }
        let location = location::of_batch(payload.requests());
        let deadline = payload.deadline();
        let _interruptible = InterruptibleScope::new(Some(payload.interrupt_source()));
        let changed = Cell::new(false);
        let void = batch::execute_unless(
            payload,
            |inputs| {
                let location = location?;
                let absent = self
                    .defaults
                    .iter()
                    .filter(|(name, _)| inputs.iter().all(|(given, _)| given != name));
                let named: Vec<(&str, Tensor)> = inputs
                    .iter()
                    .chain(absent)
                    .map(|(name, tensor)| Ok((name.as_str(), self.as_declared(name, tensor)?)))
                    .collect::<Result<_, ServingError>>()?;
                if let Some(interface) = &self.interface {
                    let given = named.iter().map(|(name, tensor)| (*name, tensor));
                    interface
                        .check(given)
                        .map_err(|text| ServingError::new(ErrorCode::InvalidArg, text))?;
                }
                let ran = self.session.run_tensors(Run {
                    placement: location,
                    deadline,
                    ..Run::named(&named)
                });
                changed.set(matches!(ran, Err(RuntimeError::ChangedFile(_))));
                let outputs = ran.map_err(|error| run_error(&error))?;
                let names = self.session.outputs().iter().map(|info| info.name.clone());
                names.zip(outputs).map(|(name, output)| Ok((name, with_axis(output)?))).collect()
            },
            || changed.get() || self.mapped.check().is_err(),
        );
        if let Some(void) = void {
            self.host.hand_on(void);
        }
    }
}

/// Error of a run as the core has it.
fn run_error(error: &RuntimeError) -> ServingError {
    let code = match error {
        RuntimeError::Interrupted => ErrorCode::Cancelled,
        error if error.is_input() => ErrorCode::InvalidArg,
        _ => ErrorCode::Internal,
    };
    ServingError::new(code, error.to_string())
}

impl GraphInstance {
    /// Takes the axis from a request's single element where the graph declares a value without axes.
    fn as_declared(&self, name: &str, tensor: &Tensor) -> Result<Tensor, ServingError> {
        let declared = self.session.inputs().iter().find(|info| info.name == name);
        let scalar = declared.is_some_and(|info| info.ranked && info.dims.is_empty());
        match scalar && tensor.elements() == 1 {
            true => Ok(tensor.reshape(&[])?),
            false => Ok(tensor.clone()),
        }
    }
}

/// Gives a value without axes one of length 1, as [`described`] says.
fn with_axis(tensor: Tensor) -> Result<Tensor, ServingError> {
    match tensor.shape().is_empty() {
        true => Ok(tensor.reshape(&[1])?),
        false => Ok(tensor),
    }
}
