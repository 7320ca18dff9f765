//! Queue between an engine's thread and a front end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A queue between a thread that must not wait and a task that reads.
pub(crate) struct EventQueue<T> {
    state: Mutex<QueueState<T>>,
    limit: usize,
}

struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    /// Bytes of all items that wait.
    bytes: usize,
    /// The engine has the request, and tells of everything that becomes of it.
    begun: bool,
    /// Nothing comes behind what waits.
    closed: bool,
    /// More came than may wait; what came then is lost.
    full: bool,
    reader: Option<Waker>,
    /// Told when the queue is full, also while nobody reads.
    watcher: Option<Waker>,
}

impl<T> fmt::Debug for EventQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Next part of a queue for its reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueRead<T> {
    /// An item.
    Item(T),
    /// Nothing, and nothing will come.
    End,
    /// Nothing, because more came than may wait.
    Full,
}

impl<T> EventQueue<T> {
    /// An empty queue on which about so many bytes may wait.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            begun: false,
            closed: false,
            full: false,
            reader: None,
            watcher: None,
        };
        Arc::new(Self { state: Mutex::new(state), limit })
    }

    /// Number of bytes that may wait.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds an item of so many bytes. Once full, the queue takes nothing more.
    pub(crate) fn push(&self, item: T, bytes: usize) {
        let mut state = self.state();
        if state.closed || state.full {
            return;
        }
        let watcher = if state.bytes > self.limit {
            state.full = true;
            state.watcher.take()
        } else {
            state.bytes = state.bytes.saturating_add(bytes);
            state.items.push_back((item, bytes));
            None
        };
        Self::wake(state, watcher);
    }

    /// Says that an engine tells of everything from now on.
    pub(crate) fn begin(&self) {
        self.state().begun = true;
    }

    /// Adds the last item if no engine tells of the request's end.
    pub(crate) fn push_refusal(&self, item: T) {
        if !self.state().begun {
            self.push_last(item);
        }
    }

    /// Adds the last item, whatever waits already.
    pub(crate) fn push_last(&self, item: T) {
        let mut state = self.state();
        if !state.closed && !state.full {
            state.items.push_back((item, 0));
        }
        state.closed = true;
        Self::wake(state, None);
    }

    /// Says that nothing more comes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        Self::wake(state, None);
    }

    /// Takes the next item, or says that the reader is to be woken when there is one.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<QueueRead<T>> {
        let mut state = self.state();
        if let Some((item, bytes)) = state.items.pop_front() {
            state.bytes = state.bytes.saturating_sub(bytes);
            return Poll::Ready(QueueRead::Item(item));
        }
        if state.full {
            return Poll::Ready(QueueRead::Full);
        }
        if state.closed {
            return Poll::Ready(QueueRead::End);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Says whether more came than may wait, or that the watcher is to be woken then.
    pub(crate) fn poll_full(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.full {
            return Poll::Ready(());
        }
        state.watcher = Some(context.waker().clone());
        Poll::Pending
    }

    /// Wakes the reader and a watcher, without the lock.
    fn wake(mut state: MutexGuard<'_, QueueState<T>>, watcher: Option<Waker>) {
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().chain(watcher).for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(queue: &EventQueue<u32>) -> Poll<QueueRead<u32>> {
        queue.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn items_come_in_their_order_and_then_the_end() {
        let queue = EventQueue::new(100);
        assert!(read(&queue).is_pending());
        queue.push(1, 10);
        queue.push_last(2);
        queue.push(3, 10);
        for expected in [QueueRead::Item(1), QueueRead::Item(2), QueueRead::End, QueueRead::End] {
            assert_eq!(read(&queue), Poll::Ready(expected));
        }
    }

    #[test]
    fn a_queue_that_nobody_reads_is_bounded_and_stays_full() {
        let queue = EventQueue::new(25);
        let full = |queue: &EventQueue<u32>| {
            queue.poll_full(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        (0..3).for_each(|item| queue.push(item, 10));
        assert!(!full(&queue));
        queue.push(3, 10);
        assert!(full(&queue));
        for expected in [QueueRead::Item(0), QueueRead::Item(1), QueueRead::Item(2)] {
            assert_eq!(read(&queue), Poll::Ready(expected));
        }
        queue.push(4, 10);
        assert_eq!(read(&queue), Poll::Ready(QueueRead::Full));
    }

    #[test]
    fn items_that_are_taken_make_room() {
        let queue = EventQueue::new(25);
        for item in 0..100 {
            queue.push(item, 20);
            assert_eq!(read(&queue), Poll::Ready(QueueRead::Item(item)));
        }
        queue.begin();
        queue.push_refusal(0);
        assert!(read(&queue).is_pending());
        queue.close();
        assert_eq!(read(&queue), Poll::Ready(QueueRead::End));
    }
}
