//! One model version: its policy, its waiting requests and its instances, behind one lock of their own. Whoever
//! brings an event (a request, the end of an execution, a cancellation, the time) follows the policy itself, so a
//! request goes from its front end's thread to the instance's without a thread in between.

mod limited;
mod succession;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use self::succession::{InstanceSeating, LaneHeir};
use super::RefusedRequest;
use super::gate::InstanceGate;
use super::inline::{InlineEligibility, InlineGuard, MAX_ROUNDS};
use super::ordered::OrderedAnswers;
use super::seat::SeatedInstance;
use super::timer::{LaneTimer, TimedLane};
use super::times::{CompletionPrediction, ExecutionTimes};
use crate::backend::ShutdownSignal;
use crate::error::ServingError;
use crate::latency_target::AdmissionRule;
use crate::payload::{ActiveRequest, BatchPayload, ExecutionContext};
use crate::request::request_prefix;
use crate::schedule::{
    Nanos, PipelineDepth, QueueExpiry, QueueRefusal, RequestScheduler, ScheduleDecision,
    ScheduleTicket, ScheduledBatch, SequenceStep, stopping,
};
use crate::sequence::{SequenceContext, SequencePlan, SequenceState, filler};
use crate::statistics::FailureReason;

/// The next batch comes before an execution has ended only where those take less: the pause between two of them is
/// some 0.1 ms.
const SHORT: Duration = Duration::from_micros(500);
/// Number that come one after another before there is a pause.
const MAX_EARLY: u32 = 64;

/// How a lane ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LanePhase {
    /// It takes requests.
    Open,
    /// It takes none and runs those that it has.
    Draining,
    /// It runs nothing more.
    Closed,
}

struct LaneState {
    scheduler: Box<dyn RequestScheduler>,
    waiting: HashMap<u64, ActiveRequest>,
    /// Work handed to each instance and not yet begun.
    work: Vec<Option<BatchPayload>>,
    free: Vec<bool>,
    /// When each was given its last batch, of how many items.
    given: Vec<Option<(Nanos, u64)>>,
    /// The earliest time at which the timer will call.
    wake: Option<Nanos>,
    /// Dispatched requests that have not had their last answer, where the policy follows them.
    following: usize,
    /// Instances that hold the resources to execute; all do where nothing limits them.
    allowed: Option<Vec<bool>>,
    /// Implicit state of the sequence in each slot of each instance.
    kept: HashMap<(usize, usize), Arc<SequenceState>>,
    seating: InstanceSeating,
    phase: LanePhase,
}

/// See the module.
pub(super) struct ModelLane {
    number: u64,
    context: Arc<ExecutionContext>,
    timer: Arc<LaneTimer>,
    this: Weak<ModelLane>,
    ordered: Option<Arc<OrderedAnswers>>,
    follows: bool,
    sequences: Option<Arc<SequencePlan>>,
    state: Mutex<LaneState>,
    /// Each is locked by whoever was given a batch for it, so nobody waits for these locks but a lane that has taken an
    /// instance over, for the last batch of the lane before.
    instances: Vec<SeatedInstance>,
    /// Instances that another lane has taken over, which hear nothing of the end of this one.
    handed_over: Mutex<Vec<usize>>,
    /// The lane that goes on with what this one has, if there is one.
    heir: OnceLock<LaneHeir>,
    /// One for each instance, where resources limit executions.
    gates: Vec<InstanceGate>,
    /// Whether the phase is `Closed`, for those who must not wait for the lock.
    closed: AtomicBool,
    /// Whether executions may leave the instances' own threads.
    movable: bool,
    /// Whether the only instance is given batches before it has ended the last one.
    early: PipelineDepth,
    quickness: InlineEligibility,
    admission: AdmissionRule,
    times: ExecutionTimes,
    /// One for each instance.
    calls: Vec<Condvar>,
    ended: Condvar,
}

/// Work for when the lock is free again: the receivers of answers may bring new events.
#[derive(Default)]
struct LaneEffects {
    answers: Vec<(ActiveRequest, FailureReason, ServingError)>,
    calls: Vec<usize>,
    wake: Option<Nanos>,
    /// The lane is closed: instances that wait for resources have to see it.
    gates: bool,
    /// A batch for an instance that does not exist; its requests are answered INTERNAL when it is dropped.
    lost: Option<BatchPayload>,
}

