//! Traces of requests: which are traced, the settings that clients can change, and where traces go.

mod config;
mod file;
pub mod otel;
pub(crate) mod parse;
mod settings;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use galatea_serving::Error;
use galatea_serving::trace::{Entry, Event, Trace, TraceLevel, TraceSink};
use tonic::metadata::MetadataMap;

use crate::profile::{Profile, Profiler};
pub use config::{Config, Mode, OpenTelemetry};
use file::TraceFile;
use otel::{Exporter, TraceParent};
pub use settings::{Set, TraceChange, TraceSettings, TraceView};

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
pub struct Tracer {
    config: Config,
    settings: Mutex<TraceSettings>,
    /// Whether any request may be traced: the one look that untraced requests cost.
    active: AtomicBool,
    outlet: Outlet,
    /// Who makes profiles, which have every request.
    profiler: Option<Arc<Profiler>>,
}

/// Gives a trace to the profile and to the collector of traces, where that one wants it.
#[derive(Debug)]
struct Both {
    profile: Arc<Profile>,
    other: Option<(TraceLevel, Arc<dyn TraceSink>)>,
}

impl TraceSink for Both {
    fn finished(&self, entries: Vec<Entry>) {
        if let Some((level, other)) = &self.other {
            let wanted =
                |entry: &&Entry| level.timestamps || !matches!(entry.event, Event::Stamp { .. });
            other.finished(entries.iter().filter(wanted).cloned().collect());
        }
        self.profile.finished(entries);
    }
}

/// What takes finished traces.
enum Outlet {
    Nothing,
    File(Arc<TraceFile>),
    Collector(Arc<Exporter>),
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Default for Tracer {
    fn default() -> Self {
        Self::with(Config::default(), Outlet::Nothing)
    }
}

impl Tracer {
    /// A tracer with the settings of the flags.
    ///
    /// # Errors
    /// When the collector's address is none, or the thread that hands traces on cannot be started.
    pub fn new(config: Config) -> Result<Self, String> {
        let outlet = match config.mode {
            Mode::Triton if config.file.is_empty() => Outlet::Nothing,
            Mode::Triton => Outlet::File(TraceFile::start(&config.file)?),
            Mode::OpenTelemetry => Outlet::Collector(Exporter::start(&config.telemetry)?),
        };
        Ok(Self::with(config, outlet))
    }

    fn with(config: Config, outlet: Outlet) -> Self {
        let settings = TraceSettings::new(&config);
        let active = AtomicBool::new(settings.is_active());
        Self { config, settings: Mutex::new(settings), active, outlet, profiler: None }
    }

    /// The same tracer, which also gives every request to a profile that is under way.
    #[must_use]
    pub fn with_profiler(self, profiler: Arc<Profiler>) -> Self {
        Self { profiler: Some(profiler), ..self }
    }

    /// Where traces go.
    #[must_use]
    pub fn config(&self) -> &Config {
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
    /// When traces would be made that can go nowhere, or none could be made.
    pub fn change(&self, model: &str, change: TraceChange) -> Result<TraceView, Error> {
        let mut settings = self.lock();
        let view = settings.change(model, change);
        self.active.store(settings.is_active(), Ordering::Relaxed);
        view
    }

    /// Whether any request may be traced.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let profiled = self.profiler.as_ref().is_some_and(|profiler| profiler.is_on());
        profiled || self.active.load(Ordering::Relaxed)
    }

    /// A trace, where the request is one to trace. A client that traces the request itself says so in the
    /// `traceparent` header; a collector of OpenTelemetry then gets it in any case.
    #[must_use]
    pub fn sample(&self, model: &str, traceparent: Option<&str>) -> Option<Arc<Trace>> {
        let profile = self.profiler.as_ref().and_then(|profiler| profiler.current());
        let Some(profile) = profile else {
            let (level, sink) = self.chosen(model, traceparent)?;
            return Some(Trace::new(level, sink));
        };
        let other = self.chosen(model, traceparent);
        let tensors = other.as_ref().is_some_and(|(level, _)| level.tensors);
        let sink = Both { profile, other };
        Some(Trace::new(TraceLevel { timestamps: true, tensors }, Arc::new(sink)))
    }

    /// What a trace of a request that the settings choose holds, and where it goes.
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
            let view = settings.sample(model, forced)?;
            // The last one of a count may have been the last one of all.
            if view.count == 1 {
                self.active.store(settings.is_active(), Ordering::Relaxed);
            }
            Some(view)
        };
        let (view, sink): (TraceView, Arc<dyn TraceSink>) = match &self.outlet {
            Outlet::Nothing => return None,
            Outlet::File(file) => {
                let view = sample(false)?;
                (view, file.sink(view.log_frequency))
            }
            Outlet::Collector(exporter) => {
                let parent = traceparent.and_then(TraceParent::parse);
                (sample(parent.is_some())?, exporter.sink(parent))
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
            Outlet::Nothing => {}
            Outlet::File(file) => file.close(),
            Outlet::Collector(exporter) => exporter.close(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TraceSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The trace of an inference that came by gRPC, where it is one to trace. The library hands a message over when it has
/// arrived, so that its arrival takes no time.
pub(crate) fn grpc(tracer: &Tracer, model: &str, metadata: &MetadataMap) -> Option<Arc<Trace>> {
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
