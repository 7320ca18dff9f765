//! Decisions about the next worker, by the ends of those before it. Times are given, never read.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most ends that a history remembers.
const MAX_KNOWN_ENDS: usize = 1024;
/// The most doublings of a rest.
const MAX_DOUBLINGS: u32 = 31;

/// Rules for when the next worker may start, and for how many may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// How long an end counts. Without a window it counts until a worker was of use.
    pub window: Option<Duration>,
    /// Number of ends that the next worker follows at once.
    pub free_ends: usize,
    /// Rest after the first end that is not free. Each further end doubles it.
    pub first_rest: Duration,
    /// The longest rest.
    pub max_rest: Duration,
    /// Number of ends, counted at one time, after which no worker starts. Without it the next always does.
    pub max_ends: Option<usize>,
}

/// Whether the next worker may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It may start now.
    Start,
    /// It may start after a rest.
    Rest(RestartRest),
    /// Too many have ended.
    Refuse,
}

/// A rest before the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartRest {
    /// Number of ends that count.
    pub ends: usize,
    /// The whole rest, from the last end on.
    pub rest: Duration,
    /// Part of it that is left.
    pub left: Duration,
}

/// Ends of workers, and whether too many came at one time.
#[derive(Clone, Debug)]
pub struct RestartHistory {
    policy: RestartPolicy,
    /// When workers ended, the latest last.
    ends: VecDeque<Instant>,
    refused: bool,
}

