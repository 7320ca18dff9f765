//! Tokens of a program's text.

use super::CompiledResult;
use crate::coreml::error::CoreMlError;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MilToken<'t> {
    /// A name, a keyword or an operator.
    Word(&'t str),
    /// A number as written, with its sign.
    Number(&'t str),
    /// A quoted text, unescaped.
    Text(String),
    /// `->`.
    Arrow,
    /// Anything else, one character.
    Mark(char),
    /// The end.
    End,
}

impl MilToken<'_> {
    /// Returns the token as an error shows it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(_) => "a text".to_owned(),
            Self::Arrow => "'->'".to_owned(),
            Self::Mark(mark) => format!("'{mark}'"),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// A reader of tokens, one of which is seen in advance.
pub(super) struct MilTokens<'t> {
    rest: &'t str,
    /// The line that the rest begins in.
    rest_line: usize,
    next: MilToken<'t>,
    /// The line that the token seen in advance begins in.
    line: usize,
}

fn is_word(found: char) -> bool {
    found.is_alphanumeric() || matches!(found, '_' | '.' | '@' | '$' | '%')
}

impl<'t> MilTokens<'t> {
    /// Begins to read a text.
    ///
    /// # Errors
    /// Fails when the text begins with what is no token.
    pub(super) fn new(text: &'t str) -> CompiledResult<Self> {
        let mut tokens = Self { rest: text, rest_line: 1, next: MilToken::End, line: 1 };
        tokens.advance()?;
        Ok(tokens)
    }

    /// The token that comes next.
    pub(super) fn peek(&self) -> &MilToken<'t> {
        &self.next
    }

    /// The line of the token that comes next.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Takes the next token.
    ///
    /// # Errors
    /// Fails when what follows it is no token.
    pub(super) fn take(&mut self) -> CompiledResult<MilToken<'t>> {
        let taken = std::mem::replace(&mut self.next, MilToken::End);
        self.advance()?;
        Ok(taken)
    }

    /// Takes a mark if it comes next.
    ///
    /// # Errors
    /// Fails like [`MilTokens::take`].
    pub(super) fn skip(&mut self, mark: char) -> CompiledResult<bool> {
        let found = self.next == MilToken::Mark(mark);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    /// Takes a mark that has to come next.
    ///
    /// # Errors
    /// Fails when something else comes.
    pub(super) fn expect(&mut self, mark: char) -> CompiledResult<()> {
        match self.skip(mark)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{mark}'"))),
        }
    }

    /// Takes a word that has to come next. A leading `%`, which older texts put before names, is left out.
    ///
    /// # Errors
    /// Fails when something else comes.
    pub(super) fn word(&mut self, what: &str) -> CompiledResult<&'t str> {
        let MilToken::Word(word) = self.next else { return Err(self.unexpected(what)) };
        self.take()?;
        Ok(word.strip_prefix('%').unwrap_or(word))
    }

    /// Returns the error that something else comes next.
    pub(super) fn unexpected(&self, expected: &str) -> CoreMlError {
        let text = format!("found {}, expected {expected}", self.next.describe());
        CoreMlError::invalid(text).at(format!("line {}", self.line))
    }

    fn advance(&mut self) -> CompiledResult<()> {
        self.skip_blanks();
        self.line = self.rest_line;
        self.next = self.read()?;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            let skipped = &self.rest[..self.rest.len() - trimmed.len()];
            self.rest_line += skipped.matches('\n').count();
            self.rest = trimmed;
            match trimmed.strip_prefix("//") {
                Some(comment) => self.rest = comment.find('\n').map_or("", |at| &comment[at..]),
                None => return,
            }
        }
    }

    fn read(&mut self) -> CompiledResult<MilToken<'t>> {
        let mut all = self.rest.chars();
        let Some(first) = all.next() else { return Ok(MilToken::End) };
        if first == '"' {
            return self.text();
        }
        if self.rest.starts_with("->") {
            self.rest = &self.rest[2..];
            return Ok(MilToken::Arrow);
        }
        let second = all.next();
        let signed = first == '-' || first == '+';
        let begins = |found: char| found.is_ascii_digit() || found == '.';
        if begins(first)
            || (signed && second.is_some_and(|next| begins(next) || next == 'i' || next == 'n'))
        {
            return Ok(MilToken::Number(self.number()));
        }
        if is_word(first) {
            let end = self.rest.find(|found| !is_word(found)).unwrap_or(self.rest.len());
            return Ok(MilToken::Word(self.cut(end)));
        }
        self.rest = all_behind(self.rest, first);
        Ok(MilToken::Mark(first))
    }

    fn cut(&mut self, end: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// A number: decimal or hexadecimal with a binary exponent, whose sign belongs to it.
    fn number(&mut self) -> &'t str {
        let mut before = ' ';
        let hexadecimal = self.rest.trim_start_matches(['-', '+']).starts_with("0x");
        let exponent = |before: char| match hexadecimal {
            true => matches!(before, 'p' | 'P'),
            false => matches!(before, 'e' | 'E'),
        };
        let end = self.rest.char_indices().find(|&(at, found)| {
            let sign = matches!(found, '-' | '+') && (at == 0 || exponent(before));
            before = found;
            !(sign || found.is_ascii_alphanumeric() || found == '.')
        });
        self.cut(end.map_or(self.rest.len(), |(at, _)| at))
    }

    fn text(&mut self) -> CompiledResult<MilToken<'t>> {
        let begin = self.rest_line;
        let mut text = String::new();
        let mut escaped = false;
        for (at, found) in self.rest.char_indices().skip(1) {
            if found == '\n' {
                self.rest_line += 1;
            }
            match (escaped, found) {
                (true, 'n') => text.push('\n'),
                (true, 't') => text.push('\t'),
                (true, 'r') => text.push('\r'),
                (true, other) => text.push(other),
                (false, '"') => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(MilToken::Text(text));
                }
                (false, '\\') => {}
                (false, other) => text.push(other),
            }
            escaped = !escaped && found == '\\';
        }
        Err(CoreMlError::invalid("a text does not end").at(format!("line {begin}")))
    }
}

