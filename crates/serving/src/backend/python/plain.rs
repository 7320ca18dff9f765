//! Instances of models whose requests have one answer each: the instance's thread sends batches and reads what comes of
//! them.
//!
//! A worker executes one batch at a time, but the next ones may lie in its socket already ([`AHEAD`]), so that neither
//! side waits for the other between two executions; of small requests that is most of the time that one takes. A worker
//! begins with a batch when it has said that the last one is done. So those behind the one that a worker is lost with
//! have not begun, and go to the next worker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use galatea_tensor::SharedBlock;

use super::blocks::{FlagSlot, ServerBlocks, SharedFlagPage, WorkerBlocks};
use super::bls_request::BlsRequestState;
use super::instance::{failed, lost, watched};
use super::request::{self, SentRequest};
use super::response::{self, WorkerOutputMemory};
use super::supervisor::{InstanceSupervisor, InstanceWorkers};
use super::worker::StartedWorker;
use super::worker_process::{MessageReader, WorkerLoss, WorkerProcess};
use super::{WorkerRecipe, wire};
use crate::backend::{ModelInstance, ShutdownSignal};
use crate::batch::NamedTensors;
use crate::config::ModelConfig;
use crate::error::ServingError;
use crate::payload::{ActiveRequest, BatchPayload, ModelAnswer, not_again};
use crate::sequence_tensors;

/// Batches that a worker has at most.
const AHEAD: usize = 4;
/// The same, where the inputs of the next one are more bytes than [`LARGE_BYTES`]: copying them is worth the head start,
/// holding the memory of several is not.
const AHEAD_LARGE: usize = 2;
const LARGE_BYTES: u64 = 1 << 20;
/// Bytes of the messages behind the first. They have room in the socket, so that sending them never waits for a worker
/// that itself waits until its answer is read.
const AHEAD_BYTES: usize = 32 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct PlainInstance {
    made: Arc<WorkerRecipe>,
    keeper: InstanceSupervisor,
    name: String,
    worker: Option<PlainWorker>,
    next: u64,
    /// Requests that the worker has, in order.
    sent: VecDeque<WorkerBatch>,
    /// Next batch, where the worker cannot have it yet.
    ready: VecDeque<WorkerBatch>,
    /// Whether the server keeps states, so that a batch may need what the one before it gives.
    states: bool,
}

/// A batch, for the present worker.
#[derive(Debug)]
struct WorkerBatch {
    payload: BatchPayload,
    /// Number of its first request; that of the execution as well.
    first: u64,
    /// Where it is not made yet, or was sent, there is none.
    message: Option<Vec<u8>>,
    /// Bytes of the message.
    len: usize,
    /// Where its large inputs lie, and outputs that are views of them.
    block: Option<Arc<SharedBlock>>,
    slots: Vec<Arc<FlagSlot>>,
    /// From the sending on: the worker may begin at any time.
    held: Vec<BlsRequestState>,
}

impl WorkerBatch {
    fn new(payload: BatchPayload) -> Self {
        let slots = Vec::new();
        let held = Vec::new();
        Self { payload, first: 0, message: None, len: 0, block: None, slots, held }
    }

    /// For another worker.
    fn anew(self) -> Self {
        Self::new(self.payload)
    }
}

#[derive(Debug)]
struct PlainWorker {
    process: Arc<WorkerProcess>,
    reader: MessageReader,
    flags: Arc<SharedFlagPage>,
    given: ServerBlocks,
    theirs: WorkerBlocks,
}

impl PlainInstance {
    pub(super) fn new(
        made: &Arc<WorkerRecipe>,
        name: &str,
        args: serde_json::Value,
        states: bool,
    ) -> Result<Self, ServingError> {
        let keeper = InstanceSupervisor::start(InstanceWorkers::new(made, name, args))?;
        let made = Arc::clone(made);
        let name = name.to_owned();
        let sent = VecDeque::new();
        let ready = VecDeque::new();
        Ok(Self { made, keeper, name, worker: None, next: 1, sent, ready, states })
    }

