//! Text of a template to tokens, as Jinja2 with `trim_blocks` and `lstrip_blocks` cuts it.

use std::sync::Arc;

use super::meter::{RenderFault, RenderResult};

/// The tokens of all templates of a model. The longest known templates have a tenth of it.
pub(super) const MAX_TOKENS: usize = 1 << 18;

/// The longest name.
const MAX_NAME_BYTES: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplateLexeme {
    /// Text outside of tags.
    Raw(Box<str>),
    PrintBegin,
    PrintEnd,
    BlockBegin,
    BlockEnd,
    Name(Arc<str>),
    Text(Arc<str>),
    Int(i128),
    Float(f64),
    Sign(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct JinjaToken {
    pub(super) lexeme: TemplateLexeme,
    /// From 1.
    pub(super) line: u32,
}

/// Operators, the longer ones first.
const SIGNS: &[&str] = &[
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
    "<", ">", "=", ".", ":", "|", ",", ";",
];

/// Cuts a template into tokens, at most `limit`.
///
/// # Errors
/// Characters that no token begins with, text and tags without an end, and too many tokens.
pub(super) fn tokens(source: &str, limit: usize) -> RenderResult<Vec<JinjaToken>> {
    let source = lines(source);
    let mut lexer = JinjaLexer {
        source: &source,
        at: 0,
        line: 1,
        tokens: Vec::new(),
        limit,
        begins_line: true,
    };
    lexer.run()?;
    Ok(lexer.tokens)
}

/// Unifies the ends of lines; one at the end of the source goes.
fn lines(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Whether a character is white space in Python.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&c)
}

struct JinjaLexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    tokens: Vec<JinjaToken>,
    limit: usize,
    /// Whether the text begins where a line does, since its end was cut off.
    begins_line: bool,
}

