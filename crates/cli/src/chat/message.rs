//! Messages that are typed: one line each, or several lines between marks.

/// Mark before and behind a message of several lines.
const BLOCK: &str = "\"\"\"";

/// Returns whether a message ends here: not behind a backslash, and not between marks.
pub(super) fn is_complete(text: &str) -> bool {
    let text = text.trim();
    match text.strip_prefix(BLOCK) {
        Some(inside) => inside.ends_with(BLOCK),
        None => !text.ends_with('\\'),
    }
}

/// Takes away what only joins lines: marks, and backslashes at their ends.
pub(super) fn unfolded(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix(BLOCK) {
        Some(inside) => inside.strip_suffix(BLOCK).unwrap_or(inside).trim_matches('\n').to_owned(),
        None => text.replace("\\\n", "\n"),
    }
}

/// Joins lines to messages.
#[derive(Debug, Default)]
pub(super) struct MessageLines(String);

impl MessageLines {
    /// Takes a line, and gives the message that it ends.
    pub(super) fn push(&mut self, line: &str) -> Option<String> {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(line);
        is_complete(&self.0).then(|| unfolded(&std::mem::take(&mut self.0)))
    }

    /// Gives what was begun when no line follows.
    pub(super) fn rest(&mut self) -> Option<String> {
        let rest = unfolded(&std::mem::take(&mut self.0));
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_by_backslashes_and_between_marks() {
        for (lines, message) in [
            (&["one"][..], "one"),
            (&["one\\", "two"], "one\ntwo"),
            (&["\"\"\"", "a", "", "b", "\"\"\""], "a\n\nb"),
            (&["\"\"\"a", "b\"\"\""], "a\nb"),
            (&["\"\"\"alone\"\"\""], "alone"),
            (&["says \"\"\" in the middle"], "says \"\"\" in the middle"),
            (&[""], ""),
        ] {
            let mut all = MessageLines::default();
            let (last, first) = lines.split_last().unwrap();
            for line in first {
                assert_eq!(all.push(line), None, "{lines:?}");
            }
            assert_eq!(all.push(last).as_deref(), Some(message), "{lines:?}");
            assert_eq!(all.rest(), None);
        }
        let mut cut = MessageLines::default();
        assert_eq!(cut.push("\"\"\"a"), None);
        assert_eq!(cut.rest().as_deref(), Some("a"), "the input ends in the middle");
    }
}
