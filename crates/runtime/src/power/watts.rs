//! A loop that holds a chip at a number of watts.

use std::time::Duration;

/// Seconds over which watts and work are averaged: sensors give one number a second, and some of a second's
/// work shows up in the next one's watts.
const AVERAGED: f64 = 2.0;
/// Below this share of its full pace a server is idle: what it draws is what it draws without work.
const IDLE: f64 = 0.02;
/// The least pace: nothing hangs, whatever the target is.
const LEAST: f64 = 0.01;
/// The pace before it is known what work draws.
const FIRST: f64 = 0.5;
/// Gain in pace for each second at most; a fall takes effect at once.
const RISE: f64 = 0.1;
/// Share of a new answer that is taken over in a second: half, since the plant answers with a delay.
const GAIN: f64 = 0.5;

/// Holds a target by the pace that it allows.
///
/// The draw of a chip is modelled as `idle + slope · pace`, both learned from sensors. The loop goes on
/// learning while work stays below its allowed pace. So nothing winds up while a server waits, and load that
/// comes back meets a pace that fits. In equilibrium it allows the pace at which the average draw is the
/// target, however crooked the real curve is.
#[derive(Clone, Debug)]
pub struct WattsLoop {
    target: f64,
    /// Averages of watts and of the pace that was used.
    average: Option<(f64, f64)>,
    idle: Option<f64>,
    slope: Option<f64>,
    pace: f64,
}

impl WattsLoop {
    /// A loop for so many watts.
    #[must_use]
    pub fn new(target: f64) -> Self {
        Self { target, average: None, idle: None, slope: None, pace: FIRST }
    }

    /// Aims at another target from now on; what was learned of the chip stays.
    pub fn set_target(&mut self, target: f64) {
        self.target = target;
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Returns the chip's draw without work, once it was seen idle.
    #[must_use]
    pub fn idle(&self) -> Option<f64> {
        self.idle
    }

    /// Returns whether the target is below the chip's draw without work, which means that no pace holds it.
    #[must_use]
    pub fn unreachable(&self) -> bool {
        self.idle.is_some_and(|idle| idle >= self.target)
    }

    /// The pace, 0 to 1, that is allowed after `elapsed` in which the chip drew `watts` on average and
    /// work had `used` of its full pace.
    pub fn step(&mut self, elapsed: Duration, watts: f64, used: f64) -> f64 {
        let seconds = elapsed.as_secs_f64();
        if !watts.is_finite() || !used.is_finite() || seconds <= 0.0 {
            return self.pace;
        }
        let share = 1.0 - (-seconds / AVERAGED).exp();
        let toward = |from: f64, to: f64| from + share * (to - from);
        let used = used.clamp(0.0, 1.0);
        let (watts, used) = match self.average {
            Some((before, paced)) => (toward(before, watts), toward(paced, used)),
            None => (watts, used),
        };
        self.average = Some((watts, used));
        if used < IDLE {
            self.idle = Some(watts);
        } else {
            // What is drawn with work cannot be less than what is drawn without.
            self.idle = self.idle.map(|idle| idle.min(watts));
            let slope = (watts - self.idle.unwrap_or(0.0)) / used;
            self.slope = (slope > 0.0).then_some(slope).or(self.slope);
        }
        let Some(slope) = self.slope else { return self.pace };
        let wanted = ((self.target - self.idle.unwrap_or(0.0)) / slope).clamp(LEAST, 1.0);
        let gain = 1.0 - (1.0 - GAIN).powf(seconds);
        let next = self.pace + gain * (wanted - self.pace);
        self.pace = next.min(self.pace + RISE * seconds).clamp(LEAST, 1.0);
        self.pace
    }
}

/// Draw of a machine without work, learned while there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleDraw {
    average: Option<f64>,
    /// Time without work that the average covers.
    covered: f64,
}

impl IdleDraw {
    /// Takes a reading in: the machine drew `watts` for `elapsed`, in which work had `used` of its full pace.
    pub fn note(&mut self, elapsed: Duration, watts: f64, used: f64) {
        let seconds = elapsed.as_secs_f64();
        if !watts.is_finite() || !used.is_finite() || seconds <= 0.0 {
            return;
        }
        if used >= IDLE {
            // What is drawn with work cannot be less than what is drawn without.
            self.average = self.average.map(|idle| idle.min(watts));
            return;
        }
        let share = 1.0 - (-seconds / AVERAGED).exp();
        let before = self.average.unwrap_or(watts);
        self.average = Some(before + share * (watts - before));
        self.covered += seconds;
    }