impl<'a> JinjaLexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn fault<T>(&self, message: impl Into<String>) -> RenderResult<T> {
        Err(RenderFault::new(message).at(self.line))
    }

    fn push(&mut self, lexeme: TemplateLexeme) -> RenderResult<()> {
        if self.tokens.len() >= self.limit {
            let message =
                format!("it has more tokens than a model's templates may have: {MAX_TOKENS}");
            return self.fault(message);
        }
        self.tokens.push(JinjaToken { lexeme, line: self.line });
        Ok(())
    }

    /// Goes on by some bytes, and counts their lines.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let skipped = self.rest().get(..bytes).unwrap_or_default();
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at += skipped.len();
        skipped
    }

    fn skip_space(&mut self) -> &'a str {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start_matches(is_space).len())
    }

    fn run(&mut self) -> RenderResult<()> {
        loop {
            let rest = self.rest();
            let Some(begin) = next_tag(rest) else {
                if !rest.is_empty() {
                    self.push(TemplateLexeme::Raw(rest.into()))?;
                }
                return Ok(());
            };
            let (text, tag) = rest.split_at(begin);
            self.text(text, tag)?;
            match tag.as_bytes().get(1) {
                Some(b'#') => self.comment()?,
                Some(b'{') => self.tag(TemplateLexeme::PrintBegin, TemplateLexeme::PrintEnd)?,
                _ => match raw_begin(tag) {
                    Some(bytes) => self.raw(bytes)?,
                    None => self.tag(TemplateLexeme::BlockBegin, TemplateLexeme::BlockEnd)?,
                },
            }
        }
    }

    /// Text in front of a tag, without the space that the tag takes away.
    fn text(&mut self, text: &str, tag: &str) -> RenderResult<()> {
        let kept = self.kept(text, tag);
        if !kept.is_empty() {
            self.push(TemplateLexeme::Raw(kept.into()))?;
        }
        self.skip(text.len());
        Ok(())
    }

    fn kept<'t>(&self, text: &'t str, tag: &str) -> &'t str {
        let sign = tag.as_bytes().get(2);
        if sign == Some(&b'-') {
            return text.trim_end_matches(is_space);
        }
        if sign == Some(&b'+') || tag.starts_with("{{") {
            return text;
        }
        let (before, line) = text.rfind('\n').map_or(("", text), |end| text.split_at(end + 1));
        let at_begin = !before.is_empty() || self.begins_line;
        if at_begin && line.chars().all(is_space) { before } else { text }
    }

    /// The end of a block or comment, of which `mark` bytes are the mark itself.
    fn end(&mut self, strips: bool, trims: bool, mark: usize) {
        self.skip(mark);
        let eaten = if strips {
            self.skip_space()
        } else if trims && self.rest().starts_with('\n') {
            self.skip(1)
        } else {
            ""
        };
        self.begins_line = eaten.ends_with('\n');
    }

    fn comment(&mut self) -> RenderResult<()> {
        let Some(end) = self.rest().get(2..).and_then(|rest| rest.find("#}")) else {
            return self.fault("a comment has no end `#}`");
        };
        let inner = self.rest().get(2..end + 2).unwrap_or_default();
        let strips = inner.ends_with('-');
        let keeps = inner.ends_with('+');
        self.end(strips, !keeps, end + 4);
        Ok(())
    }

    fn raw(&mut self, bytes: usize) -> RenderResult<()> {
        let strips = self.skip(bytes).ends_with("-%}");
        self.begins_line = strips && self.skip_space().ends_with('\n');
        let rest = self.rest();
        let mut from = 0;
        while let Some(at) = rest.get(from..).and_then(|rest| rest.find("{%")) {
            let at = from + at;
            let tag = rest.get(at..).unwrap_or_default();
            if let Some(end) = raw_end(tag) {
                self.text(rest.get(..at).unwrap_or_default(), tag)?;
                self.end(end.strips, end.trims, end.bytes);
                return Ok(());
            }
            from = at + 2;
        }
        self.fault("`raw` has no `endraw`")
    }

    /// A tag with its tokens.
    fn tag(&mut self, begin: TemplateLexeme, end: TemplateLexeme) -> RenderResult<()> {
        let signed = self.rest().as_bytes().get(2).is_some_and(|sign| b"+-".contains(sign));
        let block = begin == TemplateLexeme::BlockBegin;
        let close = if block { "%}" } else { "}}" };
        self.push(begin)?;
        self.skip(if signed { 3 } else { 2 });
        let mut open = 0_usize;
        loop {
            self.skip_space();
            let rest = self.rest();
            if open == 0 {
                let signed = rest.starts_with('-') || block && rest.starts_with('+');
                let sign = usize::from(signed);
                if rest.get(sign..).is_some_and(|rest| rest.starts_with(close)) {
                    self.push(end)?;
                    self.end(rest.starts_with('-'), block && !signed, sign + 2);
                    return Ok(());
                }
            }
            match rest.chars().next() {
                None => return self.fault(format!("a tag has no end `{close}`")),
                Some(c) if c.is_ascii_digit() => self.number()?,
                Some(c) if c == '_' || c.is_alphabetic() => {
                    let bytes = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
                    let bytes = bytes.unwrap_or(rest.len());
                    if bytes > MAX_NAME_BYTES {
                        let message =
                            format!("a name of {bytes} bytes, longer than {MAX_NAME_BYTES}");
                        return self.fault(message);
                    }
                    self.push(TemplateLexeme::Name(rest.get(..bytes).unwrap_or_default().into()))?;
                    self.skip(bytes);
                }
                Some(quote @ ('"' | '\'')) => self.string(quote)?,
                Some(c) => {
                    let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
                        return self.fault(format!("unexpected character {c:?}"));
                    };
                    match *sign {
                        "(" | "[" | "{" => open += 1,
                        ")" | "]" | "}" => open = open.saturating_sub(1),
                        _ => {}
                    }
                    self.push(TemplateLexeme::Sign(sign))?;
                    self.skip(sign.len());
                }
            }
        }
    }

    fn string(&mut self, quote: char) -> RenderResult<()> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == quote && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else {
            return self.fault(format!("a text has no end {quote}"));
        };
        let text = unescape(rest.get(1..end).unwrap_or_default());
        self.push(TemplateLexeme::Text(text.into()))?;
        self.skip(end + 1);
        Ok(())
    }

    fn number(&mut self) -> RenderResult<()> {
        let rest = self.rest();
        let after_point = matches!(
            self.tokens.last(),
            Some(JinjaToken { lexeme: TemplateLexeme::Sign("."), .. })
        );
        let found = match after_point {
            // `a.0.1` are two attributes.
            true => rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()),
            false => number_bytes(rest),
        };
        let text: String = rest.chars().take(found).filter(|c| *c != '_').collect();
        let radix = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            _ => 10,
        };
        let digits = if radix == 10 { text.as_str() } else { text.get(2..).unwrap_or_default() };
        let lexeme = if radix == 10 && digits.contains(['.', 'e', 'E']) {
            digits.parse().ok().map(TemplateLexeme::Float)
        } else {
            i128::from_str_radix(digits, radix).ok().map(TemplateLexeme::Int)
        };
        let Some(lexeme) = lexeme else {
            let shown: String = text.chars().take(40).collect();
            return self.fault(format!("the number {shown} is malformed or too large"));
        };
        self.push(lexeme)?;
        self.skip(found);
        Ok(())
    }
}

