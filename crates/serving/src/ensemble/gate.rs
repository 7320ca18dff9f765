//! How many executions of each step run at a time, over all requests of an ensemble.

use std::collections::VecDeque;

#[derive(Debug)]
struct Lock<W> {
    running: usize,
    waiting: VecDeque<W>,
}

/// Counts executions by step; `W` is one that waits for its turn.
#[derive(Debug)]
pub struct Gate<W> {
    limit: usize,
    steps: Vec<Lock<W>>,
}

impl<W> Gate<W> {
    /// A gate for `steps` steps, each with up to `limit` executions at a time; 0 is no limit.
    #[must_use]
    pub fn new(steps: usize, limit: usize) -> Self {
        let closed = || Lock { running: 0, waiting: VecDeque::new() };
        Self { limit, steps: std::iter::repeat_with(closed).take(steps).collect() }
    }

    /// Whether executions ever wait.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.limit == 0
    }

    /// Gives the execution back if it may run now, else keeps it.
    pub fn enter(&mut self, step: usize, execution: W) -> Option<W> {
        let Some(lock) = self.steps.get_mut(step).filter(|_| self.limit > 0) else {
            return Some(execution);
        };
        if lock.running >= self.limit {
            lock.waiting.push_back(execution);
            return None;
        }
        lock.running += 1;
        Some(execution)
    }

    /// One execution is over; gives the one that takes its place.
    pub fn leave(&mut self, step: usize) -> Option<W> {
        let lock = self.steps.get_mut(step).filter(|_| self.limit > 0)?;
        let next = lock.waiting.pop_front();
        if next.is_none() {
            lock.running = lock.running.saturating_sub(1);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_over_the_limit_wait_in_order_and_step_by_step() {
        let mut gate = Gate::new(2, 2);
        assert_eq!((gate.enter(0, 'a'), gate.enter(0, 'b')), (Some('a'), Some('b')));
        assert_eq!((gate.enter(0, 'c'), gate.enter(0, 'd')), (None, None));
        assert_eq!(gate.enter(1, 'e'), Some('e'));
        assert_eq!((gate.leave(0), gate.leave(0)), (Some('c'), Some('d')));
        assert_eq!((gate.leave(0), gate.leave(0)), (None, None));
        assert_eq!((gate.enter(0, 'f'), gate.enter(0, 'g')), (Some('f'), Some('g')));
        assert_eq!(gate.enter(0, 'h'), None);
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut gate = Gate::new(1, 0);
        assert!((0..100).all(|number| gate.enter(0, number) == Some(number)));
        assert_eq!(gate.leave(0), None);
    }
}
