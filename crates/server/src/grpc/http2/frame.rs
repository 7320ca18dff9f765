//! Frames (RFC 9113, sections 4 and 6): read from whatever pieces the socket gives, and written.
//!
//! The payload of a data frame is passed on as it arrives. All other frames are short and are gathered first.

use bytes::{BufMut, BytesMut};

/// Connection preface that every client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before each frame.
const HEAD_BYTES: usize = 9;
/// Longest data frame that a peer may send.
pub(super) const MAX_FRAME_BYTES: u32 = 256 * 1024;
/// Longest frame that a peer must be able to read, and shortest limit that it may set.
pub(super) const MIN_MAX_FRAME_BYTES: usize = 16 * 1024;
/// Longest head, as it is coded.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// Frames that one head may come in.
const MAX_BLOCK_FRAMES: u32 = 32;
/// Largest window.
pub(super) const MAX_WINDOW: i64 = i32::MAX as i64;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

/// Why a stream or a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorReason {
    NoError = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    StreamClosed = 5,
    FrameSize = 6,
    RefusedStream = 7,
    Compression = 9,
    EnhanceYourCalm = 11,
}

impl ErrorReason {
    fn code(self) -> u32 {
        self as u32
    }
}

/// Protocol error that ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtocolViolation {
    pub(super) reason: ErrorReason,
    pub(super) text: &'static str,
}

/// A violation of the protocol.
pub(super) fn wrong(text: &'static str) -> ProtocolViolation {
    ProtocolViolation { reason: ErrorReason::Protocol, text }
}

fn sized(text: &'static str) -> ProtocolViolation {
    ProtocolViolation { reason: ErrorReason::FrameSize, text }
}

/// Settings of a peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PeerSettings {
    pub(super) window: Option<u32>,
    pub(super) max_frame_bytes: Option<usize>,
}

/// Event that a frame of the peer stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameEvent<'a> {
    /// A piece of a body; `counted` are its bytes in the windows, and `end` says whether it is the last.
    Data { stream: u32, bytes: &'a [u8], counted: usize, end: bool },
    /// A head, whose block the parser holds.
    Head { stream: u32, end: bool },
    /// Settings, which are to be acknowledged.
    Settings(PeerSettings),
    /// A question whether this side lives.
    Ping([u8; 8]),
    /// The answer to such a question of this side.
    Pong([u8; 8]),
    /// A stream that the peer gives up.
    Reset { stream: u32 },
    /// Room for so many bytes more.
    Window { stream: u32, more: u32 },
    /// Anything else.
    Other,
}

#[derive(Debug, Clone, Copy, Default)]
struct FrameHead {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

#[derive(Debug, Clone, Copy)]
enum FrameState {
    Preface(usize),
    Head,
    /// Gathers the payload of a short frame.
    Short(FrameHead),
    /// The first byte of a padded data frame is still to come.
    Padding(FrameHead),
    /// In a data frame: bytes left, padding among them, and bytes that count beside.
    Data {
        head: FrameHead,
        left: usize,
        padding: usize,
        beside: usize,
    },
    /// Leaves out bytes of a frame that means nothing here.
    Skip(usize),
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct FrameParser {
    state: FrameState,
    kept: Vec<u8>,
    block: Vec<u8>,
    /// The stream whose head is not complete, whether it ends the stream, and the frames so far.
    open: Option<(u32, bool, u32)>,
    settled: bool,
}

impl FrameParser {
    pub(super) fn new() -> Self {
        Self {
            state: FrameState::Preface(0),
            kept: Vec::new(),
            block: Vec::new(),
            open: None,
            settled: false,
        }
    }

    /// The coded fields of the head that came last.
    pub(super) fn block(&self) -> &[u8] {
        &self.block
    }

    /// Returns whether the peer has opened the connection.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Returns whether the peer is in the middle of a head or another short frame.
    pub(super) fn is_inside(&self) -> bool {
        self.open.is_some() || matches!(self.state, FrameState::Short(_)) || !self.kept.is_empty()
    }

