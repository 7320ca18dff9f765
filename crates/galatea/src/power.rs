//! Keeps the server to the power and heat that its machine may have, and says what it draws.
//!
//! A thread reads sensors once a second and asks a [`PowerGovernor`]; every session passes the gate of its
//! engine, which keeps runs to the pace that the governor allows. Where a machine has no sensors, nothing
//! is limited and nothing is said.

mod change;
mod models;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_apple::battery::battery;
use galatea_apple::sensors::{self, Counters, HeatLevel};
use galatea_runtime::device_selector::ComputeDevices;
use galatea_runtime::power::{
    Battery, EnergyMeter, EnergyReport, IdleDraw, MeterScope, PaceSource, PowerAllowance,
    PowerDraw, PowerGovernor, PowerLimit, SensorReading, SensorSource, SystemSensors, ThermalState,
    ThreadClass, Throttle,
};
use galatea_serving::Core;
use galatea_serving::config::MetalConfig;

use crate::wattmeter::DeviceWattmeter;
use models::PowerBudgetModel;

/// Interval between two readings of the sensors.
const INTERVAL: Duration = Duration::from_secs(1);
/// Sampling time of a Mac's counters.
const SAMPLE: Duration = Duration::from_millis(500);

/// Latest measurements and limits of power.
#[derive(Clone, Copy, Debug)]
pub struct PowerState {
    /// Reading of the sensors.
    pub reading: SensorReading,
    /// Allowance that follows from the reading.
    pub allowed: PowerAllowance,
    /// Energy drawn since the start.
    pub energy: EnergyReport,
    /// The target, where there is one.
    pub target_watts: Option<f64>,
    /// Draw of the machine without work, once it was seen without.
    pub idle_watts: Option<f64>,
}

pub use change::{MAX_TARGET_WATTS, PowerChange, TargetChange, TargetState};
pub use galatea_runtime::power::{PowerPolicy, PowerSettings};
pub use models::ModelPowerReport;

/// Power of an engine: the pace of its sessions, its settings, and what was measured last.
#[derive(Debug)]
pub struct PowerControl {
    devices: Arc<ComputeDevices>,
    /// Pace that all sessions follow.
    pace: Arc<Throttle>,
    /// Settings of the server, once they are adopted.
    settings: Mutex<Option<PowerSettings>>,
    last: Mutex<Option<PowerState>>,
    models: Mutex<Vec<PowerBudgetModel>>,
}

impl PowerControl {
    /// Makes the control of work on these devices.
    #[must_use]
    pub fn new(devices: Arc<ComputeDevices>) -> Self {
        Self {
            devices,
            pace: Arc::default(),
            settings: Mutex::default(),
            last: Mutex::default(),
            models: Mutex::default(),
        }
    }

    /// Returns the gate that sessions pass.
    #[must_use]
    pub fn pace(&self) -> PaceSource {
        PaceSource { own: None, all: Some(Arc::clone(&self.pace)) }
    }

    /// Makes these the settings for models that are loaded from now on.
    pub fn adopt(&self, settings: PowerSettings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    }

    fn settings(&self) -> PowerSettings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
    }

    /// Returns whether background work leaves the fast cores to others.
    #[must_use]
    pub fn offloads(&self) -> bool {
        self.settings().efficiency_core_offload
    }

    /// Returns the latest state; none if no sensor is read.
    #[must_use]
    pub fn state(&self) -> Option<PowerState> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps runs to what is allowed.
    fn apply(&self, allowed: &PowerAllowance, core: &Weak<Core>) {
        self.pace.gate().set_pace(allowed.pace);
        // Threads that somebody waits for are urgent, unless power is to be saved.
        self.pace.set_class(match allowed.threads {
            ThreadClass::Thrifty => ThreadClass::Thrifty,
            _ => ThreadClass::Urgent,
        });
        self.devices.prefer(allowed.units);
        if let Some(core) = core.upgrade() {
            core.admit(allowed.admits);
        }
    }
}

/// Power settings that flags give; those that are not given are those of `metal_config` for all models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerOverrides<'a> {
    /// Protection from throttling.
    pub thermal_protection: Option<bool>,
    /// Target in watts, as text.
    pub target_watts: Option<&'a str>,
}

