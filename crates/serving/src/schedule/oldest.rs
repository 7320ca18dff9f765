//! Sequences by the oldest strategy: each has a slot of an instance and at most one request under way, and a dynamic
//! batcher for each instance joins the requests of different sequences.

use std::collections::HashMap;

use super::slots::{SequenceSlotId, SlotTable};
use super::{
    BatchPlace, DynamicOptions, DynamicScheduler, HoldUntil, InstanceMoves, Nanos, QueueExpiry,
    QueueRefusal, RequestScheduler, ScheduleDecision, ScheduleTicket, ScheduledBatch, SequenceStep,
    earlier,
};
use crate::config::inference::model_sequence_batching::StrategyOldest;
use crate::config::inference::{ModelDynamicBatching, ModelSequenceBatching};

/// See the module.
#[derive(Debug)]
pub struct OldestScheduler {
    table: SlotTable,
    /// One for each instance.
    batchers: Vec<DynamicScheduler>,
    /// Settings of a batcher.
    options: DynamicOptions,
    /// Requests in a batcher or in execution.
    out: HashMap<u64, OutRequests>,
}

#[derive(Debug)]
struct OutRequests {
    at: SequenceSlotId,
    ticket: ScheduleTicket,
    step: SequenceStep,
    dispatched: bool,
}

impl OldestScheduler {
    /// Empty slots; `max_batch_size` is the model's, 0 if it does not batch.
    #[must_use]
    pub fn new(
        config: &ModelSequenceBatching,
        strategy: &StrategyOldest,
        max_batch_size: i32,
        instances: usize,
        hold: HoldUntil,
    ) -> Self {
        let candidates = match strategy.max_candidate_sequences {
            given if given > 0 => given,
            _ => max_batch_size.max(1),
        };
        let batching = ModelDynamicBatching {
            preferred_batch_size: strategy.preferred_batch_size.clone(),
            max_queue_delay_microseconds: strategy.max_queue_delay_microseconds,
            ..ModelDynamicBatching::default()
        };
        let options = DynamicOptions {
            hold_until: hold.requests,
            ..DynamicOptions::from_config(&batching, max_batch_size)
        };
        Self {
            table: SlotTable::new(config, instances, usize::try_from(candidates).unwrap_or(1)),
            batchers: (0..instances).map(|_| DynamicScheduler::new(options.clone())).collect(),
            options,
            out: HashMap::new(),
        }
    }

    /// Hands the next request of a slot to its instance's batcher, unless one is under way.
    fn feed(&mut self, at: SequenceSlotId, now: Nanos) {
        if self.table.slot(at).is_none_or(|slot| slot.out.is_some()) {
            return;
        }
        let Some((ticket, step)) = self.table.take(at) else { return };
        let id = ticket.id;
        if let Some(slot) = self.table.slot_mut(at) {
            slot.out = Some(id);
        }
        // The batcher has neither levels nor policies.
        let key = ticket.key.clone();
        let patience = ticket.patience;
        let plain =
            ScheduleTicket { id, batch_size: 1, key, patience, ..ScheduleTicket::default() };
        self.out.insert(id, OutRequests { at, ticket, step, dispatched: false });
        if let Some(batcher) = self.batchers.get_mut(at.instance) {
            // It has no limit that could refuse.
            let _taken = batcher.enqueue(plain, now);
        }
    }

    /// The slot's request is no longer under way: its sequence goes on, or the next one comes.
    fn go_on(&mut self, at: SequenceSlotId, now: Nanos) {
        self.table.give_back(at);
        if let Some(slot) = self.table.slot_mut(at) {
            slot.last = now;
        }
        self.table.settle(at, now);
        self.feed(at, now);
        self.feed_refilled(now);
    }

    fn feed_refilled(&mut self, now: Nanos) {
        for at in self.table.refilled() {
            self.feed(at, now);
        }
    }

    /// Takes all out of a slot that does not run.
    fn clear(&mut self, at: SequenceSlotId, now: Nanos) -> Vec<u64> {
        let mut cancelled = Vec::new();
        let under_way = self.table.slot(at).and_then(|slot| slot.out);
        let waits = under_way
            .filter(|id| self.out.get(id).is_some_and(|out| !out.dispatched))
            .and_then(|id| self.out.remove(&id));
        if let Some(out) = &waits {
            let id = out.ticket.id;
            if let Some(batcher) = self.batchers.get_mut(at.instance) {
                batcher.cancel(id, now);
            }
            if out.ticket.sequence.start || out.ticket.sequence.end {
                self.table.end(at);
            }
            cancelled.push(id);
        }
        cancelled.extend(self.table.clear(at));
        if waits.is_some() {
            self.table.give_back(at);
        }
        self.table.settle(at, now);
        cancelled
    }

