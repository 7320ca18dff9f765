//! Sockets on which endpoints listen: TCP ports and Unix sockets, with TLS or without.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

#[cfg(unix)]
pub use unix::SocketFile;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Longest time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Address on which an endpoint listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenPlace {
    /// A port of a host's address.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl ListenPlace {
    /// `unix:PATH`, or the host of the port.
    #[must_use]
    pub fn new(address: &str, port: u16) -> Self {
        match address.strip_prefix("unix:") {
            // Both unix:/path and unix:///path are in use.
            Some(path) => Self::Unix(path.strip_prefix("//").unwrap_or(path).into()),
            None => Self::Tcp(address.to_owned(), port),
        }
    }

    /// Returns whether only this machine reaches it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(host, _) => {
                let address = without_brackets(host).parse::<IpAddr>();
                host.eq_ignore_ascii_case("localhost")
                    || address.is_ok_and(|address| address.to_canonical().is_loopback())
            }
            Self::Unix(_) => true,
        }
    }

    /// Returns whether the two addresses conflict. Port 0 never does, as it is another one each time.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let every = |host: &str| ["0.0.0.0", "::", "[::]"].contains(&host);
        match (self, other) {
            (Self::Tcp(host, port), Self::Tcp(other_host, other_port)) => {
                *port != 0
                    && port == other_port
                    && (host == other_host || every(host) || every(other_host))
            }
            (Self::Unix(path), Self::Unix(other)) => path == other,
            _ => false,
        }
    }
}

impl fmt::Display for ListenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Path by which a connection reached the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPath {
    /// Over the loopback interface.
    Loopback,
    /// Over another interface.
    Network,
    /// Over a socket in the file system, which no browser opens.
    UnixSocket,
}

/// The client's end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPeer {
    /// Path of the connection.
    pub path: ConnectionPath,
    /// True if it speaks TLS.
    pub encrypted: bool,
    /// Address; none over a socket in the file system.
    pub address: Option<IpAddr>,
}

/// Permission for other processes to listen at the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortSharing {
    /// The port is this process's.
    Alone,
    /// Several processes listen. Where [`SPREADS_CONNECTIONS`], the system gives each its share of connections.
    WithOthers,
}

/// True where the system spreads connections over the sockets that share a port. Elsewhere, as on macOS, one of
/// them gets most of them, so a process accepts connections of a port in one place.
pub const SPREADS_CONNECTIONS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Returns what to say of a port that is shared.
fn sharing_warning(sharing: PortSharing, spreads: bool) -> Option<&'static str> {
    let warns = sharing == PortSharing::WithOthers && !spreads;
    warns.then_some("this system does not spread connections over the processes that share a port")
}

/// An open socket that clients connect to.
#[derive(Debug)]
enum OpenSocket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix {
        listener: tokio::net::UnixListener,
        _file: SocketFile,
    },
}

/// TLS of an endpoint, which can be given new certificates while it listens.
pub struct RenewableAcceptor(RwLock<TlsAcceptor>);

impl fmt::Debug for RenewableAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewableAcceptor").finish_non_exhaustive()
    }
}

impl RenewableAcceptor {
    /// TLS that begins with these certificates.
    #[must_use]
    pub fn new(acceptor: TlsAcceptor) -> Self {
        Self(RwLock::new(acceptor))
    }

    /// Uses other certificates for the connections from now on.
    pub fn renew(&self, acceptor: TlsAcceptor) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
    }

    fn current(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A front end that clients can knock at.
pub struct FrontEndListener {
    socket: OpenSocket,
    tls: Option<Arc<RenewableAcceptor>>,
}

impl fmt::Debug for FrontEndListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("socket", &self.socket)
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

impl FrontEndListener {
    /// Listens, on the current runtime.
    ///
    /// # Errors
    /// Returns the error of the system; [`io::ErrorKind::AddrInUse`] when the address is taken.
    pub fn open(
        place: &ListenPlace,
        sharing: PortSharing,
        tls: Option<Arc<RenewableAcceptor>>,
    ) -> io::Result<Self> {
        let socket = match place {
            ListenPlace::Tcp(host, port) => OpenSocket::Tcp(open_port(host, *port, sharing)?),
            #[cfg(unix)]
            ListenPlace::Unix(path) => {
                let (listener, _file) = unix::open(path)?;
                OpenSocket::Unix { listener, _file }
            }
            #[cfg(not(unix))]
            ListenPlace::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { socket, tls })
    }

    /// The address with its real port; none for a socket in the file system.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            OpenSocket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            OpenSocket::Unix { .. } => None,
        }
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// Returns the error of the system; the listener stays usable.
    pub async fn accept(&self) -> io::Result<PendingConnection> {
        let (stream, path, address) = match &self.socket {
            OpenSocket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Without it small answers wait for the peer's acknowledgement; a failure costs only time.
                stream.set_nodelay(true).ok();
                let path = path_of(peer, &stream);
                (PlainStream::Tcp(stream), path, Some(peer.ip().to_canonical()))
            }
            #[cfg(unix)]
            OpenSocket::Unix { listener, .. } => {
                let stream = PlainStream::Unix(listener.accept().await?.0);
                (stream, ConnectionPath::UnixSocket, None)
            }
        };
        let peer = ConnectionPeer { path, encrypted: self.tls.is_some(), address };
        let tls = self.tls.as_ref().map(|tls| tls.current());
        Ok(PendingConnection { stream, tls, peer })
    }
}

