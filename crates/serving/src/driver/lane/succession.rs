//! A lane that goes on with what another one has: its policy with all that waits, and those of its instances that stay.
//!
//! The lane before ends what its instances execute. An instance that does belongs to the new lane from then on. One that
//! has no place in the new configuration leaves when no sequence needs it any more.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::{LaneEffects, LanePhase, LaneState, ModelLane};
use crate::payload::ExecutionContext;
use crate::schedule::{DefaultScheduler, InstanceMoves};

/// The lane that goes on with what another one has.
pub(super) struct LaneHeir {
    pub(super) lane: Arc<ModelLane>,
    /// Places of the instances there.
    moves: InstanceMoves,
}

/// State of an instance beside its work.
#[derive(Clone, Copy, Debug, Default)]
struct SeatState {
    /// Its thread has asked for work.
    arrived: bool,
    /// The lane before has not ended its execution.
    lent: bool,
    /// It takes no more work.
    left: bool,
    /// Nothing of it is left.
    gone: bool,
}

/// The instances of a lane, as far as they come from another lane or leave this one.
pub(super) struct InstanceSeating {
    seats: Vec<SeatState>,
    /// Instances that stay; those behind them leave.
    seated: usize,
    /// Versions whose requests may still be open on instances that leave.
    before: Vec<Arc<ExecutionContext>>,
}

impl InstanceSeating {
    pub(super) fn new(instances: usize) -> Self {
        let seats = vec![SeatState::default(); instances];
        Self { seats, seated: instances, before: Vec::new() }
    }

    /// Whether an instance takes no more work.
    pub(super) fn has_left(&self, instance: usize) -> bool {
        self.seats.get(instance).is_some_and(|seat| seat.left)
    }
}

impl LaneState {
    /// Lets instances leave that have no place and no sequence any more.
    pub(super) fn dismiss(&mut self, calls: &mut Vec<usize>) {
        let leaving = self.seating.seats.iter_mut().zip(&mut self.free).enumerate();
        for (instance, (seat, free)) in leaving.skip(self.seating.seated) {
            if *free && !self.scheduler.holds(instance) {
                *free = false;
                seat.left = true;
                calls.push(instance);
            }
        }
    }

    /// Whether no instance executes anything.
    pub(super) fn is_at_rest(&self) -> bool {
        self.free.iter().zip(&self.seating.seats).all(|(&free, seat)| free || seat.left)
    }
}

