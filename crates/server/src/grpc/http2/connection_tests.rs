//! Connections with a client that writes frames by hand, or with hyper's client, and a front end that echoes.

use std::time::Duration;

use bytes::BufMut;
use http_body_util::BodyExt;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body as TonicBody;

use super::super::{CallKind, InboundBody};
use super::*;
use crate::client_pace::{CLIENT_STALL, MIN_PACE_BYTES};

const KEEPING: ConnectionSettings = ConnectionSettings {
    keepalive_time: Duration::from_secs(7200),
    keepalive_timeout: Duration::from_secs(20),
    without_calls: false,
    ping_interval: Duration::from_secs(300),
    ping_strikes: 2,
    stall: CLIENT_STALL,
};

/// Unary calls give their message back; `/wait` waits until it is told; `/echo` gives its body back as it comes.
#[derive(Clone)]
struct Echo {
    go: watch::Receiver<bool>,
    /// Counts calls that were begun, and those that are dropped or done.
    begun: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
}

struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    trailers
}

impl GrpcService for Echo {
    type Call = ();

    fn enter(&self, head: &mut Parts, _: Option<&Bytes>) -> ((), CallKind) {
        (
            (),
            match head.uri.path() {
                "/echo" => CallKind::Streamed,
                "/no" => CallKind::Refused(Status::unavailable("no")),
                _ => CallKind::Gathered,
            },
        )
    }

    fn look(_: &mut (), _: &HeaderMap) {}

    fn unary(&self, head: Parts, message: Bytes) -> AnswerFuture<WholeAnswer> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        let mut go = self.go.clone();
        let over = DropCounter(Arc::clone(&self.over));
        Box::pin(async move {
            let _over = over;
            if head.uri.path() == "/wait" {
                go.wait_for(|go| *go).await.unwrap();
            }
            let pieces =
                vec![message.slice(..message.len() / 2), message.slice(message.len() / 2..)];
            WholeAnswer { headers: HeaderMap::new(), pieces, trailers: Some(trailers()) }
        })
    }

    fn call(&self, request: http::Request<InboundBody>) -> AnswerFuture<http::Response<TonicBody>> {
        Box::pin(async move { http::Response::new(TonicBody::new(request.into_body())) })
    }
}

struct Fixture {
    client: DuplexStream,
    go: watch::Sender<bool>,
    begun: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
    remote: ConnectionCloser,
    server: tokio::task::JoinHandle<io::Result<()>>,
}

fn start(keeping: ConnectionSettings, pipe: usize) -> Fixture {
    let (client, server) = tokio::io::duplex(pipe);
    let (go, told) = watch::channel(false);
    let begun = Arc::default();
    let over = Arc::default();
    let door = Echo { go: told, begun: Arc::clone(&begun), over: Arc::clone(&over) };
    let (connection, remote) = Http2Connection::new(server, door, keeping);
    Fixture { client, go, begun, over, remote, server: tokio::spawn(connection.run()) }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    out.put_uint(payload.len() as u64, 3);
    out.put_slice(&[kind, flags]);
    out.put_u32(stream);
    out.put_slice(payload);
    out.to_vec()
}

const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A head whose path is not coded.
fn head(stream: u32, path: &str, flags: u8) -> Vec<u8> {
    let length = u8::try_from(path.len()).unwrap();
    let block = [&[0x83, 0x86, 0x04, length][..], path.as_bytes()].concat();
    frame(1, 4 | flags, stream, &block)
}

/// Reads frames until one fits.
async fn until(client: &mut DuplexStream, fits: impl Fn((u8, u8, u32, &[u8])) -> bool) -> Vec<u8> {
    loop {
        let mut start = [0; 9];
        client.read_exact(&mut start).await.expect("the connection ended before the frame");
        let [a, b, c, kind, flags, d, e, f, g] = start;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        client.read_exact(&mut payload).await.unwrap();
        if fits((kind, flags, u32::from_be_bytes([d, e, f, g]), &payload)) {
            return payload;
        }
    }
}

