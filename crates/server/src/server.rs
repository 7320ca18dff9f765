//! Opens the doors, keeps them open, and closes them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_serving::{Core, ShutdownReport};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::app::{ClientLimits, FrontEndRules, ServerState};
use crate::browser::BrowserRules;
use crate::flags::{CLOUD_ADDRESS, OPENAI_ADDRESS, ServerFlags};
use crate::forward::HeaderForwarding;
use crate::http::sagemaker::{self, SageMaker};
use crate::http::vertex_ai::{self, VertexAi};
use crate::listen::{FrontEndListener, ListenPlace, PortSharing};
use crate::metrics::MetricsConfig;
use crate::overrides::OverrideRules;
use crate::profile::Profiler;
use crate::restricted::{self, EndpointRestrictions, FlagWording};
use crate::tls::{self, TlsApplication};
use crate::trace::{self, RequestTracer};
use crate::{grpc, http};

/// Longest wait for peers to take leave after the last answer.
const PARTING: Duration = Duration::from_secs(2);

/// Addresses of the endpoints that have a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrontEndAddresses {
    /// HTTP.
    pub http: Option<SocketAddr>,
    /// gRPC.
    pub grpc: Option<SocketAddr>,
    /// OpenAI's endpoints alone.
    pub openai: Option<SocketAddr>,
    /// Metrics.
    pub metrics: Option<SocketAddr>,
    /// SageMaker.
    pub sagemaker: Option<SocketAddr>,
    /// Vertex AI.
    pub vertex_ai: Option<SocketAddr>,
}

/// A server with open doors.
#[derive(Debug)]
pub struct RunningServer {
    app: Arc<ServerState>,
    addresses: FrontEndAddresses,
    doors: JoinSet<()>,
}

impl RunningServer {
    /// Opens the doors that the flags ask for, on the current runtime.
    ///
    /// # Errors
    /// Returns Triton's sentence about the first endpoint that cannot be opened.
    pub fn start(core: Arc<Core>, flags: &ServerFlags) -> Result<Self, String> {
        Self::start_with(core, flags, Arc::default())
    }

    /// Starts like [`start`](Self::start), with a profiler for the core's models.
    ///
    /// # Errors
    /// Fails as [`start`](Self::start) does.
    pub fn start_with(
        core: Arc<Core>,
        flags: &ServerFlags,
        profiler: Arc<Profiler>,
    ) -> Result<Self, String> {
        let max_input_bytes = usize::try_from(flags.number("http-max-input-size"));
        let limits = ClientLimits { max_input_bytes: max_input_bytes.unwrap_or(usize::MAX) };
        let (http_rules, grpc_rules) = rules(flags)?;
        let interval = Duration::from_millis(flags.number("metrics-interval-ms"));
        let host = flags.bool("allow-cpu-metrics").then_some(interval);
        let gpus = flags.bool("allow-metrics") && flags.bool("allow-gpu-metrics");
        let app = ServerState::new(core, limits)
            .with_metrics(MetricsConfig::of(flags)?, host)
            .with_rules(http_rules, grpc_rules)
            .with_browser_rules(BrowserRules::of(flags)?)
            .with_override_rules(OverrideRules::of(flags))
            .with_shared_memory(flags.bool("allow-client-shm"))
            .with_gpu_metrics(gpus.then_some(interval))
            .with_tracer(
                RequestTracer::new(trace::TraceConfig::of(flags)?)?
                    .with_profiler(Arc::clone(&profiler)),
            )
            .with_profiler(profiler);
        let sagemaker = SageMaker::of(|name| flags.environment(name))?;
        let app = Arc::new(app.with_sagemaker(sagemaker));
        let mut addresses = FrontEndAddresses::default();
        let mut doors = JoinSet::new();
        if flags.bool("allow-grpc") {
            let listener = listen(flags, &GRPC)?;
            addresses.grpc = listener.address();
            doors.spawn(grpc::serve(Arc::clone(&app), listener, grpc::GrpcSettings::of(flags)));
        }
        if flags.bool("allow-http") {
            let listener = listen(flags, &HTTP)?;
            addresses.http = listener.address();
            doors.spawn(http::serve(Arc::clone(&app), listener));
        }
        if flags.is_set("openai-port") {
            let listener = listen(flags, &OPENAI)?;
            addresses.openai = listener.address();
            doors.spawn(http::openai::serve(Arc::clone(&app), listener));
        }
        if flags.bool("allow-metrics") {
            let listener = listen(flags, &METRICS)?;
            addresses.metrics = listener.address();
            doors.spawn(http::serve_metrics(Arc::clone(&app), listener));
        }
        if flags.bool("allow-sagemaker") {
            let listener = listen(flags, &SAGEMAKER)?;
            addresses.sagemaker = listener.address();
            doors.spawn(sagemaker::serve(Arc::clone(&app), listener));
        }
        if flags.bool("allow-vertex-ai") {
            let model = flags.text("vertex-ai-default-model");
            let vertex = VertexAi::of(app.core(), |name| flags.environment(name), model)
                .map_err(|why| no_vertex_ai(&why))?;
            let listener = listen(flags, &VERTEX_AI)?;
            addresses.vertex_ai = listener.address();
            doors.spawn(vertex_ai::serve(Arc::clone(&app), listener, vertex));
        }
        Ok(Self { app, addresses, doors })
    }

