//! Text to tokens and back.
//!
//! A [`Tokenizer`] comes from the `tokenizer.json` of a checkpoint or from the vocabulary of a GGUF
//! file. It encodes with the `tokenizers` crate; it decodes from a table of the bytes of each token,
//! so that a stream of tokens becomes text without looking back.

mod beginning;
mod bpe;
mod bytes;
mod charsmap;
mod check;
mod gguf;
mod pretokenizers;
mod special;
mod stream;

use std::path::Path;

use galatea_tensor::read_plain_file;
use serde_json::Value;
use tokenizers::models::ModelWrapper;

pub use gguf::GgufVocabulary;
pub use special::SpecialIds;
pub use stream::{StreamStart, TextStream};

use crate::error::{LlmError, LlmErrorKind, Result};
use bpe::{AssembledTokenizer, BpeModel};
use bytes::{TokenBytes, TokenDecoding};

/// The largest `tokenizer.json` that is read. Those of vocabularies of 262144 tokens have 33 MB.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// One more than the largest token id.
pub const MAX_VOCABULARY: u32 = 1 << 22;

/// Whether encoding adds the tokens that the model wants around a text, such as BOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialTokens {
    /// Tokens as the tokenizer's post-processor says.
    Add,
    /// The text's own tokens only.
    Omit,
}

/// Whether the text of special tokens becomes part of decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialText {
    /// Special tokens leave no text.
    Skip,
    /// Special tokens leave their text, such as `<|im_end|>`.
    Keep,
}

