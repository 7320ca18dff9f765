//! Readings of power and temperature sensors.

use std::fmt;

/// Thermal state that a machine reports, the coolest first. Source: Apple, `NSProcessInfo.ThermalState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThermalState {
    /// Normal temperature.
    Nominal,
    /// Fans are heard; work that can wait should.
    Fair,
    /// Fans are at their fastest, clocks are lowered.
    Serious,
    /// The machine has to cool down.
    Critical,
}

impl ThermalState {
    /// All states, the coolest first.
    pub const ALL: [Self; 4] = [Self::Nominal, Self::Fair, Self::Serious, Self::Critical];

    /// Its name, as metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nominal => "nominal",
            Self::Fair => "fair",
            Self::Serious => "serious",
            Self::Critical => "critical",
        }
    }

    /// The state of a part at `celsius` that lowers its clocks at `limit`, where the system has no word
    /// for it: fair from 15 degrees below, serious at the limit, critical 10 degrees above.
    #[must_use]
    pub fn of_temperature(celsius: f64, limit: f64) -> Self {
        match celsius - limit {
            over if over >= 10.0 => Self::Critical,
            over if over >= 0.0 => Self::Serious,
            over if over >= -15.0 => Self::Fair,
            _ => Self::Nominal,
        }
    }
}

impl fmt::Display for ThermalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A battery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Battery {
    /// Charge of the battery, 0 to 1.
    pub charge: f64,
    /// True if the machine runs from the battery.
    pub discharging: bool,
}

/// Watts that parts of a chip draw; what the host does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PowerDraw {
    /// All cores of the processor.
    pub cpu: Option<f64>,
    /// The GPU.
    pub gpu: Option<f64>,
    /// The Neural Engine.
    pub engine: Option<f64>,
    /// Memory.
    pub memory: Option<f64>,
    /// The whole chip, where there is a sensor for that.
    pub package: Option<f64>,
    /// The whole machine.
    pub system: Option<f64>,
}

impl PowerDraw {
    /// Watts of the whole chip, which a target is for: its own sensor, or else the sum of its parts.
    #[must_use]
    pub fn chip(&self) -> Option<f64> {
        let parts = [self.cpu, self.gpu, self.engine, self.memory];
        let sum = || parts.iter().flatten().copied().reduce(|sum, part| sum + part);
        self.package.or_else(sum)
    }

    /// Watts that a target is compared with: those of the whole chip. Where nothing is known of the processor, the
    /// other parts would be taken for the chip, so the machine's own sensor counts: macOS 27 shows it, and 0 for
    /// processor and memory.
    #[must_use]
    pub fn governed(&self) -> Option<GovernedDraw> {
        let of_chip = |watts| GovernedDraw { watts, scope: MeterScope::Chip };
        let of_machine = |watts| GovernedDraw { watts, scope: MeterScope::Machine };
        let knows_chip = self.package.or(self.cpu).is_some();
        let machine = self.system.filter(|_| !knows_chip).map(of_machine);
        machine.or_else(|| self.chip().map(of_chip))
    }
}

/// Extent of what a number of watts was measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterScope {
    /// The chip.
    Chip,
    /// The whole machine, its screen and fans included.
    Machine,
}

/// Watts that a target is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GovernedDraw {
    /// The watts.
    pub watts: f64,
    /// Extent of the measurement.
    pub scope: MeterScope,
}

/// Readings of a host's sensors; a sensor that the host lacks is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SensorReading {
    /// Watts since the reading before.
    pub draw: PowerDraw,
    /// Thermal state that the machine reports.
    pub thermal: Option<ThermalState>,
    /// The temperature of its hottest part that is watched, in degrees Celsius.
    pub celsius: Option<f64>,
    /// True if the user asked the system to save power.
    pub low_power: Option<bool>,
    /// The battery.
    pub battery: Option<Battery>,
}

/// Something that reads a host's sensors.
pub trait SensorSource: fmt::Debug {
    /// Reads them; may take as long as a sample needs. What cannot be read is absent.
    fn read(&mut self) -> SensorReading;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_draws_what_its_sensor_says_or_else_the_sum_of_its_parts() {
        assert_eq!(PowerDraw::default().chip(), None);
        let parts = PowerDraw { cpu: Some(3.0), gpu: Some(4.0), ..PowerDraw::default() };
        assert_eq!(parts.chip(), Some(7.0));
        assert_eq!(PowerDraw { package: Some(9.0), ..parts }.chip(), Some(9.0));
    }

    #[test]
    fn a_target_is_for_the_machine_where_nothing_is_known_of_the_processor() {
        let gpu = PowerDraw { gpu: Some(4.0), system: Some(30.0), ..PowerDraw::default() };
        let governed = gpu.governed().unwrap();
        assert_eq!((governed.watts, governed.scope), (30.0, MeterScope::Machine));
        let both = PowerDraw { cpu: Some(3.0), ..gpu }.governed().unwrap();
        assert_eq!((both.watts, both.scope), (7.0, MeterScope::Chip));
        let package = PowerDraw { package: Some(9.0), ..gpu }.governed().unwrap();
        assert_eq!((package.watts, package.scope), (9.0, MeterScope::Chip));
        let alone = PowerDraw { system: None, ..gpu }.governed().unwrap();
        assert_eq!((alone.watts, alone.scope), (4.0, MeterScope::Chip));
        assert_eq!(PowerDraw::default().governed(), None);
    }

    #[test]
    fn a_temperature_has_the_state_of_its_distance_from_the_limit() {
        let states = [60.0, 80.0, 95.0, 105.0].map(|at| ThermalState::of_temperature(at, 95.0));
        assert_eq!(states, ThermalState::ALL);
    }
}
