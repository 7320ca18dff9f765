//! A governor against a machine that warms up, in simulated time.

use std::time::Duration;

use galatea_runtime::power::{Governor, Limit, MachineModel, PowerSettings, Reading, ThermalModel};

const SECOND: Duration = Duration::from_secs(1);

/// A machine without a fan, which holds about half of what it can draw.
const FANLESS: MachineModel = MachineModel {
    idle_watts: 1.0,
    full_watts: 25.0,
    ambient: 25.0,
    kelvin_per_watt: 6.0,
    joules_per_kelvin: 12.0,
    limit: 95.0,
    lowest_clocks: 0.3,
};

/// A sensor's error: up to 4 % of what is drawn, another one each second.
fn noisy(reading: Reading, second: u64) -> Reading {
    let mut reading = reading;
    let bits = second.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    #[allow(clippy::cast_precision_loss, reason = "ten bits")]
    let error = (bits as f64 / 1024.0 - 0.5) * 0.08;
    reading.draw.package = reading.draw.package.map(|watts| watts * (1.0 + error));
    reading
}

/// What a run of so many seconds shows.
struct Run {
    watts: Vec<f64>,
    work: Vec<f64>,
    celsius: Vec<f64>,
    clocks_lowered: Vec<bool>,
    limits: Vec<Limit>,
}

impl Run {
    fn mean(numbers: &[f64], seconds: std::ops::Range<usize>) -> f64 {
        let part = &numbers[seconds];
        part.iter().sum::<f64>() / part.len() as f64
    }
}

/// Runs a machine for so many seconds; `load` is the pace that requests would need.
fn run(
    settings: PowerSettings,
    machine: MachineModel,
    seconds: u64,
    load: impl Fn(u64) -> f64,
) -> Run {
    let (mut governor, mut model) = (Governor::new(settings), ThermalModel::new(machine));
    let mut pace: f64 = 1.0;
    let mut run = Run {
        watts: Vec::new(),
        work: Vec::new(),
        celsius: Vec::new(),
        clocks_lowered: Vec::new(),
        limits: Vec::new(),
    };
    for second in 0..seconds {
        let used = pace.min(load(second));
        let (reading, work) = model.step(SECOND, used);
        let allowed = governor.step(SECOND, &noisy(reading, second), used);
        pace = allowed.pace;
        run.watts.extend(reading.draw.chip());
        run.work.push(work);
        run.celsius.push(model.celsius());
        run.clocks_lowered.push(model.throttled());
        run.limits.push(allowed.limit);
    }
    run
}

fn target(watts: f64) -> PowerSettings {
    PowerSettings { target_watts: Some(watts), ..PowerSettings::default() }
}

#[test]
fn a_target_of_ten_watts_is_held_within_five_percent() {
    let run = run(target(10.0), FANLESS, 300, |_| 1.0);
    for start in (30..270).step_by(30) {
        let mean = Run::mean(&run.watts, start..start + 30);
        assert!((mean - 10.0).abs() < 0.5, "{mean} W from second {start}");
    }
    let single = run.watts[30..].iter().map(|watts| (watts - 10.0).abs()).fold(0.0, f64::max);
    assert!(single < 1.0, "a second was {single} W off");
    assert_eq!(run.limits.last(), Some(&Limit::Target));
}

#[test]
fn a_target_is_held_when_load_comes_and_goes() {
    let run =
        run(target(10.0), FANLESS, 600, |second| if second / 40 % 2 == 0 { 1.0 } else { 0.1 });
    let over = run.watts[30..].iter().copied().fold(0.0, f64::max);
    assert!(over < 11.5, "{over} W");
    // The second half of each busy time.
    for start in (0..600).step_by(80).skip(1) {
        let mean = Run::mean(&run.watts, start + 20..start + 40);
        assert!((mean - 10.0).abs() < 0.5, "{mean} W from second {start}");
    }
}

#[test]
fn load_below_the_target_is_not_slowed_down() {
    let run = run(target(20.0), FANLESS, 300, |_| 0.3);
    assert!((Run::mean(&run.work, 60..300) - 0.3).abs() < 1e-6);
}

/// A summer's day.
const HOT: MachineModel = MachineModel { ambient: 45.0, ..FANLESS };

/// The share of a run's second half in which the machine was at its limit or above.
fn too_hot(run: &Run) -> f64 {
    let half = &run.celsius[run.celsius.len() / 2..];
    half.iter().filter(|celsius| **celsius >= HOT.limit).count() as f64 / half.len() as f64
}

#[test]
fn a_guarded_machine_stays_below_its_limit_and_does_nearly_as_much() {
    let settings = PowerSettings::default();
    let guarded = run(settings, HOT, 2400, |_| 1.0);
    let open = PowerSettings { thermal_protection: false, ..settings };
    let free = run(open, HOT, 2400, |_| 1.0);
    assert!(free.clocks_lowered[1200..].iter().all(|lowered| *lowered));
    let hot = too_hot(&guarded);
    assert!(hot < 0.1, "at its limit {hot} of the time, {} without a guard", too_hot(&free));
    let hottest = guarded.celsius[60..].iter().copied().fold(0.0, f64::max);
    assert!(hottest < HOT.limit + 1.0, "{hottest}");
    assert!(guarded.limits[1200..].iter().all(|limit| *limit == Limit::Heat));
    let [with, without] = [&guarded, &free].map(|run| Run::mean(&run.work, 1200..2400));
    // Pauses cost more work than lower clocks, which need less energy for it: that is the price of a
    // machine that is not hot.
    assert!(with > 0.85 * without, "{with} against {without}");
}

#[test]
fn a_machine_that_throttled_gets_back_to_its_full_pace() {
    let mut governor = Governor::new(PowerSettings::default());
    let mut model = ThermalModel::new(HOT);
    let mut pace = 1.0;
    for _ in 0..600 {
        let (reading, _) = model.step(SECOND, pace);
        pace = governor.step(SECOND, &reading, pace).pace;
    }
    assert!(pace < 0.9 && model.throttled());
    // It is put where it cools three times as well.
    model.put(MachineModel { kelvin_per_watt: 2.0, ..FANLESS });
    let mut work = 0.0;
    for _ in 0..900 {
        let (reading, done) = model.step(SECOND, pace);
        pace = governor.step(SECOND, &reading, pace).pace;
        work = done;
    }
    assert!((work - 1.0).abs() < 1e-6, "{work} of the full pace after the machine cooled down");
    assert!(!model.throttled());
}
