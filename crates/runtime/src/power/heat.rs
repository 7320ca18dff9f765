//! A guard that keeps a machine out of throttling.

use std::time::Duration;

use super::reading::ThermalState;

/// Time for which a machine has to be cooler before more work is let in.
const REST: Duration = Duration::from_secs(30);
/// Time that the pace of a state may take to show an effect.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pace that is left after each such time in which the machine stayed as hot.
const CUT: f64 = 0.8;
/// The least pace short of a critical state.
const LEAST: f64 = 0.05;
/// Gain in pace for each second once the machine has rested: cool, and warm.
const RISE: [f64; 2] = [0.02, 0.001];
/// By which share a pace that was too much is thought better of in a second: cool, and warm.
const FORGET: [f64; 2] = [0.005, 0.0005];

/// The most pace in a state. Critical machines finish what runs and begin nothing.
fn most(state: ThermalState) -> f64 {
    match state {
        ThermalState::Nominal => 1.0,
        ThermalState::Fair => 0.8,
        ThermalState::Serious => 0.5,
        ThermalState::Critical => 0.0,
    }
}

/// Slows work down while a machine is hot and speeds it up again slowly, so that heat does not swing.
///
/// A hotter state acts at once; where it lasts, the pace is cut further. A cooler one counts after half a
/// minute, and then the pace rises by little, up to four fifths of what was too much before. That is
/// forgotten over minutes, so that the pace follows a machine which has come to cool better.
#[derive(Clone, Debug)]
pub struct HeatGuard {
    state: ThermalState,
    pace: f64,
    /// Time for which the machine has been in the state, since the last cut.
    hot: Duration,
    /// Time for which the machine has been cooler than the state.
    cool: Duration,
    /// The pace at which the machine was last seen to get too hot.
    trouble: Option<f64>,
}

impl Default for HeatGuard {
    fn default() -> Self {
        Self {
            state: ThermalState::Nominal,
            pace: 1.0,
            hot: Duration::ZERO,
            cool: Duration::ZERO,
            trouble: None,
        }
    }
}

impl HeatGuard {
    /// A guard of a cool machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The state that the guard acts by.
    #[must_use]
    pub fn state(&self) -> ThermalState {
        self.state
    }

    /// The pace, 0 to 1, that is allowed after `elapsed` at whose end the machine was in `state`.
    pub fn step(&mut self, elapsed: Duration, state: ThermalState) -> f64 {
        if state > self.state {
            if state >= ThermalState::Serious {
                self.trouble = Some(self.pace);
            }
            self.state = state;
            self.pace = self.pace.min(most(state));
            (self.hot, self.cool) = (Duration::ZERO, Duration::ZERO);
            return self.pace;
        }
        if state < self.state {
            self.cool += elapsed;
            if self.cool >= REST {
                self.state = state;
                (self.hot, self.cool) = (Duration::ZERO, Duration::ZERO);
            }
            return self.pace;
        }
        self.cool = Duration::ZERO;
        self.stay(elapsed);
        self.pace
    }

    /// The machine is as hot as before.
    fn stay(&mut self, elapsed: Duration) {
        match self.state {
            ThermalState::Critical => self.pace = 0.0,
            ThermalState::Serious => {
                self.hot += elapsed;
                if self.hot >= PATIENCE {
                    self.hot = Duration::ZERO;
                    self.pace = (self.pace * CUT).max(LEAST);
                }
            }
            ThermalState::Nominal | ThermalState::Fair => {
                let seconds = elapsed.as_secs_f64();
                let warm = usize::from(self.state == ThermalState::Fair);
                let forgotten = 1.0 + FORGET[warm] * seconds;
                self.trouble = self.trouble.map(|pace| pace * forgotten).filter(|pace| *pace < 1.0);
                let top = most(self.state).min(self.trouble.map_or(1.0, |pace| pace * CUT));
                self.pace = self.pace.max((self.pace + RISE[warm] * seconds).min(top));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ThermalState::{Critical, Fair, Nominal, Serious};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(guard: &mut HeatGuard, seconds: u32, state: ThermalState) -> f64 {
        (0..seconds).map(|_| guard.step(SECOND, state)).last().unwrap()
    }

    #[test]
    fn a_hotter_state_acts_at_once_and_a_cooler_one_after_half_a_minute() {
        let mut guard = HeatGuard::new();
        assert!((after(&mut guard, 5, Nominal) - 1.0).abs() < 1e-9);
        assert!((after(&mut guard, 1, Serious) - 0.5).abs() < 1e-9);
        assert!((after(&mut guard, 29, Nominal) - 0.5).abs() < 1e-9);
        assert_eq!(guard.state(), Serious);
        assert!(after(&mut guard, 3, Nominal) > 0.5);
        assert_eq!(guard.state(), Nominal);
    }

    #[test]
    fn a_critical_machine_begins_nothing_and_gets_back_to_its_full_pace() {
        let mut guard = HeatGuard::new();
        assert!(after(&mut guard, 1, Critical).abs() < 1e-9);
        assert!(after(&mut guard, 20, Serious).abs() < 1e-9, "cooler, but not for long");
        after(&mut guard, 31, Fair);
        let pace = after(&mut guard, 600, Nominal);
        assert!((pace - 1.0).abs() < 1e-9, "{pace}");
    }

    #[test]
    fn heat_that_lasts_is_cut_further() {
        let mut guard = HeatGuard::new();
        let first = after(&mut guard, 1, Serious);
        let later = after(&mut guard, 60, Serious);
        assert!(later < first / 2.0, "{first} then {later}");
        assert!(after(&mut guard, 600, Serious) >= LEAST);
    }

    #[test]
    fn a_state_that_flickers_does_not_make_the_pace_swing() {
        let mut guard = HeatGuard::new();
        let mut least: f64 = 1.0;
        let mut most: f64 = 0.0;
        for second in 0..600 {
            let state = if second % 4 < 2 { Fair } else { Nominal };
            let pace = guard.step(SECOND, state);
            if second > 10 {
                least = least.min(pace);
                most = most.max(pace);
            }
        }
        assert!(most - least < 0.05, "{least} to {most}");
    }
}