/// A client that has not shaken hands yet.
pub struct PendingConnection {
    stream: PlainStream,
    tls: Option<TlsAcceptor>,
    peer: ConnectionPeer,
}

impl fmt::Debug for PendingConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Knock").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl PendingConnection {
    /// The client's end of the connection.
    #[must_use]
    pub fn peer(&self) -> ConnectionPeer {
        self.peer
    }

    /// Performs the TLS handshake if the endpoint has TLS, within a bounded time.
    ///
    /// # Errors
    /// Fails when the client speaks no TLS, is not trusted or takes too long.
    pub async fn enter(self) -> io::Result<ClientConnection> {
        let Some(tls) = self.tls else { return Ok(ClientConnection::Plain(self.stream)) };
        match tokio::time::timeout(HANDSHAKE, tls.accept(self.stream)).await {
            Ok(stream) => Ok(ClientConnection::Tls(Box::new(stream?))),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// A connection's bytes as they travel.
#[derive(Debug)]
pub enum PlainStream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Inside the host.
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

/// A connection's bytes as they are meant.
#[derive(Debug)]
pub enum ClientConnection {
    /// They travel as they are.
    Plain(PlainStream),
    /// They travel encrypted.
    Tls(Box<TlsStream<PlainStream>>),
}

/// Calls a method of whatever an enum of streams holds.
macro_rules! forward {
    ($self:expr, $method:ident, $context:expr $(, $argument:expr)*) => {
        match $self.get_mut() {
            PlainStream::Tcp(stream) => Pin::new(stream).$method($context $(, $argument)*),
            #[cfg(unix)]
            PlainStream::Unix(stream) => Pin::new(stream).$method($context $(, $argument)*),
        }
    };
    (stream $self:expr, $method:ident, $context:expr $(, $argument:expr)*) => {
        match $self.get_mut() {
            ClientConnection::Plain(stream) => Pin::new(stream).$method($context $(, $argument)*),
            ClientConnection::Tls(stream) => Pin::new(stream).$method($context $(, $argument)*),
        }
    };
}

impl AsyncRead for PlainStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        forward!(self, poll_read, context, buffer)
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        forward!(self, poll_write, context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(self, poll_write_vectored, context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, poll_flush, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, poll_shutdown, context)
    }
}

impl AsyncRead for ClientConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        forward!(stream self, poll_read, context, buffer)
    }
}

