//! Keeps the server to the power and heat that its machine may have, and says what it draws.
//!
//! A thread reads sensors once a second and asks a [`PowerGovernor`]; every session passes the [`Gate`] of the
//! process, which keeps runs to the pace that the governor allows. Where a machine has no sensors, nothing
//! is limited and nothing is said.

mod models;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_apple::battery::battery;
use galatea_apple::sensors::{self, Counters, HeatLevel};
use galatea_runtime::power::{
    Battery, EnergyMeter, EnergyReport, PaceSource, PowerAllowance, PowerDraw, PowerGovernor,
    PowerLimit, PowerSettings, SensorReading, SensorSource, SystemSensors, ThermalState,
    ThreadClass, Throttle,
};
use galatea_serving::Core;
use galatea_serving::config::MetalConfig;

use crate::background_tuning;
use crate::flags::ServerFlags;

/// Interval between two readings of the sensors.
const INTERVAL: Duration = Duration::from_secs(1);
/// Sampling time of a Mac's counters.
const SAMPLE: Duration = Duration::from_millis(500);

/// Pace that all sessions of this process follow.
static ALL: LazyLock<Arc<Throttle>> = LazyLock::new(Arc::default);

/// Settings of the server, before its models are loaded.
static ASKED: Mutex<Option<PowerSettings>> = Mutex::new(None);

/// The gate, for sessions.
pub(crate) fn pace() -> PaceSource {
    PaceSource { own: None, all: Some(Arc::clone(&ALL)) }
}

/// Makes these the settings of the server, for models that are loaded from now on.
pub(crate) fn adopt(settings: PowerSettings) {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
}

fn settings_of_server() -> PowerSettings {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
}

/// Returns whether background work leaves the fast cores to others.
pub(crate) fn offloads() -> bool {
    settings_of_server().efficiency_core_offload
}

/// Latest measurements and limits of power.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerState {
    /// Reading of the sensors.
    pub(crate) reading: SensorReading,
    /// Allowance that follows from the reading.
    pub(crate) allowed: PowerAllowance,
    /// Energy drawn since the start.
    pub(crate) energy: EnergyReport,
    /// The target, where there is one.
    pub(crate) target_watts: Option<f64>,
}

pub(crate) use models::{ModelPowerReport, of_checkpoint, of_model, reports};

static LAST: Mutex<Option<PowerState>> = Mutex::new(None);

