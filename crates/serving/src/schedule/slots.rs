//! Which sequence has which slot, and which wait for one.

use std::collections::{HashMap, VecDeque};

use galatea_tensor::{OrderedMap, OrderedSet};

use super::{InstanceMoves, Nanos, QueueRefusal, ScheduleTicket, SequenceMark, SequenceStep};
use crate::config::inference::ModelSequenceBatching;
use crate::request::CorrelationId;

/// How long a sequence may be silent where the configuration does not say.
/// Source: Triton's default of `max_sequence_idle_microseconds`.
const DEFAULT_IDLE_US: u64 = 1_000_000;

/// A slot of an instance. The order is that in which free slots are given out: the lowest number first, so that
/// sequences spread over the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SequenceSlotId {
    pub(super) slot: usize,
    pub(super) instance: usize,
}

impl SequenceSlotId {
    /// Moves with its instance; `false` where that has gone.
    pub(super) fn follow(&mut self, moves: &InstanceMoves) -> bool {
        let to = moves.to(self.instance);
        self.instance = to.unwrap_or(self.instance);
        to.is_some()
    }
}

/// A request that has a slot or waits for one.
#[derive(Debug)]
pub(super) struct SlotRequest {
    pub(super) ticket: ScheduleTicket,
    pub(super) enqueued: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct SequenceSlot {
    tenant: Option<CorrelationId>,
    /// No more requests of the tenant will come.
    ended: bool,
    pub(super) queue: VecDeque<SlotRequest>,
    /// The request of the tenant that was taken out and is not released, where the policy follows releases.
    pub(super) out: Option<u64>,
    /// The last time at which the sequence was seen alive.
    pub(super) last: Nanos,
}

impl SequenceSlot {
    /// The next request and its step. It stays to be taken by [`SlotTable::take`].
    pub(super) fn head(&self) -> Option<&SlotRequest> {
        self.queue.front()
    }
}

/// A sequence that waits for a slot.
#[derive(Debug)]
struct WaitingSequence {
    correlation: CorrelationId,
    queue: VecDeque<SlotRequest>,
    ended: bool,
    expires: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotPlace {
    Slot(SequenceSlotId),
    Backlog(u64),
}

/// See the module.
#[derive(Debug)]
pub(super) struct SlotTable {
    /// Slots that were ever given out, by instance: a configuration may allow more than there will ever be.
    slots: Vec<Vec<SequenceSlot>>,
    free: OrderedSet<SequenceSlotId>,
    /// The first slot of each instance that was never given out.
    fresh: OrderedSet<SequenceSlotId>,
    /// Instances that take new sequences. Those behind them only end the ones that they have.
    seated: usize,
    /// Slots of each instance.
    limit: usize,
    /// Where further requests of a sequence go. A sequence that has ended is not here, although it may run.
    places: HashMap<CorrelationId, SlotPlace>,
    /// By order of arrival.
    backlog: OrderedMap<u64, WaitingSequence>,
    /// When those of the backlog expire that may not wait for ever.
    expiries: OrderedSet<(Nanos, u64)>,
    arrivals: u64,
    idle_after: Nanos,
    /// Every request is a sequence, which ends when it is released.
    iterative: bool,
    queued: usize,
    backlogged: usize,
    /// Slots whose tenants came out of the backlog and were not asked for yet.
    refilled: Vec<SequenceSlotId>,
}

impl SlotTable {
    pub(super) fn new(config: &ModelSequenceBatching, instances: usize, slots: usize) -> Self {
        let idle_us = match config.max_sequence_idle_microseconds {
            0 => DEFAULT_IDLE_US,
            given => given,
        };
        Self {
            slots: (0..instances).map(|_| Vec::new()).collect(),
            free: OrderedSet::new(),
            fresh: (0..instances).map(|instance| SequenceSlotId { slot: 0, instance }).collect(),
            seated: instances,
            limit: slots,
            places: HashMap::new(),
            backlog: OrderedMap::new(),
            expiries: OrderedSet::new(),
            arrivals: 0,
            idle_after: idle_us.saturating_mul(1000),
            iterative: config.iterative_sequence,
            queued: 0,
            backlogged: 0,
            refilled: Vec::new(),
        }
    }

    /// Slots that have taken sequences out of the backlog since the last call.
    pub(super) fn refilled(&mut self) -> Vec<SequenceSlotId> {
        std::mem::take(&mut self.refilled)
    }

    pub(super) fn is_iterative(&self) -> bool {
        self.iterative
    }

    /// Requests in slots that were not taken.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Requests of sequences without a slot.
    pub(super) fn backlogged(&self) -> usize {
        self.backlogged
    }

