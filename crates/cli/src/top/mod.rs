//! `galatea top`: what a server does, in the terminal.

mod page;
mod screen;
mod snapshot;
mod view;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use rustls::pki_types::ServerName;
use serde_json::Value;

use super::arguments::{number, worded_choice};
use super::http_client::{HttpClient, ServerAddress};
use super::say;
use galatea_server::tls::{self, ClientTrust};
use page::MetricsPage;
use screen::{ScreenKey, TerminalScreen};
use snapshot::{IndexedVersion, ServerLook, ServerSnapshot};
use view::ModelOrder;

/// Command line of `galatea top`.
#[derive(Debug, Args)]
pub(super) struct TopArguments {
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1",
        value_parser = |text: &str| place(text, PORTS.0),
        help = "the server's HTTP front end, with https:// before it where that has TLS [127.0.0.1:8000]"
    )]
    url: HostPort,
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = |text: &str| place(text, PORTS.1),
        help = "its metrics front end, likewise [port 8002 of the same host]"
    )]
    metrics_url: Option<HostPort>,
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
        help = "header of each request, such as for restricted endpoints; repeatable"
    )]
    headers: Vec<(String, String)>,
    #[arg(
        long,
        value_name = "S",
        default_value = "1",
        value_parser = interval,
        help = "seconds between two looks [1]"
    )]
    interval: Duration,
    #[arg(
        long,
        value_name = "requests|latency|name",
        default_value = "requests",
        value_parser = worded_choice(ORDERS, wrong_order),
        help = "how models are sorted"
    )]
    sort: ModelOrder,
    #[arg(long, help = "print one snapshot as text")]
    once: bool,
    #[arg(long, help = "print one snapshot as a line of JSON")]
    json: bool,
}

/// Words for orders of models.
const ORDERS: &[(&str, ModelOrder)] = &[
    (ModelOrder::Requests.name(), ModelOrder::Requests),
    (ModelOrder::Latency.name(), ModelOrder::Latency),
    (ModelOrder::Name.name(), ModelOrder::Name),
];

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest and the longest time between two looks, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;
/// The ports of a server that nobody has told otherwise.
const PORTS: (u16, u16) = (8000, 8002);

/// Shows what a server does, until a key is pressed; once where there is no terminal.
pub(super) fn top(arguments: &TopArguments) -> Result<ExitCode, String> {
    let TopArguments { interval, sort, json, .. } = *arguments;
    let server = WatchedServer::of(arguments)?;
    match json || arguments.once || !screen::is_there() {
        true => once(&server, interval, sort, json),
        false => watch(&server, interval, sort),
    }
}

fn wrong_order(given: &str) -> String {
    format!("expects requests, latency or name, got '{given}'")
}

