//! Streams that are over, as far as it matters for frames of them that still come (RFC 9113, section 5.1).

use std::collections::VecDeque;
use std::ops::Range;

/// Streams whose end is remembered: twice those that may be open, as a client may have all of them reset at once.
const MAX_ENDS: usize = 2048;
/// Gaps in the numbers of a client that are remembered.
const MAX_GAPS: usize = 64;

/// Way in which a stream ended before the client had sent all of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// This side has reset it; what the client had on its way still comes.
    Here,
    /// The client has reset it.
    ByClient,
}

/// Verdict on a frame of a stream that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateFrame {
    /// It was sent before the client knew of the end.
    Ignored,
    /// It is an error of the stream.
    StreamError,
    /// The client had said that nothing more comes: an error of the connection.
    ConnectionError,
    /// The client has passed over the number of the stream, which has never begun.
    NeverBegun,
}

/// Ends of streams, the oldest first.
#[derive(Debug, Default)]
pub(super) struct ClosedStreams {
    ends: VecDeque<(u32, StreamEnd)>,
    gaps: VecDeque<Range<u32>>,
    ignored: u32,
}

impl ClosedStreams {
    /// Notes a stream that this side has reset while the client may still be sending.
    pub(super) fn reset_here(&mut self, stream: u32) {
        self.note(stream, StreamEnd::Here);
    }

    /// Notes a stream that the client has reset.
    pub(super) fn reset_by_client(&mut self, stream: u32) {
        self.note(stream, StreamEnd::ByClient);
    }

    fn note(&mut self, stream: u32, end: StreamEnd) {
        if self.ends.len() == MAX_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back((stream, end));
    }

    /// Notes that a stream begins behind another one. Numbers between them are passed over.
    pub(super) fn begin(&mut self, before: u32, stream: u32) {
        let first = before.saturating_add(1);
        // The next number of a client is two higher; the first of all is 1.
        if stream <= first.saturating_add(1) {
            return;
        }
        if self.gaps.len() == MAX_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(first..stream);
    }

    /// Notes a stream that began when this side had said that it takes no more.
    pub(super) fn ignore(&mut self, stream: u32) {
        self.ignored = self.ignored.max(stream);
        self.reset_here(stream);
    }

    /// Returns the highest number of a stream that was left out.
    pub(super) fn ignored(&self) -> u32 {
        self.ignored
    }

    /// Judges a frame of data or of a head.
    pub(super) fn judge(&self, stream: u32) -> LateFrame {
        if self.gaps.iter().any(|gap| gap.contains(&stream)) {
            return LateFrame::NeverBegun;
        }
        let end = self.ends.iter().rev().find(|(known, _)| *known == stream);
        match end {
            Some((_, StreamEnd::Here)) => LateFrame::Ignored,
            Some((_, StreamEnd::ByClient)) => LateFrame::StreamError,
            None => LateFrame::ConnectionError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_judged_by_how_their_stream_ended() {
        let mut closed = ClosedStreams::default();
        for (before, stream) in [(0, 1), (1, 3), (3, 9), (9, 11)] {
            closed.begin(before, stream);
        }
        closed.reset_here(3);
        closed.reset_by_client(9);
        closed.ignore(13);
        let found = [1, 3, 5, 7, 9, 11, 13].map(|stream| closed.judge(stream));
        assert_eq!(
            found,
            [
                LateFrame::ConnectionError,
                LateFrame::Ignored,
                LateFrame::NeverBegun,
                LateFrame::NeverBegun,
                LateFrame::StreamError,
                LateFrame::ConnectionError,
                LateFrame::Ignored,
            ]
        );
        assert_eq!(closed.ignored(), 13);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut closed = ClosedStreams::default();
        for stream in (1..100_001).step_by(10) {
            closed.begin(stream.max(10) - 10, stream);
            closed.reset_here(stream);
        }
        assert_eq!((closed.ends.len(), closed.gaps.len()), (MAX_ENDS, MAX_GAPS));
        assert_eq!(closed.judge(99_991), LateFrame::Ignored);
    }
}
