//! Effects of `metal_config` on the session of a graph.

use std::sync::Arc;
use std::time::Duration;

use galatea_graph::Graph;
use galatea_runtime::tune::ChoiceSource;
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Precision, ProviderWish, SessionOptions};
use galatea_tensor::OrderedMap;

use super::ProviderFactory;
use crate::backend::{KernelTuningPolicy, ModelFiles};
use crate::config::metal::latency::LATENCY_GOAL;
use crate::config::metal::{MetalConfig, MetalSetting};
use crate::error::ServingError;
use crate::graph_model::ModelFormat;
use crate::low_bits::{LowBits, quantized_operator};

/// Names of providers that fields are for.
const GPU: &str = "gpu";
const CORE_ML: &str = "coreml";

/// The field with the most seconds that kernels of a model are measured.
const TUNING_SECONDS: &str = "auto_tuning_seconds";

/// Sets of input shapes whose bound kernels are kept where `persistent_kernels` asks for it.
const PERSISTENT_PLANS: usize = 512;

/// Other fields of a model's configuration, which win over `metal_config`.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedFields {
    /// Precision of matrix multiplications.
    pub(super) precision: bool,
    /// How far the graph is rewritten.
    pub(super) level: bool,
}

/// Facts that the session of a model depends on besides `metal_config`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionTerms {
    pub(super) stated: StatedFields,
    pub(super) tuning: KernelTuningPolicy,
    pub(super) format: ModelFormat,
}

/// Fields that act and those that do not, for the log.
#[derive(Default)]
pub(in crate::backend) struct FieldAccount {
    act: Vec<String>,
    idle: Vec<String>,
}

impl FieldAccount {
    pub(in crate::backend) fn act(&mut self, setting: &MetalSetting, how: &str) {
        self.act.push(format!("{} {} ({how})", setting.field, setting.text));
    }

    pub(in crate::backend) fn idle(&mut self, setting: &MetalSetting, why: &str) {
        self.idle.push(setting.refused(why));
    }

    pub(in crate::backend) fn log(&self, model: &str) {
        if !self.act.is_empty() {
            tracing::info!(%model, "metal_config: {}", self.act.join("; "));
        }
        for refused in &self.idle {
            tracing::warn!(%model, "metal_config: {refused}");
        }
    }
}

/// Takes what is asked of a session, and says in the log what acts and what does not.
///
/// # Errors
/// INVALID_ARG for a value that a unit does not take.
pub(super) fn session(
    options: &mut SessionOptions,
    files: &ModelFiles,
    providers: &[Arc<dyn ExecutionProvider>],
    terms: &SessionTerms,
) -> Result<(), ServingError> {
    let SessionTerms { stated, tuning, format } = *terms;
    let metal = &*files.metal;
    let mut account = FieldAccount::default();
    if let Some(setting) = metal.find("precision") {
        let engine = has_engine(providers);
        match low_bits_of(setting).filter(|_| !stated.precision) {
            Some(bits) => low_bits_effect(setting, bits, engine, format, &mut account),
            None => precision(options, setting, stated, &mut account),
        }
    }
    match metal.switch("kernel_fusion") {
        Some((setting, _)) if stated.level => {
            account.idle(setting, "but the model's own optimization level holds");
        }
        Some((setting, fuses)) => fusion(options, setting, fuses, &mut account),
        None => {}
    }
    if let Some(setting) = metal.find(LATENCY_GOAL) {
        match files.parameter(LATENCY_GOAL) {
            None => account.act(setting, "of requests that have none of their own"),
            Some(_) => {
                account.idle(setting, "but the model's own parameter 'latency_goal_ms' holds")
            }
        }
    }
    tuning_fields(metal, &tuning, &mut account);
    let taken = other_fields(options, metal, providers, &mut account);
    taken.map_err(ServingError::invalid_arg)?;
    account.log(&files.name);
    Ok(())
}

/// Takes what is asked of the session of an engine, which has arguments of its own for what is missing here.
///
/// # Errors
/// Names the field, what was found and what was expected.
pub(in crate::backend) fn engine_fields(
    options: &mut SessionOptions,
    metal: &MetalConfig,
    providers: &[Arc<dyn ExecutionProvider>],
    account: &mut FieldAccount,
) -> Result<(), String> {
    if let Some((setting, fuses)) = metal.switch("kernel_fusion") {
        fusion(options, setting, fuses, account);
    }
    other_fields(options, metal, providers, account)
}

/// Policy on tuning the kernels of a model.
pub(in crate::backend) fn tuning_policy(
    base: &KernelTuningPolicy,
    metal: &MetalConfig,
) -> KernelTuningPolicy {
    let seconds = metal.find(TUNING_SECONDS).and_then(|setting| setting.text.parse().ok());
    KernelTuningPolicy { time: seconds.map_or(base.time, Duration::from_secs), ..*base }
}

