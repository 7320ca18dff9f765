//! Traces of requests: which are traced, the settings that clients can change, and where traces go.

mod config;
mod file;
pub mod otel;
pub(crate) mod parse;
mod settings;
mod view;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use galatea_serving::ServingError;
use galatea_serving::trace::{RequestTrace, TraceEntry, TraceEvent, TraceLevel, TraceSink};
use tonic::metadata::MetadataMap;

pub use config::{OpenTelemetry, TraceConfig, TraceMode};
use file::TraceFile;
use galatea::profile::{Profiler, RunningProfile};
use otel::{SpanExporter, TraceParent};
pub use settings::{CountMark, SampledRequest, SettingChange, TraceChange, TraceSettings};
pub use view::TraceView;

/// The HTTP request begins to arrive.
pub const HTTP_RECV_START: &str = "HTTP_RECV_START";
/// The HTTP request has arrived.
pub const HTTP_RECV_END: &str = "HTTP_RECV_END";
/// The HTTP response begins to leave.
pub const HTTP_SEND_START: &str = "HTTP_SEND_START";
/// The HTTP response has left.
pub const HTTP_SEND_END: &str = "HTTP_SEND_END";
/// The gRPC message begins to arrive.
pub const GRPC_WAITREAD_START: &str = "GRPC_WAITREAD_START";
/// The gRPC message has arrived.
pub const GRPC_WAITREAD_END: &str = "GRPC_WAITREAD_END";
/// The gRPC answer begins to leave.
pub const GRPC_SEND_START: &str = "GRPC_SEND_START";
/// The gRPC answer has left.
pub const GRPC_SEND_END: &str = "GRPC_SEND_END";

/// Decides which requests are traced and hands their traces on.
pub struct RequestTracer {
    config: TraceConfig,
    settings: Mutex<TraceSettings>,
    /// True if any request may be traced. This check is the only cost of untraced requests.
    active: AtomicBool,
    outlet: TraceOutlet,
    /// Profiler, which receives every request.
    profiler: Option<Arc<Profiler>>,
}

/// Gives a trace to the profile and to the collector of traces, where that one wants it.
#[derive(Debug)]
struct TraceAndProfile {
    profile: Arc<RunningProfile>,
    other: Option<(TraceLevel, Arc<dyn TraceSink>)>,
}

impl TraceSink for TraceAndProfile {
    fn finished(&self, entries: Vec<TraceEntry>) {
        if let Some((level, other)) = &self.other {
            let wanted = |entry: &&TraceEntry| {
                level.timestamps || !matches!(entry.event, TraceEvent::Stamp { .. })
            };
            other.finished(entries.iter().filter(wanted).cloned().collect());
        }
        self.profile.finished(entries);
    }
}

/// Destination of finished traces.
enum TraceOutlet {
    Nothing,
    File(Arc<TraceFile>),
    Collector(Arc<SpanExporter>),
}

impl fmt::Debug for RequestTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Default for RequestTracer {
    fn default() -> Self {
        Self::with(TraceConfig::default(), TraceOutlet::Nothing)
    }
}

impl RequestTracer {
    /// A tracer with the settings of the flags.
    ///
    /// # Errors
    /// Fails when the collector's address is invalid, or the thread that forwards traces cannot be started.
    pub fn new(config: TraceConfig) -> Result<Self, String> {
        let outlet = match config.mode {
            TraceMode::Triton if config.file.is_empty() => TraceOutlet::Nothing,
            TraceMode::Triton => TraceOutlet::File(TraceFile::start(&config.file)?),
            TraceMode::OpenTelemetry => {
                TraceOutlet::Collector(SpanExporter::start(&config.telemetry)?)
            }
        };
        Ok(Self::with(config, outlet))
    }

    fn with(config: TraceConfig, outlet: TraceOutlet) -> Self {
        let settings = TraceSettings::new(&config);
        let active = AtomicBool::new(settings.is_active());
        Self { config, settings: Mutex::new(settings), active, outlet, profiler: None }
    }

    /// The same tracer, which also gives every request to a profile that is under way.
    #[must_use]
    pub fn with_profiler(self, profiler: Arc<Profiler>) -> Self {
        Self { profiler: Some(profiler), ..self }
    }

    /// Returns the configuration of traces.
    #[must_use]
    pub fn config(&self) -> &TraceConfig {
        &self.config
    }

