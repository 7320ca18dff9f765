//! A call from its request to the last byte of its answer: counted, and written to the access log.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use crate::tally::Entry;

/// The body of an answer. While it exists the server does not stop.
pub(super) struct Counted {
    body: Body,
    log: Option<Box<Log>>,
    _entries: [Entry; 2],
}

/// What the access log says of a call.
pub(super) struct Log {
    path: String,
    start: Instant,
    status: Option<String>,
}

impl Log {
    /// A call that begins now.
    pub(super) fn new(path: &str) -> Box<Self> {
        Box::new(Self { path: path.to_owned(), start: Instant::now(), status: None })
    }

    /// Looks for the status where an answer has one.
    fn look(&mut self, headers: &http::HeaderMap) {
        if let Some(code) = headers.get("grpc-status").and_then(|value| value.to_str().ok()) {
            self.status = Some(code.to_owned());
        }
    }
}

impl Drop for Log {
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

/// Counts an answer until its body has gone.
pub(super) fn counted(
    response: http::Response<Body>,
    mut log: Option<Box<Log>>,
    entries: [Entry; 2],
) -> http::Response<Counted> {
    if let Some(log) = &mut log {
        log.look(response.headers());
    }
    response.map(|body| Counted { body, log, _entries: entries })
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(frame))), Some(log)) = (&polled, &mut self.log)
            && let Some(trailers) = frame.trailers_ref()
        {
            log.look(trailers);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
