//! The thread that owns the schedulers: it receives events, tells the policies the time and hands their batches to
//! instances. Each instance has a thread of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::backend::ModelInstance;
use crate::error::Error;
use crate::payload::{ActiveRequest, ExecutionContext, Payload};
use crate::request::{ResponseSink, request_prefix};
use crate::schedule::{Decision, Nanos, OrderedRelease, Refusal, Scheduler, Ticket};
use crate::statistics::FailureReason;

/// Number of a model version in the driver.
type Slot = u64;

#[allow(
    clippy::large_enum_variant,
    reason = "the large variant is the frequent one: boxing it would allocate for each request"
)]
enum Event {
    Add { slot: Slot, lane: Box<Lane> },
    Enqueue { slot: Slot, ticket: Ticket, request: ActiveRequest },
    Cancel { slot: Slot, id: u64 },
    Done { slot: Slot, instance: usize },
    Remove { slot: Slot },
    Stop,
}

/// One model version in the driver.
struct Lane {
    scheduler: Box<dyn Scheduler>,
    context: Arc<ExecutionContext>,
    waiting: HashMap<u64, ActiveRequest>,
    instances: Vec<InstanceThread>,
    wake: Option<Nanos>,
}

struct InstanceThread {
    work: Sender<Payload>,
    busy: bool,
}

/// The driver's thread and the way to it.
pub struct Driver {
    events: Sender<Event>,
    next_slot: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> Result<Self, Error> {
        let (events, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("scheduler".to_owned())
            .spawn(move || DriverLoop::new(inbox).run())
            .map_err(|error| {
                Error::internal(format!("cannot start the scheduler's thread: {error}"))
            })?;
        Ok(Self { events, next_slot: AtomicU64::new(0), thread: Mutex::new(Some(thread)) })
    }

    /// Adds a model version: its scheduler and its instances, given by name, each of which gets a thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn add(
        &self,
        context: &Arc<ExecutionContext>,
        scheduler: Box<dyn Scheduler>,
        ordered: bool,
        instances: Vec<(String, Box<dyn ModelInstance>)>,
    ) -> Result<DriverHandle, Error> {
        let slot = self.next_slot.fetch_add(1, Ordering::Relaxed);
        let mut threads = Vec::with_capacity(instances.len());
        let mut joins = Vec::with_capacity(instances.len());
        for (number, (name, instance)) in instances.into_iter().enumerate() {
            let (work, inbox) = channel();
            let events = self.events.clone();
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || run_instance(instance, &inbox, &events, slot, number))
                .map_err(|error| {
                    Error::internal(format!("cannot start an instance's thread: {error}"))
                })?;
            threads.push(InstanceThread { work, busy: false });
            joins.push(thread);
        }
        let lane = Lane {
            scheduler,
            context: Arc::clone(context),
            waiting: HashMap::new(),
            instances: threads,
            wake: None,
        };
        self.send(Event::Add { slot, lane: Box::new(lane) })?;
        Ok(DriverHandle {
            events: self.events.clone(),
            slot,
            next_id: AtomicU64::new(0),
            context: Arc::clone(context),
            release: ordered.then(Arc::default),
            threads: Mutex::new(joins),
        })
    }

    fn send(&self, event: Event) -> Result<(), Error> {
        self.events.send(event).map_err(|_| stopping())
    }

    /// Ends the thread. Requests that still wait are answered UNAVAILABLE.
    pub fn stop(&self) {
        let sent = self.events.send(Event::Stop).is_ok();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (true, Some(thread)) = (sent, thread)
            && thread.join().is_err()
        {
            tracing::error!("the scheduler's thread panicked");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}

type Answer = Box<dyn FnOnce() + Send>;

/// The way to one model version in the driver.
pub struct DriverHandle {
    events: Sender<Event>,
    slot: Slot,
    next_id: AtomicU64,
    context: Arc<ExecutionContext>,
    release: Option<Arc<Mutex<OrderedRelease<Answer>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for DriverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverHandle").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl DriverHandle {
    /// Hands a checked request to the scheduler. The sink is called once, also when the driver has stopped.
    pub fn enqueue(
        &self,
        request: crate::request::InferenceRequest,
        mut ticket: Ticket,
        sink: ResponseSink,
    ) {
        ticket.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let id = ticket.id;
        let sink = match &self.release {
            Some(release) => ordered_sink(Arc::clone(release), id, sink),
            None => sink,
        };
        let cancel = request.cancel.clone();
        let request =
            ActiveRequest::new(request, ticket.batch_size, Arc::clone(&self.context), sink);
        if let Err(unsent) = self.events.send(Event::Enqueue { slot: self.slot, ticket, request }) {
            if let Event::Enqueue { request, .. } = unsent.0 {
                request.fail(FailureReason::Other, stopping());
            }
            return;
        }
        let (events, slot) = (self.events.clone(), self.slot);
        cancel.on_cancel(move || {
            // A driver that has stopped has answered the request already.
            let _stopped = events.send(Event::Cancel { slot, id });
        });
    }

    /// Takes the model version out of the driver and waits for its instances to end what they run.
    pub fn remove(&self) {
        if self.events.send(Event::Remove { slot: self.slot }).is_err() {
            return;
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!(model = %self.context.name, "an instance's thread panicked");
            }
        }
    }
}

