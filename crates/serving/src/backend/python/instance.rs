//! Instances: a worker each, which is started anew when it ends. Here those of models that answer freely; those with
//! one answer for each request are in [`plain`](super::plain).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::blocks::{FlagSlot, ServerBlocks, SharedFlagPage, WorkerBlocks};
use super::bls_request::BlsRequestState;
use super::request::{self, SentRequest};
use super::response::{self, WorkerOutputMemory};
use super::supervisor::{InstanceSupervisor, InstanceWorkers};
use super::worker::StartedWorker;
use super::worker_process::{MessageReader, WorkerLoss, WorkerProcess};
use super::{WorkerRecipe, wire};
use crate::backend::{ModelInstance, ShutdownSignal};
use crate::error::ServingError;
use crate::payload::{ActiveRequest, BatchPayload, ModelAnswer};

/// A place on the page of flags for a request, on which a client that leaves is marked.
pub(super) fn watched(flags: &Arc<SharedFlagPage>, request: &ActiveRequest) -> Arc<FlagSlot> {
    let slot = flags.slot();
    // The place is somebody else's when the request is done.
    let left = Arc::downgrade(&slot);
    request.request.cancel.on_cancel(move || {
        if let Some(slot) = left.upgrade() {
            slot.cancel();
        }
    });
    slot
}

/// Error of requests whose execution did not come to its end.
pub(super) fn lost(instance: &str, lost: &WorkerLoss) -> ServingError {
    let why = match lost {
        WorkerLoss::Ended(why) => {
            tracing::error!(%instance, "a worker is lost: {why}");
            format!("Stub process '{instance}' is not healthy.")
        }
        WorkerLoss::Late => {
            tracing::error!(%instance, "a worker was ended: an execution took too long");
            format!("Stub process '{instance}' did not answer in time and was ended.")
        }
    };
    failed(instance, &why)
}

pub(super) fn failed(instance: &str, why: &str) -> ServingError {
    let text = format!("Failed to process the request(s) for model '{instance}', message: {why}");
    ServingError::internal(text)
}

/// Whether nobody has the other end any more: what was sent was not received in whole.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// An instance of a model that answers when and as often as it likes: a thread of its own reads what the worker says,
/// and that of the instance waits only until `execute` has returned.
#[derive(Debug)]
pub(super) struct FreeInstance {
    made: Arc<WorkerRecipe>,
    keeper: InstanceSupervisor,
    name: String,
    worker: Option<FreeWorker>,
    next: u64,
}

#[derive(Debug)]
struct FreeWorker {
    process: Arc<WorkerProcess>,
    flags: Arc<SharedFlagPage>,
    shared: Arc<InstanceShared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State that both threads share.
#[derive(Debug)]
struct InstanceShared {
    instance: String,
    state: Mutex<InstanceState>,
    changed: Condvar,
}

#[derive(Debug)]
struct InstanceState {
    given: ServerBlocks,
    /// Requests without a last answer, with the execution that they came in.
    open: HashMap<u64, OpenExecution>,
    /// The execution that the worker is being told of: its requests are the sender's if that fails.
    sending: Option<u64>,
    /// The last execution whose `execute` has returned.
    done: u64,
    ended: bool,
}

#[derive(Debug)]
struct OpenExecution {
    execution: u64,
    request: ActiveRequest,
    _slot: Arc<FlagSlot>,
    _held: Option<BlsRequestState>,
}

impl InstanceShared {
    fn state(&self) -> MutexGuard<'_, InstanceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what is still open, once nothing more comes.
    fn end(&self, error: &ServingError) {
        let mut state = self.state();
        state.ended = true;
        let sending = state.sending;
        let over = state.open.extract_if(|_, open| Some(open.execution) != sending);
        let over: Vec<OpenExecution> = over.map(|(_, open)| open).collect();
        drop(state);
        self.changed.notify_all();
        for one in over {
            one.request.finish_with(Err(error.clone()));
        }
    }

    /// The requests of an execution of which the worker has not heard, in their order.
    fn take_back(&self, execution: u64) -> Vec<ActiveRequest> {
        let mut state = self.state();
        let back = state.open.extract_if(|_, open| open.execution == execution);
        let mut back: Vec<(u64, OpenExecution)> = back.collect();
        drop(state);
        back.sort_unstable_by_key(|(number, _)| *number);
        back.into_iter().map(|(_, open)| open.request).collect()
    }
}

impl FreeInstance {
    pub(super) fn new(
        made: &Arc<WorkerRecipe>,
        name: &str,
        args: serde_json::Value,
    ) -> Result<Self, ServingError> {
        let keeper = InstanceSupervisor::start(InstanceWorkers::new(made, name, args))?;
        let made = Arc::clone(made);
        let name = name.to_owned();
        Ok(Self { made, keeper, name, worker: None, next: 1 })
    }