impl ModelLane {
    /// Notes that an instance has ended what it had, also for the lane that goes on with it.
    pub(super) fn idle(&self, instance: usize) -> MutexGuard<'_, LaneState> {
        let mut state = self.state();
        let mut lent = false;
        if let Some(seat) = state.seating.seats.get_mut(instance) {
            seat.arrived = true;
            lent = seat.lent;
        }
        if let Some(free) = state.free.get_mut(instance) {
            *free = !lent;
        }
        match self.heir.get().filter(|_| !lent) {
            None => state,
            Some(heir) => {
                drop(state);
                heir.receive(instance);
                self.state()
            }
        }
    }

    /// The lane before has ended its last execution on an instance.
    fn returned(&self, instance: usize) {
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        let Some(seat) = state.seating.seats.get_mut(instance).filter(|seat| seat.lent) else {
            return;
        };
        seat.lent = false;
        let arrived = seat.arrived;
        if let Some(free) = state.free.get_mut(instance) {
            *free = arrived;
        }
        self.settle(&mut state, self.timer.now(), &mut effects);
        drop(state);
        self.apply(effects);
        if let Some(heir) = self.heir.get().filter(|_| arrived) {
            heir.receive(instance);
        }
    }

    /// A request that the lane before has dispatched has had its last answer.
    pub(super) fn inherited_released(&self, id: u64) {
        if let Some(heir) = self.heir.get() {
            return heir.lane.inherited_released(id);
        }
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        state.scheduler.released(id, now);
        self.settle(&mut state, now, &mut effects);
        drop(state);
        self.apply(effects);
    }

    /// Takes everything over from a lane of the same policy, which takes no more requests. Nobody has handed a request
    /// to this one before. [`resume`](Self::resume) begins with the work.
    pub(in crate::driver) fn take_over(self: &Arc<Self>, before: &ModelLane, moves: InstanceMoves) {
        let now = self.timer.now();
        let mut old = before.state();
        let mut state = self.state();
        state.seating.seated = moves.seated;
        if old.phase != LanePhase::Open {
            return;
        }
        let heir = LaneHeir { lane: Arc::clone(self), moves: moves.clone() };
        if before.heir.set(heir).is_err() {
            return;
        }
        old.phase = LanePhase::Draining;
        // Its instances are no longer its own to dismiss.
        old.seating.seated = usize::MAX;
        let nothing = Box::<DefaultScheduler>::default();
        state.scheduler = std::mem::replace(&mut old.scheduler, nothing);
        state.scheduler.reseat(&moves, now);
        state.waiting.extend(old.waiting.drain());
        let kept = old.kept.drain();
        let kept = kept.filter_map(|((from, slot), kept)| Some(((moves.to(from)?, slot), kept)));
        state.kept.extend(kept);
        state.seating.before.append(&mut old.seating.before);
        state.seating.before.push(Arc::clone(&before.context));
        state.seating.before.retain(|context| context.unanswered() > 0);
        let busy = old.free.iter().enumerate().filter(|(_, free)| !**free);
        for (from, _) in busy.filter(|(from, _)| !old.seating.has_left(*from)) {
            let Some(to) = moves.to(from) else { continue };
            if let Some(seat) = state.seating.seats.get_mut(to) {
                seat.lent = true;
            }
            if let Some(free) = state.free.get_mut(to) {
                *free = false;
            }
        }
    }

    /// Begins with work that was taken over.
    pub(in crate::driver) fn resume(&self) {
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        self.settle(&mut state, self.timer.now(), &mut effects);
        drop(state);
        self.apply(effects);
    }

    /// Ends an instance that has left, once its requests are answered. Called by its own thread at its end.
    pub(in crate::driver) fn end_seat(&self, instance: usize) {
        let state = self.state();
        if !state.seating.has_left(instance) {
            return;
        }
        let mut contexts = state.seating.before.clone();
        drop(state);
        let Some(seat) = self.instances.get(instance) else { return };
        let policy = self.context.config.model_transaction_policy.as_ref();
        if policy.is_some_and(|policy| policy.decoupled) {
            // Answers of such models come when they have executed.
            if self.sequences.is_some() {
                contexts.push(Arc::clone(&self.context));
            }
            contexts.iter().for_each(|context| context.wait_answered());
        }
        self.hand_over(&[instance]);
        seat.leaving.iter().for_each(|signal| signal.drain());
        seat.end();
        if let Some(seat) = self.state().seating.seats.get_mut(instance) {
            seat.gone = true;
        }
        self.ended.notify_all();
    }

    /// Waits until the instances have gone that no sequence needs, which may execute a last batch.
    pub(in crate::driver) fn wait_dismissed(&self) {
        let policy = self.context.config.model_transaction_policy.as_ref();
        if policy.is_some_and(|policy| policy.decoupled) {
            return;
        }
        let mut state = self.state();
        while state.phase == LanePhase::Open {
            let seating = &state.seating;
            let mut leaving = seating.seats.iter().enumerate().skip(seating.seated);
            if leaving.all(|(at, seat)| seat.gone || state.scheduler.holds(at)) {
                return;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Instances that leave and have not gone, with their places.
    pub(in crate::driver) fn leaving(&self) -> Vec<usize> {
        let state = self.state();
        let seats = state.seating.seats.iter().enumerate().skip(state.seating.seated);
        seats.filter(|(_, seat)| !seat.left).map(|(at, _)| at).collect()
    }
}

impl LaneHeir {
    /// An instance has ended what the lane before had given it.
    fn receive(&self, instance: usize) {
        if let Some(to) = self.moves.to(instance) {
            self.lane.returned(to);
        }
    }
}
