use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::power::UnitChoice;

fn units(names: &[&str]) -> Vec<Arc<ComputeDevice>> {
    names.iter().map(|name| Arc::new(ComputeDevice::new(name))).collect()
}

fn bucket(lengths: &[usize]) -> ShapeBucket {
    ShapeBucket::of([lengths])
}

fn stop(unit: usize, ns: f64) -> PlanSegment {
    PlanSegment::new(unit, ns)
}

/// A router in whose one bucket each way runs on the unit of its place.
fn router(units: Vec<Arc<ComputeDevice>>, ns: &[f64]) -> (DeviceSelector, ShapeBucket) {
    let mut router = DeviceSelector::new(units);
    let costs =
        ns.iter().enumerate().map(|(unit, &ns)| PlacementCost::of_sequence([stop(unit, ns)]));
    let costs = costs.collect();
    router.predict(bucket(&[1]), costs);
    (router, bucket(&[1]))
}

fn chosen(router: &mut DeviceSelector, bucket: &ShapeBucket) -> usize {
    router.choose(bucket, Objective::default(), |_| true).unwrap().way
}

fn learn(router: &mut DeviceSelector, bucket: &ShapeBucket, way: usize, ns: u64) {
    for _ in 0..8 {
        router.learn(bucket, way, Duration::from_nanos(ns));
    }
}

#[test]
fn small_lengths_are_told_apart_and_great_ones_in_steps() {
    assert_ne!(bucket(&[15]), bucket(&[16]));
    assert_eq!(bucket(&[129]), bucket(&[160]));
    assert_ne!(bucket(&[128]), bucket(&[129]));
    assert_ne!(ShapeBucket::of([&[1_usize, 2][..]]), ShapeBucket::of([&[1_usize][..], &[2]]));
}

#[test]
fn what_was_measured_counts_more_than_what_was_predicted() {
    let (mut router, bucket) = router(units(&["cpu", "gpu"]), &[100.0, 50.0]);
    assert_eq!(chosen(&mut router, &bucket), 1);
    learn(&mut router, &bucket, 1, 400);
    assert_eq!(chosen(&mut router, &bucket), 0);
    // The prediction for the processor may be off as well.
    assert_eq!(router.worth_a_trial(&bucket), [0]);
    learn(&mut router, &bucket, 0, 500);
    assert_eq!(chosen(&mut router, &bucket), 1);
    assert!(router.worth_a_trial(&bucket).is_empty());
}

#[test]
fn a_unit_that_was_slower_than_predicted_is_predicted_slower_elsewhere() {
    let (mut router, first) = router(units(&["cpu", "gpu"]), &[100.0, 50.0]);
    learn(&mut router, &first, 1, 5000);
    learn(&mut router, &first, 0, 100);
    let other = bucket(&[64]);
    let costs = [1000.0, 100.0].iter().enumerate();
    router.predict(
        other.clone(),
        costs.map(|(unit, &ns)| PlacementCost::of_sequence([stop(unit, ns)])).collect(),
    );
    assert_eq!(chosen(&mut router, &other), 0);
    assert!((router.correction(1) - 100.0).abs() < 1.0, "{}", router.correction(1));
}

#[test]
fn starts_are_not_taken_to_be_as_far_off_as_work() {
    let mut router = DeviceSelector::new(units(&["cpu", "gpu"]));
    let whole = PlacementCost::of_sequence([PlanSegment { unit: 1, ns: 50.0, start_ns: 10.0 }]);
    let parts = (0..10).map(|at| PlanSegment { unit: at % 2, ns: 1.0, start_ns: 10.0 });
    router.predict(bucket(&[1]), vec![whole, PlacementCost::of_sequence(parts)]);
    // All of it took longer, so the work did.
    learn(&mut router, &bucket(&[1]), 0, 1010);
    assert!((router.correction(1) - 20.0).abs() < 0.1, "{}", router.correction(1));
    let all = router.estimates(&bucket(&[1]));
    assert!((all[0].ns - 1010.0).abs() < 1e-6, "{}", all[0].ns);
    assert!((all[1].ns - (100.0 + 5.0 + 5.0 * 20.0)).abs() < 1.0, "{}", all[1].ns);
    // A run that is shorter than its starts says that these are shorter as well.
    let mut router = DeviceSelector::new(units(&["gpu"]));
    let short = PlacementCost::of_sequence([PlanSegment { unit: 0, ns: 10.0, start_ns: 90.0 }]);
    router.predict(bucket(&[1]), vec![short]);
    learn(&mut router, &bucket(&[1]), 0, 50);
    assert!((router.correction(0) - 0.5).abs() < 1e-6, "{}", router.correction(0));
}

#[test]
fn work_goes_where_it_is_done_first() {
    let all = units(&["cpu", "gpu"]);
    let (mut router, bucket) = router(all.clone(), &[100.0, 30.0]);
    let mut under_way = Vec::new();
    let mut counts = [0, 0];
    for _ in 0..13 {
        let way = chosen(&mut router, &bucket);
        counts[way] += 1;
        under_way.push(all[way].begin(Duration::from_nanos([100, 30][way])));
    }
    assert_eq!(counts, [3, 10]);
    under_way.clear();
    assert_eq!(chosen(&mut router, &bucket), 1);
    assert_eq!(all[0].report().owed, Duration::ZERO);
}

#[test]
fn a_unit_that_takes_no_work_gets_none_while_another_does() {
    let all = units(&["cpu", "gpu"]);
    let (mut router, bucket) = router(all.clone(), &[100.0, 30.0]);
    all[1].set_open(false);
    assert_eq!(chosen(&mut router, &bucket), 0);
    all[0].set_open(false);
    assert_eq!(chosen(&mut router, &bucket), 1);
    all[0].set_open(true);
    all[1].set_open(true);
    all[1].slow_by(4.0);
    assert_eq!(chosen(&mut router, &bucket), 0);
}

