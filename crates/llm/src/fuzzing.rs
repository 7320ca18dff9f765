//! Entries of the fuzz targets in `fuzz/fuzz_targets` into what comes with models and requests. Not for other users.
//!
//! Each takes any bytes. A panic is a finding: of the reader, or of an assertion on what it has read.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a panic reports a finding")]
#![allow(clippy::missing_panics_doc, reason = "a panic reports a finding")]

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::grammar::{Grammar, GrammarCompiler};
use crate::reasoning::{ReasoningOpening, ReasoningParser};
use crate::template::{ChatTemplate, Conversation, GenerationPrompt};
use crate::tokens::{SpecialIds, SpecialText, SpecialTokens, Tokenizer};
use crate::tools::{ToolDelta, ToolFormat, ToolParser, parse};

/// Tokens of an answer that are tried.
const STEPS: usize = 48;

/// A compiler for a vocabulary of letters, signs and a few words.
static COMPILER: LazyLock<GrammarCompiler> = LazyLock::new(|| {
    let mut vocabulary = Map::new();
    let words = ["</s>", "true", "null", "{\"", "\":", "ab", "10"].map(str::to_owned);
    let signs = (b' '..=b'~').map(|byte| char::from(byte).to_string());
    for (id, word) in words.into_iter().chain(signs).enumerate() {
        vocabulary.insert(word, id.into());
    }
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "added_tokens": [{"id": 0, "content": "</s>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    let tokenizer = Tokenizer::from_json(json.to_string().as_bytes()).expect("a tokenizer");
    let ends = SpecialIds { eos: vec![0], ..SpecialIds::default() };
    let tokenizer = tokenizer.with_special_ids(ends);
    GrammarCompiler::new(Arc::new(tokenizer)).expect("a compiler")
});

fn grammar_of(kind: u8, text: &str) -> Option<Grammar> {
    Some(match kind % 6 {
        0 => Grammar::JsonSchema(serde_json::from_str::<Value>(text).ok()?),
        1 => Grammar::Regex(text.to_owned()),
        2 => Grammar::Lark(text.to_owned()),
        3 => Grammar::Gbnf(text.to_owned()),
        4 => Grammar::Choice(text.split('|').map(str::to_owned).collect()),
        _ => Grammar::from_text(text.to_owned()),
    })
}

/// Reads a text as a grammar of the kind that the first byte says, and makes an answer that follows it token by token.
/// The second byte begins the series of choices.
pub fn grammar(data: &[u8]) {
    let [kind, seed, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(grammar) = grammar_of(*kind, text) else { return };
    let Ok(mut constraint) = COMPILER.compile(&grammar) else { return };
    let mut choice = usize::from(*seed);
    for _ in 0..STEPS {
        let Ok(allowed) = constraint.allowed() else { return };
        if allowed.is_empty() || constraint.is_finished() {
            return;
        }
        choice = choice.wrapping_mul(31).wrapping_add(7);
        let token = allowed[choice % allowed.len()];
        assert!(constraint.accept(token).is_ok(), "an allowed token is refused");
    }
}

/// Splits a text into pieces of so many letters.
fn pieces(text: &str, length: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// Text and calls of an answer: name and arguments of each.
#[derive(Debug, Default, PartialEq)]
struct AnswerParts {
    content: String,
    calls: Vec<(String, String)>,
}

/// Reads calls from pieces; gives what [`parse`] gives for the whole text.
fn streamed(format: &ToolFormat, text: &str, length: usize) -> AnswerParts {
    let mut parser = ToolParser::new(format.clone());
    let mut deltas = Vec::new();
    for piece in pieces(text, length) {
        deltas.extend(parser.push(&piece));
    }
    deltas.extend(parser.finish());
    if parser.is_malformed() {
        return AnswerParts { content: text.to_owned(), calls: Vec::new() };
    }
    let mut parts = AnswerParts::default();
    for delta in deltas {
        match delta {
            ToolDelta::Text(text) => parts.content.push_str(&text),
            ToolDelta::Begin { index, name } => {
                assert_eq!(index, parts.calls.len(), "calls are not counted up");
                parts.calls.push((name, String::new()));
            }
            ToolDelta::Arguments { index, text } => {
                assert_eq!(index + 1, parts.calls.len(), "arguments of another call");
                parts.calls[index].1.push_str(&text);
            }
        }
    }
    parts
}

/// Reads a text as an answer with calls of functions and thoughts, as a whole and in pieces of so many letters as the
/// second byte says. Both must be read alike. The first byte says the format.
pub fn tool_calls(data: &[u8]) {
    let [kind, length, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let length = usize::from(*length).max(1);
    let format = match kind % 5 {
        0 => ToolFormat::Llama,
        1 => ToolFormat::Hermes,
        2 => ToolFormat::Mistral,
        3 => ToolFormat::List,
        _ => ToolFormat::Arguments("f".to_owned()),
    };
    let (content, calls) = parse(&format, text);
    let calls = calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    let whole = AnswerParts { content, calls };
    assert_eq!(streamed(&format, text, length), whole, "pieces are read otherwise");
    for opening in [ReasoningOpening::ByAnswer, ReasoningOpening::ByPrompt] {
        let whole = ReasoningParser::new(opening).parse(text);
        let mut parser = ReasoningParser::new(opening);
        let mut parts: Vec<_> = pieces(text, length).iter().map(|one| parser.push(one)).collect();
        parts.push(parser.finish());
        let joined: String = parts.iter().map(|part| part.content.as_str()).collect();
        assert_eq!(joined, whole.content, "thoughts end elsewhere");
        let joined: String = parts.iter().map(|part| part.reasoning.as_str()).collect();
        assert_eq!(joined, whole.reasoning, "thoughts are others");
    }
}

/// Compiles any text as a chat template, and renders a conversation with what compiles.
pub fn template(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(template) = ChatTemplate::new(source) else { return };
    for ending in [GenerationPrompt::GenerationPrompt, GenerationPrompt::ContinueFinalMessage] {
        let conversation = Conversation {
            messages: vec![
                json!({"role": "system", "content": "s"}),
                json!({"role": "user", "content": [{"type": "text", "text": "x"}]}),
                json!({"role": "assistant", "content": " y \n", "tool_calls": [
                    {"id": "abcdefghi", "function": {"name": "f", "arguments": {"a": 1.5}}}]}),
            ],
            tools: Some(vec![json!({"type": "function", "function": {"name": "f"}})]),
            ending,
            now: Some(std::time::UNIX_EPOCH),
            ..Conversation::default()
        };
        let _ = template.render(&conversation);
    }
}

/// Reads bytes as a `tokenizer.json`. What loads also encodes and decodes.
pub fn tokenizer(data: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_json(data) else { return };
    for surround in [SpecialTokens::Add, SpecialTokens::Omit] {
        let Ok(ids) = tokenizer.encode(" ab a1 <s> \u{4E2D}\u{1F600}aab\n", surround) else {
            continue;
        };
        let _ = tokenizer.decode(&ids, SpecialText::Keep);
    }
    let _ = tokenizer.encode_pair("ab", "b a");
    let ids: Vec<u32> = (0..40).rev().collect();
    let _ = tokenizer.decode(&ids, SpecialText::Skip);
}

#[cfg(test)]
mod tests {
    use galatea_testkit::fuzz_corpus::hold;

    #[test]
    fn committed_inputs_of_grammar_hold() {
        hold("grammar", 5, super::grammar);
    }

    #[test]
    fn committed_inputs_of_tool_calls_hold() {
        hold("tool_calls", 5, super::tool_calls);
    }

    #[test]
    fn committed_inputs_of_template_hold() {
        hold("template", 5, super::template);
    }

    #[test]
    fn committed_inputs_of_tokenizer_hold() {
        hold("tokenizer", 5, super::tokenizer);
    }
}