    fn take(&mut self) -> Result<(), ServingError> {
        let StartedWorker { process, reader, flags, prefix } = self.keeper.take()?;
        let given = ServerBlocks::new(&flags, &prefix, self.made.settings.least);
        let theirs = WorkerBlocks::new(&flags, &prefix);
        let state =
            InstanceState { given, open: HashMap::new(), sending: None, done: 0, ended: false };
        let shared = InstanceShared {
            instance: self.name.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        let shared = Arc::new(shared);
        let listener = Arc::clone(&shared);
        let listen = move || listen(&listener, reader, theirs);
        let thread = std::thread::Builder::new().name("worker-answers".to_owned()).spawn(listen);
        let thread = thread.map_err(|error| {
            process.kill();
            failed(&self.name, &error.to_string())
        })?;
        self.worker = Some(FreeWorker { process, flags, shared, thread: Some(thread) });
        Ok(())
    }

    /// The worker, started anew where it has ended.
    fn worker(&mut self) -> Result<&FreeWorker, ServingError> {
        let ended = self.worker.as_ref().is_none_or(|worker| worker.shared.state().ended);
        if ended {
            if let Some(worker) = self.worker.take() {
                worker.process.kill();
            }
            self.take()?;
        }
        self.worker.as_ref().ok_or_else(|| failed(&self.name, "there is no worker"))
    }
}

impl ModelInstance for FreeInstance {
    fn execute(&mut self, payload: BatchPayload) {
        let requests = payload.detach();
        if requests.is_empty() {
            return;
        }
        // A worker that had ended before it heard of them loses none.
        let Err((requests, _)) = self.hand_over(requests) else { return };
        if let Err((requests, why)) = self.hand_over(requests) {
            answer_all(requests, &lost(&self.name, &why));
        }
    }

