//! What a server may do, from what sensors say.

use std::fmt;
use std::time::Duration;

use super::heat::HeatGuard;
use super::reading::{Reading, ThermalState};
use super::settings::{PowerPolicy, PowerSettings};
use super::watts::WattsLoop;

/// Below this charge a battery is spared.
const LOW_CHARGE: f64 = 0.2;
/// Threads are made less urgent below the first pace, and urgent again above the second.
const THRIFTY: [f64; 2] = [0.9, 0.98];

/// Which units work goes to where several can do it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitChoice {
    /// The one that is done first.
    #[default]
    Fastest,
    /// The one that is done first, unless another needs much less energy and little more time.
    Balanced,
    /// The one that needs the least energy.
    Frugal,
}

/// How urgent threads are; macOS chooses cores and clocks by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadClass {
    /// Efficiency cores first, at lower clocks.
    Thrifty,
    /// As the system sees fit.
    Usual,
    /// Performance cores first.
    Urgent,
}

/// What keeps a server from its full pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing.
    None,
    /// The target of watts.
    Target,
    /// The target of watts, which is below what the machine draws without work.
    UnreachableTarget,
    /// Heat.
    Heat,
}

impl ThreadClass {
    /// All classes, the least urgent first.
    pub const ALL: [Self; 3] = [Self::Thrifty, Self::Usual, Self::Urgent];
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Target => "target",
            Self::UnreachableTarget => "unreachable_target",
            Self::Heat => "heat",
        })
    }
}

/// What a server may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// The share of its full pace, 0 to 1, for the [`Gate`](super::Gate).
    pub pace: f64,
    /// Whether new requests are taken; a critical machine finishes what it has.
    pub admits: bool,
    /// Which units work goes to.
    pub units: UnitChoice,
    /// How urgent threads are that somebody waits for.
    pub threads: ThreadClass,
    /// What keeps it from its full pace.
    pub limit: Limit,
}

/// Decides what a server may do.
#[derive(Clone, Debug)]
pub struct Governor {
    settings: PowerSettings,
    watts: Option<WattsLoop>,
    heat: HeatGuard,
    thrifty: bool,
}

impl Governor {
    /// A governor by these settings.
    #[must_use]
    pub fn new(settings: PowerSettings) -> Self {
        Self {
            settings,
            watts: settings.target_watts.map(WattsLoop::new),
            heat: HeatGuard::new(),
            thrifty: false,
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &PowerSettings {
        &self.settings
    }

    /// The state of heat that it acts by.
    #[must_use]
    pub fn thermal_state(&self) -> ThermalState {
        self.heat.state()
    }

    /// The policy in force: a user who asks the system to save power, or a battery that runs low, makes
    /// it one step thriftier.
    #[must_use]
    pub fn policy(&self, reading: &Reading) -> PowerPolicy {
        let low = reading.battery.is_some_and(|one| one.discharging && one.charge < LOW_CHARGE);
        if !low && reading.low_power != Some(true) {
            return self.settings.policy;
        }
        match self.settings.policy {
            PowerPolicy::HighPerformance => PowerPolicy::Balanced,
            PowerPolicy::Balanced | PowerPolicy::LowPower => PowerPolicy::LowPower,
        }
    }

    /// What is allowed after `elapsed`, at whose end sensors say `reading`, and in which work had `used`
    /// of its full pace. What no sensor tells limits nothing.
    pub fn step(&mut self, elapsed: Duration, reading: &Reading, used: f64) -> Allowance {
        let mut pace = 1.0;
        let mut limit = Limit::None;
        if let (Some(watts), Some(chip)) = (&mut self.watts, reading.draw.chip()) {
            pace = watts.step(elapsed, chip, used);
            limit = match pace {
                1.0.. => Limit::None,
                _ if watts.unreachable() => Limit::UnreachableTarget,
                _ => Limit::Target,
            };
        }
        let mut admits = true;
        if let (true, Some(state)) = (self.settings.thermal_protection, reading.thermal) {
            let most = self.heat.step(elapsed, state);
            admits = self.heat.state() != ThermalState::Critical;
            if most < pace {
                (pace, limit) = (most, Limit::Heat);
            }
        }
        let policy = self.policy(reading);
        let threads = self.threads(policy, pace);
        Allowance {
            pace,
            admits,
            units: match policy {
                PowerPolicy::HighPerformance => UnitChoice::Fastest,
                PowerPolicy::Balanced => UnitChoice::Balanced,
                PowerPolicy::LowPower => UnitChoice::Frugal,
            },
            threads,
            limit,
        }
    }

    /// Threads that have to rest anyway may as well run at lower clocks, which need less energy.
    fn threads(&mut self, policy: PowerPolicy, pace: f64) -> ThreadClass {
        let [down, up] = THRIFTY;
        self.thrifty = match self.thrifty {
            true => pace < up,
            false => pace < down,
        };
        let class = match policy {
            PowerPolicy::HighPerformance => ThreadClass::Urgent,
            PowerPolicy::Balanced => ThreadClass::Usual,
            PowerPolicy::LowPower => ThreadClass::Thrifty,
        };
        match (self.settings.adaptive_frequency && self.thrifty, class) {
            (true, ThreadClass::Urgent) => ThreadClass::Usual,
            (true, _) => ThreadClass::Thrifty,
            (false, class) => class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::{Battery, Draw};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_host_without_sensors_is_not_slowed_down() {
        let settings = PowerSettings { target_watts: Some(5.0), ..PowerSettings::default() };
        let allowed = Governor::new(settings).step(SECOND, &Reading::default(), 1.0);
        assert_eq!((allowed.pace.to_bits(), allowed.limit), (1.0_f64.to_bits(), Limit::None));
        assert!(allowed.admits);
    }

    #[test]
    fn the_users_wish_to_save_power_makes_the_policy_thriftier() {
        let governor = |policy| Governor::new(PowerSettings { policy, ..PowerSettings::default() });
        let saving = Reading { low_power: Some(true), ..Reading::default() };
        let policy = governor(PowerPolicy::HighPerformance).policy(&saving);
        assert_eq!(policy, PowerPolicy::Balanced);
        let empty = Battery { charge: 0.1, discharging: true };
        let empty = Reading { battery: Some(empty), ..Reading::default() };
        assert_eq!(governor(PowerPolicy::Balanced).policy(&empty), PowerPolicy::LowPower);
        let plugged = Battery { charge: 0.1, discharging: false };
        let plugged = Reading { battery: Some(plugged), ..Reading::default() };
        assert_eq!(governor(PowerPolicy::Balanced).policy(&plugged), PowerPolicy::Balanced);
    }

    #[test]
    fn heat_comes_before_the_target_and_a_critical_machine_takes_nothing_new() {
        let settings = PowerSettings { target_watts: Some(100.0), ..PowerSettings::default() };
        let mut governor = Governor::new(settings);
        let draw = Draw { package: Some(10.0), ..Draw::default() };
        let critical = Some(ThermalState::Critical);
        let reading = Reading { draw, thermal: critical, ..Reading::default() };
        let allowed = governor.step(SECOND, &reading, 0.5);
        assert_eq!((allowed.limit, allowed.admits), (Limit::Heat, false));
        assert!(allowed.pace.abs() < f64::EPSILON);
        let settings = PowerSettings { thermal_protection: false, ..settings };
        assert!(Governor::new(settings).step(SECOND, &reading, 0.5).admits);
    }
}
