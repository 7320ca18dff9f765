//! Tokenizers from the metadata of GGUF files (keys `tokenizer.ggml.*`).
//!
//! The vocabulary becomes a `tokenizer.json`, so that checks and behaviour are those of one path. Tokens and merges of
//! byte-pair models are left out of it and handed over as they are.

use serde_json::{Map, Value, json};
use tokenizers::models::bpe::{BpeBuilder, Merges, Vocab};

use super::bpe::{BpeModel, stand_in};
use super::bytes::fallback_byte;
use super::{MAX_VOCABULARY, SpecialIds, Tokenizer, pretokenizers};
use crate::error::{LlmError, LlmErrorKind, Result};

/// The vocabulary of a GGUF file, each field under its key in `tokenizer.ggml`.
#[derive(Debug, Clone, Default)]
pub struct GgufVocabulary {
    /// `model`: `gpt2` (byte-level BPE), `llama` (SentencePiece BPE), `t5` (Unigram) or `bert`
    /// (WordPiece).
    pub model: String,
    /// `pre`: how text is cut into words, for `gpt2`; empty where it is absent.
    pub pre: String,
    /// `tokens`: the names of all tokens.
    pub tokens: Vec<String>,
    /// `scores`: one for each token, for `llama` and `t5`; empty where they are absent.
    pub scores: Vec<f32>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; empty where
    /// they are absent.
    pub token_types: Vec<i32>,
    /// `merges`: pairs of tokens with a space between, the first ones first, for `gpt2`.
    pub merges: Vec<String>,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `eot_token_id`: the end of a turn.
    pub eot: Option<u32>,
    /// `unknown_token_id`.
    pub unk: Option<u32>,
    /// `padding_token_id`.
    pub pad: Option<u32>,
    /// `add_bos_token`.
    pub add_bos: Option<bool>,
    /// `add_eos_token`.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `precompiled_charsmap`, for `t5`.
    pub precompiled_charsmap: Option<Vec<u8>>,
}

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// Names of tokens that end a turn in well-known vocabularies, whose files often name one only.
const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<EOT>",
    "<|end_of_turn|>",
];

/// The longest token of a `llama` vocabulary that merges may make. Each of its cuts is looked up.
const MAX_MERGED_CHARACTERS: usize = 256;

fn wrong(key: &str, message: impl Into<String>) -> LlmError {
    LlmError::new(LlmErrorKind::Tokenizer, format!("tokenizer.ggml.{key}"), message)
}

/// A tokenizer's parts.
pub(super) struct GgufParts {
    /// The `tokenizer.json`; with a `model`, it has neither tokens nor merges.
    pub(super) root: Value,
    /// The byte-pair model, where it is one.
    pub(super) model: Option<BpeModel>,
    /// Tokens that texts are searched for before all else.
    pub(super) added: Value,
}

/// A part of a `tokenizer.json`, with the model that it describes.
struct DescribedModel {
    root: Value,
    model: Option<BpeModel>,
}

impl From<Value> for DescribedModel {
    fn from(root: Value) -> Self {
        Self { root, model: None }
    }
}

