//! Keeping work to a pace.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds of its pace that may be saved up while there is no work.
const BURST: f64 = 0.1;
/// Time that work waits before it looks again, if nothing announces its turn.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Remainder of the time that a pace grants, in seconds of work.
///
/// Work is paid for while it runs: work that takes longer than was saved up rests longer afterwards. On average
/// `pace · lanes` pieces run at once. The whole part of that number is reached by running fewer lanes, the rest
/// by pauses. There are as many lanes as pieces ever ran at once.
#[derive(Clone, Debug)]
pub struct WorkBudget {
    lanes: usize,
    pace: f64,
    running: usize,
    balance: f64,
    /// Seconds of work since the last look, and when that was.
    used: f64,
    looked: Duration,
    now: Duration,
}

impl WorkBudget {
    /// A bucket at full pace, with so many lanes to begin with.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        Self {
            lanes: lanes.max(1),
            pace: 1.0,
            running: 0,
            balance: 0.0,
            used: 0.0,
            looked: Duration::ZERO,
            now: Duration::ZERO,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "lanes are few")]
    fn advance(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.now).as_secs_f64();
        self.now = self.now.max(now);
        let rate = self.pace * self.lanes as f64;
        let running = self.running as f64;
        self.used += running * seconds;
        self.balance = (self.balance + (rate - running) * seconds).min(rate * BURST);
    }

    /// Allows another pace, 0 to 1.
    pub fn set_pace(&mut self, now: Duration, pace: f64) {
        self.advance(now);
        self.pace = pace.clamp(0.0, 1.0);
        if self.pace >= 1.0 {
            self.balance = self.balance.max(0.0);
        }
    }

    /// Begins a piece of work, or says how long to wait before it is asked again; no time where that
    /// depends on what others do.
    ///
    /// # Errors
    /// The time to wait.
    #[allow(clippy::cast_precision_loss, reason = "lanes are few")]
    pub fn begin(&mut self, now: Duration) -> Result<(), Option<Duration>> {
        self.advance(now);
        if self.pace < 1.0 {
            let rate = self.pace * self.lanes as f64;
            if self.running as f64 >= rate.ceil() {
                return Err(None);
            }
            if self.balance < 0.0 {
                let gain = rate - self.running as f64;
                let wait = -self.balance / gain;
                return Err((gain > 0.0).then(|| Duration::from_secs_f64(wait.min(3600.0))));
            }
        }
        self.running += 1;
        self.lanes = self.lanes.max(self.running);
        Ok(())
    }

    /// Ends a piece of work.
    pub fn end(&mut self, now: Duration) {
        self.advance(now);
        self.running = self.running.saturating_sub(1);
    }

    /// The share of all lanes that worked since this was asked last.
    #[allow(clippy::cast_precision_loss, reason = "lanes are few")]
    pub fn used(&mut self, now: Duration) -> f64 {
        self.advance(now);
        let span = (self.now.saturating_sub(self.looked)).as_secs_f64() * self.lanes as f64;
        let share = if span > 0.0 { (self.used / span).min(1.0) } else { 0.0 };
        (self.used, self.looked) = (0.0, self.now);
        share
    }
}

/// The budget of a gate, and how many threads wait at it.
#[derive(Debug)]
struct GateState {
    budget: WorkBudget,
    waiting: usize,
}

/// A [`WorkBudget`] that threads wait at.
#[derive(Debug)]
pub struct PowerGate {
    state: Mutex<GateState>,
    turn: Condvar,
    start: Instant,
}

/// Leave to work; given back when it is dropped.
#[derive(Debug)]
#[must_use = "the work has ended when this is dropped"]
pub struct PowerPermit<'a>(&'a PowerGate);

impl Drop for PowerPermit<'_> {
    fn drop(&mut self) {
        let now = self.0.start.elapsed();
        let mut state = self.0.state();
        state.budget.end(now);
        let awaited = state.waiting > 0;
        drop(state);
        // A call of the system takes longer than everything else here.
        if awaited {
            self.0.turn.notify_one();
        }
    }
}

impl PowerGate {
    /// A gate at full pace, with so many lanes to begin with.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        Self {
            state: Mutex::new(GateState { budget: WorkBudget::new(lanes), waiting: 0 }),
            turn: Condvar::new(),
            start: Instant::now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows another pace, 0 to 1; at 0 nothing begins.
    pub fn set_pace(&self, pace: f64) {
        self.state().budget.set_pace(self.start.elapsed(), pace);
        self.turn.notify_all();
    }

    /// Waits until a piece of work may begin.
    pub fn enter(&self) -> PowerPermit<'_> {
        let mut state = self.state();
        loop {
            let wait = match state.budget.begin(self.start.elapsed()) {
                Ok(()) => return PowerPermit(self),
                Err(wait) => wait.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN),
            };
            state.waiting += 1;
            let woken = self.turn.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
    }

    /// The share of all lanes that worked since this was asked last.
    pub fn used(&self) -> f64 {
        let now = self.start.elapsed();
        self.state().budget.used(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of time that `lanes` lanes work which always have pieces of `piece` milliseconds.
    fn share(lanes: usize, pace: f64, piece: u64) -> f64 {
        let mut bucket = WorkBudget::new(lanes);
        bucket.set_pace(Duration::ZERO, pace);
        let mut ends: Vec<u64> = Vec::new();
        for ms in 0..20_000_u64 {
            let now = Duration::from_millis(ms);
            ends.retain(|&end| {
                if end <= ms {
                    bucket.end(now);
                }
                end > ms
            });
            while ends.len() < lanes && bucket.begin(now).is_ok() {
                ends.push(ms + piece);
            }
        }
        bucket.used(Duration::from_millis(20_000))
    }

    #[test]
    fn work_of_any_length_keeps_to_the_pace() {
        for lanes in [1, 2, 5] {
            for pace in [0.05, 0.3, 0.5, 0.77] {
                for piece in [1, 7, 120] {
                    let share = share(lanes, pace, piece);
                    let off = (share - pace).abs();
                    assert!(off < 0.02, "{share}: {lanes} lanes, pace {pace}, {piece} ms");
                }
            }
        }
    }

    #[test]
    fn at_full_pace_nothing_waits_and_at_none_nothing_begins() {
        assert!(share(3, 1.0, 10) > 0.99);
        assert!(share(3, 0.0, 10) < 0.01);
        let mut bucket = WorkBudget::new(1);
        assert_eq!(bucket.begin(Duration::ZERO), Ok(()));
        assert_eq!(bucket.begin(Duration::ZERO), Ok(()), "more work than lanes were said to be");
    }

    #[test]
    fn a_thread_that_waits_goes_on_when_the_pace_allows_it() {
        let gate = PowerGate::new(1);
        gate.set_pace(0.0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(gate.enter()));
            gate.set_pace(1.0);
            waiting.join().unwrap();
        });
        assert!(gate.used() <= 1.0);
        assert_eq!(gate.state().waiting, 0);
    }

    #[test]
    fn the_end_of_work_wakes_who_waits_for_it() {
        let gate = PowerGate::new(2);
        // One lane of two, so that the second piece waits for the first one's end.
        gate.set_pace(0.5);
        let first = gate.enter();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(gate.enter()));
            while gate.state().waiting == 0 {
                std::thread::yield_now();
            }
            drop(first);
            second.join().unwrap();
        });
        assert_eq!(gate.state().waiting, 0);
    }
}
