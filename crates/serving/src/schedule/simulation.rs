//! Every policy under thousands of random scripts in simulated time, with everything that must always hold checked at
//! every step. A script is a number: the same number gives the same script.

use std::collections::HashMap;

use galatea_tensor::{OrderedMap, OrderedSet};

use super::*;
use crate::config::inference::model_sequence_batching::StrategyOldest;
use crate::config::inference::{ModelDynamicBatching, ModelQueuePolicy, ModelSequenceBatching};

/// Scripts for each policy.
const SCRIPTS: u64 = 2_500;

/// Vigna's splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Default,
    Dynamic,
    Direct,
    Oldest,
    IterativeDirect,
    IterativeOldest,
}

impl Policy {
    fn over_sequences(self) -> bool {
        !matches!(self, Self::Default | Self::Dynamic)
    }

    fn is_iterative(self) -> bool {
        matches!(self, Self::IterativeDirect | Self::IterativeOldest)
    }

    fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::IterativeDirect)
    }
}

/// Configuration of a script, as far as the checks need it.
#[derive(Debug)]
struct Rules {
    policy: Policy,
    max_batch: u64,
    delay: Nanos,
    min_utilization: f32,
    idle: Nanos,
    slots: usize,
    queue: ModelQueuePolicy,
    levels: u64,
}

fn dynamic_config(random: &mut Random, max_batch: u64) -> ModelDynamicBatching {
    let count = random.below(3);
    let preferred: Vec<u64> = (0..count).map(|_| 1 + random.below(max_batch)).collect();
    let levels = random.below(4);
    let policy = random.chance(60).then(|| ModelQueuePolicy {
        timeout_action: i32::from(random.chance(40)),
        default_timeout_microseconds: if random.chance(60) { 1 + random.below(40) } else { 0 },
        allow_timeout_override: random.chance(50),
        max_queue_size: u32::try_from(random.below(6)).unwrap(),
    });
    ModelDynamicBatching {
        preferred_batch_size: preferred
            .into_iter()
            .map(|size| i32::try_from(size).unwrap())
            .collect(),
        max_queue_delay_microseconds: if random.chance(50) { random.below(30) } else { 0 },
        priority_levels: levels,
        default_priority_level: levels.min(1),
        default_queue_policy: policy,
        ..ModelDynamicBatching::default()
    }
}

fn setup(
    policy: Policy,
    random: &mut Random,
    instances: usize,
) -> (Rules, Box<dyn RequestScheduler>) {
    let max_batch = random.below(9);
    let size = i32::try_from(max_batch).unwrap();
    let max_batch = max_batch.max(1);
    let mut rules = Rules {
        policy,
        max_batch,
        delay: 0,
        min_utilization: 0.0,
        idle: 0,
        slots: usize::try_from(max_batch).unwrap(),
        queue: ModelQueuePolicy::default(),
        levels: 0,
    };
    let delay_us = if random.chance(50) { random.below(30) } else { 0 };
    let sequences = ModelSequenceBatching {
        max_sequence_idle_microseconds: 1 + random.below(200),
        iterative_sequence: policy.is_iterative(),
        ..ModelSequenceBatching::default()
    };
    if policy.over_sequences() {
        rules.idle = sequences.max_sequence_idle_microseconds * 1000;
        rules.delay = delay_us * 1000;
    }
    let hold = HoldUntil::default();
    let scheduler: Box<dyn RequestScheduler> = match policy {
        Policy::Default => {
            rules.max_batch = u64::MAX;
            Box::new(DefaultScheduler::default())
        }
        Policy::Dynamic => {
            let config = dynamic_config(random, max_batch);
            rules.delay = config.max_queue_delay_microseconds * 1000;
            rules.queue = config.default_queue_policy.unwrap_or_default();
            rules.levels = config.priority_levels;
            Box::new(DynamicScheduler::new(DynamicOptions::from_config(&config, size)))
        }
        Policy::Direct | Policy::IterativeDirect => {
            let tenths = u16::try_from(random.below(11)).unwrap();
            rules.min_utilization = f32::from(tenths) / 10.0;
            let direct = StrategyDirect {
                max_queue_delay_microseconds: delay_us,
                minimum_slot_utilization: rules.min_utilization,
            };
            Box::new(DirectScheduler::new(&sequences, &direct, size, instances, hold))
        }
        Policy::Oldest | Policy::IterativeOldest => {
            let candidates = random.below(5);
            if candidates > 0 {
                rules.slots = usize::try_from(candidates).unwrap();
            }
            let oldest = StrategyOldest {
                max_candidate_sequences: i32::try_from(candidates).unwrap(),
                preferred_batch_size: Vec::new(),
                max_queue_delay_microseconds: delay_us,
                preserve_ordering: false,
            };
            Box::new(OldestScheduler::new(&sequences, &oldest, size, instances, hold))
        }
    };
    (rules, scheduler)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waits,
    Runs,
    Done,
    Refused,
    Expired,
    Cancelled,
}

