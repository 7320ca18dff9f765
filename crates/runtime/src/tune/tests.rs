//! The strategies on a device whose times are known.

use std::time::Duration;

use super::strategy::RepeatableRandom;
use super::*;

/// Times from a formula, with noise that only ever adds; a clock that the samples move.
struct Dummy {
    times: Vec<f64>,
    noise: usize,
    random: RepeatableRandom,
    wrong: Vec<usize>,
    failing: Vec<usize>,
    roofline: Option<f64>,
    /// The least times by candidate, where they are known.
    least: Vec<f64>,
    /// Correct result, if known, and the distance from it that is still correct.
    expected: Option<(Vec<f32>, f32)>,
    samples: usize,
    spent_ns: f64,
}

impl Dummy {
    fn new(times: Vec<f64>) -> Self {
        Self {
            times,
            noise: 0,
            random: RepeatableRandom::new(3),
            wrong: Vec::new(),
            failing: Vec::new(),
            roofline: None,
            least: Vec::new(),
            expected: None,
            samples: 0,
            spent_ns: 0.0,
        }
    }

    fn best(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl TuningTarget for Dummy {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        if self.failing.contains(&candidate) {
            return Err("does not run".to_owned());
        }
        Ok(vec![1.0, if self.wrong.contains(&candidate) { 2.5 } else { 2.0 }])
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        self.samples += 1;
        let share = if self.noise == 0 { 0 } else { self.random.below(self.noise) };
        let time = self.times[candidate] * (1.0 + share as f64 / 100.0);
        self.spent_ns += time;
        Ok(time)
    }

    fn expected(&mut self) -> Result<Option<Vec<f32>>, String> {
        Ok(self.expected.as_ref().map(|(right, _)| right.clone()))
    }

    fn tolerance(&self) -> Option<f32> {
        self.expected.as_ref().map(|(_, tolerance)| *tolerance)
    }

    fn roofline_ns(&self) -> Option<f64> {
        self.roofline
    }

    fn least_ns(&self, candidate: usize) -> Option<f64> {
        self.least.get(candidate).copied()
    }
}

fn search(
    space: &ConfigSpace,
    device: &mut Dummy,
    kind: StrategyKind,
    limits: SearchLimits,
) -> Result<TuningOutcome, String> {
    let mut calls = 0_u32;
    // A clock of its own: one microsecond a look.
    let mut clock = || {
        calls += 1;
        Duration::from_micros(u64::from(calls))
    };
    let progress = &mut |_, _| {};
    let run = TuningSearch { space, device, limits, clock: &mut clock, progress };
    run.run(&mut *kind.start(1))
}

/// Three axes of numbers and one of names: a bowl for each name, with a ripple.
fn landscape() -> (ConfigSpace, Vec<f64>) {
    let steps: Vec<usize> = (0..9).collect();
    let space = ConfigSpace::new(vec![
        ConfigAxis::numbers("rows", &steps),
        ConfigAxis::numbers("columns", &steps),
        ConfigAxis::numbers("depth", &[1, 2, 4, 8]),
        ConfigAxis::names("algorithm", &["direct", "winograd"]),
    ]);
    let time = |candidate: usize| {
        let at = space.point(candidate);
        let away = |axis: usize, best: f64, slope: f64| slope * (at[axis] as f64 - best).powi(2);
        let ripple = ((at[0] * 3 + at[1] * 5) % 4) as f64 * 2.0;
        let bowl = 100.0 + away(0, 6.0, 3.0) + away(1, 2.0, 4.0) + away(2, 2.0, 15.0) + ripple;
        if at[3] == 1 { bowl } else { bowl * 1.7 }
    };
    let times = (0..space.len()).map(time).collect();
    (space, times)
}

fn limits(trials: usize) -> SearchLimits {
    SearchLimits { trials, time: Duration::from_secs(3600), ..SearchLimits::default() }
}

#[test]
fn what_the_hardware_cannot_do_faster_is_not_run() {
    // Candidates on fewer and fewer cores; the first few are in a round of their own.
    let times: Vec<f64> = (0..40).map(|at| 100.0 + f64::from(at)).collect();
    let space = ConfigSpace::new(vec![ConfigAxis::numbers("n", &(0..40).collect::<Vec<_>>())]);
    let mut all = Dummy::new(times.clone());
    search(&space, &mut all, StrategyKind::Exhaustive, limits(40)).unwrap();
    for kind in [StrategyKind::Exhaustive, StrategyKind::Grid] {
        let mut device = Dummy::new(times.clone());
        device.least = times.iter().map(|time| time * 0.95).collect();
        let outcome = search(&space, &mut device, kind, limits(40)).unwrap();
        assert_eq!(outcome.best, 0);
        assert!(device.samples < all.samples, "{} {}", device.samples, all.samples);
        let reason = &outcome.refused.last().unwrap().reason;
        assert!(reason.contains("the hardware needs"), "{reason}");
    }
}

#[test]
fn every_strategy_converges_with_few_trials_under_noise() {
    let (space, times) = landscape();
    for (name, kind) in StrategyKind::ALL {
        let trials = if kind == StrategyKind::Exhaustive { space.len() } else { 150 };
        let mut device = Dummy::new(times.clone());
        device.noise = 20;
        let outcome = search(&space, &mut device, kind, limits(trials)).unwrap();
        let regret = times[outcome.best] / device.best() - 1.0;
        assert!(regret < 0.05, "{name}: regret {regret:.3} after {}", outcome.trials.len());
        assert!(outcome.best_ns < outcome.default_ns && outcome.trials.len() <= trials);
    }
}

#[test]
fn searches_beat_as_many_random_trials_on_average() {
    let (space, times) = landscape();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    let budget = 60;
    let mut regrets = Vec::new();
    for kind in [StrategyKind::Adaptive, StrategyKind::Genetic] {
        let mut sum = 0.0;
        for seed in 1..=5 {
            let mut strategy = kind.start(seed);
            let mut seen: Vec<MeasuredCandidate> = Vec::new();
            while seen.len() < budget {
                let next = strategy.next(&space, &seen);
                if next.is_empty() {
                    break;
                }
                seen.extend(next.into_iter().take(budget - seen.len()).map(|candidate| {
                    MeasuredCandidate { candidate, time_ns: Some(times[candidate]) }
                }));
            }
            let found = seen.iter().filter_map(|trial| trial.time_ns).fold(f64::INFINITY, f64::min);
            sum += found / best - 1.0;
        }
        regrets.push(sum / 5.0);
    }
    let random = |seed: u64| {
        let mut random = RepeatableRandom::new(seed);
        let draws = (0..budget).map(|_| times[random.below(space.len())]);
        draws.fold(f64::INFINITY, f64::min) / best - 1.0
    };
    let chance = (1..=40).map(random).sum::<f64>() / 40.0;
    assert!(regrets.iter().all(|regret| *regret < chance), "{regrets:?} {chance}");
    assert!(regrets[0] < 0.03, "{regrets:?}");
}

#[test]
fn a_fast_wrong_candidate_is_dropped_and_reported() {
    let space = ConfigSpace::new(vec![ConfigAxis::names(
        "algorithm",
        &["plain", "wrong", "broken", "good"],
    )]);
    for (_, kind) in StrategyKind::ALL {
        let mut device = Dummy::new(vec![10.0, 1.0, 2.0, 5.0]);
        (device.wrong, device.failing) = (vec![1], vec![2]);
        let outcome = search(&space, &mut device, kind, limits(64)).unwrap();
        assert_eq!((outcome.best, outcome.best_ns, outcome.default_ns), (3, 5.0, 10.0));
        let mut refused = outcome.refused;
        refused.sort_by_key(|refused| refused.candidate);
        let reasons: Vec<&str> = refused.iter().map(|refused| refused.reason.as_str()).collect();
        assert_eq!(reasons, ["result 1 is 2.5, expected 2", "does not run"]);
    }
}

#[test]
fn searches_end_at_limits_and_at_the_roofline() {
    let (space, times) = landscape();
    let ended = |kind: StrategyKind, limits: SearchLimits, roofline: Option<f64>| {
        let mut device = Dummy::new(times.clone());
        device.roofline = roofline;
        let outcome = search(&space, &mut device, kind, limits).unwrap();
        (outcome.ended, outcome.trials.len())
    };
    let exhaustive = StrategyKind::Exhaustive;
    assert_eq!(ended(exhaustive, limits(20), None), (SearchEnd::Trials, 20));
    assert_eq!(ended(exhaustive, limits(1000), None), (SearchEnd::Searched, space.len()));
    let short = SearchLimits { time: Duration::from_micros(60), ..limits(1000) };
    let (why, trials) = ended(exhaustive, short, None);
    assert!(why == SearchEnd::Time && trials < 60, "{why:?} {trials}");
    let (why, trials) = ended(exhaustive, limits(1000), Some(150.0));
    assert!(why == SearchEnd::Roofline && trials < 400, "{why:?} {trials}");
}

#[test]
fn samples_are_saved_on_candidates_that_are_far_behind() {
    let labels: Vec<usize> = (0..20).collect();
    let space = ConfigSpace::new(vec![ConfigAxis::numbers("x", &labels)]);
    let times: Vec<f64> = (0..20).map(|at| 10.0 + 5.0 * f64::from(at)).collect();
    let mut device = Dummy::new(times);
    search(&space, &mut device, StrategyKind::Exhaustive, limits(20)).unwrap();
    assert!(device.samples < 20 * 3, "{} samples", device.samples);
}

#[test]
fn the_default_stays_where_nothing_is_clearly_faster() {
    let space = ConfigSpace::new(vec![ConfigAxis::numbers("x", &[1, 2, 3])]);
    let mut device = Dummy::new(vec![100.0, 99.5, 120.0]);
    let outcome = search(&space, &mut device, StrategyKind::Exhaustive, limits(9)).unwrap();
    assert_eq!((outcome.best, outcome.best_ns), (0, 100.0));
    let mut device = Dummy::new(vec![1.0]);
    device.failing = vec![0];
    let lone = ConfigSpace::new(vec![ConfigAxis::numbers("x", &[1])]);
    let error = search(&lone, &mut device, StrategyKind::Grid, limits(9)).unwrap_err();
    assert_eq!(error, "does not run");
}

#[test]
fn a_wrong_default_is_replaced_where_it_is_known_what_is_right() {
    let space = ConfigSpace::new(vec![ConfigAxis::numbers("x", &[1, 2, 3])]);
    let mut device = Dummy::new(vec![1.0, 7.0, 8.0]);
    (device.wrong, device.expected) = (vec![0], Some((vec![1.0, 2.0], 1e-3)));
    let outcome = search(&space, &mut device, StrategyKind::Exhaustive, limits(9)).unwrap();
    assert_eq!((outcome.best, outcome.best_ns, outcome.default_ns), (1, 7.0, 7.0));
    assert_eq!(outcome.refused[0].candidate, 0);
    device.expected = Some((vec![1.0, 2.0], 0.3));
    let outcome = search(&space, &mut device, StrategyKind::Exhaustive, limits(9)).unwrap();
    assert_eq!((outcome.best, outcome.refused.len()), (0, 0));
}

#[test]
fn a_candidate_that_took_no_time_is_refused_and_wins_nothing() {
    let labels: Vec<usize> = (0..4).collect();
    let space = ConfigSpace::new(vec![ConfigAxis::numbers("x", &labels)]);
    for nothing in [0.0, -1.0, f64::NAN] {
        let mut device = Dummy::new(vec![30.0, nothing, 20.0, 40.0]);
        let found = search(&space, &mut device, StrategyKind::Exhaustive, limits(4)).unwrap();
        assert_eq!(found.best, 2);
        let refused = found.refused.iter().map(|one| one.candidate);
        assert!(refused.eq([1]), "{:?}", found.refused);
    }
}