/// Returns the latest state; none if no sensor is read.
pub(crate) fn state() -> Option<PowerState> {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the power settings from the flags; fields of `metal_config` for all models fill what the flags leave
/// out.
///
/// # Errors
/// Names the flag, what was found and what was expected.
pub(crate) fn settings(flags: &ServerFlags, metal: &MetalConfig) -> Result<PowerSettings, String> {
    let mut settings = PowerSettings::default();
    for wish in metal.power() {
        let place = wish.place;
        settings.set(wish.field, &wish.text).map_err(|error| format!("{place}: {error}"))?;
    }
    if flags.is_set("enable-thermal-protection") {
        settings.thermal_protection = flags.bool("enable-thermal-protection");
    }
    let watts = flags.text("power-target-watts");
    if !watts.is_empty() {
        settings
            .set("power_target_watts", watts)
            .map_err(|error| format!("--{}", dashed(&error)))?;
    }
    Ok(settings)
}

/// A setting's name at the start of a message, as flags write it.
fn dashed(error: &str) -> String {
    match error.split_once(':') {
        Some((name, rest)) => format!("{}:{rest}", name.replace('_', "-")),
        None => error.to_owned(),
    }
}

/// The sensors of a Mac, or of another host as its system shows them.
#[derive(Debug)]
enum HostSensors {
    Mac(Option<Box<Counters>>),
    System(SystemSensors),
}

impl HostSensors {
    /// The sensors; none where the host has none.
    fn open() -> Option<Self> {
        match sensors::heat() {
            Ok(_) => {
                let counters = Counters::open();
                let warn = |error: &_| tracing::warn!("what the chip draws is not known: {error}");
                Some(Self::Mac(counters.inspect_err(warn).ok().map(Box::new)))
            }
            Err(_) => Some(SystemSensors::new()).filter(|all| !all.is_empty()).map(Self::System),
        }
    }
}

impl SensorSource for HostSensors {
    fn read(&mut self) -> SensorReading {
        let counters = match self {
            Self::System(sensors) => return sensors.read(),
            Self::Mac(counters) => counters,
        };
        let sample = counters.as_mut().map(|counters| counters.sample(SAMPLE));
        let sample = match sample.transpose() {
            Ok(sample) => sample.unwrap_or_default(),
            Err(error) => {
                tracing::warn!("what the chip draws is not known any more: {error}");
                *counters = None;
                sensors::SensorSample::default()
            }
        };
        SensorReading {
            draw: PowerDraw {
                cpu: sample.cpu_watts,
                gpu: sample.gpu_watts,
                engine: sample.engine_watts,
                memory: sample.memory_watts,
                package: None,
                system: sample.system_watts,
            },
            thermal: sensors::heat().ok().map(|heat| match heat {
                HeatLevel::Nominal => ThermalState::Nominal,
                HeatLevel::Fair => ThermalState::Fair,
                HeatLevel::Serious => ThermalState::Serious,
                HeatLevel::Critical => ThermalState::Critical,
            }),
            celsius: [sample.cpu_celsius, sample.gpu_celsius]
                .into_iter()
                .flatten()
                .reduce(f64::max),
            low_power: sensors::low_power_mode().ok(),
            battery: battery()
                .ok()
                .flatten()
                .map(|found| Battery { charge: found.charge, discharging: found.discharging }),
        }
    }
}

/// Keeps the server to its power until it is dropped.
pub(crate) struct PowerWatch {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl PowerWatch {
    /// Starts to read sensors. Where there are none, a target that was asked for is said to have no effect.
    pub(crate) fn start(settings: PowerSettings, core: &Arc<Core>) -> Self {
        let core = Arc::downgrade(core);
        // The counters of a Mac stay with the thread that opened them.
        Self::with(settings, HostSensors::open, move |allowed| apply(allowed, &core))
    }

    fn with<S: SensorSource>(
        settings: PowerSettings,
        open: impl FnOnce() -> Option<S> + Send + 'static,
        mut apply: impl FnMut(&PowerAllowance) + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            let Some(mut sensors) = open() else {
                if let Some(watts) = settings.target_watts {
                    tracing::warn!(
                        "this machine does not say what it draws: {watts} W are not held"
                    );
                }
                models::tell_without_sensors();
                return;
            };
            let mut governor = PowerGovernor::new(settings);
            let mut energy = EnergyMeter::new();
            let mut meter = background_tuning::DeviceWattmeter::default();
            let mut of_models = models::PowerMeter::default();
            let mut last = Instant::now();
            let mut limit = PowerLimit::None;
            loop {
                let reading = sensors.read();
                let now = Instant::now();
                let elapsed = now.saturating_duration_since(last);
                last = now;
                energy.add(elapsed, &reading.draw);
                meter.note(background_tuning::units(), elapsed, &reading.draw);
                let allowed = governor.step(elapsed, &reading, ALL.gate().used());
                of_models.note(elapsed, &reading);
                if allowed.limit != limit {
                    report(&allowed, &reading, &settings);
                    limit = allowed.limit;
                }
                apply(&allowed);
                let found = PowerState {
                    reading,
                    allowed,
                    energy: energy.report(),
                    target_watts: settings.target_watts,
                };
                *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("power-watch".to_owned()).spawn(watch);
        let warn = |error: &std::io::Error| tracing::warn!("power is not watched: {error}");
        Self { thread: thread.inspect_err(warn).ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for PowerWatch {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
        // Nothing that still runs is to wait for somebody who is gone.
        ALL.gate().set_pace(1.0);
        models::release();
    }
}

fn apply(allowed: &PowerAllowance, core: &Weak<Core>) {
    ALL.gate().set_pace(allowed.pace);
    // Threads that somebody waits for are urgent, unless power is to be saved.
    ALL.set_class(match allowed.threads {
        ThreadClass::Thrifty => ThreadClass::Thrifty,
        _ => ThreadClass::Urgent,
    });
    background_tuning::units().prefer(allowed.units);
    if let Some(core) = core.upgrade() {
        core.admit(allowed.admits);
    }
}

fn report(allowed: &PowerAllowance, reading: &SensorReading, settings: &PowerSettings) {
    let watts = reading.draw.chip().unwrap_or_default();
    let target = settings.target_watts.unwrap_or_default();
    match allowed.limit {
        PowerLimit::None => tracing::info!("The server runs at its full pace."),
        PowerLimit::Target => tracing::info!("The server is slowed down to hold {target} W."),
        PowerLimit::UnreachableTarget => {
            tracing::warn!(
                "{target} W cannot be held: the machine draws {watts:.1} W without work"
            );
        }
        PowerLimit::Heat => {
            let state = reading.thermal.map_or("", ThermalState::name);
            tracing::warn!("The server is slowed down: the machine's thermal state is {state}.");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct HotState;

    impl SensorSource for HotState {
        fn read(&mut self) -> SensorReading {
            SensorReading { thermal: Some(ThermalState::Critical), ..SensorReading::default() }
        }
    }

    #[test]
    fn a_critical_machine_is_told_of_at_once_and_in_the_metrics() {
        let (sender, told) = mpsc::channel();
        let watch = PowerWatch::with(
            PowerSettings::default(),
            || Some(HotState),
            move |allowed| sender.send(*allowed).unwrap_or_default(),
        );
        let allowed = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(!allowed.admits && allowed.limit == PowerLimit::Heat);
        drop(watch);
        assert_eq!(state().unwrap().reading.thermal, Some(ThermalState::Critical));
    }

    #[test]
    fn a_setting_that_is_wrong_is_named_as_the_flag() {
        let mut settings = PowerSettings::default();
        let error = settings.set("power_target_watts", "-1").unwrap_err();
        assert!(dashed(&error).starts_with("power-target-watts: '-1'"), "{error}");
    }
}
