//! The coding of heads (RFC 7541).

use super::WireRequirement;
use super::frames::*;

/// Sends a call whose head begins or ends with coded bytes, which cannot be decoded.
fn broken(client: &mut Http2Client, block: &[u8]) {
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, block));
    client.is_ended(&[COMPRESSION]);
}

/// Sends a call whose head has coded bytes behind its own, and reads the answer.
fn taken(client: &mut Http2Client, more: &[u8]) {
    client.send(&frame(HEADERS, END_HEADERS, 1, &[&block(&[]), more].concat()));
    client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
    client.is_answered(1);
}

pub(crate) const ROWS: &[WireRequirement] = &[
    WireRequirement {
        section: "7541: 2.3.3",
        text: "an index beyond both tables is COMPRESSION_ERROR",
        check: |client| broken(client, &[&block(&[])[..], &[0xc6]].concat()),
    },
    WireRequirement {
        section: "7541: 2.3.3",
        text: "an index beyond both tables for a name is COMPRESSION_ERROR",
        check: |client| broken(client, &[&block(&[])[..], &[0x7f, 7, 1, b'a']].concat()),
    },
    WireRequirement {
        section: "7541: 4.2",
        text: "a change of the table's size behind a field is COMPRESSION_ERROR",
        check: |client| broken(client, &[&block(&[])[..], &[0x3f, 0xe1, 0x1f]].concat()),
    },
    WireRequirement {
        section: "7541: 4.2",
        text: "changes of the table's size before the fields are taken",
        check: |client| {
            let block = [&[0x20, 0x3f, 0xe1, 0x1f][..], &block(&[])].concat();
            client.send(&frame(HEADERS, END_HEADERS, 1, &block));
            client.send(&frame(DATA, END_STREAM, 1, MESSAGE));
            client.is_answered(1);
        },
    },
    WireRequirement {
        section: "7541: 4.3",
        text: "a smaller table loses its oldest fields",
        check: |client| {
            taken(client, &[0x40, 1, b'a', 1, b'b']);
            let smaller = [&[0x20][..], &block(&[]), &[0xbe]].concat();
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &smaller));
            client.is_ended(&[COMPRESSION]);
        },
    },
    WireRequirement {
        section: "7541: 5.1",
        text: "a number that is too large is COMPRESSION_ERROR",
        check: |client| broken(client, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    },
    WireRequirement {
        section: "7541: 5.1, 5.2",
        text: "a number or a string that ends with the head is COMPRESSION_ERROR",
        check: |client| broken(client, &[0x00, 0x7f]),
    },
    WireRequirement {
        section: "7541: 5.2",
        text: "padding of a Huffman code of more than 7 bits is COMPRESSION_ERROR",
        check: |client| broken(client, &[0x00, 1, b'a', 0x84, 0x49, 0x50, 0x9f, 0xff]),
    },
    WireRequirement {
        section: "7541: 5.2",
        text: "padding of a Huffman code that is not of ones is COMPRESSION_ERROR",
        check: |client| broken(client, &[0x00, 1, b'a', 0x83, 0x49, 0x50, 0x90]),
    },
    WireRequirement {
        section: "7541: 5.2",
        text: "the end mark in a Huffman code is COMPRESSION_ERROR",
        check: |client| broken(client, &[0x00, 1, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]),
    },
    WireRequirement {
        section: "7541: 6.1",
        text: "the index 0 is COMPRESSION_ERROR",
        check: |client| broken(client, &[&block(&[])[..], &[0x80]].concat()),
    },
    WireRequirement {
        section: "7541: 6.1",
        text: "fields of the static table are taken",
        check: |client| taken(client, &[0x90]),
    },
    WireRequirement {
        section: "7541: 6.1, 6.2.1",
        text: "a field that is kept is found again in the next head",
        check: |client| {
            taken(client, &[0x40, 1, b'a', 1, b'b']);
            let again = [&block(&[])[..], &[0xbe]].concat();
            client.send(&frame(HEADERS, END_HEADERS, 3, &again));
            client.send(&frame(DATA, END_STREAM, 3, MESSAGE));
            client.is_answered(3);
        },
    },
    WireRequirement {
        section: "7541: 6.2.1",
        text: "a field that is kept is taken with its name from the table",
        check: |client| taken(client, &[0x53, 1, b'b']),
    },
    WireRequirement {
        section: "7541: 6.2.2",
        text: "a field that is not kept is taken with its name from the table, and with one of its own",
        check: |client| taken(client, &[0x0f, 0x04, 1, b'b', 0x00, 1, b'a', 1, b'b']),
    },
    WireRequirement {
        section: "7541: 6.2.3",
        text: "a field that is never kept is taken with its name from the table, and with one of its own",
        check: |client| taken(client, &[0x1f, 0x04, 1, b'b', 0x10, 1, b'a', 1, b'b']),
    },
    WireRequirement {
        section: "7541: 5.2, 6.2.2",
        text: "strings in the Huffman code are taken",
        check: |client| {
            let huffman = [0x00, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f, 1, b'b'];
            taken(client, &huffman);
        },
    },
    WireRequirement {
        section: "7541: 6.3",
        text: "a table larger than SETTINGS_HEADER_TABLE_SIZE is COMPRESSION_ERROR",
        check: |client| broken(client, &[&[0x3f, 0xe2, 0x1f][..], &block(&[])].concat()),
    },
];
