//! Opening and ending of connections, and frames as such.

use super::WireRequirement;
use super::frames::*;

pub(crate) const ROWS: &[WireRequirement] = &[
    WireRequirement {
        section: "3.4",
        text: "a connection is opened by the preface and settings, which are acknowledged; the server's settings are its first frame",
        check: |client| client.lives(),
    },
    WireRequirement {
        section: "3.4",
        text: "another preface ends the connection",
        check: |client| {
            let address = client.stream.peer_addr().unwrap();
            let mut other = Http2Client::bare(address);
            other.send(b"INVALID CONNECTION PREFACE\r\n\r\n");
            other.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "3.4",
        text: "a first frame that is not of settings ends the connection: PROTOCOL_ERROR",
        check: |client| {
            let mut other = Http2Client::bare(client.stream.peer_addr().unwrap());
            other.send(&[PREFACE, &call(1)].concat());
            other.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "4.1",
        text: "a frame of an unknown type is left out",
        check: |client| {
            client.send(&frame(0x16, 0, 0, &[0; 8]));
            client.lives();
        },
    },
    WireRequirement {
        section: "4.1",
        text: "flags that are not defined are left out",
        check: |client| {
            client.send(&frame(PING, 0x16, 0, &[7; 8]));
            let pong = client.until("a pong", |one| (one.kind, one.flags) == (PING, ACK));
            assert_eq!(pong.payload, [7; 8]);
        },
    },
    WireRequirement {
        section: "4.1",
        text: "the reserved bit of a stream's number is left out",
        check: |client| {
            client.send(&frame(PING, 0, 0x8000_0000, &[7; 8]));
            client.until("a pong", |one| (one.kind, one.flags) == (PING, ACK));
        },
    },
    WireRequirement {
        section: "4.2",
        text: "a data frame of 16,384 bytes is taken",
        check: |client| {
            client.send(&head(1, 0));
            let length = u32::try_from((1 << 14) - 5).unwrap().to_be_bytes();
            let message = [&[0][..], &length, &[0; (1 << 14) - 5]].concat();
            client.send(&frame(DATA, END_STREAM, 1, &message));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "4.2",
        text: "a data frame beyond SETTINGS_MAX_FRAME_SIZE is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&head(1, 0));
            client.send(&frame(DATA, END_STREAM, 1, &vec![0; (256 << 10) + 1]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "4.2",
        text: "a head beyond SETTINGS_MAX_FRAME_SIZE ends the connection: FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, END_HEADERS, 1, &vec![0; (256 << 10) + 1]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "5.4.1",
        text: "behind an error of the connection its last stream and a reason are told, and it is closed",
        check: |client| {
            client.send(&call(1));
            client.is_answered(1);
            client.send(&frame(PING, 0, 3, &[0; 8]));
            let end = client.until("the end", |one| one.kind == GOAWAY);
            assert_eq!((end.stream, end.number(0), end.number(4)), (0, 1, PROTOCOL));
            assert!(client.next().is_none(), "a frame follows");
        },
    },
    WireRequirement {
        section: "5.5",
        text: "a frame of an unknown type inside a head ends the connection: PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(HEADERS, END_STREAM, 1, &block(&[])));
            client.send(&frame(0x16, 0, 1, &[]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.5",
        text: "an acknowledgement of settings with a payload is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(SETTINGS, ACK, 0, &[0, 1, 0, 0, 0, 0]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.5",
        text: "settings of a stream are PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(SETTINGS, 0, 1, &[0, 3, 0, 0, 0, 9]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.5",
        text: "settings whose length is no multiple of 6 are FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(SETTINGS, 0, 0, &[0, 3, 0]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.5.2",
        text: "SETTINGS_ENABLE_PUSH other than 0 and 1 is PROTOCOL_ERROR",
        check: |client| {
            client.send(&settings(&[(2, 2)]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.5.2",
        text: "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1 is FLOW_CONTROL_ERROR",
        check: |client| {
            client.send(&settings(&[(4, 1 << 31)]));
            client.is_ended(&[FLOW_CONTROL]);
        },
    },
    WireRequirement {
        section: "6.5.2",
        text: "SETTINGS_MAX_FRAME_SIZE below 16,384 is PROTOCOL_ERROR",
        check: |client| {
            client.send(&settings(&[(5, (1 << 14) - 1)]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.5.2",
        text: "SETTINGS_MAX_FRAME_SIZE above 2^24-1 is PROTOCOL_ERROR",
        check: |client| {
            client.send(&settings(&[(5, 1 << 24)]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.5.2",
        text: "a setting that is not known is left out, and the settings are acknowledged",
        check: |client| {
            client.send(&settings(&[(0xff, 1), (6, 1 << 20), (3, 100), (1, 0)]));
            client.until("an acknowledgement", |one| (one.kind, one.flags) == (SETTINGS, ACK));
            client.lives();
        },
    },
    WireRequirement {
        section: "6.5.3",
        text: "settings are acknowledged at once, one frame for each",
        check: |client| {
            client.send(&[settings(&[(4, 100)]), settings(&[])].concat());
            for _ in 0..2 {
                let ack = client.until("an acknowledgement", |one| one.kind == SETTINGS);
                assert_eq!((ack.flags, ack.stream, ack.payload.len()), (ACK, 0, 0));
            }
        },
    },
    WireRequirement {
        section: "6.7",
        text: "a ping comes back with its bytes",
        check: |client| {
            client.send(&frame(PING, 0, 0, b"12345678"));
            let pong = client.until("a pong", |one| one.kind == PING);
            assert_eq!((pong.flags, pong.payload.as_slice()), (ACK, &b"12345678"[..]));
        },
    },
    WireRequirement {
        section: "6.7",
        text: "the answer to a ping is not answered",
        check: |client| {
            client.send(&frame(PING, ACK, 0, b"answered"));
            client.send(&frame(PING, 0, 0, b"question"));
            let pong = client.until("a pong", |one| one.kind == PING);
            assert_eq!(pong.payload, b"question");
        },
    },
    WireRequirement {
        section: "6.7",
        text: "a ping of a stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(PING, 0, 1, &[0; 8]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.7",
        text: "a ping without 8 bytes is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(PING, 0, 0, &[0; 6]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.8",
        text: "an end of the connection that is of a stream is PROTOCOL_ERROR",
        check: |client| {
            client.send(&frame(GOAWAY, 0, 1, &[0; 8]));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.8, 4.2",
        text: "an end of the connection of fewer than 8 bytes is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(GOAWAY, 0, 0, &[0; 7]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.8",
        text: "calls of a client that says that it ends are answered",
        check: |client| {
            client.send(&[head(1, 0), frame(GOAWAY, 0, 0, &[0; 8])].concat());
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "10.5",
        text: "more pings than gRPC allows end the connection: ENHANCE_YOUR_CALM",
        check: |client| {
            client.send(&frame(PING, 0, 0, &[1; 8]).repeat(10));
            client.is_ended(&[ENHANCE_YOUR_CALM]);
        },
    },
];