#[test]
fn parts_at_the_same_time_take_as_long_as_the_longest() {
    let mut router = DeviceSelector::new(units(&["cpu", "gpu"]));
    let both = PlacementCost::of_parallel(vec![stop(0, 60.0), stop(1, 50.0)]);
    let sequence = PlacementCost::of_sequence([stop(0, 60.0), stop(1, 50.0)]);
    router.predict(bucket(&[1]), vec![sequence, both]);
    let all = router.estimates(&bucket(&[1]));
    assert_eq!((all[0].ns, all[1].ns), (110.0, 60.0));
    // Of many runs the sequence keeps its busiest unit no longer than both at once do.
    let aim = Objective { goal: ExecutionGoal::Throughput, ..Objective::default() };
    let way = router.choose(&bucket(&[1]), aim, |_| true).unwrap().way;
    assert_eq!(way, 0);
}

#[test]
fn who_saves_energy_takes_the_slower_unit_if_it_is_known_to_need_less() {
    let all = units(&["gpu", "engine"]);
    let (mut router, bucket) = router(all.clone(), &[100.0, 120.0]);
    let way = |router: &mut DeviceSelector, power| {
        let aim = Objective { power, ..Objective::default() };
        router.choose(&bucket, aim, |_| true).unwrap().way
    };
    assert_eq!(way(&mut router, UnitChoice::Frugal), 0, "nobody knows what units draw");
    all[0].set_watts(20.0);
    all[1].set_watts(4.0);
    assert_eq!(way(&mut router, UnitChoice::Fastest), 0);
    assert_eq!(way(&mut router, UnitChoice::Balanced), 1);
    all[1].slow_by(2.0);
    assert_eq!(way(&mut router, UnitChoice::Balanced), 0);
    assert_eq!(way(&mut router, UnitChoice::Frugal), 1);
}

#[test]
fn a_run_that_has_time_leaves_the_busy_unit_to_others() {
    let all = units(&["cpu", "gpu"]);
    let (mut router, bucket) = router(all.clone(), &[100.0, 30.0]);
    let mut way = |ns: u64, goal| {
        let left = Duration::from_nanos(ns);
        let aim = Objective {
            deadline: Some((Instant::now() + left, left)),
            goal,
            ..Objective::default()
        };
        router.choose(&bucket, aim, |_| true).unwrap().way
    };
    assert_eq!(way(1000, ExecutionGoal::Latency), 1, "nobody else wants anything: the least work");
    let under_way = all[1].begin(Duration::from_nanos(20));
    assert_eq!(
        way(1000, ExecutionGoal::Latency),
        0,
        "the processor has nothing to do, and it is in time"
    );
    assert_eq!(way(110, ExecutionGoal::Latency), 1, "only the GPU is safely in time");
    assert_eq!(way(10, ExecutionGoal::Latency), 1, "none is in time, the GPU is done first");
    all[0].set_watts(2.0);
    all[1].set_watts(5.0);
    drop(under_way);
    assert_eq!(way(1000, ExecutionGoal::Power), 1, "150 are less than 200");
    all[1].set_watts(8.0);
    assert_eq!(way(1000, ExecutionGoal::Power), 0);
    assert_eq!(way(110, ExecutionGoal::Power), 1);
}

#[test]
fn a_run_with_a_deadline_waits_for_those_before_it_only() {
    let unit = &units(&["gpu"])[0];
    unit.set_lanes(DeviceLanes { runs: 1, short: Duration::ZERO });
    let ms = Duration::from_millis;
    let soon = Instant::now() + ms(10);
    std::thread::scope(|scope| {
        let first = unit.enter(ms(5), None);
        scope.spawn(|| drop(unit.enter(ms(7), None)));
        while unit.report().waiting == 0 {
            std::thread::yield_now();
        }
        assert_eq!(unit.wait(), ms(12));
        assert_eq!((unit.wait_until(Some(soon)), unit.wait_until(None)), (ms(5), ms(12)));
        assert!(unit.is_busy() && !first.waited());
        drop(first);
    });
    assert_eq!((unit.report().owed, unit.report().running), (Duration::ZERO, 0));
}

#[test]
fn a_router_forgets_the_buckets_that_nobody_asks_for() {
    let mut router = DeviceSelector::new(units(&["cpu"]));
    for length in 0..3000 {
        router.predict(ShapeBucket::of([&[length, 1, 1][..], &vec![1; length]]), Vec::new());
    }
    assert!(!router.knows(&ShapeBucket::of([&[0_usize, 1, 1][..], &[]])));
}

#[test]
fn goals_read_back_what_they_print() {
    for goal in [ExecutionGoal::Latency, ExecutionGoal::Throughput, ExecutionGoal::Power] {
        assert_eq!(goal.to_string().parse(), Ok(goal));
    }
    assert!("speed".parse::<ExecutionGoal>().unwrap_err().contains("latency, throughput or power"));
}

proptest! {
    /// With all units free and everything measured, the way that took least is taken.
    #[test]
    fn the_fastest_measured_way_is_taken(
        predicted in prop::collection::vec(1_u32..10_000, 1..6),
        real in prop::collection::vec(1_u64..10_000, 6),
    ) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let predicted: Vec<f64> = predicted.into_iter().map(f64::from).collect();
        let (mut router, bucket) = router(units(&names[..predicted.len()]), &predicted);
        for (way, &ns) in real.iter().enumerate().take(predicted.len()) {
            learn(&mut router, &bucket, way, ns);
        }
        let way = chosen(&mut router, &bucket);
        prop_assert_eq!(real[way], *real[..predicted.len()].iter().min().unwrap());
    }
}
