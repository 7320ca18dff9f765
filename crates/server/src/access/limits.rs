//! Limits of a key: requests and tokens of a minute, and requests at the same time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds in which a rate is counted.
const MINUTE: f64 = 60.0;

/// Limits of a key; those that are `None` do not bind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyLimits {
    /// Requests that may begin within a minute.
    pub(super) requests: Option<u64>,
    /// Tokens of prompts and answers within a minute.
    pub(super) tokens: Option<u64>,
    /// Requests that may be under way at the same time.
    pub(super) concurrent: Option<u64>,
}

/// Limit that refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    /// Requests of a minute; one more may come after this time.
    Requests(Duration),
    /// Tokens of a minute; the next request may come after this time.
    Tokens(Duration),
    /// Requests at the same time.
    Concurrent,
}

/// An allowance that grows back evenly, up to that of one minute.
#[derive(Debug, Clone, Copy)]
struct RateAllowance {
    /// Rest of it; negative where more was used than was left.
    left: f64,
    /// Time at which that was so.
    at: Instant,
}

impl RateAllowance {
    fn grow(&mut self, per_minute: u64, now: Instant) {
        let rate = per_minute as f64 / MINUTE;
        let grown = rate * now.saturating_duration_since(self.at).as_secs_f64();
        *self = Self { left: (self.left + grown).min(per_minute as f64), at: now };
    }

    /// Returns how long it takes until at least so much is left.
    fn wait(&self, per_minute: u64, wanted: f64) -> Option<Duration> {
        let missing = wanted - self.left;
        let seconds = missing * MINUTE / per_minute as f64;
        (missing > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// Allowances of the two rates; none until they are first looked at.
#[derive(Debug, Default)]
struct RateAllowances {
    requests: Option<RateAllowance>,
    tokens: Option<RateAllowance>,
}

/// Use of a key's limits so far. It outlives changes of the key.
#[derive(Debug, Default)]
pub(super) struct KeyUsage {
    rates: Mutex<RateAllowances>,
    open: AtomicU64,
}

impl KeyUsage {
    fn rates(&self) -> MutexGuard<'_, RateAllowances> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that begins, if the limits allow it. [`end`](Self::end) must follow.
    pub(super) fn begin(&self, limits: &KeyLimits, now: Instant) -> Result<(), ExceededLimit> {
        let most = limits.concurrent.unwrap_or(u64::MAX);
        let open = self.open.fetch_add(1, Ordering::AcqRel);
        let begun = if open >= most {
            Err(ExceededLimit::Concurrent)
        } else {
            self.count_request(limits, now)
        };
        if begun.is_err() {
            self.end();
        }
        begun
    }

    fn count_request(&self, limits: &KeyLimits, now: Instant) -> Result<(), ExceededLimit> {
        if limits.requests.is_none() && limits.tokens.is_none() {
            return Ok(());
        }
        let mut rates = self.rates();
        if let Some(most) = limits.tokens
            && let Some(wait) = current(&mut rates.tokens, most, now).wait(most, 0.0)
        {
            return Err(ExceededLimit::Tokens(wait));
        }
        if let Some(most) = limits.requests {
            let requests = current(&mut rates.requests, most, now);
            if let Some(wait) = requests.wait(most, 1.0) {
                return Err(ExceededLimit::Requests(wait));
            }
            requests.left -= 1.0;
        }
        Ok(())
    }

    /// Counts a request that has ended.
    pub(super) fn end(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts tokens. They may be more than are left: how many an answer has is known when they are there.
    pub(super) fn count_tokens(&self, limits: &KeyLimits, tokens: usize, now: Instant) {
        if let Some(most) = limits.tokens {
            current(&mut self.rates().tokens, most, now).left -= tokens as f64;
        }
    }
}

/// Brings an allowance up to date; at first it is that of a whole minute.
fn current(
    allowance: &mut Option<RateAllowance>,
    per_minute: u64,
    now: Instant,
) -> &mut RateAllowance {
    let allowance = allowance.get_or_insert(RateAllowance { left: per_minute as f64, at: now });
    allowance.grow(per_minute, now);
    allowance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_minute_grow_back_evenly() {
        let limits = KeyLimits { requests: Some(6), ..KeyLimits::default() };
        let usage = KeyUsage::default();
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        for _ in 0..6 {
            usage.begin(&limits, start).unwrap();
            usage.end();
        }
        let wait = |seconds| Err(ExceededLimit::Requests(Duration::from_secs(seconds)));
        assert_eq!(usage.begin(&limits, start), wait(10));
        assert_eq!(usage.begin(&limits, after(4)), wait(6));
        assert_eq!(usage.begin(&limits, after(10)), Ok(()));
        assert_eq!(usage.begin(&limits, after(10)), wait(10));
        // A rest of an hour saves up no more than a minute.
        let begun = (0..20).filter(|_| usage.begin(&limits, after(3600)).is_ok()).count();
        assert_eq!(begun, 6);
    }

    #[test]
    fn tokens_beyond_the_limit_are_waited_for() {
        let limits = KeyLimits { tokens: Some(60), ..KeyLimits::default() };
        let usage = KeyUsage::default();
        let start = Instant::now();
        usage.begin(&limits, start).unwrap();
        usage.count_tokens(&limits, 100, start);
        let wait = |seconds| Err(ExceededLimit::Tokens(Duration::from_secs(seconds)));
        assert_eq!(usage.begin(&limits, start), wait(40));
        assert_eq!(usage.begin(&limits, start + Duration::from_secs(30)), wait(10));
        assert_eq!(usage.begin(&limits, start + Duration::from_secs(41)), Ok(()));
    }

    #[test]
    fn requests_at_the_same_time_are_bounded_and_refusals_take_no_place() {
        let limits = KeyLimits { concurrent: Some(2), requests: Some(3), ..KeyLimits::default() };
        let usage = KeyUsage::default();
        let now = Instant::now();
        usage.begin(&limits, now).unwrap();
        usage.begin(&limits, now).unwrap();
        assert_eq!(usage.begin(&limits, now), Err(ExceededLimit::Concurrent));
        usage.end();
        usage.begin(&limits, now).unwrap();
        usage.end();
        assert!(matches!(usage.begin(&limits, now), Err(ExceededLimit::Requests(_))));
        assert_eq!(usage.open.load(Ordering::Acquire), 1);
    }
}
