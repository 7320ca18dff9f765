//! Drives the policies: a [`ModelLane`] for each model version, threads for its instances, and one clock for all.

mod gate;
mod inline;
mod instance_threads;
mod lane;
mod ordered;
mod seat;
mod timer;
mod times;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::inference::ModelRateLimiter;
use crate::error::ServingError;
use crate::latency_target::AdmissionRule;
use crate::payload::{ActiveRequest, ExecutionContext};
use crate::rate_limiter::{ResourceDevice, ResourceLimit};
use crate::request::{InferenceRequest, ResponseSink};
use crate::schedule::{InstanceMoves, RequestScheduler, ScheduleTicket, SequenceMark};
use crate::sequence::SequencePlan;
use gate::RateLimiterGates;
pub(crate) use inline::is_inside;
use instance_threads::{InstanceThreads, ThreadReservation};
use lane::{LanePolicy, ModelLane};
pub use seat::SeatedInstance;
use timer::LaneTimer;

/// All lanes that run, and their clock.
pub struct LaneDriver {
    timer: Arc<LaneTimer>,
    next_lane: AtomicU64,
    lanes: Mutex<Vec<Weak<ModelLane>>>,
    threads: InstanceThreads,
    gates: Option<Arc<RateLimiterGates>>,
}

/// A request that was not taken.
pub struct RefusedRequest {
    /// Why not.
    pub error: ServingError,
    /// The request and its sink, if it came too late: whatever has taken this version's place may take it.
    pub again: Option<Box<(InferenceRequest, ResponseSink)>>,
}

impl fmt::Debug for RefusedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl From<ServingError> for RefusedRequest {
    fn from(error: ServingError) -> Self {
        Self { error, again: None }
    }
}

/// An instance as the driver takes it.
pub struct InstanceSeat {
    /// Name of its thread.
    pub name: String,
    /// Instance that executes.
    pub instance: SeatedInstance,
    /// Resources that it needs, where the server limits executions.
    pub limits: Option<ModelRateLimiter>,
    /// Where these resources are.
    pub device: ResourceDevice,
    /// It only ends what another version has begun on it; such ones come last.
    pub leaves: bool,
}

impl fmt::Debug for InstanceSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for LaneDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl LaneDriver {
    /// Starts the clock's thread. With `limits`, even empty ones, executions are limited by resources.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(limits: Option<Vec<ResourceLimit>>) -> Result<Self, ServingError> {
        Ok(Self {
            timer: LaneTimer::start()?,
            next_lane: AtomicU64::new(0),
            lanes: Mutex::default(),
            threads: InstanceThreads::default(),
            gates: limits.map(RateLimiterGates::new),
        })
    }

    /// Adds a model version: its scheduler, which requests it takes, what its sequences need, and its instances, given
    /// by name, each of which gets a thread.
    ///
    /// # Errors
    /// When the system gives no thread, the instances of all models have too many, or one needs more of a resource than
    /// there is.
    pub fn add(
        &self,
        context: &Arc<ExecutionContext>,
        scheduler: Box<dyn RequestScheduler>,
        admission: AdmissionRule,
        ordered: bool,
        sequences: Option<Arc<SequencePlan>>,
        seats: Vec<InstanceSeat>,
    ) -> Result<DriverHandle, ServingError> {
        let reservation = self.threads.reserve(seats.len())?;
        let number = self.next_lane.fetch_add(1, Ordering::Relaxed);
        let mut through = Vec::new();
        if let Some(gates) = &self.gates {
            for seat in &seats {
                through.push(gates.gate(seat.limits.as_ref(), seat.device)?);
            }
        }
        let seated = seats.iter().filter(|seat| !seat.leaves).count();
        let (names, instances): (Vec<String>, Vec<_>) =
            seats.into_iter().map(|seat| (seat.name, seat.instance)).unzip();
        let policy = LanePolicy { scheduler, admission, ordered, sequences, seated };
        let lane = ModelLane::new(number, context, &self.timer, policy, instances, through);
        let handle = DriverHandle {
            lane: Arc::clone(&lane),
            next_id: AtomicU64::new(0),
            context: Arc::clone(context),
            threads: Mutex::default(),
            _reservation: reservation,
        };
        for (number, name) in names.into_iter().enumerate() {
            let lane = Arc::clone(&lane);
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || run_instance(&lane, number))
                .map_err(|error| {
                    // Those that have started end.
                    handle.lane.close();
                    ServingError::internal(format!("cannot start an instance's thread: {error}"))
                })?;
            handle.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&lane));
        Ok(handle)
    }

    /// Ends all lanes and the clock. Requests that still wait are answered UNAVAILABLE.
    pub fn stop(&self) {
        let lanes = std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        for lane in lanes.iter().filter_map(Weak::upgrade) {
            lane.close();
        }
        self.timer.stop();
    }
}

