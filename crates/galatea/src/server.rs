//! Servers of model repositories, in this process.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use galatea_runtime::power::PowerSettings;
use galatea_serving::backend::{KernelTuningPolicy, ModelBackend};
use galatea_serving::model_cache::ModelCache;
use galatea_serving::request::{InferenceRequest, InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, ShutdownReport};
use galatea_tensor::Tensor;

use crate::background_tuning::TuningThread;
use crate::devices::{AUTO, SoftwareGpus};
use crate::disabled::without_disabled;
use crate::kernel_tuning::KernelTuningOptions;
use crate::memory_limit::MemoryBound;
use crate::models::{CheckpointDefaults, ModelMachine};
use crate::power::PowerWatch;
use crate::{Engine, Error, ErrorKind};

/// Settings of a server of model repositories.
///
/// ```
/// use galatea::{RepositoryOptions, serving::CoreOptions};
///
/// let core = CoreOptions { repositories: vec!["models".into()], ..CoreOptions::default() };
/// let options = RepositoryOptions { core, ..RepositoryOptions::default() };
/// assert_eq!(options.device, "auto");
/// ```
#[derive(Debug)]
pub struct RepositoryOptions {
    /// Repositories, and when their models are loaded.
    pub core: CoreOptions,
    /// Device or list of devices of models that ask for none.
    pub device: String,
    /// Treatment of software GPUs.
    pub software_gpus: SoftwareGpus,
    /// Limit on the memory of a GPU; what the GPU recommends, if there is none.
    pub gpu_memory: Option<MemoryBound>,
    /// Predicted time of a submission to a GPU at most, unless a model sets one; the GPU's own bound, if there is none.
    pub gpu_submission: Option<Duration>,
    /// Cache of prepared models.
    pub model_cache: Option<ModelCache>,
    /// Limit on the memory of checkpoints, in bytes.
    pub model_memory: Option<u64>,
    /// Settings of checkpoints that are silent about them.
    pub checkpoints: CheckpointDefaults,
    /// Names of backends that load nothing.
    pub disabled_backends: Vec<String>,
    /// Further backends, which go before those of the library.
    pub backends: Vec<Arc<dyn ModelBackend>>,
    /// Power and heat that the models may cause.
    pub power: PowerSettings,
    /// Tuning of kernels in idle moments.
    pub tuning: KernelTuningOptions,
}

impl Default for RepositoryOptions {
    fn default() -> Self {
        Self {
            core: CoreOptions::default(),
            device: AUTO.to_owned(),
            software_gpus: SoftwareGpus::Ignored,
            gpu_memory: None,
            gpu_submission: None,
            model_cache: None,
            model_memory: None,
            checkpoints: CheckpointDefaults::default(),
            disabled_backends: Vec::new(),
            backends: Vec::new(),
            power: PowerSettings::default(),
            tuning: KernelTuningOptions::default(),
        }
    }
}

/// A server of model repositories without a wire: it loads, schedules, batches and runs as Triton does.
///
/// ```
/// use galatea::{Engine, Tensor};
/// use galatea::serving::{ControlMode, CoreOptions};
///
/// let core = CoreOptions {
///     repositories: vec!["../../examples/models".into()],
///     control_mode: ControlMode::Explicit { load: vec!["simple".to_owned()] },
///     ..CoreOptions::default()
/// };
/// let server = galatea::Server::start(&Engine::new(), galatea::RepositoryOptions { core, ..Default::default() })?;
/// let ones = Tensor::from_vec(&[1, 16], vec![1_i32; 16])?;
/// let outputs = server.infer("simple", &[("INPUT0", ones.clone()), ("INPUT1", ones)])?;
/// assert_eq!(outputs[0].1.to_vec::<i32>()?, vec![2; 16]);
/// server.stop(std::time::Duration::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    core: Arc<Core>,
    engine: Engine,
    backends: Vec<Arc<dyn ModelBackend>>,
    _power: PowerWatch,
    _tuning: TuningThread,
}

impl Engine {
    /// Serves the models of a repository, in this process.
    ///
    /// # Errors
    /// Fails as [`Server::start`] does.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// assert!(server.core().is_ready());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn server(&self, repository: impl AsRef<Path>) -> Result<Server, Error> {
        let repositories = vec![repository.as_ref().to_owned()];
        let core = CoreOptions { repositories, ..CoreOptions::default() };
        Server::start(self, RepositoryOptions { core, ..RepositoryOptions::default() })
    }
}