async fn until_gone(client: &mut DuplexStream) -> u8 {
    let payload = until(client, |(kind, ..)| kind == 7).await;
    payload[7]
}

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

async fn hyper_client(client: DuplexStream) -> Sender {
    let io = hyper_util::rt::TokioIo::new(client);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn exchange(sender: &mut Sender, path: &str, body: Vec<u8>) -> (Bytes, HeaderMap) {
    let request = http::Request::post(format!("http://localhost{path}"));
    let request = request.body(Full::new(body.into())).unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    let ends = body.trailers().cloned().unwrap_or(head.headers);
    (body.to_bytes(), ends)
}

#[tokio::test]
async fn calls_of_all_sizes_are_answered_beside_each_other() {
    for pipe in [100, 5000, 1 << 20] {
        let fixture = start(KEEPING, pipe);
        let sender = hyper_client(fixture.client).await;
        let mut calls = Vec::new();
        for size in [0, 1, 100, 16_384, 70_000, 300_000, 5_000_000] {
            if pipe == 100 && size > 100_000 {
                continue;
            }
            for path in ["/unary", "/echo"] {
                let mut sender = sender.clone();
                let message: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0]).collect();
                calls.push(tokio::spawn(async move {
                    let (found, ends) = exchange(&mut sender, path, framed(&message)).await;
                    if path == "/unary" {
                        assert_eq!(found, message, "{path} {size}");
                        assert_eq!(ends["grpc-status"], "0");
                    } else {
                        assert_eq!(found, framed(&message), "{path} {size}");
                    }
                }));
            }
        }
        for call in calls {
            call.await.unwrap();
        }
    }
}

#[tokio::test]
async fn more_than_all_windows_passes_through_one_connection() {
    let fixture = start(KEEPING, 1 << 20);
    let mut sender = hyper_client(fixture.client).await;
    for path in ["/unary", "/echo", "/unary", "/echo"] {
        let message = vec![7; 20_000_000];
        let (found, _) = exchange(&mut sender, path, framed(&message)).await;
        assert!(found.ends_with(&message));
    }
}

#[tokio::test]
async fn refused_calls_have_a_status_and_the_connection_goes_on() {
    let fixture = start(KEEPING, 1 << 20);
    let mut sender = hyper_client(fixture.client).await;
    let (_, ends) = exchange(&mut sender, "/no", framed(b"abc")).await;
    assert_eq!(ends["grpc-status"], "14");
    let request = http::Request::post("http://localhost/unary").header("long", "x".repeat(17_000));
    let refused = sender.send_request(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "8");
    assert_eq!(exchange(&mut sender, "/unary", framed(b"abc")).await.0, "abc");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled() {
    let mut fixture = start(KEEPING, 1 << 20);
    let body = frame(0, 1, 1, &framed(b"abc"));
    let alone = [OPENING, &head(1, "/wait", 0), &body].concat();
    fixture.client.write_all(&alone).await.unwrap();
    until(&mut fixture.client, |(kind, flags, ..)| (kind, flags) == (4, 1)).await;
    let second = [head(3, "/wait", 0), frame(0, 1, 3, &framed(b"abc"))].concat();
    fixture.client.write_all(&second).await.unwrap();
    let both = [frame(3, 0, 1, &[0, 0, 0, 8]), frame(3, 0, 3, &[0, 0, 0, 8])].concat();
    fixture.client.write_all(&both).await.unwrap();
    fixture.client.write_all(&frame(6, 0, 0, &[5; 8])).await.unwrap();
    until(&mut fixture.client, |(kind, _, _, payload)| kind == 6 && payload == [5; 8]).await;
    while fixture.over.load(Ordering::Acquire) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.begun.load(Ordering::Acquire), 2);
}

