//! Places of running servers, and how commands reach them.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use clap::Args;
use galatea_server::secret_file::read_secret_file;
use galatea_server::tls::{self, ClientTrust};
use rustls::pki_types::ServerName;

use super::http_client::ServerAddress;

/// The port of the HTTP front end of a server that nobody has told otherwise.
const HTTP_PORT: u16 = 8000;

/// Options of commands that ask a running server.
#[derive(Debug, Clone, Args)]
pub(super) struct ClientArguments {
    #[arg(
        long,
        value_name = "FILE",
        help = "certificates (PEM) that are believed to sign those of https:// [the system's]"
    )]
    ca_file: Option<String>,
    #[arg(
        long,
        conflicts_with = "ca_file",
        help = "believe every certificate: whoever answers may be somebody else"
    )]
    insecure: bool,
    #[arg(
        long = "header",
        value_name = "NAME:VALUE",
        value_parser = header,
        help = "header of each request, such as for restricted endpoints; @FILE for a file of such a line, which other users of the machine do not see; repeatable"
    )]
    headers: Vec<(String, String)>,
}

impl ClientArguments {
    /// Whether any of them is given.
    pub(super) fn are_given(&self) -> bool {
        self.ca_file.is_some() || self.insecure || !self.headers.is_empty()
    }

    /// The address of the front end at a place.
    ///
    /// # Errors
    /// Fails when the host has no address, and when certificates cannot be read.
    pub(super) fn address(&self, place: &HostPort) -> Result<ServerAddress, String> {
        let trust = match (&self.ca_file, self.insecure) {
            (Some(file), _) => ClientTrust::File(file),
            (None, true) => ClientTrust::Anybody,
            (None, false) => ClientTrust::System,
        };
        server_address(place, trust, &self.headers)
    }
}

/// Place of a front end.
#[derive(Debug, Clone)]
pub(super) struct HostPort {
    /// Name or address of the host.
    host: String,
    /// Port.
    port: u16,
    /// True if TLS is spoken there.
    secure: bool,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl HostPort {
    /// Place of the metrics of the server here: at the address that they have, where that names one host for all.
    pub(super) fn metrics_at(&self, address: Option<IpAddr>, port: u16, secure: bool) -> Self {
        let own = address.filter(|address| !address.is_unspecified() && !address.is_loopback());
        let host = own.map_or_else(|| self.host.clone(), |address| address.to_string());
        Self { host, port, secure }
    }
}

/// Reads the place of an HTTP front end.
///
/// # Errors
/// Fails when the text names none.
pub(super) fn http_place(given: &str) -> Result<HostPort, String> {
    place(given, HTTP_PORT)
}

/// Name and value of a header, or of that in a file behind an `@`.
fn header(given: &str) -> Result<(String, String), String> {
    let of_file = given.strip_prefix('@').map(|path| read_secret_file("header", Path::new(path)));
    let of_file = of_file.transpose()?;
    let given = of_file.as_deref().map_or(given, str::trim);
    let fits = |name: &str, value: &str| {
        let name_fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && name.bytes().all(name_fits) && !value.contains(char::is_control)
    };
    let found = given.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let found = found.filter(|(name, value)| fits(name, value));
    // What stands in a file may be a secret, and an error is shown to everybody.
    let wrong = || match of_file {
        Some(_) => "expects one line NAME:VALUE in the file".to_owned(),
        None => format!("expects NAME:VALUE, got '{given}'"),
    };
    found.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(wrong)
}

/// The address of the front end at a place.
fn server_address(
    place: &HostPort,
    trust: ClientTrust<'_>,
    headers: &[(String, String)],
) -> Result<ServerAddress, String> {
    let HostPort { host, port, secure } = place;
    let tls = match secure {
        false => None,
        true => {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| format!("'{host}' is no name that certificates have"))?;
            Some((tls::client(trust)?, name))
        }
    };
    Ok(ServerAddress { address: resolve(host, *port)?, tls, headers: headers.to_vec() })
}

