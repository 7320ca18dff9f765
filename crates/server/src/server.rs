//! Opens the front ends, keeps them open, and closes them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea::Engine;
use galatea_serving::{Core, ShutdownReport};
use tokio::task::JoinSet;

use crate::access::AccessControl;
use crate::app::{MetricsPlace, ServerState};
use crate::http::vertex_ai::{self, VertexAi};
use crate::listen::{FrontEndListener, RenewableAcceptor};
use crate::options::{ListenOptions, ServerOptions};
use crate::sagemaker::SageMaker;
use crate::tasks::{boxed, on_blocking_thread};
use crate::tls::{TlsApplication, TlsOptions, acceptor};
use crate::trace::RequestTracer;
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

/// A server with open front ends.
#[derive(Debug)]
pub struct RunningServer {
    app: Arc<ServerState>,
    addresses: FrontEndAddresses,
    tasks: JoinSet<()>,
    tls: Vec<FrontEndTls>,
}

impl RunningServer {
    /// Opens the front ends that the options ask for, on the current runtime. The core's models run on the devices of
    /// the engine.
    ///
    /// # Errors
    /// Returns Triton's sentence about the first endpoint that cannot be opened.
    pub fn start(core: Arc<Core>, engine: Engine, options: &ServerOptions) -> Result<Self, String> {
        let app = Arc::new(state(core, engine, options)?);
        if let Some(access) = app.access() {
            access.announce();
        }
        let mut addresses = FrontEndAddresses::default();
        let mut tasks = JoinSet::new();
        let mut tls = Vec::new();
        let mut listen = |place, front_end| open(place, front_end, &mut tls);
        if let Some(place) = &options.grpc {
            let listener = listen(place, &GRPC)?;
            addresses.grpc = listener.address();
            tasks.spawn(boxed(grpc::serve(Arc::clone(&app), listener, options.grpc_settings)));
        }
        if let Some(place) = &options.http {
            let listener = listen(place, &HTTP)?;
            addresses.http = listener.address();
            tasks.spawn(boxed(http::serve(Arc::clone(&app), listener)));
        }
        if let Some(place) = &options.openai {
            let listener = listen(place, &OPENAI)?;
            addresses.openai = listener.address();
            tasks.spawn(boxed(http::openai_front_end::serve(Arc::clone(&app), listener)));
        }
        if let Some(place) = &options.metrics {
            let listener = listen(place, &METRICS)?;
            addresses.metrics = listener.address();
            app.set_metrics_place(metrics_place(place, listener.address()));
            tasks.spawn(boxed(http::serve_metrics(Arc::clone(&app), listener)));
        }
        if let Some(place) = &options.sagemaker {
            let listener = listen(place, &SAGEMAKER)?;
            addresses.sagemaker = listener.address();
            tasks.spawn(boxed(http::sagemaker_front_end::serve(Arc::clone(&app), listener)));
        }
        if let Some(place) = &options.vertex_ai {
            let variable = |name: &str| options.cloud_variable(name);
            let vertex = VertexAi::of(app.core(), variable, &options.vertex_ai_model)
                .map_err(|why| vertex_ai::refusal(&why))?;
            let listener = listen(place, &VERTEX_AI)?;
            addresses.vertex_ai = listener.address();
            tasks.spawn(boxed(vertex_ai::serve(Arc::clone(&app), listener, vertex)));
        }
        Ok(Self { app, addresses, tasks, tls })
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

    /// Reads the files again that may change while the server runs: keys of clients, and certificates with their keys.
    /// Those that cannot be used stay as they were read last, and a line of the log says why.
    pub fn reload(&self) {
        if let Some(Err(why)) = self.app.access().map(AccessControl::reload) {
            tracing::error!("{why}; the keys stay as they were");
        }
        for tls in &self.tls {
            match tls.renew() {
                Ok(()) => tracing::info!("{} has read its certificates again", tls.service),
                Err(why) => {
                    tracing::error!("{}: {why}; the certificates stay as they were", tls.service);
                }
            }
        }
    }

    /// Closes the front ends, lets requests under way finish, and stops the core; all of it within the time.
    pub async fn stop(mut self, timeout: Duration) -> ShutdownReport {
        let start = Instant::now();
        self.app.stop();
        while self.tasks.join_next().await.is_some() {}
        let drained = self.app.drained(timeout).await;
        if drained {
            self.app.parted(timeout.saturating_sub(start.elapsed()).min(PARTING)).await;
        }
        let rest = timeout.saturating_sub(start.elapsed());
        let app = Arc::clone(&self.app);
        let open = self.app.open_requests();
        let stopped = on_blocking_thread(move || {
            let report = app.core().shutdown(rest);
            app.tracer().flush();
            report
        })
        .await;
        let took = start.elapsed();
        match stopped {
            Some(report) => ShutdownReport {
                complete: report.complete && drained,
                unanswered: report.unanswered.max(open),
                took,
            },
            // The core's shutdown panicked; nothing is known about what it left.
            None => ShutdownReport { complete: false, unanswered: open, took },
        }
    }
}

/// Place of the page of metrics, as other programs are told.
fn metrics_place(options: &ListenOptions, address: Option<SocketAddr>) -> MetricsPlace {
    let tls = options.tls.is_some();
    match address {
        Some(address) => MetricsPlace::Port { address, tls },
        None => MetricsPlace::Socket { path: options.place.to_string(), tls },
    }
}

/// Makes the state that the front ends share.
///
/// # Errors
/// Returns a sentence about the first setting that cannot be used.
fn state(core: Arc<Core>, engine: Engine, options: &ServerOptions) -> Result<ServerState, String> {
    let profiler = Arc::clone(engine.profiler());
    let tracer = RequestTracer::new(options.trace.clone())?.with_profiler(profiler);
    Ok(ServerState::new(core, engine, options.limits)
        .with_metrics(options.families.clone(), options.host_metrics)
        .with_rules(options.http_rules.clone(), options.grpc_rules.clone())
        .with_browser_rules(options.browser_rules.clone())
        .with_override_rules(options.override_rules)
        .with_access(options.access.clone())
        .with_shared_memory(options.client_shared_memory)
        .with_gpu_metrics(options.gpu_metrics)
        .with_tracer(tracer)
        .with_sagemaker(SageMaker::of(|name| options.cloud_variable(name))?))
}

/// Names of a front end in messages, and what it speaks inside TLS.
struct FrontEnd {
    title: &'static str,
    service: &'static str,
    application: TlsApplication,
}

const GRPC: FrontEnd =
    FrontEnd { title: "GRPC", service: "GRPCInferenceService", application: TlsApplication::Grpc };
const HTTP: FrontEnd =
    FrontEnd { title: "HTTP", service: "HTTPService", application: TlsApplication::Http };
const OPENAI: FrontEnd =
    FrontEnd { title: "OpenAI", service: "OpenAI HTTPService", application: TlsApplication::Http };
const METRICS: FrontEnd =
    FrontEnd { title: "Metrics", service: "Metrics Service", application: TlsApplication::Http };
const SAGEMAKER: FrontEnd = FrontEnd {
    title: "Sagemaker",
    service: "Sagemaker HTTPService",
    application: TlsApplication::Http,
};
const VERTEX_AI: FrontEnd = FrontEnd {
    title: "Vertex AI",
    service: "Vertex AI HTTPService",
    application: TlsApplication::Http,
};

/// TLS of a front end that is open, and where it comes from.
#[derive(Debug)]
struct FrontEndTls {
    service: &'static str,
    options: TlsOptions,
    application: TlsApplication,
    acceptor: Arc<RenewableAcceptor>,
}

impl FrontEndTls {
    fn renew(&self) -> Result<(), String> {
        self.acceptor.renew(acceptor(&self.options, self.application)?);
        Ok(())
    }
}

/// Opens a front end and says where it is. Adds its TLS to those that can be renewed.
fn open(
    options: &ListenOptions,
    front_end: &FrontEnd,
    renewable: &mut Vec<FrontEndTls>,
) -> Result<FrontEndListener, String> {
    let application = front_end.application;
    let tls = match &options.tls {
        Some(tls) => {
            let acceptor = Arc::new(RenewableAcceptor::new(acceptor(tls, application)?));
            renewable.push(FrontEndTls {
                service: front_end.service,
                options: tls.clone(),
                application,
                acceptor: Arc::clone(&acceptor),
            });
            Some(acceptor)
        }
        None => None,
    };
    let place = &options.place;
    let encrypted = if tls.is_some() { " with TLS" } else { "" };
    let listener = FrontEndListener::open(place, options.sharing, tls).map_err(|error| {
        let title = front_end.title;
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
    tracing::info!("Started {} at {address}{encrypted}", front_end.service);
    Ok(listener)
}