    /// The settings in force for a model, or with an empty name for those without their own.
    #[must_use]
    pub fn view(&self, model: &str) -> TraceView {
        self.lock().view(model)
    }

    /// Changes the settings of a model, or with an empty name those of all.
    ///
    /// # Errors
    /// Fails when traces would have no destination, or none could be made.
    pub fn change(&self, model: &str, change: TraceChange) -> Result<TraceView, ServingError> {
        let mut settings = self.lock();
        let view = settings.change(model, change);
        self.active.store(settings.is_active(), Ordering::Relaxed);
        view
    }

    /// Returns whether any request may be traced.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let profiled = self.profiler.as_ref().is_some_and(|profiler| profiler.is_on());
        profiled || self.active.load(Ordering::Relaxed)
    }

    /// A trace, where the request is one to trace. A client that traces the request itself says so in the
    /// `traceparent` header; a collector of OpenTelemetry then gets it in any case.
    #[must_use]
    pub fn sample(&self, model: &str, traceparent: Option<&str>) -> Option<Arc<RequestTrace>> {
        let profile = self.profiler.as_ref().and_then(|profiler| profiler.current());
        let Some(profile) = profile else {
            return self.sample_for_engine(model, traceparent);
        };
        let other = self.chosen(model, traceparent);
        let tensors = other.as_ref().is_some_and(|(level, _)| level.tensors);
        let sink = TraceAndProfile { profile, other };
        Some(RequestTrace::new(TraceLevel { timestamps: true, tensors }, Arc::new(sink)))
    }

    /// A trace like [`sample`](Self::sample) of a request whose engine tells the profile of it itself.
    #[must_use]
    pub fn sample_for_engine(
        &self,
        model: &str,
        traceparent: Option<&str>,
    ) -> Option<Arc<RequestTrace>> {
        let (level, sink) = self.chosen(model, traceparent)?;
        Some(RequestTrace::new(level, sink))
    }

    /// Returns the level and the sink of a request's trace, if the settings choose the request.
    fn chosen(
        &self,
        model: &str,
        traceparent: Option<&str>,
    ) -> Option<(TraceLevel, Arc<dyn TraceSink>)> {
        if !self.active.load(Ordering::Relaxed) {
            return None;
        }
        let sample = |forced| {
            let mut settings = self.lock();
            let sampled = settings.sample(model, forced)?;
            // The last one of a count may have been the last one of all.
            if sampled.view.count == 1 {
                self.active.store(settings.is_active(), Ordering::Relaxed);
            }
            Some(sampled)
        };
        let (view, sink): (TraceView, Arc<dyn TraceSink>) = match &self.outlet {
            TraceOutlet::Nothing => return None,
            TraceOutlet::File(file) => {
                let SampledRequest { view, mark } = sample(false)?;
                (view, file.sink(view.log_frequency, mark))
            }
            TraceOutlet::Collector(exporter) => {
                let parent = traceparent.and_then(TraceParent::parse);
                (sample(parent.is_some())?.view, exporter.sink(parent))
            }
        };
        Some((view.level, sink))
    }

    /// Writes out what is not written yet.
    pub fn flush(&self) {
        if let Some(profiler) = &self.profiler {
            profiler.close();
        }
        match &self.outlet {
            TraceOutlet::Nothing => {}
            TraceOutlet::File(file) => file.close(),
            TraceOutlet::Collector(exporter) => exporter.close(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TraceSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes when the HTTP request of a trace arrived.
pub(crate) fn note_arrival(trace: &RequestTrace, arrival: Range<Instant>) {
    trace.stamp_at(HTTP_RECV_START, arrival.start);
    trace.stamp_at(HTTP_RECV_END, arrival.end);
}

/// The trace of an inference that came by gRPC, where it is one to trace. The library hands a message over when it has
/// arrived, so that its arrival takes no time.
pub(crate) fn grpc(
    tracer: &RequestTracer,
    model: &str,
    metadata: &MetadataMap,
) -> Option<Arc<RequestTrace>> {
    if !tracer.is_active() {
        return None;
    }
    let parent = metadata.get("traceparent").and_then(|value| value.to_str().ok());
    let trace = tracer.sample(model, parent)?;
    let now = Instant::now();
    trace.stamp_at(GRPC_WAITREAD_START, now);
    trace.stamp_at(GRPC_WAITREAD_END, now);
    Some(trace)
}
