//! Governor that decides from sensors what a server may do.

use std::fmt;
use std::time::Duration;

use super::heat::HeatGuard;
use super::reading::{SensorReading, ThermalState};
use super::settings::{PowerPolicy, PowerSettings};
use super::watts::WattsLoop;

/// Below this charge a battery is spared.
const LOW_CHARGE: f64 = 0.2;
/// Threads are made less urgent below the first pace, and urgent again above the second.
const THRIFTY: [f64; 2] = [0.9, 0.98];

/// Preference among devices where several can do the work.
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

/// Urgency of threads; macOS chooses cores and clocks by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadClass {
    /// Efficiency cores first, at lower clocks.
    Thrifty,
    /// Cores and clocks that the system sees fit.
    Usual,
    /// Performance cores first.
    Urgent,
}

/// Reason that keeps a server from its full pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerLimit {
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

impl fmt::Display for PowerLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Target => "target",
            Self::UnreachableTarget => "unreachable_target",
            Self::Heat => "heat",
        })
    }
}

/// Limits within which a server may work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerAllowance {
    /// The share of its full pace, 0 to 1, for the [`Gate`](super::Gate).
    pub pace: f64,
    /// True if new requests are taken; a critical machine finishes what it has.
    pub admits: bool,
    /// Preference among devices.
    pub units: UnitChoice,
    /// Urgency of threads that serve waiting clients.
    pub threads: ThreadClass,
    /// Reason that keeps the server from its full pace.
    pub limit: PowerLimit,
}

/// Decides what a server may do.
#[derive(Clone, Debug)]
pub struct PowerGovernor {
    settings: PowerSettings,
    watts: Option<WattsLoop>,
    heat: HeatGuard,
    thrifty: bool,
}

impl PowerGovernor {
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

