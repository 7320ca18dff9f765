//! Calls of workers: a second socket for each, on which a model asks the server for something at any time and from any
//! thread, also while it executes.
//!
//! The worker finds its end as its standard output, which it replaces before anything else runs. Messages are framed as
//! on the first socket; the first of them comes behind [`PREAMBLE`], as an interpreter may have printed something before.
//!
//! From the worker: `CALL`: number (8), JSON of an object whose `call` names what is wanted; `INFER`, a request to a model
//! ([`bls_request`]); `CANCEL`: number (8) of an `INFER` whose answers nobody wants any more; `RELEASE`:
//! number (8) of a metric or a family of these that the worker has lost. From the server: `REPLY`: number (8), code of an
//! error + 1 (1, 0 for none), then JSON or the text of the error; `RESPONSE` to an `INFER`. Large tensors lie in blocks of
//! shared memory that only calls use, with a page of flags of their own.
//!
//! A thread of the server reads the calls of a worker. It waits for no worker, also where it executes a model and sends
//! its answer, so that the worker can always send ([`worker_outbox`]). Calls that take long have a thread of
//! their own.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use serde_json::Value;

use super::blocks::WorkerBlocks;
use super::bls_callee::BlsCallee;
use super::bls_request::{self, INFER};
use super::bls_socket::BlsSocket;
use super::control;
use super::metrics;
use super::wire;
use super::worker_outbox;
use super::worker_process::{MessageReader, WorkerLoss, WorkerProcess};
use crate::error::ServingError;

/// Bytes before the first message.
const PREAMBLE: &[u8] = b"\x00galatea calls 1\n";
/// Most bytes that an interpreter prints before.
const MAX_PRINTED_BYTES: usize = 64 << 10;

const CALL: u8 = 1;
const CANCEL: u8 = 3;
const RELEASE: u8 = 4;

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

/// Finds who answers a call.
fn row(call: &Value) -> Result<&'static BlsCall, ServingError> {
    let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| ServingError::unsupported(format!("'{name}' found as the name of a call")))
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
                tracing::debug!(model = %callee.model(), "no more calls of a worker: {why}");
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
        tracing::info!(model = %callee.model(), "{line}");
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
