//! The tokens with a duty: where texts begin, end and are filled up.

use serde_json::Value;

use super::Tokenizer;
use crate::error::{LlmError, LlmErrorKind, Result};

/// The files of a checkpoint that name special tokens, in the order of
/// [`SpecialIds::from_configs`].
pub(super) const FILES: [&str; 3] =
    ["tokenizer_config.json", "generation_config.json", "config.json"];

/// The most tokens that may end an answer.
const MAX_EOS: usize = 1024;

/// The ids of special tokens by their duty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// The beginning of a text.
    pub bos: Option<u32>,
    /// The tokens that end an answer; the first one is the vocabulary's own end token.
    pub eos: Vec<u32>,
    /// Token that fills up rows of a batch.
    pub pad: Option<u32>,
    /// Token that stands for anything unknown.
    pub unk: Option<u32>,
}

impl SpecialIds {
    /// Collects them from `tokenizer_config.json`, `generation_config.json` and `config.json` (in
    /// this order, each may be missing). Ends of answers are those of the first two together, and
    /// those of the last where these know none.
    ///
    /// # Errors
    /// Ids that are no ids, by file and key. Names that the vocabulary lacks are passed over.
    pub fn from_configs(configs: &[Option<Value>], tokenizer: &Tokenizer) -> Result<Self> {
        let mut found = Self::default();
        for (file, config) in FILES.iter().zip(configs) {
            let Some(config) = config else { continue };
            let ids = |key: &str| {
                ids(config.get(format!("{key}_id")), tokenizer).map_err(|message| {
                    LlmError::new(LlmErrorKind::Tokenizer, format!("{file}: {key}_id"), message)
                })
            };
            let named = |key: &str| name(config.get(key)).and_then(|n| tokenizer.token_to_id(n));
            let one = |key: &str| Ok::<_, LlmError>(named(key).or(ids(key)?.first().copied()));
            found.bos = found.bos.or(one("bos_token")?);
            found.pad = found.pad.or(one("pad_token")?);
            found.unk = found.unk.or(one("unk_token")?);
            if *file == "config.json" && !found.eos.is_empty() {
                continue;
            }
            for id in named("eos_token").into_iter().chain(ids("eos_token")?) {
                if !found.eos.contains(&id) {
                    found.eos.push(id);
                }
            }
        }
        Ok(found)
    }
}

/// A token's name: a string, or the `content` of an object.
fn name(value: Option<&Value>) -> Option<&str> {
    let value = value?;
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// One id or a list of them; ids behind the vocabulary belong to rows that only pad the weights.
fn ids(value: Option<&Value>, tokenizer: &Tokenizer) -> std::result::Result<Vec<u32>, String> {
    let values = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) if values.len() > MAX_EOS => {
            return Err(format!("{} ids found, expected at most {MAX_EOS}", values.len()));
        }
        Some(Value::Array(values)) => values.as_slice(),
        Some(value) => std::slice::from_ref(value),
    };
    let mut ids = Vec::new();
    for value in values {
        let id = value.as_i64().ok_or_else(|| format!("{value} found, expected a token's id"))?;
        // -1 means "none" in some configurations.
        if let Ok(id) = u32::try_from(id)
            && tokenizer.token_bytes(id).is_some()
        {
            ids.push(id);
        }
    }
    Ok(ids)
}
