use proptest::prelude::*;

use super::*;
use crate::config::inference::ModelQueuePolicy;
use crate::schedule::BatchKey;

const MS: Nanos = 1_000_000;

fn scheduler(max_batch_size: i32, batching: &ModelDynamicBatching) -> DynamicScheduler {
    DynamicScheduler::new(DynamicOptions::from_config(batching, max_batch_size))
}

fn ticket(id: u64, batch_size: u64) -> ScheduleTicket {
    ScheduleTicket { id, batch_size, ..ScheduleTicket::default() }
}

fn push(scheduler: &mut DynamicScheduler, ids: std::ops::Range<u64>, now: Nanos) {
    for id in ids {
        scheduler.enqueue(ticket(id, 1), now).unwrap();
    }
}

fn batching(preferred: &[i32], delay_us: u64) -> ModelDynamicBatching {
    ModelDynamicBatching {
        preferred_batch_size: preferred.to_vec(),
        max_queue_delay_microseconds: delay_us,
        ..ModelDynamicBatching::default()
    }
}

#[test]
fn without_a_delay_all_that_waits_goes_out_up_to_the_limit() {
    let mut scheduler = scheduler(8, &batching(&[], 0));
    push(&mut scheduler, 0..11, 0);
    assert_eq!(scheduler.poll(0, &[false]), ScheduleDecision::Idle);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of(0..8)));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of(8..11)));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Idle);
}

#[test]
fn a_preferred_size_goes_at_once_and_the_rest_waits_for_its_delay() {
    let mut scheduler = scheduler(8, &batching(&[4], 400_000));
    push(&mut scheduler, 0..3, 0);
    assert_eq!(scheduler.poll(10 * MS, &[true]), ScheduleDecision::WaitUntil(400 * MS));
    push(&mut scheduler, 3..5, 20 * MS);
    assert_eq!(
        scheduler.poll(20 * MS, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of(0..4))
    );
    assert_eq!(scheduler.poll(20 * MS, &[true]), ScheduleDecision::WaitUntil(420 * MS));
    assert_eq!(
        scheduler.poll(420 * MS, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of([4]))
    );
}

#[test]
fn a_request_that_is_a_preferred_batch_by_itself_does_not_wait() {
    let mut scheduler = scheduler(8, &batching(&[2, 4], 400_000));
    for (id, size) in [(0, 2), (1, 4), (2, 6)] {
        scheduler.enqueue(ticket(id, size), 0).unwrap();
        assert_eq!(
            scheduler.poll(0, &[true]),
            ScheduleDecision::Dispatch(ScheduledBatch::of([id])),
            "{size}"
        );
    }
    scheduler.enqueue(ticket(3, 3), 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(400 * MS));
    // One after another that is none itself: both together reach past the largest preferred size.
    scheduler.enqueue(ticket(4, 4), 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([3])));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([4])));
}

#[test]
fn a_request_waits_no_longer_for_company_than_its_goal_allows() {
    let mut scheduler = scheduler(8, &batching(&[8], 400_000));
    push(&mut scheduler, 0..2, 0);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(400 * MS));
    let soon = ScheduleTicket { patience: Some(3 * MS), ..ticket(2, 1) };
    scheduler.enqueue(soon, 10 * MS).unwrap();
    assert_eq!(scheduler.poll(10 * MS, &[true]), ScheduleDecision::WaitUntil(13 * MS));
    assert_eq!(
        scheduler.poll(13 * MS, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of(0..3))
    );
    let at_once = ScheduleTicket { patience: Some(0), ..ticket(3, 1) };
    scheduler.enqueue(at_once, 20 * MS).unwrap();
    assert_eq!(
        scheduler.poll(20 * MS, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of([3]))
    );
}

#[test]
fn a_batch_that_has_room_is_not_ahead() {
    let mut scheduler = scheduler(4, &batching(&[], 0));
    let ahead = |scheduler: &DynamicScheduler, size| scheduler.ahead(&ticket(99, size)).batches;
    assert_eq!((ahead(&scheduler, 1), ahead(&scheduler, 4)), (0, 0));
    push(&mut scheduler, 0..6, 0);
    assert_eq!((ahead(&scheduler, 2), ahead(&scheduler, 3)), (1, 2));
}

#[test]
fn after_the_delay_a_batch_takes_all_that_fits() {
    let mut scheduler = scheduler(8, &batching(&[4], 1000));
    push(&mut scheduler, 0..6, 0);
    assert_eq!(scheduler.poll(MS, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of(0..6)));
}