impl Server {
    /// Loads the models of the repositories.
    ///
    /// # Errors
    /// Fails for a device or backend that does not exist, a repository that cannot be read, and, where the options say
    /// so, a model that cannot be loaded.
    ///
    /// ```
    /// let error = galatea::Server::start(&galatea::Engine::new(), Default::default()).unwrap_err();
    /// assert!(error.to_string().contains("repository"), "{error}");
    /// ```
    pub fn start(engine: &Engine, options: RepositoryOptions) -> Result<Self, Error> {
        if options.core.repositories.is_empty() {
            return Err(Error::new(ErrorKind::Input, "--model-repository must be specified"));
        }
        engine.power().adopt(options.power);
        // Before a GPU is opened.
        engine.gpus().limit_memory(options.gpu_memory).map_err(Error::of(ErrorKind::Input))?;
        let bounded = engine.gpus().bound_submissions(options.gpu_submission);
        bounded.map_err(Error::of(ErrorKind::Input))?;
        let gpus = engine.gpu_providers(options.software_gpus);
        let mut core_options = options.core;
        core_options.intervals = engine.profiler().intervals().clone();
        core_options.gpus = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
        let shared = engine.shared_providers(&options.device, &gpus);
        let (shared, routing) = shared.map_err(Error::of(ErrorKind::Device))?;
        let own = engine.backends_with(
            options.model_cache,
            options.checkpoints,
            options.model_memory,
            ModelMachine { gpus, shared, routing, tuning: policy(&options.tuning) },
        );
        let all = options.backends.into_iter().chain(own).collect();
        let backends = without_disabled(all, &options.disabled_backends);
        let backends = backends.map_err(Error::of(ErrorKind::Input))?;
        let core = Core::start(core_options, backends.clone())
            .map_err(|error| Error::new(ErrorKind::Server, error.nested()))?;
        Ok(Self {
            _power: PowerWatch::start(engine.power(), options.power, &core),
            _tuning: TuningThread::start(engine, &core, options.tuning.share),
            core,
            engine: engine.clone(),
            backends,
        })
    }

    /// Returns the core, for what this type has no method for: loads, statistics, streams.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// for model in server.core().repository_index(false) {
    ///     println!("{}", model.name);
    /// }
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns the engine whose devices the models run on.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// println!("{:?}", server.engine().device_reports());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the backends in the order in which models are offered to them.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// assert!(server.backends().iter().any(|backend| backend.name() == "onnxruntime"));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn backends(&self) -> &[Arc<dyn ModelBackend>] {
        &self.backends
    }

    /// Runs a model on named inputs, through its queue and batcher, and waits for the outputs with their names.
    ///
    /// # Errors
    /// Fails when the model is not ready, an input does not fit, or the run fails.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// let input = galatea::Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0]).unwrap();
    /// let outputs = server.infer("my_model", &[("x", input)])?;
    /// println!("{outputs:?}");
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn infer(
        &self,
        model: &str,
        inputs: &[(&str, Tensor)],
    ) -> Result<Vec<(String, Tensor)>, Error> {
        let request = InferenceRequest {
            model_name: model.to_owned(),
            inputs: inputs.iter().map(|(name, tensor)| input(name, tensor)).collect(),
            ..InferenceRequest::default()
        };
        let (sender, answers) = sync_channel(1);
        let sink = Box::new(move |answer| {
            // A decoupled model may send more answers than anybody takes.
            drop(sender.try_send(answer));
        });
        self.core.infer(request, sink).map_err(Error::of(ErrorKind::Server))?;
        let answer = answers.recv().map_err(Error::of(ErrorKind::Server))?;
        let response = answer.result.map_err(Error::of(ErrorKind::Run))?;
        let outputs = response.map(|response| response.outputs).unwrap_or_default();
        Ok(outputs.into_iter().map(|output| (output.name, output.tensor)).collect())
    }

    /// Lets requests under way finish for so long, and stops.
    ///
    /// ```no_run
    /// let server = galatea::Engine::new().server("models")?;
    /// let report = server.stop(std::time::Duration::from_secs(30));
    /// assert!(report.complete);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn stop(self, timeout: Duration) -> ShutdownReport {
        self.core.shutdown(timeout)
    }
}

/// Policy on tuning kernels that all backends share.
fn policy(options: &KernelTuningOptions) -> KernelTuningPolicy {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    KernelTuningPolicy { models: options.models, time: options.time, cores }
}

fn input(name: &str, tensor: &Tensor) -> InputTensor {
    InputTensor {
        name: name.to_owned(),
        datatype: tensor.dtype(),
        shape: tensor.shape().iter().map(|&len| i64::try_from(len).unwrap_or(i64::MAX)).collect(),
        data: InputData::Tensor(tensor.clone()),
    }
}