    /// The next event in the input; none when more is needed for one.
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<FrameEvent<'a>>, ProtocolViolation> {
        loop {
            match self.state {
                FrameState::Preface(read) => {
                    let rest = PREFACE.get(read..).unwrap_or_default();
                    let (piece, others) = input.split_at(input.len().min(rest.len()));
                    if !rest.starts_with(piece) {
                        return Err(wrong(
                            "the connection does not begin with the preface of HTTP/2",
                        ));
                    }
                    *input = others;
                    if piece.len() < rest.len() {
                        self.state = FrameState::Preface(read + piece.len());
                        return Ok(None);
                    }
                    self.state = FrameState::Head;
                }
                FrameState::Head => {
                    let Some(head) = self.head(input) else { return Ok(None) };
                    self.begin(head)?;
                }
                FrameState::Short(head) => {
                    if !self.gather(input, head.length) {
                        return Ok(None);
                    }
                    self.state = FrameState::Head;
                    let payload = std::mem::take(&mut self.kept);
                    let event = self.short(head, &payload);
                    // The memory is used again.
                    self.kept = payload;
                    self.kept.clear();
                    if let Some(event) = event? {
                        return Ok(Some(event));
                    }
                }
                FrameState::Padding(head) => {
                    let Some((&padding, others)) = input.split_first() else { return Ok(None) };
                    *input = others;
                    let left = head.length - 1;
                    let padding = usize::from(padding);
                    if padding > left {
                        return Err(wrong("a data frame has more padding than bytes"));
                    }
                    self.state = FrameState::Data { head, left, padding, beside: 1 };
                }
                FrameState::Data { head, left, padding, beside } => {
                    if left > 0 && input.is_empty() {
                        return Ok(None);
                    }
                    return Ok(Some(self.data(input, head, left, padding, beside)));
                }
                FrameState::Skip(left) => {
                    let (piece, others) = input.split_at(left.min(input.len()));
                    *input = others;
                    if piece.len() < left {
                        self.state = FrameState::Skip(left - piece.len());
                        return Ok(None);
                    }
                    self.state = FrameState::Head;
                    return Ok(Some(FrameEvent::Other));
                }
            }
        }
    }

    /// Gathers so many bytes.
    fn gather(&mut self, input: &mut &[u8], length: usize) -> bool {
        let missing = length.saturating_sub(self.kept.len());
        let (piece, others) = input.split_at(missing.min(input.len()));
        self.kept.extend_from_slice(piece);
        *input = others;
        self.kept.len() >= length
    }

    fn head(&mut self, input: &mut &[u8]) -> Option<FrameHead> {
        if !self.gather(input, HEAD_BYTES) {
            return None;
        }
        let head = match *self.kept {
            [a, b, c, kind, flags, e, f, g, h] => FrameHead {
                length: u32::from_be_bytes([0, a, b, c]) as usize,
                kind,
                flags,
                stream: u32::from_be_bytes([e, f, g, h]) & 0x7fff_ffff,
            },
            _ => FrameHead::default(),
        };
        self.kept.clear();
        Some(head)
    }

    /// Looks at a frame's head before anything of its payload is kept.
    fn begin(&mut self, head: FrameHead) -> Result<(), ProtocolViolation> {
        if head.length > MAX_FRAME_BYTES as usize {
            return Err(sized("a frame is longer than the limit that was set"));
        }
        if !self.settled && (head.kind != SETTINGS || head.flags & ACK != 0) {
            return Err(wrong("the first frame is not of settings"));
        }
        if self.open.is_some_and(|(stream, ..)| (head.kind, head.stream) != (CONTINUATION, stream))
        {
            return Err(wrong("another frame comes inside a head"));
        }
        let of_stream = match head.kind {
            DATA | HEADERS | PRIORITY | RST_STREAM | CONTINUATION => true,
            SETTINGS | PING | GOAWAY => false,
            _ => head.stream != 0,
        };
        if of_stream != (head.stream != 0) {
            return Err(wrong("a frame is of a stream that it cannot be of"));
        }
        let fixed = match head.kind {
            PRIORITY => Some(5),
            RST_STREAM | WINDOW_UPDATE => Some(4),
            PING => Some(8),
            _ => None,
        };
        if fixed.is_some_and(|length| length != head.length) {
            return Err(sized("a frame has a wrong length"));
        }
        if head.kind == GOAWAY && head.length < 8 {
            return Err(sized("an end of the connection is too short"));
        }
        self.state = match head.kind {
            DATA if head.flags & PADDED == 0 => {
                FrameState::Data { head, left: head.length, padding: 0, beside: 0 }
            }
            DATA if head.length == 0 => return Err(sized("a padded frame is empty")),
            DATA => FrameState::Padding(head),
            PUSH_PROMISE => return Err(wrong("a client promises an answer")),
            HEADERS | PRIORITY | RST_STREAM | SETTINGS | PING | WINDOW_UPDATE | CONTINUATION => {
                if head.length > MAX_BLOCK_BYTES {
                    let text = "a head or another short frame is too long";
                    return Err(ProtocolViolation { reason: ErrorReason::EnhanceYourCalm, text });
                }
                FrameState::Short(head)
            }
            // Frames that one does not know are left out.
            _ => FrameState::Skip(head.length),
        };
        Ok(())
    }

