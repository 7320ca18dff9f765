//! HTTP/1 on the running server: what RFC 9112 demands of a server, and forms by which requests are smuggled.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};

use crate::client::{exchange, socket};
use crate::{Fixture, SIMPLE, start};

/// Requests behind a malformed one: nothing of them may be answered.
const NEXT: &str = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";

/// Sends bytes, says that nothing follows, and returns the statuses of all answers and whether the server closed.
fn statuses(address: SocketAddr, text: &str) -> (Vec<u16>, String) {
    let mut stream = socket(address);
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that waits for more would be seen by the time limit of the socket.
    let read = stream.read_to_end(&mut answer);
    assert!(
        read.as_ref().err().is_none_or(|e| e.kind() == std::io::ErrorKind::ConnectionReset),
        "the connection stays open: {text:?}: {read:?}"
    );
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let found = answer.split("HTTP/1.").skip(1);
    // Texts of errors name versions too.
    let found = found.filter_map(|part| part.get(2..5)?.parse().ok()).collect();
    (found, answer)
}

fn head(headers: &str) -> String {
    format!("POST /v2/repository/index HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n")
}

fn refused(address: SocketAddr, cases: &[(&str, u16)]) {
    for (text, status) in cases {
        let (found, answer) = statuses(address, &format!("{text}{NEXT}"));
        assert_eq!(found, [*status], "{text:?}: {answer}");
        // Connections of HTTP/1.0 end without a word.
        let told = answer.starts_with("HTTP/1.0 ") || answer.contains("Connection: close\r\n");
        assert!(told, "{text:?}: {answer}");
        assert!(answer.contains("{\"error\":\""), "{text:?}: {answer}");
    }
}

#[test]
fn heads_of_another_form_are_refused_and_their_connections_end() {
    let fixture = start(&[]);
    let address = fixture.http();
    let line = |name: &str| format!("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n{name}\r\n\r\n");
    let many = line(&"A: b\r\n".repeat(200));
    let long = line(&format!("A: {}", "b".repeat(70_000)));
    let target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000));
    refused(
        address,
        &[
            // Section 2.2: lines end in CR LF, and a bare CR or LF is none.
            ("GET /v2/health/live HTTP/1.1\nHost: x\n\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: x\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", 400),
            // Section 3: the request line.
            ("GET  /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /v2/health/live  HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /v2/health /live HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GE[T /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/3.0\r\nHost: x\r\n\r\n", 505),
            (&target, 414),
            // Section 3.2: exactly one host that is one.
            ("GET /v2/health/live HTTP/1.1\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", 400),
            ("GET http://x/v2/health/live HTTP/1.1\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost: u@x\r\n\r\n", 400),
            ("GET /v2/health/live HTTP/1.1\r\nHost:\r\n\r\n", 400),
            // Section 5: headers.
            (&line("no colon here"), 400),
            (&line("A : b"), 400),
            (&line("A\t: b"), 400),
            (&line("A: b\r\n c"), 400),
            (&line("A: b\r\n\tc"), 400),
            (&line(" A: b"), 400),
            (&line(": b"), 400),
            (&line("A: b\0c"), 400),
            (&line("A\u{e9}: b"), 400),
            (&many, 431),
            (&long, 431),
        ],
    );
    assert!(fixture.stop());
}

#[test]
fn bodies_that_two_readers_could_delimit_differently_are_refused() {
    let fixture = start(&[]);
    let mut cases = Vec::new();
    for headers in [
        "Content-Length: abc",
        "Content-Length:",
        "Content-Length: +2",
        "Content-Length: -2",
        "Content-Length: 2 2",
        "Content-Length: 2, 2",
        "Content-Length: 0x2",
        "Content-Length: 99999999999999999999",
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: , chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;x",
        "Transfer-Encoding: chunked\u{e9}",
        "Transfer-Encoding:",
    ] {
        cases.push((format!("{}0\r\n\r\n", head(headers)), 400));
    }
    cases.push((head("Transfer-Encoding: gzip, chunked"), 501));
    cases.push((head("Transfer-Encoding: chunked").replace("HTTP/1.1", "HTTP/1.0"), 400));
    let kept = head("Transfer-Encoding: chunked\r\nConnection: keep-alive");
    cases.push((format!("{}0\r\n\r\n", kept.replace("HTTP/1.1", "HTTP/1.0")), 400));
    // Paths where nothing is and requests that are refused by their heads are no way around.
    let nowhere = head("Content-Length: 2\r\nTransfer-Encoding: chunked");
    cases.push((nowhere.replace("/v2/repository/index", "/nowhere"), 400));
    cases.push((nowhere.replace("POST", "GET"), 400));
    let cases: Vec<(&str, u16)> = cases.iter().map(|(text, status)| (&**text, *status)).collect();
    refused(fixture.http(), &cases);
    assert!(fixture.stop());
}