impl AsyncWrite for ClientConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        forward!(stream self, poll_write, context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(stream self, poll_write_vectored, context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(stream self, poll_flush, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(stream self, poll_shutdown, context)
    }
}

/// Makes room for as many connections as the system lets this process have: shells start programs with few
/// descriptors, on macOS with 256.
pub fn allow_connections() {
    #[cfg(unix)]
    unix::raise_descriptors();
}

/// Returns how many descriptors this process may open, if the system bounds them.
#[must_use]
pub fn descriptors() -> usize {
    #[cfg(unix)]
    let most = unix::descriptor_limit();
    #[cfg(not(unix))]
    let most = usize::MAX;
    most
}

/// Returns the path of a connection. If its ends are unknown it counts as loopback, whose rules are stricter.
fn path_of(peer: SocketAddr, stream: &TcpStream) -> ConnectionPath {
    let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
    if is_loopback(peer) || stream.local_addr().map_or(true, is_loopback) {
        ConnectionPath::Loopback
    } else {
        ConnectionPath::Network
    }
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn open_port(host: &str, port: u16, sharing: PortSharing) -> io::Result<TcpListener> {
    let host = without_brackets(host);
    let address = (host, port).to_socket_addrs()?.next().ok_or_else(|| {
        io::Error::new(io::ErrorKind::AddrNotAvailable, "the address names no host")
    })?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port whose last owner has just ended is free.
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if sharing == PortSharing::WithOthers {
        socket.set_reuseport(true)?;
    }
    if let Some(warning) = sharing_warning(sharing, SPREADS_CONNECTIONS) {
        tracing::warn!("{host}:{port}: {warning}");
    }
    #[cfg(not(unix))]
    if sharing == PortSharing::WithOthers {
        return Err(io::ErrorKind::Unsupported.into());
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use tokio::net::UnixListener;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Descriptors to ask for, the most first. macOS refuses more than 10,240 where it says that there is no limit.
    const DESCRIPTORS: [u64; 3] = [65_536, 10_240, 4096];

    pub(super) fn descriptor_limit() -> usize {
        let most = getrlimit(Resource::Nofile).current;
        most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
    }

    pub(super) fn raise_descriptors() {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        for wanted in DESCRIPTORS {
            let wanted = wanted.min(maximum.unwrap_or(u64::MAX));
            if current.is_none_or(|current| current >= wanted) {
                return;
            }
            let limit = Rlimit { current: Some(wanted), maximum };
            match setrlimit(Resource::Nofile, limit) {
                Ok(()) => return,
                Err(error) => tracing::debug!("{wanted} descriptors are not to be had: {error}"),
            }
        }
    }

    /// Access for the user of the server alone.
    const MODE: u32 = 0o600;

    /// The file of a socket, removed at the end unless somebody else has put another in its place.
    #[derive(Debug)]
    pub struct SocketFile {
        path: PathBuf,
        identity: (u64, u64),
    }

    impl Drop for SocketFile {
        fn drop(&mut self) {
            if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
                // The file is of no use to anybody; what remains is found stale at the next start.
                fs::remove_file(&self.path).ok();
            }
        }
    }

    fn identity(path: &Path) -> io::Result<(u64, u64)> {
        let metadata = fs::symlink_metadata(path)?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// Listens at a path, in the place of a socket that nobody listens at any more.
    pub(super) fn open(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                let text = "there is a file that is no socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            match std::os::unix::net::UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)?;
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                _ => return Err(io::ErrorKind::AddrInUse.into()),
            }
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
        let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
        Ok((listener, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_addresses() {
        assert_eq!(ListenPlace::new("unix:/a/b", 1), ListenPlace::Unix("/a/b".into()));
        assert_eq!(ListenPlace::new("unix:///a/b", 1), ListenPlace::Unix("/a/b".into()));
        assert_eq!(ListenPlace::new("::1", 80).to_string(), "::1:80");
        assert_eq!(ListenPlace::new("unix:/a", 80).to_string(), "unix:/a");
    }

    #[test]
    fn a_shared_port_is_warned_of_where_one_process_gets_its_connections() {
        assert_eq!(sharing_warning(PortSharing::Alone, false), None);
        assert_eq!(sharing_warning(PortSharing::WithOthers, true), None);
        assert!(sharing_warning(PortSharing::WithOthers, false).is_some());
        assert_eq!(SPREADS_CONNECTIONS, cfg!(target_os = "linux"));
    }

    #[test]
    fn places_that_only_this_machine_reaches_are_known() {
        for address in ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "LocalHost", "unix:/a"] {
            assert!(ListenPlace::new(address, 1).is_loopback(), "{address}");
        }
        for address in ["0.0.0.0", "::", "[::]", "10.0.0.7", "example.com", ""] {
            assert!(!ListenPlace::new(address, 1).is_loopback(), "{address}");
        }
    }

    #[test]
    fn places_meet_where_the_system_would_refuse_the_second() {
        for (a, b, meet) in [
            (("127.0.0.1", 1), ("127.0.0.1", 1), true),
            (("127.0.0.1", 1), ("127.0.0.1", 2), false),
            (("127.0.0.1", 1), ("0.0.0.0", 1), true),
            (("127.0.0.1", 1), ("10.0.0.1", 1), false),
            (("127.0.0.1", 0), ("127.0.0.1", 0), false),
            (("unix:/a", 1), ("unix:/a", 2), true),
            (("unix:/a", 1), ("127.0.0.1", 1), false),
        ] {
            assert_eq!(
                ListenPlace::new(a.0, a.1).meets(&ListenPlace::new(b.0, b.1)),
                meet,
                "{a:?} {b:?}"
            );
        }
    }
}