#[tokio::test]
async fn calls_wait_without_holding_up_others() {
    let fixture = start(KEEPING, 1 << 20);
    let mut sender = hyper_client(fixture.client).await;
    let mut first = sender.clone();
    let waiting = tokio::spawn(async move { exchange(&mut first, "/wait", framed(b"w")).await.0 });
    while fixture.begun.load(Ordering::Acquire) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(exchange(&mut sender, "/unary", framed(b"abc")).await.0, "abc");
    fixture.remote.drain();
    fixture.go.send(true).unwrap();
    assert_eq!(waiting.await.unwrap(), "w");
    // The client closes the connection when it hears of the end, which may come first.
    fixture.server.await.unwrap().ok();
}

#[tokio::test]
async fn answers_respect_the_windows_of_the_client() {
    let mut fixture = start(KEEPING, 1 << 20);
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]);
    let body = frame(0, 1, 1, &framed(&[9; 25]));
    let all = [OPENING, &settings, &head(1, "/unary", 0), &body].concat();
    fixture.client.write_all(&all).await.unwrap();
    let data = |(kind, _, _, _): (u8, u8, u32, &[u8])| kind == 0;
    assert_eq!(until(&mut fixture.client, data).await.len(), 10);
    fixture.client.write_all(&frame(8, 0, 1, &[0, 0, 0, 1])).await.unwrap();
    assert_eq!(until(&mut fixture.client, data).await.len(), 1);
    fixture.client.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 200])).await.unwrap();
    assert_eq!(until(&mut fixture.client, data).await.len(), 14);
    until(&mut fixture.client, |(kind, flags, ..)| kind == 1 && flags & 1 == 1).await;
}

