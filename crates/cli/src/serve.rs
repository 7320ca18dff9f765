//! `galatea serve`, and the program name `tritonserver`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use galatea::devices::SoftwareGpus;
use galatea::power::{self, PowerOverrides};
use galatea::profile::ProfileRequest;
use galatea::{
    ErrorKind, KernelTuningOptions, RepositoryOptions, Server, gpus, host, memory_limit, models,
};
use galatea_apple::qos::ThreadQos;
use galatea_providers::HostCores;
use galatea_server::options::ServerOptions;
use galatea_server::server::RunningServer;
use galatea_server::{listen, logging};
use galatea_serving::config::MetalConfig;
use galatea_serving::rate_limiter::ResourceLimit;
use galatea_serving::repository::NameMeaning;
use galatea_serving::{ControlMode, CoreOptions};
use galatea_tensor::OrderedMap;

use super::{cache_folder, core_ml_worker, engine, mistake, say};
use crate::flags::{self, FlagMistake, ParsedCommand, ServerFlags};
use crate::served_paths::{ServedPaths, named_by_flag};
use crate::server_options::{
    checkpoint_defaults, exposure_warning, log_settings, metrics_config, server_options,
    test_setting,
};
use crate::signals::{OtherSignals, StopSignals};
use crate::startup;
use crate::usage::NO_TEXT;

/// Serves on the loopback.
pub(super) fn serve(arguments: &[OsString]) -> Result<ExitCode, String> {
    run(arguments, false)
}

/// Serves on every address, as Triton does.
pub(super) fn serve_as_triton(arguments: &[OsString]) -> Result<ExitCode, String> {
    run(arguments, true)
}

