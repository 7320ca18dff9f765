//! The server that `top` looks at, and where its metrics are.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;

use super::page::MetricsPage;
use super::snapshot::{IndexedVersion, ServerLook};
use crate::http_client::{HttpAnswer, HttpClient, ServerAddress};
use crate::server_place::{ClientArguments, HostPort};

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Port of metrics of a server that cannot tell where they are, as Triton's.
const METRICS_PORT: u16 = 8002;
/// Path by which a server tells where its metrics are.
const FRONT_ENDS: &str = "/galatea/v1/front_ends";
/// Way out where metrics cannot be found.
const NAME_THEM: &str = "--metrics-url HOST:PORT names the page of metrics";

/// The front ends of a server.
#[derive(Debug)]
pub(super) struct WatchedServer {
    /// Name in what is shown.
    pub(super) name: String,
    /// The HTTP front end; none where only metrics are named.
    http: Option<NamedFrontEnd>,
    /// The page of metrics, where it is named.
    metrics: Option<NamedFrontEnd>,
    client: ClientArguments,
}

/// Place of a front end and how it is reached.
#[derive(Debug, Clone)]
struct NamedFrontEnd {
    place: HostPort,
    address: ServerAddress,
}

/// Answer of a server about its metrics.
#[derive(Debug, PartialEq, Eq)]
enum ToldMetrics {
    /// They are at a port; their answer names the same `instance`.
    Port { address: Option<IpAddr>, port: u16, tls: bool, instance: String },
    /// It has none, or none that can be reached over a network.
    Nowhere(String),
    /// It cannot tell: it is another program, or an older one.
    Unknown,
}

impl WatchedServer {
    /// The server at a place, or whose metrics are at one.
    ///
    /// # Errors
    /// Fails when a host has no address, and when certificates cannot be read.
    pub(super) fn of(
        url: Option<&HostPort>,
        metrics_url: Option<&HostPort>,
        client: &ClientArguments,
    ) -> Result<Self, String> {
        let front_end = |place: &HostPort| {
            let address = client.address(place)?;
            Ok::<_, String>(NamedFrontEnd { place: place.clone(), address })
        };
        let http = url.map(front_end).transpose()?;
        let metrics = metrics_url.map(front_end).transpose()?;
        let name = http.as_ref().or(metrics.as_ref()).map(|named| named.place.to_string());
        Ok(Self { name: name.unwrap_or_default(), http, metrics, client: client.clone() })
    }

    /// Reads the metrics, and the models if the HTTP front end lists them.
    ///
    /// # Errors
    /// Fails when nothing answers, and when the server's own metrics cannot be read.
    pub(super) fn look(&self) -> Result<ServerLook, String> {
        let mut look = ServerLook::default();
        let mut told = ToldMetrics::Unknown;
        if let Some(http) = &self.http {
            let failed = |error: &dyn std::fmt::Display| {
                format!("no server answers at {}: {error}", http.place)
            };
            let mut client = HttpClient::connect_within(&http.address, PATIENCE)
                .map_err(|error| failed(&error))?;
            let metadata = client.get("/v2").map_err(|error| failed(&error))?;
            look.server = named(&metadata.body);
            // A front end that wants a header for it still has metrics.
            let index = client.post("/v2/repository/index", None, b"");
            look.index = index.map(|answer| indexed(&answer.body)).unwrap_or_default();
            if self.metrics.is_none() {
                let answer = client.get(FRONT_ENDS).map_err(|error| failed(&error))?;
                told = told_metrics(&answer);
            }
        }
        look.page = match &self.metrics {
            Some(metrics) => page(metrics)?.page,
            None => self.own_page(told, &look.index)?,
        };
        Ok(look)
    }

    /// Reads the page that the server has told of, and no other one.
    fn own_page(&self, told: ToldMetrics, index: &[IndexedVersion]) -> Result<MetricsPage, String> {
        let Some(http) = &self.http else { return Err(NAME_THEM.to_owned()) };
        let place = &http.place;
        match told {
            ToldMetrics::Nowhere(why) => Err(format!("the server at {place} {why}")),
            ToldMetrics::Port { address, port, tls, instance } => {
                let beside = place.metrics_at(address, port, tls);
                let found =
                    self.page_at(&beside).map_err(|error| format!("{error}; {NAME_THEM}"))?;
                match found.instance == Some(instance) {
                    true => Ok(found.page),
                    false => Err(format!(
                        "{beside} has the metrics of another server than {place}; {NAME_THEM}"
                    )),
                }
            }
            ToldMetrics::Unknown => {
                let beside = place.metrics_at(None, METRICS_PORT, false);
                let found =
                    self.page_at(&beside).map_err(|error| format!("{error}; {NAME_THEM}"))?;
                match stranger(&found.page, index) {
                    None => Ok(found.page),
                    Some(model) => Err(format!(
                        "{beside} has the metrics of another server: the one at {place} has no model '{model}'; {NAME_THEM}"
                    )),
                }
            }
        }
    }