fn all_behind(text: &str, first: char) -> &str {
    &text[first.len_utf8()..]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut tokens = MilTokens::new(text).unwrap();
        let mut found = Vec::new();
        while *tokens.peek() != MilToken::End {
            found.push(match tokens.take().unwrap() {
                MilToken::Text(text) => format!("\"{text}\""),
                MilToken::Arrow => "->".to_owned(),
                MilToken::Word(text) | MilToken::Number(text) => text.to_owned(),
                MilToken::Mark(mark) => mark.to_string(),
                MilToken::End => unreachable!("the loop ends before"),
            });
        }
        found
    }

    #[test]
    fn numbers_keep_their_signs_and_exponents() {
        assert_eq!(
            all("[-1, 0x1.8p-3, 1e-05, -inf]"),
            ["[", "-1", ",", "0x1.8p-3", ",", "1e-05", ",", "-inf", "]"]
        );
        assert_eq!(all("0x1p+3,-0x1.ep5"), ["0x1p+3", ",", "-0x1.ep5"]);
    }

    #[test]
    fn texts_are_unescaped_and_comments_left_out() {
        assert_eq!(
            all("a // b\n \"c\\\"d\\n\" } -> (x_1.y);"),
            ["a", "\"c\"d\n\"", "}", "->", "(", "x_1.y", ")", ";"]
        );
    }

    #[test]
    fn errors_tell_the_line() {
        let mut tokens = MilTokens::new("a\n\n  {").unwrap();
        tokens.take().unwrap();
        let error = tokens.expect('(').unwrap_err().to_string();
        assert_eq!(error, "line 3: found '{', expected '('");
        let open = MilTokens::new("\"abc").err().unwrap().to_string();
        assert_eq!(open, "line 1: a text does not end");
    }
}