    fn leaving(&self) -> Option<Arc<dyn ShutdownSignal>> {
        Some(Arc::new(self.keeper.signal()))
    }
}

fn answer_all(requests: Vec<ActiveRequest>, error: &ServingError) {
    requests.into_iter().for_each(|one| one.finish_with(Err(error.clone())));
}

impl FreeInstance {
    /// Lets the worker execute requests, and gives those back that it had ended before.
    fn hand_over(
        &mut self,
        requests: Vec<ActiveRequest>,
    ) -> Result<(), (Vec<ActiveRequest>, WorkerLoss)> {
        let first = self.next;
        self.next += u64::try_from(requests.len()).unwrap_or(1);
        let limit = self.made.settings.execution;
        let worker = match self.worker() {
            Ok(worker) => worker,
            Err(error) => {
                answer_all(requests, &error);
                return Ok(());
            }
        };
        let slots: Vec<Arc<FlagSlot>> =
            requests.iter().map(|request| watched(&worker.flags, request)).collect();
        let mut state = worker.shared.state();
        let numbered = requests.iter().zip(&slots).zip(first..);
        let sent: Vec<SentRequest<'_>> = numbered
            .map(|((request, slot), number)| SentRequest { number, slot: slot.number, request })
            .collect();
        let message = request::encode(&mut state.given, first, &sent);
        // Senders copy outputs into blocks of the worker's, so nothing is read from that of the inputs.
        let message = match message {
            Ok(encoded) => encoded.message,
            Err(error) => {
                drop(state);
                answer_all(requests, &error);
                return Ok(());
            }
        };
        for ((request, slot), number) in requests.into_iter().zip(slots).zip(first..) {
            let held = BlsRequestState::new(&worker.process, number, &request);
            let open = OpenExecution { execution: first, request, _slot: slot, _held: held };
            state.open.insert(number, open);
        }
        state.sending = Some(first);
        drop(state);
        let sent = worker.process.send(&message).map_err(|unsent| unsent.error);
        let ended = {
            let mut state = worker.shared.state();
            state.sending = None;
            state.ended
        };
        let why = match sent {
            Err(error) if is_gone(&error) => {
                let why = WorkerLoss::Ended(error.to_string());
                let back = worker.shared.take_back(first);
                worker.process.kill();
                worker.shared.end(&lost(&worker.shared.instance, &why));
                return Err((back, why));
            }
            Err(error) => error.to_string(),
            Ok(()) if ended => "it ended".to_owned(),
            Ok(()) => {
                worker.wait(first, limit.map(|limit| Instant::now() + limit));
                return Ok(());
            }
        };
        worker.process.kill();
        worker.shared.end(&lost(&worker.shared.instance, &WorkerLoss::Ended(why)));
        Ok(())
    }
}

impl FreeWorker {
    /// Waits until `execute` has returned.
    fn wait(&self, execution: u64, deadline: Option<Instant>) {
        let mut state = self.shared.state();
        while state.done < execution && !state.ended {
            let Some(deadline) = deadline else {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                self.shared.end(&lost(&self.shared.instance, &WorkerLoss::Late));
                self.process.kill();
                return;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for FreeInstance {
    fn drop(&mut self) {
        self.keeper.stop();
        if let Some(mut worker) = self.worker.take() {
            worker.process.stop();
            if let Some(thread) = worker.thread.take() {
                // It ends with its process.
                drop(thread.join());
            }
        }
    }
}

/// Gives the answers of a worker to its requests, until it ends.
fn listen(shared: &InstanceShared, mut reader: MessageReader, mut theirs: WorkerBlocks) {
    loop {
        if let Err(why) = listen_once(shared, &mut reader, &mut theirs) {
            if matches!(why, WorkerLoss::Late) {
                // It would go on later, and nobody hears it.
                reader.process.kill();
            }
            let over = shared.state().open.is_empty();
            let error = match (&why, over) {
                // So ends a worker that was asked to.
                (WorkerLoss::Ended(_), true) => ServingError::internal(""),
                _ => lost(&shared.instance, &why),
            };
            shared.end(&error);
            return;
        }
    }
}

fn listen_once(
    shared: &InstanceShared,
    reader: &mut MessageReader,
    theirs: &mut WorkerBlocks,
) -> Result<(), WorkerLoss> {
    let message = reader.next(None)?;
    let kind = message.first().copied();
    if !matches!(kind, Some(wire::DONE | wire::RESPONSE)) {
        return Err(WorkerLoss::Ended(format!("it sends a message of kind {kind:?}")));
    }
    let found = wire::WorkerAnswers::read(message)?;
    theirs.sweep();
    let updated = theirs.update(&found.closed, &found.opened);
    updated.map_err(|error| WorkerLoss::Ended(error.to_string()))?;
    found.blocks().for_each(|number| theirs.note(number));
    for answer in found.answers {
        let (open, decoded) = {
            let mut state = shared.state();
            // One that was answered with an error already says no more.
            let Some(open) = state.open.remove(&answer.request) else { continue };
            let config = Arc::clone(open.request.config());
            let small = found.small;
            let mut memory = WorkerOutputMemory { small, given: &state.given, theirs };
            let decoded = answer.response.map(|one| response::decode(&config, one, &mut memory));
            (open, decoded)
        };
        // Nothing is locked while others hear of it.
        if answer.once_more {
            open.request.reschedule();
        } else if let Some(open) = answered(open, decoded, answer.is_final) {
            shared.state().open.insert(answer.request, open);
        }
    }
    if kind == Some(wire::DONE) {
        let mut state = shared.state();
        state.given.opened();
        state.done = found.execution;
        let mut ended = Vec::new();
        if found.failure.is_some() {
            let of_it = state.open.iter().filter(|(_, open)| open.execution == found.execution);
            let numbers: Vec<u64> = of_it.map(|(number, _)| *number).collect();
            ended.extend(numbers.iter().filter_map(|number| state.open.remove(number)));
        }
        drop(state);
        shared.changed.notify_all();
        let error = failed(&shared.instance, &found.failure.unwrap_or_default());
        ended.into_iter().for_each(|open| open.request.finish_with(Err(error.clone())));
    }
    Ok(())
}

/// Answers a request; gives it back where more is to come.
fn answered(
    mut open: OpenExecution,
    answer: Option<ModelAnswer>,
    is_final: bool,
) -> Option<OpenExecution> {
    match (answer, is_final) {
        (None, true) => open.request.finish(),
        (None, false) => return Some(open),
        (Some(answer), true) => open.request.finish_as(answer),
        (Some(answer), false) => {
            open.request.respond_with(answer.result, answer.parameters);
            return Some(open);
        }
    }
    None
}