/// Where the next tag begins.
fn next_tag(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let tag = |pair: &[u8]| pair.first() == Some(&b'{') && b"{%#".contains(&pair[1]);
    bytes.windows(2).position(tag)
}

/// How many bytes of a text are a number.
fn number_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
        from + rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len())
    };
    let radix = bytes.get(1).map(u8::to_ascii_lowercase);
    if bytes.first() == Some(&b'0') && radix.is_some_and(|radix| b"xob".contains(&radix)) {
        let rest = bytes.get(2..).unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        return 2 + rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len());
    }
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
        end = digits(end + 1);
    }
    if bytes.get(end).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        let signed = bytes.get(end + 1).is_some_and(|sign| b"+-".contains(sign));
        let exponent = end + 1 + usize::from(signed);
        if is_digit(exponent) {
            end = digits(exponent);
        }
    }
    end
}

/// How many bytes `{% raw %}` takes at the beginning of a text.
fn raw_begin(tag: &str) -> Option<usize> {
    let rest = tag.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest.trim_start_matches(is_space).strip_prefix("raw")?;
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix("-%}").or_else(|| rest.strip_prefix("%}"))?;
    Some(tag.len() - rest.len())
}

/// The end of a raw block.
struct RawEnd {
    bytes: usize,
    strips: bool,
    trims: bool,
}

fn raw_end(tag: &str) -> Option<RawEnd> {
    let rest = tag.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest.trim_start_matches(is_space).strip_prefix("endraw")?;
    let rest = rest.trim_start_matches(is_space);
    let sign = rest.chars().next().filter(|c| matches!(c, '-' | '+'));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
    let bytes = tag.len() - rest.len();
    Some(RawEnd { bytes, strips: sign == Some('-'), trims: sign.is_none() })
}

/// A text without its escapes, as Python reads it.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = escape.strip_prefix("\\\n") {
            // The line goes on.
            rest = after;
            continue;
        }
        let (character, bytes) = escape_of(escape);
        match character {
            Some(character) => out.push(character),
            None => out.push_str(escape.get(..bytes).unwrap_or_default()),
        }
        rest = escape.get(bytes..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The character of an escape and its bytes; none where it stands for itself.
fn escape_of(escape: &str) -> (Option<char>, usize) {
    let Some(kind) = escape.chars().nth(1) else { return (None, escape.len()) };
    let hex = |digits: usize| {
        let text = escape.get(2..2 + digits)?;
        text.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(text, 16).ok()
    };
    let simple = match kind {
        '\\' | '\'' | '"' => Some(kind),
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{C}'),
        'v' => Some('\u{B}'),
        _ => None,
    };
    if simple.is_some() {
        return (simple, 2);
    }
    let lossy = |code: u32| Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    match kind {
        'x' => hex(2).map_or((None, 2), |code| (lossy(code), 4)),
        'u' => match hex(4) {
            Some(high @ 0xD800..=0xDBFF) => {
                let low = escape.get(6..12).and_then(|low| low.strip_prefix("\\u"));
                match low.and_then(|low| u32::from_str_radix(low, 16).ok()) {
                    Some(low @ 0xDC00..=0xDFFF) => {
                        (lossy(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12)
                    }
                    _ => (lossy(high), 6),
                }
            }
            code => code.map_or((None, 2), |code| (lossy(code), 6)),
        },
        'U' => hex(8).map_or((None, 2), |code| (lossy(code), 10)),
        '0'..='7' => {
            let digits = escape.bytes().skip(1).take(3).take_while(|b| (b'0'..=b'7').contains(b));
            let digits = digits.count();
            let text = escape.get(1..=digits).unwrap_or_default();
            (u32::from_str_radix(text, 8).ok().and_then(char::from_u32), 1 + digits)
        }
        other => (None, 1 + other.len_utf8()),
    }
}