impl LaneEffects {
    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.calls.is_empty() && self.wake.is_none() && !self.gates
    }
}

/// Decision of the policy for an instance that may run.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for a moment; boxing it would allocate for each batch"
)]
enum LaneDecision<'a> {
    /// This batch.
    Run(BatchPayload),
    /// Nothing, until something happens; the lock has been held since.
    Wait(MutexGuard<'a, LaneState>),
    /// Nothing, but something may have happened since.
    Again,
}

/// How a lane's requests are scheduled.
pub(super) struct LanePolicy {
    pub(super) scheduler: Box<dyn RequestScheduler>,
    /// Which requests are taken.
    pub(super) admission: AdmissionRule,
    /// Answers leave in the order of the requests.
    pub(super) ordered: bool,
    pub(super) sequences: Option<Arc<SequencePlan>>,
    /// Number of instances that take new work. Those behind them end what the lane before has begun on them.
    pub(super) seated: usize,
}

impl ModelLane {
    /// A lane whose instances wait for their threads. `gates` has one for each, or is empty.
    pub(super) fn new(
        number: u64,
        context: &Arc<ExecutionContext>,
        timer: &Arc<LaneTimer>,
        policy: LanePolicy,
        instances: Vec<SeatedInstance>,
        gates: Vec<InstanceGate>,
    ) -> Arc<Self> {
        let LanePolicy { scheduler, admission, ordered, sequences, seated } = policy;
        let count = instances.len();
        let limited = !gates.is_empty();
        let stay = instances.get(..seated).unwrap_or(&instances);
        let takes = matches!(stay, [instance] if instance.pipelines);
        let early = match takes && admission == AdmissionRule::All && !limited {
            true => scheduler.early(),
            false => PipelineDepth::Never,
        };
        Arc::new_cyclic(|this| Self {
            number,
            context: Arc::clone(context),
            timer: Arc::clone(timer),
            this: Weak::clone(this),
            ordered: ordered.then(Arc::default),
            follows: scheduler.follows_releases(),
            sequences,
            state: Mutex::new(LaneState {
                scheduler,
                waiting: HashMap::new(),
                work: (0..count).map(|_| None).collect(),
                // An instance is free when its thread asks for work.
                free: vec![false; count],
                given: vec![None; count],
                wake: None,
                following: 0,
                allowed: limited.then(|| vec![false; count]),
                kept: HashMap::new(),
                seating: InstanceSeating::new(count),
                phase: LanePhase::Open,
            }),
            gates,
            closed: AtomicBool::new(false),
            movable: !limited && instances.iter().all(|instance| instance.by_sizes),
            early,
            quickness: InlineEligibility::default(),
            admission,
            times: ExecutionTimes::default(),
            handed_over: Mutex::default(),
            heir: OnceLock::new(),
            instances,
            calls: (0..count).map(|_| Condvar::new()).collect(),
            ended: Condvar::new(),
        })
    }

    /// Takes a request.
    ///
    /// # Errors
    /// When the policy refuses it, or it would not be done in time; its sink is not called then.
    pub(super) fn enqueue(
        &self,
        mut ticket: ScheduleTicket,
        request: ActiveRequest,
    ) -> Result<(), RefusedRequest> {
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        let id = ticket.id;
        if let Some(late) = self.admit_by_deadline(&state, &mut ticket, now) {
            drop(state);
            return Err(self.refused_late(late, request));
        }
        let taken = match state.phase {
            LanePhase::Open => state.scheduler.enqueue(ticket, now),
            LanePhase::Draining | LanePhase::Closed => Err(QueueRefusal::Stopping),
        };
        match taken {
            Ok(()) => {
                state.waiting.insert(id, request);
                self.settle(&mut state, now, &mut effects);
                let mine = self.take_inline(&mut state, &mut effects);
                drop(state);
                self.apply(effects);
                if let Some((instance, payload, inside)) = mine {
                    self.run_inline(instance, payload, &inside);
                }
                Ok(())
            }
            Err(refusal) => {
                drop(state);
                Err(self.refused(refusal, request))
            }
        }
    }

