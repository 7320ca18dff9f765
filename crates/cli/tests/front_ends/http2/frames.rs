//! A client of HTTP/2 that writes its frames by hand, rightly or wrongly.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::client::socket;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

pub(crate) const PROTOCOL: u32 = 1;
pub(crate) const FLOW_CONTROL: u32 = 3;
pub(crate) const STREAM_CLOSED: u32 = 5;
pub(crate) const FRAME_SIZE: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const COMPRESSION: u32 = 9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A call that is answered at once, and its message, which is empty.
pub(crate) const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
pub(crate) const MESSAGE: &[u8] = &[0; 5];

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A string that is not Huffman coded.
fn string(text: &[u8]) -> Vec<u8> {
    assert!(text.len() < 127);
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

/// A field that is neither looked up nor kept.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    [vec![0], string(name.as_bytes()), string(value.as_bytes())].concat()
}

/// Fields of a request, coded.
pub(crate) fn fields(list: &[(&str, &str)]) -> Vec<u8> {
    list.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// The fields that a call has before its own.
pub(crate) const CALL: [(&str, &str); 6] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", LIVE),
    (":authority", "localhost"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
];

/// The head of a call with further fields behind.
pub(crate) fn block(more: &[(&str, &str)]) -> Vec<u8> {
    fields(&[&CALL, more].concat())
}

/// The head of a call in one frame.
pub(crate) fn head(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(&[]))
}

/// A whole call.
pub(crate) fn call(stream: u32) -> Vec<u8> {
    [head(stream, 0), frame(DATA, END_STREAM, stream, MESSAGE)].concat()
}

/// A frame of settings.
pub(crate) fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let entries = list
        .iter()
        .flat_map(|(name, value)| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat());
    frame(SETTINGS, 0, 0, &entries.collect::<Vec<u8>>())
}

pub(crate) fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// A frame as it comes.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl ReceivedFrame {
    /// A number of four bytes in the payload.
    pub(crate) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn ends(&self, stream: u32) -> bool {
        self.stream == stream && self.kind <= HEADERS && self.flags & END_STREAM != 0
    }
}

/// A connection.
pub(crate) struct Http2Client {
    pub(crate) stream: TcpStream,
}

impl Http2Client {
    /// A connection of which nothing is sent.
    pub(crate) fn bare(address: SocketAddr) -> Self {
        Self { stream: socket(address) }
    }

    /// A connection that both sides have opened with these settings of the client.
    pub(crate) fn open(address: SocketAddr, list: &[(u16, u32)]) -> Self {
        let mut client = Self::bare(address);
        client.send(&[PREFACE, &settings(list)].concat());
        let first =
            client.next().unwrap_or_else(|| panic!("the server does not open the connection"));
        assert_eq!((first.kind, first.flags), (SETTINGS, 0), "the first frame is not of settings");
        client.until("the settings to be acknowledged", |one| {
            (one.kind, one.flags) == (SETTINGS, ACK)
        });
        client.send(&frame(SETTINGS, ACK, 0, &[]));
        client
    }

    /// Sends bytes. A server that has closed is found out by reading.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// The next frame; none at the end.
    pub(crate) fn next(&mut self) -> Option<ReceivedFrame> {
        let mut start = [0; 9];
        self.stream.read_exact(&mut start).ok()?;
        let [a, b, c, kind, flags, stream @ ..] = start;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(ReceivedFrame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    /// Reads until a frame fits.
    pub(crate) fn until(
        &mut self,
        what: &str,
        fits: impl Fn(&ReceivedFrame) -> bool,
    ) -> ReceivedFrame {
        let mut seen = Vec::new();
        while let Some(frame) = self.next() {
            if fits(&frame) {
                return frame;
            }
            seen.push(frame);
        }
        panic!("the connection ended or rests, expected {what}; found {seen:?}");
    }

    /// The connection ends with one of these reasons.
    pub(crate) fn is_ended(&mut self, reasons: &[u32]) {
        let end = self.until("the end of the connection", |one| one.kind == GOAWAY);
        let found = end.number(4);
        assert!(reasons.contains(&found), "ended by {found}, expected {reasons:?}");
        assert!(self.is_closed(), "the connection stays open");
    }

    /// Reads to the end; says whether there is one.
    fn is_closed(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                // A server need not read what it no longer wants, which resets the socket.
                Err(error) => {
                    return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            }
        }
    }

    /// The stream is reset with one of these reasons, and the connection goes on.
    pub(crate) fn is_reset(&mut self, stream: u32, reasons: &[u32]) {
        let end = self.until("a reset of the stream", |one| {
            one.kind == GOAWAY || (one.kind, one.stream) == (RST_STREAM, stream)
        });
        assert_eq!(end.kind, RST_STREAM, "the connection ends: {end:?}");
        let found = end.number(0);
        assert!(reasons.contains(&found), "reset by {found}, expected {reasons:?}");
        self.lives();
    }

    /// The stream is answered to its end.
    pub(crate) fn is_answered(&mut self, stream: u32) {
        let fits = |one: &ReceivedFrame| {
            one.ends(stream) || one.kind == GOAWAY || (one.kind, one.stream) == (RST_STREAM, stream)
        };
        let end = self.until("an answer", fits);
        assert!(end.ends(stream), "not answered: {end:?}");
    }

    /// The connection goes on: a ping comes back.
    pub(crate) fn lives(&mut self) {
        self.send(&frame(PING, 0, 0, b"goes on?"));
        let fits = |one: &ReceivedFrame| {
            (one.kind, one.flags) == (PING, ACK) && one.payload == b"goes on?"
        };
        self.until("the answer to a ping", fits);
    }
}
