//! Changes of power settings while a server runs.

use std::sync::PoisonError;

use galatea_apple::qos::ThreadQos;
use galatea_runtime::power::{PowerLimit, PowerPolicy, PowerSettings};

use super::PowerControl;

/// The most watts that are taken for a target: more than any Mac draws.
pub const MAX_TARGET_WATTS: f64 = 1000.0;

/// Change of the target.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum TargetChange {
    /// It stays as it is.
    #[default]
    Keep,
    /// No target from now on.
    Clear,
    /// This many watts from now on.
    Set(f64),
}

/// Settings that change; the others stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PowerChange {
    /// Watts that the chip is to draw at most.
    pub target: TargetChange,
    /// Preference between speed and low power.
    pub policy: Option<PowerPolicy>,
    /// Whether work is slowed down before the machine throttles it.
    pub thermal_protection: Option<bool>,
    /// Whether threads are made less urgent before they are made to rest.
    pub adaptive_frequency: Option<bool>,
}

/// Whether a target is held, and why not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetState {
    /// There is none.
    None,
    /// It is held, as far as sensors tell.
    Held,
    /// It is below what the machine draws without work, which is so many watts.
    Unreachable(Option<f64>),
    /// The machine does not say what it draws.
    Unmeasured,
}

impl PowerControl {
    /// The settings in force.
    #[must_use]
    pub fn current_settings(&self) -> PowerSettings {
        self.settings()
    }

    /// Whether this system has classes of threads, by which it chooses cores and clocks.
    #[must_use]
    pub fn has_thread_classes() -> bool {
        ThreadQos::current().is_ok()
    }

    /// Changes settings while models run. They take effect with the next reading of the sensors, within about a
    /// second, for all models.
    ///
    /// # Errors
    /// Names the setting that cannot be, what was found and what was expected; nothing is changed then.
    pub fn change(&self, change: PowerChange) -> Result<PowerSettings, String> {
        if let Some(found) = change.adaptive_frequency.filter(|_| !Self::has_thread_classes()) {
            return Err(format!(
                "adaptive_frequency: {found} found, but this system has no classes of threads, by which clocks are \
                 chosen"
            ));
        }
        if let TargetChange::Set(watts) = change.target {
            self.check_target(watts)?;
        }
        let mut held = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.unwrap_or_default();
        let settings = PowerSettings {
            policy: change.policy.unwrap_or(before.policy),
            target_watts: match change.target {
                TargetChange::Keep => before.target_watts,
                TargetChange::Clear => None,
                TargetChange::Set(watts) => Some(watts),
            },
            thermal_protection: change.thermal_protection.unwrap_or(before.thermal_protection),
            adaptive_frequency: change.adaptive_frequency.unwrap_or(before.adaptive_frequency),
            efficiency_core_offload: before.efficiency_core_offload,
        };
        *held = Some(settings);
        drop(held);
        if settings.thermal_protection != before.thermal_protection {
            self.guard_models(settings.thermal_protection);
        }
        Ok(settings)
    }

    /// Refuses a target that cannot be held.
    fn check_target(&self, watts: f64) -> Result<(), String> {
        if !(watts > 0.0 && watts <= MAX_TARGET_WATTS) {
            return Err(format!(
                "target_watts: {watts} found, expected watts above 0 and up to {MAX_TARGET_WATTS}"
            ));
        }
        let idle = self.state().and_then(|state| state.idle_watts);
        match idle.filter(|idle| watts <= *idle) {
            Some(idle) => Err(format!(
                "target_watts: {watts} found, expected more than {idle:.1}: that many watts the machine draws without \
                 work"
            )),
            None => Ok(()),
        }
    }

    /// Whether the target is held, and why not.
    #[must_use]
    pub fn target_state(&self) -> TargetState {
        if self.settings().target_watts.is_none() {
            return TargetState::None;
        }
        let state = self.state();
        let measured = state.filter(|state| state.reading.draw.governed().is_some());
        match measured {
            None => TargetState::Unmeasured,
            Some(state) if state.allowed.limit == PowerLimit::UnreachableTarget => {
                TargetState::Unreachable(state.idle_watts)
            }
            Some(_) => TargetState::Held,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use galatea_runtime::power::{PowerDraw, SensorReading, SensorSource};

    use super::super::PowerWatch;
    use super::*;

    /// A machine that draws 9 W whatever happens.
    #[derive(Debug)]
    struct Idling;

    impl SensorSource for Idling {
        fn read(&mut self) -> SensorReading {
            let draw = PowerDraw { package: Some(9.0), ..PowerDraw::default() };
            SensorReading { draw, ..SensorReading::default() }
        }
    }

    fn set(watts: f64) -> PowerChange {
        PowerChange { target: TargetChange::Set(watts), ..PowerChange::default() }
    }

    #[test]
    fn a_change_holds_from_the_next_reading_on() {
        let control = Arc::new(PowerControl::new(Arc::default()));
        let (sender, told) = mpsc::channel();
        let watch = PowerWatch::with(
            &control,
            PowerSettings::default(),
            || Some(Idling),
            move |allowed| sender.send(*allowed).unwrap_or_default(),
        );
        let patience = Duration::from_secs(60);
        for _ in 0..4 {
            told.recv_timeout(patience).unwrap();
        }
        let error = control.change(set(8.5)).unwrap_err();
        assert!(error.contains("target_watts: 8.5 found, expected more than 9.0"), "{error}");
        assert_eq!(control.target_state(), TargetState::None);
        let policy = Some(PowerPolicy::LowPower);
        let found = control.change(PowerChange { policy, ..set(12.0) }).unwrap();
        assert_eq!((found.target_watts, found.policy), (Some(12.0), PowerPolicy::LowPower));
        while control.state().unwrap().target_watts != Some(12.0) {
            told.recv_timeout(patience).unwrap();
        }
        assert_eq!(control.target_state(), TargetState::Held);
        let clear = PowerChange { target: TargetChange::Clear, ..PowerChange::default() };
        assert_eq!(control.change(clear).unwrap().target_watts, None);
        assert_eq!(control.change(PowerChange::default()).unwrap().policy, PowerPolicy::LowPower);
        drop(watch);
    }

    #[test]
    fn what_cannot_be_changes_nothing() {
        let control = PowerControl::new(Arc::default());
        for watts in [0.0, -3.0, f64::NAN, 1000.5, f64::INFINITY] {
            let change = PowerChange { policy: Some(PowerPolicy::LowPower), ..set(watts) };
            let error = control.change(change).unwrap_err();
            assert!(error.contains("expected watts above 0 and up to 1000"), "{error}");
        }
        assert_eq!(control.current_settings(), PowerSettings::default());
        let change = PowerChange { adaptive_frequency: Some(false), ..PowerChange::default() };
        match PowerControl::has_thread_classes() {
            true => assert!(!control.change(change).unwrap().adaptive_frequency),
            false => assert!(control.change(change).unwrap_err().contains("no classes of threads")),
        }
        control.change(set(20.0)).unwrap();
        assert_eq!(control.target_state(), TargetState::Unmeasured);
    }
}