/// Says that fields on tuning kernels in idle moments have no effect.
pub(in crate::backend) fn no_tuning_fields(
    metal: &MetalConfig,
    why: &str,
    account: &mut FieldAccount,
) {
    let enabled =
        metal.switch("enable_auto_tuning").and_then(|(setting, on)| on.then_some(setting));
    for setting in enabled.into_iter().chain(metal.find(TUNING_SECONDS)) {
        account.idle(setting, why);
    }
}

/// Says what becomes of the fields on tuning kernels in idle moments.
pub(in crate::backend) fn tuning_fields(
    metal: &MetalConfig,
    base: &KernelTuningPolicy,
    account: &mut FieldAccount,
) {
    let enabled = metal.switch("enable_auto_tuning");
    let measures = base.models.measures(enabled.map(|(_, enabled)| enabled));
    if let Some((setting, true)) = enabled {
        let seconds = tuning_policy(base, metal).time.as_secs();
        let how = match measures {
            true => format!(
                "records of the tuner count, and what has none is measured while the server is idle, for {seconds} s at \
                 most"
            ),
            false => "records of the tuner count, --auto-tuning=never measures nothing".to_owned(),
        };
        account.act(setting, &how);
    }
    let Some(setting) = metal.find(TUNING_SECONDS) else { return };
    match (measures, enabled) {
        (true, _) => account.act(setting, "the most time that kernels are measured"),
        (false, Some((_, false))) => account.idle(setting, "but enable_auto_tuning false holds"),
        (false, Some((_, true))) => account.idle(setting, "but --auto-tuning=never holds"),
        (false, None) => account.idle(setting, "expected enable_auto_tuning true beside it"),
    }
}

/// Fields that every session takes.
fn other_fields(
    options: &mut SessionOptions,
    metal: &MetalConfig,
    providers: &[Arc<dyn ExecutionProvider>],
    account: &mut FieldAccount,
) -> Result<(), String> {
    let has_gpu = providers.iter().any(|provider| provider.name() == GPU);
    if let Some((setting, false)) = metal.switch("enable_auto_tuning") {
        options.choices = ChoiceSource::default();
        account.act(setting, "records of the tuner are left out, and nothing is measured");
    }
    if let Some((setting, stays)) = metal.switch("persistent_kernels") {
        if stays {
            options.plan_cache = options.plan_cache.max(PERSISTENT_PLANS);
        }
        let plans = options.plan_cache;
        account.act(setting, &format!("bound kernels are kept for {plans} sets of input shapes"));
    }
    if let Some((setting, few)) = metal.switch("minimize_launches") {
        if few {
            options.max_partitions = 1;
        }
        account.act(
            setting,
            match few {
                true => "as few parts as can be, each handed over at once",
                false => "the parts that are predicted to be the fastest",
            },
        );
    }
    if let Some(setting) = metal.find("prefetch_policy") {
        options.prefetch = setting.text.parse().map_err(|why: String| setting.refused(&why))?;
        match has_gpu {
            true => account.act(setting, "of weights that take turns on the GPU"),
            false => account.idle(setting, "expected a GPU: the model runs on none here"),
        }
    }
    for setting in metal.pools() {
        match has_gpu {
            true => account.act(setting, "of the GPU's memory"),
            false => account.idle(setting, "expected a GPU: the model runs on none here"),
        }
    }
    Ok(())
}

/// Bits of weights that a precision stands for, if it is one of weights.
fn low_bits_of(setting: &MetalSetting) -> Option<LowBits> {
    match setting.text.as_str() {
        "int8" => Some(LowBits::Int8),
        "int4" => Some(LowBits::Int4),
        _ => None,
    }
}

fn has_engine(providers: &[Arc<dyn ExecutionProvider>]) -> bool {
    providers.iter().any(|provider| provider.name() == CORE_ML)
}

/// Bits that weights get when a model is loaded: of ONNX models that run on no Neural Engine, whose provider has weights of
/// its own.
pub(super) fn low_bits(
    metal: &MetalConfig,
    providers: &[Arc<dyn ExecutionProvider>],
    stated: bool,
) -> Option<LowBits> {
    let bits = low_bits_of(metal.find("precision")?)?;
    (!stated && !has_engine(providers)).then_some(bits)
}

/// Says in the log what a precision of floats is for in a model that is quantized already.
pub(super) fn tell_quantized(files: &ModelFiles, stated: bool, graph: &Graph) {
    let Some(setting) = files.metal.find("precision").filter(|_| !stated) else { return };
    let floats = matches!(setting.text.as_str(), "fp16" | "bf16" | "mixed");
    if let Some(operator) = quantized_operator(graph).filter(|_| floats) {
        let text = &setting.text;
        tracing::info!(
            model = %files.name,
            "metal_config: precision {text} holds for what the model has not quantized itself ({operator})"
        );
    }
}

