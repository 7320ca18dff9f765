//! Queue of work that was submitted and is not known to be done, in the order in which a device executes it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Work that was handed over: its place in the line, and what the device knows it by.
#[derive(Clone, Debug)]
pub(crate) struct QueuedSubmission<I = wgpu::SubmissionIndex> {
    /// Place of the first piece, where the work was handed over in several.
    pub(super) from: u64,
    pub(super) place: u64,
    pub(super) index: I,
}

impl<I> QueuedSubmission<I> {
    /// The same work with the pieces that were handed over since an earlier one.
    pub(super) fn since(self, first: &Self) -> Self {
        Self { from: first.from, ..self }
    }

    /// Returns whether the piece in this place belongs to the work.
    pub(super) fn has(&self, place: u64) -> bool {
        (self.from..=self.place).contains(&place)
    }
}

/// The line in front of a device.
#[derive(Debug)]
pub(super) struct SubmissionLine<I = wgpu::SubmissionIndex> {
    /// The next place.
    next: Mutex<u64>,
    open: Mutex<OpenSubmissions<I>>,
}

#[derive(Debug)]
struct OpenSubmissions<I> {
    all: VecDeque<QueuedSubmission<I>>,
    /// Since when the device can have worked on the first of them.
    since: Instant,
}

impl<I> Default for SubmissionLine<I> {
    fn default() -> Self {
        let all = VecDeque::new();
        let since = Instant::now();
        Self { next: Mutex::new(0), open: Mutex::new(OpenSubmissions { all, since }) }
    }
}

impl<I: Clone> SubmissionLine<I> {
    fn open(&self) -> MutexGuard<'_, OpenSubmissions<I>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work over, which is behind all other work then.
    pub(super) fn enter(&self, hand_over: impl FnOnce() -> I) -> QueuedSubmission<I> {
        // One at a time, so that places have the order of the queue. Who leaves does not wait for that.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = QueuedSubmission { from: *next, place: *next, index: hand_over() };
        *next += 1;
        let mut open = self.open();
        if open.all.is_empty() {
            open.since = Instant::now();
        }
        open.all.push_back(entered.clone());
        entered
    }

    /// This is done, and with it whatever was before it.
    pub(super) fn leave(&self, place: u64) {
        let mut open = self.open();
        let before = open.all.len();
        while open.all.front().is_some_and(|first| first.place <= place) {
            open.all.pop_front();
        }
        if open.all.len() < before {
            open.since = Instant::now();
        }
    }

    /// The first that is not known to be done, and since when it can have been worked on.
    pub(super) fn first(&self) -> Option<(QueuedSubmission<I>, Instant)> {
        let open = self.open();
        open.all.front().map(|first| (first.clone(), open.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_what_is_first_begins_when_the_one_before_is_done() {
        let line = SubmissionLine::<char>::default();
        assert!(line.first().is_none());
        let a = line.enter(|| 'a');
        let b = line.enter(|| 'b');
        let c = line.enter(|| 'c');
        let (first, since) = line.first().unwrap();
        assert_eq!((first.index, first.place), ('a', a.place));
        line.leave(a.place);
        let (second, later) = line.first().unwrap();
        assert!(second.index == 'b' && later >= since);
        // What is done says the same of all before it, and twice is as good as once.
        line.leave(c.place);
        line.leave(b.place);
        assert!(line.first().is_none());
        let _d = line.enter(|| 'd');
        let (last, since) = line.first().unwrap();
        assert!(last.index == 'd' && since >= later);
    }
}
