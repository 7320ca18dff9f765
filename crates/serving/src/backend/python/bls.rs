//! Calls of workers: a second socket for each, on which a model asks the server for something at any time and from any
//! thread, also while it executes.
//!
//! The worker finds its end as its standard output, which it replaces before anything else runs. Messages are framed as
//! on the first socket; the first of them comes behind [`PREAMBLE`], as an interpreter may have printed something before.
//!
//! From the worker: `CALL`: number (8), JSON of an object whose `call` names what is wanted; `INFER`, a request to a model
//! ([`called`](super::called)); `CANCEL`: number (8) of an `INFER` whose answers nobody wants any more; `RELEASE`:
//! number (8) of a metric or a family of these that the worker has lost. From the server: `REPLY`: number (8), code of an
//! error + 1 (1, 0 for none), then JSON or the text of the error; `RESPONSE` to an `INFER`. Large tensors lie in blocks of
//! shared memory that only calls use, with a page of flags of their own.
//!
//! A thread of the server reads the calls of a worker. It waits for no worker, also where it executes a model and sends
//! its answer, so that the worker can always send ([`outbox`](super::outbox)). Calls that take long have a thread of
//! their own.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

use super::blocks::{ServerBlocks, WorkerBlocks};
use super::bls_request::{self, INFER};
use super::control;
use super::locked;
use super::metrics;
use super::wire;
use super::worker::{MessageReader, WorkerLoss, WorkerProcess};
use super::worker_outbox::{self, BlsOutbox};
use crate::backend::{HostLink, ModelHost};
use crate::cancel::CancelToken;
use crate::custom_metrics::CustomMetrics;
use crate::error::ServingError;
use crate::trace::RequestTrace;
use crate::waiting_models::WaitingModels;

/// Bytes before the first message.
const PREAMBLE: &[u8] = b"\x00galatea calls 1\n";
/// Most bytes that an interpreter prints before.
const MAX_PRINTED_BYTES: usize = 64 << 10;

const CALL: u8 = 1;
const CANCEL: u8 = 3;
const RELEASE: u8 = 4;

const REPLY: u8 = 1;

/// Receiver of the calls of a model's workers.
#[derive(Debug)]
pub(super) struct BlsCallee {
    /// The model's name.
    model: String,
    host: HostLink,
    /// Waits of all models of the server while they are loaded.
    pub(super) loads: Arc<control::ModelLoadWaits>,
}

/// Something that can be called.
struct BlsCall {
    name: &'static str,
    /// Whether it may take long, so that it needs a thread of its own.
    slow: bool,
    answer: fn(&BlsCallee, &BlsSocket, &Value) -> Result<Value, ServingError>,
}

const ROWS: &[BlsCall] = &[
    BlsCall {
        name: "is_model_ready",
        slow: false,
        answer: |callee, _, call| control::is_ready(callee, call),
    },
    BlsCall {
        name: "load_model",
        slow: true,
        answer: |callee, _, call| control::load(callee, call),
    },
    BlsCall {
        name: "unload_model",
        slow: true,
        answer: |callee, _, call| control::unload(callee, call),
    },
    BlsCall { name: "metric_family", slow: false, answer: metrics::family },
    BlsCall { name: "metric", slow: false, answer: metrics::metric },
    BlsCall { name: "metric_use", slow: false, answer: metrics::change },
];

impl BlsCallee {
    pub(super) fn new(
        model: &str,
        host: &HostLink,
        loads: &Arc<control::ModelLoadWaits>,
    ) -> Arc<Self> {
        let host = host.clone();
        let loads = Arc::clone(loads);
        Arc::new(Self { model: model.to_owned(), host, loads })
    }

    /// The model's name.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// The metrics that models make.
    pub(super) fn metrics(&self) -> &CustomMetrics {
        self.host.metrics()
    }

    /// The server.
    ///
    /// # Errors
    /// UNAVAILABLE when it stops.
    pub(super) fn host(&self) -> Result<Arc<dyn ModelHost>, ServingError> {
        self.host.get()
    }
}

/// Finds who answers a call.
fn row(call: &Value) -> Result<&'static BlsCall, ServingError> {
    let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| ServingError::unsupported(format!("'{name}' found as the name of a call")))
}