/// A tokenizer: text to ids below [`Tokenizer::vocabulary_size`], and back.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    bytes: TokenBytes,
    special: SpecialIds,
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a checkpoint's folder, and the ids of its special tokens from
    /// `tokenizer_config.json`, `generation_config.json` and `config.json`, where these exist.
    ///
    /// # Errors
    /// A file that cannot be read, is too large or malformed.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let bytes = read(&folder.join("tokenizer.json"))?;
        let tokenizer = Self::from_json(&bytes).map_err(|e| e.within("tokenizer.json"))?;
        let mut configs = Vec::new();
        for name in special::FILES {
            let path = folder.join(name);
            configs.push(if path.exists() { Some(parse(name, &read(&path)?)?) } else { None });
        }
        let special = SpecialIds::from_configs(&configs, &tokenizer)?;
        Ok(tokenizer.with_special_ids(special))
    }

    /// Builds a tokenizer from the bytes of a `tokenizer.json`. It knows no BOS and EOS: see
    /// [`Self::with_special_ids`].
    ///
    /// # Errors
    /// Anything malformed, by its path in the file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
            let found = format!("{} bytes, expected at most {MAX_FILE_BYTES}", bytes.len());
            return Err(LlmError::new(LlmErrorKind::Tokenizer, "file", found));
        }
        Self::from_value(parse("file", bytes)?)
    }

    /// Builds a tokenizer from the vocabulary that a GGUF file holds.
    ///
    /// # Errors
    /// A model or pre-tokenizer that is not known, and lists of different lengths, by the key.
    pub fn from_gguf(vocabulary: &GgufVocabulary) -> Result<Self> {
        let mut parts = vocabulary.parts()?;
        let tokenizer = match parts.model.take() {
            None => Self::from_value(parts.root)?,
            Some(model) => {
                check::check(&mut parts.root)?;
                let decoding = TokenDecoding::in_file(&parts.root);
                if let Some(root) = parts.root.as_object_mut() {
                    root.insert("added_tokens".to_owned(), parts.added);
                }
                Self::assembled(model.assemble(parts.root)?, decoding)?
            }
        };
        let special = vocabulary.special_ids(&tokenizer)?;
        Ok(tokenizer.with_special_ids(special))
    }

    fn from_value(mut value: Value) -> Result<Self> {
        check::check(&mut value)?;
        let decoding = TokenDecoding::in_file(&value);
        if let Some(model) = BpeModel::take(&mut value)? {
            return Self::assembled(model.assemble(value)?, decoding);
        }
        // From a text the library has compiled its reader itself; from values, this crate would compile another.
        let inner = value
            .to_string()
            .parse::<tokenizers::Tokenizer>()
            .map_err(|e| LlmError::new(LlmErrorKind::Tokenizer, "tokenizer", e.to_string()))?;
        let largest = inner.get_vocab(true).into_values().max();
        let size = largest.map_or(0, |largest| largest.saturating_add(1));
        Self::assembled(AssembledTokenizer { inner, size }, decoding)
    }

    fn assembled(found: AssembledTokenizer, decoding: TokenDecoding) -> Result<Self> {
        let bytes = TokenBytes::new(&found.inner, found.size, decoding)?;
        Ok(Self { inner: found.inner, bytes, special: SpecialIds::default() })
    }

    /// The same tokenizer with these special tokens.
    #[must_use]
    pub fn with_special_ids(mut self, special: SpecialIds) -> Self {
        self.special = special;
        self
    }

    /// The ids of `text`. The text of special tokens becomes these tokens.
    ///
    /// # Errors
    /// Fails on text that the tokenizer's model cannot express (a character without an unknown token).
    pub fn encode(&self, text: &str, surround: SpecialTokens) -> Result<Vec<u32>> {
        let encoding = self.inner.encode_fast(text, surround == SpecialTokens::Add);
        Ok(encoding.map_err(|e| refused(&*e))?.get_ids().to_vec())
    }

    /// The ids of two texts with the tokens around and between them, and the type of each token (0
    /// or 1), as cross-encoders want them.
    ///
    /// # Errors
    /// Fails like [`Self::encode`].
    pub fn encode_pair(&self, first: &str, second: &str) -> Result<(Vec<u32>, Vec<u32>)> {
        let encoding = self.inner.encode_fast((first, second), true).map_err(|e| refused(&*e))?;
        Ok((encoding.get_ids().to_vec(), encoding.get_type_ids().to_vec()))
    }

    /// The text of `ids`. Ids that are no token leave nothing; bytes that are not UTF-8 become
    /// U+FFFD as in [`String::from_utf8_lossy`].
    pub fn decode(&self, ids: &[u32], special: SpecialText) -> String {
        let mut text = String::with_capacity(ids.len() * 4);
        let mut stream = TextStream::new(StreamStart::OfText, special);
        for &id in ids {
            stream.push(self, id, &mut text);
        }
        stream.finish(&mut text);
        text
    }

    /// The sort of its model: BPE, Unigram, WordPiece or WordLevel.
    pub fn kind(&self) -> &'static str {
        match self.inner.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::Unigram(_) => "Unigram",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
        }
    }

    /// One more than the largest id.
    pub fn vocabulary_size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that a token stands for in a text; nothing where there is no such token.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.bytes.of(id)
    }

    /// The id of a token by its name in the vocabulary.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// A token's name in the vocabulary.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Whether a token is special: it steers the model and is no text.
    pub fn is_special(&self, id: u32) -> bool {
        self.bytes.is_special(id)
    }

    /// Whether each token stands for bytes that do not depend on the tokens around it, and no space
    /// is put before a text: then a piece of a text is encoded as inside of it.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.bytes.decoding() == TokenDecoding::ByteLevel
    }

    /// The special tokens by their duty.
    pub fn special_ids(&self) -> &SpecialIds {
        &self.special
    }

    /// The token at the beginning of a text.
    pub fn bos(&self) -> Option<u32> {
        self.special.bos
    }

    /// The tokens that end an answer.
    pub fn eos(&self) -> &[u32] {
        &self.special.eos
    }

    pub(crate) fn table(&self) -> &TokenBytes {
        &self.bytes
    }

    /// The text of `ids` as the tokenizer's own decoder makes it.
    pub(crate) fn decode_whole(&self, ids: &[u32]) -> String {
        if ids.is_empty() {
            String::new()
        } else {
            self.inner.decode(ids, false).unwrap_or_default()
        }
    }
}

fn refused(error: &(dyn std::error::Error + Send + Sync)) -> LlmError {
    LlmError::new(LlmErrorKind::Tokenizer, "text", error.to_string())
}

fn parse(place: &str, bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes)
        .map_err(|e| LlmError::new(LlmErrorKind::Tokenizer, place, e.to_string()))
}

/// Reads a file of at most [`MAX_FILE_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| {
        LlmError::new(LlmErrorKind::Read, path.display().to_string(), e.to_string())
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        let found = format!("{size} bytes, expected at most {MAX_FILE_BYTES}");
        return Err(LlmError::new(LlmErrorKind::Read, path.display().to_string(), found));
    }
    read_plain_file(path).map_err(failed)
}
