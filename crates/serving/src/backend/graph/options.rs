//! Session options that a configuration asks for.

use std::sync::Arc;

use galatea_runtime::{
    CompileMode, ExecutionProvider, MAX_SESSION_THREADS, OptimiseLevel, ProviderWish,
    SessionOptions,
};
use galatea_tensor::OrderedMap;

use super::ProviderFactory;
use super::metal::{self, SessionTerms, StatedFields};
use crate::backend::{KernelTuningPolicy, ModelFiles};
use crate::config::ModelConfig;
use crate::config::metal::ACCELERATOR as METAL;
use crate::error::{ServingError, text_beginning};
use crate::graph_model::ModelFormat;

/// Most bytes of a wrong value in an error.
const SHOWN_BYTES: usize = 64;

/// Parameters of a configuration that ONNX Runtime knows and that mean nothing to a session here: whatever their
/// value, results and limits are the same.
const WITHOUT_EFFECT: &[&str] = &[
    "inter_op_thread_count",
    "execution_mode",
    "enable_mem_arena",
    "enable_mem_pattern",
    "memory.enable_memory_arena_shrinkage",
];

/// Options of the configuration, and after it of the server's settings, for the session.
pub(super) fn session_options(
    base: &SessionOptions,
    providers: &[Arc<dyn ExecutionProvider>],
    files: &ModelFiles,
    tuning: KernelTuningPolicy,
    format: ModelFormat,
) -> Result<SessionOptions, ServingError> {
    let mut options = base.clone();
    let parameter =
        |name: &str| files.parameter(name).or_else(|| files.settings.get(name).map(String::as_str));
    if let Some(text) = parameter("intra_op_thread_count") {
        let threads = text.trim().parse().ok().filter(|threads| *threads <= MAX_SESSION_THREADS);
        options.threads = threads.ok_or_else(|| {
            ServingError::invalid_arg(format!(
                "parameter 'intra_op_thread_count' must be an integer from 0 to {MAX_SESSION_THREADS}, found '{}'",
                text_beginning(text, SHOWN_BYTES)
            ))
        })?;
    }
    for name in WITHOUT_EFFECT.iter().filter(|name| files.parameter(name).is_some()) {
        tracing::info!(model = %files.name, parameter = name, "this parameter has no effect here");
    }
    if let Some(text) = precision(&files.config).or_else(|| parameter("precision")) {
        options.precision = text.parse().map_err(|error| {
            ServingError::invalid_arg(format!("parameter 'precision': {error}"))
        })?;
    }
    // What is warmed up must be what serves.
    if !files.config.model_warmup.is_empty() {
        options.compile = CompileMode::Wait;
    }
    let known: Vec<&str> = providers.iter().map(|provider| provider.name()).collect();
    let preferred = accelerators(&files.config, &known)?;
    options.optimise = match parameter("optimization_level") {
        Some(text) => text.parse().map_err(|error| {
            ServingError::invalid_arg(format!("parameter 'optimization_level': {error}"))
        })?,
        None => {
            let first = preferred.first();
            let first = first.and_then(|name| providers.iter().find(|one| one.name() == name));
            let usual =
                first.map_or(base.optimise, |first| base.optimise.min(first.traits().optimise));
            graph_level(&files.config).unwrap_or(usual)
        }
    };
    let stated = StatedFields {
        precision: states_precision(files),
        level: files.parameter("optimization_level").is_some()
            || graph_level(&files.config).is_some(),
    };
    metal::session(&mut options, files, providers, &SessionTerms { stated, tuning, format })?;
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

/// Whether a model's configuration has a precision of its own.
pub(super) fn states_precision(files: &ModelFiles) -> bool {
    precision(&files.config).or_else(|| files.parameter("precision")).is_some()
}

/// A name of accelerators of configurations, and the provider of it.
struct AcceleratorName {
    name: &'static str,
    provider: &'static str,
}

/// Accelerators that are not called as their providers are.
const ACCELERATORS: &[AcceleratorName] = &[
    // Triton's Metal backend, whose parameters say how the GPU keeps memory.
    AcceleratorName { name: "metal", provider: "gpu" },
    AcceleratorName { name: "apple_neural_engine", provider: "coreml" },
    AcceleratorName { name: "coreml", provider: "coreml" },
];

/// The provider of an accelerator for GPUs.
fn provider_of(name: &str) -> &str {
    ACCELERATORS.iter().find(|known| known.name == name).map_or(name, |known| known.provider)
}

/// The providers of a model: those of its place, with the parameters that the configuration gives the accelerators
/// among [`ACCELERATORS`]. One of the `optional` providers, which serve whoever asks for them, comes first where the
/// configuration names it, and takes whatever it can.
///
/// # Errors
/// INVALID_ARG with the field, what was found and what was expected.
pub(super) fn configured(
    mut providers: ProviderFactory,
    optional: &ProviderFactory,
    files: &ModelFiles,
) -> Result<ProviderFactory, ServingError> {
    let config = &*files.config;
    let mut given: OrderedMap<&str, OrderedMap<String, String>> = OrderedMap::new();
    let wishes = config.optimization.as_ref().and_then(|w| w.execution_accelerators.as_ref());
    let wishes = wishes.map_or(&[][..], |wishes| &wishes.gpu_execution_accelerator);
    for wish in wishes {
        let Some(known) = ACCELERATORS.iter().find(|known| known.name == wish.name) else {
            continue;
        };
        let at = providers.iter().position(|provider| provider.name() == known.provider);
        let at = match at {
            Some(at) => at,
            None => {
                let found = optional.iter().find(|provider| provider.name() == known.provider);
                let Some(found) = found else { continue };
                providers.insert(0, found.forced().unwrap_or_else(|| Arc::clone(found)));
                0
            }
        };
        given.entry(known.provider).or_default().extend(wish.parameters.clone());
        // Its parameters are fields that other places may have as well.
        if known.name == METAL {
            continue;
        }
        let Some(provider) = providers.get_mut(at) else { continue };
        let settings = ProviderWish { settings: Some(&wish.parameters), forced: false };
        let own = provider.variant(&settings).map_err(|problem| {
            let field = "optimization.execution_accelerators.gpu_execution_accelerator";
            ServingError::invalid_arg(format!(
                "{field} '{}' of model '{}': {problem}",
                known.name, config.name
            ))
        })?;
        if let Some(own) = own {
            *provider = own;
        }
    }
    metal::configured(providers, &files.metal, &config.name, &given)
}

/// The `precision` among the parameters of an accelerator for the processor.
fn precision(config: &ModelConfig) -> Option<&str> {
    let wishes = config.optimization.as_ref()?.execution_accelerators.as_ref()?;
    let mut wishes = wishes.cpu_execution_accelerator.iter();
    wishes.find_map(|wish| wish.parameters.get("precision")).map(String::as_str)
}

/// Level of `optimization { graph { level } }`: below 0 the least, above 0 fusions, 0 all, as Triton's ONNX
/// backend has it.
fn graph_level(config: &ModelConfig) -> Option<OptimiseLevel> {
    let level = config.optimization.as_ref()?.graph.as_ref()?.level;
    Some(match level {
        ..0 => OptimiseLevel::O1,
        0 => OptimiseLevel::O3,
        1.. => OptimiseLevel::O2,
    })
}

/// Whether the configuration says which units a model is to run on.
pub(super) fn accelerated(config: &ModelConfig) -> bool {
    let wishes = config.optimization.as_ref().and_then(|w| w.execution_accelerators.as_ref());
    wishes.is_some_and(|wishes| {
        let cpu = wishes.cpu_execution_accelerator.iter().map(|wish| &wish.name);
        cpu.chain(wishes.gpu_execution_accelerator.iter().map(|wish| &wish.name)).count() > 0
    })
}

/// The accelerators that the configuration asks for, as names of providers.
///
/// # Errors
/// When one for the processor is not known. One for GPUs that is not known counts for GPUs only, as with Triton, and
/// is left out here with a line in the log.
fn accelerators(config: &ModelConfig, known: &[&str]) -> Result<Vec<String>, ServingError> {
    let wishes =
        config.optimization.as_ref().and_then(|wishes| wishes.execution_accelerators.as_ref());
    let Some(wishes) = wishes else { return Ok(Vec::new()) };
    let mut preferred = Vec::new();
    for wish in &wishes.cpu_execution_accelerator {
        if !known.contains(&wish.name.as_str()) {
            return Err(ServingError::invalid_arg(format!(
                "unknown Execution Accelerator '{}' is requested; the execution providers here are {}",
                wish.name,
                known.join(", ")
            )));
        }
        preferred.push(wish.name.clone());
    }
    for wish in &wishes.gpu_execution_accelerator {
        let name = provider_of(&wish.name);
        if known.contains(&name) {
            preferred.push(name.to_owned());
        } else {
            tracing::warn!(model = %config.name, accelerator = %wish.name, "this GPU accelerator is not here");
        }
    }
    Ok(preferred)
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
