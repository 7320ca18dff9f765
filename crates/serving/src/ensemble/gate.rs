//! How many executions of each step run at a time, over all requests of an ensemble.

use std::collections::VecDeque;

#[derive(Debug)]
struct StepLock<W> {
    running: usize,
    waiting: VecDeque<W>,
    /// How many have waited and were let in.
    let_in: u64,
}

/// The place of an execution among those that have ever waited for its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatePlace {
    step: usize,
    number: u64,
}

/// Outcome for an execution that is to run.
#[derive(Debug, PartialEq, Eq)]
pub enum GateEntry<W> {
    /// It may run now.
    Run(W),
    /// It was kept until there is room.
    Wait(GatePlace),
}

/// Counts executions by step; `W` is one that waits for its turn.
#[derive(Debug)]
pub struct StepGate<W> {
    limit: usize,
    steps: Vec<StepLock<W>>,
}

impl<W> StepGate<W> {
    /// A gate for `steps` steps, each with up to `limit` executions at a time; 0 is no limit.
    #[must_use]
    pub fn new(steps: usize, limit: usize) -> Self {
        let closed = || StepLock { running: 0, waiting: VecDeque::new(), let_in: 0 };
        Self { limit, steps: std::iter::repeat_with(closed).take(steps).collect() }
    }

    /// Whether executions ever wait.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limit > 0
    }

    /// Gives the execution back if it may run now, else keeps it.
    pub fn enter(&mut self, step: usize, execution: W) -> GateEntry<W> {
        let Some(lock) = self.steps.get_mut(step).filter(|_| self.limit > 0) else {
            return GateEntry::Run(execution);
        };
        if lock.running >= self.limit {
            let number = lock.let_in + u64::try_from(lock.waiting.len()).unwrap_or(u64::MAX);
            lock.waiting.push_back(execution);
            return GateEntry::Wait(GatePlace { step, number });
        }
        lock.running += 1;
        GateEntry::Run(execution)
    }

    /// How many executions are before this one; `None` if it was let in.
    #[must_use]
    pub fn before(&self, place: GatePlace) -> Option<u64> {
        place.number.checked_sub(self.steps.get(place.step)?.let_in)
    }

    /// One execution is over; gives the one that takes its place.
    pub fn leave(&mut self, step: usize) -> Option<W> {
        let lock = self.steps.get_mut(step).filter(|_| self.limit > 0)?;
        let next = lock.waiting.pop_front();
        match next {
            Some(_) => lock.let_in += 1,
            None => lock.running = lock.running.saturating_sub(1),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_over_the_limit_wait_in_order_and_step_by_step() {
        let mut gate = StepGate::new(2, 2);
        assert_eq!(
            (gate.enter(0, 'a'), gate.enter(0, 'b')),
            (GateEntry::Run('a'), GateEntry::Run('b'))
        );
        let place = |number| GatePlace { step: 0, number };
        assert_eq!(gate.enter(0, 'c'), GateEntry::Wait(place(0)));
        assert_eq!(gate.enter(0, 'd'), GateEntry::Wait(place(1)));
        assert_eq!(gate.enter(1, 'e'), GateEntry::Run('e'));
        assert_eq!((gate.before(place(0)), gate.before(place(1))), (Some(0), Some(1)));
        assert_eq!(gate.leave(0), Some('c'));
        assert_eq!((gate.before(place(0)), gate.before(place(1))), (None, Some(0)));
        assert_eq!(gate.leave(0), Some('d'));
        assert_eq!(gate.before(place(1)), None);
        assert_eq!((gate.leave(0), gate.leave(0)), (None, None));
        assert_eq!(
            (gate.enter(0, 'f'), gate.enter(0, 'g')),
            (GateEntry::Run('f'), GateEntry::Run('g'))
        );
        assert_eq!(gate.enter(0, 'h'), GateEntry::Wait(place(2)));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut gate = StepGate::new(1, 0);
        assert!((0..100).all(|number| gate.enter(0, number) == GateEntry::Run(number)));
        assert_eq!(gate.leave(0), None);
    }
}
