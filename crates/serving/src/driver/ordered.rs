//! Answers in the order of dispatch: those of a request are held back until those of all before it are out.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::request::ResponseSink;
use crate::schedule::OrderedRelease;

type HeldResponses = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct OrderState {
    release: OrderedRelease<HeldResponses>,
    /// Answers whose turn it is.
    due: VecDeque<HeldResponses>,
    /// A thread gives them out, one after the other.
    delivering: bool,
}

/// The answers of one model version on their way out.
#[derive(Default)]
pub(super) struct OrderedAnswers(Mutex<OrderState>);

impl OrderedAnswers {
    fn state(&self) -> MutexGuard<'_, OrderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request's sink behind those of the requests before it.
    pub(super) fn wrap(self: &Arc<Self>, id: u64, sink: ResponseSink) -> ResponseSink {
        self.state().release.admit(id);
        let answers = Arc::clone(self);
        let mut held = Some((sink, Vec::new()));
        Box::new(move |answer| {
            let is_final = answer.is_final;
            if let Some((_, given)) = &mut held {
                given.push(answer);
            }
            if is_final && let Some((mut sink, given)) = held.take() {
                answers.finish(id, Box::new(move || given.into_iter().for_each(&mut sink)));
            }
        })
    }

    fn finish(&self, id: u64, answer: HeldResponses) {
        let mut state = self.state();
        let due = state.release.finish(id, answer);
        state.due.extend(due);
        // One thread at a time, so that none overtakes another on the way out; and without the lock, because a sink
        // may bring the next request to the same model.
        if std::mem::replace(&mut state.delivering, true) {
            return;
        }
        while let Some(answer) = state.due.pop_front() {
            drop(state);
            if catch_unwind(AssertUnwindSafe(answer)).is_err() {
                tracing::error!("a receiver of ordered responses panicked");
            }
            state = self.state();
        }
        state.delivering = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SinkAnswer;

    fn done() -> SinkAnswer {
        SinkAnswer { result: Ok(None), is_final: true }
    }

    #[test]
    fn a_sink_may_answer_another_request_and_even_panic() {
        let answers = Arc::new(OrderedAnswers::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let third: Arc<Mutex<Option<ResponseSink>>> = Arc::default();
        let sink = |id: u64| -> ResponseSink {
            let order = Arc::clone(&order);
            let third = Arc::clone(&third);
            Box::new(move |_| {
                order.lock().unwrap().push(id);
                if id == 0 {
                    third.lock().unwrap().take().unwrap()(done());
                    panic!("asked to");
                }
            })
        };
        let mut first = answers.wrap(0, sink(0));
        let mut second = answers.wrap(1, sink(1));
        *third.lock().unwrap() = Some(answers.wrap(2, sink(2)));
        second(done());
        assert!(order.lock().unwrap().is_empty());
        first(done());
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    }
}