    /// The worker, which is the next one where the last is lost.
    fn worker(&mut self) -> Result<&mut PlainWorker, ServingError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                let StartedWorker { process, reader, flags, prefix } = self.keeper.take()?;
                let given = ServerBlocks::new(&flags, &prefix, self.made.settings.least);
                let theirs = WorkerBlocks::new(&flags, &prefix);
                PlainWorker { process, reader, flags, given, theirs }
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Sends as much as the worker may have: what is ready, then what `next` gives.
    fn send(&mut self, next: &mut dyn FnMut() -> Option<BatchPayload>) {
        let mut again = true;
        let most = if self.states { 1 } else { AHEAD };
        while self.sent.len() < most {
            let ready = self.ready.pop_front();
            let Some(mut batch) = ready.or_else(|| next().map(WorkerBatch::new)) else { return };
            if let Err(error) = self.prepare(&mut batch) {
                batch.payload.fail(&error);
                continue;
            }
            let (Some(worker), true) = (&self.worker, self.has_room(&batch)) else {
                return self.ready.push_front(batch);
            };
            let message = batch.message.take().unwrap_or_default();
            match worker.process.send(&message) {
                Ok(()) if self.sent.is_empty() => self.begin(batch),
                Ok(()) => self.sent.push_back(batch),
                // Its end is found where its answers are read.
                Err(_) if !self.sent.is_empty() => return self.ready.push_front(batch.anew()),
                // It ended between two executions, or with this one.
                Err(unsent) => {
                    let error = lost(&self.name, &WorkerLoss::Ended(unsent.error.to_string()));
                    if unsent.bytes > 0 || !again {
                        batch.payload.fail(&error);
                    } else {
                        self.ready.push_front(batch.anew());
                    }
                    again = false;
                    self.give_up();
                }
            }
        }
    }

    /// Whether the worker may have a batch now.
    fn has_room(&self, batch: &WorkerBatch) -> bool {
        let large = batch.payload.input_bytes() > LARGE_BYTES;
        let most = if large { AHEAD_LARGE } else { AHEAD };
        let behind: usize = self.sent.iter().skip(1).map(|sent| sent.len).sum();
        self.sent.is_empty() || (self.sent.len() < most && behind + batch.len <= AHEAD_BYTES)
    }

    /// Makes the message of a batch, and a worker where there is none.
    fn prepare(&mut self, batch: &mut WorkerBatch) -> Result<(), ServingError> {
        if batch.message.is_some() {
            return Ok(());
        }
        let requests = batch.payload.requests();
        let first = self.next;
        self.next += u64::try_from(requests.len()).unwrap_or(1);
        let worker = self.worker()?;
        worker.theirs.sweep();
        batch.slots = requests.iter().map(|request| watched(&worker.flags, request)).collect();
        let numbered = requests.iter().zip(&batch.slots).zip(first..);
        let sent: Vec<SentRequest<'_>> = numbered
            .map(|((request, slot), number)| SentRequest { number, slot: slot.number, request })
            .collect();
        let encoded = request::encode(&mut worker.given, first, &sent)?;
        let held = requests.iter().zip(first..);
        batch.held = held
            .filter_map(|(request, number)| BlsRequestState::new(&worker.process, number, request))
            .collect();
        (batch.first, batch.len) = (first, encoded.message.len());
        (batch.message, batch.block) = (Some(encoded.message), encoded.block);
        Ok(())
    }

    /// The worker begins with a batch.
    fn begin(&mut self, mut batch: WorkerBatch) {
        batch.payload.mark_started();
        batch.payload.mark_inputs_ready();
        self.sent.push_front(batch);
    }

    /// Reads the answers to the batch that the worker is at.
    fn receive(&mut self) {
        let Some(mut batch) = self.sent.pop_front() else { return };
        let config = Arc::clone(&batch.payload.context().config);
        let deadline = self.made.settings.execution.map(|limit| Instant::now() + limit);
        let count = batch.payload.requests().len();
        let last = self.sent.is_empty();
        let answers = match &mut self.worker {
            Some(worker) => worker.answers(&config, &self.name, batch.first, count, deadline),
            None => Err(WorkerLoss::Ended("there is none".to_owned())),
        };
        batch.payload.mark_model_done();
        match answers {
            Ok(ExecutionResult { mut answers, ends }) => {
                if self.states {
                    keep_states(batch.payload.requests(), &mut answers);
                }
                if ends {
                    self.give_up();
                }
                if let Some(worker) = self.worker.as_mut().filter(|_| last) {
                    worker.given.opened();
                }
                if let Some(next) = self.sent.pop_front() {
                    self.begin(next);
                }
                batch.payload.complete_with(answers);
            }
            Err(why) => {
                batch.payload.fail(&lost(&self.name, &why));
                self.give_up();
            }
        }
    }