#[tokio::test]
async fn violations_end_the_connection_with_a_reason() {
    let window = |stream, more: u32| frame(8, 0, stream, &more.to_be_bytes());
    let cases: Vec<(Vec<u8>, u8)> = vec![
        (frame(0, 0, 1, b"x"), 1),
        (window(1, 1), 1),
        (window(0, 0), 1),
        (window(0, 0x7fff_ffff), 3),
        (frame(3, 0, 1, &[0; 4]), 1),
        (head(2, "/unary", 0), 1),
        (frame(1, 5, 1, &[0xff]), 9),
        (frame(6, 0, 0, &[0; 8]).repeat(4), 11),
        (
            (0..1200)
                .flat_map(|n| {
                    [head(n * 2 + 1, "/unary", 0), frame(3, 0, n * 2 + 1, &[0; 4])].concat()
                })
                .collect(),
            11,
        ),
    ];
    for (bytes, reason) in cases {
        let mut fixture = start(KEEPING, 1 << 20);
        fixture.client.write_all(&[OPENING, &bytes].concat()).await.unwrap();
        assert_eq!(until_gone(&mut fixture.client).await, reason, "{bytes:?}");
        fixture.server.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_ignores_the_windows_is_stopped() {
    let mut fixture = start(KEEPING, 1 << 20);
    fixture.client.write_all(&[OPENING, &head(1, "/echo", 0)].concat()).await.unwrap();
    // Nobody takes the answer, so that nobody reads the request to its end.
    let piece = frame(0, 0, 1, &vec![0; 1 << 17]);
    let (mut reading, mut writing) = tokio::io::split(fixture.client);
    let flood = tokio::spawn(async move { while writing.write_all(&piece).await.is_ok() {} });
    let mut bytes = Vec::new();
    reading.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("more than a stream's window"), "{}", bytes.len());
    flood.await.unwrap();
    fixture.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_of_one_stream_end_alone_when_it_is_wrong() {
    let mut fixture = start(KEEPING, 1 << 20);
    let body = frame(0, 1, 1, &framed(b"a"));
    let twice = [OPENING, &head(1, "/wait", 0), &body, &body].concat();
    fixture.client.write_all(&twice).await.unwrap();
    let reset = |id| move |(kind, _, stream, _): (u8, u8, u32, &[u8])| kind == 3 && stream == id;
    assert_eq!(until(&mut fixture.client, reset(1)).await[3], 5);
    let connection = frame(1, 5, 3, &[0x83, 0x86, 0x84, 0x00, 0x01, b'A', 0x00]);
    fixture.client.write_all(&connection).await.unwrap();
    assert_eq!(until(&mut fixture.client, reset(3)).await[3], 1);
    let good = [head(5, "/unary", 0), frame(0, 1, 5, &framed(b"good"))].concat();
    fixture.client.write_all(&good).await.unwrap();
    assert_eq!(until(&mut fixture.client, |(kind, ..)| kind == 0).await, b"good");
}

#[tokio::test]
async fn an_end_is_told_in_two_steps_and_waits_for_calls() {
    let mut fixture = start(KEEPING, 1 << 20);
    let call = [OPENING, &head(1, "/wait", 0), &frame(0, 1, 1, &framed(b"abc"))].concat();
    fixture.client.write_all(&call).await.unwrap();
    while fixture.begun.load(Ordering::Acquire) == 0 {
        tokio::task::yield_now().await;
    }
    fixture.remote.drain();
    let ping = until(&mut fixture.client, |(kind, flags, ..)| (kind, flags) == (6, 0)).await;
    fixture.client.write_all(&frame(6, 1, 0, &ping)).await.unwrap();
    let last = until(&mut fixture.client, |(kind, ..)| kind == 7).await;
    assert_eq!(last[..8], [0, 0, 0, 1, 0, 0, 0, 0]);
    fixture.go.send(true).unwrap();
    assert_eq!(until(&mut fixture.client, |(kind, ..)| kind == 0).await, b"abc");
    fixture.server.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_opens_is_closed_and_one_that_rests_is_not() {
    let mut fixture = start(KEEPING, 1 << 20);
    fixture.client.write_all(&OPENING[..10]).await.unwrap();
    let begun = Instant::now();
    let error = fixture.server.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), 20);
    let mut fixture = start(KEEPING, 1 << 20);
    fixture.client.write_all(OPENING).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20 * 3600)).await;
    let call = [head(1, "/unary", 0), frame(0, 1, 1, &framed(b"late"))].concat();
    fixture.client.write_all(&call).await.unwrap();
    assert_eq!(until(&mut fixture.client, |(kind, ..)| kind == 0).await, b"late");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_trickles_is_ended_and_one_that_comes_slowly_is_not() {
    let mut fixture = start(KEEPING, 1 << 20);
    let begin =
        [OPENING, &head(1, "/unary", 0), &frame(0, 0, 1, &framed(&[0; 100])[..50])].concat();
    fixture.client.write_all(&begin).await.unwrap();
    let trickle = |mut client: tokio::io::WriteHalf<DuplexStream>| async move {
        loop {
            tokio::time::sleep(Duration::from_secs(10)).await;
            if client.write_all(&frame(0, 0, 1, b"x")).await.is_err() {
                return;
            }
        }
    };
    let (mut reading, writing) = tokio::io::split(fixture.client);
    tokio::spawn(trickle(writing));
    let mut start_of_frame = [0; 9];
    let begun = Instant::now();
    loop {
        reading.read_exact(&mut start_of_frame).await.unwrap();
        let length =
            u32::from_be_bytes([0, start_of_frame[0], start_of_frame[1], start_of_frame[2]]);
        let mut payload = vec![0; length as usize];
        reading.read_exact(&mut payload).await.unwrap();
        if start_of_frame[3] == 1 {
            assert!(String::from_utf8_lossy(&payload).contains("did%20not%20go%20on"));
            break;
        }
    }
    assert!((60..=130).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());

    let mut fixture = start(KEEPING, 1 << 20);
    let message = framed(&vec![7; 200_000]);
    fixture.client.write_all(&[OPENING, &head(1, "/unary", 0)].concat()).await.unwrap();
    for piece in message.chunks(20_000) {
        tokio::time::sleep(Duration::from_secs(50)).await;
        fixture.client.write_all(&frame(0, 0, 1, piece)).await.unwrap();
    }
    fixture.client.write_all(&frame(0, 1, 1, b"")).await.unwrap();
    assert_eq!(until(&mut fixture.client, |(kind, ..)| kind == 0).await[0], 7);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_left() {
    let mut fixture = start(KEEPING, 1000);
    let window = frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let call =
        [OPENING, &window, &head(1, "/unary", 0), &frame(0, 0, 1, &framed(&[1; 4000])[..100])]
            .concat();
    fixture.client.write_all(&call).await.unwrap();
    let rest = framed(&[1; 4000]);
    fixture.client.write_all(&frame(0, 1, 1, &rest[100..])).await.unwrap();
    let error = fixture.server.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the client does not read");
}

proptest::proptest! {
    #[test]
    fn any_frames_end_without_panic(
        frames in proptest::collection::vec(
            (0_u8..11, proptest::num::u8::ANY, 0_u32..6, proptest::collection::vec(0_u8..0xff, 0..40)), 0..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut fixture = start(KEEPING, 1 << 20);
            let mut all = OPENING.to_vec();
            for (kind, flags, stream, payload) in frames {
                if kind == 1 {
                    all.extend_from_slice(&head(stream, "/echo", flags & 1));
                } else {
                    all.extend_from_slice(&frame(kind, flags, stream, &payload));
                }
            }
            fixture.client.write_all(&all).await.unwrap();
            fixture.client.shutdown().await.unwrap();
            let mut out = Vec::new();
            fixture.client.read_to_end(&mut out).await.unwrap();
            fixture.server.await.unwrap().ok();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_hear_of_the_end_is_left() {
    let mut fixture = start(KEEPING, 1 << 20);
    fixture.client.write_all(OPENING).await.unwrap();
    fixture.remote.drain();
    let error = fixture.server.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the client does not hear of the end");
}

/// Sends settings by which streams begin with windows of so many bytes, and a call that gets its message back.
async fn ask_with_window(client: &mut DuplexStream, window: u8, message: &[u8]) {
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, window]);
    let body = frame(0, 1, 1, &framed(message));
    client.write_all(&[OPENING, &settings, &head(1, "/unary", 0), &body].concat()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_its_client_does_not_take_is_given_up() {
    for (window, more) in [(0, None), (9, None), (0, Some(100))] {
        let mut fixture = start(KEEPING, 1 << 20);
        let client = &mut fixture.client;
        ask_with_window(client, window, &[7; 50_000]).await;
        let begun = Instant::now();
        let reset = loop {
            // A few bytes now and then do not help.
            if let Some(more) = more {
                client.write_all(&frame(8, 0, 1, &[0, 0, 0, more])).await.unwrap();
            }
            let reset = until(client, |(kind, _, stream, _)| (kind, stream) == (3, 1));
            if let Ok(payload) = tokio::time::timeout(Duration::from_secs(10), reset).await {
                break payload;
            }
        };
        // Enhance your calm.
        assert_eq!(reset, [0, 0, 0, 11]);
        let waited = begun.elapsed();
        assert!(waited >= CLIENT_STALL && waited <= CLIENT_STALL * 3, "{waited:?}");
        // The connection goes on.
        client.write_all(&frame(6, 0, 0, &[5; 8])).await.unwrap();
        until(client, |(kind, _, _, payload)| kind == 6 && payload == [5; 8]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_its_client_takes_in_time_is_sent_to_its_end() {
    let mut fixture = start(KEEPING, 1 << 20);
    let client = &mut fixture.client;
    ask_with_window(client, 0, &vec![7; MIN_PACE_BYTES * 6]).await;
    let more = u32::try_from(MIN_PACE_BYTES).unwrap().to_be_bytes();
    for _ in 0..7 {
        tokio::time::sleep(CLIENT_STALL * 5 / 6).await;
        // The connection has a window of its own.
        let windows = [frame(8, 0, 1, &more), frame(8, 0, 0, &more)].concat();
        client.write_all(&windows).await.unwrap();
    }
    let end = until(client, |(kind, flags, ..)| kind == 3 || (kind, flags & 1) == (1, 1)).await;
    assert!(end.len() > 4, "the call was reset");
}