    /// Works by other settings from now on. What was learned of the chip and its heat stays.
    pub fn change(&mut self, settings: PowerSettings) {
        self.watts = match (self.watts.take(), settings.target_watts) {
            (Some(mut watts), Some(target)) => {
                watts.set_target(target);
                Some(watts)
            }
            (None, Some(target)) => Some(WattsLoop::new(target)),
            (_, None) => None,
        };
        self.settings = settings;
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
    pub fn policy(&self, reading: &SensorReading) -> PowerPolicy {
        let low = reading.battery.is_some_and(|one| one.discharging && one.charge < LOW_CHARGE);
        if !low && reading.low_power != Some(true) {
            return self.settings.policy;
        }
        match self.settings.policy {
            PowerPolicy::HighPerformance => PowerPolicy::Balanced,
            PowerPolicy::Balanced | PowerPolicy::LowPower => PowerPolicy::LowPower,
        }
    }

    /// Returns what is allowed after `elapsed`. Sensors give `reading` at its end, and in it work `used` that
    /// share of its full pace. A quantity that no sensor reports limits nothing.
    pub fn step(
        &mut self,
        elapsed: Duration,
        reading: &SensorReading,
        used: f64,
    ) -> PowerAllowance {
        let mut pace = 1.0;
        let mut limit = PowerLimit::None;
        if let (Some(watts), Some(draw)) = (&mut self.watts, reading.draw.governed()) {
            pace = watts.step(elapsed, draw.watts, used);
            limit = match pace {
                1.0.. => PowerLimit::None,
                _ if watts.unreachable() => PowerLimit::UnreachableTarget,
                _ => PowerLimit::Target,
            };
        }
        let mut admits = true;
        if let (true, Some(state)) = (self.settings.thermal_protection, reading.thermal) {
            let most = self.heat.step(elapsed, state);
            admits = self.heat.state() != ThermalState::Critical;
            if most < pace {
                (pace, limit) = (most, PowerLimit::Heat);
            }
        }
        let policy = self.policy(reading);
        let threads = self.threads(policy, pace);
        PowerAllowance {
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
    use super::super::reading::{Battery, PowerDraw};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_host_without_sensors_is_not_slowed_down() {
        let settings = PowerSettings { target_watts: Some(5.0), ..PowerSettings::default() };
        let allowed = PowerGovernor::new(settings).step(SECOND, &SensorReading::default(), 1.0);
        assert_eq!((allowed.pace.to_bits(), allowed.limit), (1.0_f64.to_bits(), PowerLimit::None));
        assert!(allowed.admits);
    }

    #[test]
    fn a_target_is_held_by_the_machines_sensor_where_the_processors_counter_says_nothing() {
        let settings = PowerSettings { target_watts: Some(10.0), ..PowerSettings::default() };
        let mut governor = PowerGovernor::new(settings);
        // The GPU alone is below the target.
        let draw = PowerDraw { gpu: Some(2.0), system: Some(40.0), ..PowerDraw::default() };
        let reading = SensorReading { draw, ..SensorReading::default() };
        let mut pace = 1.0;
        for _ in 0..30 {
            pace = governor.step(SECOND, &reading, pace).pace;
        }
        assert!(pace < 0.5, "{pace}");
    }

    #[test]
    fn the_users_wish_to_save_power_makes_the_policy_thriftier() {
        let governor =
            |policy| PowerGovernor::new(PowerSettings { policy, ..PowerSettings::default() });
        let saving = SensorReading { low_power: Some(true), ..SensorReading::default() };
        let policy = governor(PowerPolicy::HighPerformance).policy(&saving);
        assert_eq!(policy, PowerPolicy::Balanced);
        let empty = Battery { charge: 0.1, discharging: true };
        let empty = SensorReading { battery: Some(empty), ..SensorReading::default() };
        assert_eq!(governor(PowerPolicy::Balanced).policy(&empty), PowerPolicy::LowPower);
        let plugged = Battery { charge: 0.1, discharging: false };
        let plugged = SensorReading { battery: Some(plugged), ..SensorReading::default() };
        assert_eq!(governor(PowerPolicy::Balanced).policy(&plugged), PowerPolicy::Balanced);
    }

    #[test]
    fn settings_change_while_it_governs() {
        let mut governor = PowerGovernor::new(PowerSettings::default());
        let draw = PowerDraw { package: Some(20.0), ..PowerDraw::default() };
        let reading = SensorReading { draw, ..SensorReading::default() };
        let run = |governor: &mut PowerGovernor| {
            let mut allowed = governor.step(SECOND, &reading, 1.0);
            for _ in 0..20 {
                allowed = governor.step(SECOND, &reading, allowed.pace);
            }
            allowed
        };
        assert_eq!(run(&mut governor).limit, PowerLimit::None);
        let held = PowerSettings { target_watts: Some(5.0), ..PowerSettings::default() };
        governor.change(held);
        // The draw of this reading stays the same whatever the pace.
        let limit = run(&mut governor).limit;
        assert_eq!((limit, governor.settings()), (PowerLimit::UnreachableTarget, &held));
        governor
            .change(PowerSettings { policy: PowerPolicy::LowPower, ..PowerSettings::default() });
        let free = run(&mut governor);
        assert_eq!((free.limit, free.units), (PowerLimit::None, UnitChoice::Frugal));
    }

    #[test]
    fn heat_comes_before_the_target_and_a_critical_machine_takes_nothing_new() {
        let settings = PowerSettings { target_watts: Some(100.0), ..PowerSettings::default() };
        let mut governor = PowerGovernor::new(settings);
        let draw = PowerDraw { package: Some(10.0), ..PowerDraw::default() };
        let critical = Some(ThermalState::Critical);
        let reading = SensorReading { draw, thermal: critical, ..SensorReading::default() };
        let allowed = governor.step(SECOND, &reading, 0.5);
        assert_eq!((allowed.limit, allowed.admits), (PowerLimit::Heat, false));
        assert!(allowed.pace.abs() < f64::EPSILON);
        let settings = PowerSettings { thermal_protection: false, ..settings };
        assert!(PowerGovernor::new(settings).step(SECOND, &reading, 0.5).admits);
    }
}
