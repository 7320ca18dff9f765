//! Text that a model writes, read as a message: reasoning, content, calls of tools.

use crate::reasoning::{ReasoningOpening, ReasoningParser};
use crate::stop::FinishReason;
use crate::tools::{self, ToolCall, ToolDelta, ToolFormat, ToolParser};

/// Rules for reading the text of an answer.
#[derive(Debug, Clone)]
pub struct AnswerReading {
    /// Opening of the reasoning: by the prompt already, or by the answer.
    pub opening: ReasoningOpening,
    /// Format of tool calls, if the answer may have any.
    pub calls: Option<ToolFormat>,
    /// Calls behind the first one are left out.
    pub single: bool,
    /// Reasoning is told.
    pub reasoning: bool,
}

/// Addition of a piece of text to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPiece {
    /// Reasoning goes on.
    Reasoning(String),
    /// The content goes on.
    Content(String),
    /// A call begins.
    Call {
        /// Its number, from 0.
        index: usize,
        /// The function.
        name: String,
    },
    /// The arguments of a call go on.
    Arguments {
        /// The number of the call.
        index: usize,
        /// The next piece of their text.
        text: String,
    },
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerMessage {
    /// Reasoning in front of the answer.
    pub reasoning: String,
    /// The answer.
    pub content: String,
    /// Tool calls of the answer.
    pub calls: Vec<ToolCall>,
}

impl AnswerReading {
    /// Reads a whole answer. Where a call is malformed, all is content.
    #[must_use]
    pub fn whole(&self, text: &str) -> AnswerMessage {
        let parts = ReasoningParser::new(self.opening).parse(text);
        let reasoning = if self.reasoning { parts.reasoning } else { String::new() };
        let Some(format) = &self.calls else {
            return AnswerMessage { reasoning, content: parts.content, calls: Vec::new() };
        };
        let (content, mut calls) = tools::parse(format, &parts.content);
        if self.single {
            calls.truncate(1);
        }
        AnswerMessage { reasoning, content, calls }
    }

    /// The word for why an answer ended. One that makes calls ends with them, but where the request
    /// names the function: that ends as any other answer, as OpenAI has it.
    #[must_use]
    pub fn finish(&self, reason: &FinishReason, calls: usize) -> &'static str {
        let named = matches!(self.calls, Some(ToolFormat::Arguments(_)));
        match reason.as_str() {
            "stop" if calls > 0 && !named => FinishReason::ToolCalls.as_str(),
            word => word,
        }
    }
}

/// Reads the text of one answer as it comes.
#[derive(Debug, Clone)]
pub struct AnswerReader {
    reading: AnswerReading,
    reasoning: ReasoningParser,
    tools: Option<ToolParser>,
    calls: usize,
}

impl AnswerReader {
    /// A reader in front of an answer.
    #[must_use]
    pub fn new(reading: AnswerReading) -> Self {
        let reasoning = ReasoningParser::new(reading.opening);
        let tools = reading.calls.clone().map(ToolParser::new);
        Self { reading, reasoning, tools, calls: 0 }
    }

    /// Returns the number of calls that have begun.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Takes the next piece of text and tells what is certain.
    pub fn push(&mut self, text: &str) -> Vec<AnswerPiece> {
        let parts = self.reasoning.push(text);
        let mut pieces = self.reasoned(parts.reasoning);
        self.content(&parts.content, &mut pieces);
        pieces
    }

    /// Tells what was held back, as the answer has ended.
    pub fn finish(&mut self) -> Vec<AnswerPiece> {
        let parts = self.reasoning.finish();
        let mut pieces = self.reasoned(parts.reasoning);
        self.content(&parts.content, &mut pieces);
        let rest = self.tools.as_mut().map(ToolParser::finish).unwrap_or_default();
        self.deltas(rest, &mut pieces);
        pieces
    }

    fn reasoned(&self, text: String) -> Vec<AnswerPiece> {
        let told = self.reading.reasoning && !text.is_empty();
        told.then_some(AnswerPiece::Reasoning(text)).into_iter().collect()
    }

