//! Frames of heads and data, and what a request is.

use super::WireRequirement;
use super::frames::*;

/// Sends a head of these fields that ends its stream, which is malformed.
fn malformed(client: &mut Http2Client, list: &[(&str, &str)]) {
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(list)));
    client.is_reset(1, &[PROTOCOL]);
}

/// The fields of a call but for one.
fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    CALL.into_iter().filter(|(known, _)| *known != name).collect()
}

/// The fields of a call with another value of one.
fn with<'a>(name: &str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    CALL.into_iter().map(|(known, old)| (known, if known == name { value } else { old })).collect()
}

/// Sends a call with these trailers.
fn trailing(client: &mut Http2Client, flags: u8, list: &[(&str, &str)]) {
    client.send(&[head(1, 0), frame(DATA, 0, 1, MESSAGE)].concat());
    client.send(&frame(HEADERS, END_HEADERS | flags, 1, &fields(list)));
}

/// Sends a call whose head says a length, with these pieces of its body.
fn of_length(client: &mut Http2Client, length: &str, pieces: &[&[u8]]) {
    let end = if pieces.is_empty() { END_STREAM } else { 0 };
    client.send(&frame(HEADERS, END_HEADERS | end, 1, &block(&[("content-length", length)])));
    for (at, piece) in pieces.iter().enumerate() {
        let end = if at + 1 == pieces.len() { END_STREAM } else { 0 };
        client.send(&frame(DATA, end, 1, piece));
    }
}

macro_rules! malformed_rows {
    ($(($section:literal, $text:literal, $fields:expr)),* $(,)?) => {
        &[$(WireRequirement {
            section: $section,
            text: $text,
            check: |client| malformed(client, &$fields),
        }),*]
    };
}

/// Heads that are no requests.
pub(crate) const MALFORMED: &[WireRequirement] = malformed_rows![
    ("8.2", "a name with a capital is malformed", [&CALL[..], &[("X-Test", "a")]].concat()),
    (
        "8.2.1",
        "a name with a character that no name has is malformed",
        [&CALL[..], &[("a b", "c")]].concat()
    ),
    ("8.2.1", "an empty name is malformed", [&CALL[..], &[("", "c")]].concat()),
    ("8.2.1", "a value with CR, LF or NUL is malformed", [&CALL[..], &[("a", "b\r\nc")]].concat()),
    ("8.2.1", "a value with NUL is malformed", [&CALL[..], &[("a", "b\0c")]].concat()),
    ("8.2.1", "a value with space before it is malformed", [&CALL[..], &[("a", " b")]].concat()),
    ("8.2.1", "a value with a tab behind it is malformed", [&CALL[..], &[("a", "b\t")]].concat()),
    ("8.2.2", "`connection` is malformed", [&CALL[..], &[("connection", "keep-alive")]].concat()),
    (
        "8.2.2",
        "`proxy-connection` is malformed",
        [&CALL[..], &[("proxy-connection", "keep-alive")]].concat()
    ),
    ("8.2.2", "`keep-alive` is malformed", [&CALL[..], &[("keep-alive", "timeout=5")]].concat()),
    (
        "8.2.2",
        "`transfer-encoding` is malformed",
        [&CALL[..], &[("transfer-encoding", "chunked")]].concat()
    ),
    ("8.2.2", "`upgrade` is malformed", [&CALL[..], &[("upgrade", "h2c")]].concat()),
    ("8.2.2", "`te` other than `trailers` is malformed", with("te", "trailers, deflate;q=0.5")),
    (
        "8.3",
        "a pseudo-header that is not known is malformed",
        [&[(":test", "a")][..], &CALL].concat()
    ),
    (
        "8.3",
        "a pseudo-header of responses is malformed",
        [&CALL[..], &[(":status", "200")]].concat()
    ),
    (
        "8.3",
        "a pseudo-header behind a header is malformed",
        [&without(":path")[..], &[(":path", LIVE)]].concat()
    ),
    ("8.3.1", "a request without `:method` is malformed", without(":method")),
    ("8.3.1", "a request without `:scheme` is malformed", without(":scheme")),
    ("8.3.1", "a request without `:path` is malformed", without(":path")),
    ("8.3.1", "an empty `:path` is malformed", with(":path", "")),
    (
        "8.3.1",
        "a `:path` that does not begin with a slash is malformed",
        with(":path", "inference")
    ),
    ("8.3.1", "two of `:method` are malformed", [&[(":method", "POST")][..], &CALL].concat()),
    ("8.3.1", "two of `:scheme` are malformed", [&[(":scheme", "http")][..], &CALL].concat()),
    ("8.3.1", "two of `:path` are malformed", [&[(":path", LIVE)][..], &CALL].concat()),
    (
        "8.3.1",
        "two of `:authority` are malformed",
        [&[(":authority", "localhost")][..], &CALL].concat()
    ),
    ("8.3.1", "an `:authority` with a user's name is malformed", with(":authority", "u@localhost")),
    (
        "8.3.1",
        "`host` other than `:authority` is malformed",
        [&CALL[..], &[("host", "other")]].concat()
    ),
    (
        "8.5",
        "CONNECT, which is for proxies, is refused",
        [(":method", "CONNECT"), (":authority", "localhost")]
    ),
];

