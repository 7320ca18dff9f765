//! Pages of browsers: which hosts and origins each front end takes, and what answers tell the browser.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};

use super::check;
use galatea_cli::flags::{ParsedCommand, ServerFlags};
use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::{
    RepositoryIndexRequest, RepositoryModelUnloadRequest, ServerLiveRequest,
};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tonic::metadata::MetadataValue;

use super::{Fixture, SIMPLE, core, exchange, parts, simple_request, socket, start};

/// A request with its own headers, `Host` among them.
fn with(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn status(address: SocketAddr, method: &str, path: &str, headers: &str) -> u16 {
    parts(&exchange(address, &with(method, path, headers, ""))).0
}

/// The value of a header of an answer.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A server with every front end for which `GET` of the path beside it is answered with 200.
fn all_doors(arguments: &[&str]) -> (Fixture, Vec<(SocketAddr, &'static str)>) {
    let ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--openai-port=0"];
    let clouds = [
        "--allow-sagemaker=true",
        "--sagemaker-port=0",
        "--allow-vertex-ai=true",
        "--vertex-ai-port=0",
        "--vertex-ai-default-model=simple",
    ];
    let arguments = ports.iter().chain(&clouds).chain(arguments).map(|&text| text.to_owned());
    let arguments: Vec<String> = arguments.collect();
    let environment = |name: &str| match name {
        "AIP_PREDICT_ROUTE" => Some("/predict".to_owned()),
        "AIP_HEALTH_ROUTE" => Some("/fit".to_owned()),
        _ => None,
    };
    let ParsedCommand::Serve(flags) =
        ServerFlags::parse_in(&arguments, false, environment).unwrap()
    else {
        panic!("no flags");
    };
    let fixture = Fixture::on(core(), &flags);
    let addresses = fixture.server.addresses();
    let doors = [
        (addresses.http, "/v2/health/ready"),
        (addresses.openai, "/v1/models"),
        (addresses.metrics, "/metrics"),
        (addresses.sagemaker, "/ping"),
        (addresses.vertex_ai, "/fit"),
    ];
    (fixture, doors.into_iter().map(|(address, path)| (address.unwrap(), path)).collect())
}

#[test]
fn every_door_refuses_foreign_hosts_and_foreign_pages() {
    let (fixture, doors) = all_doors(&["--allowed-hosts=triton.lan", "--allowed-hosts=*.corp.lan"]);
    for &(address, path) in &doors {
        let own = format!("Host: {address}\r\n");
        for (headers, expected) in [
            (own.clone(), 200),
            ("Host: localhost\r\n".to_owned(), 200),
            ("Host: [::1]:8000\r\n".to_owned(), 200),
            ("Host: Triton.LAN:8000\r\n".to_owned(), 200),
            ("Host: a.corp.lan\r\n".to_owned(), 200),
            ("Host: evil.com\r\n".to_owned(), 403),
            ("Host: localhost.evil.com:8000\r\n".to_owned(), 403),
            ("Host: 127.0.0.1.evil.com\r\n".to_owned(), 403),
            ("Host: user@localhost\r\n".to_owned(), 400),
            ("Host: \r\n".to_owned(), 400),
            (String::new(), 400),
            ("Host: localhost\r\nHost: localhost\r\n".to_owned(), 400),
            (format!("{own}Origin: http://{address}\r\n"), 200),
            (format!("{own}Origin: http://localhost:3000\r\n"), 200),
            (format!("{own}Origin: https://evil.com\r\n"), 403),
            (format!("{own}Origin: null\r\n"), 403),
            (format!("{own}Sec-Fetch-Site: cross-site\r\n"), 403),
            (format!("{own}Sec-Fetch-Site: same-origin\r\n"), 200),
            (format!("{own}Sec-Fetch-Mode: cors\r\n"), 200),
            (
                format!(
                    "{own}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
                ),
                200,
            ),
        ] {
            assert_eq!(status(address, "GET", path, &headers), expected, "{path}: {headers}");
        }
        let old = format!("GET {path} HTTP/1.0\r\n\r\n");
        assert_eq!(parts(&exchange(address, old.as_bytes())).0, 200, "{path}");
    }
    assert!(fixture.stop());
}

#[test]
fn refusals_have_the_form_of_the_door_and_name_the_flag() {
    let (fixture, doors) = all_doors(&[]);
    for &(address, path) in &doors {
        for (headers, found, flag) in [
            ("Host: evil.com:8000\r\n", "'evil.com:8000'", "--allowed-hosts"),
            ("Host: x\r\nOrigin: https://evil.com\r\n", "evil.com", "--allowed-"),
            (
                "Host: localhost\r\nOrigin: https://evil.com\r\n",
                "'https://evil.com'",
                "--allowed-origins",
            ),
            (
                "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
                "'cross-site'",
                "--allowed-origins",
            ),
        ] {
            let answer = exchange(address, &with("GET", path, headers, ""));
            let (_, head, body) = parts(&answer);
            if headers.contains("Host: x") {
                // A name of one word is no own host for a page.
                assert!(body.contains("--allowed-hosts"), "{answer}");
                continue;
            }
            assert!(body.contains(found) && body.contains(flag), "{answer}");
            assert_eq!(header(&head, "content-type"), Some("application/json"), "{answer}");
            assert_eq!(header(&head, "access-control-allow-origin"), None, "{answer}");
            let error = &super::client::json_of(&body)["error"];
            let openai = path.starts_with("/v1/");
            assert_eq!(error["message"].is_string(), openai, "{answer}");
            assert_eq!(error.is_string(), !openai, "{answer}");
        }
    }
    let (http, _) = doors[0];
    let headers = "Host: localhost\r\nOrigin: https://evil.com\r\n";
    let answer = exchange(http, &with("POST", "/v1/chat/completions", headers, "{}"));
    let (status, _, body) = parts(&answer);
    assert_eq!(status, 403, "{answer}");
    assert_eq!(super::client::json_of(&body)["error"]["type"], "invalid_request_error");
    assert!(fixture.stop());
}

/// Endpoints that change the server, at the HTTP front end.
const CHANGES: [&str; 14] = [
    "/v2/repository/index",
    "/v2/repository/models/simple/load",
    "/v2/repository/models/simple/unload",
    "/v2/repository/r/models/simple/unload",
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/models/simple/trace/setting",
    "/v2/profile/start",
    "/v2/profile/stop",
    "/v2/systemsharedmemory/register",
    "/v2/systemsharedmemory/region/r/register",
    "/v2/systemsharedmemory/unregister",
    "/v2/systemsharedmemory/region/r/unregister",
    "/v2/cudasharedmemory/unregister",
];

#[test]
fn pages_change_the_server_only_when_they_are_its_own_or_named() {
    let fixture = start(&["--allowed-origins=https://app.example,*"]);
    let address = fixture.http();
    let json = "Content-Type: application/json\r\n";
    for path in CHANGES {
        for origin in ["https://evil.com", "null", "http://localhost:3000", "http://127.0.0.1:1"] {
            for content in ["", json, "Content-Type: text/plain\r\n"] {
                let headers = format!("Host: {address}\r\nOrigin: {origin}\r\n{content}");
                let found = status(address, "POST", path, &headers);
                assert_eq!(found, 403, "{path} {headers}");
            }
        }
        for site in ["cross-site", "same-site"] {
            let headers = format!("Host: {address}\r\nSec-Fetch-Site: {site}\r\n{json}");
            assert_eq!(status(address, "POST", path, &headers), 403, "{path} {headers}");
        }
        for content in ["", "Content-Type: text/plain\r\n", "Content-Type: multipart/form-data\r\n"]
        {
            for page in
                ["Sec-Fetch-Site: same-origin".to_owned(), format!("Origin: http://{address}")]
            {
                let headers = format!("Host: {address}\r\n{page}\r\n{content}");
                assert_eq!(status(address, "POST", path, &headers), 415, "{path} {headers}");
            }
        }
    }
    // Nothing of this has had an effect.
    assert_eq!(status(address, "GET", "/v2/models/simple/ready", "Host: localhost\r\n"), 200);
    let unload =
        |headers: &str| status(address, "POST", "/v2/repository/models/digits/unload", headers);
    let load =
        |headers: &str| status(address, "POST", "/v2/repository/models/digits/load", headers);
    for page in ["https://app.example".to_owned(), format!("http://{address}")] {
        let headers = format!("Host: {address}\r\nOrigin: {page}\r\n{json}");
        assert_eq!((unload(&headers), load(&headers)), (200, 200), "{page}");
    }
    for plain in
        ["", "Content-Type: application/x-www-form-urlencoded\r\n", "Sec-Fetch-Mode: cors\r\n"]
    {
        let headers = format!("Host: {address}\r\n{plain}");
        assert_eq!((unload(&headers), load(&headers)), (200, 200), "{plain}");
    }
    assert!(fixture.stop());
}

#[test]
fn sagemaker_and_vertex_ai_change_nothing_for_foreign_pages() {
    let (fixture, _doors) = all_doors(&[]);
    let addresses = fixture.server.addresses();
    let (sagemaker, vertex) = (addresses.sagemaker.unwrap(), addresses.vertex_ai.unwrap());
    let page =
        "Host: localhost\r\nOrigin: http://localhost:3000\r\nContent-Type: application/json\r\n";
    for (method, path) in [("POST", "/models"), ("POST", "/models/m"), ("DELETE", "/models/m")] {
        assert_eq!(status(sagemaker, method, path, page), 403, "{method} {path}");
    }
    assert_eq!(status(sagemaker, "GET", "/models", page), 200);
    let redirect = |to: &str| {
        let headers = format!("{page}X-Vertex-Ai-Triton-Redirect: {to}\r\n");
        status(vertex, "POST", "/predict", &headers)
    };
    assert_eq!(redirect("v2/systemsharedmemory/unregister"), 403);
    assert_eq!(redirect("v2/repository/index"), 403);
    assert_eq!(redirect("v2/models/simple/config"), 200);
    let answer = exchange(vertex, &with("POST", "/predict", page, SIMPLE));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn a_refusal_comes_before_the_body_is_asked_for_or_read() {
    let fixture = start(&[]);
    let address = fixture.http();
    for bad in ["Host: evil.com\r\n", "Host: localhost\r\nOrigin: https://evil.com\r\n"] {
        for framing in ["Content-Length: 2000000000\r\n", "Transfer-Encoding: chunked\r\n"] {
            let mut stream = socket(address);
            let head = format!(
                "POST /v2/models/simple/infer HTTP/1.1\r\n{bad}Expect: 100-continue\r\n{framing}\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        }
        // A client that sends its body regardless reads the answer all the same.
        let mut stream = socket(address);
        let head =
            format!("POST /v2/models/simple/infer HTTP/1.1\r\n{bad}Content-Length: 300000\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[b' '; 300_000]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    // Without a body the connection goes on.
    let mut stream = socket(address);
    let bad = "GET /v2/health/live HTTP/1.1\r\nHost: evil.com\r\n\r\n";
    let good = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{bad}{good}").as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert!(
        answers.starts_with("HTTP/1.1 403 ") && answers.contains("HTTP/1.1 200 OK"),
        "{answers}"
    );
    assert!(fixture.stop());
}

#[test]
fn browsers_get_leave_for_pages_that_are_allowed() {
    let fixture = start(&["--allowed-origins=https://app.example"]);
    let address = fixture.http();
    let ask = |origin: &str, path: &str, method: &str, more: &str| {
        let headers = format!(
            "Host: {address}\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: {method}\r\n{more}"
        );
        let (status, head, _) = parts(&exchange(address, &with("OPTIONS", path, &headers, "")));
        (status, head)
    };
    let chat = "/v1/chat/completions";
    let wanted = "Access-Control-Request-Headers: authorization,content-type,x-stainless-os\r\n";
    let network = "Access-Control-Request-Private-Network: true\r\n";
    let (status, head) = ask("http://localhost:3000", chat, "POST", &format!("{wanted}{network}"));
    assert_eq!(status, 204, "{head}");
    for (name, value) in [
        ("access-control-allow-origin", "http://localhost:3000"),
        ("access-control-allow-methods", "POST, OPTIONS"),
        ("access-control-allow-headers", "authorization,content-type,x-stainless-os"),
        ("access-control-allow-private-network", "true"),
        ("access-control-max-age", "600"),
        ("vary", "Origin"),
    ] {
        assert_eq!(header(&head, name), Some(value), "{head}");
    }
    for name in ["content-length", "content-type", "access-control-allow-credentials"] {
        assert_eq!(header(&head, name), None, "{head}");
    }
    let (status, head) = ask("https://app.example", "/v2/repository/models/m/load", "POST", "");
    assert_eq!((status, header(&head, "access-control-allow-private-network")), (204, None));
    let long = format!("Access-Control-Request-Headers: {}\r\n", "x".repeat(5000));
    let (_, head) = ask("https://app.example", chat, "POST", &long);
    assert!(head.len() < 1000 && header(&head, "access-control-allow-headers").is_some(), "{head}");
    for (origin, path, method) in [
        ("https://evil.com", chat, "POST"),
        ("https://evil.com", "/v2", "GET"),
        ("null", chat, "POST"),
        ("http://localhost:3000", "/v2/repository/models/m/load", "POST"),
        ("http://localhost:3000", "/v2/logging", "POST"),
    ] {
        let (status, head) = ask(origin, path, method, network);
        assert_eq!(status, 403, "{origin} {path}: {head}");
        assert!(!head.to_ascii_lowercase().contains("access-control-"), "{head}");
    }
    assert_eq!(ask("http://localhost:3000", "/v2/logging", "GET", "").0, 204);
    assert!(fixture.stop());
}

#[test]
fn answers_errors_and_streams_name_the_origin_and_others_stay_as_they_are() {
    let fixture = start(&[]);
    let address = fixture.http();
    let numbers = [0.5; 16].map(|number: f64| number.to_string()).join(",");
    let stream = format!("{{\"INPUT0\":[{numbers}]}}");
    for (method, path, body, expected) in [
        ("GET", "/v2", "", 200),
        ("POST", "/v2/models/simple/infer", SIMPLE, 200),
        ("POST", "/v2/models/simple/infer", "{", 500),
        ("POST", "/v2/models/none/infer", SIMPLE, 404),
        ("GET", "/nothing", "", 404),
        ("POST", "/v2", "", 405),
        ("POST", "/v1/chat/completions", "{}", 400),
        ("POST", "/v2/models/identity_fp32/generate_stream", &stream, 200),
    ] {
        let plain = format!("Host: {address}\r\n");
        let (status, head, plain_body) =
            parts(&exchange(address, &with(method, path, &plain, body)));
        assert_eq!(status, expected, "{path}: {head} {plain_body}");
        let lower = head.to_ascii_lowercase();
        assert!(!lower.contains("access-control") && !lower.contains("vary"), "{head}");
        let page = format!("{plain}Origin: http://localhost:3000\r\n");
        let (status, head, page_body) = parts(&exchange(address, &with(method, path, &page, body)));
        assert_eq!((status, &page_body), (expected, &plain_body), "{path}");
        let origin = header(&head, "access-control-allow-origin");
        assert_eq!(origin, Some("http://localhost:3000"), "{path}: {head}");
        assert_eq!(header(&head, "vary"), Some("Origin"), "{path}: {head}");
        let exposed = header(&head, "access-control-expose-headers").unwrap();
        assert!(exposed.contains("Inference-Header-Content-Length"), "{head}");
    }
    assert!(fixture.stop());
}

#[test]
fn over_other_interfaces_programs_name_any_host_and_pages_do_not() {
    // No packet is sent.
    let outside = UdpSocket::bind("0.0.0.0:0").and_then(|probe| {
        probe.connect("192.0.2.1:9")?;
        probe.local_addr()
    });
    let Some(own) = outside.ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback()) else {
        return eprintln!("skipped: the machine has no other interface");
    };
    let fixture = start(&["--http-address=0.0.0.0", "--allowed-hosts=triton.lan"]);
    let port = fixture.http().port();
    let address = SocketAddr::new(own, port);
    let get = |address, headers: &str| status(address, "GET", "/v2/health/live", headers);
    let service = "Host: triton.default.svc.cluster.local:8000\r\n";
    assert_eq!(get(address, service), 200);
    assert_eq!(get(SocketAddr::from(([127, 0, 0, 1], port)), service), 403);
    for page in [
        "Origin: http://triton.default.svc.cluster.local:8000\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(get(address, &format!("{service}{page}")), 403, "{page}");
    }
    let named = "Host: triton.lan\r\nOrigin: http://triton.lan\r\n";
    assert_eq!(get(address, named), 200);
    assert!(fixture.stop());
}

#[test]
fn calls_over_grpc_that_a_page_sends_are_refused() {
    let fixture = start(&["--allowed-origins=https://app.example"]);
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        for (name, value, reads, infers, changes) in [
            ("origin", "https://evil.com", false, false, false),
            ("origin", "null", false, false, false),
            ("origin", "http://localhost:3000", true, true, false),
            ("origin", "https://app.example", true, true, true),
            ("sec-fetch-site", "cross-site", false, false, false),
            ("sec-fetch-mode", "cors", true, true, true),
        ] {
            let value = MetadataValue::from_static(value);
            let mut live = tonic::Request::new(ServerLiveRequest {});
            live.metadata_mut().insert(name, value.clone());
            let mut infer = tonic::Request::new(simple_request());
            infer.metadata_mut().insert(name, value.clone());
            let mut index = tonic::Request::new(RepositoryIndexRequest::default());
            index.metadata_mut().insert(name, value.clone());
            let request = RepositoryModelUnloadRequest {
                model_name: "nothing".to_owned(),
                ..RepositoryModelUnloadRequest::default()
            };
            let mut unload = tonic::Request::new(request);
            unload.metadata_mut().insert(name, value);
            let found = [
                client.server_live(live).await.map(|_| ()),
                client.model_infer(infer).await.map(|_| ()),
                client.repository_index(index).await.map(|_| ()),
                client.repository_model_unload(unload).await.map(|_| ()),
            ];
            for (result, passes) in found.into_iter().zip([reads, infers, changes, changes]) {
                let code = result.err().map(|status| status.code());
                let expected = (!passes).then_some(tonic::Code::PermissionDenied);
                assert_eq!(code, expected, "{name}");
            }
        }
    });
    assert!(fixture.stop());
}

/// The status of a call without a message whose host is `authority`.
async fn call_at(address: SocketAddr, authority: &str) -> String {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{authority}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::empty())
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.headers().get("grpc-status").map(|value| value.to_str().unwrap());
    status.unwrap_or("behind the body").to_owned()
}

#[test]
fn calls_over_grpc_name_a_host_of_the_server() {
    let fixture = start(&["--allowed-hosts=triton.lan"]);
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let denied = (tonic::Code::PermissionDenied as i32).to_string();
        for (authority, refused) in [
            ("localhost:8001", false),
            ("127.0.0.1", false),
            ("triton:8001", false),
            ("triton.lan", false),
            ("evil.com:8001", true),
            ("localhost.evil.com", true),
        ] {
            let status = call_at(address, authority).await;
            assert_eq!(status == denied, refused, "{authority}: {status}");
        }
    });
    assert!(fixture.stop());
}

#[test]
fn lists_that_cannot_be_used_are_told_at_the_start() {
    for (argument, text) in [
        ("--allowed-hosts=http://triton.lan", "--allowed-hosts expects NAME"),
        ("--allowed-hosts=a,b c", "got 'b c'"),
        ("--allowed-origins=app.example", "--allowed-origins expects SCHEME://HOST"),
        ("--allowed-origins=https://app.example/path", "got 'https://app.example/path'"),
    ] {
        let Ok(ParsedCommand::Serve(flags)) = ServerFlags::parse(&[argument.to_owned()], false)
        else {
            panic!("{argument}");
        };
        let error = check(&flags).unwrap_err();
        assert!(error.contains(text), "{argument}: {error}");
    }
}
