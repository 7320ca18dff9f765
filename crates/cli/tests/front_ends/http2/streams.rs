//! States of streams, and the frames that change them.

use super::WireRequirement;
use super::frames::*;

/// Sends a call and reads its answer, behind which the stream is closed.
fn closed(client: &mut Http2Client) {
    client.send(&call(1));
    client.is_answered(1);
}

/// Begins a call and resets it.
fn given_up(client: &mut Http2Client) {
    client.send(&[head(1, 0), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat());
}

pub(crate) const ROWS: &[WireRequirement] = &[
    WireRequirement {
        section: "5.1",
        text: "idle: data ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_ended(&[PROTOCOL, STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "idle: RST_STREAM ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "idle: WINDOW_UPDATE ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&window(1, 100));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "idle: CONTINUATION ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &block(&[])));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "idle: PRIORITY is taken",
        check: |client| {
            client.send(&frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255]));
            client.send(&call(3));
            client.is_answered(3);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "half-closed (remote): data is STREAM_CLOSED",
        check: |client| {
            client.send(&[call(1), frame(DATA, END_STREAM, 1, MESSAGE)].concat());
            let fits = |one: &ReceivedFrame| matches!(one.kind, GOAWAY | RST_STREAM);
            let end = client.until("an error", fits);
            assert_eq!(end.number(if end.kind == GOAWAY { 4 } else { 0 }), STREAM_CLOSED);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "half-closed (remote): a head is STREAM_CLOSED",
        check: |client| {
            client.send(&[call(1), head(1, END_STREAM)].concat());
            let fits = |one: &ReceivedFrame| matches!(one.kind, GOAWAY | RST_STREAM);
            let end = client.until("an error", fits);
            assert_eq!(end.number(if end.kind == GOAWAY { 4 } else { 0 }), STREAM_CLOSED);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "half-closed (remote): CONTINUATION ends the connection",
        check: |client| {
            client.send(&[call(1), frame(CONTINUATION, END_HEADERS, 1, &block(&[]))].concat());
            client.is_ended(&[PROTOCOL, STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "half-closed (remote): WINDOW_UPDATE, PRIORITY and RST_STREAM are taken",
        check: |client| {
            client.send(&[call(1), window(1, 9), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])].concat());
            client.is_answered(1);
            client.send(&[call(3), frame(RST_STREAM, 0, 3, &[0, 0, 0, 8])].concat());
            client.lives();
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by RST_STREAM of the client: data is STREAM_CLOSED",
        check: |client| {
            given_up(client);
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_reset(1, &[STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by RST_STREAM of the client: a head is STREAM_CLOSED",
        check: |client| {
            given_up(client);
            client.send(&head(1, END_STREAM));
            client.is_reset(1, &[STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by RST_STREAM of the client: CONTINUATION ends the connection",
        check: |client| {
            given_up(client);
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &block(&[])));
            client.is_ended(&[PROTOCOL, STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by END_STREAM of both: data ends the connection: STREAM_CLOSED",
        check: |client| {
            closed(client);
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_ended(&[STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by END_STREAM of both: a head ends the connection: STREAM_CLOSED",
        check: |client| {
            closed(client);
            client.send(&head(1, END_STREAM));
            client.is_ended(&[STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by END_STREAM of both: CONTINUATION ends the connection",
        check: |client| {
            closed(client);
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &block(&[])));
            client.is_ended(&[PROTOCOL, STREAM_CLOSED]);
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed: WINDOW_UPDATE, PRIORITY and RST_STREAM are left out",
        check: |client| {
            closed(client);
            client.send(&[window(1, 9), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])].concat());
            client.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
            client.lives();
        },
    },
    WireRequirement {
        section: "5.1",
        text: "closed by RST_STREAM of the server: what the client had on its way is left out, and its heads are decoded",
        check: |client| {
            // A refused call, whose data and trailers come all the same. The trailers fill the table.
            let wrong = fields(&[(":method", "POST"), (":path", "/"), ("connection", "close")]);
            client.send(&frame(HEADERS, END_HEADERS, 1, &wrong));
            client.is_reset(1, &[PROTOCOL]);
            client.send(&frame(DATA, 0, 1, MESSAGE));
            let kept = [&[0x40, 1][..], b"a", &[1], b"b"].concat();
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &kept));
            client.send(&frame(HEADERS, END_HEADERS, 3, &[block(&[]), vec![0xbe]].concat()));
            client.send(&frame(DATA, END_STREAM, 3, MESSAGE));
            client.is_answered(3);
        },
    },
    WireRequirement {
        section: "5.1.1",
        text: "a stream of an even number is PROTOCOL_ERROR",
        check: |client| {
            client.send(&call(2));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.1.1",
        text: "a stream below the last one is PROTOCOL_ERROR",
        check: |client| {
            client.send(&call(5));
            client.is_answered(5);
            client.send(&call(3));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.1.2",
        text: "a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is REFUSED_STREAM",
        check: |client| {
            let heads = (0..1025).flat_map(|number| head(number * 2 + 1, 0));
            client.send(&heads.collect::<Vec<u8>>());
            client.is_reset(2049, &[REFUSED_STREAM]);
        },
    },
    WireRequirement {
        section: "5.3.2",
        text: "a priority on a stream itself is PROTOCOL_ERROR (RFC 7540, 5.3.1), in a head",
        check: |client| {
            let dependent = [&[0, 0, 0, 1, 15][..], &block(&[])].concat();
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM | WITH_PRIORITY, 1, &dependent));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "5.3.2",
        text: "a priority on a stream itself is PROTOCOL_ERROR (RFC 7540, 5.3.1), in a frame of its own",
        check: |client| {
            client.send(&frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 15]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.3",
        text: "PRIORITY of no stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(PRIORITY, 0, 0, &[0, 0, 0, 1, 15]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.3",
        text: "PRIORITY without 5 bytes is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&[head(1, 0), frame(PRIORITY, 0, 1, &[0, 0, 0, 1])].concat());
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.3",
        text: "priorities are taken and left out: of all weights, exclusive, on streams that are not there",
        check: |client| {
            for priority in [[0, 0, 0, 0, 0], [0x80, 0, 0, 0, 255], [0, 0, 0, 99, 1]] {
                client.send(&frame(PRIORITY, 0, 1, &priority));
            }
            client.send(&call(1));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.4",
        text: "RST_STREAM of no stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(RST_STREAM, 0, 0, &[0, 0, 0, 8]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.4",
        text: "RST_STREAM without 4 bytes is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&[head(1, 0), frame(RST_STREAM, 0, 1, &[0, 0, 0])].concat());
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.4",
        text: "a call that is reset is given up, and others go on",
        check: |client| {
            client.send(&[head(1, 0), head(3, 0), frame(RST_STREAM, 0, 1, &[0; 4])].concat());
            client.send(&frame(DATA, END_STREAM, 3, MESSAGE));
            client.is_answered(3);
        },
    },
    WireRequirement {
        section: "6.6, 8.4",
        text: "PUSH_PROMISE of a client is PROTOCOL_ERROR",
        check: |client| {
            let promise = [&[0, 0, 0, 2][..], &block(&[])].concat();
            client.send(&[head(1, 0), frame(PUSH_PROMISE, END_HEADERS, 1, &promise)].concat());
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "7",
        text: "an unknown reason of RST_STREAM has no meaning of its own",
        check: |client| {
            client.send(&[head(1, 0), frame(RST_STREAM, 0, 1, &[0, 0, 0, 0xff])].concat());
            client.lives();
        },
    },
    WireRequirement {
        section: "10.5",
        text: "a client that begins and resets very many calls is ended: ENHANCE_YOUR_CALM",
        check: |client| {
            let calls = (0..1500).flat_map(|number: u32| {
                let stream = number * 2 + 1;
                [head(stream, 0), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
            });
            client.send(&calls.collect::<Vec<u8>>());
            client.is_ended(&[ENHANCE_YOUR_CALM]);
        },
    },
];
