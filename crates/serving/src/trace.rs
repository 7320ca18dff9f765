//! Traces of requests: when a request reached which stage, and with which tensors.
//!
//! A front end decides whether a request is traced and gives it a [`RequestTrace`]. The core stamps the stages into it, the
//! front end stamps its own, and the requests that an ensemble makes have children of it. When the last holder lets
//! go, the sink gets everything at once. A request without a trace costs one look at an empty field.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The request is accepted.
pub const REQUEST_START: &str = "REQUEST_START";
/// The request begins to wait.
pub const QUEUE_START: &str = "QUEUE_START";
/// An instance begins with the request.
pub const COMPUTE_START: &str = "COMPUTE_START";
/// The inputs are gathered.
pub const COMPUTE_INPUT_END: &str = "COMPUTE_INPUT_END";
/// The model has run.
pub const COMPUTE_OUTPUT_START: &str = "COMPUTE_OUTPUT_START";
/// The outputs are ready.
pub const COMPUTE_END: &str = "COMPUTE_END";
/// A response is handed out.
pub const INFER_RESPONSE_COMPLETE: &str = "INFER_RESPONSE_COMPLETE";
/// The request is done with.
pub const REQUEST_END: &str = "REQUEST_END";

/// Most entries of a request and of all that it causes. A model without end of responses makes no trace without end.
const MAX_ENTRIES: usize = 100_000;

/// Contents of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceLevel {
    /// Times of the stages.
    pub timestamps: bool,
    /// Inputs and outputs.
    pub tensors: bool,
}

impl TraceLevel {
    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_off(self) -> bool {
        !self.timestamps && !self.tensors
    }
}

/// A tensor as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedTensor {
    /// Name.
    pub name: String,
    /// Elements, joined by commas.
    pub data: String,
    /// Dimensions, joined by commas.
    pub shape: String,
    /// Type as on the wire.
    pub datatype: &'static str,
}

/// Kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// Whose trace it is.
    Began {
        /// Model.
        model: String,
        /// Version.
        version: String,
        /// Id that the client gave; may be empty.
        request_id: String,
        /// Id of the trace of which this one is a part.
        parent: Option<u64>,
    },
    /// A stage was reached. `ns` counts from 1970.
    Stamp {
        /// Stage.
        name: &'static str,
        /// Time in nanoseconds.
        ns: u64,
    },
    /// A tensor passed.
    Tensor {
        /// Where.
        activity: &'static str,
        /// The tensor.
        tensor: TracedTensor,
    },
}

/// One thing that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Id of the trace.
    pub trace: u64,
    /// Event that happened.
    pub event: TraceEvent,
}

/// Where the entries of a request and of all that it caused go, in the order in which they were recorded.
pub trait TraceSink: Send + Sync + fmt::Debug {
    /// Takes them. Must not block.
    fn finished(&self, entries: Vec<TraceEntry>);
}

/// The trace of one request.
pub struct RequestTrace {
    id: u64,
    parent: Option<u64>,
    began: AtomicBool,
    root: Arc<TraceRoot>,
}

/// Data that the trace of a request shares with its children.
struct TraceRoot {
    level: TraceLevel,
    entries: Mutex<Vec<TraceEntry>>,
    sink: Arc<dyn TraceSink>,
}

impl fmt::Debug for RequestTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("id", &self.id).field("parent", &self.parent).finish()
    }
}

impl Drop for TraceRoot {
    fn drop(&mut self) {
        let entries = self.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A request that was refused before it began has no trace.
        if entries.iter().any(|entry| matches!(entry.event, TraceEvent::Began { .. })) {
            self.sink.finished(std::mem::take(entries));
        }
    }
}

/// Ids count all traces of the process.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Nanoseconds from 1970 to a moment, by a clock that never goes back.
#[must_use]
pub fn unix_ns(at: Instant) -> u64 {
    static BASE: OnceLock<(Instant, u64)> = OnceLock::new();
    let (instant, base) = BASE.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    });
    let ns = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    // A moment before the first call has its place too.
    match at.checked_duration_since(*instant) {
        Some(later) => base.saturating_add(ns(later)),
        None => base.saturating_sub(ns(instant.saturating_duration_since(at))),
    }
}