impl GgufVocabulary {
    /// Sort of the tokenizer's model, without making it.
    ///
    /// # Errors
    /// A vocabulary that no tokenizer can be made of, as far as that is seen at once.
    pub(crate) fn kind(&self) -> Result<&'static str> {
        self.check()?;
        match self.model.as_str() {
            "gpt2" => self.pretokenizer().map(|_| "BPE"),
            "llama" => Ok("BPE"),
            "t5" => Ok("Unigram"),
            "bert" => Ok("WordPiece"),
            other => Err(unknown_model(other)),
        }
    }

    /// Makes the parts of the tokenizer.
    pub(super) fn parts(&self) -> Result<GgufParts> {
        self.check()?;
        let (bos, eos) = match self.model.as_str() {
            "llama" => (self.add_bos.unwrap_or(true), self.add_eos.unwrap_or(false)),
            "t5" => (self.add_bos.unwrap_or(false), self.add_eos.unwrap_or(true)),
            "bert" => (self.add_bos.unwrap_or(true), self.add_eos.unwrap_or(true)),
            _ => (self.add_bos.unwrap_or(false), self.add_eos.unwrap_or(false)),
        };
        let vocabulary = self.vocabulary();
        let added = self.added_tokens(&vocabulary);
        let DescribedModel { mut root, model } = match self.model.as_str() {
            "gpt2" => self.byte_level(vocabulary)?,
            "llama" => self.sentence_piece(vocabulary),
            "t5" => self.unigram().into(),
            "bert" => self.word_piece().into(),
            other => return Err(unknown_model(other)),
        };
        let around =
            self.around(bos.then_some(self.bos).flatten(), eos.then_some(self.eos).flatten());
        if let Some(root) = root.as_object_mut() {
            root.insert("version".to_owned(), json!("1.0"));
            root.insert("post_processor".to_owned(), around);
            if model.is_none() {
                root.insert("added_tokens".to_owned(), added.clone());
            }
        }
        Ok(GgufParts { root, model, added })
    }

    /// The special tokens by their duty, with the well-known ends of turns.
    pub(super) fn special_ids(&self, tokenizer: &Tokenizer) -> Result<SpecialIds> {
        let mut ends: Vec<u32> = self.eos.into_iter().chain(self.eot).collect();
        ends.extend(
            ENDS.iter()
                .filter_map(|name| tokenizer.token_to_id(name))
                .filter(|id| tokenizer.is_special(*id)),
        );
        let mut eos = Vec::new();
        for id in ends {
            if !eos.contains(&id) {
                eos.push(id);
            }
        }
        Ok(SpecialIds { bos: self.bos, eos, pad: self.pad, unk: self.unk })
    }

    fn check(&self) -> Result<()> {
        let count = self.tokens.len();
        if count == 0 || count > MAX_VOCABULARY as usize {
            let message = format!("{count} tokens found, expected 1 to {MAX_VOCABULARY}");
            return Err(wrong("tokens", message));
        }
        for (key, length) in [("scores", self.scores.len()), ("token_type", self.token_types.len())]
        {
            if length != 0 && length != count {
                return Err(wrong(
                    key,
                    format!("{length} found, expected one for each of {count}"),
                ));
            }
        }
        if let Some(at) = self.scores.iter().position(|score| score.is_nan()) {
            return Err(wrong(&format!("scores[{at}]"), "NaN found, expected a number"));
        }
        for (key, id) in [
            ("bos_token_id", self.bos),
            ("eos_token_id", self.eos),
            ("eot_token_id", self.eot),
            ("unknown_token_id", self.unk),
            ("padding_token_id", self.pad),
        ] {
            if let Some(id) = id.filter(|id| *id as usize >= count) {
                return Err(wrong(key, format!("{id} found, expected less than {count}")));
            }
        }
        Ok(())
    }

    fn token_type(&self, id: usize) -> i32 {
        self.token_types.get(id).copied().unwrap_or(NORMAL)
    }

    fn name(&self, id: Option<u32>) -> Option<&str> {
        self.tokens.get(id? as usize).map(String::as_str)
    }

    /// Names to ids; of two tokens with one name the first counts.
    fn vocabulary(&self) -> Vocab {
        let mut vocabulary = Vocab::with_capacity(self.tokens.len());
        for (id, token) in (0_u32..).zip(&self.tokens) {
            vocabulary.entry(token.clone()).or_insert(id);
        }
        vocabulary
    }

    fn added_tokens(&self, vocabulary: &Vocab) -> Value {
        let first = |token: &str| vocabulary.get(token).and_then(|id| usize::try_from(*id).ok());
        let of = |(id, token): (usize, &String)| {
            let special = matches!(self.token_type(id), CONTROL | UNKNOWN);
            if !special && self.token_type(id) != USER_DEFINED
                || token.is_empty()
                || first(token) != Some(id)
            {
                return None;
            }
            Some(json!({"id": id, "content": token, "single_word": false, "lstrip": false,
                        "rstrip": false, "normalized": false, "special": special}))
        };
        Value::Array(self.tokens.iter().enumerate().filter_map(of).collect())
    }

    /// The post-processor that puts tokens around a text.
    fn around(&self, bos: Option<u32>, eos: Option<u32>) -> Value {
        let mut special = Map::new();
        let mut token = |id: Option<u32>, segment: u32| {
            let name = self.name(id)?;
            special.insert(name.to_owned(), json!({"id": name, "ids": [id], "tokens": [name]}));
            Some(json!({"SpecialToken": {"id": name, "type_id": segment}}))
        };
        let text = |id: &str, segment: u32| json!({"Sequence": {"id": id, "type_id": segment}});
        let single: Vec<Value> =
            [token(bos, 0), Some(text("A", 0)), token(eos, 0)].into_iter().flatten().collect();
        let mut pair = single.clone();
        pair.push(text("B", 1));
        pair.extend(token(eos, 1));
        json!({"type": "TemplateProcessing", "single": single, "pair": pair,
               "special_tokens": special})
    }

    fn pretokenizer(&self) -> Result<&'static pretokenizers::PretokenizerRow> {
        pretokenizers::find(&self.pre).ok_or_else(|| {
            let known: Vec<&str> =
                pretokenizers::ROWS.iter().flat_map(|row| row.names).copied().collect();
            wrong("pre", format!("{:?} found, expected one of {}", self.pre, known.join(", ")))
        })
    }

    fn byte_level(&self, vocabulary: Vocab) -> Result<DescribedModel> {
        let row = self.pretokenizer()?;
        let merges = self.known_merges(&vocabulary)?;
        let settings = BpeBuilder::new().ignore_merges(row.whole_words);
        let root = json!({
            "normalizer": row.normalizer(),
            "pre_tokenizer": row.to_json(),
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                        "use_regex": false},
            "model": stand_in(),
        });
        Ok(DescribedModel { root, model: Some(BpeModel { vocabulary, merges, settings }) })
    }

    fn sentence_piece(&self, vocabulary: Vocab) -> DescribedModel {
        let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let prefix = self.add_space_prefix.unwrap_or(true);
        let normalizers = if prefix {
            vec![json!({"type": "Prepend", "prepend": "▁"}), spaces]
        } else {
            vec![spaces]
        };
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if prefix {
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let root = json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": stand_in(),
        });
        let mut settings = BpeBuilder::new().fuse_unk(true).byte_fallback(true);
        if let Some(unknown) = self.name(self.unk) {
            settings = settings.unk_token(unknown.to_owned());
        }
        let merges = self.scored_merges();
        DescribedModel { root, model: Some(BpeModel { vocabulary, merges, settings }) }
    }

    /// The merges of tokens that exist, into one that exists: others never take place, and files that are
    /// made by hand have some.
    fn known_merges(&self, vocabulary: &Vocab) -> Result<Merges> {
        let mut merges = Merges::with_capacity(self.merges.len());
        let mut joined = String::new();
        for (at, merge) in self.merges.iter().enumerate() {
            if merge.starts_with("#version") {
                continue;
            }
            let Some((first, second)) = merge.split_once(' ') else {
                return Err(wrong(&format!("merges[{at}]"), "expected two tokens"));
            };
            joined.clear();
            joined.push_str(first);
            joined.push_str(second);
            if [first, second, &joined].iter().all(|token| vocabulary.contains_key(*token)) {
                merges.push((first.to_owned(), second.to_owned()));
            }
        }
        Ok(merges)
    }

    /// SentencePiece joins the neighbours whose joined token has the highest score. As merges in an
    /// order: each cut of each token into two tokens, the highest scores first.
    fn scored_merges(&self) -> Merges {
        let score = |id: usize| self.scores.get(id).copied().unwrap_or(0.0);
        let mut pieces = Vocab::with_capacity(self.tokens.len());
        let mut order: Vec<(&str, usize)> = Vec::with_capacity(self.tokens.len());
        for (number, (id, token)) in (0_u32..).zip(self.tokens.iter().enumerate()) {
            let piece = self.token_type(id) == NORMAL && fallback_byte(token).is_none();
            if piece && !pieces.contains_key(token) {
                pieces.insert(token.clone(), number);
                order.push((token, id));
            }
        }
        order.sort_by(|a, b| score(b.1).total_cmp(&score(a.1)).then(a.1.cmp(&b.1)));
        let mut merges = Merges::new();
        for (token, _) in order {
            if token.chars().count() > MAX_MERGED_CHARACTERS {
                continue;
            }
            let cuts =
                token.char_indices().skip(1).filter_map(|(at, _)| token.split_at_checked(at));
            let known = cuts.filter(|(a, b)| pieces.contains_key(*a) && pieces.contains_key(*b));
            merges.extend(known.map(|(a, b)| (a.to_owned(), b.to_owned())));
        }
        merges
    }

    fn unigram(&self) -> Value {
        let score = |id: usize| f64::from(self.scores.get(id).copied().unwrap_or(0.0));
        let scored: Vec<Value> =
            self.tokens.iter().enumerate().map(|(id, token)| json!([token, score(id)])).collect();
        let mut normalizers = Vec::new();
        if let Some(map) = &self.precompiled_charsmap {
            normalizers
                .push(json!({"type": "Precompiled", "precompiled_charsmap": encode_base64(map)}));
        }
        normalizers.push(json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}));
        let scheme = if self.add_space_prefix.unwrap_or(true) { "always" } else { "never" };
        let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme});
        json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": metaspace,
            "decoder": metaspace,
            "model": {"type": "Unigram", "vocab": scored, "unk_id": self.unk.unwrap_or(0),
                      "byte_fallback": false},
        })
    }

    /// GGUF marks the beginnings of words with `▁`, WordPiece their continuations with `##`.
    fn word_piece(&self) -> Value {
        let mut vocabulary = Map::new();
        for (id, token) in self.tokens.iter().enumerate() {
            let name = match token.strip_prefix('▁') {
                Some(word) => word.to_owned(),
                None if self.token_type(id) != NORMAL || token.starts_with('[') => token.clone(),
                None => format!("##{token}"),
            };
            vocabulary.entry(name).or_insert_with(|| json!(id));
        }
        json!({
            "normalizer": {"type": "BertNormalizer", "clean_text": true,
                           "handle_chinese_chars": true, "strip_accents": true, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {"type": "WordPiece", "vocab": vocabulary,
                      "unk_token": self.name(self.unk).unwrap_or("[UNK]"),
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
        })
    }
}

fn unknown_model(found: &str) -> LlmError {
    wrong("model", format!("'{found}' found, expected gpt2, llama, t5 or bert"))
}

fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let known = digit <= group.len();
            text.push(if known { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encode_base64;

    #[test]
    fn base64_is_encoded_as_it_is_defined() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xFB\xFF\xBF", "+/+/"),
        ] {
            assert_eq!(encode_base64(bytes), text);
        }
    }
}
