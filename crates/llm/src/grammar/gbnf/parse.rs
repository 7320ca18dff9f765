//! The text of a GBNF grammar, read into rules.
//!
//! Source: llama.cpp, `grammars/README.md` and `src/llama-grammar.cpp`.

use std::collections::HashMap;

use crate::error::Result;
use crate::grammar::refused;

/// The longest text: some questions about rules take the square of their number.
const MAX_BYTES: usize = 1 << 17;
/// The most rules.
const MAX_RULES: usize = 1024;
/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 64;
/// The most times that `{m,n}` may repeat, as llama.cpp has it.
const MAX_REPEATS: usize = 2000;

/// The number of a rule.
pub(super) type RuleId = usize;

/// Body of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GbnfExpression {
    /// These characters.
    Text(String),
    /// One character of a class, written as a regular expression.
    Class(String),
    /// A token that the tokenizer calls special, as Lark's syntax has it.
    Special(String),
    Rule(RuleId),
    Sequence(Vec<GbnfExpression>),
    Choice(Vec<GbnfExpression>),
    Repeat(Box<GbnfExpression>, usize, Option<usize>),
}

impl GbnfExpression {
    /// Nothing at all.
    pub(super) fn empty() -> Self {
        Self::Sequence(Vec::new())
    }

    /// Calls `visit` for each rule that is named, once for each time.
    pub(super) fn visit_rules(&self, visit: &mut impl FnMut(RuleId)) {
        match self {
            Self::Rule(rule) => visit(*rule),
            Self::Sequence(parts) | Self::Choice(parts) => {
                parts.iter().for_each(|part| part.visit_rules(visit));
            }
            Self::Repeat(inner, ..) => inner.visit_rules(visit),
            Self::Text(_) | Self::Class(_) | Self::Special(_) => {}
        }
    }
}

/// A rule; the body is missing until its definition is read.
#[derive(Debug)]
pub(super) struct GbnfRule {
    pub(super) name: String,
    pub(super) body: Option<GbnfExpression>,
}

/// Reads all rules. The first one of the result is `root`.
///
/// # Errors
/// Fails on text that is no GBNF, by line, and rules that are named but not defined, or defined twice.
pub(super) fn rules(text: &str) -> Result<Vec<GbnfRule>> {
    if text.len() > MAX_BYTES {
        return Err(refused(format!("{} bytes found, expected at most {MAX_BYTES}", text.len())));
    }
    let mut parser = GbnfParser { rest: text, line: 1, rules: Vec::new(), known: HashMap::new() };
    parser.rule("root")?;
    parser.skip(true);
    while !parser.rest.is_empty() {
        parser.definition()?;
        parser.skip(true);
    }
    if let Some(rule) = parser.rules.iter().find(|rule| rule.body.is_none()) {
        return Err(refused(format!("the rule '{}' is not defined", rule.name)));
    }
    Ok(parser.rules)
}

struct GbnfParser<'a> {
    rest: &'a str,
    line: usize,
    rules: Vec<GbnfRule>,
    known: HashMap<String, RuleId>,
}

impl<'a> GbnfParser<'a> {
    fn wrong<T>(&self, expected: &str) -> Result<T> {
        let found = match self.rest.chars().next() {
            Some(character) => format!("{character:?}"),
            None => "the end".to_owned(),
        };
        Err(refused(format!("line {}: {found} found, expected {expected}", self.line)))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes a character.
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        self.line += usize::from(character == '\n');
        Some(character)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest.strip_prefix(text);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// Takes characters as long as `which` says so.
    fn take_while(&mut self, which: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c: char| !which(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Skips spaces and comments, and line breaks where they mean nothing.
    fn skip(&mut self, lines: bool) {
        loop {
            self.take_while(|c| c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'));
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|c| c != '\n' && c != '\r');
        }
    }

    /// The number of a rule, which may be defined later.
    fn rule(&mut self, name: &str) -> Result<RuleId> {
        if let Some(rule) = self.known.get(name) {
            return Ok(*rule);
        }
        let rule = self.rules.len();
        if rule == MAX_RULES {
            return Err(refused(format!("more than {MAX_RULES} rules")));
        }
        self.known.insert(name.to_owned(), rule);
        self.rules.push(GbnfRule { name: name.to_owned(), body: None });
        Ok(rule)
    }

    fn name(&mut self) -> Result<&'a str> {
        match self.take_while(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            "" => self.wrong("the name of a rule"),
            name => Ok(name),
        }
    }

    fn definition(&mut self) -> Result<()> {
        let name = self.name()?;
        self.skip(false);
        if !self.take("::=") {
            return self.wrong("'::='");
        }
        self.skip(true);
        let rule = self.rule(name)?;
        let body = self.choice(0)?;
        if !matches!(self.peek(), None | Some('\n' | '\r')) {
            return self.wrong("the end of the rule");
        }
        match self.rules[rule].body.replace(body) {
            None => Ok(()),
            Some(_) => Err(refused(format!("the rule '{name}' is defined twice"))),
        }
    }

    fn choice(&mut self, depth: usize) -> Result<GbnfExpression> {
        let mut parts = vec![self.sequence(depth)?];
        while self.take("|") {
            self.skip(true);
            parts.push(self.sequence(depth)?);
        }
        Ok(match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => only,
            (last, _) => GbnfExpression::Choice(parts.into_iter().chain(last).collect()),
        })
    }

    fn sequence(&mut self, depth: usize) -> Result<GbnfExpression> {
        let mut parts: Vec<GbnfExpression> = Vec::new();
        loop {
            let part = match self.peek() {
                Some('"') => self.literal()?,
                Some('[') => self.class()?,
                Some('<') => self.special()?,
                Some('(') => self.group(depth)?,
                Some('.') => {
                    self.next();
                    GbnfExpression::Class("(?s:.)".to_owned())
                }
                Some('!') => return self.wrong("something else than '!', which is not supported"),
                Some(c) if c.is_ascii_alphanumeric() || c == '-' || c == '_' => {
                    let name = self.name()?;
                    GbnfExpression::Rule(self.rule(name)?)
                }
                _ => break,
            };
            self.skip(depth > 0);
            let part = self.repeated(part, depth)?;
            parts.push(part);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => GbnfExpression::Sequence(parts),
        })
    }