    fn content(&mut self, text: &str, pieces: &mut Vec<AnswerPiece>) {
        match &mut self.tools {
            None if text.is_empty() => {}
            None => pieces.push(AnswerPiece::Content(text.to_owned())),
            Some(parser) => {
                let deltas = parser.push(text);
                self.deltas(deltas, pieces);
            }
        }
    }

    fn deltas(&mut self, deltas: Vec<ToolDelta>, pieces: &mut Vec<AnswerPiece>) {
        let single = self.reading.single;
        for delta in deltas {
            match delta {
                ToolDelta::Begin { index, .. } | ToolDelta::Arguments { index, .. }
                    if single && index > 0 => {}
                ToolDelta::Text(text) => pieces.push(AnswerPiece::Content(text)),
                ToolDelta::Begin { index, name } => {
                    self.calls = self.calls.max(index + 1);
                    pieces.push(AnswerPiece::Call { index, name });
                }
                ToolDelta::Arguments { index, text } => {
                    pieces.push(AnswerPiece::Arguments { index, text });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(calls: Option<ToolFormat>) -> AnswerReading {
        AnswerReading { opening: ReasoningOpening::ByAnswer, calls, single: false, reasoning: true }
    }

    /// Reads an answer letter by letter and joins the pieces to a message.
    fn streamed(reading: &AnswerReading, text: &str) -> AnswerMessage {
        let mut reader = AnswerReader::new(reading.clone());
        let letters = text.chars().flat_map(|letter| reader.push(&letter.to_string()));
        let mut pieces: Vec<AnswerPiece> = letters.collect();
        pieces.extend(reader.finish());
        let mut message = AnswerMessage::default();
        for piece in pieces {
            match piece {
                AnswerPiece::Reasoning(text) => message.reasoning.push_str(&text),
                AnswerPiece::Content(text) => message.content.push_str(&text),
                AnswerPiece::Call { index, name } => {
                    assert_eq!(index, message.calls.len());
                    message.calls.push(ToolCall { name, arguments: String::new() });
                }
                AnswerPiece::Arguments { index, text } => {
                    message.calls.get_mut(index).unwrap().arguments.push_str(&text);
                }
            }
        }
        assert_eq!(message.calls.len(), reader.calls());
        message
    }

    #[test]
    fn a_streamed_answer_adds_up_to_the_whole_one() {
        let call = r#"<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>"#;
        for text in [
            "Good day.".to_owned(),
            "<think>\nhm\n</think>\n\nGood day.".to_owned(),
            format!("<think>hm</think>Let me see. {call}"),
            format!("{call}{call}"),
        ] {
            let hermes = reading(Some(ToolFormat::Hermes));
            let whole = hermes.whole(&text);
            assert_eq!(streamed(&hermes, &text), whole, "{text}");
            assert_eq!(whole.calls.len(), text.matches("<tool_call>").count());
            let single = AnswerReading { single: true, ..hermes };
            assert!(streamed(&single, &text).calls.len() <= 1);
            assert_eq!(streamed(&single, &text).calls, single.whole(&text).calls);
            let silent = AnswerReading { reasoning: false, ..reading(None) };
            assert_eq!(streamed(&silent, &text).reasoning, "");
        }
    }

    #[test]
    fn an_answer_with_calls_ends_with_them_but_where_the_function_was_named() {
        let free = reading(Some(ToolFormat::Hermes));
        let named = reading(Some(ToolFormat::Arguments("f".to_owned())));
        assert_eq!(free.finish(&FinishReason::EndOfText, 1), "tool_calls");
        assert_eq!(free.finish(&FinishReason::EndOfText, 0), "stop");
        assert_eq!(free.finish(&FinishReason::Length, 1), "length");
        assert_eq!(named.finish(&FinishReason::EndOfText, 1), "stop");
        assert_eq!(named.whole("{\"a\": 1}").calls.first().unwrap().arguments, "{\"a\": 1}");
    }
}
