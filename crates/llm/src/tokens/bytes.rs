//! The bytes that each token stands for.

use serde_json::Value;

use super::MAX_VOCABULARY;
use crate::error::{LlmError, LlmErrorKind, Result};

/// Treatment of the space before the first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstSpace {
    /// It stays.
    Keep,
    /// One space at the very beginning goes.
    StripOne,
    /// All spaces of the first token go.
    DropAll,
}

/// How names of tokens become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenDecoding {
    /// Each character of a name stands for a byte, as GPT-2 does it.
    ByteLevel,
    /// `space` stands for a space, and `<0x41>` for a byte, as SentencePiece does it.
    SentencePiece { space: char, first: FirstSpace },
    /// Text depends on the tokens before, so the tokenizer's own decoder is asked.
    Contextual,
}

impl TokenDecoding {
    /// Looks which of the known ways a `tokenizer.json` decodes in.
    pub(crate) fn in_file(root: &Value) -> Self {
        Self::of(root.get("decoder").unwrap_or(&Value::Null))
    }

    /// Looks which of the known ways the `decoder` of a `tokenizer.json` is.
    pub(crate) fn of(decoder: &Value) -> Self {
        match kind(decoder) {
            "ByteLevel" => Self::ByteLevel,
            "Metaspace" => {
                let never = decoder.get("prepend_scheme").and_then(Value::as_str) == Some("never")
                    || decoder.get("add_prefix_space") == Some(&Value::Bool(false));
                let first = if never { FirstSpace::Keep } else { FirstSpace::DropAll };
                let space = character(decoder.get("replacement")).unwrap_or('▁');
                Self::SentencePiece { space, first }
            }
            "Sequence" => Self::of_sequence(decoder),
            _ => Self::Contextual,
        }
    }

    fn of_sequence(decoder: &Value) -> Self {
        let Some(parts) = decoder.get("decoders").and_then(Value::as_array) else {
            return Self::Contextual;
        };
        if let [only] = parts.as_slice() {
            return Self::of(only);
        }
        let mut space = None;
        let mut first = FirstSpace::Keep;
        let mut fused = false;
        for part in parts {
            match kind(part) {
                "Replace" if space.is_none() && !fused => {
                    let from = character(part.get("pattern").and_then(|p| p.get("String")));
                    let to = part.get("content").and_then(Value::as_str);
                    match (from, to) {
                        (Some(from), Some(" ")) => space = Some(from),
                        _ => return Self::Contextual,
                    }
                }
                "ByteFallback" if !fused => {}
                "Fuse" => fused = true,
                "Strip" if fused && is_one_leading_space(part) => first = FirstSpace::StripOne,
                _ => return Self::Contextual,
            }
        }
        match space {
            Some(space) => Self::SentencePiece { space, first },
            None => Self::Contextual,
        }
    }
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or("")
}

fn is_one_leading_space(part: &Value) -> bool {
    let number = |name| part.get(name).and_then(Value::as_u64);
    character(part.get("content")) == Some(' ')
        && number("start") == Some(1)
        && number("stop") == Some(0)
}

