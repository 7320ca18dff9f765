//! `galatea top`: what a server does, in the terminal.

mod page;
mod screen;
mod snapshot;
mod view;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::arguments::{number, worded_choice};
use super::http_client::{HttpClient, ServerAddress};
use super::say;
use super::server_place::{ClientArguments, HostPort, http_place, place};
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
        value_parser = http_place,
        help = "the server's HTTP front end, with https:// before it where that has TLS [127.0.0.1:8000]"
    )]
    url: HostPort,
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = |text: &str| place(text, METRICS_PORT),
        help = "its metrics front end, likewise [port 8002 of the same host]"
    )]
    metrics_url: Option<HostPort>,
    #[command(flatten)]
    client: ClientArguments,
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
/// The port of metrics of a server that nobody has told otherwise.
const METRICS_PORT: u16 = 8002;

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

impl WatchedServer {
    fn of(arguments: &TopArguments) -> Result<Self, String> {
        let TopArguments { url, metrics_url, client, .. } = arguments;
        let name = url.to_string();
        let metrics = metrics_url.clone().unwrap_or_else(|| url.beside(METRICS_PORT));
        let metrics_name = metrics.to_string();
        let http = client.address(url)?;
        let metrics = client.address(&metrics)?;
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
    use super::*;

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
