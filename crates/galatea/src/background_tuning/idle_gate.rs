//! Gate that is open while a server has nothing to do.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use galatea_runtime::device_selector::ComputeDevices;
use galatea_runtime::tune::{TuningGate, TuningGateState};
use galatea_serving::{Core, CoreActivity};

/// Time without any request after which a server counts as idle.
const QUIET: Duration = Duration::from_millis(500);
/// Longest wait at a time.
const MOMENT: Duration = Duration::from_millis(20);
/// Rests that are shorter are put together.
const SHORT_REST: Duration = Duration::from_millis(2);

/// Gate that is open while no request runs or waits, no model is loaded and no device is busy, and has been so for a
/// moment. Measurements are followed by rests, so that they keep no more than a share of a core busy.
pub(super) struct IdleGate<'t> {
    core: &'t Weak<Core>,
    devices: &'t Arc<ComputeDevices>,
    stopped: &'t Receiver<()>,
    share: f64,
    rest: Cell<Duration>,
    quiet: QuietClock,
}

/// Time since when nothing has happened.
struct QuietClock {
    accepted: Cell<u64>,
    since: Cell<Instant>,
}

impl QuietClock {
    fn new(now: Instant) -> Self {
        Self { accepted: Cell::new(0), since: Cell::new(now) }
    }

    /// Looks at what goes on; whether nothing has, for long enough.
    fn look(&self, activity: CoreActivity, busy: bool, now: Instant) -> bool {
        let busy = busy || activity.unanswered > 0 || activity.loading > 0;
        // A request that came and went between two looks counts, too.
        let more = self.accepted.replace(activity.accepted) != activity.accepted;
        if busy || more {
            self.since.set(now);
        }
        !busy && now.saturating_duration_since(self.since.get()) >= QUIET
    }
}

/// Rest after a measurement of some cores that keeps the average at a share of one core.
fn rest_after(time: Duration, cores: usize, share: f64) -> Duration {
    #[allow(clippy::cast_precision_loss, reason = "a number of cores")]
    let period = time.as_secs_f64() * cores.max(1) as f64 / share;
    Duration::try_from_secs_f64(period).map_or(Duration::MAX, |period| period.saturating_sub(time))
}

impl<'t> IdleGate<'t> {
    pub(super) fn new(
        core: &'t Weak<Core>,
        devices: &'t Arc<ComputeDevices>,
        stopped: &'t Receiver<()>,
        share: f64,
    ) -> Self {
        let quiet = QuietClock::new(Instant::now());
        Self { core, devices, stopped, share, rest: Cell::default(), quiet }
    }

    /// Whether nothing goes on; `None` when the server has ended.
    fn look(&self) -> Option<bool> {
        let core = self.core.upgrade()?;
        let busy = self.devices.all().iter().any(|device| device.is_busy());
        Some(self.quiet.look(core.activity(), busy, Instant::now()))
    }

    /// Waits for a moment; whether the server goes on.
    fn pause(&self, time: Duration) -> bool {
        self.stopped.recv_timeout(time.min(MOMENT)) == Err(RecvTimeoutError::Timeout)
    }
}

impl TuningGate for IdleGate<'_> {
    fn wait(&self) -> TuningGateState {
        let rest = self.rest.get();
        if rest > SHORT_REST {
            let begin = Instant::now();
            let goes_on = self.pause(rest);
            self.rest.set(rest.saturating_sub(begin.elapsed()));
            return if goes_on { TuningGateState::Shut } else { TuningGateState::Closed };
        }
        match self.look() {
            Some(true) if self.stopped.try_recv() == Err(TryRecvError::Empty) => {
                TuningGateState::Open
            }
            Some(false) if self.pause(MOMENT) => TuningGateState::Shut,
            _ => TuningGateState::Closed,
        }
    }

    fn is_open(&self) -> bool {
        self.look() == Some(true)
    }

    fn spent(&self, time: Duration, cores: usize) {
        self.rest.set(self.rest.get().saturating_add(rest_after(time, cores, self.share)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(accepted: u64, unanswered: usize) -> CoreActivity {
        CoreActivity { accepted, unanswered, loading: 0 }
    }

    #[test]
    fn a_server_is_idle_once_nothing_has_happened_for_a_while() {
        let start = Instant::now();
        let clock = QuietClock::new(start);
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert!(!clock.look(activity(0, 0), false, at(499)));
        assert!(clock.look(activity(0, 0), false, at(500)));
        // A request waits, then one came and went between two looks, then a device is busy.
        assert!(!clock.look(activity(1, 1), false, at(600)));
        assert!(!clock.look(activity(1, 0), false, at(1000)));
        assert!(clock.look(activity(1, 0), false, at(1100)));
        assert!(!clock.look(activity(2, 0), false, at(1101)));
        assert!(!clock.look(activity(2, 0), false, at(1600)));
        assert!(clock.look(activity(2, 0), false, at(1601)));
        assert!(!clock.look(activity(2, 0), true, at(1700)));
        let loading = CoreActivity { loading: 1, ..activity(2, 0) };
        assert!(!clock.look(loading, false, at(3000)));
        assert!(!clock.look(activity(2, 0), false, at(3499)));
        assert!(clock.look(activity(2, 0), false, at(3500)));
    }

    #[test]
    fn rests_keep_the_average_at_a_share_of_a_core() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ms(10), 1, 1.0), ms(0));
        assert_eq!(rest_after(ms(10), 1, 0.5), ms(10));
        assert_eq!(rest_after(ms(10), 4, 0.5), ms(70));
        assert_eq!(rest_after(ms(10), 1, 2.0), ms(0));
        assert_eq!(rest_after(ms(10), 1, 0.0), Duration::MAX);
    }

    #[test]
    fn a_gate_without_a_server_is_closed() {
        let (core, devices) = (Weak::new(), Arc::new(ComputeDevices::new()));
        let (_stop, stopped) = std::sync::mpsc::channel();
        let gate = IdleGate::new(&core, &devices, &stopped, 1.0);
        assert_eq!(gate.wait(), TuningGateState::Closed);
        assert!(!gate.is_open());
    }
}
