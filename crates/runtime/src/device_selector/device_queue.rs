//! Turns on a unit: how many runs it has under way at a time, and who is next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use galatea_tensor::OrderedMap;

/// A run without a deadline waits as one does whose deadline is so long after it began to wait: then whoever comes
/// later is behind it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Number of runs that a device can usefully execute at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLanes {
    /// Runs that are under way at a time, at least 1.
    pub runs: usize,
    /// Runs that are predicted to take less than this neither wait nor count.
    pub short: Duration,
}

impl Default for DeviceLanes {
    /// An accelerator: one run computes while another one is prepared and handed over.
    fn default() -> Self {
        Self { runs: 2, short: Duration::ZERO }
    }
}

/// Somebody who waits for a turn.
#[derive(Debug)]
struct QueuedRun {
    thread: Thread,
    called: AtomicBool,
    /// Nanoseconds that its run is predicted to take.
    owed: u64,
}

/// Holders of turns, and runs that wait for one: the earliest deadline first, then by arrival. It has no lock
/// of its own.
#[derive(Debug, Default)]
pub(super) struct DeviceQueue {
    lanes: DeviceLanes,
    taken: usize,
    waiting: OrderedMap<(Instant, u64), Arc<QueuedRun>>,
    arrivals: u64,
}

/// Answer to a run that asks for a turn.
#[derive(Debug)]
pub(super) enum QueueGrant {
    /// It needs none.
    Short,
    /// It has one, which [`DeviceQueue::end`] gives back.
    Taken,
    /// It waits, and has one when [`QueueTicket::wait`] returns.
    Later(QueueTicket),
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct QueueTicket(Arc<QueuedRun>);

impl QueueTicket {
    /// Returns when the turn has come.
    pub(super) fn wait(self) {
        while !self.0.called.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

/// Returns the time at which a run that begins to wait at `now` is due.
fn due(now: Instant, deadline: Option<Instant>) -> Instant {
    deadline.unwrap_or_else(|| now.checked_add(PATIENCE).unwrap_or(now))
}

impl DeviceQueue {
    /// Asks for a turn.
    pub(super) fn ask(&mut self, owed: u64, deadline: Option<Instant>) -> QueueGrant {
        if u128::from(owed) < self.lanes.short.as_nanos() {
            return QueueGrant::Short;
        }
        if self.taken < self.lanes.runs.max(1) {
            self.taken += 1;
            return QueueGrant::Taken;
        }
        self.arrivals += 1;
        let seat = QueuedRun { thread: thread::current(), called: AtomicBool::new(false), owed };
        let seat = Arc::new(seat);
        self.waiting.insert((due(Instant::now(), deadline), self.arrivals), Arc::clone(&seat));
        QueueGrant::Later(QueueTicket(seat))
    }

    /// Gives a turn back; whether somebody else has it now.
    pub(super) fn end(&mut self) -> bool {
        self.taken = self.taken.saturating_sub(1);
        self.call() > 0
    }

    /// Has other lanes from now on; how many of those that waited have a turn now.
    pub(super) fn set_lanes(&mut self, lanes: DeviceLanes) -> usize {
        self.lanes = lanes;
        self.call()
    }

    /// Gives the turns that are free to those that wait.
    fn call(&mut self) -> usize {
        let mut called = 0;
        while self.taken < self.lanes.runs.max(1) {
            let Some((_, seat)) = self.waiting.pop_first() else { break };
            self.taken += 1;
            called += 1;
            seat.called.store(true, Ordering::Release);
            seat.thread.unpark();
        }
        called
    }

    /// Returns the number of waiting runs.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Nanoseconds owed to those that wait and are behind a run with this deadline.
    pub(super) fn behind(&self, deadline: Instant) -> u64 {
        let later = self.waiting.range((deadline, u64::MAX)..);
        later.fold(0, |sum, (_, seat)| sum.saturating_add(seat.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the waiting runs, identified by what they owe, in the order in which they are called.
    fn order(turns: &mut DeviceQueue) -> Vec<u64> {
        let mut called = Vec::new();
        while let Some((_, seat)) = turns.waiting.first_key_value() {
            called.push(seat.owed);
            assert!(turns.end());
        }
        called
    }

    #[test]
    fn the_earliest_deadline_is_next_and_who_has_none_is_not_left_behind_for_ever() {
        let mut turns = DeviceQueue::default();
        turns.set_lanes(DeviceLanes { runs: 1, short: Duration::from_nanos(5) });
        let in_ms = |ms: u64| Some(Instant::now() + Duration::from_millis(ms));
        assert!(matches!(turns.ask(100, None), QueueGrant::Taken));
        assert!(matches!(turns.ask(4, None), QueueGrant::Short));
        // The third has no deadline: those that are due much later do not pass it.
        for (owed, deadline) in
            [(10, in_ms(900)), (11, in_ms(20)), (12, None), (13, in_ms(60_000)), (14, None)]
        {
            assert!(matches!(turns.ask(owed, deadline), QueueGrant::Later(_)));
        }
        assert_eq!(turns.behind(in_ms(500).unwrap()), 10 + 12 + 13 + 14);
        assert_eq!(order(&mut turns), [11, 10, 12, 14, 13]);
        assert!(!turns.end());
        assert_eq!(turns.taken, 0);
    }

    #[test]
    fn a_unit_with_more_lanes_calls_those_that_wait() {
        let mut turns = DeviceQueue::default();
        turns.set_lanes(DeviceLanes { runs: 1, short: Duration::ZERO });
        assert!(matches!(turns.ask(1, None), QueueGrant::Taken));
        for _ in 0..4 {
            assert!(matches!(turns.ask(1, None), QueueGrant::Later(_)));
        }
        assert_eq!(turns.set_lanes(DeviceLanes { runs: 3, short: Duration::ZERO }), 2);
        assert_eq!((turns.taken, turns.waiting()), (3, 2));
        // Fewer lanes take no turn away, and give none before so many are free.
        turns.set_lanes(DeviceLanes { runs: 1, short: Duration::ZERO });
        assert!(!turns.end() && !turns.end() && turns.end());
    }
}
