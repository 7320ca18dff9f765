//! Flow control.

use super::WireRequirement;
use super::frames::*;

const LARGEST: u32 = 0x7fff_ffff;

/// A call whose answer has some bytes, on a connection with these windows of a stream.
fn metered(client: &mut Http2Client, first: u32) {
    client.send(&settings(&[(4, first)]));
    client.until("an acknowledgement", |one| (one.kind, one.flags) == (SETTINGS, ACK));
    client.send(&call(1));
}

/// The next data of a stream.
fn data(client: &mut Http2Client, stream: u32) -> usize {
    let fits = |one: &ReceivedFrame| one.kind == DATA && one.stream == stream;
    client.until("data", fits).payload.len()
}

pub(crate) const ROWS: &[WireRequirement] = &[
    WireRequirement {
        section: "6.9",
        text: "an increment of 0 of the connection's window is PROTOCOL_ERROR",
        check: |client| {
            client.send(&window(0, 0));
            client.is_ended(&[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.9",
        text: "an increment of 0 of a stream's window is PROTOCOL_ERROR of the stream",
        check: |client| {
            client.send(&[head(1, 0), window(1, 0)].concat());
            client.is_reset(1, &[PROTOCOL]);
        },
    },
    WireRequirement {
        section: "6.9",
        text: "WINDOW_UPDATE without 4 bytes is FRAME_SIZE_ERROR",
        check: |client| {
            client.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1]));
            client.is_ended(&[FRAME_SIZE]);
        },
    },
    WireRequirement {
        section: "6.9",
        text: "the reserved bit of an increment is left out",
        check: |client| {
            metered(client, 0);
            client.send(&frame(WINDOW_UPDATE, 0, 1, &[0x80, 0, 0, 1]));
            assert_eq!(data(client, 1), 1);
        },
    },
    WireRequirement {
        section: "6.9.1",
        text: "no more data is sent than a stream's window has",
        check: |client| {
            metered(client, 1);
            assert_eq!(data(client, 1), 1);
            // Nothing else comes before the answer to a ping.
            client.send(&frame(PING, 0, 0, b"anything"));
            let next = client.next().unwrap();
            assert_eq!((next.kind, next.flags), (PING, ACK), "{next:?}");
            client.send(&window(1, 100));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.9.1",
        text: "the connection's window beyond 2^31-1 is FLOW_CONTROL_ERROR",
        check: |client| {
            client.send(&[window(0, LARGEST), window(0, LARGEST)].concat());
            client.is_ended(&[FLOW_CONTROL]);
        },
    },
    WireRequirement {
        section: "6.9.1",
        text: "a stream's window beyond 2^31-1 is FLOW_CONTROL_ERROR of the stream",
        check: |client| {
            client.send(&[head(1, 0), window(1, LARGEST), window(1, LARGEST)].concat());
            client.is_reset(1, &[FLOW_CONTROL]);
        },
    },
    WireRequirement {
        section: "6.9.2",
        text: "SETTINGS_INITIAL_WINDOW_SIZE changes the windows of streams that are open",
        check: |client| {
            metered(client, 0);
            client.send(&settings(&[(4, 1)]));
            assert_eq!(data(client, 1), 1);
            client.send(&settings(&[(4, 100)]));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.9.2",
        text: "a window may become negative, and data waits until it is positive",
        check: |client| {
            metered(client, 3);
            assert_eq!(data(client, 1), 3);
            client.send(&settings(&[(4, 2)]));
            client.send(&window(1, 2));
            assert_eq!(data(client, 1), 1);
            client.send(&window(1, 100));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "6.9.2",
        text: "SETTINGS_INITIAL_WINDOW_SIZE that makes an open window larger than 2^31-1 is FLOW_CONTROL_ERROR",
        check: |client| {
            client.send(&[head(1, 0), window(1, LARGEST - 65_535)].concat());
            client.send(&settings(&[(4, 65_536)]));
            client.is_ended(&[FLOW_CONTROL]);
        },
    },
    WireRequirement {
        section: "6.9.2",
        text: "the last of several values of one setting counts",
        check: |client| {
            client.send(&settings(&[(4, 100), (4, 1)]));
            client.until("an acknowledgement", |one| (one.kind, one.flags) == (SETTINGS, ACK));
            client.send(&call(1));
            assert_eq!(data(client, 1), 1);
        },
    },
];