#[test]
fn malformed_chunks_are_refused_and_their_connections_end() {
    let fixture = start(&[]);
    let extensions = format!("2;{}\r\n{{}}\r\n", "x".repeat(250)).repeat(100);
    let one = format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(300));
    let trailers = format!("0\r\n{}\r\n", "A: b\r\n".repeat(10_000));
    let mut cases = Vec::new();
    for body in [
        "xyz\r\n",
        "\r\n",
        " 2\r\n{}\r\n0\r\n\r\n",
        "2 \r\n{}\r\n0\r\n\r\n",
        "+2\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n\r\n",
        "2;a\nb\r\n{}\r\n0\r\n\r\n",
        "2;a\rb\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}0\r\n\r\n",
        "2\r\n{} \r\n0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "10000000000000002\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\r\n0\r\nno colon\r\n\r\n",
        "2\r\n{}\r\n0\r\nA : b\r\n\r\n",
        "2\r\n{}\r\n0\r\nA: b\n\r\n\r\n",
        &extensions,
        &one,
        &trailers,
    ] {
        cases.push(format!("{}{body}", head("Transfer-Encoding: chunked")));
    }
    let cases: Vec<(&str, u16)> = cases.iter().map(|text| (&**text, 400)).collect();
    refused(fixture.http(), &cases);
    assert!(fixture.stop());
}

#[test]
fn other_protocols_are_closed_without_an_answer() {
    let fixture = start(&[]);
    for bytes in [
        &b"BLAH\r\n\r\n"[..],
        b"GET /v2/health/live\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\n\n",
    ] {
        assert_eq!(exchange(fixture.http(), bytes), "", "{bytes:?}");
    }
    assert!(fixture.stop());
}

#[test]
fn answers_to_head_have_no_body() {
    let fixture = start(&[]);
    let metrics = fixture.server.addresses().metrics.unwrap();
    for (address, path, status) in [
        (fixture.http(), "/v2", 405),
        (fixture.http(), "/nowhere", 404),
        (metrics, "/metrics", 405),
    ] {
        let last = NEXT.replace("Host: x", "Host: x\r\nConnection: close");
        let text = format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n{last}");
        let (found, answer) = statuses(address, &text);
        assert_eq!(found, [status, 200], "{answer}");
        let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: ") && !head.ends_with(" 0"), "{head}");
        assert!(rest.starts_with("HTTP/1.1 200"), "{rest}");
    }
    assert!(fixture.stop());
}

#[test]
fn forms_that_the_standard_allows_are_taken() {
    let fixture = start(&[]);
    let size = SIMPLE.len();
    let infer = "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\n";
    let chunks =
        format!("{size:X} ; a=b;c=\"d e\"\r\n{SIMPLE}\r\n000;last\r\nDigest: x\r\nB:\r\n\r\n");
    let requests = [
        // Empty lines before a request (section 2.2), and a URL as the target (section 3.2.2).
        format!("\r\n\r\n{NEXT}"),
        "GET HTTP://localhost:1/v2/health/live?a=b HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        // Names in any case, and no or much space around values.
        format!("{infer}cOnTeNt-LeNgTh:\t {size} \t\r\n\r\n{SIMPLE}"),
        format!("{infer}transfer-encoding:CHUNKED\r\n\r\n{chunks}"),
        // Offers to upgrade may be passed over (RFC 9110, section 7.8).
        "GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
            .to_owned(),
        // A body of a GET is read, not taken for the next request.
        format!(
            "GET /v2/health/live HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{NEXT}",
            NEXT.len()
        ),
        // HTTP/1.0 goes on where both sides say so; no `100 Continue` there.
        format!(
            "POST /v2/models/simple/infer HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\
             Content-Length: {size}\r\n\r\n{SIMPLE}"
        ),
        "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: a\r\nConnection: b, CLOSE\r\n\r\n"
            .to_owned(),
    ];
    let (found, answer) = statuses(fixture.http(), &format!("{}{NEXT}", requests.concat()));
    assert_eq!(found, [200; 8], "{answer}");
    let plain = "GET /v2/health/live HTTP/1.0\r\n\r\n";
    assert_eq!(statuses(fixture.http(), &format!("{plain}{NEXT}")).0, [200]);
    assert!(fixture.stop());
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let fixture: Fixture = start(&[]);
    for rest in [
        format!("Content-Length: {}\r\n\r\n{SIMPLE}", SIMPLE.len() + 1),
        format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{SIMPLE}\r\n", SIMPLE.len()),
        format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{SIMPLE}\r\n0\r\n", SIMPLE.len()),
    ] {
        let mut stream = socket(fixture.http());
        let text = format!("POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\n{rest}");
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "", "{rest}");
    }
    let page = exchange(
        fixture.server.addresses().metrics.unwrap(),
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert!(!page.contains("nv_inference_count{model=\"simple\",version=\"1\"} 1"), "{page}");
    assert!(fixture.stop());
}
