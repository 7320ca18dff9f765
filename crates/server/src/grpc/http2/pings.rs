//! Pings of a client that come too often, judged as gRPC's servers do. Without a clock.

use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionSettings;

/// Least time between pings on a connection without calls, where that is not permitted.
const IDLE_INTERVAL: Duration = Duration::from_secs(2 * 3600);

/// Counts pings.
#[derive(Debug, Default)]
pub(super) struct PingCounter {
    last: Option<Instant>,
    strikes: u64,
}

impl PingCounter {
    /// Something was sent: the client may ask whether it arrived.
    pub(super) fn sent(&mut self) {
        *self = Self::default();
    }

    /// Counts a ping and returns whether it is one too many.
    pub(super) fn is_too_many(
        &mut self,
        now: Instant,
        keeping: &ConnectionSettings,
        calls: usize,
    ) -> bool {
        let idle = calls == 0 && !keeping.without_calls;
        let interval = if idle { IDLE_INTERVAL } else { keeping.ping_interval };
        let early = self.last.is_some_and(|last| now.duration_since(last) < interval);
        self.last = Some(now);
        if early {
            self.strikes += 1;
        }
        early && keeping.ping_strikes != 0 && self.strikes > keeping.ping_strikes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(without_calls: bool, ping_strikes: u64) -> ConnectionSettings {
        let hour = Duration::from_secs(3600);
        let interval = Duration::from_secs(300);
        let keepalive_time = hour;
        let keepalive_timeout = hour;
        ConnectionSettings {
            keepalive_time,
            keepalive_timeout,
            without_calls,
            ping_interval: interval,
            ping_strikes,
            stall: hour,
        }
    }

    #[test]
    fn pings_that_come_too_early_are_forgiven_so_many_times() {
        let start = Instant::now();
        let minute = Duration::from_secs(60);
        let mut pings = PingCounter::default();
        let strict = keeping(true, 2);
        let found: Vec<bool> =
            (0..5).map(|n| pings.is_too_many(start + minute * n, &strict, 1)).collect();
        assert_eq!(found, [false, false, false, true, true]);
        pings.sent();
        assert!(!pings.is_too_many(start + minute * 5, &strict, 1));
        let slow = (0..100).all(|n| !pings.is_too_many(start + minute * 5 * (n + 2), &strict, 0));
        assert!(slow, "pings within the interval count");
    }

    #[test]
    fn without_calls_pings_must_be_rare_unless_permitted() {
        let start = Instant::now();
        let step = Duration::from_secs(600);
        let mut pings = PingCounter::default();
        assert!((0..4).any(|n| pings.is_too_many(start + step * n, &keeping(false, 2), 0)));
        let mut pings = PingCounter::default();
        assert!(!(0..9).any(|n| pings.is_too_many(start, &keeping(false, 0), n)));
    }
}
