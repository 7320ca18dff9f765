//! A call from its request to the last byte of its answer: counted, and written to the access log.

use std::time::Instant;

use crate::access::ClientPass;
use crate::in_flight::InFlightEntry;

/// A call that is under way. While it exists the server does not stop.
pub(super) struct ActiveCall {
    log: Option<Box<CallLog>>,
    _entries: [InFlightEntry; 2],
    _pass: Option<ClientPass>,
}

impl ActiveCall {
    /// A call that begins now.
    pub(super) fn new(log: Option<Box<CallLog>>, entries: [InFlightEntry; 2]) -> Self {
        Self { log, _entries: entries, _pass: None }
    }

    /// The same call with its place among the requests of its key.
    pub(super) fn with_pass(self, pass: Option<ClientPass>) -> Self {
        Self { _pass: pass, ..self }
    }

    /// Looks for the status where an answer has one.
    pub(super) fn look(&mut self, headers: &http::HeaderMap) {
        if let Some(log) = &mut self.log
            && let Some(code) = headers.get("grpc-status").and_then(|value| value.to_str().ok())
        {
            log.status = Some(code.to_owned());
        }
    }
}

/// Entry of the access log for a call.
pub(super) struct CallLog {
    path: String,
    start: Instant,
    status: Option<String>,
}

impl CallLog {
    /// A call that begins now.
    pub(super) fn new(path: &str) -> Box<Self> {
        Box::new(Self { path: path.to_owned(), start: Instant::now(), status: None })
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        let seconds = self.start.elapsed().as_secs_f64();
        let code = self.status.as_deref().map(|text| tonic::Code::from_bytes(text.as_bytes()));
        match code {
            Some(code) => {
                tracing::debug!("GRPC request: {} {code:?} {seconds:.6} s", self.path);
            }
            None => tracing::debug!("GRPC request: {} without status {seconds:.6} s", self.path),
        }
    }
}
