//! Corrections of predictions by measurements.

use std::collections::HashMap;

use super::unit::ComputeUnit;

/// Share of a new measurement in the average.
const SHARE: f64 = 0.2;
/// The most that a prediction is taken to be wrong by, as a factor.
const MOST: f64 = 100.0;

/// Ratios of measured to predicted time, by device and kind of work. They are averages of logarithms, which
/// makes twice as long and half as long equally far off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostCorrections(HashMap<(ComputeUnit, String), f64>);

impl CostCorrections {
    /// Takes a measurement over. Times that are none change nothing.
    pub fn learn(&mut self, unit: ComputeUnit, kind: &str, predicted: f64, measured: f64) {
        let ratio = measured / predicted;
        if !(ratio.is_finite() && ratio > 0.0) {
            return;
        }
        let now = ratio.clamp(1.0 / MOST, MOST).ln();
        let entry = self.0.entry((unit, kind.to_owned()));
        entry.and_modify(|old| *old += SHARE * (now - *old)).or_insert(now);
    }

    /// The factor that predictions are multiplied by; 1 where nothing was measured.
    #[must_use]
    pub fn factor(&self, unit: ComputeUnit, kind: &str) -> f64 {
        if self.0.is_empty() {
            return 1.0;
        }
        self.0.get(&(unit, kind.to_owned())).map_or(1.0, |log| log.exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_come_near_what_is_measured() {
        let mut all = CostCorrections::default();
        assert!((all.factor(ComputeUnit::Cpu, "MatMul") - 1.0).abs() < 1e-12);
        all.learn(ComputeUnit::Cpu, "MatMul", 1.0, 2.0);
        assert!((all.factor(ComputeUnit::Cpu, "MatMul") - 2.0).abs() < 1e-9);
        for _ in 0..50 {
            all.learn(ComputeUnit::Cpu, "MatMul", 1.0, 0.5);
        }
        assert!((all.factor(ComputeUnit::Cpu, "MatMul") - 0.5).abs() < 0.01);
        all.learn(ComputeUnit::Cpu, "MatMul", 0.0, 1.0);
        all.learn(ComputeUnit::Cpu, "MatMul", 1.0, f64::NAN);
        assert!((all.factor(ComputeUnit::Cpu, "MatMul") - 0.5).abs() < 0.01);
        assert!((all.factor(ComputeUnit::Gpu, "MatMul") - 1.0).abs() < 1e-12);
    }
}
