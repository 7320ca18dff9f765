//! Sends spans to a collector in batches: OTLP over HTTP with protobuf.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_serving::trace::{TraceEntry, TraceSink};
use prost::Message;

use super::collector_url::CollectorUrl;
use super::context::TraceParent;
use super::proto::{ExportRequest, Resource, ResourceSpans, Scope, ScopeSpans, Span, text};
use super::spans::spans;
use crate::trace::OpenTelemetry;

/// Longest wait for the collector, for each step of a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head of an answer that is read.
const MAX_HEAD_BYTES: u64 = 16 << 10;

/// Spans that wait.
#[derive(Debug, Default)]
struct SpanQueue {
    spans: Vec<Span>,
    dropped: u64,
    closed: bool,
}

/// The thread that sends spans, and the way to it.
#[derive(Debug)]
pub(crate) struct SpanExporter {
    queue: Arc<(Mutex<SpanQueue>, Condvar)>,
    limit: usize,
    batch: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Gives the spans of one trace to the exporter.
#[derive(Debug)]
struct SpanSink {
    exporter: Arc<SpanExporter>,
    parent: Option<TraceParent>,
}

fn lock(queue: &Mutex<SpanQueue>) -> MutexGuard<'_, SpanQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpanExporter {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails when the address is invalid, or the thread cannot be started.
    pub(crate) fn start(config: &OpenTelemetry) -> Result<Arc<Self>, String> {
        let sender = SpanSender {
            url: CollectorUrl::parse(&config.url)?,
            resource: resource(config),
            // Without a delay each span leaves as soon as it has ended.
            batch: match config.schedule_delay_ms {
                0 => 1,
                _ => config.max_export_batch_size.max(1),
            },
            delay: Duration::from_millis(config.schedule_delay_ms),
            failing: false,
        };
        let queue = Arc::<(Mutex<SpanQueue>, Condvar)>::default();
        let limit = config.max_queue_size.max(1);
        let batch = sender.batch;
        let mine = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("trace-exporter".to_owned())
            .spawn(move || sender.run(&mine))
            .map_err(|error| format!("cannot start the thread that exports traces: {error}"))?;
        Ok(Arc::new(Self { queue, limit, batch, thread: Mutex::new(Some(thread)) }))
    }

    /// Returns the sink of one trace.
    pub(crate) fn sink(self: &Arc<Self>, parent: Option<TraceParent>) -> Arc<dyn TraceSink> {
        Arc::new(SpanSink { exporter: Arc::clone(self), parent })
    }

    /// Sends what waits and ends the thread.
    pub(crate) fn close(&self) {
        lock(&self.queue.0).closed = true;
        self.queue.1.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that exports traces panicked");
        }
    }
}

impl Drop for SpanExporter {
    fn drop(&mut self) {
        self.close();
    }
}

impl TraceSink for SpanSink {
    fn finished(&self, entries: Vec<TraceEntry>) {
        let new = spans(&entries, self.parent);
        let mut queue = lock(&self.exporter.queue.0);
        if queue.closed {
            return;
        }
        let waited = !queue.spans.is_empty();
        for span in new {
            if queue.spans.len() < self.exporter.limit {
                queue.spans.push(span);
            } else {
                queue.dropped += 1;
            }
        }
        if !waited || queue.spans.len() >= self.exporter.batch.min(self.exporter.limit) {
            self.exporter.queue.1.notify_all();
        }
    }
}

/// Returns the attributes of this service.
fn resource(config: &OpenTelemetry) -> Resource {
    let mut attributes = vec![text("service.name", "triton-inference-server")];
    for (key, value) in &config.resource {
        attributes.retain(|other| other.key != *key);
        attributes.push(text(key, value));
    }
    Resource { attributes }
}

/// Owner of the way to the collector.
struct SpanSender {
    url: CollectorUrl,
    resource: Resource,
    batch: usize,
    delay: Duration,
    failing: bool,
}

impl SpanSender {
    fn run(mut self, queue: &(Mutex<SpanQueue>, Condvar)) {
        loop {
            let (spans, dropped, closed) = self.wait(queue);
            if dropped > 0 {
                tracing::warn!(
                    "BatchSpanProcessor queue is full - dropping span. {dropped} spans were dropped"
                );
            }
            for batch in spans.chunks(self.batch) {
                let sent = self.send(batch);
                self.report(sent);
                // A collector that does not answer must not hold the end of the server up again and again.
                if closed && self.failing {
                    break;
                }
            }
            if closed {
                return;
            }
        }
    }

    /// Waits for a full batch, for the end of the delay after the first span, or for the end.
    fn wait(&self, queue: &(Mutex<SpanQueue>, Condvar)) -> (Vec<Span>, u64, bool) {
        let mut waiting = lock(&queue.0);
        while !waiting.closed && waiting.spans.is_empty() {
            waiting = queue.1.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + self.delay;
        while !waiting.closed && waiting.spans.len() < self.batch {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            let woken = queue.1.wait_timeout(waiting, rest);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let spans = std::mem::take(&mut waiting.spans);
        (spans, std::mem::take(&mut waiting.dropped), waiting.closed)
    }

    fn send(&self, spans: &[Span]) -> io::Result<()> {
        let scope = Scope { name: "triton-server".to_owned() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: spans.to_vec() }];
        let resource = Some(self.resource.clone());
        let message =
            ExportRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] };
        post(&self.url, &message.encode_to_vec())
    }

    /// Says when the collector stops to take spans, and when it takes them again.
    fn report(&mut self, sent: io::Result<()>) {
        match sent {
            Ok(()) if self.failing => {
                self.failing = false;
                tracing::info!("the trace collector takes spans again");
            }
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::error!(
                    "failed to export traces to http://{}{}: {error}",
                    self.url.authority,
                    self.url.path
                );
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Sends one message and looks at the status of the answer.
fn post(url: &CollectorUrl, body: &[u8]) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
    let mut stream = None;
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(open) => {
                stream = Some(open);
                break;
            }
            Err(error) => last = error,
        }
    }
    let mut stream = stream.ok_or(last)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        url.path,
        url.authority,
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(MAX_HEAD_BYTES).read_to_end(&mut answer)?;
    let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    match line.split(' ').nth(1) {
        Some(status) if status.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!("the collector answered '{line}'"))),
    }
}
