use std::time::Instant;

use super::*;

#[tokio::test]
async fn pieces_go_out_as_they_come_and_a_peer_that_leaves_is_noticed() {
    let (mut client, server) = tokio::io::duplex(1000);
    let mut connection = HttpConnection::new(server);
    let (sender, mut pieces) = tokio::sync::mpsc::channel(1);
    let sending = tokio::spawn(async move {
        let (_keep, empty) = tokio::sync::mpsc::channel(1);
        let head = HttpResponse::streamed(super::super::ContentType::EventStream, empty);
        connection.send(&head, false, false).await.unwrap();
        connection.send_pieces(&mut pieces, false).await.unwrap();
        let (endless, mut pieces) = tokio::sync::mpsc::channel(1);
        let gone = connection.send_pieces(&mut pieces, false).await;
        drop(pieces);
        (gone.is_err(), endless.is_closed())
    });
    let mut text = [0; 100];
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                 Transfer-Encoding: chunked\r\n\r\n";
    client.read_exact(text.get_mut(..head.len()).unwrap()).await.unwrap();
    assert!(text.starts_with(head));
    for piece in ["data: 1\n\n", "", "0123456789abcdef"] {
        sender.send(Bytes::from_static(piece.as_bytes())).await.unwrap();
        let sent = if piece.is_empty() {
            String::new()
        } else {
            format!("{:x}\r\n{piece}\r\n", piece.len())
        };
        client.read_exact(text.get_mut(..sent.len()).unwrap()).await.unwrap();
        assert!(text.starts_with(sent.as_bytes()));
    }
    drop(sender);
    client.read_exact(text.get_mut(..5).unwrap()).await.unwrap();
    assert!(text.starts_with(b"0\r\n\r\n"));
    drop(client);
    assert_eq!(sending.await.unwrap(), (true, true));
}