#[derive(Debug)]
struct Request {
    ticket: ScheduleTicket,
    arrived: Nanos,
    fate: Fate,
    /// Which life of its sequence's id it belongs to.
    life: (CorrelationId, u64),
    runs: u64,
    more_runs: u64,
}

/// The life of a sequence as its client sees it.
#[derive(Debug, Default)]
struct Life {
    number: u64,
    /// A request without START must be taken.
    surely: bool,
    /// A request without START must be refused.
    never: bool,
    last: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Free(usize),
    Release(u64),
    Arrive(u64),
    Cancel(u64),
    Drain,
    Wake,
}

struct Simulation {
    random: Random,
    rules: Rules,
    scheduler: Box<dyn RequestScheduler>,
    free: Vec<bool>,
    requests: Vec<Request>,
    events: OrderedSet<(Nanos, Event)>,
    lives: HashMap<CorrelationId, Life>,
    /// Where each life was seen to run, and which life each slot saw last.
    homes: HashMap<(CorrelationId, u64), (usize, usize)>,
    tenants: HashMap<(usize, usize), Vec<(CorrelationId, u64)>>,
    started: OrderedMap<u64, Vec<u64>>,
    /// Order that the driver keeps for `preserve_ordering`: the requests in the order of their dispatch, and of their answers.
    release: OrderedRelease<u64>,
    dispatched: Vec<u64>,
    answered: Vec<u64>,
    drained: bool,
}

fn at(id: u64) -> usize {
    usize::try_from(id).unwrap()
}

impl Simulation {
    fn new(policy: Policy, script: u64) -> Self {
        let mut random = Random(script);
        let instances = at(1 + random.below(3));
        let (rules, scheduler) = setup(policy, &mut random, instances);
        let mut events = OrderedSet::new();
        let mut now = 0;
        let count = 1 + random.below(50);
        let pace = 1 + random.below(30_000);
        for id in 0..count {
            now += random.below(pace);
            events.insert((now, Event::Arrive(id)));
            if random.chance(15) {
                events.insert((now + random.below(60_000), Event::Cancel(id)));
            }
        }
        if random.chance(20) {
            events.insert((now + random.below(50_000), Event::Drain));
        }
        Self {
            random,
            rules,
            scheduler,
            free: vec![true; instances],
            requests: Vec::new(),
            events,
            lives: HashMap::new(),
            homes: HashMap::new(),
            tenants: HashMap::new(),
            started: OrderedMap::new(),
            release: OrderedRelease::default(),
            dispatched: Vec::new(),
            answered: Vec::new(),
            drained: false,
        }
    }

    fn run(&mut self) {
        let mut steps = 0;
        while let Some((now, event)) = self.events.pop_first() {
            steps += 1;
            assert!(steps < 100_000, "it never ends");
            match event {
                Event::Arrive(id) => self.arrive(id, now),
                Event::Cancel(id) => self.cancel(id, now),
                Event::Free(instance) => self.free[instance] = true,
                Event::Release(id) => self.release(id, now),
                Event::Drain => {
                    self.drained = true;
                    self.scheduler.drain(now);
                }
                Event::Wake => {}
            }
            // What happens at the same moment may come before or after the policy is asked.
            let next_is_now = self.events.first().is_some_and(|(next, _)| *next == now);
            if !next_is_now || self.random.chance(50) {
                self.settle(now);
            }
        }
        for (id, request) in self.requests.iter().enumerate() {
            let over = !matches!(request.fate, Fate::Waits | Fate::Runs);
            assert!(over, "request {id} is lost: {request:?}");
        }
        assert_eq!(self.scheduler.pending(), 0);
        assert_eq!(self.answered, self.dispatched, "answers that keep the order");
        self.check_order();
    }

