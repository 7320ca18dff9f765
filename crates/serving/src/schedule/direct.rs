//! Sequences by the direct strategy: each has a slot of an instance, which is its row in every batch of it.

use std::collections::HashMap;

use super::slots::{SequenceSlotId, SlotTable};
use super::{
    BatchPlace, HoldUntil, InstanceMoves, Nanos, QueueExpiry, QueueRefusal, RequestScheduler,
    ScheduleDecision, ScheduleTicket, ScheduledBatch, SequenceStep, earlier,
};
use crate::config::inference::ModelSequenceBatching;
use crate::config::inference::model_sequence_batching::StrategyDirect;

/// See the module.
#[derive(Debug)]
pub struct DirectScheduler {
    table: SlotTable,
    slots: usize,
    min_utilization: f32,
    max_delay: Nanos,
    hold: Option<HoldUntil>,
    /// For each instance, the requests in the batch that it runs and their slots.
    running: Vec<Vec<(SequenceSlotId, u64)>>,
    /// Requests taken out and not released, in iterative models.
    out: HashMap<u64, (SequenceSlotId, ScheduleTicket)>,
}

/// Work that an instance could do.
enum InstancePlan {
    Run(ScheduledBatch),
    WaitUntil(Nanos),
    Nothing,
}

impl DirectScheduler {
    /// Empty slots; `max_batch_size` is the model's, 0 if it does not batch.
    #[must_use]
    pub fn new(
        config: &ModelSequenceBatching,
        strategy: &StrategyDirect,
        max_batch_size: i32,
        instances: usize,
        hold: HoldUntil,
    ) -> Self {
        let slots = usize::try_from(max_batch_size).unwrap_or(0).max(1);
        Self {
            table: SlotTable::new(config, instances, slots),
            slots,
            min_utilization: strategy.minimum_slot_utilization,
            max_delay: strategy.max_queue_delay_microseconds.saturating_mul(1000),
            hold: (hold.requests > 0).then_some(hold),
            running: vec![Vec::new(); instances],
            out: HashMap::new(),
        }
    }

    /// An instance that is free has ended its batch, and the sequences in it were alive until now.
    fn note_ends(&mut self, free: &[bool], now: Nanos) {
        for (running, _) in self.running.iter_mut().zip(free).filter(|(_, free)| **free) {
            for (id, request) in running.drain(..) {
                let Some(slot) = self.table.slot_mut(id) else { continue };
                slot.last = now;
                if slot.out == Some(request) && !self.table.is_iterative() {
                    self.table.give_back(id);
                    self.table.settle(id, now);
                }
            }
        }
    }

    fn held(&mut self) -> bool {
        let Some(hold) = self.hold else { return false };
        let enough =
            self.table.queued() >= hold.requests && self.table.backlogged() >= hold.backlog;
        if enough {
            self.hold = None;
        }
        !enough
    }

    fn plan(&mut self, instance: usize, now: Nanos) -> InstancePlan {
        let slots = self.table.instance(instance);
        let heads = || slots.iter().filter_map(|slot| slot.head());
        let Some(last) = slots.iter().rposition(|slot| slot.head().is_some()) else {
            return InstancePlan::Nothing;
        };
        // The oldest decides about the shapes, so that nobody waits for ever behind others of equal shapes.
        let Some(oldest) = heads().min_by_key(|queued| queued.enqueued) else {
            return InstancePlan::Nothing;
        };
        let due = oldest.enqueued.saturating_add(self.max_delay);
        if self.max_delay > 0 && self.min_utilization > 0.0 && now < due {
            let ready = heads().count();
            if utilization(ready, self.slots) < self.min_utilization {
                return InstancePlan::WaitUntil(due);
            }
        }
        let key = oldest.ticket.key.clone();
        let items = (0..=last).map(|slot| self.item(SequenceSlotId { slot, instance }, &key, now));
        InstancePlan::Run(ScheduledBatch { instance: Some(instance), items: items.collect() })
    }

