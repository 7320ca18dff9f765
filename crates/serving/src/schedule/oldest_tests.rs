use super::*;
use crate::request::CorrelationId;
use crate::schedule::SequenceMark;

fn scheduler(strategy: &StrategyOldest, iterative: bool) -> OldestScheduler {
    let config = ModelSequenceBatching {
        iterative_sequence: iterative,
        max_sequence_idle_microseconds: 1_000_000,
        ..ModelSequenceBatching::default()
    };
    OldestScheduler::new(&config, strategy, 4, 1, HoldUntil::default())
}

fn ticket(id: u64, sequence: u64, start: bool, end: bool) -> ScheduleTicket {
    let correlation = CorrelationId::Uint(sequence);
    let sequence = SequenceMark { correlation, start, end };
    ScheduleTicket { id, batch_size: 1, sequence, ..ScheduleTicket::default() }
}

fn ids(decision: ScheduleDecision) -> Vec<u64> {
    match decision {
        ScheduleDecision::Dispatch(batch) => {
            batch.items.iter().filter_map(|item| item.request).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_of_each_sequence_is_under_way() {
    let mut scheduler = scheduler(&StrategyOldest::default(), false);
    scheduler.enqueue(ticket(0, 1, true, false), 0).unwrap();
    scheduler.enqueue(ticket(1, 1, false, false), 0).unwrap();
    scheduler.enqueue(ticket(2, 2, true, true), 0).unwrap();
    assert_eq!(ids(scheduler.poll(0, &[true])), [0, 2]);
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Idle);
    scheduler.released(0, 1);
    assert_eq!(ids(scheduler.poll(1, &[true])), [1]);
}

#[test]
fn candidates_are_limited_and_the_next_sequence_comes_when_one_ends() {
    let one = StrategyOldest { max_candidate_sequences: 1, ..StrategyOldest::default() };
    let mut scheduler = scheduler(&one, false);
    scheduler.enqueue(ticket(0, 1, true, true), 0).unwrap();
    scheduler.enqueue(ticket(1, 2, true, true), 0).unwrap();
    assert_eq!(ids(scheduler.poll(0, &[true])), [0]);
    assert_eq!((scheduler.poll(0, &[true]), scheduler.pending()), (ScheduleDecision::Idle, 1));
    scheduler.released(0, 1);
    assert_eq!(ids(scheduler.poll(1, &[true])), [1]);
}

#[test]
fn a_batch_waits_for_its_preferred_size() {
    let strategy = StrategyOldest {
        preferred_batch_size: vec![2],
        max_queue_delay_microseconds: 10,
        ..StrategyOldest::default()
    };
    let mut scheduler = scheduler(&strategy, false);
    scheduler.enqueue(ticket(0, 1, true, false), 0).unwrap();
    scheduler.enqueue(ticket(1, 1, false, false), 0).unwrap();
    assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::WaitUntil(10_000));
    scheduler.enqueue(ticket(2, 2, true, false), 5).unwrap();
    assert_eq!(ids(scheduler.poll(5, &[true])), [0, 2]);
}

#[test]
fn an_iterative_request_runs_again_in_its_slot_until_it_is_released() {
    let mut scheduler = scheduler(&StrategyOldest::default(), true);
    scheduler.enqueue(ticket(7, 0, false, false), 0).unwrap();
    let mut starts = Vec::new();
    for round in 0..3 {
        let ScheduleDecision::Dispatch(batch) = scheduler.poll(round, &[true]) else {
            panic!("no batch")
        };
        let step = batch.items[0].step.clone().unwrap();
        starts.push((step.start, step.slot));
        assert_eq!(scheduler.poll(round, &[true]), ScheduleDecision::Idle);
        if round < 2 {
            assert!(scheduler.reschedule(7, round));
        }
    }
    scheduler.released(7, 3);
    assert_eq!(starts, [(true, 0), (false, 0), (false, 0)]);
    assert!(!scheduler.reschedule(7, 3));
    assert_eq!((scheduler.poll(3, &[true]), scheduler.pending()), (ScheduleDecision::Idle, 0));
}
