//! From a request's place to the unit that works on it: over the network, and until its model is there.

use std::cmp::Reverse;

use super::device::GeneratingText;
use super::event::{SimulatedEvent, SimulatedEventKind};
use super::fleet::RequestKind;
use super::placement::PlacedRequest;
use super::residence::ParkedRequest;
use super::run::SimulationRun;
use super::units::{UNITS, nanos, unit_of};
use crate::cost::ComputeUnit;

impl SimulationRun<'_> {
    /// Puts something among the events.
    pub(super) fn push(&mut self, time: u64, machine: usize, what: SimulatedEventKind) {
        self.number += 1;
        self.events.push(Reverse(SimulatedEvent { at: time, number: self.number, machine, what }));
    }

    /// Sends a request to its machine, whose unit expects it from now on.
    pub(super) fn send(&mut self, number: u32, placed: PlacedRequest) {
        let at = placed.machine;
        let unit = placed.unit;
        let now = self.now;
        let request = self.requests[number as usize];
        let model = request.model as usize;
        let [bytes, _] = self.times.wire(model, request.kind);
        let ready = self.machines[at].wait(model, unit, &self.times, now);
        let machine = &mut self.machines[at];
        let there = machine.carry(0, bytes, &self.times, now);
        let takes = nanos(placed.seconds / machine.speed());
        let own = &mut machine.units[unit];
        let begin = own.free_at.max(there).max(now.saturating_add(ready));
        own.free_at = begin.saturating_add(takes);
        own.coming += 1;
        own.coming_texts += usize::from(matches!(request.kind, RequestKind::Generate { .. }));
        if there > now {
            self.push(there, at, SimulatedEventKind::Delivered { unit, request: number });
        } else {
            self.receive(at, unit, number);
        }
        self.placement.update(at, &self.machines[at], unit);
    }

    /// A request is at its machine: it goes to its unit, or waits for its model.
    pub(super) fn receive(&mut self, at: usize, unit: usize, request: u32) {
        let model = self.requests[request as usize].model;
        let bytes = self.times.weights(model as usize);
        let Some(residence) = &mut self.machines[at].residence else {
            return self.enqueue(at, unit, request);
        };
        let new = residence.open(model, bytes, self.now);
        if residence.is_ready(model, is_engine(unit), self.now) {
            return self.enqueue(at, unit, request);
        }
        residence.park(ParkedRequest { model, unit, request });
        if new {
            self.bring(at);
        }
    }

    /// Puts a request among what its unit has to do.
    fn enqueue(&mut self, at: usize, unit: usize, number: u32) {
        let request = self.requests[number as usize];
        let own = &mut self.machines[at].units[unit];
        own.count(self.now);
        own.coming = own.coming.saturating_sub(1);
        match request.kind {
            RequestKind::Infer { .. } => own.batches.push_back(number),
            RequestKind::Generate { prompt, output } => {
                own.coming_texts = own.coming_texts.saturating_sub(1);
                let tokens = prompt.saturating_add(output);
                own.prompts.push_back(GeneratingText {
                    request: number,
                    model: request.model,
                    context: 0,
                    prompt,
                    left: output,
                    bytes: self.times.text_bytes(request.model as usize, tokens),
                });
            }
        }
        if own.cut(self.now) {
            self.announce(at, unit);
        }
        self.start(at, unit);
    }

    /// Requests whose model is there now go to their units.
    pub(super) fn release(&mut self, at: usize, model: u32) {
        let Some(residence) = &mut self.machines[at].residence else { return };
        for parked in residence.release(model, is_engine, self.now) {
            self.enqueue(at, parked.unit, parked.request);
        }
    }

    /// Brings the models that wait, as far as memory has room.
    fn bring(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        let kind = machine.kind;
        let room = machine.room();
        let Some(residence) = &mut machine.residence else { return };
        let (begun, gone) = residence.bring(kind, &self.times, room, self.now);
        for model in gone {
            self.placement.note(at, &self.machines[at], model, false);
        }
        for one in begun {
            self.placement.note(at, &self.machines[at], one.model, true);
            self.push(one.ready_at, at, SimulatedEventKind::Ready { model: one.model });
            if let Some(time) = one.compiled_at {
                self.push(time, at, SimulatedEventKind::Ready { model: one.model });
            }
        }
    }

    /// Lets models go that nobody asks for, for the first text that waits at a unit. Whether that was enough.
    pub(super) fn make_room(&mut self, at: usize, unit: usize) -> bool {
        let machine = &mut self.machines[at];
        let Some(text) = machine.units[unit].prompts.front() else { return true };
        let room = machine.room() - text.bytes;
        let Some(residence) = &mut machine.residence else { return false };
        for model in residence.evict(room) {
            self.placement.note(at, &self.machines[at], model, false);
        }
        self.machines[at].has_room(unit, &self.times)
    }

    /// Takes note of an answer: who waits for memory may have it now.
    pub(super) fn close(&mut self, at: usize, model: u32) {
        let Some(residence) = &mut self.machines[at].residence else { return };
        if residence.close(model, self.now) {
            self.bring(at);
        }
        if self.machines[at].units.iter().filter(|unit| !unit.prompts.is_empty()).count() > 0 {
            // A text at another unit may have room now.
            (0..UNITS).for_each(|unit| self.start(at, unit));
        }
    }
}

fn is_engine(unit: usize) -> bool {
    unit_of(unit) == ComputeUnit::NeuralEngine
}
