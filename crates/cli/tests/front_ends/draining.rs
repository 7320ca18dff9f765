//! What a stop does to connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{SIMPLE, socket, start};

/// A request whose body does not come.
fn unfinished(stream: &mut TcpStream) {
    let head = format!(
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        SIMPLE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
}

#[test]
fn connections_that_rest_do_not_hold_up_a_stop() {
    let fixture = start(&[]);
    let mut resting = socket(fixture.http());
    resting.write_all(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    resting.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    // Nor does one with half a head.
    let mut begun = socket(fixture.http());
    begun.write_all(b"GET /v2/health/li").unwrap();
    let start = Instant::now();
    assert!(fixture.stop());
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[test]
fn an_open_connection_has_one_more_answer_while_the_server_drains() {
    let fixture = start(&[]);
    let address = fixture.http();
    let (mut slow, mut open) = (socket(address), socket(address));
    open.write_all(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut first = [0; 15];
    open.read_exact(&mut first).unwrap();
    unfinished(&mut slow);
    while fixture.server.app().open_requests() == 0 {
        std::thread::yield_now();
    }
    let app = Arc::clone(fixture.server.app());
    let late = std::thread::spawn(move || {
        while !app.is_stopping() {
            std::thread::yield_now();
        }
        open.write_all(b"GET /v2/models/simple/ready HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut rest = String::new();
        open.read_to_string(&mut rest).unwrap();
        slow.write_all(SIMPLE.as_bytes()).unwrap();
        let mut answer = String::new();
        slow.read_to_string(&mut answer).unwrap();
        (rest, answer)
    });
    assert!(fixture.stop());
    let (rest, answer) = late.join().unwrap();
    assert!(rest.contains("HTTP/1.1 200 OK") && rest.contains("Connection: close"), "{rest}");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_request_that_never_ends_is_given_up_with_the_exit_timeout() {
    let fixture = start(&[]);
    let mut slow = socket(fixture.http());
    unfinished(&mut slow);
    while fixture.server.app().open_requests() == 0 {
        std::thread::yield_now();
    }
    let timeout = Duration::from_millis(200);
    let report = fixture.runtime.block_on(fixture.server.stop(timeout));
    assert_eq!((report.complete, report.unanswered), (false, 1));
    assert!(report.took >= timeout);
}