    fn data<'a>(
        &mut self,
        input: &mut &'a [u8],
        head: FrameHead,
        left: usize,
        padding: usize,
        beside: usize,
    ) -> FrameEvent<'a> {
        let (piece, others) = input.split_at(left.min(input.len()));
        *input = others;
        let left = left - piece.len();
        // The padding comes last.
        let content = (left + piece.len()).saturating_sub(padding).min(piece.len());
        let bytes = piece.get(..content).unwrap_or_default();
        self.state = match left {
            0 => FrameState::Head,
            _ => FrameState::Data { head, left, padding, beside: 0 },
        };
        let end = left == 0 && head.flags & END_STREAM != 0;
        FrameEvent::Data { stream: head.stream, bytes, counted: piece.len() + beside, end }
    }

    fn short<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<FrameEvent<'a>>, ProtocolViolation> {
        let number = || match *payload {
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
            _ => 0,
        };
        Ok(Some(match head.kind {
            HEADERS => {
                let block = unpadded(head, payload)?;
                if head.flags & WITH_PRIORITY != 0 {
                    let padded = usize::from(head.flags & PADDED != 0);
                    independent(head, payload.get(padded..).unwrap_or_default())?;
                }
                self.block.clear();
                self.block.extend_from_slice(block);
                return Ok(self.headers(head, head.flags & END_STREAM != 0, 1));
            }
            CONTINUATION => {
                let Some((_, end, frames)) = self.open else {
                    return Err(wrong("a head is continued that was not begun"));
                };
                if self.block.len() + payload.len() > MAX_BLOCK_BYTES || frames == MAX_BLOCK_FRAMES
                {
                    let text = "a head is too long";
                    return Err(ProtocolViolation { reason: ErrorReason::EnhanceYourCalm, text });
                }
                self.block.extend_from_slice(payload);
                return Ok(self.headers(head, end, frames + 1));
            }
            SETTINGS if head.flags & ACK != 0 => match payload.len() {
                0 => FrameEvent::Other,
                _ => return Err(sized("settings are acknowledged with a payload")),
            },
            SETTINGS => {
                self.settled = true;
                FrameEvent::Settings(settings(payload)?)
            }
            PING => {
                let bytes = <[u8; 8]>::try_from(payload).unwrap_or_default();
                if head.flags & ACK != 0 {
                    FrameEvent::Pong(bytes)
                } else {
                    FrameEvent::Ping(bytes)
                }
            }
            // Priorities are advice.
            PRIORITY => {
                independent(head, payload)?;
                FrameEvent::Other
            }
            RST_STREAM => FrameEvent::Reset { stream: head.stream },
            WINDOW_UPDATE => {
                FrameEvent::Window { stream: head.stream, more: number() & 0x7fff_ffff }
            }
            _ => FrameEvent::Other,
        }))
    }

    fn headers<'a>(&mut self, head: FrameHead, end: bool, frames: u32) -> Option<FrameEvent<'a>> {
        if head.flags & END_HEADERS == 0 {
            self.open = Some((head.stream, end, frames));
            return None;
        }
        self.open = None;
        Some(FrameEvent::Head { stream: head.stream, end })
    }
}

/// The block of a frame that may have padding and a priority.
fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], ProtocolViolation> {
    let short = || sized("a head is shorter than its flags say");
    let (padding, rest) = match head.flags & PADDED {
        0 => (0, payload),
        _ => payload.split_first().map(|(&n, rest)| (usize::from(n), rest)).ok_or_else(short)?,
    };
    let priority = if head.flags & WITH_PRIORITY == 0 { 0 } else { 5 };
    let rest = rest.get(priority..).ok_or_else(short)?;
    let end =
        rest.len().checked_sub(padding).ok_or_else(|| wrong("a head has too much padding"))?;
    rest.get(..end).ok_or_else(short)
}

/// Checks that a priority is not that of a stream behind itself (RFC 7540, section 5.3.1).
fn independent(head: FrameHead, priority: &[u8]) -> Result<(), ProtocolViolation> {
    match priority.first_chunk::<4>() {
        Some(on) if u32::from_be_bytes(*on) & 0x7fff_ffff == head.stream => {
            Err(wrong("a stream depends on itself"))
        }
        _ => Ok(()),
    }
}

