//! A partition as a package that an engine runs.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Instant;

use galatea_formats::coreml::{NewPackage, write_package};
use galatea_graph::Datum;
use galatea_runtime::power::PowerPolicy;
use galatea_runtime::{
    CompileMode, Executable, ExecutableTraits, IntervalKind, PartitionReport, PartitionResult,
    PartitionRun, PlacedOperator, RunFence, RuntimeError, SessionOptions, WatchSource,
};
use galatea_tensor::{OrderedMap, Tensor};

use super::cache::{self, CompiledCache, CompiledPackage};
use super::estimated_rows::estimated_rows;
use super::records::TextRecords;
use super::{
    CoreMl, CoreMlEngine, EngineError, EngineErrorKind, EngineLoadOptions, EngineModel,
    NamedTensor, ProgramInterpreter, WorkerCommand, WorkerEngine, WorkerLimits, counts, power,
};
use crate::NAME;

/// Function that notes the plans of an engine's packages.
pub(crate) type PlanRecorder = Arc<dyn Fn(&NewPackage, &[PlacedOperator]) + Send + Sync>;

/// Resources that a program gives the engines that run in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineHost {
    /// The command that starts a worker: a program that calls [`super::serve_here`].
    pub worker: WorkerCommand,
    /// Where compiled packages are kept.
    pub cache: CompiledCache,
    /// Sentence for the log when the cache is first used, such as that it does not outlast the process.
    pub warning: Option<String>,
}

static HOST: OnceLock<EngineHost> = OnceLock::new();

/// Says once how workers are started and where compiled packages are kept; a later call changes nothing.
pub fn set_host(host: EngineHost) {
    // The first one stays.
    drop(HOST.set(host));
}

/// Returns the program's records of findings; `None` if it has no cache.
pub(crate) fn records() -> Option<TextRecords> {
    TextRecords::beside(&HOST.get()?.cache)
}

/// The program's only worker, and the cache; none where the program has none.
fn shared() -> Option<(Arc<WorkerEngine>, CompiledCache)> {
    static ENGINE: Mutex<Option<Arc<WorkerEngine>>> = Mutex::new(None);
    let host = HOST.get()?;
    let mut engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || {
        if let Some(warning) = &host.warning {
            tracing::warn!("{warning}");
        }
        Arc::new(WorkerEngine::new(host.worker.clone(), WorkerLimits::default()))
    };
    Some((Arc::clone(engine.get_or_insert_with(made)), host.cache.clone()))
}

/// Names of the settings that hold for whole packages.
const WHOLE_PACKAGES: &str = "worker, power_mode";

/// Engine for whole packages, with the cache of compiled packages and the options of loading.
pub type ChosenEngine = (Arc<dyn CoreMlEngine>, CompiledCache, EngineLoadOptions);

/// The engine for whole packages under the settings `worker` (`on` or `off`; a process of its own, which macOS
/// has where nothing is said) and `power_mode`. Core ML on macOS, elsewhere the interpreter. `None` where the
/// program has not said where compiled packages are kept.
///
/// # Errors
/// Names a setting that is none of these, or its value.
pub fn chosen(settings: &OrderedMap<String, String>) -> Result<Option<ChosenEngine>, String> {
    let mut choice = EngineChoice::default();
    for (name, value) in settings {
        let unknown = || Err(format!("'{name}' found, expected one of {WHOLE_PACKAGES}"));
        choice.set(name, value).unwrap_or_else(unknown)?;
    }
    if choice.compile.is_some() {
        return Err(format!(
            "'compile' found, expected one of {WHOLE_PACKAGES}: a package is compiled before it is loaded"
        ));
    }
    let Some((worker, cache)) = shared() else { return Ok(None) };
    let engine: Arc<dyn CoreMlEngine> =
        match (choice.runs(), cfg!(any(target_os = "macos", apple_doubles))) {
            (true, _) => worker,
            (false, true) => Arc::new(CoreMl),
            (false, false) => Arc::new(ProgramInterpreter),
        };
    Ok(Some((engine, cache, choice.load_options())))
}

/// Which engine partitions run in, as settings say it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineChoice {
    /// True if a worker runs them; the default is true on macOS only.
    worker: Option<bool>,
    /// The default is balanced.
    power: Option<PowerPolicy>,
    /// Compile mode of partitions; the default is that of the session's options.
    compile: Option<CompileMode>,
}