    /// Says how long a request may wait for company, and of one that is not taken because it would not be done in
    /// time when it would be.
    fn admit_by_deadline(
        &self,
        state: &LaneState,
        ticket: &mut ScheduleTicket,
        now: Nanos,
    ) -> Option<CompletionPrediction> {
        let goal = ticket.goal?;
        let most = u64::try_from(self.context.config.max_batch_size).unwrap_or(0).max(1);
        ticket.patience = Some(self.times.max_queue_delay(goal, most));
        if self.admission == AdmissionRule::All || state.phase != LanePhase::Open {
            return None;
        }
        let instances = state.free.iter().zip(&state.given);
        let busy = |(free, given): (&bool, &Option<(Nanos, u64)>)| given.filter(|_| !free);
        let busy: Vec<Option<(Nanos, u64)>> = instances.map(busy).collect();
        let rests = state.waiting.is_empty() && busy.iter().all(Option::is_none);
        if rests && self.times.are_stale(now) {
            return None;
        }
        let left = |(begin, size): (Nanos, u64)| {
            let spent = now.saturating_sub(begin);
            self.times.of(size).unwrap_or(0).saturating_sub(spent)
        };
        let free = busy.into_iter().map(|given| given.map_or(0, left)).collect();
        let ahead = state.scheduler.ahead(ticket);
        let found = self.times.predict(free, ahead, ticket.batch_size)?;
        (found.total().as_nanos() > u128::from(goal)).then_some(found)
    }

    /// Refuses a request that is predicted to be late.
    fn refused_late(&self, late: CompletionPrediction, request: ActiveRequest) -> RefusedRequest {
        let goal = request.goal.unwrap_or_default();
        self.context.statistics.refused_goal();
        let (request, _) = request.withdraw();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let text = format!(
            "{}the request to model '{}' would miss its latency goal of {} ms: it is predicted to be done in {:.1} ms, \
             after {:.1} ms of waiting",
            request_prefix(&request.id),
            self.context.name,
            ms(goal),
            ms(late.total()),
            ms(late.wait),
        );
        RefusedRequest { error: ServingError::unavailable(text), again: None }
    }

    /// Takes a batch that this thread may run itself instead of waking the instance's.
    fn take_inline(
        &self,
        state: &mut LaneState,
        effects: &mut LaneEffects,
    ) -> Option<(usize, BatchPayload, InlineGuard)> {
        let &[instance] = effects.calls.as_slice() else { return None };
        let work = state.work.get_mut(instance)?;
        let short = |payload: &BatchPayload| self.quickness.expects_short(payload.input_bytes());
        if !self.movable || !work.as_ref().is_some_and(short) {
            return None;
        }
        let inside = InlineGuard::enter()?;
        effects.calls.clear();
        Some((instance, work.take()?, inside))
    }

    /// Runs a batch and those that have gathered meanwhile; after a few the instance's own thread goes on.
    fn run_inline(&self, instance: usize, first: BatchPayload, _: &InlineGuard) {
        let mut next = Some(first);
        for round in 1.. {
            let Some(payload) = next.take() else { return };
            self.execute(instance, payload);
            let mut effects = LaneEffects::default();
            let mut state = self.idle(instance);
            self.settle(&mut state, self.timer.now(), &mut effects);
            let mine = effects.calls.iter().position(|&called| called == instance);
            if let Some(at) = mine.filter(|_| round < MAX_ROUNDS) {
                next = state.work.get_mut(instance).and_then(Option::take);
                // Without work the call means the end, which the instance's own thread must hear of.
                if next.is_some() {
                    effects.calls.swap_remove(at);
                }
            }
            drop(state);
            self.apply(effects);
        }
    }

    /// Executes a batch on an instance that it was dispatched to.
    pub(super) fn execute(&self, instance: usize, mut payload: BatchPayload) {
        let Some(executor) = self.instances.get(instance) else { return };
        let mut executor = executor.lock();
        let bytes = if self.movable { payload.input_bytes() } else { 0 };
        let mut count = 1;
        let mut items = payload.items();
        let start = Instant::now();
        let mut next = || {
            let next = self.takes_early(start, count).then(|| self.take_early(instance))??;
            (count, items) = (count + 1, items + next.items());
            Some(next)
        };
        // The payload answers its requests while it unwinds; the instance goes on with the next one.
        let ended = catch_unwind(AssertUnwindSafe(|| match self.early {
            PipelineDepth::Never => {
                payload.mark_started();
                executor.execute(payload);
            }
            PipelineDepth::WhereShort | PipelineDepth::Always => {
                executor.execute_in_turn(payload, &mut next)
            }
        }));
        if ended.is_err() {
            tracing::error!(model = %self.context.name, instance, "an execution panicked");
        }
        let took = start.elapsed();
        self.times.ran(items / u64::from(count), took / count, self.timer.now());
        if self.movable {
            self.quickness.ran(took, bytes);
        }
    }

