//! Tokens to text, one at a time.

use super::bytes::{FirstSpace, TokenDecoding};
use super::{SpecialText, Tokenizer};

/// Tokens of the window of a contextual decoder: when it is full, its first half goes.
const WINDOW: usize = 16;

/// Where a stream's first token lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStart {
    /// At the beginning of a text: the space that SentencePiece puts before the first word goes.
    OfText,
    /// Behind a prompt: spaces stay as they are.
    AfterPrompt,
}

/// Decodes a stream of tokens: bytes that are no whole character yet are held back.
///
/// The pieces of text together are what [`Tokenizer::decode`] makes of all tokens.
#[derive(Debug, Clone)]
pub struct TextStream {
    special: SpecialText,
    beginning: StreamStart,
    /// Whether a token has left text.
    started: bool,
    /// Bytes of a character that is not whole.
    held: Vec<u8>,
    /// The last tokens, for decoders that look back, and their text that was given out.
    window: Vec<u32>,
    shown: String,
    /// U+FFFD at the end of the window's text, which may still become a character.
    tail: String,
}

impl TextStream {
    /// A stream before its first token.
    pub fn new(beginning: StreamStart, special: SpecialText) -> Self {
        Self {
            special,
            beginning,
            started: false,
            held: Vec::new(),
            window: Vec::new(),
            shown: String::new(),
            tail: String::new(),
        }
    }

    /// Appends to `out` the text that `id` completes.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32, out: &mut String) {
        let table = tokenizer.table();
        let Some(bytes) = table.of(id) else { return };
        if self.special == SpecialText::Skip && table.is_special(id) {
            return;
        }
        match table.decoding() {
            TokenDecoding::ByteLevel => self.push_bytes(bytes, out),
            TokenDecoding::SentencePiece { first, .. } => {
                let bytes = self.without_first_space(bytes, first);
                self.push_bytes(bytes, out);
            }
            TokenDecoding::Contextual => self.push_contextual(tokenizer, id, out),
        }
    }

    /// Appends what is still held back: U+FFFD for a character that never became whole.
    pub fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            self.held.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
        out.push_str(&std::mem::take(&mut self.tail));
    }

    /// Whether bytes are held back.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty() || !self.tail.is_empty()
    }

    fn without_first_space<'a>(&mut self, bytes: &'a [u8], first: FirstSpace) -> &'a [u8] {
        let at_start = !std::mem::replace(&mut self.started, true);
        if !at_start || self.beginning == StreamStart::AfterPrompt {
            return bytes;
        }
        match first {
            FirstSpace::Keep => bytes,
            FirstSpace::StripOne => bytes.strip_prefix(b" ").unwrap_or(bytes),
            FirstSpace::DropAll => {
                let spaces = bytes.iter().take_while(|byte| **byte == b' ').count();
                bytes.get(spaces..).unwrap_or(bytes)
            }
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], out: &mut String) {
        self.held.extend_from_slice(bytes);
        let mut used = 0;
        for chunk in self.held.utf8_chunks() {
            out.push_str(chunk.valid());
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if used + invalid.len() == self.held.len() && may_grow(invalid) {
                break;
            }
            out.push(char::REPLACEMENT_CHARACTER);
            used += invalid.len();
        }
        self.held.drain(..used);
    }

    /// Decodes the window with and without the new token; the difference is the token's text.
    fn push_contextual(&mut self, tokenizer: &Tokenizer, id: u32, out: &mut String) {
        if self.window.is_empty() && self.beginning == StreamStart::AfterPrompt {
            // Decoders treat the first token apart; an empty text before it has no such token, so
            // the first one is decoded twice and its second text taken.
            self.window.push(id);
            self.shown = tokenizer.decode_whole(&self.window);
        }
        self.window.push(id);
        let mut text = self.split_tail(tokenizer.decode_whole(&self.window));
        if let Some(new) = text.get(shared_prefix(&self.shown, &text)..) {
            out.push_str(new);
        }
        if self.window.len() >= WINDOW {
            self.window.drain(..WINDOW / 2);
            text = self.split_tail(tokenizer.decode_whole(&self.window));
        }
        self.shown = text;
    }

    /// Keeps U+FFFD at the end of `text` back.
    fn split_tail(&mut self, mut text: String) -> String {
        let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER).len();
        self.tail = text.split_off(whole);
        text
    }
}

/// Whether bytes at the end of a text may be the beginning of a character.
fn may_grow(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn shared_prefix(a: &str, b: &str) -> usize {
    let same = a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y);
    same.map_or(a.len().min(b.len()), |((at, _), _)| at)
}
