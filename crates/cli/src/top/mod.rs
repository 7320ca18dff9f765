//! `galatea top`: what a server does, in the terminal.

mod page;
mod screen;
mod server;
mod snapshot;
mod view;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::arguments::{number, worded_choice};
use super::say;
use super::server_place::{ClientArguments, HostPort, http_place, place};
use clap::Args;
use screen::{ScreenKey, ScreenScroll, TerminalScreen};
use server::WatchedServer;
use snapshot::ServerSnapshot;
use view::ModelOrder;

/// Command line of `galatea top`.
#[derive(Debug, Args)]
pub(super) struct TopArguments {
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = http_place,
        help = "the server's HTTP front end, with https:// before it where that has TLS [127.0.0.1:8000]"
    )]
    url: Option<HostPort>,
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = |text: &str| place(text, METRICS_PORT),
        help = "its metrics front end, likewise [where the server says that it is]"
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

/// The shortest and the longest time between two looks, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;
/// The port of metrics in an address without one.
const METRICS_PORT: u16 = 8002;
/// The server that is looked at where no address is given.
const USUAL_SERVER: &str = "127.0.0.1";

/// Shows what a server does, until a key is pressed; once where there is no terminal.
pub(super) fn top(arguments: &TopArguments) -> Result<ExitCode, String> {
    let TopArguments { interval, sort, json, .. } = *arguments;
    let usual = match (&arguments.url, &arguments.metrics_url) {
        // Who names metrics alone does not ask about a server that happens to be here.
        (None, None) => Some(http_place(USUAL_SERVER)?),
        _ => None,
    };
    let url = arguments.url.as_ref().or(usual.as_ref());
    let server = WatchedServer::of(url, arguments.metrics_url.as_ref(), &arguments.client)?;
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
    let mut scroll = ScreenScroll::default();
    let mut next = Instant::now() + interval.min(Duration::from_millis(500));
    loop {
        let text = match &snapshot {
            Some(snapshot) => view::text(snapshot, order),
            None => format!("{}: looking …\n", server.name),
        };
        let keys = format!(" {trouble}q quit   s sort by {}", order.next().name());
        screen.draw(&text, &keys, &mut scroll).map_err(gone)?;
        match screen.key(next).map_err(gone)? {
            Some(ScreenKey::Quit) => return Ok(ExitCode::SUCCESS),
            Some(ScreenKey::Sort) => {
                order = order.next();
                continue;
            }
            Some(ScreenKey::Move(step)) => {
                scroll.go(step);
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
