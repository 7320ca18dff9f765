//! The scheduler of models that ask for none: each request is an execution of its own, in order of arrival.

use std::collections::VecDeque;

use super::{Ahead, Batch, Decision, Early, Nanos, Refusal, Scheduler, Ticket};

/// First come, first served, one at a time. Priorities and timeouts have no effect.
#[derive(Debug, Default)]
pub struct DefaultScheduler {
    waiting: VecDeque<u64>,
}

impl Scheduler for DefaultScheduler {
    fn enqueue(&mut self, ticket: Ticket, _now: Nanos) -> Result<(), Refusal> {
        self.waiting.push_back(ticket.id);
        Ok(())
    }

    fn poll(&mut self, _now: Nanos, free: &[bool]) -> Decision {
        if !free.contains(&true) {
            return Decision::Idle;
        }
        self.waiting.pop_front().map_or(Decision::Idle, |id| Decision::Dispatch(Batch::of([id])))
    }

    fn early(&self) -> Early {
        Early::Always
    }

    fn cancel(&mut self, id: u64, _now: Nanos) -> Vec<u64> {
        let found = self.waiting.iter().position(|&waiting| waiting == id);
        found.and_then(|at| self.waiting.remove(at)).into_iter().collect()
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn ahead(&self, ticket: &Ticket) -> Ahead {
        // The others are taken to be alike.
        Ahead { batches: self.waiting.len(), size: ticket.batch_size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_run_alone_in_order_when_an_instance_is_free() {
        let mut scheduler = DefaultScheduler::default();
        for id in 0..3 {
            scheduler.enqueue(Ticket { id, batch_size: 1, ..Ticket::default() }, 0).unwrap();
        }
        assert_eq!(scheduler.poll(0, &[false]), Decision::Idle);
        let next = Ticket { batch_size: 4, ..Ticket::default() };
        assert_eq!(scheduler.ahead(&next), Ahead { batches: 3, size: 4 });
        assert_eq!(scheduler.cancel(1, 0), [1]);
        assert!(scheduler.cancel(1, 0).is_empty());
        assert_eq!(scheduler.poll(0, &[true]), Decision::Dispatch(Batch::of([0])));
        assert_eq!(scheduler.poll(0, &[true]), Decision::Dispatch(Batch::of([2])));
        assert_eq!((scheduler.poll(0, &[true]), scheduler.pending()), (Decision::Idle, 0));
    }
}
