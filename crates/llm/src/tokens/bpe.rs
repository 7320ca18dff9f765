//! Byte-pair models, which are built from their parts: as JSON a vocabulary of 262144 tokens takes seconds.

use serde_json::{Map, Value, json};
use tokenizers::AddedToken;
use tokenizers::models::bpe::{BpeBuilder, Merges, Vocab};

use crate::error::{LlmError, LlmErrorKind, Result};

/// Model of a tokenizer, not yet built.
pub(super) struct BpeModel {
    /// Ids by name.
    pub(super) vocabulary: Vocab,
    /// Pairs of tokens that become one, the first ones first.
    pub(super) merges: Merges,
    /// All its other settings.
    pub(super) settings: BpeBuilder,
}

/// A tokenizer of the library with one more than its largest id.
pub(super) struct AssembledTokenizer {
    pub(super) inner: tokenizers::Tokenizer,
    pub(super) size: u32,
}

fn wrong(place: impl Into<String>, message: impl Into<String>) -> LlmError {
    LlmError::new(LlmErrorKind::Tokenizer, place, message)
}

/// A model without tokens, which holds the place of one that is built from its parts.
pub(super) fn stand_in() -> Value {
    json!({"type": "BPE", "vocab": {}, "merges": []})
}

impl BpeModel {
    /// Takes the model out of a checked `tokenizer.json`; nothing where it is of another sort.
    ///
    /// # Errors
    /// Settings of a wrong form, and merges of tokens that are not in the vocabulary, by their place.
    pub(super) fn take(root: &mut Value) -> Result<Option<Self>> {
        let Some(model) = root.get_mut("model").filter(|model| model["type"] == "BPE") else {
            return Ok(None);
        };
        let Value::Object(mut model) = std::mem::replace(model, stand_in()) else {
            return Ok(None);
        };
        let Some(Value::Object(names)) = model.remove("vocab") else {
            return Err(wrong("model.vocab", "expected an object"));
        };
        // Ids were checked.
        let id = |id: Value| id.as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
        let vocabulary: Vocab = names.into_iter().map(|(name, value)| (name, id(value))).collect();
        let Some(Value::Array(list)) = model.remove("merges") else {
            return Err(wrong("model.merges", "expected a list"));
        };
        let prefix = text(&model, "continuing_subword_prefix")?;
        let merges = merges(list, &vocabulary, prefix.as_deref().unwrap_or_default())?;
        let mut settings = BpeBuilder::new();
        if let Some(dropout) = number(&model, "dropout")? {
            settings = settings.dropout(dropout);
        }
        if let Some(token) = text(&model, "unk_token")? {
            settings = settings.unk_token(token);
        }
        if let Some(prefix) = prefix {
            settings = settings.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = text(&model, "end_of_word_suffix")? {
            settings = settings.end_of_word_suffix(suffix);
        }
        let settings = settings
            .fuse_unk(flag(&model, "fuse_unk")?)
            .byte_fallback(flag(&model, "byte_fallback")?)
            .ignore_merges(flag(&model, "ignore_merges")?);
        Ok(Some(Self { vocabulary, merges, settings }))
    }

    /// Builds the tokenizer whose other parts `root` describes.
    ///
    /// # Errors
    /// Parts that the library refuses.
    pub(super) fn assemble(self, mut root: Value) -> Result<AssembledTokenizer> {
        let added = root.as_object_mut().and_then(|root| root.remove("added_tokens"));
        let failed = |error: &dyn std::fmt::Display| wrong("tokenizer", error.to_string());
        let mut inner: tokenizers::Tokenizer =
            root.to_string().parse().map_err(|error| failed(&error))?;
        let largest = self.vocabulary.values().max().copied();
        let Self { vocabulary, merges, settings } = self;
        let model = settings.vocab_and_merges(vocabulary, merges).build();
        inner.with_model(model.map_err(|error| failed(&error))?);
        let added = added.as_ref().and_then(Value::as_array).into_iter().flatten().enumerate();
        let added: Result<Vec<AddedToken>> =
            added.map(|(at, token)| added_token(at, token)).collect();
        inner.add_tokens(added?).map_err(|error| failed(&error))?;
        let more = inner.get_added_vocabulary().get_vocab().values().max().copied();
        let size = largest.max(more).map_or(0, |largest| largest.saturating_add(1));
        Ok(AssembledTokenizer { inner, size })
    }
}

/// Reads merges, each two names with a space between or in a list. The library joins a merge in a buffer of the longest
/// token's size, and cuts the prefix of continued words off without looking whether it is there.
fn merges(list: Vec<Value>, vocabulary: &Vocab, prefix: &str) -> Result<Merges> {
    let mut merges = Merges::with_capacity(list.len());
    let mut joined = String::new();
    for (at, merge) in list.into_iter().enumerate() {
        let place = || format!("model.merges[{at}]");
        let pair = match merge {
            Value::String(line) if line.starts_with("#version") => continue,
            Value::String(line) => {
                line.split_once(' ').map(|(one, other)| (one.to_owned(), other.to_owned()))
            }
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::String(one), Value::String(other)]) => Some((one, other)),
                _ => None,
            },
            _ => None,
        };
        let (first, second) = pair.ok_or_else(|| wrong(place(), "expected two tokens"))?;
        let Some(end) = second.strip_prefix(prefix) else {
            let message = format!("{second:?} found, expected to begin with {prefix:?}");
            return Err(wrong(place(), message));
        };
        joined.clear();
        joined.push_str(&first);
        joined.push_str(end);
        for token in [&first, &second, &joined] {
            if !vocabulary.contains_key(token.as_str()) {
                return Err(wrong(place(), format!("{token:?} is not in the vocabulary")));
            }
        }
        merges.push((first, second));
    }
    Ok(merges)
}

fn added_token(at: usize, token: &Value) -> Result<AddedToken> {
    let place = |key: &str| format!("added_tokens[{at}].{key}");
    let switch = |key: &str| {
        let found = token.get(key).and_then(Value::as_bool);
        found.ok_or_else(|| wrong(place(key), "expected true or false"))
    };
    let content = token.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| wrong(place("content"), "expected a string"))?;
    Ok(AddedToken::from(content, switch("special")?)
        .single_word(switch("single_word")?)
        .lstrip(switch("lstrip")?)
        .rstrip(switch("rstrip")?)
        .normalized(switch("normalized")?))
}

/// A setting that may be absent or null.
fn setting<'a>(model: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    model.get(key).filter(|value| !value.is_null())
}

fn text(model: &Map<String, Value>, key: &str) -> Result<Option<String>> {
    let read = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| wrong(format!("model.{key}"), format!("{value}, expected a string")))
    };
    setting(model, key).map(read).transpose()
}

fn flag(model: &Map<String, Value>, key: &str) -> Result<bool> {
    let read = |value: &Value| {
        let wrong = || wrong(format!("model.{key}"), format!("{value}, expected true or false"));
        value.as_bool().ok_or_else(wrong)
    };
    setting(model, key).map_or(Ok(false), read)
}

fn number(model: &Map<String, Value>, key: &str) -> Result<Option<f32>> {
    let read = |value: &Value| {
        #[allow(clippy::cast_possible_truncation, reason = "settings have few digits")]
        let number = value.as_f64().map(|number| number as f32);
        number.ok_or_else(|| wrong(format!("model.{key}"), format!("{value}, expected a number")))
    };
    setting(model, key).map(read).transpose()
}