    fn ticket(&mut self, id: u64) -> ScheduleTicket {
        let random = &mut self.random;
        let batch_size = match self.rules.policy.over_sequences() {
            true if random.chance(3) => 2,
            true => 1,
            false => 1 + random.below(self.rules.max_batch.min(8)),
        };
        let correlation = match random.below(6) {
            0 if random.chance(20) => CorrelationId::None,
            0 => CorrelationId::String("name".to_owned()),
            number => CorrelationId::Uint(number),
        };
        ScheduleTicket {
            id,
            batch_size,
            priority: random.below(4),
            timeout_us: if random.chance(30) { 1 + random.below(60) } else { 0 },
            key: BatchKey(vec![i64::from(random.chance(15))]),
            sequence: SequenceMark {
                correlation,
                start: random.chance(45),
                end: random.chance(35),
            },
            ..ScheduleTicket::default()
        }
    }

    fn arrive(&mut self, id: u64, now: Nanos) {
        let ticket = if self.drained { return self.skip(id, now) } else { self.ticket(id) };
        let result = self.scheduler.enqueue(ticket.clone(), now);
        let correlation = match self.rules.policy.is_iterative() {
            true => CorrelationId::Uint(1_000_000 + id),
            false => ticket.sequence.correlation.clone(),
        };
        let life = self.check_taken(&ticket, &correlation, result, now);
        let fate = if result.is_ok() { Fate::Waits } else { Fate::Refused };
        let more_runs = self.random.below(4);
        let life = (correlation, life);
        self.requests.push(Request { ticket, arrived: now, fate, life, runs: 0, more_runs });
    }

    /// The driver takes nothing more.
    fn skip(&mut self, id: u64, now: Nanos) {
        let ticket = ScheduleTicket { id, ..ScheduleTicket::default() };
        let life = (CorrelationId::None, 0);
        self.requests.push(Request {
            ticket,
            arrived: now,
            fate: Fate::Refused,
            life,
            runs: 0,
            more_runs: 0,
        });
    }

    /// Compares the policy's answer with what the client knows; gives the number of the sequence's life.
    fn check_taken(
        &mut self,
        ticket: &ScheduleTicket,
        correlation: &CorrelationId,
        result: Result<(), QueueRefusal>,
        now: Nanos,
    ) -> u64 {
        let waiting = self.requests.iter().filter(|request| request.fate == Fate::Waits).count();
        if !self.rules.policy.over_sequences() {
            if let Err(refusal) = result {
                assert_eq!(refusal, QueueRefusal::QueueFull);
                let most = self.rules.queue.max_queue_size;
                assert!(most > 0 && waiting >= usize::try_from(most).unwrap());
            } else if self.rules.levels == 0 && self.rules.queue.max_queue_size > 0 {
                assert!(waiting < usize::try_from(self.rules.queue.max_queue_size).unwrap());
            }
            return 0;
        }
        if ticket.batch_size > 1 {
            assert_eq!(result, Err(QueueRefusal::Batched));
            return 0;
        }
        if !correlation.names_sequence() {
            assert_eq!(result, Err(QueueRefusal::NoSequence));
            return 0;
        }
        let idle = self.rules.idle;
        let requests = &self.requests;
        let fresh = || Life { never: true, ..Life::default() };
        let life = self.lives.entry(correlation.clone()).or_insert_with(fresh);
        let busy = requests.iter().any(|request| {
            request.life == (correlation.clone(), life.number)
                && matches!(request.fate, Fate::Waits | Fate::Runs)
        });
        let silent = !busy && now >= life.last + idle;
        let starts = ticket.sequence.start || self.rules.policy.is_iterative();
        if !starts {
            match result {
                Ok(()) => assert!(!life.never, "taken without a start"),
                Err(refusal) => {
                    assert_eq!(refusal, QueueRefusal::NotStarted);
                    assert!(!life.surely || silent, "refused in the midst of a sequence");
                    return life.number;
                }
            }
        }
        assert_eq!(result, Ok(()));
        if starts && (!life.surely || silent) {
            life.number += 1;
            life.surely = true;
        }
        life.never = ticket.sequence.end;
        life.surely &= !ticket.sequence.end;
        life.last = now;
        life.number
    }

