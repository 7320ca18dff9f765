//! Beginnings of long texts: as much as it takes to know that a text has more tokens than may be.

use super::{SpecialTokens, Tokenizer};
use crate::error::Result;

/// Bytes of a text that are made tokens at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Texts of so many bytes are made tokens as a whole, however few tokens they may have.
const SHORT_BYTES: usize = 256 * 1024;
/// Bytes for each token of texts that are made tokens as a whole. Texts that people write have about four.
const TOKEN_BYTES: usize = 8;
/// Tokens that a piece may have more than its part of the whole text, because of the cuts at its ends.
const CUT_TOKENS: usize = 4;
/// Bytes at the end of a piece in which a place between words is looked for.
const SEAM_BYTES: usize = 1024;

impl Tokenizer {
    /// Returns the beginning of a text that certainly has more tokens than `most`, or all of it: without the memory and
    /// the time that the tokens of a very long text take.
    ///
    /// # Errors
    /// Fails on text that the tokenizer cannot express.
    pub fn beginning<'t>(&self, text: &'t str, most: usize) -> Result<&'t str> {
        if text.len() <= SHORT_BYTES.max(most.saturating_mul(TOKEN_BYTES)) {
            return Ok(text);
        }
        let mut count: usize = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(piece_end(rest));
            rest = behind;
            let tokens = self.encode(piece, SpecialTokens::Omit)?.len();
            count = count.saturating_add(tokens.saturating_sub(CUT_TOKENS));
            if count > most {
                return Ok(text.strip_suffix(rest).unwrap_or(text));
            }
        }
        Ok(text)
    }

    /// Returns whether a text certainly has more tokens than `most`, without making tokens of all of it. Texts of which
    /// that is not certain are short enough to be made tokens as a whole.
    ///
    /// # Errors
    /// Fails on text that the tokenizer cannot express.
    pub fn exceeds(&self, text: &str, most: usize) -> Result<bool> {
        Ok(self.beginning(text, most)?.len() < text.len())
    }
}

/// Finds the end of the first piece of a text: between words where there are any.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let boundary = |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let end = boundary(PIECE_BYTES);
    let from = boundary(end - SEAM_BYTES);
    let seam = text.get(from..end).and_then(|seam| seam.rfind(char::is_whitespace));
    seam.map_or(end, |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer of a few words.
    fn words() -> Tokenizer {
        let value = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
            "post_processor": null,
            "model": {
                "type": "WordLevel", "vocab": {"[UNK]": 0, "one": 1, "two": 2}, "unk_token": "[UNK]",
            },
        });
        Tokenizer::from_json(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_beginning_of_a_long_text_has_more_tokens_than_may_be() {
        let tokenizer = words();
        let text = "one two ".repeat(200_000);
        for most in [0, 10, 1000, 30_000] {
            let beginning = tokenizer.beginning(&text, most).unwrap();
            assert!(text.starts_with(beginning) && beginning.len() < text.len(), "{most}");
            let tokens = tokenizer.encode(beginning, SpecialTokens::Omit).unwrap().len();
            assert!(tokens > most, "{most}: {tokens}");
            assert!(beginning.len() < 8 * most + 3 * PIECE_BYTES, "{most}: {}", beginning.len());
            assert!(tokenizer.exceeds(&text, most).unwrap());
        }
        assert_eq!(tokenizer.beginning(&text, 400_000).unwrap(), text);
        assert_eq!(tokenizer.beginning("one two", 0).unwrap(), "one two");
        assert!(!tokenizer.exceeds(&text, 1_000_000).unwrap());
    }

    #[test]
    fn pieces_end_between_words_and_never_inside_a_letter() {
        let spaced = "word ".repeat(20_000);
        assert!(spaced.get(piece_end(&spaced)..).unwrap().starts_with(" word"));
        let letters = "\u{20ac}".repeat(30_000);
        let end = piece_end(&letters);
        assert!(letters.is_char_boundary(end) && end > PIECE_BYTES - 4);
        assert_eq!(piece_end("short"), 5);
    }
}
