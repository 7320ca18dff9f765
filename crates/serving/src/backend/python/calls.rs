//! What workers call: a second socket for each, on which a model asks the server for something at any time and from any
//! thread, also while it executes.
//!
//! The worker finds its end as its standard output, which it replaces before anything else runs. Messages are framed as
//! on the first socket; the first of them comes behind [`PREAMBLE`], as an interpreter may have printed something before.
//!
//! From the worker: `CALL`: number (8), JSON of an object whose `call` names what is wanted. From the server: `REPLY`:
//! number (8), code of an error + 1 (1, 0 for none), then JSON or the text of the error. A thread of the server reads the
//! calls of a worker; it waits for nothing else, so that the worker can always send. Calls that take long have a thread
//! of their own.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::wire;
use super::worker::{Lost, Process, Reader};
use crate::error::Error;

/// What comes before the first message.
const PREAMBLE: &[u8] = b"\x00galatea calls 1\n";
/// Most bytes that an interpreter prints before.
const MAX_PRINTED_BYTES: usize = 64 << 10;

const CALL: u8 = 1;

const REPLY: u8 = 1;

/// Who answers the calls of a model's workers.
#[derive(Debug)]
pub(super) struct Callee {
    /// The model's name.
    model: String,
}

/// Something that can be called.
struct Row {
    name: &'static str,
    /// Whether it may take long, so that it needs a thread of its own.
    slow: bool,
    answer: fn(&Callee, &Value) -> Result<Value, Error>,
}

const ROWS: &[Row] = &[Row { name: "echo", slow: false, answer: |_, call| Ok(call.clone()) }];

impl Callee {
    pub(super) fn new(model: &str) -> Arc<Self> {
        Arc::new(Self { model: model.to_owned() })
    }
}

/// Finds who answers a call.
fn row(call: &Value) -> Result<&'static Row, Error> {
    let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| Error::unsupported(format!("'{name}' found as the name of a call")))
}

/// The server's end of the socket, for all who write to it.
#[derive(Debug)]
pub(super) struct Calls {
    socket: UnixStream,
    writing: Mutex<()>,
}

impl Calls {
    /// Takes an end. Who does not read for as long as `timeout` has hung.
    ///
    /// # Errors
    /// When the socket cannot have a time-out.
    pub(super) fn new(socket: UnixStream, timeout: Duration) -> io::Result<Self> {
        socket.set_write_timeout(Some(timeout))?;
        Ok(Self { socket, writing: Mutex::new(()) })
    }

    /// Nothing more is read or written.
    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Sends a message. What cannot be sent ends the socket, as a part of it may have gone.
    fn send(&self, message: &[u8]) {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = (&self.socket).write_all(message);
        drop(writing);
        if sent.is_err() {
            self.close();
        }
    }

    fn reply(&self, number: u64, result: Result<Value, Error>) {
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
        self.send(&wire::end(message));
    }
}

/// Starts the thread that reads the calls of a worker.
///
/// # Errors
/// When there is no thread or no second name for the socket.
pub(super) fn start(callee: &Arc<Callee>, process: &Arc<Process>) -> io::Result<()> {
    let socket = process.calls().socket.try_clone()?;
    let (callee, process) = (Arc::clone(callee), Arc::clone(process));
    let listen = move || {
        if begin(&callee, &socket).is_ok() {
            let mut reader = Reader::new(socket, &process, 1 << 12);
            let Err(Lost::Ended(why)) = listen(&callee, &process, &mut reader) else { return };
            tracing::debug!(model = %callee.model, "no more calls of a worker: {why}");
        }
        process.calls().close();
    };
    std::thread::Builder::new().name("worker-calls".to_owned()).spawn(listen).map(drop)
}

/// Reads up to the first message, and logs what was printed before.
fn begin(callee: &Callee, mut socket: &UnixStream) -> io::Result<()> {
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

fn listen(callee: &Arc<Callee>, process: &Arc<Process>, reader: &mut Reader) -> Result<(), Lost> {
    loop {
        let message = reader.next(None)?;
        let mut fields = wire::Fields::new(message);
        match fields.u8()? {
            CALL => call(callee, process, fields.u64()?, fields.rest()),
            kind => return Err(Lost::Ended(format!("it calls with a message of kind {kind}"))),
        }
    }
}

fn call(callee: &Arc<Callee>, process: &Arc<Process>, number: u64, text: &[u8]) {
    let calls = process.calls();
    let parsed = serde_json::from_slice(text);
    let parsed: Result<Value, Error> =
        parsed.map_err(|error| Error::invalid_arg(format!("a call is no JSON: {error}")));
    let found = parsed.and_then(|call| Ok((row(&call)?, call)));
    let (row, call) = match found {
        Ok(found) => found,
        Err(error) => return calls.reply(number, Err(error)),
    };
    if !row.slow {
        return calls.reply(number, (row.answer)(callee, &call));
    }
    let (callee, kept) = (Arc::clone(callee), Arc::clone(process));
    let run = move || kept.calls().reply(number, (row.answer)(&callee, &call));
    let thread = std::thread::Builder::new().name(row.name.to_owned()).spawn(run);
    if let Err(error) = thread {
        calls.reply(number, Err(Error::internal(format!("cannot start a thread: {error}"))));
    }
}