/// The server's end of the socket, for all who write to it.
#[derive(Debug)]
pub(super) struct BlsSocket {
    /// For the thread that reads.
    socket: UnixStream,
    outbox: BlsOutbox,
    /// The memory for outputs, of workers that may call models. Whoever writes to it has it locked until the message
    /// about that is on its way.
    given: Mutex<Option<ServerBlocks>>,
    /// Requests that models have not answered yet.
    open: Mutex<HashMap<u64, CancelToken>>,
    /// Facts about requests that the worker itself has.
    held: Mutex<HashMap<u64, BlsOrigin>>,
    metrics: Mutex<metrics::WorkerMetrics>,
}

/// Facts about a request: who waits for it, and its trace.
type BlsOrigin = (WaitingModels, Option<Arc<RequestTrace>>);

impl BlsSocket {
    /// Takes an end. Who does not read for as long as `timeout` has hung.
    ///
    /// # Errors
    /// When the socket cannot have a time-out or a second name.
    pub(super) fn new(
        socket: UnixStream,
        timeout: Duration,
        given: Option<ServerBlocks>,
    ) -> io::Result<Self> {
        let outbox = BlsOutbox::new(socket.try_clone()?, timeout)?;
        let given = Mutex::new(given);
        let (open, held, metrics) = Default::default();
        Ok(Self { socket, outbox, given, open, held, metrics })
    }

    /// Nothing more is read or written.
    pub(super) fn close(&self) {
        self.outbox.close();
    }

    /// Sends a message.
    pub(super) fn send(&self, message: Vec<u8>) {
        self.outbox.push(message);
        self.outbox.wait();
    }

    /// Sends the message that `make` gives, which writes to the memory for outputs.
    pub(super) fn send_with(&self, make: impl FnOnce(Option<&mut ServerBlocks>) -> Vec<u8>) {
        let mut given = locked(&self.given);
        self.outbox.push(make(given.as_mut()));
        drop(given);
        self.outbox.wait();
    }

    /// The worker has opened so many of the blocks that it was told of. While somebody writes to one nothing is done
    /// about that: the worker's next request says it again.
    pub(super) fn opened(&self, count: u64) {
        if let Ok(mut given) = self.given.try_lock()
            && let Some(given) = given.as_mut()
        {
            given.opened_first(count);
        }
    }

    /// A request to a model begins.
    pub(super) fn open(&self, number: u64, cancel: &CancelToken) {
        locked(&self.open).insert(number, cancel.clone());
    }

    /// A request to a model has ended.
    pub(super) fn forget(&self, number: u64) {
        locked(&self.open).remove(&number);
    }

    fn cancel(&self, number: u64) {
        let token = locked(&self.open).get(&number).cloned();
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// The worker has gone: nobody waits for its requests any more.
    fn end(&self) {
        self.close();
        let open = std::mem::take(&mut *locked(&self.open));
        open.into_values().for_each(|token| token.cancel());
        drop(locked(&self.given).take());
        *self.metrics() = metrics::WorkerMetrics::default();
    }

    /// The metrics that the worker holds.
    pub(super) fn metrics(&self) -> MutexGuard<'_, metrics::WorkerMetrics> {
        locked(&self.metrics)
    }

    /// Notes what is known of a request that the worker has.
    pub(super) fn hold(
        &self,
        number: u64,
        callers: WaitingModels,
        trace: Option<Arc<RequestTrace>>,
    ) {
        locked(&self.held).insert(number, (callers, trace));
    }

    /// The worker has answered that request.
    pub(super) fn release(&self, number: u64) {
        locked(&self.held).remove(&number);
    }

    /// The longest of the chains of models that wait for what the worker has.
    pub(super) fn callers(&self) -> WaitingModels {
        let held = locked(&self.held);
        let longest = held.values().max_by_key(|(callers, _)| callers.depth());
        longest.map(|(callers, _)| callers.clone()).unwrap_or_default()
    }

    /// The trace of a request that the worker has.
    pub(super) fn trace(&self, number: u64) -> Option<Arc<RequestTrace>> {
        locked(&self.held).get(&number)?.1.clone()
    }