    fn page_at(&self, place: &HostPort) -> Result<FoundPage, String> {
        page(&NamedFrontEnd { place: place.clone(), address: self.client.address(place)? })
    }
}

/// A page of metrics, and the run of a server that it is of, where it tells.
struct FoundPage {
    page: MetricsPage,
    instance: Option<String>,
}

/// Reads a page of metrics.
fn page(metrics: &NamedFrontEnd) -> Result<FoundPage, String> {
    let failed = |why: &dyn std::fmt::Display| format!("no metrics from {}: {why}", metrics.place);
    let mut client =
        HttpClient::connect_within(&metrics.address, PATIENCE).map_err(|error| failed(&error))?;
    let answer = client.get("/metrics").map_err(|error| failed(&error))?;
    if answer.status != 200 {
        return Err(failed(&format!("it answers with status {}", answer.status)));
    }
    let page = MetricsPage::parse(&String::from_utf8_lossy(&answer.body));
    Ok(FoundPage { page, instance: answer.instance })
}

/// Reads where the metrics are.
fn told_metrics(answer: &HttpAnswer) -> ToldMetrics {
    match answer.status {
        200 => {}
        401 | 403 => {
            let why = format!(
                "tells where its metrics are only to clients with a header (--header NAME:VALUE); {NAME_THEM}"
            );
            return ToldMetrics::Nowhere(why);
        }
        _ => return ToldMetrics::Unknown,
    }
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        return ToldMetrics::Unknown;
    };
    let Some(metrics) = body.get("metrics") else { return ToldMetrics::Unknown };
    let port =
        metrics.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    match (port, text(metrics, "socket")) {
        (Some(port), _) => ToldMetrics::Port {
            address: text(metrics, "address").and_then(|address| address.parse().ok()),
            port,
            tls: metrics.get("tls").and_then(Value::as_bool).unwrap_or(false),
            instance: text(&body, "instance").unwrap_or_default(),
        },
        (None, Some(socket)) => ToldMetrics::Nowhere(format!(
            "has its metrics at the socket {socket}, which top cannot read"
        )),
        (None, None) => ToldMetrics::Nowhere(
            "has no page of metrics: it was started with --allow-metrics=false".to_owned(),
        ),
    }
}

/// A model of a page that is in no index; none where there is no index to compare with.
fn stranger(page: &MetricsPage, index: &[IndexedVersion]) -> Option<String> {
    let known = |model: &str| index.is_empty() || index.iter().any(|one| one.model == model);
    let counted = page.all("nv_inference_request_success").iter();
    counted.map(|one| one.label("model")).find(|model| !known(model)).map(str::to_owned)
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

    #[test]
    fn places_of_metrics_are_read_as_servers_tell_them() {
        let answer = |status, body: &str| {
            told_metrics(&HttpAnswer {
                status,
                json_bytes: None,
                instance: None,
                body: body.into(),
            })
        };
        let told =
            answer(200, r#"{"instance":"a","metrics":{"address":"0.0.0.0","port":9,"tls":true}}"#);
        let address = Some("0.0.0.0".parse().unwrap());
        let instance = "a".to_owned();
        assert_eq!(told, ToldMetrics::Port { address, port: 9, tls: true, instance });
        for (status, body, expected) in [
            (200, r#"{"metrics":null}"#, "--allow-metrics=false"),
            (200, r#"{"metrics":{"socket":"unix:/s"}}"#, "unix:/s"),
            (403, "", "--header"),
        ] {
            let ToldMetrics::Nowhere(why) = answer(status, body) else { panic!("{body}") };
            assert!(why.contains(expected), "{why}");
        }
        for (status, body) in [(404, ""), (200, "<"), (200, "{}")] {
            assert_eq!(answer(status, body), ToldMetrics::Unknown, "{body}");
        }
    }

    #[test]
    fn a_page_that_speaks_of_unknown_models_is_another_servers() {
        let page =
            MetricsPage::parse("nv_inference_request_success{model=\"m\",version=\"1\"} 4\n");
        let entry = |model: &str| IndexedVersion {
            model: model.to_owned(),
            version: "1".to_owned(),
            state: "READY".to_owned(),
        };
        assert_eq!(stranger(&page, &[entry("m"), entry("n")]), None);
        assert_eq!(stranger(&page, &[entry("n")]).as_deref(), Some("m"));
        assert_eq!(stranger(&page, &[]), None, "an index that nobody tells says nothing");
    }
}
