//! Structured output: which tokens may come next, so that an answer follows a grammar.
//!
//! The grammars are those of `llguidance`; this module builds its view of a [`Tokenizer`] and bounds
//! what a grammar may cost.

mod gbnf;
mod size;

use std::sync::Arc;

use llguidance::api::{GrammarInit, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Logger, Matcher, ParserFactory, panic_utils};
use serde_json::{Value, json};

use crate::error::{LlmError, LlmErrorKind, Result};
use crate::tokens::{SpecialTokens, Tokenizer};
use size::{GrammarLease, GrammarSize};

/// The longest text of a grammar.
pub const MAX_GRAMMAR_BYTES: usize = 1 << 20;

/// The most alternatives of [`Grammar::Choice`].
pub const MAX_CHOICES: usize = 4096;

/// The member of a schema that tells the library how to read it.
const GUIDANCE: &str = "x-guidance";

/// Space between two words of JSON: a line break with the spaces in front of a deep line.
const SPACES: &str = r"[\x20\x0A\x0D\x09]{1,24}";

/// Longer tokens are never allowed: the walk over the vocabulary keeps a bounded stack.
const MAX_TOKEN_BYTES: usize = 250;

/// Rules that an answer has to follow.
#[derive(Debug, Clone, PartialEq)]
pub enum Grammar {
    /// JSON that a schema describes.
    JsonSchema(Value),
    /// Any JSON object.
    JsonObject,
    /// Text that a regular expression (in the syntax of the `regex` crate) matches as a whole.
    Regex(String),
    /// A context-free grammar in Lark's syntax.
    Lark(String),
    /// A context-free grammar in llama.cpp's syntax, GBNF.
    Gbnf(String),
    /// One of some texts.
    Choice(Vec<String>),
}

impl Grammar {
    /// A context-free grammar in the syntax that its text shows: GBNF's or Lark's.
    pub fn from_text(text: String) -> Self {
        if gbnf::is_gbnf(&text) { Self::Gbnf(text) } else { Self::Lark(text) }
    }

    /// Number of bytes of its text.
    fn text_bytes(&self) -> usize {
        match self {
            Self::JsonObject => 0,
            Self::JsonSchema(schema) => schema.to_string().len(),
            Self::Regex(text) | Self::Lark(text) | Self::Gbnf(text) => text.len(),
            Self::Choice(texts) => texts.iter().map(String::len).sum(),
        }
    }

    fn compile(&self) -> Result<TopLevelGrammar> {
        let bounded = |text: &str| {
            if text.len() <= MAX_GRAMMAR_BYTES {
                return Ok(());
            }
            Err(refused(format!(
                "{} bytes found, expected at most {MAX_GRAMMAR_BYTES}",
                text.len()
            )))
        };
        Ok(match self {
            Self::JsonObject => {
                TopLevelGrammar::from_json_schema(spaced(json!({"type": "object"})))
            }
            Self::JsonSchema(schema) => {
                if !schema.is_object() && !schema.is_boolean() {
                    return Err(refused("the schema is no JSON object".to_owned()));
                }
                bounded(&schema.to_string())?;
                TopLevelGrammar::from_json_schema(spaced(schema.clone()))
            }
            Self::Regex(pattern) => {
                bounded(pattern)?;
                TopLevelGrammar::from_regex(pattern)
            }
            Self::Lark(text) => {
                bounded(text)?;
                TopLevelGrammar::from_lark(text.clone())
            }
            Self::Gbnf(text) => {
                bounded(text)?;
                let lark = gbnf::to_lark(text)?;
                bounded(&lark)?;
                TopLevelGrammar::from_lark(lark)
            }
            Self::Choice(texts) => {
                if texts.is_empty() || texts.len() > MAX_CHOICES {
                    let message = format!("{} choices, expected 1 to {MAX_CHOICES}", texts.len());
                    return Err(refused(message));
                }
                let escaped: Vec<String> = texts.iter().map(|text| escape(text)).collect();
                let pattern = format!("(?:{})", escaped.join("|"));
                bounded(&pattern)?;
                TopLevelGrammar::from_regex(&pattern)
            }
        })
    }
}