/// Reads the power settings: fields of `metal_config` for all models, and what overrides them.
///
/// # Errors
/// Names the field or the flag, what was found and what was expected.
pub fn settings(
    overrides: PowerOverrides<'_>,
    metal: &MetalConfig,
) -> Result<PowerSettings, String> {
    let mut settings = PowerSettings::default();
    for wish in metal.power() {
        let place = wish.place;
        settings.set(wish.field, &wish.text).map_err(|error| format!("{place}: {error}"))?;
    }
    if let Some(protects) = overrides.thermal_protection {
        settings.thermal_protection = protects;
    }
    if let Some(watts) = overrides.target_watts {
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
#[derive(Debug)]
pub struct PowerWatch {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    control: Arc<PowerControl>,
}

impl PowerWatch {
    /// Starts to read sensors. Where there are none, a target that was asked for is said to have no effect.
    #[must_use]
    pub fn start(control: &Arc<PowerControl>, settings: PowerSettings, core: &Arc<Core>) -> Self {
        let core = Arc::downgrade(core);
        let paced = Arc::clone(control);
        // The counters of a Mac stay with the thread that opened them.
        Self::with(control, settings, HostSensors::open, move |allowed| paced.apply(allowed, &core))
    }

    /// Starts to read sensors for an engine without a server. Models of the engine keep to what is allowed.
    #[must_use]
    pub fn of_engine(control: &Arc<PowerControl>, settings: PowerSettings) -> Self {
        let paced = Arc::clone(control);
        Self::with(control, settings, HostSensors::open, move |allowed| {
            paced.apply(allowed, &Weak::new());
        })
    }

    fn with<S: SensorSource>(
        control: &Arc<PowerControl>,
        settings: PowerSettings,
        open: impl FnOnce() -> Option<S> + Send + 'static,
        mut apply: impl FnMut(&PowerAllowance) + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        control.adopt(settings);
        let watched = Arc::clone(control);
        let watch = move || {
            let Some(mut sensors) = open() else {
                if let Some(watts) = settings.target_watts {
                    tracing::warn!(
                        "this machine does not say what it draws: {watts} W are not held"
                    );
                }
                watched.tell_without_sensors();
                return;
            };
            let mut governor = PowerGovernor::new(settings);
            let mut energy = EnergyMeter::new();
            let mut idle = IdleDraw::default();
            let mut meter = DeviceWattmeter::default();
            let mut of_models = models::PowerMeter::default();
            let mut last = Instant::now();
            let mut limit = PowerLimit::None;
            let mut scope = None;
            loop {
                let reading = sensors.read();
                let now = Instant::now();
                let elapsed = now.saturating_duration_since(last);
                last = now;
                energy.add(elapsed, &reading.draw);
                meter.note(&watched.devices, elapsed, &reading.draw);
                let settings = watched.settings();
                if settings != *governor.settings() {
                    governor.change(settings);
                }
                let used = watched.pace.gate().used();
                if let Some(draw) = reading.draw.governed() {
                    idle.note(elapsed, draw.watts, used);
                }
                let allowed = governor.step(elapsed, &reading, used);
                of_models.note(&watched, elapsed, &reading);
                let measured = reading.draw.governed().map(|draw| draw.scope);
                if measured != scope {
                    report_scope(measured, &settings);
                    scope = measured;
                }
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
                    idle_watts: idle.watts(),
                };
                *watched.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("power-watch".to_owned()).spawn(watch);
        let warn = |error: &std::io::Error| tracing::warn!("power is not watched: {error}");
        let thread = thread.inspect_err(warn).ok().map(|thread| (stop, thread));
        Self { thread, control: Arc::clone(control) }
    }
}

impl Drop for PowerWatch {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // A panic of the thread was reported where it happened.
        thread.join().ok();
        // Nothing that still runs is to wait for somebody who is gone.
        self.control.pace.gate().set_pace(1.0);
        self.control.release();
    }
}

/// Says where a target that is meant for the chip is held for the machine.
fn report_scope(measured: Option<MeterScope>, settings: &PowerSettings) {
    if let (Some(MeterScope::Machine), Some(target)) = (measured, settings.target_watts) {
        tracing::warn!(
            "the system shows no watts of the processor: {target} W are held for the whole machine"
        );
    }
}

fn report(allowed: &PowerAllowance, reading: &SensorReading, settings: &PowerSettings) {
    let watts = reading.draw.governed().map_or(0.0, |draw| draw.watts);
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
        let control = Arc::new(PowerControl::new(Arc::default()));
        let watch = PowerWatch::with(
            &control,
            PowerSettings::default(),
            || Some(HotState),
            move |allowed| sender.send(*allowed).unwrap_or_default(),
        );
        let allowed = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(!allowed.admits && allowed.limit == PowerLimit::Heat);
        drop(watch);
        assert_eq!(control.state().unwrap().reading.thermal, Some(ThermalState::Critical));
    }

    #[test]
    fn a_setting_that_is_wrong_is_named_as_the_flag() {
        let mut settings = PowerSettings::default();
        let error = settings.set("power_target_watts", "-1").unwrap_err();
        assert!(dashed(&error).starts_with("power-target-watts: '-1'"), "{error}");
    }
}