    /// Returns the addresses of the endpoints.
    #[must_use]
    pub fn addresses(&self) -> FrontEndAddresses {
        self.addresses
    }

    /// Returns the server behind the endpoints.
    #[must_use]
    pub fn app(&self) -> &Arc<ServerState> {
        &self.app
    }

    /// Closes the doors, lets requests under way finish, and stops the core; all of it within the time.
    pub async fn stop(mut self, timeout: Duration) -> ShutdownReport {
        let start = Instant::now();
        self.app.stop();
        while self.doors.join_next().await.is_some() {}
        let drained = self.app.drained(timeout).await;
        if drained {
            self.app.parted(timeout.saturating_sub(start.elapsed()).min(PARTING)).await;
        }
        let rest = timeout.saturating_sub(start.elapsed());
        let app = Arc::clone(&self.app);
        let open = self.app.open_requests();
        let stopped = tokio::task::spawn_blocking(move || {
            let report = app.core().shutdown(rest);
            app.tracer().flush();
            report
        })
        .await;
        let took = start.elapsed();
        match stopped {
            Ok(report) => ShutdownReport {
                complete: report.complete && drained,
                unanswered: report.unanswered.max(open),
                took,
            },
            // The core's shutdown panicked; nothing is known about what it left.
            Err(_) => ShutdownReport { complete: false, unanswered: open, took },
        }
    }
}

fn no_vertex_ai(why: &str) -> String {
    format!("failed to start Vertex AI service: Invalid argument - {why}")
}

/// Checks the flags of the endpoints; a start would find out only after the models are loaded.
///
/// # Errors
/// Returns a sentence about the first flag that cannot be used.
pub fn check(flags: &ServerFlags) -> Result<(), String> {
    rules(flags)?;
    BrowserRules::of(flags)?;
    trace::TraceConfig::of(flags)?;
    SageMaker::of(|name| flags.environment(name))?;
    if flags.bool("allow-vertex-ai") {
        vertex_ai::routes(|name| flags.environment(name)).map_err(|why| no_vertex_ai(&why))?;
    }
    for door in [&GRPC, &HTTP, &METRICS] {
        acceptor(flags, door)?;
    }
    Ok(())
}