    fn item(&mut self, id: SequenceSlotId, key: &super::BatchKey, now: Nanos) -> BatchPlace {
        let head = self.table.slot(id).and_then(super::slots::SequenceSlot::head);
        let fits = head.is_some_and(|queued| queued.ticket.key == *key);
        let taken = fits.then(|| self.table.take(id)).flatten();
        let Some((ticket, step)) = taken else {
            let step = SequenceStep { slot: id.slot, ..SequenceStep::default() };
            return BatchPlace { request: None, step: Some(step) };
        };
        let request = ticket.id;
        if let Some(running) = self.running.get_mut(id.instance) {
            running.push((id, request));
        }
        if !self.table.is_iterative() {
            // The instance runs one batch at a time, so the slot's next sequence cannot overtake this one.
            if self.table.settle(id, now) {
                return BatchPlace { request: Some(request), step: Some(step) };
            }
        } else {
            self.out.insert(request, (id, ticket));
        }
        if let Some(slot) = self.table.slot_mut(id) {
            slot.out = Some(request);
        }
        BatchPlace { request: Some(request), step: Some(step) }
    }
}

/// Share of the slots that have a request.
#[allow(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "counts of slots, compared with a fraction that the configuration gives as FP32"
)]
fn utilization(ready: usize, slots: usize) -> f32 {
    ready as f32 / slots as f32
}

impl RequestScheduler for DirectScheduler {
    fn enqueue(&mut self, ticket: ScheduleTicket, now: Nanos) -> Result<(), QueueRefusal> {
        self.table.enqueue(ticket, now).map(|_| ())
    }

    fn poll(&mut self, now: Nanos, free: &[bool]) -> ScheduleDecision {
        self.note_ends(free, now);
        // Every slot is looked at below, also those with new tenants.
        let _looked_at = self.table.refilled();
        let expired = self.table.expire(now);
        if !expired.is_empty() {
            return ScheduleDecision::Expire(expired, QueueExpiry::Sequence);
        }
        if self.table.awaits_silence() {
            self.table.reap(now);
        }
        let mut wake = self.table.wake();
        if !self.held() {
            for (instance, _) in free.iter().enumerate().filter(|(_, free)| **free) {
                match self.plan(instance, now) {
                    InstancePlan::Run(batch) => return ScheduleDecision::Dispatch(batch),
                    InstancePlan::WaitUntil(due) => wake = earlier(wake, Some(due)),
                    InstancePlan::Nothing => {}
                }
            }
        }
        wake.map_or(ScheduleDecision::Idle, ScheduleDecision::WaitUntil)
    }

    fn released(&mut self, id: u64, now: Nanos) {
        if let Some((at, _)) = self.out.remove(&id) {
            self.table.give_back(at);
            self.table.settle(at, now);
        }
    }

    fn reschedule(&mut self, id: u64, now: Nanos) -> bool {
        let Some((at, ticket)) = self.out.remove(&id) else { return false };
        self.table.put_back(at, ticket, now);
        true
    }

    fn follows_releases(&self) -> bool {
        self.table.is_iterative()
    }

    fn cancel(&mut self, id: u64, now: Nanos) -> Vec<u64> {
        let Some(at) = self.table.find(id) else { return self.table.cancel_waiting(id) };
        let cancelled = self.table.clear(at);
        self.table.settle(at, now);
        cancelled
    }

    fn reseat(&mut self, moves: &InstanceMoves, now: Nanos) {
        let mut running = vec![Vec::new(); moves.instances];
        for (from, mut batch) in std::mem::take(&mut self.running).into_iter().enumerate() {
            batch.retain_mut(|(id, _)| id.follow(moves));
            if let Some(place) = moves.to(from).and_then(|to| running.get_mut(to)) {
                *place = batch;
            }
        }
        self.running = running;
        self.out.retain(|_, (id, _)| id.follow(moves));
        self.table.reseat(moves, now);
    }

    fn holds(&self, instance: usize) -> bool {
        self.table.holds(instance)
    }

    fn drain(&mut self, _now: Nanos) {
        self.max_delay = 0;
        self.hold = None;
        self.table.drain();
    }

    fn pending(&self) -> usize {
        self.table.queued() + self.table.backlogged()
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