    pub(super) fn instance(&self, instance: usize) -> &[SequenceSlot] {
        self.slots.get(instance).map_or(&[], Vec::as_slice)
    }

    pub(super) fn slot_mut(&mut self, id: SequenceSlotId) -> Option<&mut SequenceSlot> {
        self.slots.get_mut(id.instance)?.get_mut(id.slot)
    }

    pub(super) fn slot(&self, id: SequenceSlotId) -> Option<&SequenceSlot> {
        self.slots.get(id.instance)?.get(id.slot)
    }

    /// Puts a request where its sequence is; gives the slot, if it has one.
    pub(super) fn enqueue(
        &mut self,
        mut ticket: ScheduleTicket,
        now: Nanos,
    ) -> Result<Option<SequenceSlotId>, QueueRefusal> {
        if ticket.batch_size > 1 {
            return Err(QueueRefusal::Batched);
        }
        if self.iterative {
            self.arrivals += 1;
            // The end is not known until the request is released; nobody else sends for this sequence.
            let correlation = CorrelationId::Uint(self.arrivals);
            ticket.sequence = SequenceMark { correlation, start: true, end: false };
        }
        if !ticket.sequence.correlation.names_sequence() {
            return Err(QueueRefusal::NoSequence);
        }
        let ended = ticket.sequence.end || self.iterative;
        let place = self.place(&ticket.sequence, now)?;
        let correlation = ticket.sequence.correlation.clone();
        if ended {
            self.places.remove(&correlation);
        } else {
            self.places.insert(correlation, place);
        }
        let queued = SlotRequest { ticket, enqueued: now };
        Ok(match place {
            SlotPlace::Slot(id) => {
                self.queued += 1;
                if let Some(slot) = self.slot_mut(id) {
                    slot.queue.push_back(queued);
                    slot.ended |= ended;
                    slot.last = now;
                }
                Some(id)
            }
            SlotPlace::Backlog(number) => {
                self.backlogged += 1;
                if let Some(waiting) = self.backlog.get_mut(&number) {
                    let before = waiting.expires;
                    waiting.push(queued, ended);
                    if waiting.expires != before {
                        self.expiries.extend(waiting.expires.map(|expires| (expires, number)));
                        self.forget_expiry(before, number);
                    }
                }
                None
            }
        })
    }

    /// Where a request goes: to its sequence, or, if it starts one, to a free slot or behind those that wait.
    fn place(&mut self, mark: &SequenceMark, now: Nanos) -> Result<SlotPlace, QueueRefusal> {
        let known = self.places.get(&mark.correlation).copied();
        if let Some(place) = known {
            let idle = match place {
                SlotPlace::Slot(id) => self.is_idle(id, now).then_some(id),
                SlotPlace::Backlog(_) => None,
            };
            let Some(id) = idle else {
                if mark.start {
                    tracing::warn!(sequence = %mark.correlation, "a sequence starts again before its end");
                }
                return Ok(place);
            };
            self.end(id);
            self.vacate(id, now);
        }
        if !mark.start && !self.iterative {
            return Err(QueueRefusal::NotStarted);
        }
        if self.free.is_empty() && self.fresh.is_empty() {
            self.reap(now);
        }
        if self.backlog.is_empty()
            && let Some(id) = self.open()
        {
            if let Some(slot) = self.slot_mut(id) {
                slot.tenant = Some(mark.correlation.clone());
            }
            return Ok(SlotPlace::Slot(id));
        }
        self.arrivals += 1;
        let waiting = WaitingSequence {
            correlation: mark.correlation.clone(),
            queue: VecDeque::new(),
            ended: false,
            expires: None,
        };
        self.backlog.insert(self.arrivals, waiting);
        Ok(SlotPlace::Backlog(self.arrivals))
    }

    /// The free slot that comes first.
    fn open(&mut self) -> Option<SequenceSlotId> {
        let fresh = self.fresh.first();
        if self.free.first().is_some_and(|used| fresh.is_none_or(|fresh| used < fresh)) {
            return self.free.pop_first();
        }
        let id = self.fresh.pop_first()?;
        self.slots.get_mut(id.instance)?.push(SequenceSlot::default());
        if id.slot + 1 < self.limit {
            self.fresh.insert(SequenceSlotId { slot: id.slot + 1, ..id });
        }
        Some(id)
    }

