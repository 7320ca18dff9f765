//! Additions to the requests of models over sequences: control tensors, which say where in its sequence a
//! request stands, and implicit state, which the model gives back with each answer and receives with the next request.

mod filler;
mod plan;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_tensor::Tensor;

pub(crate) use filler::filler;
pub use plan::SequencePlan;
pub(crate) use plan::{ControlFlag, ControlMeaning};

use crate::request::CorrelationId;
use crate::schedule::SequenceStep;

/// The state tensors of one sequence, in the order of the configuration. One request of a sequence runs at a time.
pub(crate) struct SequenceState(Mutex<Vec<Tensor>>);

impl SequenceState {
    pub(crate) fn initial(plan: &SequencePlan) -> Arc<Self> {
        Arc::new(Self(Mutex::new(plan.states.iter().map(|state| state.initial.clone()).collect())))
    }

    pub(crate) fn tensors(&self) -> MutexGuard<'_, Vec<Tensor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SequenceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceState").finish_non_exhaustive()
    }
}

/// Sequence data that a request carries through its execution.
#[derive(Clone, Debug)]
pub struct SequenceContext {
    /// Where in its sequence the request stands.
    pub step: SequenceStep,
    pub(crate) plan: Arc<SequencePlan>,
    /// `None` for items that only fill a gap.
    pub(crate) state: Option<Arc<SequenceState>>,
}

impl SequenceContext {
    /// The first request of a sequence of its own.
    pub(crate) fn first(plan: &Arc<SequencePlan>, slot: usize) -> Self {
        let number = u64::try_from(slot).unwrap_or(0) + 1;
        let step = SequenceStep {
            slot,
            correlation: CorrelationId::Uint(number),
            start: true,
            end: false,
            ready: true,
        };
        Self { step, plan: Arc::clone(plan), state: Some(SequenceState::initial(plan)) }
    }
}
