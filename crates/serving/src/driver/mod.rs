//! Drives the policies: a [`Lane`] for each model version, threads for its instances, and one clock for all.

mod gate;
mod inline;
mod lane;
mod ordered;
mod timer;
mod times;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::backend::ModelInstance;
use crate::config::inference::ModelRateLimiter;
use crate::error::Error;
use crate::goal::Admission;
use crate::payload::{ActiveRequest, ExecutionContext};
use crate::rate_limiter::{Device, ResourceLimit};
use crate::request::{InferenceRequest, ResponseSink};
use crate::schedule::{Scheduler, SequenceMark, Ticket};
use crate::sequence::SequencePlan;
use gate::Gates;
pub(crate) use inline::is_inside;
use lane::{Lane, Policy};
use timer::Timer;

/// All lanes that run, and their clock.
pub struct Driver {
    timer: Arc<Timer>,
    next_lane: AtomicU64,
    lanes: Mutex<Vec<Weak<Lane>>>,
    gates: Option<Arc<Gates>>,
}

/// A request that was not taken.
pub struct Refused {
    /// Why not.
    pub error: Error,
    /// The request and its sink, if it came too late: whatever has taken this version's place may take it.
    pub again: Option<Box<(InferenceRequest, ResponseSink)>>,
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, again: None }
    }
}

/// An instance as the driver takes it.
pub struct Seat {
    /// Name of its thread.
    pub name: String,
    /// What executes.
    pub instance: Box<dyn ModelInstance>,
    /// Resources that it needs, where the server limits executions.
    pub limits: Option<ModelRateLimiter>,
    /// Where these resources are.
    pub device: Device,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Starts the clock's thread. With `limits`, even empty ones, executions are limited by resources.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(limits: Option<Vec<ResourceLimit>>) -> Result<Self, Error> {
        Ok(Self {
            timer: Timer::start()?,
            next_lane: AtomicU64::new(0),
            lanes: Mutex::default(),
            gates: limits.map(Gates::new),
        })
    }

    /// Adds a model version: its scheduler, which requests it takes, what its sequences need, and its instances, given
    /// by name, each of which gets a thread.
    ///
    /// # Errors
    /// When the system gives no thread, or an instance needs more of a resource than there is.
    pub fn add(
        &self,
        context: &Arc<ExecutionContext>,
        scheduler: Box<dyn Scheduler>,
        admission: Admission,
        ordered: bool,
        sequences: Option<Arc<SequencePlan>>,
        seats: Vec<Seat>,
    ) -> Result<DriverHandle, Error> {
        let number = self.next_lane.fetch_add(1, Ordering::Relaxed);
        let mut through = Vec::new();
        if let Some(gates) = &self.gates {
            for seat in &seats {
                through.push(gates.gate(seat.limits.as_ref(), seat.device)?);
            }
        }
        let (names, instances): (Vec<String>, Vec<_>) =
            seats.into_iter().map(|seat| (seat.name, seat.instance)).unzip();
        let policy = Policy { scheduler, admission, ordered, sequences };
        let lane = Lane::new(number, context, &self.timer, policy, instances, through);
        let handle = DriverHandle {
            lane: Arc::clone(&lane),
            next_id: AtomicU64::new(0),
            context: Arc::clone(context),
            threads: Mutex::default(),
        };
        for (number, name) in names.into_iter().enumerate() {
            let lane = Arc::clone(&lane);
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || run_instance(&lane, number))
                .map_err(|error| {
                    // Those that have started end.
                    handle.lane.close();
                    Error::internal(format!("cannot start an instance's thread: {error}"))
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

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The way to one model version.
pub struct DriverHandle {
    lane: Arc<Lane>,
    next_id: AtomicU64,
    context: Arc<ExecutionContext>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
        mut ticket: Ticket,
        sink: ResponseSink,
    ) -> Result<(), Refused> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        ticket.id = id;
        ticket.sequence = SequenceMark {
            correlation: request.correlation.clone(),
            start: request.sequence_start,
            end: request.sequence_end,
        };
        let cancel = request.cancel.clone();
        let mut request =
            ActiveRequest::new(request, ticket.batch_size, Arc::clone(&self.context), sink);
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

fn run_instance(lane: &Lane, number: usize) {
    while let Some(payload) = lane.next(number) {
        lane.execute(number, payload);
    }
}

#[cfg(test)]
mod early_tests;

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
