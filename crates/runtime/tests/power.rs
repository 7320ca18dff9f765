//! A governor against a machine that warms up, in simulated time.

use std::time::Duration;

use galatea_runtime::power::{
    MachineModel, ModelGovernor, PowerGovernor, PowerLimit, PowerSettings, SensorReading,
    ThermalModel, WorkBudget, attributed,
};

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
fn noisy(reading: SensorReading, second: u64) -> SensorReading {
    let mut reading = reading;
    let bits = second.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    #[allow(clippy::cast_precision_loss, reason = "ten bits")]
    let error = (bits as f64 / 1024.0 - 0.5) * 0.08;
    reading.draw.package = reading.draw.package.map(|watts| watts * (1.0 + error));
    reading
}

/// Course of a simulated run, second by second.
struct Run {
    watts: Vec<f64>,
    work: Vec<f64>,
    celsius: Vec<f64>,
    clocks_lowered: Vec<bool>,
    limits: Vec<PowerLimit>,
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
    let (mut governor, mut model) = (PowerGovernor::new(settings), ThermalModel::new(machine));
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
    assert_eq!(run.limits.last(), Some(&PowerLimit::Target));
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
    assert!(guarded.limits[1200..].iter().all(|limit| *limit == PowerLimit::Heat));
    let [with, without] = [&guarded, &free].map(|run| Run::mean(&run.work, 1200..2400));
    // Pauses cost more work than lower clocks, which need less energy for it: that is the price of a
    // machine that is not hot.
    assert!(with > 0.85 * without, "{with} against {without}");
}

#[test]
fn a_machine_that_throttled_gets_back_to_its_full_pace() {
    let mut governor = PowerGovernor::new(PowerSettings::default());
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

/// A model that shares a machine: how much of the machine's full pace it needs, and the watts that it may draw.
struct Sharer {
    load: fn(u64) -> f64,
    target: Option<f64>,
}

/// Draw of a machine that models share, second by second, and the part that is charged to each model.
struct Shared {
    chip: Vec<f64>,
    charged: Vec<Vec<f64>>,
    work: Vec<Vec<f64>>,
}

/// Runs models on a machine, each kept to its pace by its governor, whose runs of 20 ms a bucket lets in; where runs
/// of several models meet, each takes the longer for it.
fn share(models: &[Sharer], machine: MachineModel, server: PowerSettings, seconds: u64) -> Shared {
    let settings = |one: &Sharer| PowerSettings {
        target_watts: one.target,
        thermal_protection: false,
        ..PowerSettings::default()
    };
    let mut own: Vec<ModelGovernor> =
        models.iter().map(|one| ModelGovernor::new(settings(one))).collect();
    let mut gates: Vec<WorkBudget> = models.iter().map(|_| WorkBudget::new(1)).collect();
    let (mut governor, mut model) = (PowerGovernor::new(server), ThermalModel::new(machine));
    let (mut pace, each) = (1.0_f64, 20);
    let mut shown = Shared {
        chip: Vec::new(),
        charged: vec![Vec::new(); models.len()],
        work: vec![Vec::new(); models.len()],
    };
    let mut ends: Vec<Option<u64>> = vec![None; models.len()];
    for second in 0..seconds {
        let mut busy = vec![0_u64; models.len()];
        for ms in second * 1000..(second + 1) * 1000 {
            let now = Duration::from_millis(ms);
            for (at, one) in models.iter().enumerate() {
                if ends[at].is_some_and(|end| end <= ms) {
                    gates[at].end(now);
                    ends[at] = None;
                }
                #[allow(clippy::cast_precision_loss, reason = "milliseconds of a second")]
                let wants = busy[at] as f64 <= (one.load)(second) * (ms % 1000) as f64;
                if ends[at].is_none() && wants && gates[at].begin(now).is_ok() {
                    ends[at] = Some(ms + each);
                }
                busy[at] += u64::from(ends[at].is_some());
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of a second")]
        let loads: Vec<f64> = busy.iter().map(|&ms| ms as f64 / 1000.0).collect();
        let all: f64 = loads.iter().sum();
        let used = all.min(1.0).min(pace);
        let (reading, work) = model.step(SECOND, used);
        let allowed = governor.step(SECOND, &noisy(reading, second), used);
        pace = allowed.pace;
        let time = |ms: &u64| vec![("cpu".to_owned(), Duration::from_millis(*ms))];
        let everybody = time(&busy.iter().sum());
        for at in 0..models.len() {
            let drawn = |reading: &SensorReading| {
                attributed(&time(&busy[at]), &everybody, &reading.draw, |_, draw| draw.cpu)
            };
            let used = gates[at].used(Duration::from_secs(second + 1));
            let told = drawn(&noisy(reading, second));
            let allowed = own[at].step(SECOND, told, reading.thermal, used);
            gates[at].set_pace(Duration::from_secs(second + 1), allowed.pace);
            shown.charged[at].extend(drawn(&reading));
            shown.work[at].push(if all > 0.0 { work * loads[at] / all } else { 0.0 });
        }
        shown.chip.extend(reading.draw.chip());
    }
    shown
}

#[test]
fn a_model_alone_holds_the_chip_at_its_ten_watts() {
    let alone = [Sharer { load: |_| 1.0, target: Some(10.0) }];
    let run = share(&alone, FANLESS, PowerSettings::default(), 300);
    for start in (60..270).step_by(30) {
        let mean = Run::mean(&run.chip, start..start + 30);
        assert!((mean - 10.0).abs() < 0.5, "{mean} W from second {start}");
    }
}

#[test]
fn one_model_of_two_holds_its_ten_watts_and_the_other_works_as_before() {
    let two = [
        Sharer { load: |_| 0.6, target: Some(10.0) },
        Sharer { load: |second| if second < 150 { 0.15 } else { 0.3 }, target: None },
    ];
    // With a fan, or heat would slow both down.
    let machine = MachineModel { kelvin_per_watt: 3.0, ..FANLESS };
    let run = share(&two, machine, PowerSettings::default(), 400);
    for start in [60, 90, 120, 210, 240, 300, 360] {
        let mean = Run::mean(&run.charged[0], start..start + 30);
        assert!((mean - 10.0).abs() < 0.5, "{mean} W from second {start}");
    }
    assert!((Run::mean(&run.work[1], 60..140) - 0.15).abs() < 0.03);
    assert!((Run::mean(&run.work[1], 200..380) - 0.3).abs() < 0.03);
}

#[test]
fn a_model_below_its_watts_is_not_slowed_down() {
    let little = [Sharer { load: |_| 0.3, target: Some(10.0) }];
    let run = share(&little, FANLESS, PowerSettings::default(), 200);
    assert!((Run::mean(&run.work[0], 60..200) - 0.3).abs() < 0.02);
}

#[test]
fn a_model_holds_its_watts_again_after_the_machine_throttled() {
    // The server does not guard; the load of another model heats the machine for ten minutes.
    let two = [
        Sharer { load: |_| 0.5, target: Some(10.0) },
        Sharer { load: |second| if second < 600 { 0.5 } else { 0.0 }, target: None },
    ];
    let open = PowerSettings { thermal_protection: false, ..PowerSettings::default() };
    let machine = MachineModel { kelvin_per_watt: 4.0, ..HOT };
    let run = share(&two, machine, open, 1500);
    let throttled = Run::mean(&run.chip, 400..600);
    let mean = Run::mean(&run.charged[0], 1200..1500);
    assert!((mean - 10.0).abs() < 0.5, "{mean} W, after {throttled} W of both");
}
