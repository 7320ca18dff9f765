//! Decisions of schedulers and of the rate limiter for a configuration, in simulated time.

use galatea_serving::config::{from_text, normalise};
use galatea_serving::rate_limiter::{InstanceId, RateLimiter, ResourceDevice, ResourceLimit};
use galatea_serving::schedule::{
    BatchPlace, HoldUntil, Nanos, ScheduleDecision, ScheduleTicket, SequenceMark, for_config,
    preserves_ordering,
};
use galatea_serving::{CorrelationId, ModelConfig};
use galatea_tensor::OrderedSet;

/// Time that a batch takes, in nanoseconds.
const RUN: Nanos = 100_000;

/// A request at a time in microseconds.
struct TicketArrival {
    at: Nanos,
    ticket: ScheduleTicket,
}

fn plain(id: u64, size: u64, priority: u64, timeout_us: u64) -> TicketArrival {
    let ticket =
        ScheduleTicket { id, batch_size: size, priority, timeout_us, ..ScheduleTicket::default() };
    TicketArrival { at: (id - 1) * 10, ticket }
}

fn of_sequence(id: u64, at: Nanos, sequence: u64, flags: &str) -> TicketArrival {
    let sequence = SequenceMark {
        correlation: CorrelationId::Uint(sequence),
        start: flags.contains('S'),
        end: flags.contains('E'),
    };
    TicketArrival {
        at,
        ticket: ScheduleTicket { id, batch_size: 1, sequence, ..ScheduleTicket::default() },
    }
}

/// Requests that come while the first one runs, with priorities and a timeout, or of sequences.
fn script(config: &ModelConfig, sequences: bool) -> Vec<TicketArrival> {
    assert!(config.max_batch_size >= 0);
    if !sequences {
        return vec![
            plain(1, 1, 0, 0),
            plain(2, 1, 2, 0),
            plain(3, 1, 1, 15),
            plain(4, 2, 0, 0),
            plain(5, 1, 2, 0),
            plain(6, 1, 0, 0),
        ];
    }
    vec![
        of_sequence(1, 0, 1, "S"),
        of_sequence(2, 10, 2, "S"),
        of_sequence(3, 20, 1, ""),
        of_sequence(4, 30, 3, "S"),
        of_sequence(5, 40, 2, "E"),
        of_sequence(6, 50, 4, "SE"),
        of_sequence(7, 9_000, 1, ""),
        of_sequence(8, 9_010, 3, "E"),
    ]
}

fn place(item: &BatchPlace) -> String {
    let step = item.step.as_ref().map(|step| (step.slot, step.start, step.end));
    format!("{:?}{step:?}", item.request)
}

/// Returns what the scheduler of a configuration does with a fixed script of requests.
pub(super) fn scheduled(text: &str) -> String {
    let mut config =
        from_text(&format!("name: 'm' backend: 'x' max_batch_size: 4 {text}")).unwrap();
    normalise(&mut config);
    let mut scheduler = for_config(&config, 1, HoldUntil::default());
    let mut log = format!("in order: {};", preserves_ordering(&config));
    let mut arrivals = script(&config, text.contains("sequence_batching"));
    let mut times: OrderedSet<Nanos> = arrivals.iter().map(|one| one.at * 1000).collect();
    let (mut busy, mut running) = (0, Vec::new());
    for _ in 0..1000 {
        let Some(now) = times.pop_first() else { return log };
        let (due, later) = arrivals.into_iter().partition(|one| one.at * 1000 <= now);
        arrivals = later;
        for TicketArrival { ticket, .. } in due {
            let id = ticket.id;
            if let Err(refusal) = scheduler.enqueue(ticket, now) {
                log += &format!(" {now} refused {id} {refusal:?};");
            }
        }
        if busy <= now {
            running.drain(..).for_each(|id| scheduler.released(id, now));
        }
        loop {
            match scheduler.poll(now, &[busy <= now]) {
                ScheduleDecision::Dispatch(batch) => {
                    let items: Vec<String> = batch.items.iter().map(place).collect();
                    log += &format!(" {now} runs {};", items.join(" "));
                    running.extend(batch.items.iter().filter_map(|item| item.request));
                    busy = now + RUN;
                    times.insert(busy);
                }
                ScheduleDecision::Expire(ids, why) => log += &format!(" {now} {ids:?} {why:?};"),
                ScheduleDecision::WaitUntil(next) => {
                    times.insert(next.max(now + 1));
                    break;
                }
                ScheduleDecision::Idle => break,
            }
        }
    }
    panic!("it never ends: {log}");
}

/// Returns who may run when an instance with this text in its `rate_limiter` competes with another one.
pub(super) fn limited(text: &str) -> String {
    let wishes = |text: &str| {
        let config = from_text(&format!("instance_group {{ rate_limiter {{ {text} }} }}")).unwrap();
        config.instance_group.into_iter().next().unwrap().rate_limiter.unwrap()
    };
    let limit = ResourceLimit { name: "R".to_owned(), count: 2, device: None };
    let mut limiter = RateLimiter::new(vec![limit]);
    let register = |limiter: &mut RateLimiter, text: &str| {
        limiter.register(Some(&wishes(text)), ResourceDevice::Host)
    };
    let other = register(&mut limiter, "resources { name: 'R' count: 1 } priority: 2").unwrap();
    let own = match register(&mut limiter, text) {
        Ok(own) => own,
        Err(error) => return error.message,
    };
    let name = |id: InstanceId| if id == own { "own" } else { "other" };
    let mut log = String::new();
    let mut running: Vec<InstanceId> = Vec::new();
    for id in [other, own] {
        running.extend(limiter.request(id));
    }
    for _ in 0..12 {
        let names: Vec<&str> = running.iter().map(|id| name(*id)).collect();
        log += &format!("{}; ", names.join(" "));
        let Some(first) = (!running.is_empty()).then(|| running.remove(0)) else { break };
        running.extend(limiter.renew(first));
    }
    log
}