    /// Whether an instance that has been given so many batches since `start` may have the next one. What these take
    /// counts too, and after some it pauses: how long executions last is known only then.
    fn takes_early(&self, start: Instant, count: u32) -> bool {
        match self.early {
            PipelineDepth::Never => false,
            PipelineDepth::Always => true,
            PipelineDepth::WhereShort => {
                let most = u64::try_from(self.context.config.max_batch_size).unwrap_or(0);
                let known = self.times.of(most).map(Duration::from_nanos);
                let short = known.is_some_and(|known| known < SHORT);
                short && count < MAX_EARLY && start.elapsed() < SHORT * count
            }
        }
    }

    /// The next batch of an instance that still executes, if one waits.
    fn take_early(&self, instance: usize) -> Option<BatchPayload> {
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        // Only what is decided at once may make the instance look free: a lane that drains ends when all are.
        if state.phase == LanePhase::Closed || state.scheduler.pending() == 0 {
            return None;
        }
        *state.free.get_mut(instance)? = true;
        self.settle(&mut state, self.timer.now(), &mut effects);
        let work = state.work.get_mut(instance).and_then(Option::take);
        if let Some(free) = state.free.get_mut(instance) {
            *free = false;
        }
        drop(state);
        effects.calls.retain(|&called| called != instance);
        self.apply(effects);
        work
    }

    fn refused(&self, refusal: QueueRefusal, request: ActiveRequest) -> RefusedRequest {
        let (request, sink) = request.withdraw();
        let error = refusal.error(&self.context.name, &request);
        let again = sink.filter(|_| refusal == QueueRefusal::Stopping).map(|sink| (request, sink));
        RefusedRequest { error, again: again.map(Box::new) }
    }

    /// The client has gone: what waits for it and what hangs on that is answered CANCELLED.
    pub(super) fn cancel(&self, id: u64) {
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        if let Some(heir) = self.heir.get() {
            drop(state);
            return heir.lane.cancel(id);
        }
        for id in state.scheduler.cancel(id, now) {
            if let Some(request) = state.waiting.remove(&id) {
                let error = ServingError::cancelled("Request cancelled");
                effects.answers.push((request, FailureReason::Canceled, error));
            }
        }
        self.settle(&mut state, now, &mut effects);
        drop(state);
        self.apply(effects);
    }

    /// A dispatched request has had its last answer.
    fn released(&self, id: u64) {
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        state.following = state.following.saturating_sub(1);
        state.scheduler.released(id, now);
        self.settle(&mut state, now, &mut effects);
        drop(state);
        self.apply(effects);
        if let Some(heir) = self.heir.get() {
            heir.lane.inherited_released(id);
        }
    }

    /// A dispatched request has to run once more.
    fn reschedule(&self, id: u64, request: ActiveRequest) {
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        if let Some(heir) = self.heir.get() {
            drop(state);
            return heir.lane.reschedule(id, request);
        }
        if state.phase == LanePhase::Closed || !state.scheduler.reschedule(id, now) {
            drop(state);
            let text = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, but its scheduler does not \
                        take requests back";
            return request.finish_with(Err(ServingError::internal(text)));
        }
        state.waiting.insert(id, request);
        self.settle(&mut state, now, &mut effects);
        drop(state);
        self.apply(effects);
    }

