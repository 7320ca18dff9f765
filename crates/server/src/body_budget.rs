//! One budget of memory for the bodies of requests that have not come as a whole.
//!
//! Whoever sends a body takes from the budget what has come of it, in steps, and gives it back when the body is
//! complete. Where nothing is left, bodies stay unread for a while, and then their requests are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of each body that the budget does not count, as it does not count heads.
const FREE_BYTES: usize = 64 * 1024;
/// Bytes that a body takes from the budget at once.
const STEP_BYTES: usize = 1 << 20;
/// Largest budget, in bytes.
const MAX_BUDGET_BYTES: u64 = 1 << 30;
/// Part of the machine's memory that is the budget, if that is less.
const MEMORY_PART: u64 = 8;
/// Longest wait of a body for others to be complete.
const PATIENCE: Duration = Duration::from_secs(10);

/// Least number of bytes for which it is asked whether the system has them.
const MIN_PROBED_BYTES: usize = 1 << 20;

/// Returns whether the system gives so much memory at once. An allocation that fails ends the process, so whoever needs
/// much asks before. Address space is asked for, and no memory is touched.
#[must_use]
pub fn has_memory(bytes: usize) -> bool {
    if bytes < MIN_PROBED_BYTES {
        return true;
    }
    let mut probe = Vec::<u8>::new();
    let found = probe.try_reserve_exact(bytes).is_ok();
    // What nobody looks at is not even asked for.
    std::hint::black_box(&probe);
    found
}

/// The budget of a server.
#[derive(Debug)]
pub struct BodyBudget {
    steps: Arc<Semaphore>,
    /// Steps that one body may take. A body that is longer than the budget may come when it is alone.
    most_steps: usize,
    /// Number of times that not enough was left.
    refusals: Arc<AtomicU64>,
}

impl BodyBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let steps = usize::try_from(bytes).unwrap_or(usize::MAX) / STEP_BYTES;
        let steps = steps.clamp(1, Semaphore::MAX_PERMITS);
        let most_steps = (steps / 4 * 3).max(1);
        Self { steps: Arc::new(Semaphore::new(steps)), most_steps, refusals: Arc::default() }
    }

    /// The budget of a machine with so much memory: an eighth of it, and at most 1 GiB.
    #[must_use]
    pub fn of_machine(memory: Option<u64>) -> Self {
        Self::new(
            memory.map_or(MAX_BUDGET_BYTES, |bytes| (bytes / MEMORY_PART).min(MAX_BUDGET_BYTES)),
        )
    }

    /// Takes what so many bytes need, all at once, as soon as it is free.
    ///
    /// # Errors
    /// Fails when not enough becomes free in time.
    pub async fn take(&self, bytes: usize) -> Result<BodyLease, BudgetExhausted> {
        let mut lease = self.begin();
        let steps = bytes.saturating_sub(FREE_BYTES).div_ceil(STEP_BYTES).min(self.most_steps);
        let Ok(wanted) = u32::try_from(steps) else { return Err(BudgetExhausted) };
        if wanted > 0 {
            let free = Arc::clone(&self.steps).acquire_many_owned(wanted);
            // The semaphore is never closed.
            let taken = tokio::time::timeout(PATIENCE, free).await;
            let Ok(Ok(taken)) = taken else { return Err(lease.refused()) };
            lease.add(taken);
        }
        Ok(lease)
    }

    /// Begins a body.
    #[must_use]
    pub fn begin(&self) -> BodyLease {
        let budget = Some((Arc::clone(&self.steps), Arc::clone(&self.refusals)));
        BodyLease { budget, most_steps: self.most_steps, taken: None }
    }

    /// Number of requests or answers so far for which not enough was left.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

/// Part of the budget that a body has taken; it is given back when this is dropped.
#[derive(Debug, Default)]
pub struct BodyLease {
    /// The budget and its count of refusals; none for a body that takes what it wants.
    budget: Option<(Arc<Semaphore>, Arc<AtomicU64>)>,
    most_steps: usize,
    taken: Option<OwnedSemaphorePermit>,
}

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExhausted;

impl BodyLease {
    /// Returns how many bytes may come behind those that have come; nothing where more must be taken first.
    #[must_use]
    pub fn room(&self, come: usize) -> Option<usize> {
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if self.budget.is_none() || taken >= self.most_steps {
            return Some(usize::MAX);
        }
        (FREE_BYTES + taken * STEP_BYTES).checked_sub(come).filter(|room| *room > 0)
    }

    /// Takes more, when there is some.
    ///
    /// # Errors
    /// Fails when nothing becomes free in time.
    pub async fn grow(&mut self) -> Result<(), BudgetExhausted> {
        let Some((steps, _)) = &self.budget else { return Ok(()) };
        let free = tokio::time::timeout(PATIENCE, Arc::clone(steps).acquire_owned());
        // The semaphore is never closed.
        let Ok(Ok(step)) = free.await else { return Err(self.refused()) };
        self.add(step);
        Ok(())
    }