/// Says what becomes of weights of few bits.
fn low_bits_effect(
    setting: &MetalSetting,
    bits: LowBits,
    engine: bool,
    format: ModelFormat,
    account: &mut FieldAccount,
) {
    match (engine, bits, format) {
        (true, LowBits::Int8, _) => {
            account.act(setting, "weights of the Neural Engine; others as before");
        }
        (true, LowBits::Int4, _) => account.idle(
            setting,
            "expected fp32, fp16 or int8 where a Neural Engine takes part: 'galatea convert --weights int4' writes \
             packages of 4 bits",
        ),
        (false, _, ModelFormat::CoreMl) => {
            account.idle(setting, "expected an ONNX model: a package computes as it says");
        }
        (false, _, ModelFormat::Onnx) => {
            account.act(setting, "layers are quantized as far as results stay within the bound");
        }
    }
}

/// Precision of matrix multiplications.
fn precision(
    options: &mut SessionOptions,
    setting: &MetalSetting,
    stated: StatedFields,
    account: &mut FieldAccount,
) {
    if stated.precision {
        account.idle(setting, "but the model's own parameter 'precision' holds");
        return;
    }
    let (precision, how) = match setting.text.as_str() {
        "fp16" | "mixed" => (Precision::Fp16, "values or weights FP16, sums FP32"),
        "bf16" => (Precision::Bf16, "operands BF16, sums FP32"),
        _ => (Precision::Fp32, "all of it"),
    };
    options.precision = precision;
    account.act(setting, how);
}

/// Whether nodes are put together.
fn fusion(
    options: &mut SessionOptions,
    setting: &MetalSetting,
    fuses: bool,
    account: &mut FieldAccount,
) {
    if !fuses {
        options.optimise = options.optimise.min(OptimiseLevel::O1);
    }
    account.act(setting, &format!("the graph is rewritten up to {}", options.optimise));
}

/// Returns the wish for a provider with settings of its own.
fn with_settings(settings: &OrderedMap<String, String>) -> ProviderWish<'_> {
    ProviderWish { settings: Some(settings), forced: false }
}

/// Gives GPUs the fields on how they keep memory.
///
/// # Errors
/// Names the field, what was found and what was expected.
pub(in crate::backend) fn pools(
    providers: &mut ProviderFactory,
    metal: &MetalConfig,
) -> Result<(), String> {
    let settings = metal.pool_settings();
    for provider in providers.iter_mut().filter(|one| one.name() == GPU && !settings.is_empty()) {
        if let Some(own) = provider.variant(&with_settings(&settings))? {
            *provider = own;
        }
    }
    Ok(())
}

/// The providers with the fields that are theirs: how a GPU keeps memory, and what the Neural Engine computes in.
/// `given` are the parameters of accelerators by the name of their provider, which win.
///
/// # Errors
/// INVALID_ARG with the place of the field, what was found and what was expected.
pub(super) fn configured(
    mut providers: ProviderFactory,
    metal: &MetalConfig,
    model: &str,
    given: &OrderedMap<&str, OrderedMap<String, String>>,
) -> Result<ProviderFactory, ServingError> {
    let pools = metal.pool_settings();
    for provider in &mut providers {
        let settings = match provider.name() {
            GPU => pools.clone(),
            CORE_ML => core_ml(metal, given.get(CORE_ML)),
            _ => continue,
        };
        if settings.is_empty() {
            continue;
        }
        let own = provider.variant(&with_settings(&settings)).map_err(|problem| {
            let mut said = metal.settings().iter();
            let place = said.find(|setting| problem.contains(setting.field));
            let place = place.map(|setting| format!("{} of ", setting.place)).unwrap_or_default();
            ServingError::invalid_arg(format!("{place}model '{model}': {problem}"))
        })?;
        if let Some(own) = own {
            *provider = own;
        }
    }
    Ok(providers)
}

/// The settings of Core ML's provider: those that it was given, and a precision that they leave open.
fn core_ml(
    metal: &MetalConfig,
    given: Option<&OrderedMap<String, String>>,
) -> OrderedMap<String, String> {
    let mut settings = given.cloned().unwrap_or_default();
    let word = metal.find("precision").and_then(|setting| match setting.text.as_str() {
        "fp16" | "mixed" => Some("fp16"),
        "fp32" => Some("fp32"),
        "int8" => Some("int8"),
        // It has no such floats.
        _ => None,
    });
    if let Some(word) = word {
        settings.entry("precision".to_owned()).or_insert_with(|| word.to_owned());
    }
    settings
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#[path = "metal_tests.rs"]
mod tests;
