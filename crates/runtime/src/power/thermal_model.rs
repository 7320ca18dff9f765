//! A machine that warms up and throttles, to run a governor against.

use std::time::Duration;

use super::reading::{PowerDraw, SensorReading, ThermalState};

/// Thermal properties of a machine, as one lump of heat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineModel {
    /// Watts without work.
    pub idle_watts: f64,
    /// Watts at full pace and full clocks.
    pub full_watts: f64,
    /// Degrees Celsius around it.
    pub ambient: f64,
    /// Kelvin above the air around it for each watt, once it is as warm as it gets.
    pub kelvin_per_watt: f64,
    /// Joules that warm it by a kelvin.
    pub joules_per_kelvin: f64,
    /// Degrees Celsius from which it lowers its clocks.
    pub limit: f64,
    /// The lowest share of its clocks.
    pub lowest_clocks: f64,
}

/// Shares a second by which clocks fall while the machine is too hot, and rise when it is not.
const CLOCKS: [f64; 2] = [0.05, 0.02];
/// Kelvin below the limit where clocks rise again.
const COOLER: f64 = 3.0;
/// Steps of the simulation.
const STEP: f64 = 0.05;

/// A machine at one time.
///
/// `C · dT/dt = P − (T − ambient) / R`, with `P = idle + (full − idle) · pace · clocks²`: voltage follows
/// clocks, and power goes with clocks times voltage squared, which work done (`pace · clocks`) gets back
/// one factor of.
#[derive(Clone, Debug)]
pub struct ThermalModel {
    machine: MachineModel,
    celsius: f64,
    clocks: f64,
}

impl ThermalModel {
    /// A machine as warm as the air around it.
    #[must_use]
    pub fn new(machine: MachineModel) -> Self {
        Self { machine, celsius: machine.ambient, clocks: 1.0 }
    }

    /// Its temperature in degrees Celsius.
    #[must_use]
    pub fn celsius(&self) -> f64 {
        self.celsius
    }

    /// Returns whether the machine has lowered its clocks.
    #[must_use]
    pub fn throttled(&self) -> bool {
        self.clocks < 1.0
    }

    /// Puts it elsewhere, such as where it is cooler, as warm as it is.
    pub fn put(&mut self, machine: MachineModel) {
        self.machine = machine;
    }

    /// Runs it at a pace. Gives what its sensors say then, and the work that was done, in seconds of work
    /// at full pace and clocks.
    pub fn step(&mut self, elapsed: Duration, pace: f64) -> (SensorReading, f64) {
        let machine = self.machine;
        let mut joules = 0.0;
        let mut work = 0.0;
        let mut left = elapsed.as_secs_f64();
        let whole = left;
        while left > 1e-9 {
            let seconds = left.min(STEP);
            left -= seconds;
            let dynamic = (machine.full_watts - machine.idle_watts) * pace;
            let watts = machine.idle_watts + dynamic * self.clocks * self.clocks;
            let lost = (self.celsius - machine.ambient) / machine.kelvin_per_watt;
            self.celsius += seconds * (watts - lost) / machine.joules_per_kelvin;
            self.turn(seconds);
            joules += watts * seconds;
            work += pace * self.clocks * seconds;
        }
        let watts = (whole > 0.0).then(|| joules / whole);
        let reading = SensorReading {
            draw: PowerDraw { package: watts, ..PowerDraw::default() },
            thermal: Some(ThermalState::of_temperature(self.celsius, machine.limit)),
            celsius: Some(self.celsius),
            ..SensorReading::default()
        };
        (reading, work)
    }

    /// Adjusts the clocks as the machine itself does.
    fn turn(&mut self, seconds: f64) {
        let [fall, rise] = CLOCKS;
        if self.celsius > self.machine.limit {
            self.clocks = (self.clocks - fall * seconds).max(self.machine.lowest_clocks);
        } else if self.celsius < self.machine.limit - COOLER {
            self.clocks = (self.clocks + rise * seconds).min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_comes_to_the_temperature_of_its_watts_and_throttles_above_its_limit() {
        let machine = MachineModel {
            idle_watts: 1.0,
            full_watts: 21.0,
            ambient: 25.0,
            kelvin_per_watt: 5.0,
            joules_per_kelvin: 10.0,
            limit: 95.0,
            lowest_clocks: 0.3,
        };
        let mut model = ThermalModel::new(machine);
        let (reading, _) = model.step(Duration::from_secs(1000), 0.5);
        assert!((model.celsius() - 80.0).abs() < 0.1, "{}", model.celsius());
        assert!((reading.draw.chip().unwrap() - 11.0).abs() < 0.1);
        assert!(!model.throttled());
        model.step(Duration::from_secs(1000), 1.0);
        assert!(model.throttled());
        assert!(model.celsius() < 97.0, "{}", model.celsius());
    }
}