fn character(value: Option<&Value>) -> Option<char> {
    let mut characters = value?.as_str()?.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// The bytes of all tokens, one behind the other.
#[derive(Debug)]
pub(crate) struct TokenBytes {
    bytes: Vec<u8>,
    /// Where each token's bytes begin, and one more.
    starts: Vec<u32>,
    special: Vec<bool>,
    decoding: TokenDecoding,
}

impl TokenBytes {
    /// Makes the table of the ids below `size`.
    ///
    /// # Errors
    /// Ids or texts that are too large.
    pub(crate) fn new(
        tokenizer: &tokenizers::Tokenizer,
        size: u32,
        decoding: TokenDecoding,
    ) -> Result<Self> {
        if size > MAX_VOCABULARY {
            let message = format!("id {} found, expected less than {MAX_VOCABULARY}", size - 1);
            return Err(LlmError::new(LlmErrorKind::Tokenizer, "model.vocab", message));
        }
        let added = tokenizer.get_added_vocabulary();
        let mut table = Self { bytes: Vec::new(), starts: vec![0], special: Vec::new(), decoding };
        for id in 0..size {
            let name = added.simple_id_to_token(id).or_else(|| tokenizer.id_to_token(id));
            let name = name.unwrap_or_default();
            table.add(&name);
            table.special.push(added.is_special_token(&name));
            let end = u32::try_from(table.bytes.len()).map_err(|_| {
                LlmError::new(
                    LlmErrorKind::Tokenizer,
                    "model.vocab",
                    "tokens of more than 4 GiB in all",
                )
            })?;
            table.starts.push(end);
        }
        Ok(table)
    }

    fn add(&mut self, name: &str) {
        match self.decoding {
            TokenDecoding::ByteLevel => {
                let start = self.bytes.len();
                for character in name.chars() {
                    let Some(byte) = byte_of(character) else {
                        self.bytes.truncate(start);
                        self.bytes.extend_from_slice(name.as_bytes());
                        return;
                    };
                    self.bytes.push(byte);
                }
            }
            TokenDecoding::SentencePiece { space, .. } => match fallback_byte(name) {
                Some(byte) => self.bytes.push(byte),
                None => {
                    let mut buffer = [0; 4];
                    for character in name.chars() {
                        let character = if character == space { ' ' } else { character };
                        let text = character.encode_utf8(&mut buffer);
                        self.bytes.extend_from_slice(text.as_bytes());
                    }
                }
            },
            TokenDecoding::Contextual => self.bytes.extend_from_slice(name.as_bytes()),
        }
    }

    pub(crate) fn decoding(&self) -> TokenDecoding {
        self.decoding
    }

    pub(crate) fn len(&self) -> usize {
        self.special.len()
    }

    pub(crate) fn of(&self, id: u32) -> Option<&[u8]> {
        let id = usize::try_from(id).ok()?;
        let start = usize::try_from(*self.starts.get(id)?).ok()?;
        let end = usize::try_from(*self.starts.get(id + 1)?).ok()?;
        self.bytes.get(start..end).filter(|bytes| !bytes.is_empty())
    }

    pub(crate) fn is_special(&self, id: u32) -> bool {
        usize::try_from(id).ok().and_then(|id| self.special.get(id)) == Some(&true)
    }
}

/// The byte of `<0x41>`.
pub(crate) fn fallback_byte(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The byte that a character of a byte-level name stands for: printable Latin-1 characters stand
/// for themselves, and the other bytes in their order for the characters from U+0100 on.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    let code = u32::from(character);
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut found = [false; 256];
        for code in 0..0x200 {
            if let Some(byte) = char::from_u32(code).and_then(byte_of) {
                assert!(!std::mem::replace(&mut found[usize::from(byte)], true), "{byte}");
            }
        }
        assert!(found.iter().all(|f| *f));
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
    }

    #[test]
    fn fallback_bytes_have_two_digits() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for name in ["<0x+A>", "<0xA>", "<0x00A>", "0x0A", "<0xGG>"] {
            assert_eq!(fallback_byte(name), None, "{name}");
        }
    }

    #[test]
    fn decoders_are_recognised_by_their_parts() {
        let of = |text: &str| TokenDecoding::of(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"type":"ByteLevel"}"#), TokenDecoding::ByteLevel);
        assert_eq!(of("null"), TokenDecoding::Contextual);
        assert_eq!(
            of(r#"{"type":"WordPiece","prefix":"+","cleanup":true}"#),
            TokenDecoding::Contextual
        );
        let replace = r#"{"type":"Replace","pattern":{"String":"▁"},"content":" "}"#;
        let strip = r#"{"type":"Strip","content":" ","start":1,"stop":0}"#;
        let rest = r#"{"type":"ByteFallback"},{"type":"Fuse"}"#;
        let piece = |first| TokenDecoding::SentencePiece { space: '▁', first };
        let sequence = |parts: &str| of(&format!(r#"{{"type":"Sequence","decoders":[{parts}]}}"#));
        assert_eq!(sequence(&format!("{replace},{rest},{strip}")), piece(FirstSpace::StripOne));
        assert_eq!(sequence(&format!("{replace},{rest}")), piece(FirstSpace::Keep));
        assert_eq!(sequence(&format!("{replace},{strip}")), TokenDecoding::Contextual);
        assert_eq!(of(r#"{"type":"Metaspace","replacement":"▁"}"#), piece(FirstSpace::DropAll));
    }
}
