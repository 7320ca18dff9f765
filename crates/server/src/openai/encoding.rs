//! Embeddings: texts to vectors.

use galatea_llm::embed::{EncoderEngine, TextEncoder, TextTokens};
use serde::Serialize;

use super::error::ApiError;
use super::fields::ObjectFields;
use super::request::{CompletionPrompt, prompts};
use super::run::surround;
use super::wire::unique;
use super::wire::{now, to_bytes};

/// Makes the JSON of an answer from the results of the texts.
pub(crate) type EncodingAnswer = Box<dyn FnOnce(Vec<Vec<f32>>) -> Result<Vec<u8>, ApiError> + Send>;

/// A request that is ready for the engine.
pub(crate) struct PreparedEncoding {
    /// Tokens that the engine encodes.
    pub(crate) texts: Vec<TextTokens>,
    /// Form of the answer.
    pub(crate) answer: EncodingAnswer,
}

/// Counts of tokens of a request that writes none.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ReadUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

impl ReadUsage {
    /// The counts of some texts.
    pub(crate) fn of(texts: &[TextTokens]) -> Self {
        let count = texts.iter().map(|text| text.tokens.len()).sum();
        Self { prompt_tokens: count, total_tokens: count }
    }
}

#[derive(Debug, Serialize)]
struct EmbeddingList<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    data: Vec<EmbeddingItem>,
    usage: ReadUsage,
}

#[derive(Debug, Serialize)]
struct EmbeddingItem {
    object: &'static str,
    index: usize,
    embedding: VectorForm,
}

/// A vector as a client wants it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum VectorForm {
    List(Vec<f32>),
    /// Base64 of the little-endian bytes.
    Base64(String),
}

/// The tokens that a text may have at most, where the request lets longer ones be cut; -1 stands for as
/// many as the model takes.
///
/// # Errors
/// Fails for another number than that, or more than the model takes.
pub(crate) fn most_tokens(
    fields: &ObjectFields<'_>,
    context: usize,
) -> Result<Option<usize>, ApiError> {
    let key = "truncate_prompt_tokens";
    let Some(most) = fields.integer(key)? else { return Ok(None) };
    if most == -1 {
        return Ok(Some(context));
    }
    let most = usize::try_from(most).ok().filter(|most| (1..=context).contains(most));
    let expected = format!("a whole number from 1 to {context}, or -1");
    most.map(Some).ok_or_else(|| fields.wrong(key, &expected))
}

/// Refuses a text with more tokens than the model takes. `place` names the text.
///
/// # Errors
/// Fails when the text is too long.
pub(crate) fn check_length(
    place: impl FnOnce() -> String,
    param: &str,
    text: &TextTokens,
    context: usize,
) -> Result<(), ApiError> {
    let found = text.tokens.len();
    if found <= context {
        return Ok(());
    }
    Err(ApiError::too_long(
        param,
        format!(
            "This model's maximum context length is {context} tokens. {} has {found} tokens; \
             truncate_prompt_tokens lets its end be left out.",
            place()
        ),
    ))
}

/// Refuses a text that certainly has more tokens than the model takes, without making tokens of all of it. Where the end
/// of longer texts is left out, all are taken.
///
/// # Errors
/// Fails when the text is too long.
pub(crate) fn check_text(
    place: impl FnOnce() -> String,
    param: &str,
    text: &str,
    limits: TextLimits<'_>,
) -> Result<(), ApiError> {
    let TextLimits { model, most } = limits;
    let context = model.encoder().context();
    if most.is_some() || !model.tokenizer().exceeds(text, context)? {
        return Ok(());
    }
    Err(ApiError::too_long(
        param,
        format!(
            "This model's maximum context length is {context} tokens. {} has more; \
             truncate_prompt_tokens lets its end be left out.",
            place()
        ),
    ))
}