fn run(arguments: &[OsString], bind_all: bool) -> Result<ExitCode, String> {
    let texts: Option<Vec<String>> =
        arguments.iter().map(|one| one.to_str().map(str::to_owned)).collect();
    let Some(arguments) = texts else {
        return Ok(mistake(NO_TEXT, Some("serve")));
    };
    let arguments = if bind_all { arguments } else { named_by_flag(&arguments) };
    let environment = |name: &str| std::env::var(name).ok();
    let mut flags = match ServerFlags::parse_in(&arguments, bind_all, environment) {
        Ok(ParsedCommand::Serve(flags)) => flags,
        Ok(ParsedCommand::Help) => {
            say(flags::help().trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        Err(FlagMistake::Usage(text)) => return Ok(mistake(&text, Some("serve"))),
        Err(FlagMistake::Setting(text)) => return Err(text),
    };
    // Before the models are loaded, which takes longer.
    let options = server_options(&flags)?;
    options.check()?;
    if flags.is_set("cache-dir") {
        cache_folder::use_folder(Path::new(flags.text("cache-dir")))?;
    }
    core_ml_worker::announce();
    let variable = |name: &str| flags.environment(name);
    logging::start(log_settings(&flags), variable).map_err(|error| {
        format!("cannot open the log file '{}': {error}", flags.text("log-file"))
    })?;
    let _written = logging::FlushOnDrop;
    for warning in flags.warnings().into_iter().chain(exposure_warning(&flags)) {
        tracing::warn!("{warning}");
    }
    let served = ServedPaths::prepare(flags.all("model-repository"))?;
    flags.serve_repositories(&served.repositories);
    // Before the models are loaded: what they run then is in it.
    let profiler = engine().profiler();
    if flags.is_set("metal-capture-folder") {
        profiler.keep_captures(capture_folder(flags.text("metal-capture-folder"))?);
    }
    if flags.bool("metal-profile") {
        let file = Some(PathBuf::from(flags.text("metal-profile-output")));
        profiler.start(&ProfileRequest { file, ..ProfileRequest::default() })?;
    }
    listen::allow_connections();
    let runtime = runtime(&flags)?;
    let code = runtime.block_on(load_and_serve(flags, options));
    // However the server ended.
    profiler.close();
    // A load that goes on after a signal must not keep the program.
    runtime.shutdown_background();
    code
}

/// The folder that captures are written to.
fn capture_folder(text: &str) -> Result<PathBuf, String> {
    let folder = PathBuf::from(text);
    match folder.is_dir() {
        true => Ok(folder),
        false => {
            Err(format!("--metal-capture-folder '{text}' found, expected a folder that is there"))
        }
    }
}

/// Loads the models, opens the front ends and waits for the signal to stop, which may come at any time.
async fn load_and_serve(flags: ServerFlags, options: ServerOptions) -> Result<ExitCode, String> {
    // Before the first answer: as the first process of a container the program has no other way to be stopped.
    let mut interrupts = StopSignals::listen()?;
    let mut others = OtherSignals::listen()?;
    tracing::info!("Loading models from {}", flags.all("model-repository").join(", "));
    let _watch = gpus::Watch::start(engine().gpus());
    let timeout = Duration::from_secs(flags.number("exit-timeout-secs"));
    let models = tokio::select! {
        models = tokio::task::spawn_blocking(move || start_server(&flags)) => {
            models.map_err(|error| format!("loading the models failed: {error}"))??
        }
        () = interrupts.next() => {
            tracing::info!("Told to stop while the models were loading.");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let core = models.core();
    let server = match RunningServer::start(Arc::clone(core), engine().clone(), &options) {
        Ok(server) => server,
        Err(error) => {
            tracing::error!("{error}");
            core.shutdown(Duration::ZERO);
            return Ok(ExitCode::FAILURE);
        }
    };
    tracing::info!("{}", startup::ready(core, &server.addresses()));
    loop {
        tokio::select! {
            () = interrupts.next() => break,
            () = others.next_reload() => reload(&server),
        }
    }
    tokio::select! {
        code = stop(server, timeout) => Ok(code),
        () = interrupts.next() => {
            tracing::error!("Told to stop twice. Exiting immediately.");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reads again what may change while the server runs.
fn reload(server: &RunningServer) {
    // First, so that the lines about the rest stand in the new file.
    if let Err(why) = logging::reopen() {
        tracing::error!("{why}; the log goes on in the old one");
    }
    tracing::info!("Signal (1) received: reading keys and certificates again.");
    server.reload();
}

/// Loads the models and logs the outcome.
///
/// # Errors
/// Fails when the repositories cannot be read, or a model cannot be loaded and the flags say to end then.
pub(super) fn start_server(flags: &ServerFlags) -> Result<Server, String> {
    let _progress = LoadProgress::start();
    let server = Server::start(engine(), repository_options(flags)?).map_err(|error| {
        match error.kind() {
            ErrorKind::Device => format!("--provider: {error}"),
            ErrorKind::Server => {
                // The caller says it on the standard error, where the log is too unless it has a file.
                if !flags.text("log-file").is_empty() {
                    tracing::error!("creating server: {error}");
                }
                format!("creating server: {error}")
            }
            _ => error.to_string(),
        }
    })?;
    let core = server.core();
    tracing::info!("{}", startup::backends(server.backends(), core));
    tracing::info!("{}", startup::summary(core));
    if let Some(warning) = startup::nothing_to_serve(core) {
        tracing::warn!("{warning}");
    }
    tracing::info!("{}", startup::options(core, flags));
    Ok(server)
}

/// Time between two lines that say that models are still loading.
const LOADING_LINES: Duration = Duration::from_secs(10);

/// Says from time to time that models are still loading, until this is dropped.
struct LoadProgress(Option<std::sync::mpsc::Sender<()>>);

impl LoadProgress {
    fn start() -> Self {
        let (ended, end) = std::sync::mpsc::channel();
        let begun = std::time::Instant::now();
        let watch = move || {
            while end.recv_timeout(LOADING_LINES) == Err(RecvTimeoutError::Timeout) {
                tracing::info!("still loading models, for {:.0} s", begun.elapsed().as_secs_f64());
            }
        };
        // Without the thread nothing is said, and the models load as well.
        let thread = std::thread::Builder::new().name("load-progress".to_owned()).spawn(watch);
        Self(thread.is_ok().then_some(ended))
    }
}

impl Drop for LoadProgress {
    fn drop(&mut self) {
        // The thread sees that nobody is left to load.
        self.0.take();
    }
}

/// Reads what is served, and on which devices.
fn repository_options(flags: &ServerFlags) -> Result<RepositoryOptions, String> {
    let bytes = flags.number("model-cache-byte-size");
    Ok(RepositoryOptions {
        gpu_memory: memory_limit::of_gpus(flags.text("gpu-memory-limit"))?,
        gpu_submission: flags
            .is_set("gpu-submission-ms")
            .then(|| Duration::from_millis(flags.number("gpu-submission-ms"))),
        core: core_options(flags)?,
        device: flags.text("provider").to_owned(),
        software_gpus: match flags.bool("allow-software-gpu") {
            true => SoftwareGpus::Counted,
            false => SoftwareGpus::Ignored,
        },
        model_cache: models::model_cache(flags.text("model-cache-dir"), bytes),
        model_memory: memory_limit::of_models(
            flags.text("model-memory-limit"),
            host::machine_memory_bytes(),
        )?,
        checkpoints: checkpoint_defaults(flags)?,
        disabled_backends: flags.all("disable-backends").to_vec(),
        backends: Vec::new(),
        power: power::settings(power_overrides(flags), &metal_config(flags)?)?,
        tuning: tuning(flags)?,
    })
}

/// Reads whose kernels are measured while the server is idle, and within which limits.
fn tuning(flags: &ServerFlags) -> Result<KernelTuningOptions, String> {
    let models = flags.text("auto-tuning").parse();
    let text = flags.text("auto-tuning-share");
    let share = text.trim().parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    Ok(KernelTuningOptions {
        models: models.map_err(|error| format!("--auto-tuning: {error}"))?,
        time: Duration::from_secs(flags.number("auto-tuning-seconds")),
        share: share.ok_or_else(|| {
            format!("--auto-tuning-share: '{text}' found, expected a share of a core above 0 and up to 1")
        })?,
    })
}

fn power_overrides(flags: &ServerFlags) -> PowerOverrides<'_> {
    let protects = "enable-thermal-protection";
    PowerOverrides {
        thermal_protection: flags.is_set(protects).then(|| flags.bool(protects)),
        target_watts: Some(flags.text("power-target-watts")).filter(|text| !text.is_empty()),
    }
}

/// Flags that enable an endpoint and set its number of threads.
const THREADS: [(&str, &str); 4] = [
    ("allow-http", "http-thread-count"),
    ("allow-grpc", "grpc-infer-thread-count"),
    ("allow-sagemaker", "sagemaker-thread-count"),
    ("allow-vertex-ai", "vertex-ai-thread-count"),
];

/// A runtime with as many threads as the machine and the flags have.
pub(super) fn runtime(flags: &ServerFlags) -> Result<tokio::runtime::Runtime, String> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let open = THREADS.iter().filter(|(door, _)| flags.bool(door));
    let asked = open.map(|(_, name)| flags.number(name)).max().unwrap_or(0);
    let bound = usize::try_from(asked).unwrap_or(cores).max(1);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(bound))
        .thread_name("galatea-front")
        .on_thread_start(make_room)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the threads of the front ends: {error}"))
}

/// Leaves the fast cores to kernels, where there are others: requests are read and answered beside
/// them. A model that is so short that it runs on this thread has a fast core meanwhile.
fn make_room() {
    if HostCores::detect().mixed && engine().power().offloads() {
        // Where the system takes no such wish the thread runs as any other.
        let _ = ThreadQos::Utility.set();
    }
}

/// Closes the front ends and says how it went.
pub(super) async fn stop(server: RunningServer, timeout: Duration) -> ExitCode {
    tracing::info!("Waiting for in-flight requests to complete.");
    let report = server.stop(timeout).await;
    if report.complete {
        tracing::info!("All requests are answered after {:.1} s.", report.took.as_secs_f64());
        ExitCode::SUCCESS
    } else {
        tracing::error!(
            "Exit timeout expired. Exiting immediately. {} requests are unanswered",
            report.unanswered
        );
        ExitCode::FAILURE
    }
}

fn core_options(flags: &ServerFlags) -> Result<CoreOptions, String> {
    let count = |name: &str| usize::try_from(flags.number(name)).unwrap_or(usize::MAX);
    Ok(CoreOptions {
        repositories: flags.all("model-repository").iter().map(Into::into).collect(),
        naming: match flags.bool("model-namespacing") {
            true => NameMeaning::Namespaced,
            false => NameMeaning::Unique,
        },
        control_mode: control_mode(flags),
        strict_readiness: flags.bool("strict-readiness"),
        exit_on_error: flags.bool("exit-on-error"),
        auto_complete: !flags.bool("disable-auto-complete-config"),
        model_load_threads: count("model-load-thread-count").max(1),
        model_load_retries: count("model-load-retry-count"),
        model_config_name: Some(flags.text("model-config-name").to_owned())
            .filter(|name| !name.is_empty()),
        backend_config: backend_config(flags.all("backend-config"))?,
        metal_config: metal_config(flags)?,
        latencies: metrics_config(flags)?.latencies,
        server_id: flags.text("id").to_owned(),
        response_cache_bytes: response_cache_bytes(flags)?,
        rate_limits: rate_limits(flags)?,
        delay_scheduler: test_setting("TRITONSERVER_DELAY_SCHEDULER"),
        backlog_delay_scheduler: test_setting("TRITONSERVER_BACKLOG_DELAY_SCHEDULER"),
        ..CoreOptions::default()
    })
}

/// The resources that executions share, where they are limited.
fn rate_limits(flags: &ServerFlags) -> Result<Option<Vec<ResourceLimit>>, String> {
    let given = flags.all("rate-limit-resource");
    if !flags.text("rate-limit").eq_ignore_ascii_case("execution_count") {
        return Ok(None);
    }
    given.iter().map(|text| resource_limit(text)).collect::<Result<_, _>>().map(Some)
}

/// `name:count` or `name:count:device`.
fn resource_limit(text: &str) -> Result<ResourceLimit, String> {
    let wrong = || {
        format!(
            "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or \
             '<resource_name>:<count>'. Got {text}"
        )
    };
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or("");
    let count = parts.next().ok_or_else(wrong)?;
    let device = parts.next().map(|device| device.parse().map_err(|_| wrong())).transpose()?;
    if name.is_empty() || parts.next().is_some() {
        return Err(wrong());
    }
    Ok(ResourceLimit { name: name.to_owned(), count: count.parse().map_err(|_| wrong())?, device })
}

/// The size of the response cache, where there is one.
fn response_cache_bytes(flags: &ServerFlags) -> Result<Option<usize>, String> {
    let settings = flags.all("cache-config");
    let old = usize::try_from(flags.number("response-cache-byte-size")).unwrap_or(usize::MAX);
    if settings.is_empty() {
        return Ok((old > 0).then_some(old));
    }
    if old > 0 {
        return Err("--cache-config and --response-cache-byte-size are incompatible flags: the \
                    second is the old form of the first"
            .to_owned());
    }
    let mut size = None;
    for setting in settings {
        let (cache, pair) = setting.split_once(',').unwrap_or((setting, ""));
        if cache != "local" {
            let mut caches = settings.iter().map(|text| text.split(',').next().unwrap_or(""));
            return Err(if caches.any(|name| name == "local") {
                "found multiple cache configurations, but only a single cache is currently \
                 supported"
                    .to_owned()
            } else {
                format!(
                    "--cache-config names the cache '{cache}', but the only one here is 'local', in the memory of \
                     the server: --cache-config=local,size=<bytes>"
                )
            });
        }
        match pair.split_once('=') {
            Some(("size", bytes)) => {
                let bytes = bytes.parse().map_err(|_| {
                    format!("--cache-config=local,size must be a number of bytes, found '{bytes}'")
                })?;
                size = Some(bytes);
            }
            _ => {
                return Err(format!(
                    "--cache-config=local has the one setting 'size', found '{pair}'"
                ));
            }
        }
    }
    Ok(size)
}

/// Returns the mode that controls when models are loaded and unloaded.
fn control_mode(flags: &ServerFlags) -> ControlMode {
    match flags.text("model-control-mode").to_ascii_lowercase().as_str() {
        "explicit" => ControlMode::Explicit { load: flags.all("load-model").to_vec() },
        "poll" => {
            // As in Triton, 0 is never; so is what no process lives to see.
            let seconds = match flags.number("repository-poll-secs") {
                0 => u32::MAX,
                seconds => u32::try_from(seconds).unwrap_or(u32::MAX),
            };
            ControlMode::Poll { interval: Duration::from_secs(seconds.into()) }
        }
        _ => ControlMode::None,
    }
}

/// Returns the settings of `metal_config` that hold for all models.
fn metal_config(flags: &ServerFlags) -> Result<MetalConfig, String> {
    let settings = backend_config(flags.all("backend-config"))?;
    MetalConfig::of_server(flags.text("metal-config"), settings.get("metal"))
}

/// `backend,key=value`, or `key=value` for all backends.
fn backend_config(
    values: &[String],
) -> Result<OrderedMap<String, OrderedMap<String, String>>, String> {
    let mut config = OrderedMap::<String, OrderedMap<String, String>>::new();
    for text in values {
        let (backend, setting) = text.split_once(',').unwrap_or(("", text));
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            format!(
                "--backend-config option format is '<backend name>,<setting>=<value>'. Got {text}"
            )
        })?;
        config.entry(backend.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
    }
    Ok(config)
}