pub(crate) const ROWS: &[WireRequirement] = &[
    WireRequirement {
        section: "4.3",
        text: "a head that cannot be decoded ends the connection: COMPRESSION_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x40, 0x7f, 0xff]));
            client.is_ended(&[COMPRESSION]);
        },
    },
    WireRequirement {
        section: "4.3, 6.2",
        text: "another frame inside a head ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, END_STREAM, 1, &block(&[])));
            client.send(&frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "4.3, 6.2",
        text: "the head of another stream inside a head ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client
                .send(&[frame(HEADERS, END_STREAM, 1, &block(&[])), head(3, END_STREAM)].concat());
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.1",
        text: "data of no stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(DATA, END_STREAM, 0, MESSAGE));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.1",
        text: "data may be padded, and may come in many frames, empty ones among them",
        check: |client| {
            client.send(&[head(1, 0), frame(DATA, PADDED, 1, &[3, 0, 0, 0, 0, 0])].concat());
            client.send(&[frame(DATA, 0, 1, &[]), frame(DATA, 0, 1, &[0, 0])].concat());
            client.send(&frame(DATA, END_STREAM | PADDED, 1, &[0, 0]));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.1",
        text: "more padding than data is PROTOCOL_ERROR",
        check: |client| {
            client.send(&[head(1, 0), frame(DATA, END_STREAM | PADDED, 1, b"\x06abcde")].concat());
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.1, 4.2",
        text: "padded data without the length of its padding is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&[head(1, 0), frame(DATA, END_STREAM | PADDED, 1, &[])].concat());
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.2",
        text: "a head of no stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&head(0, END_STREAM));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.2",
        text: "a head may be padded and have a priority",
        check: |client| {
            let padded = [&[4, 0, 0, 0, 0, 200][..], &block(&[]), &[0; 4]].concat();
            client.send(&frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, &padded));
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.2",
        text: "more padding than head is PROTOCOL_ERROR",
        check: |client| {
            let padded = [&[255][..], &block(&[])].concat();
            client.send(&frame(HEADERS, END_HEADERS | PADDED, 1, &padded[..20]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.2",
        text: "padding that reaches into the priority is PROTOCOL_ERROR",
        check: |client| {
            let padded = [6, 0, 0, 0, 0, 1, 0x82, 0, 0];
            client.send(&frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, &padded));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "a head may come in many frames, empty ones among them",
        check: |client| {
            let block = block(&[]);
            client.send(&frame(HEADERS, 0, 1, &block[..7]));
            client.send(&frame(CONTINUATION, 0, 1, &[]));
            client.send(&frame(CONTINUATION, 0, 1, &block[7..30]));
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &block[30..]));
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "CONTINUATION that is followed by another frame is PROTOCOL_ERROR",
        check: |client| {
            let block = block(&[]);
            client.send(&frame(HEADERS, END_STREAM, 1, &block[..7]));
            client.send(&[frame(CONTINUATION, 0, 1, &block[7..]), frame(DATA, 0, 1, &[])].concat());
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "CONTINUATION of no stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, END_STREAM, 1, &block(&[])));
            client.send(&frame(CONTINUATION, END_HEADERS, 0, &[]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "CONTINUATION behind a head that is complete is PROTOCOL_ERROR",
        check: |client| {
            client.send(
                &[head(1, 0), frame(CONTINUATION, END_HEADERS, 1, &field("a", "b"))].concat(),
            );
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "CONTINUATION behind one that completes a head is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, 0, 1, &block(&[])));
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &[]));
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &[]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.10",
        text: "CONTINUATION behind data is PROTOCOL_ERROR",
        check: |client| {
            client.send(&[head(1, 0), frame(DATA, 0, 1, MESSAGE)].concat());
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &field("a", "b")));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "10.5.1",
        text: "a head in very many frames ends the connection: ENHANCE_YOUR_CALM",
        check: |client| {
            client.send(&frame(HEADERS, END_STREAM, 1, &[]));
            client.send(&frame(CONTINUATION, 0, 1, &[]).repeat(100));
            client.is_ended(&[ENHANCE_YOUR_CALM]);
        },
    },
    WireRequirement {
        section: "10.5.1",
        text: "fields of more than SETTINGS_MAX_HEADER_LIST_SIZE are answered: RESOURCE_EXHAUSTED",
        check: |client| {
            let long = "x".repeat(120);
            let many: Vec<_> = (0..150).map(|_| ("a", long.as_str())).collect();
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&many)));
            client.is_answered(1);
            client.lives();
        },
    },
    WireRequirement {
        section: "8.1",
        text: "a second head that does not end the request is malformed",
        check: |client| {
            client.send(&[head(1, 0), frame(HEADERS, END_HEADERS, 1, &field("a", "b"))].concat());
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1",
        text: "a request may have trailers",
        check: |client| {
            trailing(client, END_STREAM, &[("x-checksum", "1")]);
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "8.1",
        text: "an answer has a head with `:status`, data, and trailers that end the stream",
        check: |client| {
            client.send(&call(1));
            let begin = client.until("a head", |one| one.stream == 1);
            assert_eq!((begin.kind, begin.flags & END_STREAM), (HEADERS, 0));
            assert_eq!(begin.payload[0], 0x88, "the status is not 200");
            let end = client.until("the end", |one| one.ends(1));
            assert_eq!(end.kind, HEADERS);
        },
    },
    WireRequirement {
        section: "8.1",
        text: "a pseudo-header in trailers is malformed",
        check: |client| {
            trailing(client, END_STREAM, &[(":method", "POST")]);
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1, 8.2.2",
        text: "a field of connections in trailers is malformed",
        check: |client| {
            trailing(client, END_STREAM, &[("connection", "close")]);
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "a body of another length than `content-length` is malformed, in one frame",
        check: |client| {
            of_length(client, "1", &[MESSAGE]);
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "a body of another length than `content-length` is malformed, in several frames",
        check: |client| {
            of_length(client, "9", &[&MESSAGE[..2], &MESSAGE[2..]]);
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "`content-length` without a body is malformed",
        check: |client| {
            of_length(client, "5", &[]);
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "`content-length` before trailers that come too early is malformed",
        check: |client| {
            client.send(&frame(HEADERS, END_HEADERS, 1, &block(&[("content-length", "9")])));
            client.send(&frame(DATA, 0, 1, MESSAGE));
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &field("a", "b")));
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "`content-length` that is no number, or is there twice, is malformed",
        check: |client| {
            of_length(client, "x", &[]);
            client.is_reset(1, &[PROTOCOL]);
            let twice = block(&[("content-length", "0"), ("content-length", "0")]);
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &twice));
            let fits = |one: &ReceivedFrame| (one.kind, one.stream) == (RST_STREAM, 3);
            assert_eq!(client.until("a reset", fits).number(0), PROTOCOL);
        },
    },
    WireRequirement {
        section: "8.1.1",
        text: "a body of its `content-length` is taken",
        check: |client| {
            of_length(client, "5", &[&MESSAGE[..2], &MESSAGE[2..]]);
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "8.3.1",
        text: "other methods and paths that are not there are answered",
        check: |client| {
            for (stream, method) in [(1, "GET"), (3, "HEAD"), (5, "OPTIONS"), (7, "BREW")] {
                let block = fields(&[&with(":method", method)[..], &[]].concat());
                client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
                client.is_answered(stream);
            }
            let block = fields(&with(":path", "/nothing/there?a=b"));
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 9, &block));
            client.is_answered(9);
        },
    },
    WireRequirement {
        section: "8.3.1",
        text: "`host` that equals `:authority`, and requests without either, are taken",
        check: |client| {
            let same = block(&[("host", "localhost")]);
            client.send(&frame(HEADERS, END_HEADERS, 1, &same));
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_answered(1);
            client.send(&frame(HEADERS, END_HEADERS, 3, &fields(&without(":authority"))));
            client.send(&frame(DATA, END_STREAM, 3, MESSAGE));
            client.is_answered(3);
        },
    },
];