impl EngineChoice {
    /// The names of the settings.
    pub(crate) const NAMES: &str = "worker, power_mode, compile";

    /// Takes a setting; `None` where it is none of these.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let result = match (name, value) {
            ("worker", "on" | "off") => {
                self.worker = Some(value == "on");
                Ok(())
            }
            ("worker", _) => Err(format!("worker '{value}' found, expected on or off")),
            ("power_mode", _) => {
                let policy = value.parse().map(|policy| self.power = Some(policy));
                policy.map_err(|error: String| format!("power_mode {error}"))
            }
            ("compile", _) => {
                let mode = value.parse().map(|mode| self.compile = Some(mode));
                mode.map_err(|error: String| format!("compile {error}"))
            }
            _ => return None,
        };
        Some(result)
    }

    /// Returns whether a worker runs partitions.
    pub(crate) fn runs(&self) -> bool {
        self.worker.unwrap_or(cfg!(any(target_os = "macos", apple_doubles))) && HOST.get().is_some()
    }

    /// Returns how packages are loaded.
    pub(crate) fn load_options(&self) -> EngineLoadOptions {
        power::options(self.policy())
    }

    fn policy(&self) -> PowerPolicy {
        self.power.unwrap_or_default()
    }

    /// Returns a sentence for each setting that was given and has no effect here, with the reason.
    pub(crate) fn idle(&self) -> Vec<String> {
        if self.runs() {
            return Vec::new();
        }
        let worker = (self.worker == Some(true)).then(|| {
            "worker 'on' has no effect: this program has named no worker, so partitions run in its process"
                .to_owned()
        });
        let for_workers =
            [("power_mode", self.power.is_some()), ("compile", self.compile.is_some())];
        let others = for_workers.into_iter().filter(|(_, given)| *given).map(|(name, _)| {
            format!("{name} has no effect: it holds for partitions that a worker runs, and the interpreter runs them here")
        });
        worker.into_iter().chain(others).collect()
    }

    /// Returns, as text, the settings that results depend on.
    pub(crate) fn text(&self) -> String {
        format!("worker {} on {:?}", self.runs(), self.policy())
    }

    /// Returns whether a partition of a session with these options waits until it is compiled.
    pub(crate) fn mode(&self, options: &SessionOptions) -> CompileMode {
        self.compile.unwrap_or(options.compile)
    }

    /// Returns a function that loads a package in the program's worker and reports its plan; `None`
    /// if partitions do not run there.
    pub(crate) fn maker(
        &self,
        package: NewPackage,
        noted: Option<PlanRecorder>,
        watch: WatchSource,
    ) -> Option<impl FnOnce() -> Result<PackageRun, String> + Send + use<>> {
        if !self.runs() {
            return None;
        }
        let (engine, cache) = shared()?;
        let options = self.load_options();
        Some(move || {
            let made = PackageRun::new(&*engine, &cache, &package, &options);
            let made = made.map_err(|error| error.to_string())?.watched(watch);
            if let Some(note) = noted {
                note(&package, &made.placed);
            }
            Ok(made)
        })
    }
}

/// A package in an engine. Its inputs and outputs are those of the package's function, in their order.
pub struct PackageRun {
    model: Arc<dyn EngineModel>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    placed: Arc<Vec<PlacedOperator>>,
    watch: WatchSource,
    /// Stays in the cache for as long as it is loaded.
    _compiled: CompiledPackage,
}

impl fmt::Debug for PackageRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageRun").field("model", &self.model).finish_non_exhaustive()
    }
}

/// A folder that goes when the value does.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What is left over is found by its age.
        drop(fs::remove_dir_all(&self.0));
    }
}

