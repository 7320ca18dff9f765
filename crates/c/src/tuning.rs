//! Tuning: the kernels that a model may choose from, and the search for the fastest.

use std::ffi::c_char;
use std::path::Path;
use std::time::Duration;

use galatea::{KernelSearch, StrategyKind, TunedKernel};
use serde_json::{Value, json};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::model::{ApiNamedTensor, MODELS, OpaqueModel, named_tensors};
use crate::owned_text::{OpaqueText, put_text};

/// Settings of a search. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TuningOptions {
    /// `sizeof(galatea_tuning_options)`.
    pub size: usize,
    /// Strategy: "exhaustive", "grid", "adaptive" or "genetic"; null to choose by the number of candidates.
    pub strategy: *const c_char,
    /// Part of the name of a family of kernels; null for all.
    pub family: *const c_char,
    /// File to which the records are added; null to keep none. Models look at the usual file of `galatea tune`.
    pub file: *const c_char,
    /// The most candidates of a choice that are measured.
    pub max_trials: usize,
    /// The most milliseconds for all choices together.
    pub time_ms: u64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for TuningOptions {}

/// Lists the choices between kernels that a model has for inputs of these shapes, as a JSON array: node, family, bucket
/// of lengths, and the names of the candidates, the default first.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tuning_space(
    model: *const OpaqueModel,
    inputs: *const ApiNamedTensor,
    input_count: usize,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = MODELS.get(model)?;
        let named = named_tensors(caller, inputs, input_count)?;
        let choices = object.model.kernel_choices(&named)?;
        let rows = choices.into_iter().map(|choice| {
            json!({
                "node": choice.node,
                "family": choice.family,
                "bucket": choice.bucket,
                "candidates": choice.candidates,
            })
        });
        put_text(caller, Value::Array(rows.collect()).to_string(), json, "json")
    })
}

/// Measures the choices between kernels of a model for inputs of these shapes, within the limits. `json` gets an array
/// with the fastest candidate of each choice and its times. `options` may be null.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tuning_run(
    model: *const OpaqueModel,
    inputs: *const ApiNamedTensor,
    input_count: usize,
    options: *const TuningOptions,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = MODELS.get(model)?;
        caller.check(json, 1, "json")?;
        let options = caller.options(options, "options")?;
        let mut search = KernelSearch::default();
        if let Some(name) = caller.optional_text(options.strategy, "strategy")? {
            search.strategy = Some(strategy(name)?);
        }
        if let Some(family) = caller.optional_text(options.family, "family")? {
            family.clone_into(&mut search.family);
        }
        if options.max_trials != 0 {
            search.trials = options.max_trials;
        }
        if options.time_ms != 0 {
            search.time = Duration::from_millis(options.time_ms);
        }
        let file = caller.optional_text(options.file, "file")?.map(Path::new);
        let named = named_tensors(caller, inputs, input_count)?;
        let tuned = object.model.search_kernels(&named, &search, file)?;
        let rows: Vec<Value> = tuned.iter().map(row).collect();
        put_text(caller, Value::Array(rows).to_string(), json, "json")
    })
}

fn strategy(name: &str) -> Result<StrategyKind, CallFailure> {
    let row = StrategyKind::ALL.into_iter().find(|(known, _)| *known == name);
    row.map(|(_, kind)| kind).ok_or_else(|| {
        let names = StrategyKind::ALL.map(|(known, _)| known).join(", ");
        CallFailure::argument(format!("strategy '{name}' found, expected one of {names}"))
    })
}

fn row(tuned: &TunedKernel) -> Value {
    let TunedKernel { key, record } = tuned;
    json!({
        "family": key.family,
        "bucket": key.bucket,
        "choice": record.choice,
        "time_ns": record.time_ns,
        "default_ns": record.default_ns,
        "trials": record.trials,
    })
}
