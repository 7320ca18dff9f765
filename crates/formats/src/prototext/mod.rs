//! Protobuf text format, read by descriptor.
//!
//! [`parse`] reads all of a text whatever it meets, so that one look at the errors is enough: every problem has its
//! line, its column and the path of its field. It takes what protobuf's own reader takes: `field: value`,
//! `field { … }`, `field: { … }` and `field < … >`, lists in brackets also of messages, commas or semicolons between
//! fields, map entries as messages with `key` and `value`, `#` comments, strings in either quotes that join when
//! adjacent, booleans as `true`, `True`, `t` and `1`, enum values by name or number, hexadecimal and octal integers.

mod lexer;
mod scalar;
mod suggest;

use std::collections::HashMap;
use std::fmt;

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage as _, Value,
};

use lexer::TextToken;
use scalar::WrittenScalar;
use suggest::suggest;

/// Deepest nesting of messages.
const MAX_DEPTH: usize = 64;
/// Problems after which reading stops.
const MAX_PROBLEMS: usize = 100;

/// A position in a text; both numbers start at 1, and columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl TextPosition {
    const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Problem of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextProblem {
    /// Place of the problem.
    pub place: TextPosition,
    /// The field, such as `input[0].dims`; empty outside fields.
    pub path: String,
    /// Description of the problem.
    pub message: String,
}

impl fmt::Display for TextProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}: {}{colon}{}", self.place, self.path, self.message)
    }
}

/// Reads a message.
///
/// # Errors
/// With all problems, in the order in which they stand in the text.
pub fn parse(
    text: &str,
    descriptor: &MessageDescriptor,
) -> Result<DynamicMessage, Vec<TextProblem>> {
    let mut problems = Vec::new();
    let tokens = lexer::tokens(text, &mut problems);
    let mut parser = TextParser { tokens, at: 0, path: Vec::new(), problems };
    let message = parser.message(descriptor, None);
    let mut problems = parser.problems;
    if problems.is_empty() {
        return Ok(message);
    }
    problems.sort_by_key(|problem| (problem.place.line, problem.place.column));
    problems.truncate(MAX_PROBLEMS);
    Err(problems)
}

struct TextParser {
    tokens: Vec<(TextToken, TextPosition)>,
    at: usize,
    path: Vec<String>,
    problems: Vec<TextProblem>,
}

/// An opening brace: where it stands and what closes it.
#[derive(Clone, Copy)]
struct OpenBrace {
    place: TextPosition,
    close: char,
}

impl TextParser {
    fn peek(&self) -> &TextToken {
        self.tokens.get(self.at).map_or(&TextToken::End, |(token, _)| token)
    }

    fn place(&self) -> TextPosition {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(TextPosition::START, |&(_, place)| place)
    }

    fn bump(&mut self) -> TextToken {
        let token = self.peek().clone();
        if token != TextToken::End {
            self.at += 1;
        }
        token
    }

    fn take(&mut self, mark: char) -> bool {
        let found = *self.peek() == TextToken::Mark(mark);
        if found {
            self.bump();
        }
        found
    }

    fn problem(&mut self, place: TextPosition, message: impl Into<String>) {
        self.problems.push(TextProblem {
            place,
            path: self.path.join("."),
            message: message.into(),
        });
    }