impl PackageRun {
    /// Compiles a package with one function, or finds it compiled, and loads it.
    ///
    /// # Errors
    /// Fails when the package cannot be written, compiled or loaded.
    pub fn new(
        engine: &dyn CoreMlEngine,
        cache: &CompiledCache,
        package: &NewPackage,
        options: &EngineLoadOptions,
    ) -> Result<Self, EngineError> {
        let described = package.functions.first();
        let missing = || EngineError::new(EngineErrorKind::Load, "the package has no function");
        let described = described.ok_or_else(missing)?;
        let names = |list: &[galatea_formats::coreml::ModelFeature]| -> Vec<String> {
            list.iter().map(|feature| feature.name.clone()).collect()
        };
        let inputs = names(&described.inputs);
        let outputs = names(&described.outputs);
        let passing = TemporaryFolder(cache.passing()?);
        let path = passing.0.join("model.mlpackage");
        write_package(&path, package).map_err(|error| EngineError::file(&path, error))?;
        let compiled = cache.compiled(engine, &path, &cache::facts())?;
        drop(passing);
        let model = engine.load(compiled.path(), options)?;
        // It is for people; a system that is too old for it runs the model as well.
        let planned = engine.plan(compiled.path(), options).unwrap_or_else(|error| {
            tracing::debug!("there is no plan of a package: {error}");
            Vec::new()
        });
        let placed = planned.into_iter().filter_map(|row| {
            Some(PlacedOperator {
                operator: row.operator,
                outputs: row.outputs,
                planned: row.planned?,
                supported: row.supported,
                weight: row.weight,
            })
        });
        let placed = Arc::new(placed.collect());
        let watch = WatchSource::default();
        Ok(Self { model, inputs, outputs, placed, watch, _compiled: compiled })
    }

    /// The same with a source that knows whether predictions are recorded.
    #[must_use]
    pub fn watched(self, watch: WatchSource) -> Self {
        Self { watch, ..self }
    }
}

/// The outputs by name in the order of the package.
fn ordered(names: &[String], given: Vec<NamedTensor>) -> Result<Vec<Datum>, RuntimeError> {
    let mut given: Vec<Option<NamedTensor>> = given.into_iter().map(Some).collect();
    let take = |name: &String| {
        let found = given.iter_mut().find(|one| one.as_ref().is_some_and(|one| one.0 == *name));
        let tensor: Option<Tensor> = found.and_then(Option::take).map(|one| one.1);
        let missing = || RuntimeError::provider(NAME, format!("output '{name}' is missing"));
        tensor.map(Datum::Tensor).ok_or_else(missing)
    };
    names.iter().map(take).collect()
}

/// Turns a failure into an error of the session.
fn told(error: EngineError) -> RuntimeError {
    let hung = error.kind == EngineErrorKind::Hung;
    match error.kind {
        EngineErrorKind::Argument => RuntimeError::Input(error.text),
        EngineErrorKind::Died | EngineErrorKind::Hung | EngineErrorKind::Resting => {
            RuntimeError::Lost { provider: NAME.to_owned(), message: error.text, hung }
        }
        _ => RuntimeError::provider(NAME, error),
    }
}

impl Executable for PackageRun {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let mut named = Vec::with_capacity(run.inputs.len());
        for (name, datum) in self.inputs.iter().zip(run.inputs) {
            match datum.into_tensor() {
                Ok(tensor) => named.push((name.clone(), tensor)),
                Err(error) => {
                    let error = RuntimeError::provider(NAME, error);
                    return RunFence::failed(error);
                }
            }
        }
        counts::prediction();
        let (sender, receiver) = mpsc::channel();
        let recorded = self.watch.interval(IntervalKind::Prediction);
        let begin = Instant::now();
        let done = move |result| {
            drop(recorded);
            // Whoever does not wait does not hear of it.
            drop(sender.send((result, begin.elapsed())));
        };
        self.model.submit(named, None, Box::new(done));
        let outputs = self.outputs.clone();
        let plan = run.profile.then(|| Arc::clone(&self.placed));
        RunFence::pending(move || {
            let forgotten = |_| RuntimeError::provider(NAME, "a prediction was forgotten");
            let (result, time) = receiver.recv().map_err(forgotten)?;
            let outputs = ordered(&outputs, result.map_err(told)?)?;
            let rows = plan.map(|plan| estimated_rows(&plan, time)).unwrap_or_default();
            Ok(PartitionResult { outputs, rows })
        })
    }

    fn report(&self) -> PartitionReport {
        // The weights lie in the engine's own memory or in another process.
        PartitionReport { placed: Vec::clone(&self.placed), ..PartitionReport::default() }
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        ExecutableTraits { times_steps: true, ..ExecutableTraits::default() }
    }
}