fn ordered_sink(
    release: Arc<Mutex<OrderedRelease<Answer>>>,
    id: u64,
    sink: ResponseSink,
) -> ResponseSink {
    release.lock().unwrap_or_else(PoisonError::into_inner).admit(id);
    let mut held = Some((sink, Vec::new()));
    Box::new(move |answer| {
        let is_final = answer.is_final;
        if let Some((_, answers)) = &mut held {
            answers.push(answer);
        }
        if !is_final {
            return;
        }
        let Some((mut sink, answers)) = held.take() else { return };
        // Answers leave under the lock: two threads must not overtake each other on the way out.
        let mut release = release.lock().unwrap_or_else(PoisonError::into_inner);
        for answer in release.finish(id, Box::new(move || answers.into_iter().for_each(&mut sink)))
        {
            answer();
        }
    })
}

fn stopping() -> Error {
    Error::unavailable(
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    )
}

fn run_instance(
    mut instance: Box<dyn ModelInstance>,
    inbox: &Receiver<Payload>,
    events: &Sender<Event>,
    slot: Slot,
    number: usize,
) {
    while let Ok(mut payload) = inbox.recv() {
        let model = payload.context().name.clone();
        payload.mark_started();
        // The payload answers its requests while it unwinds; the instance goes on with the next one.
        if catch_unwind(AssertUnwindSafe(|| instance.execute(payload))).is_err() {
            tracing::error!(%model, instance = number, "an execution panicked");
        }
        if events.send(Event::Done { slot, instance: number }).is_err() {
            return;
        }
    }
}

struct DriverLoop {
    inbox: Receiver<Event>,
    start: Instant,
    lanes: BTreeMap<Slot, Lane>,
    wakes: BTreeSet<(Nanos, Slot)>,
}

impl DriverLoop {
    fn new(inbox: Receiver<Event>) -> Self {
        Self { inbox, start: Instant::now(), lanes: BTreeMap::new(), wakes: BTreeSet::new() }
    }

