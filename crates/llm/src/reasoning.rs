//! Reasoning in front of an answer: `<think>…</think>`.

/// Addition of a piece of text to a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageParts {
    /// Reasoning.
    pub reasoning: String,
    /// The answer itself.
    pub content: String,
}

/// Whether a prompt has already opened the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningOpening {
    /// The answer opens it, if it reasons at all.
    ByAnswer,
    /// The chat template has opened it.
    ByPrompt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasoningState {
    /// White space in front of the opening tag.
    Before,
    /// Inside; line breaks behind the opening tag are left out.
    Reasoning,
    /// Line breaks behind the closing tag.
    Between,
    Content,
}

/// Splits reasoning from the answer in a stream of text. Text that may be a tag is held back.
#[derive(Debug, Clone)]
pub struct ReasoningParser {
    open: String,
    close: String,
    state: ReasoningState,
    held: String,
    /// Whether the reasoning has any text yet.
    begun: bool,
}

impl ReasoningParser {
    /// A parser for `<think>` and `</think>`.
    pub fn new(opening: ReasoningOpening) -> Self {
        Self::with_tags("<think>", "</think>", opening)
    }

    /// A parser for other tags, which must not be empty.
    pub fn with_tags(open: &str, close: &str, opening: ReasoningOpening) -> Self {
        let state = match opening {
            ReasoningOpening::ByAnswer => ReasoningState::Before,
            ReasoningOpening::ByPrompt => ReasoningState::Reasoning,
        };
        let open = open.to_owned();
        let close = close.to_owned();
        Self { open, close, state, held: String::new(), begun: false }
    }

    /// Splits a whole text.
    pub fn parse(mut self, text: &str) -> MessageParts {
        let mut parts = self.push(text);
        let rest = self.finish();
        parts.reasoning.push_str(&rest.reasoning);
        parts.content.push_str(&rest.content);
        parts
    }

    /// Takes the next piece of text and gives what is certain.
    pub fn push(&mut self, text: &str) -> MessageParts {
        self.held.push_str(text);
        let mut parts = MessageParts::default();
        while self.step(&mut parts) {}
        parts
    }

    /// Gives what was held back, as the answer has ended.
    pub fn finish(&mut self) -> MessageParts {
        let held = std::mem::take(&mut self.held);
        match self.state {
            ReasoningState::Reasoning => MessageParts { reasoning: held, content: String::new() },
            ReasoningState::Between => MessageParts::default(),
            ReasoningState::Before | ReasoningState::Content => {
                MessageParts { reasoning: String::new(), content: held }
            }
        }
    }

    /// Takes one step; `false` where more text is needed.
    fn step(&mut self, parts: &mut MessageParts) -> bool {
        match self.state {
            ReasoningState::Before => {
                let text = self.held.trim_start();
                if let Some(rest) = text.strip_prefix(self.open.as_str()) {
                    self.held = rest.to_owned();
                    self.state = ReasoningState::Reasoning;
                    return true;
                }
                let waits = self.open.starts_with(text);
                if !waits {
                    self.state = ReasoningState::Content;
                }
                !waits
            }
            ReasoningState::Reasoning => self.reason(parts),
            ReasoningState::Between => {
                let rest = self.held.trim_start_matches('\n');
                let skipped = self.held.len() - rest.len();
                self.held.drain(..skipped);
                if !self.held.is_empty() {
                    self.state = ReasoningState::Content;
                }
                !self.held.is_empty()
            }
            ReasoningState::Content => {
                parts.content.push_str(&std::mem::take(&mut self.held));
                false
            }
        }
    }

    fn reason(&mut self, parts: &mut MessageParts) -> bool {
        if !self.begun {
            let skipped = self.held.len() - self.held.trim_start_matches('\n').len();
            self.held.drain(..skipped);
            self.begun = !self.held.is_empty();
        }
        if let Some((reasoning, rest)) = self.held.split_once(self.close.as_str()) {
            parts.reasoning.push_str(reasoning);
            self.held = rest.to_owned();
            self.state = ReasoningState::Between;
            return true;
        }
        let certain = self.held.len() - beginning_at_end(&self.held, &self.close);
        parts.reasoning.extend(self.held.drain(..certain));
        false
    }
}

/// The length of the longest end of `text` that begins `tag` but is not all of it.
pub(crate) fn beginning_at_end(text: &str, tag: &str) -> usize {
    tag.char_indices()
        .map(|(at, _)| at)
        .rev()
        .find(|at| tag.get(..*at).is_some_and(|beginning| text.ends_with(beginning)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(reasoning: &str, content: &str) -> MessageParts {
        MessageParts { reasoning: reasoning.to_owned(), content: content.to_owned() }
    }

    #[test]
    fn reasoning_and_answer_are_told_apart() {
        let by_answer = || ReasoningParser::new(ReasoningOpening::ByAnswer);
        let by_prompt = || ReasoningParser::new(ReasoningOpening::ByPrompt);
        assert_eq!(by_answer().parse("<think>\nhm\n</think>\n\nyes\n"), parts("hm\n", "yes\n"));
        assert_eq!(by_answer().parse("\n<think>\n\n</think>\n\nyes"), parts("", "yes"));
        assert_eq!(by_answer().parse("no <think>x</think>"), parts("", "no <think>x</think>"));
        assert_eq!(by_answer().parse("<think>on and on </thin"), parts("on and on </thin", ""));
        assert_eq!(by_answer().parse("<thi"), parts("", "<thi"));
        assert_eq!(by_prompt().parse("hm</think>yes</think>"), parts("hm", "yes</think>"));
        assert_eq!(by_prompt().parse("never closed"), parts("never closed", ""));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            pieces in prop::collection::vec("(<think>|</think>|<|/|t|>|\n|é| ){0,3}", 0..12),
            prompted: bool,
        ) {
            let opening = if prompted { ReasoningOpening::ByPrompt } else { ReasoningOpening::ByAnswer };
            let whole = ReasoningParser::new(opening).parse(&pieces.concat());
            let mut parser = ReasoningParser::new(opening);
            let mut found = MessageParts::default();
            for piece in pieces.iter().map(|p| parser.push(p)).collect::<Vec<_>>() {
                found.reasoning.push_str(&piece.reasoning);
                found.content.push_str(&piece.content);
            }
            let rest = parser.finish();
            found.reasoning.push_str(&rest.reasoning);
            found.content.push_str(&rest.content);
            prop_assert_eq!(found, whole);
        }
    }
}
