//! Liveness check of a connection: it must open in time, continue a pending frame or message, and answer
//! pings. Works without a clock.

use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionSettings;
use crate::client_pace::MIN_PACE_BYTES;

/// Longest time from the first byte that may come to the peer's settings.
const OPENING: Duration = Duration::from_secs(20);

/// Signs of whether a connection is alive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeepaliveState {
    /// The peer has opened the connection.
    pub(super) settled: bool,
    /// The peer is in the middle of a short frame, at which nothing else can come.
    pub(super) inside: bool,
    /// A message is being gathered.
    pub(super) gathers: bool,
    /// Something waits to be written.
    pub(super) unwritten: bool,
    /// An answer waits until its client lets more of it be sent.
    pub(super) unread: bool,
    /// The peer is to say that it knows of the end, and nothing else is open.
    pub(super) parting: bool,
    /// There are calls.
    pub(super) calls: bool,
    /// Events that have come.
    pub(super) events: u64,
    /// Bytes that have gone.
    pub(super) written: u64,
}

impl KeepaliveState {
    /// Returns whether the client has to take something.
    fn is_unread(&self) -> bool {
        self.unwritten || self.unread
    }
}

/// Action that a check of the connection calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepaliveVerdict {
    Fine,
    Ping,
    Dead(&'static str),
}

/// Follows a connection.
#[derive(Debug)]
pub(super) struct ConnectionWatch {
    opened: Instant,
    heard: Instant,
    pinged: Option<Instant>,
    marked: Instant,
    mark: KeepaliveState,
}

impl ConnectionWatch {
    pub(super) fn new(now: Instant) -> Self {
        Self { opened: now, heard: now, pinged: None, marked: now, mark: KeepaliveState::default() }
    }

    /// The peer has said something.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.pinged = None;
    }

    /// Returns the time of the peer's last sign of life.
    pub(super) fn heard(&self) -> Instant {
        self.heard
    }

    /// Returns whether something pending has to be checked before the next ping is due.
    pub(super) fn is_midway(signs: &KeepaliveState) -> bool {
        !signs.settled || signs.inside || signs.gathers || signs.is_unread() || signs.parting
    }

    /// Returns the time of the next check.
    pub(super) fn next(
        &self,
        now: Instant,
        signs: &KeepaliveState,
        keeping: &ConnectionSettings,
    ) -> Instant {
        let ping = match self.pinged {
            Some(pinged) => pinged + keeping.keepalive_timeout,
            // A peer whom nobody pings now may begin a call at any time.
            None => (self.heard + keeping.keepalive_time).max(now + Duration::from_millis(1)),
        };
        let mut next = ping;
        if Self::is_midway(signs) {
            next = next.min(now + keeping.stall);
        }
        if !signs.settled {
            next = next.min(self.opened + OPENING);
        }
        next
    }

    /// Looks.
    pub(super) fn look(
        &mut self,
        now: Instant,
        signs: &KeepaliveState,
        keeping: &ConnectionSettings,
    ) -> KeepaliveVerdict {
        if !signs.settled && now >= self.opened + OPENING {
            return KeepaliveVerdict::Dead("the client does not open the connection");
        }
        if now >= self.marked + keeping.stall {
            let before = std::mem::replace(&mut self.mark, *signs);
            self.marked = now;
            if before.inside && signs.inside && before.events == signs.events {
                return KeepaliveVerdict::Dead("the client does not end a frame");
            }
            if before.parting && signs.parting && before.events == signs.events {
                return KeepaliveVerdict::Dead("the client does not hear of the end");
            }
            let written = signs.written.wrapping_sub(before.written);
            if before.unwritten && signs.unwritten && written < MIN_PACE_BYTES as u64 {
                return KeepaliveVerdict::Dead("the client does not read");
            }
        }
        match self.pinged {
            Some(pinged) if now >= pinged + keeping.keepalive_timeout => {
                KeepaliveVerdict::Dead("the client does not answer a ping")
            }
            None if now >= self.heard + keeping.keepalive_time => {
                if signs.calls || keeping.without_calls {
                    self.pinged = Some(now);
                    KeepaliveVerdict::Ping
                } else {
                    self.heard = now;
                    KeepaliveVerdict::Fine
                }
            }
            _ => KeepaliveVerdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_pace::CLIENT_STALL;

    const KEEPING: ConnectionSettings = ConnectionSettings {
        keepalive_time: Duration::from_secs(7200),
        keepalive_timeout: Duration::from_secs(20),
        without_calls: false,
        ping_interval: Duration::from_secs(300),
        ping_strikes: 2,
        stall: CLIENT_STALL,
    };

    /// Looks whenever it is due until the connection is found dead, at most for some hours.
    fn death(
        signs: impl Fn(u64) -> KeepaliveState,
        keeping: &ConnectionSettings,
    ) -> Option<(u64, &'static str)> {
        let start = Instant::now();
        let mut watch = ConnectionWatch::new(start);
        let mut now = start;
        while now < start + Duration::from_secs(8 * 3600) {
            let seconds = now.duration_since(start).as_secs();
            if let KeepaliveVerdict::Dead(why) = watch.look(now, &signs(seconds), keeping) {
                return Some((seconds, why));
            }
            let next = watch.next(now, &signs(seconds), keeping);
            assert!(next > now, "it looks without end");
            now = next;
        }
        None
    }

    #[test]
    fn a_connection_that_rests_lives_and_one_in_the_middle_must_go_on() {
        let open = KeepaliveState { settled: true, ..KeepaliveState::default() };
        assert_eq!(death(|_| open, &KEEPING), None);
        assert_eq!(death(|_| KeepaliveState { gathers: true, ..open }, &KEEPING), None);
        let (at, _) = death(|_| KeepaliveState::default(), &KEEPING).unwrap();
        assert_eq!(at, OPENING.as_secs());
        let stuck = [
            KeepaliveState { inside: true, ..open },
            KeepaliveState { unwritten: true, ..open },
            KeepaliveState { parting: true, ..open },
        ];
        for stuck in stuck {
            let (at, _) = death(|_| stuck, &KEEPING).unwrap();
            assert!((60..=180).contains(&at), "{at}");
            let goes_on = |at| KeepaliveState { events: at, written: at << 10, ..stuck };
            assert_eq!(death(goes_on, &KEEPING), None);
        }
    }

    #[test]
    fn a_connection_with_calls_answers_pings() {
        let calls = KeepaliveState { settled: true, calls: true, ..KeepaliveState::default() };
        assert_eq!(death(|_| calls, &KEEPING).unwrap().0, 7220);
        let always = ConnectionSettings { without_calls: true, ..KEEPING };
        let open = KeepaliveState { settled: true, ..KeepaliveState::default() };
        assert_eq!(death(|_| open, &always).unwrap().0, 7220);
    }
}