    /// Ends a worker that is lost or done, and takes back what it has not begun with.
    fn give_up(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.process.kill();
        }
        let mut ready: VecDeque<WorkerBatch> = self.sent.drain(..).map(WorkerBatch::anew).collect();
        ready.extend(self.ready.drain(..).map(WorkerBatch::anew));
        self.ready = ready;
    }
}

/// Keeps the states among the outputs, which the client does not see unless they are outputs that it wants. One that
/// cannot be kept fails its request.
fn keep_states(requests: &[ActiveRequest], answers: &mut [ModelAnswer]) {
    for (request, answer) in requests.iter().zip(answers) {
        let Ok(outputs) = &mut answer.result else { continue };
        let named = outputs.iter().map(|output| (output.name.clone(), output.tensor.clone()));
        let named: NamedTensors = named.collect();
        let asked = &request.request.requested_outputs;
        outputs.retain(|output| {
            let known = request.config().output.iter().any(|known| known.name == output.name);
            known && (asked.is_empty() || asked.contains(&output.name))
        });
        if let Err(error) = sequence_tensors::keep_states(std::slice::from_ref(request), &named) {
            *answer = ModelAnswer::from(Err(error));
        }
    }
}

/// Result of an execution.
#[derive(Debug)]
struct ExecutionResult {
    answers: Vec<ModelAnswer>,
    /// The worker executes nothing more.
    ends: bool,
}

impl PlainWorker {
    /// Reads until the execution is done.
    fn answers(
        &mut self,
        config: &ModelConfig,
        instance: &str,
        first: u64,
        count: usize,
        deadline: Option<Instant>,
    ) -> Result<ExecutionResult, WorkerLoss> {
        let mut all: Vec<Option<ModelAnswer>> =
            std::iter::repeat_with(|| None).take(count).collect();
        loop {
            let message = self.reader.next(deadline)?;
            let kind = message.first().copied();
            if !matches!(kind, Some(wire::DONE | wire::RESPONSE)) {
                return Err(WorkerLoss::Ended(format!("it sends a message of kind {kind:?}")));
            }
            let found = wire::WorkerAnswers::read(message)?;
            let updated = self.theirs.update(&found.closed, &found.opened);
            updated.map_err(|error| WorkerLoss::Ended(error.to_string()))?;
            found.blocks().for_each(|number| self.theirs.note(number));
            let small = found.small;
            let mut memory = WorkerOutputMemory { small, given: &self.given, theirs: &self.theirs };
            for answer in found.answers {
                let at = answer.request.checked_sub(first).and_then(|at| usize::try_from(at).ok());
                let slot = at.and_then(|at| all.get_mut(at));
                let slot = slot.ok_or_else(|| {
                    WorkerLoss::Ended(format!(
                        "it answers request {}, which it has not",
                        answer.request
                    ))
                })?;
                if slot.is_some() {
                    // The first response is the answer; behind it comes the word that there are no more.
                    continue;
                }
                *slot = Some(match answer.response {
                    Some(response) => response::decode(config, response, &mut memory),
                    None if answer.once_more => ModelAnswer::from(Err(not_again(&config.name))),
                    None => ModelAnswer::from(Err(failed(instance, "it has no response"))),
                });
            }
            if kind == Some(wire::DONE) {
                if found.execution != first {
                    let text = format!("it ends execution {}, expected {first}", found.execution);
                    return Err(WorkerLoss::Ended(text));
                }
                let why = found.failure.unwrap_or_else(|| "it has no response".to_owned());
                let missing = || ModelAnswer::from(Err(failed(instance, &why)));
                let answers = all.into_iter().map(|one| one.unwrap_or_else(missing)).collect();
                return Ok(ExecutionResult { answers, ends: found.ends });
            }
        }
    }
}

impl ModelInstance for PlainInstance {
    fn execute(&mut self, payload: BatchPayload) {
        self.execute_in_turn(payload, &mut || None);
    }

    fn pipelines_batches(&self) -> bool {
        true
    }

    fn leaving(&self) -> Option<Arc<dyn ShutdownSignal>> {
        Some(Arc::new(self.keeper.signal()))
    }

    fn execute_in_turn(
        &mut self,
        first: BatchPayload,
        next: &mut dyn FnMut() -> Option<BatchPayload>,
    ) {
        self.ready.push_back(WorkerBatch::new(first));
        loop {
            self.send(next);
            if self.sent.is_empty() {
                return;
            }
            self.receive();
        }
    }
}

impl Drop for PlainInstance {
    fn drop(&mut self) {
        self.keeper.stop();
        if let Some(worker) = self.worker.take() {
            worker.process.stop();
        }
    }
}
