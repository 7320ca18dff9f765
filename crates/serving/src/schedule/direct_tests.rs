use super::*;
use crate::request::CorrelationId;
use crate::schedule::{BatchKey, SequenceMark};

const MS: Nanos = 1_000_000;

fn scheduler(
    strategy: &StrategyDirect,
    slots: i32,
    instances: usize,
    hold: HoldUntil,
) -> DirectScheduler {
    let config = ModelSequenceBatching {
        max_sequence_idle_microseconds: 5_000_000,
        ..ModelSequenceBatching::default()
    };
    DirectScheduler::new(&config, strategy, slots, instances, hold)
}

fn plain(slots: i32, instances: usize) -> DirectScheduler {
    scheduler(&StrategyDirect::default(), slots, instances, HoldUntil::default())
}

/// `S` starts, `E` ends, anything else is in between.
fn ticket(id: u64, sequence: u64, flags: &str) -> ScheduleTicket {
    ScheduleTicket {
        id,
        batch_size: 1,
        sequence: SequenceMark {
            correlation: CorrelationId::Uint(sequence),
            start: flags.contains('S'),
            end: flags.contains('E'),
        },
        ..ScheduleTicket::default()
    }
}

/// The requests of the next batch by slot.
fn rows(decision: ScheduleDecision) -> Vec<Option<u64>> {
    match decision {
        ScheduleDecision::Dispatch(batch) => batch.items.iter().map(|item| item.request).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn gaps_are_filled_and_a_batch_ends_at_the_highest_slot_with_work() {
    let mut scheduler = plain(4, 1);
    for sequence in 1..=4 {
        scheduler.enqueue(ticket(sequence, sequence, "S"), 0).unwrap();
    }
    assert_eq!(rows(scheduler.poll(0, &[true])), [1, 2, 3, 4].map(Some));
    assert_eq!(scheduler.poll(0, &[false]), ScheduleDecision::Idle);
    scheduler.enqueue(ticket(5, 4, "E"), 0).unwrap();
    scheduler.enqueue(ticket(6, 2, ""), 0).unwrap();
    let ScheduleDecision::Dispatch(batch) = scheduler.poll(1, &[true]) else { panic!("no batch") };
    let filler = BatchPlace { request: None, step: Some(SequenceStep::default()) };
    assert_eq!(batch.items[0], filler);
    assert_eq!(batch.items[2].step, Some(SequenceStep { slot: 2, ..SequenceStep::default() }));
    let last = batch.items[3].step.clone().unwrap();
    assert_eq!((last.slot, last.start, last.end, last.ready), (3, false, true, true));
    scheduler.enqueue(ticket(7, 2, ""), 2).unwrap();
    assert_eq!(rows(scheduler.poll(2, &[true])), [None, Some(7)]);
}

#[test]
fn sequences_spread_over_the_instances_before_they_share_one() {
    let mut scheduler = plain(2, 2);
    for sequence in 1..=3 {
        scheduler.enqueue(ticket(sequence, sequence, "S"), 0).unwrap();
    }
    let ScheduleDecision::Dispatch(first) = scheduler.poll(0, &[true, true]) else {
        panic!("no batch")
    };
    assert_eq!((first.instance, first.items.len()), (Some(0), 2));
    let ScheduleDecision::Dispatch(second) = scheduler.poll(0, &[false, true]) else {
        panic!("no batch")
    };
    assert_eq!((second.instance, second.items.len()), (Some(1), 1));
}

#[test]
fn a_sequence_without_a_slot_waits_whole_until_one_ends() {
    let mut scheduler = plain(1, 1);
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    scheduler.enqueue(ticket(1, 2, "S"), 0).unwrap();
    scheduler.enqueue(ticket(2, 2, "E"), 0).unwrap();
    // The id is free again, and its next sequence waits behind.
    scheduler.enqueue(ticket(3, 2, "SE"), 0).unwrap();
    assert_eq!(rows(scheduler.poll(0, &[true])), [Some(0)]);
    assert!(matches!(scheduler.poll(1, &[true]), ScheduleDecision::WaitUntil(_)));
    scheduler.enqueue(ticket(4, 1, "E"), 2).unwrap();
    for id in [4, 1, 2, 3] {
        assert_eq!(rows(scheduler.poll(3, &[true])), [Some(id)]);
    }
    assert_eq!((scheduler.poll(4, &[true]), scheduler.pending()), (ScheduleDecision::Idle, 0));
}

#[test]
fn a_request_that_cannot_be_placed_is_refused() {
    let mut scheduler = plain(1, 1);
    let wide = ScheduleTicket { batch_size: 2, ..ticket(0, 1, "S") };
    assert_eq!(scheduler.enqueue(wide, 0), Err(QueueRefusal::Batched));
    assert_eq!(scheduler.enqueue(ticket(0, 0, "S"), 0), Err(QueueRefusal::NoSequence));
    assert_eq!(scheduler.enqueue(ticket(0, 1, ""), 0), Err(QueueRefusal::NotStarted));
    scheduler.enqueue(ticket(0, 1, "SE"), 0).unwrap();
    assert_eq!(scheduler.enqueue(ticket(1, 1, ""), 0), Err(QueueRefusal::NotStarted));
}

#[test]
fn a_silent_sequence_loses_its_slot_but_not_while_it_runs() {
    let mut scheduler = plain(1, 1);
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    assert_eq!(rows(scheduler.poll(0, &[true])), [Some(0)]);
    scheduler.enqueue(ticket(1, 2, "SE"), 0).unwrap();
    assert_eq!(scheduler.poll(9000 * MS, &[false]), ScheduleDecision::Idle);
    assert_eq!(scheduler.poll(10_000 * MS, &[true]), ScheduleDecision::WaitUntil(15_000 * MS));
    assert_eq!(rows(scheduler.poll(15_000 * MS, &[true])), [Some(1)]);
    assert_eq!(scheduler.enqueue(ticket(2, 1, ""), 15_000 * MS), Err(QueueRefusal::NotStarted));
}

#[test]
fn slots_wait_for_company_as_long_as_they_may() {
    for (share, alone_at) in [(0.0, 0), (0.5, 0), (1.0, 3000 * MS)] {
        let strategy = StrategyDirect {
            max_queue_delay_microseconds: 3_000_000,
            minimum_slot_utilization: share,
        };
        let mut scheduler = scheduler(&strategy, 4, 1, HoldUntil::default());
        scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
        scheduler.enqueue(ticket(1, 2, "S"), 0).unwrap();
        if alone_at > 0 {
            assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(alone_at));
        }
        assert_eq!(rows(scheduler.poll(alone_at, &[true])), [Some(0), Some(1)]);
    }
}

#[test]
fn another_shape_waits_for_the_next_batch() {
    let mut scheduler = plain(3, 1);
    let other = ScheduleTicket { key: BatchKey(vec![7]), ..ticket(1, 2, "S") };
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    scheduler.enqueue(other, 1).unwrap();
    scheduler.enqueue(ticket(2, 3, "S"), 2).unwrap();
    assert_eq!(rows(scheduler.poll(3, &[true])), [Some(0), None, Some(2)]);
    assert_eq!(rows(scheduler.poll(4, &[true])), [None, Some(1)]);
}

#[test]
fn a_held_batcher_waits_for_requests_and_backlog() {
    let hold = HoldUntil { requests: 2, backlog: 1 };
    let mut scheduler = scheduler(&StrategyDirect::default(), 1, 1, hold);
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    scheduler.enqueue(ticket(1, 1, "E"), 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Idle);
    scheduler.enqueue(ticket(2, 2, "SE"), 0).unwrap();
    for id in 0..3 {
        assert_eq!(rows(scheduler.poll(0, &[true])), [Some(id)]);
    }
}

#[test]
fn a_backlogged_sequence_expires_whole() {
    let mut scheduler = plain(1, 1);
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    scheduler.enqueue(ticket(1, 2, "S"), 0).unwrap();
    let hasty = ScheduleTicket { timeout_us: 3000, ..ticket(2, 2, "") };
    scheduler.enqueue(hasty, MS).unwrap();
    assert_eq!(rows(scheduler.poll(MS, &[true])), [Some(0)]);
    assert_eq!(scheduler.poll(MS, &[false]), ScheduleDecision::WaitUntil(4 * MS));
    assert_eq!(
        scheduler.poll(4 * MS, &[false]),
        ScheduleDecision::Expire(vec![1, 2], QueueExpiry::Sequence)
    );
    assert_eq!(scheduler.enqueue(ticket(3, 2, ""), 4 * MS), Err(QueueRefusal::NotStarted));
}

#[test]
fn a_cancelled_request_takes_the_queued_ones_of_its_sequence_with_it() {
    let mut scheduler = plain(1, 1);
    scheduler.enqueue(ticket(0, 1, "S"), 0).unwrap();
    scheduler.enqueue(ticket(1, 2, "S"), 0).unwrap();
    scheduler.enqueue(ticket(2, 2, ""), 0).unwrap();
    assert_eq!(scheduler.cancel(2, 0), [1, 2]);
    assert_eq!(scheduler.cancel(2, 0), Vec::<u64>::new());
    assert_eq!(rows(scheduler.poll(0, &[true])), [Some(0)]);
    scheduler.enqueue(ticket(3, 1, ""), 0).unwrap();
    scheduler.enqueue(ticket(4, 1, "E"), 0).unwrap();
    assert_eq!(scheduler.cancel(3, 0), [3, 4]);
    scheduler.enqueue(ticket(5, 3, "S"), 0).unwrap();
    assert_eq!(rows(scheduler.poll(1, &[true])), [Some(5)]);
}

#[test]
fn a_limit_that_nobody_reaches_costs_nothing() {
    let mut scheduler = plain(i32::MAX, 2);
    for sequence in 1..=5 {
        scheduler.enqueue(ticket(sequence, sequence, "SE"), 0).unwrap();
    }
    assert_eq!(rows(scheduler.poll(0, &[true, true])), [1, 3, 5].map(Some));
    assert_eq!(rows(scheduler.poll(0, &[false, true])), [2, 4].map(Some));
}
