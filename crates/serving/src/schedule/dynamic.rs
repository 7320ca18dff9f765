//! The dynamic batcher: requests that wait together run together.

use super::queue::{PriorityQueue, QueuedRequest};
use super::{
    Nanos, PipelineDepth, QueueExpiry, QueueRefusal, RequestScheduler, ScheduleDecision,
    ScheduleTicket, ScheduledBatch, WorkAhead, earlier,
};
use crate::config::inference::ModelDynamicBatching;

/// Settings of the dynamic batcher.
#[derive(Clone, Debug, Default)]
pub struct DynamicOptions {
    /// Largest batch; 1 for models that do not batch.
    pub max_batch_size: u64,
    /// Sizes at which a batch is sent without waiting for more, ascending.
    pub preferred: Vec<u64>,
    /// How long the oldest request of a batch may wait for company.
    pub max_delay: Nanos,
    /// Levels, their policies and the default level.
    pub queue: ModelDynamicBatching,
    /// Holds everything back until so many requests wait, once; 0 for never.
    pub hold_until: usize,
}

impl DynamicOptions {
    /// Reads the settings; `max_batch_size` is the model's, 0 if it does not batch.
    #[must_use]
    pub fn from_config(batching: &ModelDynamicBatching, max_batch_size: i32) -> Self {
        let max_batch_size = u64::try_from(max_batch_size).unwrap_or(0).max(1);
        let mut preferred: Vec<u64> = batching
            .preferred_batch_size
            .iter()
            .filter_map(|&size| u64::try_from(size).ok())
            .collect();
        if preferred.is_empty() {
            preferred.push(max_batch_size);
        }
        preferred.sort_unstable();
        Self {
            max_batch_size,
            preferred,
            max_delay: batching.max_queue_delay_microseconds.saturating_mul(1000),
            queue: batching.clone(),
            hold_until: 0,
        }
    }
}

/// State of the dynamic batcher.
#[derive(Debug)]
pub struct DynamicScheduler {
    max_batch_size: u64,
    preferred: Vec<u64>,
    largest_preferred: u64,
    max_delay: Nanos,
    hold_until: usize,
    queue: PriorityQueue,
}

/// The requests at the head of the queue that fit one batch.
#[derive(Debug, Default)]
struct QueueHead {
    count: usize,
    size: u64,
    /// Requests up to the last point at which the size was a preferred one, or at which going on would pass the
    /// largest.
    best_count: usize,
    /// The batch can take nothing more: the next request does not fit.
    closed: bool,
    /// When the first of them has waited long enough for company.
    due: Option<Nanos>,
    next_deadline: Option<Nanos>,
}

impl DynamicScheduler {
    /// An empty queue.
    #[must_use]
    pub fn new(options: DynamicOptions) -> Self {
        Self {
            max_batch_size: options.max_batch_size,
            largest_preferred: options.preferred.last().copied().unwrap_or(options.max_batch_size),
            preferred: options.preferred,
            max_delay: options.max_delay,
            hold_until: options.hold_until,
            queue: PriorityQueue::from_config(&options.queue),
        }
    }

    fn head(&self) -> QueueHead {
        let mut head = QueueHead::default();
        let mut first: Option<&QueuedRequest> = None;
        for queued in self.queue.iter() {
            let size = queued.ticket.batch_size;
            if let Some(first) = first {
                if head.size + size > self.largest_preferred && head.best_count == 0 {
                    head.best_count = head.count;
                }
                if head.size + size > self.max_batch_size || queued.ticket.key != first.ticket.key {
                    head.closed = true;
                    break;
                }
            }
            first = first.or(Some(queued));
            head.count += 1;
            head.size += size;
            let patience = queued.ticket.patience.unwrap_or(Nanos::MAX).min(self.max_delay);
            head.due = earlier(head.due, Some(queued.enqueued.saturating_add(patience)));
            head.next_deadline = earlier(head.next_deadline, queued.deadline);
            if self.preferred.contains(&head.size) {
                head.best_count = head.count;
            }
        }
        head
    }

    /// Applies timeouts to the requests that the next batch would reach. Requests further back are looked at when
    /// their turn comes, as Triton does.
    fn expire(&mut self, now: Nanos) -> Vec<u64> {
        let limit = self.max_batch_size;
        let mut size = 0;
        self.queue.expire(now, |queued| {
            let reached = size == 0 || size + queued.ticket.batch_size <= limit;
            size += queued.ticket.batch_size;
            reached && size < limit
        })
    }
}

impl RequestScheduler for DynamicScheduler {
    fn enqueue(&mut self, ticket: ScheduleTicket, now: Nanos) -> Result<(), QueueRefusal> {
        self.queue.push(ticket, now)
    }

    fn poll(&mut self, now: Nanos, free: &[bool]) -> ScheduleDecision {
        let expired = self.expire(now);
        if !expired.is_empty() {
            return ScheduleDecision::Expire(expired, QueueExpiry::Request);
        }
        let head = self.head();
        if !free.contains(&true) || self.queue.len() < self.hold_until {
            // A request whose time is over is told so then, not when an instance has come free.
            return head.next_deadline.map_or(ScheduleDecision::Idle, ScheduleDecision::WaitUntil);
        }
        self.hold_until = 0;
        let Some(due) = head.due else { return ScheduleDecision::Idle };
        let overdue = self.max_delay > 0 && now >= due;
        if head.best_count > 0 && !overdue {
            return ScheduleDecision::Dispatch(ScheduledBatch::of(
                self.queue.take(head.best_count),
            ));
        }
        if head.closed || head.size >= self.largest_preferred || overdue || self.max_delay == 0 {
            return ScheduleDecision::Dispatch(ScheduledBatch::of(self.queue.take(head.count)));
        }
        ScheduleDecision::WaitUntil(head.next_deadline.map_or(due, |deadline| due.min(deadline)))
    }

    fn early(&self) -> PipelineDepth {
        if self.queue.is_plain() { PipelineDepth::WhereShort } else { PipelineDepth::Never }
    }

    fn cancel(&mut self, id: u64, _now: Nanos) -> Vec<u64> {
        if self.queue.remove(id) { vec![id] } else { Vec::new() }
    }

    fn drain(&mut self, _now: Nanos) {
        self.max_delay = 0;
        self.hold_until = 0;
    }

    fn pending(&self) -> usize {
        self.queue.len()
    }

    fn ahead(&self, ticket: &ScheduleTicket) -> WorkAhead {
        let items: u64 = self.queue.iter().map(|queued| queued.ticket.batch_size).sum();
        let before = items.saturating_add(ticket.batch_size).saturating_sub(1);
        let batches = before.checked_div(self.max_batch_size).unwrap_or(0);
        WorkAhead {
            batches: usize::try_from(batches).unwrap_or(usize::MAX),
            size: self.max_batch_size,
        }
    }
}

#[cfg(test)]
#[path = "dynamic_tests.rs"]
mod tests;