/// Returns the requests that a connection reads until its peer closes, and whether the end was clean.
async fn conversation(bytes: &[u8], cuts: &[usize]) -> (Vec<(String, Bytes)>, bool) {
    let (mut client, server) = tokio::io::duplex(100);
    let bytes = bytes.to_vec();
    let cuts = cuts.to_vec();
    let sender = tokio::spawn(async move {
        let mut rest = bytes.as_slice();
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            // The reader may have given up.
            client.write_all(now).await.ok();
            tokio::task::yield_now().await;
            rest = later;
        }
        client.write_all(rest).await.ok();
    });
    let mut connection = HttpConnection::new(server);
    let mut requests = Vec::new();
    let clean = loop {
        let read = async {
            let Some(head) = connection.head().await? else { return Ok(None) };
            let body = connection.body(&head).await?;
            Ok::<_, ReadError>(Some((format!("{} {}", head.method_name(), head.path()), body)))
        };
        match read.await {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    drop(connection);
    sender.await.unwrap();
    (requests, clean)
}

proptest::proptest! {
    #[test]
    fn requests_are_the_same_however_their_bytes_are_cut(
        kinds in proptest::collection::vec((0..4_u8, 0..300_usize, 1..50_usize), 1..6),
        cuts in proptest::collection::vec(0..60_usize, 0..20),
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (number, (kind, size, chunk)) in kinds.into_iter().enumerate() {
            let body: Vec<u8> = (0..size).map(|at| b"\r\n0:a"[(at * 7 + number) % 5]).collect();
            let path = format!("/v2/{number}");
            match kind {
                0 => bytes.extend_from_slice(format!("GET {path}?x HTTP/1.1\r\n\r\n").as_bytes()),
                1 => {
                    let head = format!("POST {path} HTTP/1.1\r\nA: b\r\ncontent-LENGTH:{size}\r\n\r\n");
                    bytes.extend_from_slice(head.as_bytes());
                    bytes.extend_from_slice(&body);
                }
                _ => {
                    bytes.extend_from_slice(format!("POST {path} HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n").as_bytes());
                    for part in body.chunks(chunk) {
                        bytes.extend_from_slice(format!("{:X};e=1\r\n", part.len()).as_bytes());
                        bytes.extend_from_slice(part);
                        bytes.extend_from_slice(b"\r\n");
                    }
                    bytes.extend_from_slice(if kind == 2 { b"0\r\n\r\n" } else { b"0\r\nT: x\r\n\r\n" });
                }
            }
            let (method, body) = if kind == 0 { ("GET", Vec::new()) } else { ("POST", body) };
            expected.push((format!("{method} {path}"), Bytes::from(body)));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        proptest::prop_assert_eq!(runtime.block_on(conversation(&bytes, &cuts)), (expected, true));
    }

    #[test]
    fn any_bytes_end_without_panic(
        start in proptest::sample::select(vec![
            "", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n", "GET / HTTP/1.0\r\nHost",
        ]),
        bytes in proptest::collection::vec(proptest::sample::select(b"\r\n 0aF:;/\0\xff".to_vec()), 0..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let whole = [start.as_bytes(), &bytes].concat();
        let (requests, _) = runtime.block_on(conversation(&whole, &[start.len()]));
        proptest::prop_assert!(requests.len() <= whole.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_drop_by_drop_is_given_up() {
    for start in ["", "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"] {
        let (mut client, server) = tokio::io::duplex(1000);
        let sender = tokio::spawn(async move {
            client.write_all(start.as_bytes()).await.unwrap();
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        });
        let begun = Instant::now();
        let mut connection = HttpConnection::new(server);
        let read = async {
            let head = connection.head().await?.unwrap();
            connection.body(&head).await
        };
        assert!(matches!(read.await, Err(ReadError::Closed)));
        assert!(begun.elapsed() <= CLIENT_STALL + Duration::from_secs(6), "{:?}", begun.elapsed());
        drop(connection);
        sender.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_rests_as_long_as_it_likes_and_holds_no_memory_then() {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let mut connection = HttpConnection::new(server);
    let body = vec![1; 500_000];
    for chunked in [false, true] {
        let framing = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 500000" };
        client.write_all(format!("POST / HTTP/1.1\r\n{framing}\r\n\r\n").as_bytes()).await.unwrap();
        if chunked {
            client.write_all(b"7a120\r\n").await.unwrap();
        }
        client.write_all(&body).await.unwrap();
        if chunked {
            client.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        let head = connection.head().await.unwrap().unwrap();
        assert_eq!(connection.body(&head).await.unwrap(), body);
    }
    tokio::select! {
        _ = connection.head() => panic!("there is no third request"),
        () = tokio::time::sleep(Duration::from_secs(100_000)) => {}
    }
    assert_eq!((connection.ahead.capacity(), connection.out.capacity()), (0, 0));
}

#[tokio::test]
async fn the_first_tensor_of_a_large_body_is_aligned() {
    let content: Vec<u8> = (0..40_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    for json in [1, 37, 64, 165] {
        let (client, server) = tokio::io::duplex(1000);
        let body = content.clone();
        let sent = tokio::spawn(async move {
            let mut client = client;
            let length = body.len();
            let head = format!(
                "POST / HTTP/1.1\r\nContent-Length: {length}\r\nInference-Header-Content-Length: {json}\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&body).await.unwrap();
            client.write_all(b"next").await.unwrap();
        });
        let mut connection = HttpConnection::new(server);
        let head = connection.head().await.unwrap().unwrap();
        let body = connection.body(&head).await.unwrap();
        assert_eq!(body, content);
        assert_eq!(body.slice(json..).as_ptr() as usize % TENSOR_ALIGNMENT, 0);
        connection.fill(4).await.unwrap();
        assert_eq!(connection.ahead, &b"next"[..]);
        sent.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_stay_unread_while_others_take_the_memory_and_are_refused_in_the_end() {
    let budget = Arc::new(BodyBudget::new(1 << 20));
    let begin = || {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let connection = HttpConnection::new(server).with_budget(Arc::clone(&budget));
        (client, connection)
    };
    let (mut client, mut connection) = begin();
    let head = "POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    // All of the first body but its last byte takes the one step that there is.
    let first = tokio::spawn(async move {
        let head = connection.head().await.unwrap().unwrap();
        connection.body(&head).await.map(|body| body.len())
    });
    client.write_all(&vec![1; 899_999]).await.unwrap();
    let (mut other, mut waiting) = begin();
    let chunked = "POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n";
    other.write_all(chunked.as_bytes()).await.unwrap();
    let sending = tokio::spawn(async move { other.write_all(&vec![2; 200_000]).await.is_ok() });
    let head = waiting.head().await.unwrap().unwrap();
    let Err(ReadError::Refused(response)) = waiting.body(&head).await else { panic!("read") };
    assert_eq!(response.status(), 503);
    assert!(response.headers.contains(&("Retry-After", "1".to_owned())));
    // Short bodies need nothing of it.
    let (mut short, mut connection) = begin();
    let small =
        format!("POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{}", "x".repeat(9000));
    short.write_all(small.as_bytes()).await.unwrap();
    let head = connection.head().await.unwrap().unwrap();
    assert_eq!(connection.body(&head).await.unwrap().len(), 9000);
    client.write_all(&[1]).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap(), 900_000);
    drop(waiting);
    assert!(!sending.await.unwrap());
}