#[test]
fn other_shapes_close_the_batch_even_before_its_delay() {
    let mut scheduler = scheduler(8, &batching(&[8], 1_000_000));
    push(&mut scheduler, 0..2, 0);
    let other = ScheduleTicket { key: BatchKey(vec![7]), ..ticket(2, 1) };
    scheduler.enqueue(other, 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([0, 1])));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(1000 * MS));
}

#[test]
fn a_request_is_never_split_and_one_beyond_the_preferred_sizes_runs() {
    let mut scheduler = scheduler(8, &batching(&[2], 1_000_000));
    scheduler.enqueue(ticket(0, 5), 0).unwrap();
    scheduler.enqueue(ticket(1, 5), 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([0])));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([1])));
}

fn with_policy(policy: ModelQueuePolicy) -> ModelDynamicBatching {
    ModelDynamicBatching { default_queue_policy: Some(policy), ..ModelDynamicBatching::default() }
}

#[test]
fn a_full_queue_refuses() {
    let policy = ModelQueuePolicy { max_queue_size: 3, ..ModelQueuePolicy::default() };
    let mut scheduler = scheduler(1, &with_policy(policy));
    push(&mut scheduler, 0..3, 0);
    assert_eq!(scheduler.enqueue(ticket(3, 1), 0), Err(QueueRefusal::QueueFull));
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([0])));
    assert_eq!(scheduler.enqueue(ticket(4, 1), 0), Ok(()));
}

#[test]
fn a_request_can_shorten_its_wait_only_where_there_is_one() {
    let wish = |id| ScheduleTicket { timeout_us: 50_000, ..ticket(id, 1) };
    for (default_us, allow, expected) in
        [(10_000_000, true, 50), (10_000_000, false, 10_000), (20_000, true, 20)]
    {
        let policy = ModelQueuePolicy {
            default_timeout_microseconds: default_us,
            allow_timeout_override: allow,
            ..ModelQueuePolicy::default()
        };
        let mut scheduler = scheduler(1, &with_policy(policy));
        scheduler.enqueue(wish(1), 0).unwrap();
        // The time ends although no instance is free.
        assert_eq!(
            scheduler.poll(expected * MS - 1, &[false]),
            ScheduleDecision::WaitUntil(expected * MS)
        );
        assert_eq!(
            scheduler.poll(expected * MS, &[false]),
            ScheduleDecision::Expire(vec![1], QueueExpiry::Request)
        );
    }
    let policy = ModelQueuePolicy { allow_timeout_override: true, ..ModelQueuePolicy::default() };
    let mut scheduler = scheduler(1, &with_policy(policy));
    scheduler.enqueue(wish(1), 0).unwrap();
    assert_eq!(scheduler.poll(Nanos::MAX, &[false]), ScheduleDecision::Idle);
}

#[test]
fn an_expired_request_may_stay_behind_the_others_of_its_level() {
    let policy = ModelQueuePolicy {
        timeout_action: 1,
        default_timeout_microseconds: 10_000_000,
        allow_timeout_override: true,
        ..ModelQueuePolicy::default()
    };
    let mut scheduler = scheduler(1, &with_policy(policy));
    scheduler.enqueue(ScheduleTicket { timeout_us: 1000, ..ticket(0, 1) }, 0).unwrap();
    scheduler.enqueue(ticket(1, 1), 0).unwrap();
    assert_eq!(
        scheduler.poll(2 * MS, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of([1]))
    );
    assert_eq!(
        scheduler.poll(u64::MAX / 2, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of([0]))
    );
}

#[test]
fn priorities_may_be_as_many_as_numbers_and_unknown_ones_mean_the_default() {
    let levels = ModelDynamicBatching {
        priority_levels: u64::MAX,
        default_priority_level: 2,
        ..ModelDynamicBatching::default()
    };
    let mut scheduler = scheduler(1, &levels);
    for (id, priority) in [(0, u64::MAX), (1, 0), (2, 3), (3, 1)] {
        scheduler.enqueue(ScheduleTicket { priority, ..ticket(id, 1) }, 0).unwrap();
    }
    let order: Vec<ScheduleDecision> = (0..4).map(|_| scheduler.poll(0, &[true])).collect();
    assert_eq!(order, [3, 1, 2, 0].map(|id| ScheduleDecision::Dispatch(ScheduledBatch::of([id]))));
}

#[test]
fn a_wait_for_company_ends_at_the_first_timeout() {
    let policy =
        ModelQueuePolicy { default_timeout_microseconds: 3000, ..ModelQueuePolicy::default() };
    let batching =
        ModelDynamicBatching { max_queue_delay_microseconds: 9000, ..with_policy(policy) };
    let mut scheduler = scheduler(4, &batching);
    push(&mut scheduler, 0..1, MS);
    assert_eq!(scheduler.poll(MS, &[true]), ScheduleDecision::WaitUntil(4 * MS));
    assert_eq!(
        scheduler.poll(4 * MS, &[true]),
        ScheduleDecision::Expire(vec![0], QueueExpiry::Request)
    );
}

