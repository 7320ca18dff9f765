use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use galatea_serving::trace::{REQUEST_END, REQUEST_START, TraceEntry, TraceEvent};
use prost::Message;

use super::SpanExporter;
use super::collector_url::CollectorUrl;
use super::proto::{ExportRequest, text};
use crate::trace::OpenTelemetry;

/// Takes so many messages and gives them back.
fn collector(messages: usize) -> (String, JoinHandle<Vec<(String, ExportRequest)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let take = move |_| {
        let (stream, _) = listener.accept().unwrap();
        receive(stream)
    };
    (url, std::thread::spawn(move || (0..messages).map(take).collect()))
}

fn receive(stream: TcpStream) -> (String, ExportRequest) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    (head, ExportRequest::decode(body.as_slice()).unwrap())
}

fn entries(trace: u64) -> Vec<TraceEntry> {
    let stamp = |name, ns| TraceEntry { trace, event: TraceEvent::Stamp { name, ns } };
    let model = "m".to_owned();
    let version = "1".to_owned();
    let began = TraceEvent::Began { model, version, request_id: String::new(), parent: None };
    vec![TraceEntry { trace, event: began }, stamp(REQUEST_START, 5), stamp(REQUEST_END, 9)]
}

fn names(message: &ExportRequest) -> Vec<&str> {
    let scopes = message.resource_spans.iter().flat_map(|of| &of.scope_spans);
    scopes.flat_map(|scope| &scope.spans).map(|span| span.name.as_str()).collect()
}

#[test]
fn a_collector_gets_spans_in_batches_and_the_rest_at_the_end() {
    let (url, collector) = collector(2);
    let config = OpenTelemetry {
        url,
        resource: vec![("deployment".to_owned(), "test".to_owned())],
        max_export_batch_size: 4,
        schedule_delay_ms: 3_600_000,
        ..OpenTelemetry::default()
    };
    let exporter = SpanExporter::start(&config).unwrap();
    for trace in 1..=3 {
        exporter.sink(None).finished(entries(trace));
    }
    exporter.close();
    exporter.sink(None).finished(entries(4));
    let messages = collector.join().unwrap();
    let (head, message) = &messages[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"));
    assert!(head.contains("Content-Type: application/x-protobuf\r\n"));
    let resource = message.resource_spans[0].resource.as_ref().unwrap();
    let expected = [text("service.name", "triton-inference-server"), text("deployment", "test")];
    assert_eq!(resource.attributes, expected);
    let all: Vec<&str> = messages.iter().flat_map(|(_, message)| names(message)).collect();
    assert_eq!(all, ["InferRequest", "m"].repeat(3));
    assert!(messages.iter().all(|(_, message)| names(message).len() <= 4));
}

#[test]
fn a_collector_that_is_not_there_costs_only_the_spans() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = OpenTelemetry { url: format!("http://{unused}"), ..OpenTelemetry::default() };
    let exporter = SpanExporter::start(&config).unwrap();
    exporter.sink(None).finished(entries(1));
    exporter.close();
    assert_eq!(Arc::strong_count(&exporter), 1);
}

#[test]
fn addresses_are_checked() {
    for good in [
        "http://h:4318/v1/traces",
        "http://h",
        "http://[::1]:4318/x",
        "http://h/x",
        "h:1",
        "localhost:4318/v1/traces",
        "[::1]:4318/x",
    ] {
        assert!(CollectorUrl::parse(good).is_ok(), "{good}");
    }
    for bad in [
        "https://h/x",
        "ftp://h:1",
        "",
        "/x",
        "http://",
        "http://h:99999/x",
        "http://h/a b",
        "http://h\r\n/",
    ] {
        assert!(CollectorUrl::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn spans_leave_at_once_without_a_delay() {
    let (url, collector) = collector(4);
    let config = OpenTelemetry { url, schedule_delay_ms: 0, ..OpenTelemetry::default() };
    let exporter = SpanExporter::start(&config).unwrap();
    exporter.sink(None).finished(entries(1));
    exporter.sink(None).finished(entries(2));
    // They are there although nothing ends and no batch is full.
    let messages = collector.join().unwrap();
    let sizes: Vec<usize> = messages.iter().map(|(_, message)| names(message).len()).collect();
    assert_eq!(sizes, [1, 1, 1, 1]);
}