    /// Watts without work; `None` before there were some seconds of it.
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        self.average.filter(|_| self.covered >= AVERAGED)
    }
}

impl WattsLoop {
    /// Works like [`WattsLoop::step`] for one of several models that share a chip. `watts` is the draw
    /// attributed to its work; a time without work therefore teaches nothing, not even the idle draw.
    pub fn step_working(&mut self, elapsed: Duration, watts: f64, used: f64) -> f64 {
        if used < IDLE {
            self.average = None;
            return self.pace;
        }
        self.step(elapsed, watts, used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_draw_without_work_is_learned_while_there_is_none() {
        let mut idle = IdleDraw::default();
        idle.note(SECOND, 40.0, 0.9);
        assert_eq!(idle.watts(), None);
        idle.note(SECOND, 6.0, 0.0);
        assert_eq!(idle.watts(), None, "one second is too short");
        for _ in 0..20 {
            idle.note(SECOND, 8.0, 0.0);
        }
        idle.note(SECOND, f64::NAN, 0.0);
        idle.note(SECOND, 60.0, 1.0);
        let watts = idle.watts().unwrap();
        assert!((watts - 8.0).abs() < 0.05, "{watts}");
    }

    #[test]
    fn a_new_target_keeps_what_was_learned() {
        let mut held = WattsLoop::new(10.0);
        for _ in 0..60 {
            let pace = held.pace;
            held.step(SECOND, 4.0 + 20.0 * pace, pace);
        }
        assert!((held.pace - 0.3).abs() < 0.05, "{}", held.pace);
        let idle = held.idle();
        held.set_target(14.0);
        for _ in 0..20 {
            let pace = held.pace;
            held.step(SECOND, 4.0 + 20.0 * pace, pace);
        }
        assert!((held.pace - 0.5).abs() < 0.08, "{}", held.pace);
        assert_eq!((held.target(), held.idle()), (14.0, idle));
    }

    /// Runs the loop against a chip that draws `idle + slope · pace^bend`, with as much work as may be.
    fn settled(target: f64, idle: f64, slope: f64, bend: f64) -> (WattsLoop, f64) {
        let mut control = WattsLoop::new(target);
        let mut pace = 0.0;
        let mut watts = idle;
        for _ in 0..120 {
            pace = control.step(SECOND, watts, pace);
            watts = idle + slope * f64::powf(pace, bend);
        }
        (control, watts)
    }

    #[test]
    fn a_chip_of_any_curve_comes_to_draw_the_target() {
        for bend in [0.5, 1.0, 1.5, 3.0] {
            let (_, watts) = settled(10.0, 2.0, 20.0, bend);
            assert!((watts - 10.0).abs() < 0.2, "{watts} W with a bend of {bend}");
        }
    }

    #[test]
    fn a_target_above_all_that_the_chip_draws_leaves_the_full_pace() {
        let (control, watts) = settled(50.0, 2.0, 20.0, 1.0);
        assert!((watts - 22.0).abs() < 0.1, "{watts}");
        assert!(!control.unreachable());
    }

    #[test]
    fn a_target_below_what_the_idle_chip_draws_is_said_to_be_out_of_reach() {
        let (control, watts) = settled(3.0, 5.0, 20.0, 1.0);
        assert!(control.unreachable());
        assert!(watts < 5.5, "{watts}: only the least pace is left");
    }

    #[test]
    fn load_that_comes_back_does_not_overshoot() {
        let (mut control, _) = settled(10.0, 2.0, 20.0, 1.0);
        for _ in 0..300 {
            control.step(SECOND, 2.0, 0.0);
        }
        let mut pace = 0.0;
        let mut watts = 2.0;
        for _ in 0..20 {
            pace = control.step(SECOND, watts, pace);
            watts = 2.0 + 20.0 * pace;
            assert!(watts < 10.5, "{watts}");
        }
    }

    #[test]
    fn numbers_that_are_none_change_nothing() {
        let (mut control, _) = settled(10.0, 2.0, 20.0, 1.0);
        let before = control.step(SECOND, 10.0, 0.4);
        assert_eq!(control.step(SECOND, f64::NAN, 0.4).to_bits(), before.to_bits());
        assert_eq!(control.step(Duration::ZERO, 90.0, 0.4).to_bits(), before.to_bits());
    }
}