    fn steps(&mut self, instance: usize, batch: ScheduledBatch) -> ScheduledBatch {
        let items = batch.items.into_iter().map(|item| {
            let out = item.request.and_then(|id| self.out.get_mut(&id));
            let step = out.map(|out| {
                out.dispatched = true;
                out.step.clone()
            });
            BatchPlace { step, ..item }
        });
        ScheduledBatch { instance: Some(instance), items: items.collect() }
    }
}

impl RequestScheduler for OldestScheduler {
    fn enqueue(&mut self, ticket: ScheduleTicket, now: Nanos) -> Result<(), QueueRefusal> {
        let place = self.table.enqueue(ticket, now);
        self.feed_refilled(now);
        if let Some(at) = place? {
            self.feed(at, now);
        }
        Ok(())
    }

    fn poll(&mut self, now: Nanos, free: &[bool]) -> ScheduleDecision {
        let expired = self.table.expire(now);
        if !expired.is_empty() {
            return ScheduleDecision::Expire(expired, QueueExpiry::Sequence);
        }
        if self.table.awaits_silence() {
            self.table.reap(now);
            self.feed_refilled(now);
        }
        let mut wake = self.table.wake();
        for instance in 0..self.batchers.len() {
            let is_free = free.get(instance) == Some(&true);
            let Some(batcher) = self.batchers.get_mut(instance) else { continue };
            match batcher.poll(now, &[is_free]) {
                ScheduleDecision::Dispatch(batch) => {
                    return ScheduleDecision::Dispatch(self.steps(instance, batch));
                }
                ScheduleDecision::WaitUntil(due) => wake = earlier(wake, Some(due)),
                ScheduleDecision::Expire(..) | ScheduleDecision::Idle => {}
            }
        }
        wake.map_or(ScheduleDecision::Idle, ScheduleDecision::WaitUntil)
    }

    fn released(&mut self, id: u64, now: Nanos) {
        if let Some(out) = self.out.remove(&id) {
            self.go_on(out.at, now);
        }
    }

    fn reschedule(&mut self, id: u64, now: Nanos) -> bool {
        if !self.table.is_iterative() {
            return false;
        }
        let Some(out) = self.out.remove(&id) else { return false };
        self.table.put_back(out.at, out.ticket, now);
        self.feed(out.at, now);
        true
    }

    fn follows_releases(&self) -> bool {
        true
    }

    fn cancel(&mut self, id: u64, now: Nanos) -> Vec<u64> {
        let under_way = self.out.get(&id).map(|out| (out.at, out.dispatched));
        let cancelled = match under_way {
            // It runs, and its sequence goes on.
            Some((_, true)) => Vec::new(),
            Some((at, false)) => self.clear(at, now),
            None => match self.table.find(id) {
                Some(at) => self.clear(at, now),
                None => self.table.cancel_waiting(id),
            },
        };
        self.feed_refilled(now);
        cancelled
    }

    fn reseat(&mut self, moves: &InstanceMoves, now: Nanos) {
        let mut batchers: Vec<DynamicScheduler> =
            (0..moves.instances).map(|_| DynamicScheduler::new(self.options.clone())).collect();
        for (from, batcher) in std::mem::take(&mut self.batchers).into_iter().enumerate() {
            if let Some(place) = moves.to(from).and_then(|to| batchers.get_mut(to)) {
                *place = batcher;
            }
        }
        self.batchers = batchers;
        self.out.retain(|_, out| out.at.follow(moves));
        self.table.reseat(moves, now);
        self.feed_refilled(now);
    }

    fn holds(&self, instance: usize) -> bool {
        self.table.holds(instance)
    }

    fn drain(&mut self, now: Nanos) {
        self.table.drain();
        self.batchers.iter_mut().for_each(|batcher| batcher.drain(now));
    }

    fn pending(&self) -> usize {
        let batchers: usize = self.batchers.iter().map(RequestScheduler::pending).sum();
        self.table.queued() + self.table.backlogged() + batchers
    }
}

#[cfg(test)]
#[path = "oldest_tests.rs"]
mod tests;
