//! Opens the doors, keeps them open, and closes them.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_serving::{Core, ShutdownReport};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use crate::app::{App, DoorRules, Limits};
use crate::flags::Flags;
use crate::forward::Forward;
use crate::restricted::{self, Restrictions, Wording};
use crate::{grpc, http};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Where the doors are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Addresses {
    /// HTTP.
    pub http: Option<SocketAddr>,
    /// gRPC.
    pub grpc: Option<SocketAddr>,
    /// Metrics.
    pub metrics: Option<SocketAddr>,
}

/// A server with open doors.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    addresses: Addresses,
    doors: JoinSet<()>,
}

impl Server {
    /// Opens the doors that the flags ask for, on the current runtime.
    ///
    /// # Errors
    /// Triton's sentence about the first door that cannot be opened.
    pub fn start(core: Arc<Core>, flags: &Flags) -> Result<Self, String> {
        let max_input_bytes = usize::try_from(flags.number("http-max-input-size"));
        let limits = Limits { max_input_bytes: max_input_bytes.unwrap_or(usize::MAX) };
        let (http_rules, grpc_rules) = rules(flags)?;
        let app = App::new(core, limits, flags.bool("allow-cpu-metrics"))
            .with_rules(http_rules, grpc_rules);
        let app = Arc::new(app);
        let mut addresses = Addresses::default();
        let mut doors = JoinSet::new();
        if flags.bool("allow-grpc") {
            let (listener, address) = listen(flags, "grpc", "GRPC")?;
            let keep_alive = grpc::KeepAlive {
                time: Duration::from_millis(flags.number("grpc-keepalive-time")),
                timeout: Duration::from_millis(flags.number("grpc-keepalive-timeout")),
            };
            addresses.grpc = Some(address);
            doors.spawn(grpc::serve(Arc::clone(&app), listener, keep_alive));
            tracing::info!("Started GRPCInferenceService at {address}");
        }
        if flags.bool("allow-http") {
            let (listener, address) = listen(flags, "http", "HTTP")?;
            addresses.http = Some(address);
            doors.spawn(http::serve(Arc::clone(&app), listener));
            tracing::info!("Started HTTPService at {address}");
        }
        if flags.bool("allow-metrics") {
            let (listener, address) = listen(flags, "metrics", "Metrics")?;
            addresses.metrics = Some(address);
            doors.spawn(http::serve_metrics(Arc::clone(&app), listener));
            tracing::info!("Started Metrics Service at {address}");
        }
        Ok(Self { app, addresses, doors })
    }

    /// Where the doors are.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// The server behind the doors.
    #[must_use]
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Closes the doors, lets requests under way finish, and stops the core; all of it within the time.
    pub async fn stop(mut self, timeout: Duration) -> ShutdownReport {
        let start = Instant::now();
        self.app.stop();
        while self.doors.join_next().await.is_some() {}
        let drained = self.app.drained(timeout).await;
        let rest = timeout.saturating_sub(start.elapsed());
        let core = Arc::clone(self.app.core());
        let open = self.app.open_requests();
        let stopped = tokio::task::spawn_blocking(move || core.shutdown(rest)).await;
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

/// What each door asks of requests.
///
/// # Errors
/// A sentence about the first flag that cannot be used.
pub fn rules(flags: &Flags) -> Result<(DoorRules, DoorRules), String> {
    let door = |wording: Wording, pattern: &'static str| {
        Ok::<_, String>(DoorRules {
            restrictions: Restrictions::parse(flags.all(wording.flag), wording)?,
            forward: Forward::parse(pattern, flags.text(pattern))?,
        })
    };
    Ok((
        door(restricted::HTTP, "http-header-forward-pattern")?,
        door(restricted::GRPC, "grpc-header-forward-pattern")?,
    ))
}

fn listen(flags: &Flags, door: &str, title: &str) -> Result<(TcpListener, SocketAddr), String> {
    let host = flags.text(&format!("{door}-address"));
    let port = u16::try_from(flags.number(&format!("{door}-port"))).unwrap_or(0);
    let reuse = flags.bool(&format!("reuse-{door}-port"));
    let service = if door == "metrics" { "Metrics".to_owned() } else { title.to_owned() };
    open(host, port, reuse).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "failed to start {service} service: Unavailable - Socket '{host}:{port}' already in \
             use "
        ),
        _ => format!(
            "failed to start {service} service: Unavailable - Socket '{host}:{port}': {error}"
        ),
    })
}

fn open(host: &str, port: u16, reuse: bool) -> io::Result<(TcpListener, SocketAddr)> {
    let address = (host, port).to_socket_addrs()?.next().ok_or_else(|| {
        io::Error::new(io::ErrorKind::AddrNotAvailable, "the address names no host")
    })?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port whose last owner has just ended is free.
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if reuse {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