#[test]
fn a_held_request_waits_no_longer_than_its_time() {
    let policy =
        ModelQueuePolicy { default_timeout_microseconds: 3000, ..ModelQueuePolicy::default() };
    let options = DynamicOptions::from_config(&with_policy(policy), 4);
    let mut scheduler = DynamicScheduler::new(DynamicOptions { hold_until: 3, ..options });
    push(&mut scheduler, 0..2, 0);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(3 * MS));
    assert_eq!(
        scheduler.poll(3 * MS, &[true]),
        ScheduleDecision::Expire(vec![0, 1], QueueExpiry::Request)
    );
}

#[test]
fn a_held_scheduler_waits_for_its_count_once() {
    let options = DynamicOptions::from_config(&batching(&[], 0), 4);
    let mut scheduler = DynamicScheduler::new(DynamicOptions { hold_until: 3, ..options });
    push(&mut scheduler, 0..2, 0);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Idle);
    push(&mut scheduler, 2..3, 0);
    assert_eq!(
        scheduler.poll(0, &[true]),
        ScheduleDecision::Dispatch(ScheduledBatch::of([0, 1, 2]))
    );
    push(&mut scheduler, 3..4, 0);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([3])));
}

#[derive(Clone, Debug)]
struct Arrival {
    gap: Nanos,
    batch_size: u64,
    key: i64,
    priority: u64,
    timeout_us: u64,
    patience: Option<Nanos>,
    cancelled_after: Option<Nanos>,
}

fn arrival(max_batch: u64) -> impl Strategy<Value = Arrival> {
    let cancel = prop_oneof![4 => Just(None), 1 => (0..5 * MS).prop_map(Some)];
    let patience = prop_oneof![2 => Just(None), 1 => (0..4 * MS).prop_map(Some)];
    (0..3 * MS, 1..=max_batch, 0..2_i64, 0..4_u64, 0..3000_u64, patience, cancel).prop_map(
        |(gap, batch_size, key, priority, timeout_us, patience, cancelled_after)| Arrival {
            patience,
            gap,
            batch_size,
            key,
            priority,
            timeout_us,
            cancelled_after,
        },
    )
}

#[derive(Clone, Debug)]
struct Setup {
    max_batch: u64,
    batching: ModelDynamicBatching,
    instances: usize,
    run_time: Nanos,
    arrivals: Vec<Arrival>,
}

fn setup() -> impl Strategy<Value = Setup> {
    (1..9_u64).prop_flat_map(|max_batch| {
        let top = i32::try_from(max_batch).unwrap();
        let policy = (0..2_i32, 0..6000_u64, any::<bool>(), 0..6_u32).prop_map(
            |(action, timeout, allow, size)| ModelQueuePolicy {
                timeout_action: action,
                default_timeout_microseconds: timeout,
                allow_timeout_override: allow,
                max_queue_size: size,
            },
        );
        let batching = (
            proptest::collection::vec(1..=top, 0..3),
            prop_oneof![Just(0), 1..5000_u64],
            0..4_u64,
            prop_oneof![Just(None), policy.prop_map(Some)],
        )
            .prop_map(|(preferred, delay, levels, policy)| ModelDynamicBatching {
                preferred_batch_size: preferred,
                max_queue_delay_microseconds: delay,
                priority_levels: levels,
                default_priority_level: levels.min(1),
                default_queue_policy: policy,
                ..ModelDynamicBatching::default()
            });
        let arrivals = proptest::collection::vec(arrival(max_batch), 1..60);
        (batching, 1..4_usize, 1..4 * MS, arrivals).prop_map(
            move |(batching, instances, run_time, arrivals)| Setup {
                max_batch,
                batching,
                instances,
                run_time,
                arrivals,
            },
        )
    })
}

/// Runs a scheduler under simulated time and checks everything that must always hold.
struct Simulation<'a> {
    setup: &'a Setup,
    scheduler: DynamicScheduler,
    tickets: Vec<(ScheduleTicket, Nanos)>,
    answered: Vec<Option<&'static str>>,
    busy_until: Vec<Nanos>,
    started: Vec<u64>,
}