fn settings(payload: &[u8]) -> Result<PeerSettings, ProtocolViolation> {
    let (entries, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(sized("settings have a wrong length"));
    }
    let mut settings = PeerSettings::default();
    for [a, b, c, d, e, f] in entries {
        let value = u32::from_be_bytes([*c, *d, *e, *f]);
        match u16::from_be_bytes([*a, *b]) {
            2 if value > 1 => return Err(wrong("a setting that is 0 or 1 is more")),
            4 if i64::from(value) > MAX_WINDOW => {
                let text = "a window is too large";
                return Err(ProtocolViolation { reason: ErrorReason::FlowControl, text });
            }
            4 => settings.window = Some(value),
            5 if !(MIN_MAX_FRAME_BYTES..1 << 24).contains(&(value as usize)) => {
                return Err(wrong("the limit of frames is out of its range"));
            }
            5 => settings.max_frame_bytes = Some(value as usize),
            // The table of heads is not used by this side, and what one does not know is left out.
            _ => {}
        }
    }
    Ok(settings)
}

fn write_head(out: &mut BytesMut, length: usize, kind: u8, flags: u8, stream: u32) {
    out.put_uint(length as u64, 3);
    out.put_slice(&[kind, flags]);
    out.put_u32(stream);
}

/// The settings of this side.
pub(super) fn write_settings(out: &mut BytesMut, entries: &[(u16, u32)]) {
    write_head(out, entries.len() * 6, SETTINGS, 0, 0);
    for (name, value) in entries {
        out.put_u16(*name);
        out.put_u32(*value);
    }
}

pub(super) fn write_settings_ack(out: &mut BytesMut) {
    write_head(out, 0, SETTINGS, ACK, 0);
}

pub(super) fn write_ping(out: &mut BytesMut, bytes: [u8; 8]) {
    write_head(out, 8, PING, 0, 0);
    out.put_slice(&bytes);
}

pub(super) fn write_pong(out: &mut BytesMut, bytes: [u8; 8]) {
    write_head(out, 8, PING, ACK, 0);
    out.put_slice(&bytes);
}

pub(super) fn write_reset(out: &mut BytesMut, stream: u32, reason: ErrorReason) {
    write_head(out, 4, RST_STREAM, 0, stream);
    out.put_u32(reason.code());
}

pub(super) fn write_go_away(out: &mut BytesMut, last: u32, violation: ProtocolViolation) {
    write_head(out, 8 + violation.text.len(), GOAWAY, 0, 0);
    out.put_u32(last);
    out.put_u32(violation.reason.code());
    out.put_slice(violation.text.as_bytes());
}

pub(super) fn write_window(out: &mut BytesMut, stream: u32, more: u32) {
    write_head(out, 4, WINDOW_UPDATE, 0, stream);
    out.put_u32(more);
}

/// The head of a data frame that does not end its stream.
pub(super) fn write_data_head(out: &mut BytesMut, stream: u32, length: usize) {
    write_head(out, length, DATA, 0, stream);
}

/// Ends a stream by an empty data frame.
pub(super) fn write_end(out: &mut BytesMut, stream: u32) {
    write_head(out, 0, DATA, END_STREAM, stream);
}

