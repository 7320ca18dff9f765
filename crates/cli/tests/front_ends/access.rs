//! Who may ask for what: restricted groups and forwarded headers.

use super::check;
use galatea_cli::flags::{ParsedCommand, ServerFlags};
use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::{RepositoryIndexRequest, ServerLiveRequest};
use tonic::metadata::MetadataValue;

use super::{SIMPLE, exchange, simple_request, start};

fn with_header(method: &str, path: &str, header: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn restricted_endpoints_ask_for_their_header_before_anything_else() {
    let fixture = start(&[
        "--http-restricted-api=model-repository,health:admin-key=secret",
        "--http-restricted-api=statistics:stat-key=s2",
    ]);
    let text = |key: &str| {
        format!("\r\n\r\n{{\"error\":\"This API is restricted, expecting header '{key}'\"}}")
    };
    for (method, path, header, status, end) in [
        ("POST", "/v2/repository/index", "", 403, text("admin-key")),
        ("POST", "/v2/repository/index", "admin-key: no\r\n", 403, text("admin-key")),
        ("GET", "/v2/repository/index", "", 403, text("admin-key")),
        ("POST", "/v2/repository/index", "Admin-KEY: secret\r\n", 200, String::new()),
        ("GET", "/v2/repository/index", "admin-key: secret\r\n", 405, String::new()),
        ("GET", "/v2/models/simple/ready", "", 403, text("admin-key")),
        ("GET", "/v2/models/simple/ready", "admin-key: secret\r\n", 200, String::new()),
        ("GET", "/v2/models/stats", "admin-key: secret\r\n", 403, text("stat-key")),
        ("GET", "/v2/models/stats", "stat-key: s2\r\n", 200, String::new()),
        ("GET", "/v2", "", 200, String::new()),
    ] {
        let answer = exchange(fixture.http(), &with_header(method, path, header, ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {header}: {answer}");
        assert!(answer.ends_with(&end), "{path} {header}: {answer}");
    }
    assert!(fixture.stop());
}

#[test]
fn restricted_rpcs_ask_for_their_metadata() {
    let fixture = start(&["--grpc-restricted-protocol=model-repository,inference:key=v"]);
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        client.server_live(ServerLiveRequest {}).await.unwrap();
        let status = client.model_infer(simple_request()).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        let text = "This protocol is restricted, expecting header 'triton-grpc-protocol-key'";
        assert_eq!(status.message(), text);
        for (name, value, opens) in [
            ("key", "v", false),
            ("triton-grpc-protocol-key", "w", false),
            ("triton-grpc-protocol-key", "v", true),
        ] {
            let mut call = tonic::Request::new(RepositoryIndexRequest::default());
            call.metadata_mut().insert(name, MetadataValue::from_static(value));
            assert_eq!(client.repository_index(call).await.is_ok(), opens, "{name}: {value}");
        }
    });
    assert!(fixture.stop());
}

#[test]
fn a_header_must_not_pose_as_a_reserved_parameter() {
    let fixture = start(&["--http-header-forward-pattern=priority|my_.*"]);
    let infer = |header: &str| {
        let path = "/v2/models/simple/infer";
        exchange(fixture.http(), &with_header("POST", path, header, SIMPLE))
    };
    assert!(infer("X-My_Header: 1\r\n").starts_with("HTTP/1.1 200"));
    let refused = infer("priority: 1\r\n");
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let text =
        "{\"error\":\"Header 'priority' is reserved for Triton usage and cannot be forwarded.\"}";
    assert!(refused.ends_with(text), "{refused}");
    assert!(fixture.stop());
}

#[test]
fn rules_that_cannot_be_used_are_told_at_the_start() {
    for (argument, text) in [
        ("--http-restricted-api=healthy:k=v", "unknown restricted api 'healthy'"),
        ("--grpc-restricted-protocol=health", "--grpc-restricted-protocol option format is"),
        ("--grpc-header-forward-pattern=(", "--grpc-header-forward-pattern expects"),
        ("--grpc-use-ssl", "--grpc-server-cert must be given with --grpc-use-ssl"),
        ("--metrics-use-ssl", "--http-server-cert must be given with --metrics-use-ssl"),
    ] {
        let Ok(ParsedCommand::Serve(flags)) = ServerFlags::parse(&[argument.to_owned()], false)
        else {
            panic!("{argument}");
        };
        let error = check(&flags).unwrap_err();
        assert!(error.contains(text), "{argument}: {error}");
    }
}