/// Reads host and port of `HOST`, `HOST:PORT`, `[HOST]:PORT` or a URL of these.
///
/// # Errors
/// Fails when the text is none of them.
pub(super) fn place(given: &str, usual: u16) -> Result<HostPort, String> {
    let wrong = || format!("expects HOST:PORT, got '{given}'");
    let (bare, secure) = match given.strip_prefix("https://") {
        Some(bare) => (bare, true),
        None => (given.strip_prefix("http://").unwrap_or(given), false),
    };
    let bare = bare.trim_end_matches('/');
    let (host, port) = match bare.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().map_err(|_| wrong())?)
        }
        _ => (bare, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains('/') {
        return Err(wrong());
    }
    Ok(HostPort { host: host.to_owned(), port, secure })
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let found = (host, port).to_socket_addrs();
    let mut found = found.map_err(|error| format!("'{host}' cannot be found: {error}"))?;
    found.next().ok_or_else(|| format!("'{host}' has no address"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;
    use std::time::Duration;

    use galatea_server::tls::{TlsApplication, TlsFile, TlsOptions};

    use super::super::http_client::HttpClient;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn places_have_usual_ports() {
        for (given, expected) in [
            ("h", ("h", 8000, false)),
            ("h:9", ("h", 9, false)),
            ("http://h:9/", ("h", 9, false)),
            ("https://h:9/", ("h", 9, true)),
            ("[::1]:9", ("::1", 9, false)),
            ("https://[::1]", ("::1", 8000, true)),
        ] {
            let HostPort { host, port, secure } = place(given, 8000).unwrap();
            assert_eq!((host.as_str(), port, secure), expected, "{given}");
        }
        for given in ["", "h:x", "h:99999", "http://h/path", ":9"] {
            assert!(place(given, 8000).unwrap_err().contains("HOST:PORT"), "{given}");
        }
    }

    #[test]
    fn headers_have_a_name_and_a_value_of_one_line() {
        let found = header("x-key: a:b").unwrap();
        assert_eq!((found.0.as_str(), found.1.as_str()), ("x-key", "a:b"));
        for wrong in ["", "x", ":v", "a b:c", "a:b\r\nc: d"] {
            assert!(header(wrong).unwrap_err().contains("NAME:VALUE"), "{wrong:?}");
        }
    }

    #[test]
    fn a_header_may_stand_in_a_file_that_nobody_else_reads() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let given = format!("@{}", file.path().display());
        std::fs::write(file.path(), "Authorization: Bearer secret\n").unwrap();
        let found = header(&given).unwrap();
        assert_eq!((found.0.as_str(), found.1.as_str()), ("Authorization", "Bearer secret"));
        std::fs::write(file.path(), "secret").unwrap();
        let error = header(&given).unwrap_err();
        assert!(error.contains("NAME:VALUE") && !error.contains("secret"), "{error}");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(header(&given).unwrap_err().contains("0600"));
        assert!(header("@/no/such/file").is_err());
    }

    /// A front end with TLS that answers one request with what it was asked.
    fn echo(config: Arc<rustls::ServerConfig>) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let (stream, _) = listener.accept().unwrap();
            let connection = rustls::ServerConnection::new(config).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(1) => asked.push(byte[0]),
                    // A client that believes nothing goes.
                    _ => return String::new(),
                }
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
            stream.flush().unwrap();
            String::from_utf8(asked).unwrap()
        };
        (address, std::thread::spawn(serve))
    }

    #[test]
    fn tls_is_spoken_with_whom_a_file_is_for_and_headers_are_sent() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/tls");
        let file = |name: &str| format!("{folder}/{name}");
        let config = {
            let file = |name| TlsFile { flag: "http-server-cert", path: file(name) };
            let options = TlsOptions {
                certificate: file("localhost.pem"),
                key: file("localhost.key"),
                client_roots: None,
            };
            options.server_config(TlsApplication::Http).unwrap()
        };
        let headers = [("x-key".to_owned(), "secret".to_owned())];
        let ca = file("localhost.pem");
        for (trust, believed) in [
            (ClientTrust::File(&ca), true),
            (ClientTrust::Anybody, true),
            (ClientTrust::System, false),
        ] {
            let (address, asked) = echo(Arc::clone(&config));
            let named =
                HostPort { host: "localhost".to_owned(), port: address.port(), secure: true };
            // A system may have no file of certificates.
            let Ok(named) = server_address(&named, trust, &headers) else { continue };
            let server = ServerAddress { address, ..named };
            let mut client = HttpClient::connect_within(&server, PATIENCE).unwrap();
            let answer = client.get("/metrics");
            assert_eq!(answer.as_ref().is_ok_and(|answer| answer.body == b"hi"), believed);
            drop(client);
            let asked = asked.join().unwrap();
            assert_eq!(asked.contains("x-key: secret\r\n"), believed, "{asked}");
        }
    }
}
