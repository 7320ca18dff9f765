//! Energy that was drawn.

use std::time::Duration;

use super::reading::PowerDraw;

/// Joules since a start, by part; a part without a sensor is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnergyReport {
    /// All cores of the processor.
    pub cpu: Option<f64>,
    /// The GPU.
    pub gpu: Option<f64>,
    /// The Neural Engine.
    pub engine: Option<f64>,
    /// Memory.
    pub memory: Option<f64>,
    /// The whole chip, as [`PowerDraw::chip`] says it.
    pub chip: Option<f64>,
    /// The whole machine.
    pub system: Option<f64>,
}

impl EnergyReport {
    /// Returns the number of things, such as tokens, for each joule of the chip's, given `count` of them.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    pub fn per_joule(&self, count: u64) -> Option<f64> {
        self.chip.filter(|joules| *joules > 0.0).map(|joules| count as f64 / joules)
    }
}

/// Adds up what was drawn.
#[derive(Clone, Debug, Default)]
pub struct EnergyMeter(EnergyReport);

impl EnergyMeter {
    /// A meter at the start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a time in which so many watts were drawn on average.
    pub fn add(&mut self, elapsed: Duration, draw: &PowerDraw) {
        let seconds = elapsed.as_secs_f64();
        let sum = &mut self.0;
        for (joules, watts) in [
            (&mut sum.cpu, draw.cpu),
            (&mut sum.gpu, draw.gpu),
            (&mut sum.engine, draw.engine),
            (&mut sum.memory, draw.memory),
            (&mut sum.chip, draw.chip()),
            (&mut sum.system, draw.system),
        ] {
            if let Some(watts) = watts.filter(|watts| watts.is_finite() && *watts >= 0.0) {
                *joules = Some(joules.unwrap_or(0.0) + watts * seconds);
            }
        }
    }

    /// Returns the energy drawn since the start.
    #[must_use]
    pub fn report(&self) -> EnergyReport {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joules_are_watts_by_seconds_and_absent_without_a_sensor() {
        let mut meter = EnergyMeter::new();
        assert_eq!(meter.report().per_joule(100), None);
        let draw = PowerDraw { cpu: Some(4.0), gpu: Some(6.0), ..PowerDraw::default() };
        meter.add(Duration::from_secs(5), &draw);
        meter.add(Duration::from_secs(5), &PowerDraw { gpu: Some(f64::NAN), ..draw });
        let report = meter.report();
        assert_eq!((report.cpu, report.gpu, report.engine), (Some(40.0), Some(30.0), None));
        assert_eq!(report.chip, Some(50.0));
        assert_eq!(report.per_joule(100), Some(2.0));
    }
}
