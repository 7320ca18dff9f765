//! Power limits of one model, from what its runs make the machine draw.

use std::time::Duration;

use super::governor::{PowerLimit, ThreadClass};
use super::heat::HeatGuard;
use super::reading::ThermalState;
use super::settings::{PowerPolicy, PowerSettings};
use super::watts::WattsLoop;

/// Threads of a model are made less urgent below the first pace, and urgent again above the second.
const THRIFTY: [f64; 2] = [0.9, 0.98];

/// Limits within which the runs of a model may work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelAllowance {
    /// The share of their full pace, 0 to 1.
    pub pace: f64,
    /// Urgency of the model's threads.
    pub threads: ThreadClass,
    /// Reason that keeps the runs from their full pace.
    pub limit: PowerLimit,
}

/// Decides what the runs of one model may do, beside what the whole server may: it holds the model's own target, and
/// guards against heat where the server does not.
#[derive(Clone, Debug)]
pub struct ModelGovernor {
    settings: PowerSettings,
    watts: Option<WattsLoop>,
    heat: Option<HeatGuard>,
    thrifty: bool,
}

impl ModelGovernor {
    /// A governor by these settings.
    #[must_use]
    pub fn new(settings: PowerSettings) -> Self {
        Self {
            settings,
            watts: settings.target_watts.map(WattsLoop::new),
            heat: settings.thermal_protection.then(HeatGuard::new),
            thrifty: false,
        }
    }

    /// Returns what is allowed after `elapsed`. In that time `watts` were attributed to the model and its runs
    /// had `used` of their full pace; at its end the machine was in a thermal state. A quantity that no sensor
    /// reports limits nothing.
    pub fn step(
        &mut self,
        elapsed: Duration,
        watts: Option<f64>,
        thermal: Option<ThermalState>,
        used: f64,
    ) -> ModelAllowance {
        let mut pace = 1.0;
        let mut limit = PowerLimit::None;
        if let (Some(control), Some(watts)) = (&mut self.watts, watts) {
            pace = control.step_working(elapsed, watts, used);
            if pace < 1.0 {
                limit = PowerLimit::Target;
            }
        }
        if let (Some(guard), Some(state)) = (&mut self.heat, thermal) {
            let most = guard.step(elapsed, state);
            if most < pace {
                (pace, limit) = (most, PowerLimit::Heat);
            }
        }
        ModelAllowance { pace, threads: self.threads(pace), limit }
    }

    /// Threads that have to rest anyway may as well run at lower clocks, which need less energy for the same work:
    /// the pace rises then for the same watts.
    fn threads(&mut self, pace: f64) -> ThreadClass {
        let [down, up] = THRIFTY;
        self.thrifty = pace < if self.thrifty { up } else { down };
        match (self.settings.policy, self.settings.adaptive_frequency && self.thrifty) {
            (PowerPolicy::LowPower, _) | (_, true) => ThreadClass::Thrifty,
            // What the server says holds.
            _ => ThreadClass::Urgent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_model_without_sensors_or_wishes_has_its_full_pace() {
        let settings = PowerSettings { target_watts: Some(3.0), ..PowerSettings::default() };
        let free =
            ModelAllowance { pace: 1.0, threads: ThreadClass::Urgent, limit: PowerLimit::None };
        assert_eq!(ModelGovernor::new(settings).step(SECOND, None, None, 1.0), free);
        let guarded =
            ModelGovernor::new(settings).step(SECOND, None, Some(ThermalState::Serious), 1.0);
        assert_eq!(guarded.limit, PowerLimit::Heat);
        let open = PowerSettings { thermal_protection: false, ..PowerSettings::default() };
        let state = Some(ThermalState::Critical);
        assert_eq!(ModelGovernor::new(open).step(SECOND, Some(50.0), state, 1.0), free);
    }

    #[test]
    fn clocks_are_lowered_only_where_that_is_allowed() {
        let slowed = |adaptive_frequency| {
            let settings = PowerSettings {
                target_watts: Some(3.0),
                adaptive_frequency,
                ..PowerSettings::default()
            };
            let mut governor = ModelGovernor::new(settings);
            (0..30).map(|_| governor.step(SECOND, Some(12.0), None, 0.9)).last().unwrap()
        };
        assert_eq!(slowed(true).threads, ThreadClass::Thrifty);
        assert_eq!(slowed(false).threads, ThreadClass::Urgent);
        assert!(slowed(false).pace < 0.5);
    }
}
