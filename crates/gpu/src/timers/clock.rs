//! The device's clock beside the host's.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Drift between the clocks after which one is set anew, in nanoseconds.
const DRIFT: i128 = 50_000;

/// A piece of work by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    /// Time at which the host submitted it.
    pub(crate) handed: Instant,
    /// Time at which the host knew that it was over.
    pub(crate) over: Instant,
    /// Begin and end by the device's clock, in nanoseconds.
    pub(crate) device: (u64, u64),
}

/// Says when by the host's clock something happened on the device.
///
/// Work lies between its handing over and the moment when the host knows that it is over, so the
/// difference of both clocks has two bounds. It stays as it was set first, so that what follows each other
/// on the device does so here, until work lies beyond them.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    epoch: Instant,
    /// Nanoseconds that the host's clock is ahead, counted from the epoch.
    ahead: Mutex<Option<i128>>,
}

impl Default for DeviceClock {
    fn default() -> Self {
        Self { epoch: Instant::now(), ahead: Mutex::default() }
    }
}

impl DeviceClock {
    /// Sets the clock by several pieces of work.
    pub(crate) fn set(&self, all: &[ClockPair]) {
        let bounds = all.iter().map(|work| self.bounds(work));
        let common = bounds.reduce(|(a, b), (c, d)| (a.max(c), b.min(d)));
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = common.map(|(least, most)| i128::midpoint(least, most));
    }

    /// Returns the offset of the host's clock during a piece of work.
    pub(crate) fn ahead(&self, work: &ClockPair) -> i128 {
        let (least, most) = self.bounds(work);
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        match *ahead {
            Some(known) if (least - DRIFT..=most + DRIFT).contains(&known) => known,
            _ => *ahead.insert(i128::midpoint(least, most)),
        }
    }

    /// The moment of the host's clock.
    pub(crate) fn moment(&self, device_ns: u64, ahead: i128) -> Instant {
        let ns = u64::try_from(i128::from(device_ns) + ahead).unwrap_or(0);
        self.epoch + Duration::from_nanos(ns)
    }

    fn bounds(&self, work: &ClockPair) -> (i128, i128) {
        let since = |moment: Instant| {
            let since = moment.saturating_duration_since(self.epoch);
            i128::try_from(since.as_nanos()).unwrap_or(0)
        };
        let (begin, end) = work.device;
        (since(work.handed) - i128::from(begin), since(work.over) - i128::from(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_its_place_between_handing_over_and_the_end() {
        let clock = DeviceClock::default();
        let at = |us: u64| clock.epoch + Duration::from_micros(us);
        let both = |handed, over, begin: u64, end: u64| ClockPair {
            handed: at(handed),
            over: at(over),
            device: (begin * 1000, end * 1000),
        };
        // The device's clock is 5000 us ahead of the epoch.
        clock.set(&[both(100, 300, 5150, 5250), both(400, 440, 5410, 5430)]);
        let work = both(1000, 2000, 6300, 6700);
        let ahead = clock.ahead(&work);
        assert_eq!(clock.moment(6_300_000, ahead), at(1300));
        // A clock that runs away is set anew: the work is in the middle of what is possible.
        let later = both(10_000, 10_200, 16_000, 16_100);
        let ahead = clock.ahead(&later);
        assert_eq!(clock.moment(16_000_000, ahead), at(10_050));
    }
}
