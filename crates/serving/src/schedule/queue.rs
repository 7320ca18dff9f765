//! Priority levels, each a queue with a policy and a second queue for requests whose time is over but which may stay.

use std::collections::VecDeque;

use galatea_tensor::OrderedMap;

use super::{Nanos, QueueRefusal, ScheduleTicket};
use crate::config::inference::model_queue_policy::TimeoutAction;
use crate::config::inference::{ModelDynamicBatching, ModelQueuePolicy};

/// Limits of one level's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Whether a request that waited too long stays, behind all others of its level, instead of being refused.
    pub delay_expired: bool,
    /// Longest wait; `None` for any.
    pub timeout: Option<Nanos>,
    /// Whether a request may ask for a shorter wait.
    pub allow_override: bool,
    /// Most requests that wait; `None` for any number.
    pub max_size: Option<usize>,
}

impl QueuePolicy {
    /// Reads a policy.
    #[must_use]
    pub fn from_config(policy: &ModelQueuePolicy) -> Self {
        let timeout_us = policy.default_timeout_microseconds;
        Self {
            delay_expired: policy.timeout_action == i32::from(TimeoutAction::Delay),
            timeout: (timeout_us > 0).then(|| timeout_us.saturating_mul(1000)),
            allow_override: policy.allow_timeout_override,
            max_size: usize::try_from(policy.max_queue_size).ok().filter(|&size| size > 0),
        }
    }

    /// Whether requests stay until their turn comes, however many wait.
    fn is_plain(self) -> bool {
        self.timeout.is_none() && self.max_size.is_none()
    }

    /// When a request that comes `now` is over. A request can only shorten the policy's own limit, so that without
    /// such a limit its wish has no effect (as Triton does it).
    fn deadline(&self, ticket: &ScheduleTicket, now: Nanos) -> Option<Nanos> {
        let limit = self.timeout?;
        let wish = ticket.timeout_us.saturating_mul(1000);
        let wait = if self.allow_override && wish > 0 { limit.min(wish) } else { limit };
        Some(now.saturating_add(wait))
    }
}

/// A waiting request.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) ticket: ScheduleTicket,
    pub(super) enqueued: Nanos,
    pub(super) deadline: Option<Nanos>,
}

#[derive(Debug, Default)]
struct PriorityLevel {
    queue: VecDeque<QueuedRequest>,
    delayed: VecDeque<QueuedRequest>,
}

impl PriorityLevel {
    fn len(&self) -> usize {
        self.queue.len() + self.delayed.len()
    }

    fn remove(&mut self, id: u64) -> bool {
        [&mut self.queue, &mut self.delayed].into_iter().any(|queue| {
            let found = queue.iter().position(|queued| queued.ticket.id == id);
            found.is_some_and(|at| queue.remove(at).is_some())
        })
    }
}

/// All levels; only those with waiting requests exist, as there may be 2^64 - 1.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    levels: OrderedMap<u64, PriorityLevel>,
    last_level: u64,
    default_level: u64,
    default_policy: QueuePolicy,
    policies: OrderedMap<u64, QueuePolicy>,
    len: usize,
}

impl PriorityQueue {
    pub(super) fn from_config(batching: &ModelDynamicBatching) -> Self {
        Self {
            last_level: batching.priority_levels,
            default_level: batching.default_priority_level,
            default_policy: batching
                .default_queue_policy
                .as_ref()
                .map(QueuePolicy::from_config)
                .unwrap_or_default(),
            policies: batching
                .priority_queue_policy
                .iter()
                .map(|(&level, policy)| (level, QueuePolicy::from_config(policy)))
                .collect(),
            ..Self::default()
        }
    }

    /// Whether all requests wait in one line, as long as it takes and however many they are.
    pub(super) fn is_plain(&self) -> bool {
        self.last_level == 0 && self.policy(0).is_plain()
    }

    fn level_of(&self, ticket: &ScheduleTicket) -> u64 {
        match ticket.priority {
            _ if self.last_level == 0 => 0,
            0 => self.default_level,
            priority if priority > self.last_level => self.default_level,
            priority => priority,
        }
    }

    fn policy(&self, level: u64) -> QueuePolicy {
        self.policies.get(&level).copied().unwrap_or(self.default_policy)
    }

    pub(super) fn push(&mut self, ticket: ScheduleTicket, now: Nanos) -> Result<(), QueueRefusal> {
        let number = self.level_of(&ticket);
        let policy = self.policy(number);
        let waiting = self.levels.get(&number).map_or(0, PriorityLevel::len);
        if policy.max_size.is_some_and(|most| waiting >= most) {
            return Err(QueueRefusal::QueueFull);
        }
        let deadline = policy.deadline(&ticket, now);
        self.levels.entry(number).or_default().queue.push_back(QueuedRequest {
            ticket,
            enqueued: now,
            deadline,
        });
        self.len += 1;
        Ok(())
    }

    /// Applies the policies to the first requests, in the order in which they would run, until `wanted` of a request
    /// says `false`. Gives the ids of those that are refused.
    pub(super) fn expire(
        &mut self,
        now: Nanos,
        mut wanted: impl FnMut(&QueuedRequest) -> bool,
    ) -> Vec<u64> {
        let mut refused = Vec::new();
        'levels: for (number, level) in &mut self.levels {
            let policy = self.policies.get(number).copied().unwrap_or(self.default_policy);
            let mut at = 0;
            while let Some(queued) = level.queue.get(at) {
                let over = queued.deadline.is_some_and(|deadline| deadline <= now);
                if !over {
                    if !wanted(queued) {
                        break 'levels;
                    }
                    at += 1;
                } else if let Some(queued) = level.queue.remove(at) {
                    if policy.delay_expired {
                        level.delayed.push_back(QueuedRequest { deadline: None, ..queued });
                    } else {
                        refused.push(queued.ticket.id);
                    }
                }
            }
            if !level.delayed.iter().all(&mut wanted) {
                break;
            }
        }
        self.len -= refused.len();
        self.levels.retain(|_, level| level.len() > 0);
        refused
    }

    /// The requests in the order in which they would run.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.levels.values().flat_map(|level| level.queue.iter().chain(&level.delayed))
    }

    /// Takes the first `count` requests out.
    pub(super) fn take(&mut self, count: usize) -> Vec<u64> {
        let mut taken = Vec::with_capacity(count);
        for level in self.levels.values_mut() {
            while taken.len() < count {
                let Some(queued) = level.queue.pop_front().or_else(|| level.delayed.pop_front())
                else {
                    break;
                };
                taken.push(queued.ticket.id);
            }
        }
        self.len -= taken.len();
        self.levels.retain(|_, level| level.len() > 0);
        taken
    }

    pub(super) fn remove(&mut self, id: u64) -> bool {
        let removed = self.levels.values_mut().any(|level| level.remove(id));
        if removed {
            self.len -= 1;
            self.levels.retain(|_, level| level.len() > 0);
        }
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}