    fn now(&self) -> Nanos {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn run(&mut self) {
        loop {
            let first = match self.wakes.first() {
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(&(wake, _)) => {
                    let rest = Duration::from_nanos(wake.saturating_sub(self.now()));
                    self.inbox.recv_timeout(rest)
                }
            };
            let mut touched = BTreeSet::new();
            match first {
                Ok(event) => {
                    let mut next = Some(event);
                    // All that has come is taken in before anything is decided: later requests may join a batch.
                    while let Some(event) = next {
                        if !self.take(event, &mut touched) {
                            return;
                        }
                        next = self.inbox.try_recv().ok();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.now();
            touched.extend(
                self.wakes.iter().take_while(|(wake, _)| *wake <= now).map(|&(_, slot)| slot),
            );
            for slot in touched {
                self.settle(slot);
            }
        }
    }

    /// Takes an event in; `false` ends the driver.
    fn take(&mut self, event: Event, touched: &mut BTreeSet<Slot>) -> bool {
        match event {
            Event::Add { slot, lane } => {
                self.lanes.insert(slot, *lane);
            }
            Event::Enqueue { slot, ticket, request } => {
                let now = self.now();
                match self.lanes.get_mut(&slot) {
                    Some(lane) => lane.enqueue(ticket, request, now),
                    None => request.fail(FailureReason::Other, stopping()),
                }
                touched.insert(slot);
            }
            Event::Cancel { slot, id } => {
                if let Some(lane) = self.lanes.get_mut(&slot) {
                    lane.cancel(id);
                    touched.insert(slot);
                }
            }
            Event::Done { slot, instance } => {
                let instances = self.lanes.get_mut(&slot).map(|lane| &mut lane.instances);
                if let Some(instance) = instances.and_then(|instances| instances.get_mut(instance))
                {
                    instance.busy = false;
                    touched.insert(slot);
                }
            }
            Event::Remove { slot } => {
                if let Some(lane) = self.lanes.remove(&slot) {
                    self.wakes.retain(|&(_, other)| other != slot);
                    lane.close();
                }
            }
            Event::Stop => {
                for (_, lane) in std::mem::take(&mut self.lanes) {
                    lane.close();
                }
                return false;
            }
        }
        true
    }

    fn settle(&mut self, slot: Slot) {
        let now = self.now();
        let Some(lane) = self.lanes.get_mut(&slot) else { return };
        if let Some(wake) = lane.wake.take() {
            self.wakes.remove(&(wake, slot));
        }
        if let Some(wake) = lane.settle(now) {
            lane.wake = Some(wake);
            self.wakes.insert((wake, slot));
        }
        lane.report_pending();
    }
}

impl Lane {
    fn enqueue(&mut self, ticket: Ticket, request: ActiveRequest, now: Nanos) {
        let id = ticket.id;
        match self.scheduler.enqueue(ticket, now) {
            Ok(()) => {
                self.waiting.insert(id, request);
            }
            Err(Refusal::QueueFull) => {
                let text =
                    format!("{}Exceeds maximum queue size", request_prefix(&request.request.id));
                request.refuse(Error::unavailable(text));
            }
        }
        self.report_pending();
    }

    fn cancel(&mut self, id: u64) {
        if self.scheduler.cancel(id)
            && let Some(request) = self.waiting.remove(&id)
        {
            request.fail(FailureReason::Canceled, Error::cancelled("Request cancelled"));
        }
    }

    /// Follows the scheduler until it has nothing to do now; gives the time at which it wants to be asked again.
    fn settle(&mut self, now: Nanos) -> Option<Nanos> {
        loop {
            let free = self.instances.iter().filter(|instance| !instance.busy).count();
            match self.scheduler.poll(now, free) {
                Decision::Dispatch(ids) => self.dispatch(&ids),
                Decision::Expire(ids) => {
                    for request in ids.iter().filter_map(|id| self.waiting.remove(id)) {
                        request.fail(
                            FailureReason::Rejected,
                            Error::unavailable("Request timeout expired"),
                        );
                    }
                }
                Decision::WaitUntil(wake) => return Some(wake),
                Decision::Idle => return None,
            }
        }
    }

    fn dispatch(&mut self, ids: &[u64]) {
        let requests: Vec<ActiveRequest> =
            ids.iter().filter_map(|id| self.waiting.remove(id)).collect();
        self.report_pending();
        let payload = Payload::new(requests, Arc::clone(&self.context));
        let Some(instance) = self.instances.iter_mut().find(|instance| !instance.busy) else {
            return;
        };
        instance.busy = true;
        // A failed send gives the payload back in the error, whose drop answers the requests.
        if instance.work.send(payload).is_err() {
            tracing::error!(model = %self.context.name, "an instance's thread has ended");
        }
    }

    fn report_pending(&self) {
        let pending = u64::try_from(self.scheduler.pending()).unwrap_or(u64::MAX);
        self.context.pending.store(pending, Ordering::Relaxed);
    }

    /// Answers what waits; the instances end when they have run what they have.
    fn close(self) {
        for (_, request) in self.waiting {
            request.fail(FailureReason::Other, stopping());
        }
    }
}