    fn set(&mut self, id: u64, from: Fate, to: Fate) {
        let request = &mut self.requests[at(id)];
        assert_eq!(request.fate, from, "request {id} cannot become {to:?}");
        request.fate = to;
    }

    fn touch(&mut self, id: u64, now: Nanos) {
        let (correlation, number) = self.requests[at(id)].life.clone();
        if let Some(life) = self.lives.get_mut(&correlation)
            && life.number == number
        {
            life.last = now;
        }
    }

    /// The client no longer knows whether the sequence goes on.
    fn disturb(&mut self, id: u64) {
        let (correlation, number) = self.requests[at(id)].life.clone();
        if let Some(life) = self.lives.get_mut(&correlation)
            && life.number == number
        {
            life.surely = false;
        }
    }

    fn cancel(&mut self, id: u64, now: Nanos) {
        let waits = self.requests.get(at(id)).is_some_and(|request| request.fate == Fate::Waits);
        let cancelled = self.scheduler.cancel(id, now);
        assert_eq!(waits, cancelled.contains(&id), "request {id}: {cancelled:?}");
        assert!(waits || cancelled.is_empty());
        if !waits {
            return;
        }
        let life = self.requests[at(id)].life.clone();
        for &other in &cancelled {
            self.set(other, Fate::Waits, Fate::Cancelled);
            if self.requests[at(other)].runs > 0 {
                self.answered.extend(self.release.finish(other, other));
            }
            self.disturb(other);
            // After a disturbance the client cannot know where one life ends and the next begins.
            assert_eq!(self.requests[at(other)].life.0, life.0);
        }
        let left = self.requests.iter().any(|request| {
            request.life == life && request.fate == Fate::Waits && request.runs == 0
        });
        let over = self.rules.policy.over_sequences();
        // A sequence that waited for its slot has left it all the same.
        assert!(
            !over || !left || self.lives[&life.0].number != life.1,
            "a part of a sequence stays"
        );
    }

    fn release(&mut self, id: u64, now: Nanos) {
        self.touch(id, now);
        let request = &mut self.requests[at(id)];
        if self.rules.policy.is_iterative() && request.more_runs > 0 {
            request.more_runs -= 1;
            self.set(id, Fate::Runs, Fate::Waits);
            assert!(self.scheduler.reschedule(id, now));
            return;
        }
        self.set(id, Fate::Runs, Fate::Done);
        self.answered.extend(self.release.finish(id, id));
        if self.scheduler.follows_releases() {
            self.scheduler.released(id, now);
        }
    }

    fn settle(&mut self, now: Nanos) {
        for _ in 0..1000 {
            let free = self.free.contains(&true);
            match self.scheduler.poll(now, &self.free) {
                ScheduleDecision::Dispatch(batch) => self.dispatch(&batch, now),
                ScheduleDecision::Expire(ids, why) => self.expire(&ids, why, now),
                ScheduleDecision::WaitUntil(until) => {
                    assert!(until > now, "a wait that is over");
                    self.check_waits(now, free);
                    self.events.insert((until, Event::Wake));
                    return;
                }
                ScheduleDecision::Idle => {
                    self.check_waits(now, free);
                    if free && !self.rules.policy.over_sequences() {
                        assert_eq!(
                            self.scheduler.pending(),
                            0,
                            "work and a free instance, but no plan"
                        );
                    }
                    return;
                }
            }
        }
        panic!("the policy never comes to rest");
    }

    /// Nobody waits for company beyond the delay while all instances are free.
    fn check_waits(&self, now: Nanos, free: bool) {
        let alone = free && self.rules.policy == Policy::Dynamic;
        let delay = if self.drained { 0 } else { self.rules.delay };
        for request in self.requests.iter().filter(|request| request.fate == Fate::Waits) {
            assert!(!alone || now < request.arrived + delay, "{request:?} waits past the delay");
        }
    }

