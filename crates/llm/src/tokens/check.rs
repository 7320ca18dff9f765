//! Checks of a `tokenizer.json` before the library reads it: what it would take without a bound,
//! index without looking, or unwrap.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{MAX_VOCABULARY, charsmap};
use crate::error::{LlmError, LlmErrorKind, Result};

/// The most parts of normalizers, pre-tokenizers, post-processors and decoders together.
const MAX_PARTS: usize = 1024;

/// How often longer replacements may make a text together.
const MAX_GROWTH: u64 = 4096;

/// Words of WordPiece are cut in time that grows with the square of their length.
const MAX_WORD_CHARACTERS: u64 = 1000;

/// The most pieces around a text.
const MAX_TEMPLATE_PIECES: usize = 1024;

fn wrong<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(LlmError::new(LlmErrorKind::Tokenizer, place, message))
}

/// Checks a whole file, and brings it to the form that the library reads: texts are neither cut nor
/// filled up, the model has a type, and added tokens keep their ids.
pub(super) fn check(root: &mut Value) -> Result<()> {
    let Some(root) = root.as_object_mut() else {
        return wrong("file", "expected a JSON object");
    };
    match root.get("version").and_then(Value::as_str) {
        Some("1.0") => {}
        Some(found) => return wrong("version", format!("'{found}' found, expected '1.0'")),
        None => return wrong("version", "nothing found, expected '1.0'"),
    }
    root.insert("truncation".to_owned(), Value::Null);
    root.insert("padding".to_owned(), Value::Null);
    for (key, growing) in [
        ("normalizer", true),
        ("decoder", true),
        ("pre_tokenizer", false),
        ("post_processor", false),
    ] {
        let mut parts = PipelineParts { count: 0, growth: 1 };
        if let Some(part) = root.get(key) {
            parts.check(part, key)?;
        }
        if growing && parts.growth > MAX_GROWTH {
            let message = format!("replacements make a text up to {} times longer", parts.growth);
            return wrong(key, format!("{message}, expected at most {MAX_GROWTH}"));
        }
    }
    let added = check_added(root.get("added_tokens"))?;
    let Some(model) = root.get_mut("model").and_then(Value::as_object_mut) else {
        return wrong("model", "expected an object");
    };
    check_model(model)?;
    keep_added_ids(model, &added)
}

/// Parts that have been seen of one pipeline.
struct PipelineParts {
    count: usize,
    growth: u64,
}

impl PipelineParts {
    fn check(&mut self, part: &Value, place: &str) -> Result<()> {
        let part = match part {
            Value::Null => return Ok(()),
            Value::Object(part) => part,
            _ => return wrong(place, "expected an object or null"),
        };
        self.count += 1;
        if self.count > MAX_PARTS {
            return wrong(place, format!("more than {MAX_PARTS} parts"));
        }
        for list in ["normalizers", "pretokenizers", "processors", "decoders"] {
            let inner = part.get(list).and_then(Value::as_array);
            for (i, inner) in inner.into_iter().flatten().enumerate() {
                self.check(inner, &format!("{place}.{list}[{i}]"))?;
            }
        }
        for key in ["content", "prepend"] {
            let length = part.get(key).and_then(Value::as_str).map_or(0, str::len);
            let length = u64::try_from(length).unwrap_or(u64::MAX);
            self.growth = self.growth.saturating_mul(length.max(1));
        }
        check_part(part, place)
    }
}

fn check_part(part: &Map<String, Value>, place: &str) -> Result<()> {
    let precompiled = part.get("type").and_then(Value::as_str) == Some("Precompiled");
    let map = part.get("precompiled_charsmap");
    if let Some(map) = map.or(precompiled.then_some(&Value::Null)) {
        check_charsmap(map, &format!("{place}.precompiled_charsmap"))?;
    }
    let number = |key: &str| part.get(key).and_then(Value::as_u64);
    if number("length") == Some(0) {
        return wrong(format!("{place}.length"), "0 found, expected at least 1");
    }
    if let Some(stop) = number("stop").filter(|stop| *stop > 0) {
        return wrong(format!("{place}.stop"), format!("{stop} found, only 0 is supported"));
    }
    for (key, only_first) in [("single", true), ("pair", false)] {
        if let Some(pieces) = part.get(key).and_then(Value::as_array) {
            let special = part.get("special_tokens").and_then(Value::as_object);
            check_template(pieces, special, only_first).map_err(|(i, m)| {
                LlmError::new(LlmErrorKind::Tokenizer, format!("{place}.{key}[{i}]"), m)
            })?;
        }
    }
    Ok(())
}

fn check_charsmap(map: &Value, place: &str) -> Result<()> {
    let Some(text) = map.as_str() else { return wrong(place, "expected a string") };
    match decode_base64(text) {
        Some(bytes) => charsmap::check(&bytes).or_else(|m| wrong(place, m)),
        None => wrong(place, "expected base64"),
    }
}

/// Decodes padded base64 of the standard alphabet.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for byte in group {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * (4 - group.len());
        let whole = group.len() * 6 / 8;
        bytes.extend(bits.to_be_bytes().get(1..=whole)?);
    }
    Some(bytes)
}