    fn reply(&self, number: u64, result: Result<Value, ServingError>) {
        let mut message = wire::begin(REPLY);
        message.u64(number);
        match result {
            Ok(value) => {
                message.u8(0);
                message.raw(value.to_string().as_bytes());
            }
            Err(error) => {
                message.u8(wire::code_number(error.code) + 1);
                message.raw(error.message.as_bytes());
            }
        }
        self.send(wire::end(message));
    }
}

/// Starts the thread that reads the calls of a worker.
///
/// # Errors
/// When there is no thread or no second name for the socket.
pub(super) fn start(
    callee: &Arc<BlsCallee>,
    process: &Arc<WorkerProcess>,
    mut theirs: Option<WorkerBlocks>,
) -> io::Result<()> {
    let socket = process.calls().socket.try_clone()?;
    let callee = Arc::clone(callee);
    let process = Arc::clone(process);
    let listen = move || {
        worker_outbox::never_wait();
        if begin(&callee, &socket).is_ok() {
            let mut reader = MessageReader::new(socket, &process, 1 << 12);
            let ended = listen(&callee, &process, &mut reader, theirs.as_mut());
            if let Err(WorkerLoss::Ended(why)) = ended {
                tracing::debug!(model = %callee.model, "no more calls of a worker: {why}");
            }
        }
        process.calls().end();
    };
    std::thread::Builder::new().name("worker-calls".to_owned()).spawn(listen).map(drop)
}

/// Reads up to the first message, and logs what was printed before.
fn begin(callee: &BlsCallee, mut socket: &UnixStream) -> io::Result<()> {
    let mut found = Vec::new();
    let mut byte = [0];
    while !found.ends_with(PREAMBLE) {
        socket.read_exact(&mut byte)?;
        found.extend_from_slice(&byte);
        if found.len() > MAX_PRINTED_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
    }
    let printed = found.get(..found.len() - PREAMBLE.len()).unwrap_or_default();
    for line in String::from_utf8_lossy(printed).lines() {
        tracing::info!(model = %callee.model, "{line}");
    }
    Ok(())
}

fn listen(
    callee: &Arc<BlsCallee>,
    process: &Arc<WorkerProcess>,
    reader: &mut MessageReader,
    mut theirs: Option<&mut WorkerBlocks>,
) -> Result<(), WorkerLoss> {
    loop {
        let message = reader.next(None)?;
        let mut fields = wire::FieldReader::new(message);
        match (fields.u8()?, theirs.as_deref_mut()) {
            (CALL, _) => call(callee, process, fields.u64()?, fields.rest()),
            (CANCEL, _) => process.calls().cancel(fields.u64()?),
            (RELEASE, _) => process.calls().metrics().release(fields.u64()?),
            (INFER, Some(theirs)) => {
                bls_request::infer(callee, process, theirs, fields.u64()?, fields.rest())?;
            }
            (kind, _) => {
                return Err(WorkerLoss::Ended(format!("it calls with a message of kind {kind}")));
            }
        }
    }
}

fn call(callee: &Arc<BlsCallee>, process: &Arc<WorkerProcess>, number: u64, text: &[u8]) {
    let calls = process.calls();
    let parsed = serde_json::from_slice(text);
    let parsed: Result<Value, ServingError> =
        parsed.map_err(|error| ServingError::invalid_arg(format!("a call is no JSON: {error}")));
    let found = parsed.and_then(|call| Ok((row(&call)?, call)));
    let (row, call) = match found {
        Ok(found) => found,
        Err(error) => return calls.reply(number, Err(error)),
    };
    if !row.slow {
        return calls.reply(number, (row.answer)(callee, calls, &call));
    }
    let callee = Arc::clone(callee);
    let kept = Arc::clone(process);
    let run = move || kept.calls().reply(number, (row.answer)(&callee, kept.calls(), &call));
    let thread = std::thread::Builder::new().name(row.name.to_owned()).spawn(run);
    if let Err(error) = thread {
        calls.reply(number, Err(ServingError::internal(format!("cannot start a thread: {error}"))));
    }
}