    fn deadline(&self, request: &Request) -> Option<Nanos> {
        let policy = &self.rules.queue;
        let limit = policy.default_timeout_microseconds;
        let wish = request.ticket.timeout_us;
        let wait = match policy.allow_timeout_override && wish > 0 {
            true => limit.min(wish),
            false => limit,
        };
        (limit > 0).then(|| request.arrived + wait * 1000)
    }

    fn expire(&mut self, ids: &[u64], why: QueueExpiry, now: Nanos) {
        assert!(!ids.is_empty());
        for &id in ids {
            self.set(id, Fate::Waits, Fate::Expired);
            self.disturb(id);
        }
        let requests = || ids.iter().map(|&id| &self.requests[at(id)]);
        match why {
            QueueExpiry::Request => {
                assert_eq!(self.rules.queue.timeout_action, 0);
                for request in requests() {
                    assert!(self.deadline(request).unwrap() <= now, "{request:?} expired early");
                }
            }
            QueueExpiry::Sequence => {
                let mut lives: OrderedMap<String, Vec<Nanos>> = OrderedMap::new();
                for request in requests() {
                    assert_eq!(request.runs, 0, "it had a slot");
                    let ends = lives.entry(format!("{:?}", request.life)).or_default();
                    if request.ticket.timeout_us > 0 {
                        ends.push(request.arrived + request.ticket.timeout_us * 1000);
                    }
                }
                for (life, ends) in lives {
                    assert!(ends.iter().any(|&end| end <= now), "{life} expired early");
                }
            }
        }
    }

    fn dispatch(&mut self, batch: &ScheduledBatch, now: Nanos) {
        let instance = match batch.instance {
            Some(instance) => instance,
            None => self.free.iter().position(|&free| free).expect("a free instance"),
        };
        assert!(self.free[instance], "instance {instance} is busy");
        let ids: Vec<u64> = batch.items.iter().filter_map(|item| item.request).collect();
        assert!(!ids.is_empty());
        let sizes = batch.items.iter().map(|item| match item.request {
            Some(id) => self.requests[at(id)].ticket.batch_size,
            None => 1,
        });
        let size: u64 = sizes.sum();
        assert!(size <= self.rules.max_batch, "a batch of {size}");
        let key = self.requests[at(ids[0])].ticket.key.clone();
        assert!(ids.iter().all(|&id| self.requests[at(id)].ticket.key == key));
        if self.rules.policy == Policy::Default {
            assert_eq!(ids.len(), 1);
        }
        for &id in &ids {
            let request = &self.requests[at(id)];
            let late = self.rules.queue.timeout_action == 0
                && self.deadline(request).is_some_and(|deadline| deadline <= now);
            assert!(!late, "{request:?} runs after its time");
            self.set(id, Fate::Waits, Fate::Runs);
            if self.requests[at(id)].runs == 0 {
                self.release.admit(id);
                self.dispatched.push(id);
            }
            self.started.entry(self.level(id)).or_default().push(id);
        }
        if self.rules.policy.over_sequences() {
            self.check_steps(batch, instance, now);
        } else {
            assert!(batch.items.iter().all(|item| item.step.is_none()));
        }
        self.free[instance] = false;
        let end = now + 1 + self.random.below(40_000);
        self.events.insert((end, Event::Free(instance)));
        for id in ids {
            self.requests[at(id)].runs += 1;
            // Backends may keep requests beyond their execution, or let them go earlier, which the direct strategy
            // does not look at.
            let late = self.random.chance(20) && self.rules.policy != Policy::Direct;
            let lag = if late { self.random.below(20_000) } else { 0 };
            let release = match self.random.chance(20) && !self.rules.policy.is_direct() {
                true => now,
                false => end + lag,
            };
            self.events.insert((release, Event::Release(id)));
        }
    }

    fn level(&self, id: u64) -> u64 {
        match self.requests[at(id)].ticket.priority {
            _ if self.rules.levels == 0 => 0,
            0 => 1,
            priority if priority > self.rules.levels => 1,
            priority => priority,
        }
    }