/// A head in as many frames as the peer's limit makes of it.
pub(super) fn write_headers(out: &mut BytesMut, stream: u32, block: &[u8], end: bool, most: usize) {
    let (first, mut rest) = block.split_at(block.len().min(most));
    let of_end = if end { END_STREAM } else { 0 };
    let of_last = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
    write_head(out, first.len(), HEADERS, of_end | of_last(rest), stream);
    out.put_slice(first);
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.len().min(most));
        rest = others;
        write_head(out, piece.len(), CONTINUATION, of_last(rest), stream);
        out.put_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        write_head(&mut out, payload.len(), kind, flags, stream);
        out.put_slice(payload);
        out.to_vec()
    }

    fn opened(frames: &[Vec<u8>]) -> Vec<u8> {
        [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), frames.concat()].concat()
    }

    /// Parses bytes that arrive in pieces of `cut` bytes and returns the events, with pieces of data joined.
    fn events(bytes: &[u8], cut: usize) -> Result<Vec<String>, ProtocolViolation> {
        let mut parser = FrameParser::new();
        let mut found = Vec::new();
        let mut data = (Vec::new(), 0);
        for mut input in bytes.chunks(cut) {
            while let Some(event) = parser.next(&mut input)? {
                match event {
                    FrameEvent::Data { bytes, counted, end, .. } if !end => {
                        data.0.extend_from_slice(bytes);
                        data.1 += counted;
                    }
                    FrameEvent::Data { stream, bytes, counted, .. } => {
                        data.0.extend_from_slice(bytes);
                        found.push(format!("{stream} {:?} {}", data.0, data.1 + counted));
                        data = (Vec::new(), 0);
                    }
                    FrameEvent::Head { stream, end } => {
                        found.push(format!("{stream} {:?} {end}", parser.block()));
                    }
                    event => found.push(format!("{event:?}")),
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let bytes = opened(&[
            frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 1, 0, 0, 5, 0, 1, 0, 0, 0, 99, 1, 2, 3, 4]),
            frame(
                HEADERS,
                END_HEADERS | PADDED | WITH_PRIORITY,
                1,
                &[2, 0, 0, 0, 0, 9, 7, 8, 0, 0],
            ),
            frame(DATA, PADDED, 1, &[3, 1, 2, 0, 0, 0]),
            frame(DATA, END_STREAM, 1, &[3, 4]),
            frame(HEADERS, END_STREAM, 3, &[1]),
            frame(CONTINUATION, 0, 3, &[2]),
            frame(CONTINUATION, END_HEADERS, 3, &[3]),
            frame(PING, 0, 0, &[1; 8]),
            frame(PING, ACK, 0, &[2; 8]),
            frame(200, 0, 9, &[0; 100]),
            frame(WINDOW_UPDATE, 0, 3, &[0x80, 0, 0, 5]),
            frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]),
        ]);
        let expected = events(&bytes, bytes.len()).unwrap();
        assert_eq!(expected[2], "1 [7, 8] false");
        assert_eq!(expected[3], "1 [1, 2, 3, 4] 8");
        assert_eq!(expected[4], "3 [1, 2, 3] true");
        assert_eq!(expected[8], "Window { stream: 3, more: 5 }");
        for cut in 1..40 {
            assert_eq!(events(&bytes, cut).unwrap(), expected, "pieces of {cut} bytes");
        }
    }

    #[test]
    fn violations_are_told_by_reason() {
        use ErrorReason::{EnhanceYourCalm, FlowControl, FrameSize, Protocol};
        let cases: Vec<(Vec<u8>, ErrorReason)> = vec![
            (b"GET / HTTP/1.1\r\n".to_vec(), Protocol),
            ([PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(), Protocol),
            (opened(&[frame(DATA, 0, 0, &[])]), Protocol),
            (opened(&[frame(PING, 0, 1, &[0; 8])]), Protocol),
            (opened(&[frame(PING, 0, 0, &[0; 7])]), FrameSize),
            (opened(&[frame(SETTINGS, ACK, 0, &[0; 6])]), FrameSize),
            (opened(&[frame(SETTINGS, 0, 0, &[0; 5])]), FrameSize),
            (opened(&[frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0, 0, 0])]), FlowControl),
            (opened(&[frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])]), Protocol),
            (opened(&[frame(DATA, PADDED, 1, &[5, 0])]), Protocol),
            (opened(&[frame(HEADERS, 0, 1, &[]), frame(DATA, 0, 1, &[])]), Protocol),
            (opened(&[frame(CONTINUATION, 0, 1, &[])]), Protocol),
            (opened(&[frame(PUSH_PROMISE, 0, 1, &[0; 4])]), Protocol),
            (opened(&[frame(HEADERS, 0, 1, &vec![0; MAX_BLOCK_BYTES + 1])]), EnhanceYourCalm),
            (opened(&[vec![0xff; 9]]), FrameSize),
        ];
        for (bytes, reason) in cases {
            assert_eq!(events(&bytes, 1000).unwrap_err().reason, reason, "{bytes:?}");
        }
        let endless = vec![frame(CONTINUATION, 0, 1, &[]); 100];
        let endless = [vec![frame(HEADERS, 0, 1, &[])], endless].concat();
        assert_eq!(events(&opened(&endless), 1000).unwrap_err().reason, EnhanceYourCalm);
    }

    #[test]
    fn long_heads_are_written_in_several_frames() {
        let mut out = BytesMut::new();
        let block: Vec<u8> = (0..100).collect();
        write_headers(&mut out, 5, &block, true, 40);
        let found = events(&opened(&[out.to_vec()]), 7).unwrap();
        assert_eq!(found[1], format!("5 {block:?} true"));
    }

    proptest::proptest! {
        #[test]
        fn any_frames_end_without_panic(
            frames in proptest::collection::vec(
                (0_u8..12, proptest::num::u8::ANY, 0_u32..5, proptest::collection::vec(0_u8..9, 0..30)), 0..12),
            cut in 1_usize..50
        ) {
            let frames: Vec<Vec<u8>> =
                frames.iter().map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
            let bytes = opened(&frames);
            proptest::prop_assert_eq!(events(&bytes, cut), events(&bytes, bytes.len()));
        }
    }
}
