//! Tokens of the text format.

use super::{TextPosition, TextProblem};

/// A word of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextToken {
    /// A field, enum value or other bare word.
    Word(String),
    /// A number as written, without its sign.
    Number(String),
    /// One quoted piece, unescaped.
    Text(Vec<u8>),
    /// Anything else, one character.
    Mark(char),
    /// The end.
    End,
}

impl TextToken {
    /// The token as an error message shows it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(_) => "a string".to_owned(),
            Self::Mark(mark) => format!("'{mark}'"),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// Splits a text into tokens; what is no token is a problem and left out.
pub(super) fn tokens(
    text: &str,
    problems: &mut Vec<TextProblem>,
) -> Vec<(TextToken, TextPosition)> {
    let mut lexer =
        TextLexer { rest: text.chars().collect(), at: 0, place: TextPosition::START, problems };
    let mut tokens = Vec::new();
    while let Some((token, place)) = lexer.next() {
        tokens.push((token, place));
    }
    tokens.push((TextToken::End, lexer.place));
    tokens
}

struct TextLexer<'a> {
    rest: Vec<char>,
    at: usize,
    place: TextPosition,
    problems: &'a mut Vec<TextProblem>,
}

impl TextLexer<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let found = self.peek()?;
        self.at += 1;
        if found == '\n' {
            self.place = TextPosition { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(found)
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.peek().filter(|&next| wanted(next)) {
            taken.push(next);
            self.bump();
        }
        taken
    }

    fn next(&mut self) -> Option<(TextToken, TextPosition)> {
        loop {
            self.take_while(|next| next.is_whitespace() || next == '\u{feff}');
            if self.peek() != Some('#') {
                break;
            }
            self.take_while(|next| next != '\n');
        }
        let place = self.place;
        let first = self.peek()?;
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                TextToken::Word(self.take_while(|next| next.is_ascii_alphanumeric() || next == '_'))
            }
            '0'..='9' => TextToken::Number(self.number()),
            '.' if self.rest.get(self.at + 1).is_some_and(char::is_ascii_digit) => {
                TextToken::Number(self.number())
            }
            '"' | '\'' => TextToken::Text(self.string(first, place)),
            _ => {
                self.bump();
                TextToken::Mark(first)
            }
        };
        Some((token, place))
    }

    /// Digits, a point, an exponent with its sign, a suffix: what it means is decided where the field is known.
    fn number(&mut self) -> String {
        let mut before = ' ';
        let hexadecimal =
            self.peek() == Some('0') && matches!(self.rest.get(self.at + 1), Some('x' | 'X'));
        self.take_while(|next| {
            let sign = matches!(next, '+' | '-') && matches!(before, 'e' | 'E') && !hexadecimal;
            before = next;
            sign || next == '.' || next == '_' || next.is_ascii_alphanumeric()
        })
    }

    fn string(&mut self, quote: char, start: TextPosition) -> Vec<u8> {
        self.bump();
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                Some(next) if next == quote => {
                    self.bump();
                    return bytes;
                }
                None | Some('\n') => {
                    self.problem(start, format!("this string has no closing {quote} on its line"));
                    return bytes;
                }
                Some('\\') => self.escape(&mut bytes),
                Some(next) => {
                    self.bump();
                    bytes.extend(next.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let place = self.place;
        self.bump();
        let Some(kind) = self.peek() else { return };
        if kind.is_digit(8) {
            let value = self.digits(8, 3);
            bytes.push(u8::try_from(value).unwrap_or_else(|_| {
                self.problem(place, "an octal escape goes up to \\377".to_owned());
                u8::MAX
            }));
            return;
        }
        if kind == '\n' {
            // The string's end is missing, which the caller reports.
            return;
        }
        self.bump();
        match kind {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => bytes.extend(kind.encode_utf8(&mut [0; 4]).as_bytes()),
            'x' | 'X' => {
                let value = self.digits(16, 2);
                bytes.push(u8::try_from(value).unwrap_or(u8::MAX));
            }
            'u' | 'U' => {
                let value = self.digits(16, if kind == 'u' { 4 } else { 8 });
                match char::from_u32(value) {
                    Some(found) => bytes.extend(found.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => self.problem(place, format!("{value:#x} is no character")),
                }
            }
            _ => self.problem(place, format!("'\\{kind}' is no escape")),
        }
    }

    /// Up to `most` digits as a number; none is 0.
    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(radix)) else { break };
            value = value.saturating_mul(radix).saturating_add(digit);
            self.bump();
        }
        value
    }

    fn problem(&mut self, place: TextPosition, message: String) {
        self.problems.push(TextProblem { place, path: String::new(), message });
    }
}