    /// Takes the next request of a slot, with its step.
    pub(super) fn take(&mut self, id: SequenceSlotId) -> Option<(ScheduleTicket, SequenceStep)> {
        let slot = self.slots.get_mut(id.instance)?.get_mut(id.slot)?;
        let queued = slot.queue.pop_front()?;
        self.queued -= 1;
        let mark = &queued.ticket.sequence;
        let step = SequenceStep {
            slot: id.slot,
            correlation: mark.correlation.clone(),
            start: mark.start,
            end: mark.end,
            ready: true,
        };
        Some((queued.ticket, step))
    }

    /// Puts a request back that has to run once more.
    pub(super) fn put_back(&mut self, id: SequenceSlotId, mut ticket: ScheduleTicket, now: Nanos) {
        ticket.sequence.start = false;
        if let Some(slot) = self.slot_mut(id) {
            slot.out = None;
            slot.queue.push_front(SlotRequest { ticket, enqueued: now });
            self.queued += 1;
        }
    }

    /// The request that was taken out of a slot is no longer under way.
    pub(super) fn give_back(&mut self, id: SequenceSlotId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.out = None;
        }
    }

    /// Gives the slot to the next sequence if its tenant has ended and nothing of it is left; `true` if so.
    pub(super) fn settle(&mut self, id: SequenceSlotId, now: Nanos) -> bool {
        let over = self
            .slot(id)
            .is_some_and(|slot| slot.ended && slot.queue.is_empty() && slot.out.is_none());
        if over {
            self.vacate(id, now);
        }
        over
    }

    fn vacate(&mut self, id: SequenceSlotId, now: Nanos) {
        let stays = id.instance < self.seated;
        let next = if stays { self.backlog.pop_first() } else { None };
        let fresh = match next {
            None => {
                if stays {
                    self.free.insert(id);
                }
                SequenceSlot::default()
            }
            Some((number, waiting)) => {
                self.forget_expiry(waiting.expires, number);
                self.refilled.push(id);
                self.backlogged -= waiting.queue.len();
                self.queued += waiting.queue.len();
                // The id may belong to a later sequence by now.
                if self.places.get(&waiting.correlation) == Some(&SlotPlace::Backlog(number)) {
                    self.places.insert(waiting.correlation.clone(), SlotPlace::Slot(id));
                }
                SequenceSlot {
                    tenant: Some(waiting.correlation),
                    ended: waiting.ended,
                    queue: waiting.queue,
                    out: None,
                    last: now,
                }
            }
        };
        if let Some(slot) = self.slot_mut(id) {
            *slot = fresh;
        }
    }

    /// The sequence in a slot takes no more requests.
    pub(super) fn end(&mut self, id: SequenceSlotId) {
        let Some(slot) = self.slot_mut(id) else { return };
        slot.ended = true;
        let tenant = slot.tenant.clone();
        if let Some(tenant) = tenant
            && self.places.get(&tenant) == Some(&SlotPlace::Slot(id))
        {
            self.places.remove(&tenant);
        }
    }

    fn silent_since(&self, id: SequenceSlotId) -> Option<Nanos> {
        let slot = self.slot(id)?;
        let silent = slot.tenant.is_some() && slot.queue.is_empty() && slot.out.is_none();
        silent.then_some(slot.last)
    }

    fn is_idle(&self, id: SequenceSlotId, now: Nanos) -> bool {
        self.silent_since(id).is_some_and(|last| last.saturating_add(self.idle_after) <= now)
    }

    fn ids(&self) -> impl Iterator<Item = SequenceSlotId> + use<> {
        let counts: Vec<usize> = self.slots.iter().map(Vec::len).collect();
        counts.into_iter().enumerate().flat_map(|(instance, count)| {
            (0..count).map(move |slot| SequenceSlotId { slot, instance })
        })
    }

    /// Frees the slots of sequences that were silent for too long.
    pub(super) fn reap(&mut self, now: Nanos) {
        for id in self.ids() {
            if self.is_idle(id, now) {
                self.end(id);
                self.vacate(id, now);
            }
        }
    }

    /// Takes the requests of sequences out that waited for a slot for too long.
    pub(super) fn expire(&mut self, now: Nanos) -> Vec<u64> {
        let mut expired = Vec::new();
        while let Some(&(expires, number)) = self.expiries.first() {
            if expires > now {
                break;
            }
            self.expiries.pop_first();
            expired.extend(self.drop_waiting(number));
        }
        expired
    }

    fn forget_expiry(&mut self, expires: Option<Nanos>, number: u64) {
        if let Some(expires) = expires {
            self.expiries.remove(&(expires, number));
        }
    }

