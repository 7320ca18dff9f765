//! A client over sockets, for requests and answers of JSON.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A connection whose answers do not take long.
pub(crate) fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends bytes and reads until the server closes.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = socket(address);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset counts as closed: the server need not read what it refuses.
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request that closes its connection.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The status, the head and the body of an answer.
pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> (u16, String, String) {
    parts(&exchange(address, &request("POST", path, &body.to_string())))
}

/// The body of an answer to GET, which is JSON.
pub(crate) fn get(address: SocketAddr, path: &str) -> Value {
    json_of(&parts(&exchange(address, &request("GET", path, ""))).2)
}

/// Status, head and body.
pub(crate) fn parts(answer: &str) -> (u16, String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if head.contains("chunked") { unchunked(body) } else { body.to_owned() };
    (status, head.to_owned(), body)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// A text of JSON.
pub(crate) fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// The events of a stream, without the last one.
pub(crate) fn events(body: &str) -> Vec<Value> {
    let rest = body.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("{body}"));
    rest.split_terminator("\n\n")
        .map(|event| json_of(event.strip_prefix("data: ").unwrap()))
        .collect()
}