/// Limits of texts.
#[derive(Clone, Copy)]
pub(crate) struct TextLimits<'a> {
    /// Model that reads them.
    pub(crate) model: &'a TextEncoder,
    /// Tokens beyond which a text's end is left out; none if longer texts are refused.
    pub(crate) most: Option<usize>,
}

/// Decodes a request for embeddings, and makes tokens of its texts.
///
/// # Errors
/// Fails for the first wrong field, a text that is too long, and a model that computes no vectors.
pub(crate) fn prepare(
    engine: &EncoderEngine,
    name: &str,
    fields: &ObjectFields<'_>,
) -> Result<PreparedEncoding, ApiError> {
    let model = engine.model();
    let encoder = model.encoder();
    let Some(length) = encoder.dimensions() else {
        let text = format!("'{name}' scores texts and makes no vectors; ask it at /v1/rerank");
        return Err(ApiError::field("model", text));
    };
    let base64 = match fields.text("encoding_format")? {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(fields.wrong("encoding_format", "float or base64")),
    };
    let dimensions = match fields.count("dimensions")? {
        None => length,
        Some(count) => usize::try_from(count)
            .ok()
            .filter(|count| (1..=length).contains(count))
            .ok_or_else(|| fields.wrong("dimensions", &format!("1 to {length}")))?,
    };
    let own = encoder.settings().normalise;
    let normalise = fields.flag_or("normalize", own)?;
    if own && !normalise {
        let text = "the vectors of this model have a length of 1";
        return Err(ApiError::field("normalize", text));
    }
    let around = surround(fields.flag_or("add_special_tokens", true)?);
    let most = most_tokens(fields, encoder.context())?;
    let prompt = fields.text("prompt_name")?;
    let mut texts = Vec::new();
    for (at, input) in prompts(fields, "input")?.into_iter().enumerate() {
        let text = match input {
            CompletionPrompt::Text(text) => {
                let limits = TextLimits { model, most };
                check_text(|| format!("input[{at}]"), "input", &text, limits)?;
                model.text(&text, prompt, around, most)?
            }
            CompletionPrompt::Tokens(mut tokens) => {
                tokens.truncate(most.unwrap_or(usize::MAX));
                TextTokens { tokens, types: Vec::new() }
            }
        };
        check_length(|| format!("input[{at}]"), "input", &text, encoder.context())?;
        texts.push(text);
    }
    let usage = ReadUsage::of(&texts);
    let name = name.to_owned();
    let answer = move |vectors: Vec<Vec<f32>>| {
        let data = vectors.into_iter().enumerate().map(|(index, mut vector)| {
            vector.truncate(dimensions);
            if normalise {
                galatea_llm::embed::normalise(&mut vector);
            }
            let embedding = match base64 {
                true => VectorForm::Base64(base64_of(&vector)),
                false => VectorForm::List(vector),
            };
            EmbeddingItem { object: "embedding", index, embedding }
        });
        let data = data.collect();
        let id = unique("embd-");
        let answer =
            EmbeddingList { id, object: "list", created: now(), model: &name, data, usage };
        Ok(to_bytes(&answer))
    };
    Ok(PreparedEncoding { texts, answer: Box::new(answer) })
}

/// Base64 of the little-endian bytes of numbers.
fn base64_of(numbers: &[f32]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..4_usize {
            let sextet = usize::try_from(bits >> (18 - 6 * letter) & 63).unwrap_or(0);
            let known = LETTERS.get(sextet).filter(|_| letter <= part.len());
            text.push(known.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_bytes_of_the_numbers() {
        // As Python's base64.b64encode(struct.pack("<f", …)) has them.
        assert_eq!(base64_of(&[1.0]), "AACAPw==");
        assert_eq!(base64_of(&[1.0, -2.5]), "AACAPwAAIMA=");
        assert_eq!(base64_of(&[1.0, -2.5, 3.0e7]), "AACAPwAAIMDA4eRL");
    }
}