impl Drop for LaneDriver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The way to one model version.
pub struct DriverHandle {
    lane: Arc<ModelLane>,
    next_id: AtomicU64,
    context: Arc<ExecutionContext>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _reservation: ThreadReservation,
}

impl fmt::Debug for DriverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverHandle").field("model", &self.context.name).finish_non_exhaustive()
    }
}

impl DriverHandle {
    /// Hands a checked request to the scheduler.
    ///
    /// # Errors
    /// When the scheduler refuses the request; the sink is not called then.
    pub fn enqueue(
        &self,
        request: InferenceRequest,
        mut ticket: ScheduleTicket,
        sink: ResponseSink,
    ) -> Result<(), RefusedRequest> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        ticket.id = id;
        ticket.sequence = SequenceMark {
            correlation: request.correlation.clone(),
            start: request.sequence_start,
            end: request.sequence_end,
        };
        let cancel = request.cancel.clone();
        let size = request.prepared.items().unwrap_or(ticket.batch_size);
        let mut request = ActiveRequest::new(request, size, Arc::clone(&self.context), sink);
        request.goal = ticket.goal.map(Duration::from_nanos);
        self.lane.enqueue(ticket, request)?;
        let lane = Arc::downgrade(&self.lane);
        cancel.on_cancel(move || {
            if let Some(lane) = lane.upgrade() {
                lane.cancel(id);
            }
        });
        Ok(())
    }

    /// The instances in their order, for a version that goes on with some of them.
    pub(crate) fn instances(&self) -> &[SeatedInstance] {
        self.lane.instances()
    }

    /// Another version goes on with these instances, which hear nothing of the end of this one.
    pub(crate) fn hand_over(&self, instances: &[usize]) {
        self.lane.hand_over(instances);
    }

    /// Goes on with all that another version has, which takes no more requests: its policy, its waiting requests and its
    /// instances. [`resume`](Self::resume) begins with the work.
    pub(crate) fn take_over(&self, before: &Self, moves: InstanceMoves) {
        self.lane.take_over(&before.lane, moves);
        // Whoever takes a number of the other version from now on is refused there.
        self.next_id.fetch_max(before.next_id.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Begins with work that was taken over, and waits until instances have gone that nothing needs any more.
    pub(crate) fn resume(&self) {
        self.lane.resume();
        self.lane.wait_dismissed();
    }

    /// Places of the instances that stay only as long as their sequences do.
    pub(crate) fn leaving(&self) -> Vec<usize> {
        self.lane.leaving()
    }

    /// Takes no more requests. Those that were taken run without waiting for company.
    pub fn begin_drain(&self) {
        self.lane.begin_drain();
    }

    /// Takes no more requests, waits until those that were taken are answered, also where that happens after their
    /// execution, and ends the instances.
    pub fn remove(&self) {
        self.lane.begin_drain();
        self.context.wait_answered();
        self.lane.drain();
        self.join();
    }

    fn join(&self) {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!(model = %self.context.name, "an instance's thread panicked");
            }
        }
    }
}

impl Drop for DriverHandle {
    fn drop(&mut self) {
        // The instances end by themselves; whoever must see them end calls `remove`.
        self.lane.close();
    }
}

fn run_instance(lane: &ModelLane, number: usize) {
    while let Some(payload) = lane.next(number) {
        lane.execute(number, payload);
    }
    lane.end_seat(number);
}

#[cfg(test)]
mod early_tests;

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
