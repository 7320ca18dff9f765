//! The scheduler of models that ask for none: each request is an execution of its own, in order of arrival.

use std::collections::VecDeque;

use super::{
    Nanos, PipelineDepth, QueueRefusal, RequestScheduler, ScheduleDecision, ScheduleTicket,
    ScheduledBatch, WorkAhead,
};

/// First come, first served, one at a time. Priorities and timeouts have no effect.
#[derive(Debug, Default)]
pub struct DefaultScheduler {
    waiting: VecDeque<u64>,
}

impl RequestScheduler for DefaultScheduler {
    fn enqueue(&mut self, ticket: ScheduleTicket, _now: Nanos) -> Result<(), QueueRefusal> {
        self.waiting.push_back(ticket.id);
        Ok(())
    }

    fn poll(&mut self, _now: Nanos, free: &[bool]) -> ScheduleDecision {
        if !free.contains(&true) {
            return ScheduleDecision::Idle;
        }
        self.waiting.pop_front().map_or(ScheduleDecision::Idle, |id| {
            ScheduleDecision::Dispatch(ScheduledBatch::of([id]))
        })
    }

    fn early(&self) -> PipelineDepth {
        PipelineDepth::Always
    }

    fn cancel(&mut self, id: u64, _now: Nanos) -> Vec<u64> {
        let found = self.waiting.iter().position(|&waiting| waiting == id);
        found.and_then(|at| self.waiting.remove(at)).into_iter().collect()
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn ahead(&self, ticket: &ScheduleTicket) -> WorkAhead {
        // The others are taken to be alike.
        WorkAhead { batches: self.waiting.len(), size: ticket.batch_size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_run_alone_in_order_when_an_instance_is_free() {
        let mut scheduler = DefaultScheduler::default();
        for id in 0..3 {
            scheduler
                .enqueue(ScheduleTicket { id, batch_size: 1, ..ScheduleTicket::default() }, 0)
                .unwrap();
        }
        assert_eq!(scheduler.poll(0, &[false]), ScheduleDecision::Idle);
        let next = ScheduleTicket { batch_size: 4, ..ScheduleTicket::default() };
        assert_eq!(scheduler.ahead(&next), WorkAhead { batches: 3, size: 4 });
        assert_eq!(scheduler.cancel(1, 0), [1]);
        assert!(scheduler.cancel(1, 0).is_empty());
        assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([0])));
        assert_eq!(scheduler.poll(0, &[true]), ScheduleDecision::Dispatch(ScheduledBatch::of([2])));
        assert_eq!((scheduler.poll(0, &[true]), scheduler.pending()), (ScheduleDecision::Idle, 0));
    }
}