/// A schema whose JSON has a bounded number of spaces between its words: a model that has lost its way
/// would write nothing else.
fn spaced(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        let pattern = || json!({"whitespace_pattern": SPACES});
        members.entry(GUIDANCE).or_insert_with(pattern);
    }
    schema
}

/// A regular expression that matches `text` only.
fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() && character != ' ' {
            pattern.push_str(&format!("\\x{:02x}", u32::from(character)));
        } else {
            pattern.push(character);
        }
    }
    pattern
}

fn refused(message: impl Into<String>) -> LlmError {
    LlmError::new(LlmErrorKind::Grammar, "grammar", message)
}

fn failed(error: impl std::fmt::Display) -> LlmError {
    // The library appends its state; the first line says what is wrong.
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    // Some of its texts are names of its own states, or those of a failed assertion.
    if text == "NoExtensionBias" {
        return refused("no text follows the grammar");
    }
    match text.strip_prefix("panic: ") {
        Some(panic) => refused(format!("it cannot be compiled ({panic})")),
        None => refused(text),
    }
}

/// The library's view of a tokenizer.
struct GrammarVocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl GrammarVocabulary {
    fn new(tokenizer: Arc<Tokenizer>) -> Result<Self> {
        let size = u32::try_from(tokenizer.vocabulary_size()).map_err(failed)?;
        let ends: Vec<u32> = tokenizer.eos().iter().copied().filter(|end| *end < size).collect();
        let Some(end) = ends.first() else {
            return Err(refused("the tokenizer names no token that ends an answer"));
        };
        let words: Vec<Vec<u8>> = (0..size).map(|id| word(&tokenizer, id)).collect();
        let trie = TokTrie::from(&TokRxInfo::new(size, *end), &words).with_eos_tokens(&ends);
        Ok(Self { tokenizer, trie })
    }
}

/// The bytes of a token; those of special tokens behind a mark that no text contains.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id).unwrap_or_default();
    if bytes.len() > MAX_TOKEN_BYTES {
        return Vec::new();
    }
    if tokenizer.is_special(id) {
        [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
    } else {
        bytes.to_vec()
    }
}

impl TokenizerEnv for GrammarVocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        if !self.tokenize_is_canonical() {
            return self.trie.greedy_tokenize(bytes);
        }
        let encode = |text: &str| {
            let ids = self.tokenizer.encode(text, SpecialTokens::Omit);
            ids.unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        };
        self.trie.tokenize_with_greedy_fallback(bytes, encode)
    }

    /// Only byte-level vocabularies encode a piece of a text as they encode it inside.
    fn tokenize_is_canonical(&self) -> bool {
        self.tokenizer.is_byte_level()
    }
}

/// Makes constraints for one tokenizer.
pub struct GrammarCompiler {
    factory: ParserFactory,
    vocabulary_size: usize,
}

impl std::fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarCompiler")
            .field("vocabulary_size", &self.vocabulary_size)
            .finish_non_exhaustive()
    }
}

impl GrammarCompiler {
    /// Sorts the vocabulary, which takes a while: once for each model.
    ///
    /// # Errors
    /// A tokenizer without end token.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Result<Self> {
        let vocabulary_size = tokenizer.vocabulary_size();
        let env: TokEnv = Arc::new(GrammarVocabulary::new(tokenizer)?);
        let slices = SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(failed)?;
        factory.quiet();
        Ok(Self { factory, vocabulary_size })
    }

    /// A constraint before the first token of an answer.
    ///
    /// # Errors
    /// A malformed or oversized grammar, and one that no answer follows; [`LlmErrorKind::Overloaded`] while other
    /// grammars have all memory for them.
    pub fn compile(&self, grammar: &Grammar) -> Result<GrammarConstraint> {
        let compiled = grammar.compile()?;
        if grammar.text_bytes() <= size::MAX_SMALL_BYTES {
            match self.constraint(compiled.clone(), GrammarSize::Small) {
                Err(error) if size::is_about_size(error.message()) => {}
                result => return result,
            }
        }
        self.constraint(compiled, GrammarSize::Large)
    }

    fn constraint(
        &self,
        compiled: TopLevelGrammar,
        size: GrammarSize,
    ) -> Result<GrammarConstraint> {
        let mut lease = GrammarLease::take(size)?;
        let parser = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.factory.create_parser_from_init_ext(
                GrammarInit::Serialized(compiled),
                Logger::new(0, 0),
                InferenceCapabilities::default(),
                size.limits(),
            )
        }));
        let parser = parser.map_err(failed)?;
        lease.shrink(parser.parser.lexer_stats().num_bytes);
        let mut matcher = Matcher::new(Ok(parser));
        let mask = matcher.compute_mask_or_eos().map_err(failed)?;
        if mask.is_zero() {
            return Err(refused("no token can begin an answer that follows the grammar"));
        }
        let lease = Arc::new(lease);
        Ok(GrammarConstraint { matcher, vocabulary_size: self.vocabulary_size, lease })
    }
}