/// Looks whether the pieces name the text and tokens that exist; the error says which does not.
fn check_template(
    pieces: &[Value],
    special: Option<&Map<String, Value>>,
    only_first: bool,
) -> std::result::Result<(), (usize, String)> {
    if pieces.len() > MAX_TEMPLATE_PIECES {
        return Err((0, format!("{} pieces, at most {MAX_TEMPLATE_PIECES}", pieces.len())));
    }
    for (i, piece) in pieces.iter().enumerate() {
        let id = |kind: &str| piece.get(kind).and_then(|p| p.get("id")).and_then(Value::as_str);
        if only_first && id("Sequence").is_some_and(|id| id != "A") {
            return Err((i, "the second text found where there is only one".to_owned()));
        }
        let Some(name) = id("SpecialToken") else { continue };
        let token = special.and_then(|s| s.get(name));
        let length =
            |key: &str| token.and_then(|t| t.get(key)).and_then(Value::as_array).map(Vec::len);
        match (length("ids"), length("tokens")) {
            (Some(ids), Some(tokens)) if ids == tokens && ids <= MAX_TEMPLATE_PIECES => {}
            _ => return Err((i, format!("no special token {name:?} with as many ids as tokens"))),
        }
    }
    Ok(())
}

/// The added tokens by id and content.
fn check_added(added: Option<&Value>) -> Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    for (i, token) in added.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let place = format!("added_tokens[{i}]");
        let Some(content) = token.get("content").and_then(Value::as_str) else {
            return wrong(place, "expected a string `content`");
        };
        let id = check_id(token.get("id"), &place)?;
        found.push((id, content.to_owned()));
    }
    Ok(found)
}

fn check_id(id: Option<&Value>, place: &str) -> Result<u64> {
    match id.and_then(Value::as_u64) {
        Some(id) if id < u64::from(MAX_VOCABULARY) => Ok(id),
        _ => {
            let found = id.map_or_else(|| "nothing".to_owned(), Value::to_string);
            wrong(place, format!("id {found} found, expected 0 to {}", MAX_VOCABULARY - 1))
        }
    }
}

fn check_model(model: &mut Map<String, Value>) -> Result<()> {
    if model.get("type").and_then(Value::as_str).is_none() {
        let kind = if model.contains_key("merges") {
            "BPE"
        } else if model.get("vocab").is_some_and(Value::is_array) {
            "Unigram"
        } else if model.contains_key("continuing_subword_prefix") {
            "WordPiece"
        } else {
            "WordLevel"
        };
        model.insert("type".to_owned(), json!(kind));
    }
    match model.get("vocab") {
        Some(Value::Object(vocabulary)) => {
            for (name, id) in vocabulary {
                check_id(Some(id), &format!("model.vocab[{name:?}]"))?;
            }
        }
        Some(Value::Array(list)) if list.len() <= MAX_VOCABULARY as usize => {}
        _ => return wrong("model.vocab", "expected an object or a list of a bounded size"),
    }
    match model.get("type").and_then(Value::as_str) {
        // Merges are checked where the model is taken apart.
        Some("BPE") if !model.get("vocab").is_some_and(Value::is_object) => {
            wrong("model.vocab", "expected an object")
        }
        Some("WordPiece") => match model.get("max_input_chars_per_word").and_then(Value::as_u64) {
            Some(most) if most > MAX_WORD_CHARACTERS => wrong(
                "model.max_input_chars_per_word",
                format!("{most} found, expected at most {MAX_WORD_CHARACTERS}"),
            ),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The library numbers added tokens behind the vocabulary, whatever ids the file gives them. Where
/// this would change an id, the token becomes a part of the vocabulary, where ids stay.
fn keep_added_ids(model: &mut Map<String, Value>, added: &[(u64, String)]) -> Result<()> {
    let (known, mut next): (HashSet<&str>, u64) = match model.get("vocab") {
        Some(Value::Object(vocabulary)) => {
            (vocabulary.keys().map(String::as_str).collect(), vocabulary.len() as u64)
        }
        Some(Value::Array(list)) => {
            (list.iter().filter_map(|entry| entry.get(0)?.as_str()).collect(), list.len() as u64)
        }
        _ => return Ok(()),
    };
    let mut new: Vec<&(u64, String)> =
        added.iter().filter(|(_, content)| !known.contains(content.as_str())).collect();
    let mut moved = None;
    for (id, content) in &new {
        if *id != next {
            moved = Some(content.clone());
        }
        next += 1;
    }
    let Some(moved) = moved else { return Ok(()) };
    let Some(vocabulary) = model.get_mut("vocab").and_then(Value::as_object_mut) else {
        return wrong(
            "added_tokens",
            format!("the id of {moved:?} does not follow the vocabulary"),
        );
    };
    for (id, content) in new.drain(..) {
        vocabulary.insert(content.clone(), json!(id));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_as_it_is_defined() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg==", b"foob"),
            ("+/+/", &[0xFB, 0xFF, 0xBF]),
        ] {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Z", "Zg=", "Zg", "Z===", "Zm9*", "=", "===="] {
            assert_eq!(decode_base64(text), None, "{text}");
        }
    }
}