impl RequestTrace {
    /// The trace of a request that came from outside.
    #[must_use]
    pub fn new(level: TraceLevel, sink: Arc<dyn TraceSink>) -> Arc<Self> {
        let root = Arc::new(TraceRoot { level, entries: Mutex::default(), sink });
        Arc::new(Self { id: next_id(), parent: None, began: AtomicBool::new(false), root })
    }

    /// The trace of a request that this one causes, such as a step of an ensemble.
    #[must_use]
    pub fn child(&self) -> Arc<Self> {
        Arc::new(Self {
            id: next_id(),
            parent: Some(self.id),
            began: AtomicBool::new(false),
            root: Arc::clone(&self.root),
        })
    }

    /// The number of the trace.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A stage is reached now.
    pub fn stamp(&self, name: &'static str) {
        self.stamp_at(name, Instant::now());
    }

    /// A stage was reached.
    pub fn stamp_at(&self, name: &'static str, at: Instant) {
        if self.root.level.timestamps {
            self.push(TraceEvent::Stamp { name, ns: unix_ns(at) });
        }
    }

    /// Returns whether the request has begun before, and notes that it does now.
    pub(crate) fn has_begun(&self) -> bool {
        self.began.swap(true, Ordering::Relaxed)
    }

    /// Returns what the trace holds.
    pub(crate) fn level(&self) -> TraceLevel {
        self.root.level
    }

    /// Returns the id of the trace of which this one is a part.
    pub(crate) fn parent(&self) -> Option<u64> {
        self.parent
    }

    pub(crate) fn push(&self, event: TraceEvent) {
        let mut entries = self.root.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() < MAX_ENTRIES {
            entries.push(TraceEntry { trace: self.id, event });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::InferenceRequest;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<Vec<TraceEntry>>>);

    impl TraceSink for Kept {
        fn finished(&self, entries: Vec<TraceEntry>) {
            self.0.lock().unwrap().push(entries);
        }
    }

    #[test]
    fn the_sink_gets_a_request_with_its_children_when_the_last_holder_lets_go() {
        let kept = Arc::new(Kept::default());
        let level = TraceLevel { timestamps: true, tensors: false };
        let trace = RequestTrace::new(level, kept.clone());
        let request = InferenceRequest { id: "r".to_owned(), ..InferenceRequest::default() };
        trace.stamp("OUTER");
        trace.begin("m", "1", &request);
        trace.begin("m", "1", &request);
        let child = trace.child();
        child.begin("step", "2", &request);
        let own = trace.id();
        let other = child.id();
        drop(trace);
        assert!(kept.0.lock().unwrap().is_empty());
        child.respond(&[]);
        drop(child);
        let finished = kept.0.lock().unwrap().pop().unwrap();
        let names: Vec<(u64, &str)> = finished
            .iter()
            .map(|entry| match &entry.event {
                TraceEvent::Began { model, .. } => (entry.trace, model.as_str()),
                TraceEvent::Stamp { name, .. } => (entry.trace, *name),
                TraceEvent::Tensor { activity, .. } => (entry.trace, *activity),
            })
            .collect();
        assert_eq!(
            names,
            [
                (own, "OUTER"),
                (own, "m"),
                (own, REQUEST_START),
                (own, QUEUE_START),
                (other, "step"),
                (other, REQUEST_START),
                (other, QUEUE_START),
                (other, INFER_RESPONSE_COMPLETE),
            ]
        );
        let parent = finished.iter().find_map(|entry| match entry.event {
            TraceEvent::Began { parent, .. } if entry.trace == other => parent,
            _ => None,
        });
        assert_eq!(parent, Some(own));
    }

    #[test]
    fn moments_before_the_clock_was_first_read_have_their_place() {
        let early = Instant::now();
        let late = unix_ns(Instant::now());
        assert!(unix_ns(early) <= late);
    }
}