/// Place of one answer in its grammar. Clones share what was compiled.
#[derive(Clone)]
pub struct GrammarConstraint {
    matcher: Matcher,
    vocabulary_size: usize,
    /// Memory of what was compiled.
    lease: Arc<GrammarLease>,
}

impl std::fmt::Debug for GrammarConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Constraint").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}

impl GrammarConstraint {
    /// Sets the logits of all tokens that must not come next to -∞. When the grammar is finished,
    /// only end tokens remain.
    ///
    /// # Errors
    /// A grammar that costs too much at this place, and a row shorter than the vocabulary.
    pub fn mask(&mut self, logits: &mut [f32]) -> Result<()> {
        if logits.len() < self.vocabulary_size {
            let expected = self.vocabulary_size;
            return Err(refused(format!("a row of {}, expected {expected}", logits.len())));
        }
        let allowed = self.matcher.compute_mask_or_eos().map_err(failed)?;
        let words = allowed.as_slice().iter().copied().chain(std::iter::repeat(0));
        for (values, word) in logits.chunks_mut(32).zip(words) {
            match word {
                u32::MAX => {}
                0 => values.fill(f32::NEG_INFINITY),
                _ => {
                    for (bit, value) in values.iter_mut().enumerate() {
                        if word >> bit & 1 == 0 {
                            *value = f32::NEG_INFINITY;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The tokens that may come next, in their order.
    ///
    /// # Errors
    /// Fails like [`Self::mask`].
    pub fn allowed(&mut self) -> Result<Vec<u32>> {
        Ok(self.matcher.compute_mask_or_eos().map_err(failed)?.to_list())
    }

    /// Takes the next token.
    ///
    /// # Errors
    /// A token that the grammar does not allow.
    pub fn accept(&mut self, token: u32) -> Result<()> {
        if self.is_finished() {
            return Ok(());
        }
        self.matcher.consume_token(token).map_err(|error| {
            let place = format!("token {token}");
            LlmError::new(LlmErrorKind::Grammar, place, failed(error).message())
        })
    }

    /// How many of `tokens`, which may be drafts of speculation, the grammar allows. Nothing is
    /// taken.
    ///
    /// # Errors
    /// Fails like [`Self::mask`].
    pub fn allowed_prefix(&mut self, tokens: &[u32]) -> Result<usize> {
        self.matcher.validate_tokens(tokens).map_err(failed)
    }

    /// The tokens that must come next, whatever the model says; empty where there is a choice.
    /// They are not taken: call [`Self::accept`] for each.
    ///
    /// Empty for large grammars too: the text that must come may be as long as they are, and it would be walked through
    /// for each token.
    pub fn forced(&mut self) -> Vec<u32> {
        if self.is_finished() || self.lease.size == GrammarSize::Large {
            return Vec::new();
        }
        self.matcher.compute_ff_tokens()
    }

    /// Whether nothing but an end token may come.
    pub fn is_finished(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Whether the answer may end here.
    ///
    /// # Errors
    /// Fails like [`Self::mask`].
    pub fn may_finish(&mut self) -> Result<bool> {
        if self.is_finished() {
            return Ok(true);
        }
        self.matcher.is_accepting().map_err(failed)
    }
}