impl RestartHistory {
    /// A history without ends.
    #[must_use]
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, ends: VecDeque::new(), refused: false }
    }

    /// Notes the end of a worker, or a start that failed. Returns true if this is the end that was too many.
    pub fn note_end(&mut self, at: Instant) -> bool {
        self.forget(at);
        if self.ends.len() == MAX_KNOWN_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(at);
        let too_many = self.policy.max_ends.is_some_and(|most| self.ends.len() >= most);
        too_many && !std::mem::replace(&mut self.refused, true)
    }

    /// Forgets earlier ends: a worker was of use. A refusal stays.
    pub fn note_use(&mut self) {
        self.ends.clear();
    }

    /// Returns true if no worker starts any more.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Says whether the next worker may start at this time.
    pub fn decide(&mut self, now: Instant) -> RestartDecision {
        if self.refused {
            return RestartDecision::Refuse;
        }
        self.forget(now);
        let ends = self.ends.len();
        let counted = ends.saturating_sub(self.policy.free_ends);
        let (Some(last), Some(doublings)) = (self.ends.back(), counted.checked_sub(1)) else {
            return RestartDecision::Start;
        };
        let doublings = u32::try_from(doublings).unwrap_or(MAX_DOUBLINGS).min(MAX_DOUBLINGS);
        let rest = self.policy.first_rest.saturating_mul(1 << doublings).min(self.policy.max_rest);
        let left = rest.saturating_sub(now.saturating_duration_since(*last));
        match left.is_zero() {
            true => RestartDecision::Start,
            false => RestartDecision::Rest(RestartRest { ends, rest, left }),
        }
    }

    /// Forgets what was longer ago than the window.
    fn forget(&mut self, now: Instant) {
        let Some(window) = self.policy.window else { return };
        self.ends.retain(|end| now.saturating_duration_since(*end) < window);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A step of a simulated life.
    #[derive(Clone, Copy, Debug)]
    enum LifeStep {
        Wait(u64),
        End,
        Use,
    }

    fn steps() -> impl Strategy<Value = Vec<LifeStep>> {
        let step = prop_oneof![
            3 => (0_u64..4000).prop_map(LifeStep::Wait),
            4 => Just(LifeStep::End),
            1 => Just(LifeStep::Use),
        ];
        proptest::collection::vec(step, 0..60)
    }

    fn policies() -> impl Strategy<Value = RestartPolicy> {
        let window = proptest::option::of((1_u64..20_000).prop_map(Duration::from_millis));
        let rests = (0_u64..500, 0_u64..9000);
        let counts = (0_usize..3, proptest::option::of(1_usize..8));
        (window, rests, counts).prop_map(|(window, rests, counts)| RestartPolicy {
            window,
            free_ends: counts.0,
            first_rest: Duration::from_millis(rests.0),
            max_rest: Duration::from_millis(rests.1),
            max_ends: counts.1,
        })
    }

    /// The ends that count, kept in the plainest way.
    fn counted(policy: &RestartPolicy, ends: &[Instant], now: Instant) -> usize {
        let counts = |end: &&Instant| policy.window.is_none_or(|window| now - **end < window);
        ends.iter().filter(counts).count()
    }

    proptest! {
        #[test]
        fn a_rest_follows_from_the_ends_that_count(policy in policies(), steps in steps()) {
            let mut now = Instant::now();
            let mut history = RestartHistory::new(policy);
            let mut ends = Vec::new();
            let mut refused = false;
            for step in steps {
                match step {
                    LifeStep::Wait(ms) => now += Duration::from_millis(ms),
                    LifeStep::Use => {
                        ends.clear();
                        history.note_use();
                    }
                    LifeStep::End => {
                        ends.push(now);
                        let most = policy.max_ends.unwrap_or(usize::MAX);
                        let over = counted(&policy, &ends, now) >= most;
                        prop_assert_eq!(history.note_end(now), over && !refused);
                        refused |= over;
                    }
                }
                prop_assert_eq!(history.is_refused(), refused);
                let known = counted(&policy, &ends, now);
                match history.decide(now) {
                    RestartDecision::Refuse => prop_assert!(refused),
                    RestartDecision::Start => {
                        prop_assert!(!refused);
                        if let Some(last) = ends.last().filter(|_| known > policy.free_ends) {
                            prop_assert!(now - *last >= policy.first_rest.min(policy.max_rest));
                        }
                    }
                    RestartDecision::Rest(rest) => {
                        prop_assert!(!refused);
                        prop_assert_eq!(rest.ends, known);
                        prop_assert!(known > policy.free_ends);
                        prop_assert!(rest.rest <= policy.max_rest);
                        prop_assert!(!rest.left.is_zero() && rest.left <= rest.rest);
                        // The next worker may start as soon as the rest is over, and not before.
                        let early = history.clone().decide(now + rest.left - Duration::from_nanos(1));
                        if policy.window.is_none() {
                            prop_assert!(matches!(early, RestartDecision::Rest(_)));
                        }
                        let then = history.clone().decide(now + rest.left);
                        prop_assert_eq!(then, RestartDecision::Start);
                    }
                }
            }
        }

        #[test]
        fn without_a_most_number_the_next_worker_always_comes(policy in policies(), steps in steps()) {
            let mut now = Instant::now();
            let mut history = RestartHistory::new(RestartPolicy { max_ends: None, ..policy });
            for step in steps {
                match step {
                    LifeStep::Wait(ms) => now += Duration::from_millis(ms),
                    LifeStep::Use => history.note_use(),
                    LifeStep::End => prop_assert!(!history.note_end(now)),
                }
            }
            prop_assert_eq!(history.decide(now + policy.max_rest), RestartDecision::Start);
        }
    }

    fn rests(policy: RestartPolicy, ends: usize) -> Vec<u128> {
        let now = Instant::now();
        let mut history = RestartHistory::new(policy);
        let rest = |_| {
            history.note_end(now);
            match history.decide(now) {
                RestartDecision::Rest(rest) => rest.rest.as_millis(),
                _ => 0,
            }
        };
        (0..ends).map(rest).collect()
    }

    #[test]
    fn rests_double_up_to_the_longest() {
        let policy = RestartPolicy {
            window: None,
            free_ends: 0,
            first_rest: Duration::from_millis(100),
            max_rest: Duration::from_secs(5),
            max_ends: None,
        };
        assert_eq!(rests(policy, 8), [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        let window = Some(Duration::from_secs(600));
        let first_rest = Duration::from_millis(250);
        let max_rest = Duration::from_secs(32);
        let policy = RestartPolicy { window, free_ends: 1, first_rest, max_rest, max_ends: None };
        assert_eq!(
            rests(policy, 10),
            [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000]
        );
    }

    #[test]
    fn many_ends_take_no_more_memory_and_overflow_nothing() {
        let policy = RestartPolicy {
            window: None,
            free_ends: 0,
            first_rest: Duration::MAX,
            max_rest: Duration::MAX,
            max_ends: None,
        };
        assert_eq!(rests(policy, 3 * MAX_KNOWN_ENDS).len(), 3 * MAX_KNOWN_ENDS);
        let mut history = RestartHistory::new(policy);
        for _ in 0..3 * MAX_KNOWN_ENDS {
            history.note_end(Instant::now());
        }
        assert_eq!(history.ends.len(), MAX_KNOWN_ENDS);
    }
}