    /// Reads fields until the closing mark, or without one until the end.
    fn message(
        &mut self,
        descriptor: &MessageDescriptor,
        opened: Option<OpenBrace>,
    ) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        let mut set: HashMap<u32, TextPosition> = HashMap::new();
        while self.problems.len() < MAX_PROBLEMS {
            let place = self.place();
            match self.bump() {
                TextToken::Word(name) => self.field(&mut message, &mut set, &name, place),
                TextToken::Mark(',' | ';') => {}
                TextToken::Mark(mark) if opened.is_some_and(|opened| opened.close == mark) => {
                    return message;
                }
                TextToken::End => {
                    if let Some(OpenBrace { place, close }) = opened {
                        self.problem(
                            place,
                            format!("the brace opened here is never closed by '{close}'"),
                        );
                    }
                    return message;
                }
                TextToken::Mark('}' | '>') if opened.is_none() => {
                    self.problem(place, "this closing brace has no opening one");
                }
                TextToken::Mark('[') => {
                    self.problem(place, "extension and Any fields are not known here");
                    self.at = self.at.saturating_sub(1);
                    self.skip_value();
                    self.take(':');
                    self.skip_value();
                }
                other => {
                    self.problem(
                        place,
                        format!("expected a field name, found {}", other.describe()),
                    );
                }
            }
        }
        message
    }

    fn field(
        &mut self,
        message: &mut DynamicMessage,
        set: &mut HashMap<u32, TextPosition>,
        name: &str,
        place: TextPosition,
    ) {
        let descriptor = message.descriptor();
        let Some(field) = descriptor.get_field_by_name(name) else {
            let names: Vec<String> =
                descriptor.fields().map(|field| field.name().to_owned()).collect();
            let hint = suggest(name, names.iter().map(String::as_str));
            self.path.push(name.to_owned());
            self.problem(place, format!("{} has no field of this name{hint}", descriptor.name()));
            self.path.pop();
            self.take(':');
            self.skip_value();
            return;
        };
        self.path.push(name.to_owned());
        if !field.is_list() && !field.is_map() {
            self.check_repetition(&field, set, place);
        }
        set.entry(field.number()).or_insert(place);
        let colon = self.take(':');
        let braces = matches!(self.peek(), TextToken::Mark('{' | '<' | '['));
        let message_follows = braces && matches!(field.kind(), Kind::Message(_));
        if !colon && !message_follows {
            let place = self.place();
            self.problem(place, "':' is missing after the field's name");
            // A word here is rather the next field's name than this one's value.
            if matches!(self.peek(), TextToken::Word(_) | TextToken::End) || braces {
                if braces {
                    self.skip_value();
                }
                self.path.pop();
                return;
            }
        }
        if *self.peek() == TextToken::Mark('[') {
            self.list(message, &field);
        } else if let Some(value) = self.element(message, &field) {
            store(message, &field, value);
        }
        self.path.pop();
    }

    /// Reports a field, or a member of its oneof, that is set for the second time.
    fn check_repetition(
        &mut self,
        field: &FieldDescriptor,
        set: &HashMap<u32, TextPosition>,
        place: TextPosition,
    ) {
        if let Some(first) = set.get(&field.number()) {
            self.problem(place, format!("set for the second time; the first is at {first}"));
            return;
        }
        let Some(oneof) = field.containing_oneof() else { return };
        let rival = oneof
            .fields()
            .find_map(|other| Some((other.name().to_owned(), *set.get(&other.number())?)));
        if let Some((rival, first)) = rival {
            self.problem(
                place,
                format!("cannot stand beside '{rival}' at {first}: only one of them may be set"),
            );
        }
    }

    fn list(&mut self, message: &mut DynamicMessage, field: &FieldDescriptor) {
        let place = self.place();
        if !field.is_list() && !field.is_map() {
            self.problem(place, "a list stands here, but the field takes one value");
            self.skip_value();
            return;
        }
        self.bump();
        if self.take(']') {
            return;
        }
        while self.problems.len() < MAX_PROBLEMS {
            if let Some(value) = self.element(message, field) {
                store(message, field, value);
            }
            if self.take(']') {
                return;
            }
            if !self.take(',') {
                let found = self.peek().describe();
                let here = self.place();
                self.problem(
                    here,
                    format!("expected ',' or ']' in the list opened at {place}, found {found}"),
                );
                // What follows is read as fields again if it looks like one; else the list goes on.
                if matches!(
                    self.peek(),
                    TextToken::End | TextToken::Word(_) | TextToken::Mark('}' | '>' | ':' | ';')
                ) {
                    return;
                }
            }
        }
    }

    /// Reads one value of a field, or of a list of it.
    fn element(&mut self, message: &DynamicMessage, field: &FieldDescriptor) -> Option<Value> {
        let place = self.place();
        let index = match message.get_field(field).as_ref() {
            Value::List(list) => Some(list.len()),
            _ => None,
        };
        let Kind::Message(inner) = field.kind() else { return self.scalar(&field.kind(), place) };
        let close = match self.peek() {
            TextToken::Mark('{') => '}',
            TextToken::Mark('<') => '>',
            other => {
                let found = other.describe();
                self.problem(
                    place,
                    format!("expected '{{' and the fields of {}, found {found}", inner.name()),
                );
                self.skip_value();
                return None;
            }
        };
        if self.path.len() >= MAX_DEPTH {
            self.problem(place, format!("messages are nested deeper than {MAX_DEPTH}"));
            self.skip_value();
            return None;
        }
        self.bump();
        if let (Some(index), Some(last)) = (index, self.path.last_mut()) {
            last.push_str(&format!("[{index}]"));
        }
        let value = self.message(&inner, Some(OpenBrace { place, close }));
        if let (Some(_), Some(last)) = (index, self.path.last_mut())
            && let Some(bracket) = last.rfind('[')
        {
            last.truncate(bracket);
        }
        Some(Value::Message(value))
    }

    fn scalar(&mut self, kind: &Kind, place: TextPosition) -> Option<Value> {
        let negative = self.take('-');
        let token = match self.peek() {
            TextToken::Mark('{' | '<' | '[') => {
                self.problem(place, "expected a value, found a brace");
                self.skip_value();
                return None;
            }
            TextToken::Mark('}' | '>' | ']' | ',' | ';') | TextToken::End => {
                let found = self.peek().describe();
                self.problem(place, format!("expected a value, found {found}"));
                return None;
            }
            _ => self.bump(),
        };
        let token = match token {
            TextToken::Text(mut bytes) => {
                while let TextToken::Text(more) = self.peek() {
                    bytes.extend(more);
                    self.bump();
                }
                TextToken::Text(bytes)
            }
            other => other,
        };
        match scalar::value(kind, &WrittenScalar { negative, token }) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(place, message);
                None
            }
        }
    }

    /// Passes over a value of any form.
    fn skip_value(&mut self) {
        self.take('-');
        let mut open = 0_usize;
        loop {
            match self.peek() {
                TextToken::End => return,
                TextToken::Mark('{' | '<' | '[') => open += 1,
                TextToken::Mark('}' | '>' | ']') if open == 0 => return,
                TextToken::Mark('}' | '>' | ']') => open -= 1,
                _ => {}
            }
            let text = matches!(self.bump(), TextToken::Text(_));
            if open == 0 && !(text && matches!(self.peek(), TextToken::Text(_))) {
                return;
            }
        }
    }
}

/// Puts a value where the field has its place: appended, inserted or set.
fn store(message: &mut DynamicMessage, field: &FieldDescriptor, value: Value) {
    if field.is_map() {
        let Value::Message(entry) = value else { return };
        let Kind::Message(descriptor) = field.kind() else { return };
        let key = entry.get_field(&descriptor.map_entry_key_field()).into_owned();
        let value = entry.get_field(&descriptor.map_entry_value_field()).into_owned();
        if let (Some(key), Value::Map(map)) = (map_key(key), message.get_field_mut(field)) {
            map.insert(key, value);
        }
    } else if field.is_list() {
        if let Value::List(list) = message.get_field_mut(field) {
            list.push(value);
        }
    } else {
        message.set_field(field, value);
    }
}

fn map_key(value: Value) -> Option<MapKey> {
    match value {
        Value::Bool(key) => Some(MapKey::Bool(key)),
        Value::I32(key) => Some(MapKey::I32(key)),
        Value::I64(key) => Some(MapKey::I64(key)),
        Value::U32(key) => Some(MapKey::U32(key)),
        Value::U64(key) => Some(MapKey::U64(key)),
        Value::String(key) => Some(MapKey::String(key)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
