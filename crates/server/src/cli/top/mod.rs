//! `galatea top`: what a server does, in the terminal.

mod page;
mod screen;
mod snapshot;
mod view;

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::{Arguments, Choice, help};
use super::http_client::Client;
use super::say;
use page::Page;
use screen::{Key, Screen};
use snapshot::{Indexed, Look, Snapshot};
use view::Order;

const CHOICES: &[Choice] = &[
    Choice { name: "url", value: "HOST:PORT", sentence: "the server's HTTP door [127.0.0.1:8000]" },
    Choice {
        name: "metrics-url",
        value: "HOST:PORT",
        sentence: "its metrics door [port 8002 of the same host]",
    },
    Choice { name: "interval", value: "S", sentence: "seconds between two looks [1]" },
    Choice { name: "sort", value: "requests|latency|name", sentence: "how models are sorted" },
    Choice { name: "once", value: "", sentence: "print one snapshot as text" },
    Choice { name: "json", value: "", sentence: "print one snapshot as a line of JSON" },
    Choice { name: "help", value: "", sentence: "print this" },
];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest and the longest time between two looks, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;
/// The ports of a server that nobody has told otherwise.
const PORTS: (u16, u16) = (8000, 8002);

/// Shows what a server does, until a key is pressed; once where there is no terminal.
pub(super) fn top(arguments: &[String]) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(arguments, CHOICES)?;
    if arguments.has("help") {
        say(&help("galatea top [--url HOST:PORT] [--once] [--json] …", CHOICES));
        return Ok(ExitCode::SUCCESS);
    }
    arguments.none()?;
    let interval: f64 = arguments.number("interval", 1.0)?;
    if !INTERVALS.contains(&interval) {
        let (least, most) = (INTERVALS.start(), INTERVALS.end());
        return Err(format!("--interval expects seconds from {least} to {most}, got '{interval}'"));
    }
    let interval = Duration::from_secs_f64(interval);
    let order = order(arguments.last("sort"))?;
    let server = Server::of(&arguments)?;
    match arguments.has("json") || arguments.has("once") || !screen::is_there() {
        true => once(&server, interval, order, arguments.has("json")),
        false => watch(&server, interval, order),
    }
}

fn order(name: Option<&str>) -> Result<Order, String> {
    let all = [Order::Requests, Order::Latency, Order::Name];
    let Some(name) = name else { return Ok(Order::default()) };
    let found = all.into_iter().find(|order| order.name() == name);
    found.ok_or_else(|| format!("--sort expects requests, latency or name, got '{name}'"))
}

/// Two looks, and what lies between them.
fn once(server: &Server, interval: Duration, order: Order, json: bool) -> Result<ExitCode, String> {
    let (before, begin) = (server.look()?, Instant::now());
    std::thread::sleep(interval);
    let (now, time) = (server.look()?, begin.elapsed());
    let mut snapshot = Snapshot::of(&server.name, &before, &now, time);
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
fn watch(server: &Server, interval: Duration, mut order: Order) -> Result<ExitCode, String> {
    let mut last = Some((server.look()?, Instant::now()));
    let gone = |error: std::io::Error| format!("the terminal cannot be used: {error}");
    let screen = Screen::take().map_err(gone)?;
    let mut snapshot: Option<Snapshot> = None;
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
            Some(Key::Quit) => return Ok(ExitCode::SUCCESS),
            Some(Key::Sort) => {
                order = order.next();
                continue;
            }
            Some(Key::Redraw) => continue,
            None => next = Instant::now() + interval,
        }
        match server.look() {
            Ok(now) => {
                let at = Instant::now();
                if let Some((before, begin)) = &last {
                    let time = at.saturating_duration_since(*begin);
                    snapshot = Some(Snapshot::of(&server.name, before, &now, time));
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

/// The doors of a server.
#[derive(Debug)]
struct Server {
    name: String,
    http: SocketAddr,
    metrics: SocketAddr,
    metrics_name: String,
}

impl Server {
    fn of(arguments: &Arguments) -> Result<Self, String> {
        let given = arguments.last("url").unwrap_or("127.0.0.1");
        let (host, port) = place("url", given, PORTS.0)?;
        let name = format!("{host}:{port}");
        let metrics = match arguments.last("metrics-url") {
            Some(given) => place("metrics-url", given, PORTS.1)?,
            None => (host.clone(), PORTS.1),
        };
        let metrics_name = format!("{}:{}", metrics.0, metrics.1);
        let (http, metrics) = (resolve(&host, port)?, resolve(&metrics.0, metrics.1)?);
        Ok(Self { name, http, metrics, metrics_name })
    }

    /// Looks at the metrics, and at the models where the other door tells.
    ///
    /// # Errors
    /// When there are no metrics to be had.
    fn look(&self) -> Result<Look, String> {
        let failed = |why: &str| format!("no metrics from {}: {why}", self.metrics_name);
        let mut client = Client::connect_within(self.metrics, PATIENCE)
            .map_err(|error| failed(&error.to_string()))?;
        let answer = client.get("/metrics").map_err(|error| failed(&error.to_string()))?;
        if answer.status != 200 {
            return Err(failed(&format!("it answers with status {}", answer.status)));
        }
        let page = Page::parse(&String::from_utf8_lossy(&answer.body));
        let mut look = Look { page, ..Look::default() };
        // The door may be shut, or want a header: metrics tell enough.
        if let Ok(mut client) = Client::connect_within(self.http, PATIENCE) {
            look.server = client.get("/v2").ok().and_then(|answer| named(&answer.body));
            let index = client.post("/v2/repository/index", None, b"");
            look.index = index.map(|answer| indexed(&answer.body)).unwrap_or_default();
        }
        Ok(look)
    }
}

/// Host and port of `HOST`, `HOST:PORT`, `[HOST]:PORT` or a URL of these.
fn place(flag: &str, given: &str, usual: u16) -> Result<(String, u16), String> {
    let wrong = || format!("--{flag} expects HOST:PORT, got '{given}'");
    if given.starts_with("https://") {
        return Err(format!("--{flag}: '{given}' has TLS, which this command does not speak"));
    }
    let bare = given.strip_prefix("http://").unwrap_or(given).trim_end_matches('/');
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
    Ok((host.to_owned(), port))
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
fn indexed(body: &[u8]) -> Vec<Indexed> {
    let found: Value = serde_json::from_slice(body).unwrap_or_default();
    let one = |value: &Value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let (model, version, state) = (text("name")?, text("version")?, text("state")?);
        Some(Indexed { model, version, state })
    };
    found.as_array().into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_usual_ports() {
        for (given, expected) in [
            ("h", ("h", 8000)),
            ("h:9", ("h", 9)),
            ("http://h:9/", ("h", 9)),
            ("[::1]:9", ("::1", 9)),
            ("[::1]", ("::1", 8000)),
        ] {
            let (host, port) = place("url", given, 8000).unwrap();
            assert_eq!((host.as_str(), port), expected, "{given}");
        }
        for given in ["", "h:x", "h:99999", "http://h/path", ":9"] {
            assert!(place("url", given, 8000).unwrap_err().contains("HOST:PORT"), "{given}");
        }
        assert!(place("url", "https://h", 8000).unwrap_err().contains("TLS"));
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