impl Simulation<'_> {
    fn answer(&mut self, id: u64, how: &'static str) {
        let slot = &mut self.answered[usize::try_from(id).unwrap()];
        assert_eq!(*slot, None, "request {id} answered twice");
        *slot = Some(how);
    }

    fn settle(&mut self, now: Nanos) -> Option<Nanos> {
        loop {
            let instances: Vec<bool> = self.busy_until.iter().map(|&until| until <= now).collect();
            let free = instances.iter().filter(|&&free| free).count();
            match self.scheduler.poll(now, &instances) {
                ScheduleDecision::Dispatch(batch) => {
                    let ids: Vec<u64> =
                        batch.items.iter().filter_map(|item| item.request).collect();
                    self.dispatch(&ids, now, free);
                }
                ScheduleDecision::Expire(ids, _) => {
                    for id in ids {
                        let (_, enqueued) = self.tickets[usize::try_from(id).unwrap()];
                        assert!(now > enqueued, "request {id} expired at once");
                        self.answer(id, "expired");
                    }
                }
                ScheduleDecision::WaitUntil(until) => {
                    assert!(until > now);
                    if free > 0 {
                        self.check_waits(now);
                    }
                    return Some(until);
                }
                ScheduleDecision::Idle => {
                    if free > 0 {
                        assert_eq!(
                            self.scheduler.pending(),
                            0,
                            "work and a free instance, but no plan"
                        );
                    }
                    return None;
                }
            }
        }
    }

    fn check_waits(&self, now: Nanos) {
        let delay = self.setup.batching.max_queue_delay_microseconds * 1000;
        for (ticket, enqueued) in &self.tickets {
            let waits = self.answered[usize::try_from(ticket.id).unwrap()].is_none();
            let most = ticket.patience.unwrap_or(Nanos::MAX).min(delay);
            assert!(!waits || now < enqueued + most, "request {} waits past the delay", ticket.id);
        }
    }

    fn dispatch(&mut self, ids: &[u64], now: Nanos, free: usize) {
        assert!(free > 0 && !ids.is_empty());
        let tickets: Vec<ScheduleTicket> =
            ids.iter().map(|&id| self.tickets[usize::try_from(id).unwrap()].0.clone()).collect();
        let size: u64 = tickets.iter().map(|ticket| ticket.batch_size).sum();
        assert!(size <= self.setup.max_batch, "batch of {size}");
        assert!(tickets.iter().all(|ticket| ticket.key == tickets[0].key));
        for &id in ids {
            self.answer(id, "ran");
            self.started.push(id);
        }
        let instance = self.busy_until.iter_mut().find(|until| **until <= now).unwrap();
        *instance = now + self.setup.run_time;
    }

    fn step_to(&mut self, target: Nanos, mut now: Nanos) {
        loop {
            let wake = self.settle(now);
            let done = self.busy_until.iter().copied().filter(|&until| until > now).min();
            match [wake, done].into_iter().flatten().min() {
                Some(next) if next <= target => now = next,
                _ => break,
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_or_answered_twice_and_no_limit_is_passed(setup in setup()) {
        let options = DynamicOptions::from_config(&setup.batching, i32::try_from(setup.max_batch).unwrap());
        let mut run = Simulation {
            setup: &setup,
            scheduler: DynamicScheduler::new(options),
            tickets: Vec::new(),
            answered: Vec::new(),
            busy_until: vec![0; setup.instances],
            started: Vec::new(),
        };
        let mut now = 0;
        let mut cancels: Vec<(Nanos, u64)> = Vec::new();
        for (id, arrival) in (0..).zip(&setup.arrivals) {
            let from = now;
            now += arrival.gap;
            run.step_to(now, from);
            cancels.retain(|&(at, id)| {
                let due = at <= now;
                if due && !run.scheduler.cancel(id, now).is_empty() {
                    run.answer(id, "cancelled");
                }
                !due
            });
            let ticket = ScheduleTicket {
                id,
                batch_size: arrival.batch_size,
                priority: arrival.priority,
                timeout_us: arrival.timeout_us,
                patience: arrival.patience,
                key: BatchKey(vec![arrival.key]),
                ..ScheduleTicket::default()
            };
            run.tickets.push((ticket.clone(), now));
            run.answered.push(None);
            if run.scheduler.enqueue(ticket, now).is_err() {
                run.answer(id, "refused");
            }
            if let Some(after) = arrival.cancelled_after {
                cancels.push((now + after, id));
            }
            run.settle(now);
        }
        run.step_to(Nanos::MAX / 2, now);
        prop_assert!(run.answered.iter().all(Option::is_some), "lost: {:?}", run.answered);
        prop_assert_eq!(run.scheduler.pending(), 0);
        let plain = setup.batching.priority_levels == 0
            && setup.batching.default_queue_policy.as_ref().is_none_or(|policy| policy.timeout_action == 0);
        if plain {
            prop_assert!(run.started.is_sorted(), "out of order: {:?}", run.started);
        }
    }
}