/// Reads the rules of the HTTP and gRPC endpoints.
///
/// # Errors
/// Returns a sentence about the first flag that cannot be used.
fn rules(flags: &ServerFlags) -> Result<(FrontEndRules, FrontEndRules), String> {
    let door = |wording: FlagWording, pattern: &'static str| {
        Ok::<_, String>(FrontEndRules {
            restrictions: EndpointRestrictions::parse(flags.all(wording.flag), wording)?,
            forward: HeaderForwarding::parse(pattern, flags.text(pattern))?,
        })
    };
    Ok((
        door(restricted::HTTP, "http-header-forward-pattern")?,
        door(restricted::GRPC, "grpc-header-forward-pattern")?,
    ))
}

/// A door and how messages and flags name it.
struct FrontEnd {
    title: &'static str,
    service: &'static str,
    address: &'static str,
    port: &'static str,
    reuse: Option<&'static str>,
    tls: Option<&'static tls::TlsFlagNames>,
    application: TlsApplication,
}

const GRPC: FrontEnd = FrontEnd {
    title: "GRPC",
    service: "GRPCInferenceService",
    address: "grpc-address",
    port: "grpc-port",
    reuse: Some("reuse-grpc-port"),
    tls: Some(&tls::GRPC),
    application: TlsApplication::Grpc,
};
const HTTP: FrontEnd = FrontEnd {
    title: "HTTP",
    service: "HTTPService",
    address: "http-address",
    port: "http-port",
    reuse: Some("reuse-http-port"),
    tls: Some(&tls::HTTP),
    application: TlsApplication::Http,
};
const OPENAI: FrontEnd = FrontEnd {
    title: "OpenAI",
    service: "OpenAI HTTPService",
    address: OPENAI_ADDRESS,
    port: "openai-port",
    reuse: None,
    tls: Some(&tls::HTTP),
    application: TlsApplication::Http,
};
const METRICS: FrontEnd = FrontEnd {
    title: "Metrics",
    service: "Metrics Service",
    address: "metrics-address",
    port: "metrics-port",
    reuse: None,
    tls: Some(&tls::METRICS),
    application: TlsApplication::Http,
};

const SAGEMAKER: FrontEnd = FrontEnd {
    title: "Sagemaker",
    service: "Sagemaker HTTPService",
    address: CLOUD_ADDRESS,
    port: "sagemaker-port",
    reuse: None,
    tls: None,
    application: TlsApplication::Http,
};
const VERTEX_AI: FrontEnd = FrontEnd {
    title: "Vertex AI",
    service: "Vertex AI HTTPService",
    address: CLOUD_ADDRESS,
    port: "vertex-ai-port",
    reuse: None,
    tls: None,
    application: TlsApplication::Http,
};

/// Returns the TLS acceptor of an endpoint, if it has TLS.
fn acceptor(flags: &ServerFlags, door: &FrontEnd) -> Result<Option<TlsAcceptor>, String> {
    door.tls.map_or(Ok(None), |names| tls::acceptor(flags, names, door.application))
}

/// Opens a door and says where it is.
fn listen(flags: &ServerFlags, door: &FrontEnd) -> Result<FrontEndListener, String> {
    let tls = acceptor(flags, door)?;
    let port = u16::try_from(flags.number(door.port)).unwrap_or(0);
    let place = ListenPlace::new(flags.text(door.address), port);
    let sharing = if door.reuse.is_some_and(|name| flags.bool(name)) {
        PortSharing::WithOthers
    } else {
        PortSharing::Alone
    };
    let encrypted = if tls.is_some() { " with TLS" } else { "" };
    let listener = FrontEndListener::open(&place, sharing, tls).map_err(|error| {
        let title = door.title;
        match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "failed to start {title} service: Unavailable - Socket '{place}' already in use "
            ),
            _ => {
                format!("failed to start {title} service: Unavailable - Socket '{place}': {error}")
            }
        }
    })?;
    let address = listener.address().map_or_else(|| place.to_string(), |real| real.to_string());
    tracing::info!("Started {} at {address}{encrypted}", door.service);
    Ok(listener)
}
