//! Power: targets and measurements.

use std::ffi::c_char;
use std::sync::PoisonError;

use galatea::power::{PowerSettings, PowerWatch};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};

/// Settings of power. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PowerOptions {
    /// `sizeof(galatea_power_options)`.
    pub size: usize,
    /// Policy: "high_performance", "balanced" or "low_power"; null for "balanced".
    pub policy: *const c_char,
    /// Watts that the chip is to draw at most, on average over seconds; 0 for no target.
    pub target_watts: f64,
    /// -1 if work is not slowed down before the machine throttles it.
    pub thermal_protection: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for PowerOptions {}

/// Measurements of power. What the machine does not tell is NaN, or -1 for counts.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PowerMetrics {
    /// `sizeof(galatea_power_metrics)`, set by the caller.
    pub size: usize,
    /// 1 if a sensor was read.
    pub is_measured: i32,
    /// Thermal state from 0 (nominal) to 3 (critical); -1 where it is not known.
    pub thermal_state: i32,
    /// Watts of the CPU, of the GPU, of the Neural Engine, of memory, of the chip, and of the whole machine.
    pub cpu_watts: f64,
    /// Watts of the GPU.
    pub gpu_watts: f64,
    /// Watts of the Neural Engine.
    pub neural_engine_watts: f64,
    /// Watts of memory.
    pub memory_watts: f64,
    /// Watts of the whole chip.
    pub chip_watts: f64,
    /// Watts of the whole machine.
    pub system_watts: f64,
    /// Joules of the whole chip since watching began.
    pub chip_joules: f64,
    /// Degrees Celsius of the hottest part that is watched.
    pub celsius: f64,
    /// Share of its full pace at which work runs, from 0 to 1.
    pub pace: f64,
    /// Watts that are the target.
    pub target_watts: f64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for PowerMetrics {}

/// Holds a target of power from now on, and measures. Calling it again replaces the settings; they hold for the models
/// of the engine that run already, too. `options` may be null. Where the machine has no sensors, nothing is held, and
/// `galatea_power_read` says that nothing is measured.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_power_start(
    engine: *const OpaqueEngine,
    options: *const PowerOptions,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let engine = ENGINES.get(engine)?;
        let options = caller.options(options, "options")?;
        let mut settings = PowerSettings::default();
        if let Some(policy) = caller.optional_text(options.policy, "policy")? {
            settings.policy = policy.parse().map_err(CallFailure::argument)?;
        }
        if options.target_watts != 0.0 {
            let watts = options.target_watts.to_string();
            settings.set("power_target_watts", &watts).map_err(CallFailure::argument)?;
        }
        settings.thermal_protection = options.thermal_protection >= 0;
        let mut slot = engine.power.lock().unwrap_or_else(PoisonError::into_inner);
        // The old watch ends before the new one begins: both set the same pace.
        drop(slot.take());
        *slot = Some(PowerWatch::of_engine(engine.engine.power(), settings));
        Ok(())
    })
}

/// Ends holding and measuring. Work runs at its full pace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_power_stop(engine: *const OpaqueEngine) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        let engine = ENGINES.get(engine)?;
        drop(engine.power.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(())
    })
}

/// Tells the latest measurements. Sensors are read about once a second while `galatea_power_start` or a server of the
/// engine watches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_power_read(
    engine: *const OpaqueEngine,
    metrics: *mut PowerMetrics,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let state = ENGINES.get(engine)?.engine.power().state();
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let reading = state.map(|state| state.reading).unwrap_or_default();
        let found = PowerMetrics {
            size: size_of::<PowerMetrics>(),
            is_measured: i32::from(state.is_some()),
            thermal_state: reading.thermal.map_or(-1, |thermal| thermal as i32),
            cpu_watts: or_nan(reading.draw.cpu),
            gpu_watts: or_nan(reading.draw.gpu),
            neural_engine_watts: or_nan(reading.draw.engine),
            memory_watts: or_nan(reading.draw.memory),
            chip_watts: or_nan(reading.draw.chip()),
            system_watts: or_nan(reading.draw.system),
            chip_joules: or_nan(state.and_then(|state| state.energy.chip)),
            celsius: or_nan(reading.celsius),
            pace: state.map_or(1.0, |state| state.allowed.pace),
            target_watts: or_nan(state.and_then(|state| state.target_watts)),
        };
        caller.report(found, metrics, "metrics")
    })
}
