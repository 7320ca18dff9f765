//! Instances whose executions resources limit: each asks for them before its batch is decided on.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{InstanceGate, LaneDecision, LaneEffects, LanePhase, LaneState, ModelLane};
use crate::payload::BatchPayload;

impl ModelLane {
    /// Takes the [`next`](Self::next) batch where resources limit executions: the instance asks for them when there is work, and
    /// the policy decides on its batch once it has them.
    pub(super) fn next_through(
        &self,
        instance: usize,
        gate: &InstanceGate,
    ) -> Option<BatchPayload> {
        let mut state = self.idle(instance);
        gate.leave(state.scheduler.pending() > 0);
        loop {
            let mut effects = LaneEffects::default();
            self.settle(&mut state, self.timer.now(), &mut effects);
            let closed = state.phase == LanePhase::Closed || state.seating.has_left(instance);
            let has_work = state.scheduler.pending() > 0;
            if !closed {
                // Whoever brought the work has called everybody.
                effects.calls.clear();
            }
            if closed || has_work || !effects.is_empty() {
                drop(state);
                self.apply(effects);
                if closed {
                    gate.leave_unused();
                    return None;
                }
                if has_work && gate.pass(|| self.closed.load(Ordering::Acquire)) {
                    match self.decide_for(instance) {
                        LaneDecision::Run(work) => return Some(work),
                        LaneDecision::Wait(locked) => {
                            gate.leave_unused();
                            state = locked;
                        }
                        LaneDecision::Again => {
                            gate.leave_unused();
                            state = self.state();
                            continue;
                        }
                    }
                } else {
                    state = self.state();
                    continue;
                }
            } else {
                // What it may have been given in advance must not rest with it.
                gate.leave_unused();
            }
            // The lane may have closed while this instance passed its gate.
            if state.phase == LanePhase::Closed || state.seating.has_left(instance) {
                return None;
            }
            let call = self.calls.get(instance)?;
            state = call.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the policy decide while this instance is the one that may run.
    fn decide_for(&self, instance: usize) -> LaneDecision<'_> {
        let allow = |state: &mut LaneState, may: bool| {
            let allowed = state.allowed.as_mut().and_then(|allowed| allowed.get_mut(instance));
            if let Some(allowed) = allowed {
                *allowed = may;
            }
        };
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        allow(&mut state, true);
        self.settle(&mut state, self.timer.now(), &mut effects);
        allow(&mut state, false);
        let work = state.work.get_mut(instance).and_then(Option::take);
        if state.phase != LanePhase::Closed {
            effects.calls.clear();
        }
        match work {
            None if effects.is_empty() => LaneDecision::Wait(state),
            work => {
                drop(state);
                self.apply(effects);
                work.map_or(LaneDecision::Again, LaneDecision::Run)
            }
        }
    }
}