    /// The next batch for an instance, which has ended its last one; waits for it. `None` ends the instance.
    pub(super) fn next(&self, instance: usize) -> Option<BatchPayload> {
        if let Some(gate) = self.gates.get(instance) {
            return self.next_through(instance, gate);
        }
        let mut state = self.idle(instance);
        loop {
            if let Some(work) = state.work.get_mut(instance).and_then(Option::take) {
                return Some(work);
            }
            let mut effects = LaneEffects::default();
            self.settle(&mut state, self.timer.now(), &mut effects);
            let mine = state.work.get_mut(instance).and_then(Option::take);
            let quiet = effects.is_empty();
            if mine.is_some() || !quiet {
                drop(state);
                effects.calls.retain(|&called| called != instance);
                self.apply(effects);
                if mine.is_some() {
                    return mine;
                }
                state = self.state();
                continue;
            }
            if state.phase == LanePhase::Closed || state.seating.has_left(instance) {
                return None;
            }
            let call = self.calls.get(instance)?;
            state = call.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Follows the policy until it has nothing to do now.
    fn settle(&self, state: &mut LaneState, now: Nanos, effects: &mut LaneEffects) {
        if state.phase == LanePhase::Closed {
            return;
        }
        state.dismiss(&mut effects.calls);
        loop {
            let masked: Option<Vec<bool>> = state.allowed.as_ref().map(|allowed| {
                state.free.iter().zip(allowed).map(|(&free, &allowed)| free && allowed).collect()
            });
            match state.scheduler.poll(now, masked.as_ref().unwrap_or(&state.free)) {
                ScheduleDecision::Dispatch(batch) => self.dispatch(state, batch, effects),
                ScheduleDecision::Expire(ids, why) => expire(state, &ids, why, effects),
                ScheduleDecision::WaitUntil(wake) => {
                    if state.wake.is_none_or(|known| wake < known) {
                        state.wake = Some(wake);
                        effects.wake = Some(wake);
                    }
                    break;
                }
                ScheduleDecision::Idle => break,
            }
        }
        state.dismiss(&mut effects.calls);
        if state.allowed.is_some() && state.scheduler.pending() > 0 {
            effects.calls.extend(0..self.calls.len());
        }
        let pending = u64::try_from(state.scheduler.pending()).unwrap_or(u64::MAX);
        self.context.pending.store(pending, std::sync::atomic::Ordering::Relaxed);
        if state.phase == LanePhase::Draining
            && state.waiting.is_empty()
            && state.following == 0
            && state.is_at_rest()
        {
            state.phase = LanePhase::Closed;
            self.closed.store(true, Ordering::Release);
            effects.calls.extend(0..self.calls.len());
            effects.gates = true;
            self.ended.notify_all();
        }
    }

    fn dispatch(&self, state: &mut LaneState, batch: ScheduledBatch, effects: &mut LaneEffects) {
        let may =
            |at: usize| state.allowed.as_ref().is_none_or(|allowed| allowed.get(at) == Some(&true));
        let first = || state.free.iter().enumerate().position(|(at, &free)| free && may(at));
        let instance = batch.instance.or_else(first);
        let mut requests = Vec::with_capacity(batch.items.len());
        let like = batch.items.iter().find_map(|item| state.waiting.get(&item.request?));
        let filling = match like {
            Some(like) if batch.items.iter().any(|item| item.request.is_none()) => {
                Some(filler(&like.request))
            }
            _ => None,
        };
        for item in batch.items {
            let mut request = match (item.request, &filling) {
                (Some(id), _) => {
                    let Some(mut request) = state.waiting.remove(&id) else { continue };
                    self.watch(state, id, &mut request);
                    request
                }
                (None, Some(filling)) => {
                    ActiveRequest::filler(filling.clone(), Arc::clone(&self.context))
                }
                (None, None) => continue,
            };
            request.sequence =
                item.step.and_then(|step| self.sequence(state, instance.unwrap_or_default(), step));
            requests.push(request);
        }
        let payload = BatchPayload::new(requests, Arc::clone(&self.context));
        let given = instance.and_then(|at| state.given.get_mut(at));
        if let Some(given) = given {
            *given = Some((self.timer.now(), payload.items()));
        }
        let seat =
            instance.and_then(|at| Some((at, state.free.get_mut(at)?, state.work.get_mut(at)?)));
        match seat {
            Some((at, free, work)) => {
                *free = false;
                *work = Some(payload);
                effects.calls.push(at);
            }
            None => {
                tracing::error!(model = %self.context.name, "a batch names an instance that is not there");
                effects.lost = Some(payload);
            }
        }
    }

    /// Sequence data of a request: its step, and the state of its slot.
    fn sequence(
        &self,
        state: &mut LaneState,
        instance: usize,
        step: SequenceStep,
    ) -> Option<Box<SequenceContext>> {
        let plan = Arc::clone(self.sequences.as_ref()?);
        let kept = step.ready.then(|| {
            let place = (instance, step.slot);
            if step.start {
                state.kept.remove(&place);
            }
            let kept = state.kept.entry(place).or_insert_with(|| SequenceState::initial(&plan));
            let kept = Arc::clone(kept);
            if step.end {
                state.kept.remove(&place);
            }
            kept
        });
        Some(Box::new(SequenceContext { step, plan, state: kept }))
    }

    /// Puts what the model version needs to know between a request and its sink.
    fn watch(&self, state: &mut LaneState, id: u64, request: &mut ActiveRequest) {
        if self.follows {
            let this = Weak::clone(&self.this);
            request.set_way_back(Box::new(move |request| match this.upgrade() {
                Some(lane) => lane.reschedule(id, request),
                None => request.finish_with(Err(stopping())),
            }));
        }
        // One that runs again has its steps already.
        if request.iteration() > 0 {
            return;
        }
        if let Some(ordered) = &self.ordered {
            request.wrap_sink(|sink| ordered.wrap(id, sink));
        }
        if self.follows {
            state.following += 1;
            let this = Weak::clone(&self.this);
            request.wrap_sink(|mut sink| {
                Box::new(move |answer| {
                    let is_final = answer.is_final;
                    sink(answer);
                    if let Some(lane) = this.upgrade().filter(|_| is_final) {
                        lane.released(id);
                    }
                })
            });
        }
    }

    fn apply(&self, effects: LaneEffects) {
        if effects.gates {
            self.gates.iter().for_each(InstanceGate::wake);
        }
        for instance in effects.calls {
            if let Some(call) = self.calls.get(instance) {
                call.notify_one();
            }
        }
        if let Some(wake) = effects.wake {
            let this: Weak<dyn TimedLane> = self.this.clone();
            self.timer.wake_at(wake, self.number, this);
        }
        for (request, reason, error) in effects.answers {
            request.fail(reason, error);
        }
    }

    /// Takes no more requests; those that it has run as soon as they can.
    pub(super) fn begin_drain(&self) {
        let now = self.timer.now();
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        if state.phase == LanePhase::Open {
            state.phase = LanePhase::Draining;
            state.scheduler.drain(now);
        }
        self.settle(&mut state, now, &mut effects);
        drop(state);
        self.apply(effects);
        self.signals().iter().for_each(|instance| instance.drain());
    }

    /// Takes no more requests, and waits until those that it has are answered and the instances idle.
    pub(super) fn drain(&self) {
        self.begin_drain();
        let mut state = self.state();
        while state.phase != LanePhase::Closed {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers what waits; the instances end when they have run what they have.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.phase = LanePhase::Closed;
        self.closed.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.ended.notify_all();
        self.gates.iter().for_each(InstanceGate::wake);
        self.calls.iter().for_each(Condvar::notify_one);
        self.signals().iter().for_each(|instance| instance.close());
        for request in waiting.into_values() {
            request.fail(FailureReason::Other, stopping());
        }
    }

    /// Signals of the instances that are told of the lane's end.
    fn signals(&self) -> Vec<Arc<dyn ShutdownSignal>> {
        let handed_over = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.instances.iter().enumerate().filter(|(at, _)| !handed_over.contains(at));
        own.filter_map(|(_, instance)| instance.leaving.clone()).collect()
    }

    /// The instances, for a lane that goes on with some of them.
    pub(super) fn instances(&self) -> &[SeatedInstance] {
        &self.instances
    }

    /// Another lane goes on with these instances.
    pub(super) fn hand_over(&self, instances: &[usize]) {
        let mut handed_over = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        handed_over.extend_from_slice(instances);
    }

    fn state(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn expire(state: &mut LaneState, ids: &[u64], why: QueueExpiry, effects: &mut LaneEffects) {
    for request in ids.iter().filter_map(|id| state.waiting.remove(id)) {
        effects.answers.push((request, FailureReason::Rejected, why.error()));
    }
}

impl TimedLane for ModelLane {
    fn on_time(&self, at: Nanos) {
        let mut effects = LaneEffects::default();
        let mut state = self.state();
        if state.wake == Some(at) {
            state.wake = None;
        }
        self.settle(&mut state, self.timer.now(), &mut effects);
        drop(state);
        self.apply(effects);
    }
}