/// Reads the time between two looks.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = number(text)?;
    if !INTERVALS.contains(&seconds) {
        let least = INTERVALS.start();
        let most = INTERVALS.end();
        return Err(format!("expects seconds from {least} to {most}, got '{seconds}'"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Two looks, and what lies between them.
fn once(
    server: &WatchedServer,
    interval: Duration,
    order: ModelOrder,
    json: bool,
) -> Result<ExitCode, String> {
    let before = server.look()?;
    let begin = Instant::now();
    std::thread::sleep(interval);
    let now = server.look()?;
    let time = begin.elapsed();
    let mut snapshot = ServerSnapshot::of(&server.name, &before, &now, time);
    if json {
        order.sort(&mut snapshot.models);
        let line = serde_json::to_string(&snapshot);
        say(&line.map_err(|error| format!("the snapshot cannot be written: {error}"))?);
    } else {
        say(view::text(&snapshot, order).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Look after look on the terminal.
fn watch(
    server: &WatchedServer,
    interval: Duration,
    mut order: ModelOrder,
) -> Result<ExitCode, String> {
    let mut last = Some((server.look()?, Instant::now()));
    let gone = |error: std::io::Error| format!("the terminal cannot be used: {error}");
    let screen = TerminalScreen::take().map_err(gone)?;
    let mut snapshot: Option<ServerSnapshot> = None;
    let mut trouble = String::new();
    let mut next = Instant::now() + interval.min(Duration::from_millis(500));
    loop {
        let text = match &snapshot {
            Some(snapshot) => view::text(snapshot, order),
            None => format!("{}: looking …\n", server.name),
        };
        let keys = format!(" {trouble}q quit   s sort by {}", order.next().name());
        screen.draw(&text, &keys).map_err(gone)?;
        match screen.key(next).map_err(gone)? {
            Some(ScreenKey::Quit) => return Ok(ExitCode::SUCCESS),
            Some(ScreenKey::Sort) => {
                order = order.next();
                continue;
            }
            Some(ScreenKey::Redraw) => continue,
            None => next = Instant::now() + interval,
        }
        match server.look() {
            Ok(now) => {
                let at = Instant::now();
                if let Some((before, begin)) = &last {
                    let time = at.saturating_duration_since(*begin);
                    snapshot = Some(ServerSnapshot::of(&server.name, before, &now, time));
                }
                last = Some((now, at));
                trouble.clear();
            }
            Err(error) => {
                // Counters of a server that comes back are compared with none of before.
                last = None;
                trouble = format!("reconnecting: {error}   ");
            }
        }
    }
}

/// The front ends of a server.
#[derive(Debug)]
struct WatchedServer {
    name: String,
    http: ServerAddress,
    metrics: ServerAddress,
    metrics_name: String,
}

/// Place of a front end.
#[derive(Debug, Clone)]
struct HostPort {
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

impl WatchedServer {
    fn of(arguments: &TopArguments) -> Result<Self, String> {
        let TopArguments { url, metrics_url, headers, .. } = arguments;
        let name = url.to_string();
        let metrics = metrics_url.clone().unwrap_or_else(|| HostPort {
            host: url.host.clone(),
            port: PORTS.1,
            secure: false,
        });
        let metrics_name = metrics.to_string();
        let trust = match (&arguments.ca_file, arguments.insecure) {
            (Some(file), _) => ClientTrust::File(file),
            (None, true) => ClientTrust::Anybody,
            (None, false) => ClientTrust::System,
        };
        let http = server_address(url, trust, headers)?;
        let metrics = server_address(&metrics, trust, headers)?;
        Ok(Self { name, http, metrics, metrics_name })
    }

    /// Reads the metrics, and the models if the HTTP endpoint lists them.
    ///
    /// # Errors
    /// Fails when no metrics can be read.
    fn look(&self) -> Result<ServerLook, String> {
        let failed = |why: &str| format!("no metrics from {}: {why}", self.metrics_name);
        let mut client = HttpClient::connect_within(&self.metrics, PATIENCE)
            .map_err(|error| failed(&error.to_string()))?;
        let answer = client.get("/metrics").map_err(|error| failed(&error.to_string()))?;
        if answer.status != 200 {
            return Err(failed(&format!("it answers with status {}", answer.status)));
        }
        let page = MetricsPage::parse(&String::from_utf8_lossy(&answer.body));
        let mut look = ServerLook { page, ..ServerLook::default() };
        // The front end may be shut, or want a header: metrics tell enough.
        if let Ok(mut client) = HttpClient::connect_within(&self.http, PATIENCE) {
            look.server = client.get("/v2").ok().and_then(|answer| named(&answer.body));
            let index = client.post("/v2/repository/index", None, b"");
            look.index = index.map(|answer| indexed(&answer.body)).unwrap_or_default();
        }
        Ok(look)
    }
}

/// Name and value of a header.
fn header(given: &str) -> Result<(String, String), String> {
    let fits = |name: &str, value: &str| {
        let name_fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && name.bytes().all(name_fits) && !value.contains(char::is_control)
    };
    let found = given.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let found = found.filter(|(name, value)| fits(name, value));
    let wrong = || format!("expects NAME:VALUE, got '{given}'");
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

/// Host and port of `HOST`, `HOST:PORT`, `[HOST]:PORT` or a URL of these.
fn place(given: &str, usual: u16) -> Result<HostPort, String> {
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

/// Name and version of a server's metadata.
fn named(body: &[u8]) -> Option<String> {
    let found: Value = serde_json::from_slice(body).ok()?;
    let text = |name: &str| found.get(name).and_then(Value::as_str);
    let name = text("name")?;
    Some(text("version").map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
}

/// The versions of a repository's index that were ever loaded.
fn indexed(body: &[u8]) -> Vec<IndexedVersion> {
    let found: Value = serde_json::from_slice(body).unwrap_or_default();
    let one = |value: &Value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let model = text("name")?;
        let version = text("version")?;
        let state = text("state")?;
        Some(IndexedVersion { model, version, state })
    };
    found.as_array().into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use galatea_server::tls::{TlsApplication, TlsFile, TlsOptions};

    use super::*;

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

    #[test]
    fn what_a_server_says_of_itself_is_read_as_far_as_it_is_known() {
        let server = named(b"{\"name\":\"triton\",\"version\":\"2\"}");
        assert_eq!(server.as_deref(), Some("triton 2"));
        assert_eq!((named(b"[]"), named(b"<")), (None, None));
        let index =
            indexed(b"[{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"},{\"name\":\"n\"},3]");
        assert_eq!(index.len(), 1);
        assert_eq!(index[0].state, "READY");
    }
}
