//! Log-probabilities in the two forms that OpenAI's endpoints have.

use galatea_llm::sampling::TokenLogprobs;
use galatea_llm::tokens::Tokenizer;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// JSON has no infinities; vLLM writes this for a probability of nothing.
const LEAST: f32 = -9999.0;

/// Naming of tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenNaming<'a> {
    /// The model's tokens.
    pub(crate) tokenizer: &'a Tokenizer,
    /// Their numbers stand for them.
    pub(crate) as_ids: bool,
}

impl TokenNaming<'_> {
    fn bytes(self, token: u32) -> Vec<u8> {
        self.tokenizer.token_bytes(token).unwrap_or_default().to_vec()
    }

    /// The text of a token, as far as it is any.
    fn text(self, token: u32) -> String {
        String::from_utf8_lossy(&self.bytes(token)).into_owned()
    }

    fn name(self, token: u32) -> String {
        if self.as_ids { format!("token_id:{token}") } else { self.text(token) }
    }
}

/// Log-probabilities of a chat's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ChatLogprobs {
    content: Vec<ChatToken>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ChatToken {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
    top_logprobs: Vec<TokenAlternative>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TokenAlternative {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

fn finite(logprob: f32) -> f32 {
    logprob.max(LEAST)
}

impl ChatLogprobs {
    /// Builds the log-probabilities of some tokens.
    pub(crate) fn of(tokens: &[TokenLogprobs], names: TokenNaming<'_>) -> Self {
        let alternative = |&(token, logprob): &(u32, f32)| TokenAlternative {
            token: names.name(token),
            logprob: finite(logprob),
            bytes: names.bytes(token),
        };
        let content = tokens.iter().map(|of| ChatToken {
            token: names.name(of.token),
            logprob: finite(of.logprob),
            bytes: names.bytes(of.token),
            top_logprobs: of.top.iter().map(alternative).collect(),
        });
        Self { content: content.collect() }
    }
}

/// Log-probabilities of a completion, in parallel lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct CompletionLogprobs {
    text_offset: Vec<usize>,
    token_logprobs: Vec<Option<f32>>,
    tokens: Vec<String>,
    top_logprobs: Vec<Option<Map<String, Value>>>,
}

impl CompletionLogprobs {
    /// Adds a token behind `offset` characters, and moves the offset behind it. The first token of
    /// a prompt has no probability.
    fn add(
        &mut self,
        token: u32,
        of: Option<&TokenLogprobs>,
        names: TokenNaming<'_>,
        offset: &mut usize,
    ) {
        self.text_offset.push(*offset);
        *offset += names.text(token).chars().count();
        self.tokens.push(names.name(token));
        self.token_logprobs.push(of.map(|of| finite(of.logprob)));
        self.top_logprobs.push(of.map(|of| {
            let mut top = Map::new();
            for &(token, logprob) in &of.top {
                top.entry(names.name(token)).or_insert_with(|| json!(finite(logprob)));
            }
            // The token itself is there also when others are more probable.
            top.entry(names.name(of.token)).or_insert_with(|| json!(finite(of.logprob)));
            top
        }));
    }

    /// Adds tokens of the answer.
    pub(crate) fn extend(
        &mut self,
        all: &[TokenLogprobs],
        names: TokenNaming<'_>,
        offset: &mut usize,
    ) {
        for of in all {
            self.add(of.token, Some(of), names, offset);
        }
    }

    /// Adds the tokens of a prompt.
    pub(crate) fn extend_prompt(
        &mut self,
        prompt: &[u32],
        all: &[Option<TokenLogprobs>],
        names: TokenNaming<'_>,
        offset: &mut usize,
    ) {
        let known = all.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        for (token, of) in prompt.iter().zip(known) {
            self.add(*token, of, names, offset);
        }
    }
}

/// Log-probabilities of a prompt as vLLM has them: for each token but the first, an object from
/// token numbers to probabilities.
pub(crate) fn prompt(all: &[Option<TokenLogprobs>], names: TokenNaming<'_>) -> Value {
    let one = |of: &Option<TokenLogprobs>| {
        let Some(of) = of else { return Value::Null };
        let entry = |token: u32, logprob: f32, rank: usize| json!({"logprob": finite(logprob), "rank": rank, "decoded_token": names.text(token)});
        let mut found = Map::new();
        let rank = usize::try_from(of.rank).unwrap_or(usize::MAX);
        found.insert(of.token.to_string(), entry(of.token, of.logprob, rank));
        for (i, &(token, logprob)) in of.top.iter().enumerate() {
            found.entry(token.to_string()).or_insert_with(|| entry(token, logprob, i + 1));
        }
        Value::Object(found)
    };
    all.iter().map(one).collect()
}
