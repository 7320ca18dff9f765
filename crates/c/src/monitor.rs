//! Performance: profiles, bottlenecks, and comparisons of two models.

use std::ffi::c_char;
use std::time::Duration;

use galatea::ComparisonLimits;
use galatea::profile::ProfileRequest;
use serde_json::Value;

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::model::{ApiNamedTensor, MODELS, OpaqueModel, named_tensors};
use crate::owned_text::{OpaqueText, put_text};

/// Settings of a profile. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MonitorOptions {
    /// `sizeof(galatea_monitor_options)`.
    pub size: usize,
    /// File for the events, in Chrome's format; null to keep them in memory.
    pub trace_file: *const c_char,
    /// The most events that are kept in memory; 0 for the usual number.
    pub max_events: u64,
    /// 1 to measure the peaks of GPUs first, so that the bounds of their kernels are known.
    pub measure_peaks: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for MonitorOptions {}

/// Starts to watch all runs of an engine's models. One profile of an engine is under way at a time. `options` may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_monitor_start(
    engine: *const OpaqueEngine,
    options: *const MonitorOptions,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let engine = ENGINES.get(engine)?;
        let options = caller.options(options, "options")?;
        let usual = ProfileRequest::default();
        let events = match options.max_events {
            0 => usual.events,
            events => events.min(galatea::profile::MAX_EVENTS),
        };
        let file = caller.optional_text(options.trace_file, "trace_file")?.map(Into::into);
        let request = ProfileRequest { events, file, peaks: options.measure_peaks != 0, ..usual };
        engine.engine.profiler().start(&request).map_err(run_failure)
    })
}

fn run_failure(sentence: String) -> CallFailure {
    CallFailure::new(ApiStatus::Run, sentence)
}

/// Tells what the profile under way adds up to so far, as JSON: devices, models and operators with their times.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_monitor_metrics(
    engine: *const OpaqueEngine,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| put_text(caller, summary(engine)?.to_string(), json, "json"))
}

/// Returns the summary of the profile under way.
fn summary(engine: *const OpaqueEngine) -> Result<Value, CallFailure> {
    let engine = ENGINES.get(engine)?;
    let current = engine.engine.profiler().status().current;
    current.ok_or_else(|| run_failure("no profile is under way; start one first".to_owned()))
}

/// Lists the operators of the profile under way that take most of the time, as a JSON array: model, operator, kernel,
/// device, share of the model's time, and what bounds the kernel (compute, memory, launch) where that is known.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_monitor_bottlenecks(
    engine: *const OpaqueEngine,
    limit: usize,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let found = galatea::profile::bottlenecks(&summary(engine)?, limit);
        put_text(caller, Value::Array(found).to_string(), json, "json")
    })
}

/// Ends the profile. `summary` gets what it adds up to, as JSON. `trace` gets its events in Chrome's format, or null
/// where they are in a file; it may be null itself.
///
/// Ownership: the texts are the caller's, who frees them with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_monitor_stop(
    engine: *const OpaqueEngine,
    summary: *mut *mut OpaqueText,
    trace: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let engine = ENGINES.get(engine)?;
        caller.check(summary, 1, "summary")?;
        let finished = engine.engine.profiler().stop().map_err(run_failure)?;
        if !trace.is_null() {
            match &finished.trace {
                Some(events) => put_text(caller, events.clone(), trace, "trace")?,
                None => caller.put(trace, std::ptr::null_mut(), "trace")?,
            }
        }
        put_text(caller, finished.summary.to_string(), summary, "summary")
    })
}

/// Limits of a comparison. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ComparisonOptions {
    /// `sizeof(galatea_comparison_options)`.
    pub size: usize,
    /// The most runs of each model that are timed.
    pub samples: usize,
    /// The most milliseconds to take, once there are enough runs to say anything.
    pub time_ms: u64,
    /// Distance that results may have, relative to the largest of them.
    pub tolerance: f32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ComparisonOptions {}

/// Result of a comparison of two models.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ComparisonResult {
    /// `sizeof(galatea_comparison)`, set by the caller.
    pub size: usize,
    /// 1 if the first model is faster, 2 if the second is, 0 if chance may have made the difference.
    pub faster: i32,
    /// 1 if the results agree within the tolerance.
    pub agrees: i32,
    /// Median time of the first model, in nanoseconds.
    pub first_ns: f64,
    /// Median time of the second model, in nanoseconds.
    pub second_ns: f64,
    /// Time of the second as a share of the first's.
    pub ratio: f64,
    /// Begin of the interval that holds the ratio with a confidence of 95 %.
    pub ratio_low: f64,
    /// End of that interval.
    pub ratio_high: f64,
    /// Chance that runs of equal models differ as much.
    pub p: f64,
    /// Largest distance of two results, relative to the largest one.
    pub distance: f64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ComparisonResult {}

/// Compares two models on the same inputs (an A/B test): both run in turn, and the times are compared statistically.
/// `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_compare_models(
    first: *const OpaqueModel,
    second: *const OpaqueModel,
    inputs: *const ApiNamedTensor,
    input_count: usize,
    options: *const ComparisonOptions,
    result: *mut ComparisonResult,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let first = MODELS.get(first)?;
        let second = MODELS.get(second)?;
        caller.check(result, 1, "result")?;
        let options = caller.options(options, "options")?;
        let named = named_tensors(caller, inputs, input_count)?;
        let mut limits = ComparisonLimits::default();
        if options.samples != 0 {
            limits.samples = options.samples;
        }
        if options.time_ms != 0 {
            limits.time = Duration::from_millis(options.time_ms);
        }
        if options.tolerance != 0.0 {
            limits.tolerance = options.tolerance;
        }
        let found = first.model.compare(&second.model, &named, limits)?;
        let faster = match found.times.verdict.name() {
            "first" => 1,
            "second" => 2,
            _ => 0,
        };
        let [first_ns, second_ns] = found.times.median_ns;
        let [ratio_low, ratio_high] = found.times.interval;
        let found = ComparisonResult {
            size: size_of::<ComparisonResult>(),
            faster,
            agrees: i32::from(found.agreement.holds()),
            first_ns,
            second_ns,
            ratio: found.times.ratio,
            ratio_low,
            ratio_high,
            p: found.times.p,
            distance: f64::from(found.agreement.apart),
        };
        caller.report(found, result, "result")
    })
}
