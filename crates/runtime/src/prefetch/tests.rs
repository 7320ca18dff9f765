#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Regions of one size whose loads and uses take fixed times, one load at a time.
struct Machine {
    policy: Prefetcher,
    bytes: Vec<u64>,
    limits: PrefetchLimits,
    now: u64,
    load_ns: u64,
    use_ns: u64,
    coming: VecDeque<(usize, u64)>,
}

impl Machine {
    fn new(bytes: Vec<u64>, limits: PrefetchLimits, load_ns: u64, use_ns: u64) -> Self {
        let policy = Prefetcher::new(&bytes, limits);
        Self { policy, bytes, limits, now: 0, load_ns, use_ns, coming: VecDeque::new() }
    }

    fn near(&self) -> u64 {
        let near = |&at: &usize| self.policy.is_near(at);
        (0..self.bytes.len()).filter(near).map(|at| self.bytes[at]).sum()
    }

    fn ask(&mut self) {
        while let Some(load) = self.policy.next_load(self.now) {
            assert!(load.evicted.iter().all(|&gone| !self.policy.is_near(gone)));
            let from = self.coming.back().map_or(self.now, |&(_, at)| at.max(self.now));
            self.coming.push_back((load.region, from + self.load_ns));
            let coming: u64 = self.coming.iter().map(|&(region, _)| self.bytes[region]).sum();
            assert!(self.near() + coming <= self.limits.capacity_bytes);
            assert!(coming <= self.limits.flight_bytes || self.coming.len() == 1);
        }
    }

    fn pass(&mut self, until: u64) {
        self.ask();
        while let Some(&(region, at)) = self.coming.front().filter(|(_, at)| *at <= until) {
            self.coming.pop_front();
            self.now = self.now.max(at);
            self.policy.loaded(region, self.now);
            self.ask();
        }
        self.now = self.now.max(until);
    }

    fn run(&mut self, trace: impl IntoIterator<Item = usize>) {
        for region in trace {
            self.policy.touch(region, self.now);
            self.ask();
            while !self.policy.is_near(region) {
                let at = self.coming.front().unwrap().1;
                self.pass(at);
            }
            self.policy.release(region);
            self.pass(self.now + self.use_ns);
        }
    }
}

fn room(regions: u64) -> PrefetchLimits {
    PrefetchLimits { capacity_bytes: regions * 10, flight_bytes: 20, most_ahead: 8, least_ahead: 0 }
}

#[test]
fn the_second_run_of_an_order_waits_for_nothing_where_loads_are_fast() {
    for trace in [(0..12).collect::<Vec<_>>(), vec![3, 0, 7, 7, 1, 9, 0, 5, 2, 11, 4, 8, 10, 6]] {
        let mut machine = Machine::new(vec![10; 12], room(4), 30, 100);
        for _ in 0..2 {
            machine.run(trace.clone());
        }
        let first = machine.policy.statistics();
        for _ in 0..5 {
            machine.run(trace.clone());
        }
        let later = machine.policy.statistics();
        assert_eq!((later.late - first.late, later.misses - first.misses), (0, 0), "{trace:?}");
        assert_eq!(later.stall_ns, first.stall_ns);
        let (guessed, right) = later.guesses;
        assert_eq!(guessed - first.guesses.0, right - first.guesses.1);
    }
}

#[test]
fn a_first_run_in_steps_of_equal_length_is_foreseen() {
    for trace in
        [(0..16).collect::<Vec<_>>(), (0..16).step_by(3).collect(), (0..16).rev().collect()]
    {
        let mut machine = Machine::new(vec![10; 16], room(4), 30, 100);
        machine.run(trace.clone());
        let found = machine.policy.statistics();
        assert!(found.misses + found.late <= 3, "{trace:?}: {found:?}");
    }
}

#[test]
fn an_order_larger_than_the_room_is_not_loaded_whole_each_time() {
    let mut machine = Machine::new(vec![10; 12], room(8), 30, 100);
    for _ in 0..3 {
        machine.run(0..12);
    }
    let before = machine.policy.statistics().loads;
    for _ in 0..10 {
        machine.run(0..12);
    }
    // With room for eight of twelve, five of a run are loaded: one place is always on its way.
    let each = (machine.policy.statistics().loads - before) as f64 / 10.0;
    assert!(each <= 6.0, "{each} loads of a run");
}

#[test]
fn an_order_that_fits_is_loaded_once() {
    let mut machine = Machine::new(vec![10; 6], room(6), 30, 100);
    for _ in 0..4 {
        machine.run(0..6);
    }
    let found = machine.policy.statistics();
    assert_eq!((found.loads, found.evictions, found.loaded_bytes), (6, 0, 60));
}

#[test]
fn slow_loads_are_started_farther_ahead() {
    let far = |load_ns: u64| {
        let limits =
            PrefetchLimits { capacity_bytes: 200, flight_bytes: 80, most_ahead: 8, least_ahead: 0 };
        let mut machine = Machine::new(vec![10; 40], limits, load_ns, 100);
        for _ in 0..20 {
            machine.run(0..40);
        }
        machine.policy.statistics().distance
    };
    assert!(far(350) > far(10), "{} {}", far(350), far(10));
}

#[test]
fn nothing_is_loaded_ahead_where_that_is_not_wanted() {
    let limits = PrefetchLimits { most_ahead: 0, ..room(4) };
    let mut machine = Machine::new(vec![10; 12], limits, 30, 100);
    for _ in 0..3 {
        machine.run(0..12);
    }
    let found = machine.policy.statistics();
    assert_eq!((found.late, found.wasted, found.loads), (0, 0, found.misses));
    assert_eq!(found.stall_ns, 30 * found.misses);
}

#[test]
fn a_failed_load_may_be_tried_again() {
    let mut policy = Prefetcher::new(&[10, 10], room(1));
    // That the first region is the first one to be touched is a guess like others.
    assert_eq!(policy.touch(0, 0), TouchOutcome::Late);
    assert_eq!(policy.next_load(0), Some(PendingLoad { region: 0, evicted: Vec::new() }));
    policy.failed(0);
    assert_eq!(policy.touch(0, 0), TouchOutcome::Miss);
    assert!(policy.next_load(0).is_some());
    policy.loaded(0, 7);
    assert!(policy.is_near(0));
    // What is in use is not given up, whoever waits.
    policy.touch(1, 8);
    assert_eq!(policy.next_load(8), None);
    policy.release(0);
    assert_eq!(policy.next_load(9), None);
    policy.release(0);
    assert_eq!(policy.next_load(9), Some(PendingLoad { region: 1, evicted: vec![0] }));
}

proptest! {
    #[test]
    fn every_touch_is_served_within_the_room(
        bytes in prop::collection::vec(1_u64..10, 1..12),
        trace in prop::collection::vec(0_usize..12, 1..80),
        spare in 0_u64..30,
        flight_bytes in 1_u64..40,
        most_ahead in 0_usize..10,
        load_ns in 0_u64..50,
    ) {
        let largest = bytes.iter().copied().max().unwrap_or(1);
        let limits = PrefetchLimits { capacity_bytes: largest * 2 + spare, flight_bytes, most_ahead, least_ahead: most_ahead / 2 };
        let count = bytes.len();
        let mut machine = Machine::new(bytes, limits, load_ns, 20);
        for _ in 0..2 {
            machine.run(trace.iter().map(|at| at % count));
        }
        let found = machine.policy.statistics();
        prop_assert_eq!(found.hits + found.late + found.misses, trace.len() as u64 * 2);
        prop_assert!(machine.near() <= limits.capacity_bytes);
    }
}