    fn drop_waiting(&mut self, number: u64) -> Vec<u64> {
        let Some(waiting) = self.backlog.remove(&number) else { return Vec::new() };
        self.forget_expiry(waiting.expires, number);
        if self.places.get(&waiting.correlation) == Some(&SlotPlace::Backlog(number)) {
            self.places.remove(&waiting.correlation);
        }
        self.backlogged -= waiting.queue.len();
        waiting.queue.into_iter().map(|queued| queued.ticket.id).collect()
    }

    /// The slot in whose queue a request is.
    pub(super) fn find(&self, id: u64) -> Option<SequenceSlotId> {
        self.ids().find(|&at| self.slot(at).is_some_and(|slot| holds(&slot.queue, id)))
    }

    /// Takes a sequence out of the backlog that has this request; gives all its requests.
    pub(super) fn cancel_waiting(&mut self, id: u64) -> Vec<u64> {
        let number =
            self.backlog.iter().find(|(_, waiting)| holds(&waiting.queue, id)).map(|(&at, _)| at);
        number.map_or_else(Vec::new, |number| self.drop_waiting(number))
    }

    /// Takes all queued requests of a slot out. A sequence that has lost its start or its end cannot go on.
    pub(super) fn clear(&mut self, id: SequenceSlotId) -> Vec<u64> {
        let Some(slot) = self.slot_mut(id) else { return Vec::new() };
        let queue = std::mem::take(&mut slot.queue);
        self.queued -= queue.len();
        if queue.iter().any(|queued| queued.ticket.sequence.start || queued.ticket.sequence.end) {
            self.end(id);
        }
        queue.into_iter().map(|queued| queued.ticket.id).collect()
    }

    /// When the table has to be looked at again although nothing happens.
    pub(super) fn wake(&self) -> Option<Nanos> {
        if !self.awaits_silence() {
            return None;
        }
        let expires = self.expiries.first().map(|(expires, _)| *expires);
        let all = !self.backlog.is_empty();
        let idle = self
            .ids()
            .filter(|id| all || id.instance >= self.seated)
            .filter_map(|id| self.silent_since(id))
            .map(|last| last.saturating_add(self.idle_after));
        expires.into_iter().chain(idle).min()
    }

    /// Whether something waits for the end of silent sequences: those without a slot, or an instance that leaves.
    pub(super) fn awaits_silence(&self) -> bool {
        !self.backlog.is_empty() || self.slots.len() > self.seated
    }

    /// Whether a sequence has a slot of an instance.
    pub(super) fn holds(&self, instance: usize) -> bool {
        self.instance(instance).iter().any(|slot| slot.tenant.is_some())
    }

    /// Goes on over other instances. Slots move with theirs, and sequences that wait get the slots of new ones.
    pub(super) fn reseat(&mut self, moves: &InstanceMoves, now: Nanos) {
        let mut slots: Vec<Vec<SequenceSlot>> = (0..moves.instances).map(|_| Vec::new()).collect();
        for (from, of_instance) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            if let Some(place) = moves.to(from).and_then(|to| slots.get_mut(to)) {
                *place = of_instance;
            }
        }
        self.slots = slots;
        self.seated = moves.seated;
        self.places.retain(|_, place| match place {
            SlotPlace::Slot(id) => id.follow(moves),
            SlotPlace::Backlog(_) => true,
        });
        self.refilled.retain_mut(|id| id.follow(moves));
        let vacant = |id: &SequenceSlotId| self.slot(*id).is_some_and(|slot| slot.tenant.is_none());
        self.free = self.ids().filter(|id| id.instance < moves.seated && vacant(id)).collect();
        let lengths = self.slots.iter().map(Vec::len).take(moves.seated).enumerate();
        let unopened = lengths.filter(|(_, slot)| *slot < self.limit);
        self.fresh = unopened.map(|(instance, slot)| SequenceSlotId { slot, instance }).collect();
        while !self.backlog.is_empty()
            && let Some(id) = self.open()
        {
            self.vacate(id, now);
        }
    }

    /// No more requests come: silent sequences are over, and all that wait will get their slots.
    pub(super) fn drain(&mut self) {
        self.idle_after = 0;
    }
}

fn holds(queue: &VecDeque<SlotRequest>, id: u64) -> bool {
    queue.iter().any(|queued| queued.ticket.id == id)
}

impl WaitingSequence {
    fn push(&mut self, queued: SlotRequest, ended: bool) {
        let timeout = queued.ticket.timeout_us.saturating_mul(1000);
        if timeout > 0 {
            let expires = queued.enqueued.saturating_add(timeout);
            self.expires = Some(self.expires.map_or(expires, |known| known.min(expires)));
        }
        self.ended |= ended;
        self.queue.push_back(queued);
    }
}