    fn check_steps(&mut self, batch: &ScheduledBatch, instance: usize, now: Nanos) {
        assert_eq!(batch.instance, Some(instance));
        let mut oldest = Nanos::MAX;
        let mut ready = 0_u16;
        for (row, item) in batch.items.iter().enumerate() {
            let step = item.step.as_ref().expect("a step");
            assert!(step.slot < self.rules.slots);
            assert_eq!(step.ready, item.request.is_some());
            assert!(!self.rules.policy.is_direct() || step.slot == row);
            let Some(id) = item.request else {
                assert!(self.rules.policy.is_direct() && !step.start && !step.end);
                continue;
            };
            ready += 1;
            let request = &self.requests[at(id)];
            oldest = oldest.min(request.arrived);
            self.check_step(id, step, instance);
        }
        if self.rules.policy == Policy::Direct && self.rules.delay > 0 && !self.drained {
            let slots = u16::try_from(self.rules.slots).unwrap();
            let share = f32::from(ready) / f32::from(slots);
            // Those left out because of their shapes count, so this holds only of batches without gaps.
            let gaps = batch.items.iter().any(|item| item.request.is_none());
            let enough = gaps || share >= self.rules.min_utilization;
            assert!(enough || now >= oldest + self.rules.delay, "too few slots, too early");
        }
    }

    fn check_step(&mut self, id: u64, step: &SequenceStep, instance: usize) {
        let request = &self.requests[at(id)];
        let life = request.life.clone();
        if self.rules.policy.is_iterative() {
            assert_eq!((step.start, step.end), (request.runs == 0, false));
        } else {
            let mark = &request.ticket.sequence;
            assert_eq!((step.start, step.end), (mark.start, mark.end));
            assert_eq!(step.correlation, mark.correlation);
        }
        let place = (instance, step.slot);
        let home = *self.homes.entry(life.clone()).or_insert(place);
        assert_eq!(home, place, "a sequence moved");
        let tenants = self.tenants.entry(place).or_default();
        if tenants.last() != Some(&life) {
            assert!(!tenants.contains(&life), "two sequences in one slot");
            tenants.push(life.clone());
        }
        for (other_id, other) in self.requests.iter().enumerate() {
            let same = other.life == life && other_id != at(id);
            let earlier = other_id < at(id) && other.fate == Fate::Waits;
            assert!(!same || !earlier, "request {id} overtook request {other_id}");
            let running = other.fate == Fate::Runs && self.scheduler.follows_releases();
            assert!(!same || !running, "two requests of one sequence at once");
        }
    }

    /// In the order of arrival, as far as the policy promises it.
    fn check_order(&self) {
        let plain = match self.rules.policy {
            Policy::Default => true,
            Policy::Dynamic => self.rules.queue.timeout_action == 0,
            _ => false,
        };
        for (level, started) in &self.started {
            assert!(!plain || started.is_sorted(), "level {level} out of order: {started:?}");
        }
    }
}

fn scripts(policy: Policy) {
    let mut requests = 0;
    for script in 0..SCRIPTS {
        let mut simulation = Simulation::new(policy, script);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run()));
        if let Err(panic) = outcome {
            println!("{policy:?}, script {script}: {:?}", simulation.rules);
            std::panic::resume_unwind(panic);
        }
        requests += simulation.requests.len();
    }
    println!("{policy:?}: {SCRIPTS} scripts, {requests} requests");
}

#[test]
fn the_default_policy_holds_in_every_script() {
    scripts(Policy::Default);
}

#[test]
fn the_dynamic_batcher_holds_in_every_script() {
    scripts(Policy::Dynamic);
}

#[test]
fn direct_sequences_hold_in_every_script() {
    scripts(Policy::Direct);
}

#[test]
fn oldest_sequences_hold_in_every_script() {
    scripts(Policy::Oldest);
}

#[test]
fn iterative_direct_sequences_hold_in_every_script() {
    scripts(Policy::IterativeDirect);
}

#[test]
fn iterative_oldest_sequences_hold_in_every_script() {
    scripts(Policy::IterativeOldest);
}