    fn group(&mut self, depth: usize) -> Result<GbnfExpression> {
        if depth == MAX_DEPTH {
            return self.wrong(&format!("at most {MAX_DEPTH} parentheses in each other"));
        }
        self.next();
        self.skip(true);
        let inner = self.choice(depth + 1)?;
        if !self.take(")") {
            return self.wrong("')'");
        }
        Ok(inner)
    }

    /// Repetition behind a part; several of them repeat what is repeated.
    fn repeated(&mut self, mut part: GbnfExpression, depth: usize) -> Result<GbnfExpression> {
        for _ in 0..MAX_DEPTH {
            let (least, most) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => return Ok(part),
            };
            self.next();
            self.skip(depth > 0);
            part = GbnfExpression::Repeat(Box::new(part), least, most);
        }
        self.wrong(&format!("at most {MAX_DEPTH} repetitions of each other"))
    }

    /// `{m}`, `{m,}` or `{m,n}` up to the last sign.
    fn bounds(&mut self) -> Result<(usize, Option<usize>)> {
        self.next();
        let least = self.count()?;
        let mut most = Some(least);
        if self.take(",") {
            self.skip(false);
            most = if self.peek() == Some('}') { None } else { Some(self.count()?) };
        }
        if self.peek() != Some('}') {
            return self.wrong("'}'");
        }
        match most.is_some_and(|most| most < least) {
            true => self.wrong(&format!("at least {least} repetitions before it")),
            false => Ok((least, most)),
        }
    }

    fn count(&mut self) -> Result<usize> {
        self.skip(false);
        let digits = self.take_while(|c| c.is_ascii_digit());
        self.skip(false);
        match digits.parse() {
            Ok(count) if count <= MAX_REPEATS => Ok(count),
            _ => {
                let expected = format!("a number up to {MAX_REPEATS} before it");
                self.wrong(&expected)
            }
        }
    }

    fn literal(&mut self) -> Result<GbnfExpression> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('"') => break,
                None => return self.wrong("'\"'"),
                Some(_) => text.push(self.character()?),
            }
        }
        self.next();
        Ok(GbnfExpression::Text(text))
    }

    fn class(&mut self) -> Result<GbnfExpression> {
        self.next();
        let mut pattern = String::from(if self.take("^") { "[^" } else { "[" });
        let empty = pattern.len();
        while self.peek() != Some(']') {
            if self.peek().is_none() {
                return self.wrong("']'");
            }
            let first = self.character()?;
            let mut last = first;
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                last = self.character()?;
            }
            if last < first {
                return self.wrong(&format!("a range that does not end before {first:?}"));
            }
            let first = u32::from(first);
            let last = u32::from(last);
            pattern.push_str(&format!("\\x{{{first:x}}}-\\x{{{last:x}}}"));
        }
        if pattern.len() == empty {
            return self.wrong("a character of the class");
        }
        self.next();
        pattern.push(']');
        Ok(GbnfExpression::Class(pattern))
    }

    /// A character of a literal or a class, which may be written with a backslash.
    fn character(&mut self) -> Result<char> {
        let Some(character) = self.next() else { return self.wrong("a character") };
        if character != '\\' {
            return Ok(character);
        }
        let digits = match self.next() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some(plain @ ('\\' | '"' | '[' | ']' | '-' | '^' | '/')) => return Ok(plain),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return self.wrong("an escape (n, r, t, x, u, U, a quote or a bracket) before it"),
        };
        let code = self.rest.get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        let Some(character) = code.and_then(char::from_u32) else {
            return self.wrong(&format!("{digits} hexadecimal digits of a character"));
        };
        self.rest = self.rest.get(digits..).unwrap_or_default();
        Ok(character)
    }

    /// `<think>` or `<[123]>`.
    fn special(&mut self) -> Result<GbnfExpression> {
        self.next();
        let name = self.take_while(|c| !matches!(c, '>' | '\n' | '\r'));
        if name.is_empty() || name.contains(['/', '\\', '<', '"', ' ']) || !self.take(">") {
            return self.wrong("the name of a token and '>'");
        }
        Ok(GbnfExpression::Special(format!("<{name}>")))
    }
}
