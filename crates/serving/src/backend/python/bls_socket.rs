//! The server's end of the socket on which a worker calls it.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

use super::blocks::ServerBlocks;
use super::locked;
use super::wire;
use super::worker_metrics::WorkerMetrics;
use super::worker_outbox::BlsOutbox;
use crate::cancel::CancelToken;
use crate::error::ServingError;
use crate::request::TokenMeter;
use crate::trace::RequestTrace;
use crate::waiting_models::WaitingModels;

/// Kind of the message that answers a call.
const REPLY: u8 = 1;

/// The server's end of the socket, for all who write to it.
#[derive(Debug)]
pub(super) struct BlsSocket {
    /// For the thread that reads.
    pub(super) socket: UnixStream,
    outbox: BlsOutbox,
    /// The memory for outputs, of workers that may call models. Whoever writes to it has it locked until the message
    /// about that is on its way.
    given: Mutex<Option<ServerBlocks>>,
    /// Requests that models have not answered yet.
    open: Mutex<HashMap<u64, CancelToken>>,
    /// Facts about requests that the worker itself has.
    held: Mutex<HashMap<u64, BlsOrigin>>,
    metrics: Mutex<WorkerMetrics>,
}

/// Facts about a request that a worker has, for the calls that it makes meanwhile.
#[derive(Clone, Debug, Default)]
pub(super) struct BlsOrigin {
    /// Models that wait for the request.
    pub(super) callers: WaitingModels,
    pub(super) trace: Option<Arc<RequestTrace>>,
    /// Counter of the tokens of the client behind it, if they are limited.
    pub(super) token_meter: Option<Arc<dyn TokenMeter>>,
}

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

    /// Nobody wants the answers to a request to a model any more.
    pub(super) fn cancel(&self, number: u64) {
        let token = locked(&self.open).get(&number).cloned();
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// The worker has gone: nobody waits for its requests any more.
    pub(super) fn end(&self) {
        self.close();
        let open = std::mem::take(&mut *locked(&self.open));
        open.into_values().for_each(|token| token.cancel());
        drop(locked(&self.given).take());
        *self.metrics() = WorkerMetrics::default();
    }

    /// The metrics that the worker holds.
    pub(super) fn metrics(&self) -> MutexGuard<'_, WorkerMetrics> {
        locked(&self.metrics)
    }

    /// Notes what is known of a request that the worker has.
    pub(super) fn hold(&self, number: u64, origin: BlsOrigin) {
        locked(&self.held).insert(number, origin);
    }

    /// The worker has answered that request.
    pub(super) fn release(&self, number: u64) {
        locked(&self.held).remove(&number);
    }

    /// The longest of the chains of models that wait for what the worker has.
    pub(super) fn callers(&self) -> WaitingModels {
        let held = locked(&self.held);
        let longest = held.values().max_by_key(|origin| origin.callers.depth());
        longest.map(|origin| origin.callers.clone()).unwrap_or_default()
    }

    /// The trace of a request that the worker has.
    pub(super) fn trace(&self, number: u64) -> Option<Arc<RequestTrace>> {
        locked(&self.held).get(&number)?.trace.clone()
    }

    /// Counter of the tokens of a call: that of the request that it is made for, or where the worker does not say so
    /// of one that it has.
    pub(super) fn token_meter(&self, number: Option<u64>) -> Option<Arc<dyn TokenMeter>> {
        let held = locked(&self.held);
        match number.and_then(|number| held.get(&number)) {
            Some(origin) => origin.token_meter.clone(),
            None => held.values().find_map(|origin| origin.token_meter.clone()),
        }
    }

    /// Answers a call.
    pub(super) fn reply(&self, number: u64, result: Result<Value, ServingError>) {
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
