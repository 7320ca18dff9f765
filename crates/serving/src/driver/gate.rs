//! Instances that share resources: an instance passes its gate before each execution and leaves it behind.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::config::inference::ModelRateLimiter;
use crate::error::ServingError;
use crate::rate_limiter::{InstanceId, RateLimiter, ResourceDevice, ResourceLimit};

#[derive(Debug)]
struct LimiterState {
    limiter: RateLimiter,
    /// Instances that may run and have not begun.
    granted: HashSet<InstanceId>,
}

impl LimiterState {
    /// Writes to the log, where that tells much, how much there is of each resource.
    fn tell(&self) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let map = self.limiter.resource_map();
            if !map.is_empty() {
                tracing::debug!("{map}");
            }
        }
    }
}

/// The rate limiter of a server.
#[derive(Debug)]
pub(super) struct RateLimiterGates {
    state: Mutex<LimiterState>,
    changed: Condvar,
}

impl RateLimiterGates {
    pub(super) fn new(limits: Vec<ResourceLimit>) -> Arc<Self> {
        let state = LimiterState { limiter: RateLimiter::new(limits), granted: HashSet::new() };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// The gate of a new instance.
    ///
    /// # Errors
    /// When it needs more of a resource than there is.
    pub(super) fn gate(
        self: &Arc<Self>,
        wishes: Option<&ModelRateLimiter>,
        device: ResourceDevice,
    ) -> Result<InstanceGate, ServingError> {
        let mut state = self.state();
        let id = state.limiter.register(wishes, device)?;
        state.tell();
        drop(state);
        Ok(InstanceGate { gates: Arc::clone(self), id })
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut LimiterState) -> Vec<InstanceId>) {
        let mut state = self.state();
        let granted = change(&mut state);
        if !granted.is_empty() {
            state.granted.extend(granted);
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// The gate of one instance; dropping it gives up what it holds.
#[derive(Debug)]
pub(super) struct InstanceGate {
    gates: Arc<RateLimiterGates>,
    id: InstanceId,
}

impl InstanceGate {
    /// Waits until the instance may run; `false` when `stopped` came first.
    pub(super) fn pass(&self, stopped: impl Fn() -> bool) -> bool {
        self.gates.change(|state| state.limiter.request(self.id));
        let mut state = self.gates.state();
        while !state.granted.remove(&self.id) {
            if stopped() {
                drop(state);
                self.leave_unused();
                return false;
            }
            state = self.gates.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// The instance has ended an execution and has work for another one or not.
    pub(super) fn leave(&self, has_work: bool) {
        self.gates.change(|state| {
            let limiter = &mut state.limiter;
            if has_work { limiter.renew(self.id) } else { limiter.release(self.id) }
        });
    }

    /// The instance does not run after all.
    pub(super) fn leave_unused(&self) {
        self.gates.change(|state| {
            state.granted.remove(&self.id);
            state.limiter.cancel(self.id)
        });
    }

    /// Wakes those that wait, so that they see that they have to stop.
    pub(super) fn wake(&self) {
        // The lock makes sure that nobody is between looking and waiting.
        drop(self.gates.state());
        self.gates.changed.notify_all();
    }
}

impl Drop for InstanceGate {
    fn drop(&mut self) {
        self.gates.change(|state| {
            state.granted.remove(&self.id);
            let granted = state.limiter.unregister(self.id);
            state.tell();
            granted
        });
    }
}