    /// Takes as much as it needs for so many bytes, at once.
    ///
    /// # Errors
    /// Fails when so much is not free.
    pub fn cover(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        while self.room(bytes).is_none() {
            let Some((steps, _)) = &self.budget else { return Ok(()) };
            let step = Arc::clone(steps).try_acquire_owned().map_err(|_| self.refused())?;
            self.add(step);
        }
        Ok(())
    }

    /// Gives back what is more than so many bytes need.
    pub fn shrink(&mut self, bytes: usize) {
        let needed = bytes.saturating_sub(FREE_BYTES).div_ceil(STEP_BYTES);
        let Some(taken) = &mut self.taken else { return };
        let spare = taken.num_permits().saturating_sub(needed);
        drop(taken.split(spare));
    }

    /// Bytes that give this memory back when nobody holds them any more.
    #[must_use]
    pub fn hold(self, bytes: Bytes) -> Bytes {
        match self.taken {
            None => bytes,
            Some(_) => Bytes::from_owner(BudgetedBytes { bytes, _lease: self }),
        }
    }

    fn refused(&self) -> BudgetExhausted {
        if let Some((_, refusals)) = &self.budget {
            refusals.fetch_add(1, Ordering::Relaxed);
        }
        BudgetExhausted
    }

    fn add(&mut self, step: OwnedSemaphorePermit) {
        match &mut self.taken {
            Some(taken) => taken.merge(step),
            None => self.taken = Some(step),
        }
    }
}

/// Bytes with their part of the budget.
struct BudgetedBytes {
    bytes: Bytes,
    _lease: BodyLease,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nobody_has_is_not_there() {
        assert!(has_memory(0) && has_memory(MIN_PROBED_BYTES));
        assert!(!has_memory(usize::MAX / 2) && !has_memory(1 << 46));
    }

    #[test]
    fn budgets_are_a_part_of_memory_and_bounded() {
        let steps = |memory| BodyBudget::of_machine(memory).steps.available_permits();
        assert_eq!(steps(None), 1024);
        assert_eq!(steps(Some(64 << 30)), 1024);
        assert_eq!(steps(Some(2 << 30)), 256);
        assert_eq!(steps(Some(0)), 1);
    }

    #[test]
    fn short_bodies_take_nothing_and_long_ones_what_has_come() {
        let budget = BodyBudget::new(8 << 20);
        let mut short = budget.begin();
        assert_eq!(short.room(0), Some(FREE_BYTES));
        assert_eq!(short.room(FREE_BYTES), None);
        short.cover(FREE_BYTES - 1).unwrap();
        assert_eq!(budget.steps.available_permits(), 8);
        let mut long = budget.begin();
        long.cover(3 << 20).unwrap();
        assert_eq!(budget.steps.available_permits(), 5);
        let mut other = budget.begin();
        other.cover(5 << 20).unwrap();
        assert_eq!(short.cover(FREE_BYTES), Err(BudgetExhausted));
        assert_eq!(budget.refusals(), 1);
        drop(long);
        short.cover(FREE_BYTES).unwrap();
        drop((short, other));
        assert_eq!(budget.steps.available_permits(), 8);
    }

    #[test]
    fn memory_goes_with_bytes_and_comes_back_as_they_get_fewer() {
        let budget = BodyBudget::new(8 << 20);
        let mut lease = budget.begin();
        lease.cover(4 << 20).unwrap();
        assert_eq!(budget.steps.available_permits(), 4);
        lease.shrink((2 << 20) + FREE_BYTES);
        assert_eq!(budget.steps.available_permits(), 6);
        lease.shrink(usize::MAX);
        assert_eq!(budget.steps.available_permits(), 6);
        let held = lease.hold(Bytes::from_static(b"abc"));
        let part = held.slice(1..);
        drop(held);
        assert_eq!((&part[..], budget.steps.available_permits()), (&b"bc"[..], 6));
        drop(part);
        assert_eq!(budget.steps.available_permits(), 8);
    }

    #[test]
    fn a_body_longer_than_the_budget_comes_when_it_is_alone() {
        let budget = BodyBudget::new(8 << 20);
        let mut huge = budget.begin();
        huge.cover(1 << 30).unwrap();
        assert_eq!(budget.steps.available_permits(), 2);
        assert_eq!(BodyLease::default().room(usize::MAX), Some(usize::MAX));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_reads_leave_no_room_for_others() {
        let budget = BodyBudget::new(8 << 20);
        let short = budget.take(FREE_BYTES).await.unwrap();
        assert_eq!(budget.steps.available_permits(), 8);
        let unread = budget.take(6 << 20).await.unwrap();
        assert_eq!(budget.steps.available_permits(), 2);
        assert_eq!(budget.take(3 << 20).await.unwrap_err(), BudgetExhausted);
        drop((short, unread));
        // One answer that is longer than the budget may leave.
        drop(budget.take(usize::MAX).await.unwrap());
        assert_eq!(budget.steps.available_permits(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_for_others_and_is_refused_when_they_take_too_long() {
        let budget = BodyBudget::new(1 << 20);
        let mut first = budget.begin();
        first.grow().await.unwrap();
        let mut second = budget.begin();
        assert_eq!(second.grow().await, Err(BudgetExhausted));
        let waiting = tokio::spawn(async move { second.grow().await });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
