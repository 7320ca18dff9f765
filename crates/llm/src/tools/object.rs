//! A call as a JSON object, read character by character: the name when it is complete, the
//! arguments as they come.

/// Effect of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharacterStep {
    /// Nothing to tell yet.
    More,
    /// The object is complete.
    Done,
    /// This is no call.
    Malformed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectState {
    Start,
    /// In front of a key, or of the end of an empty object.
    Key,
    InKey,
    Colon,
    /// In front of a value.
    Value,
    InValue,
    /// Behind a value.
    Comma,
    End,
}

/// Follows one JSON value.
#[derive(Debug, Clone, Default)]
struct ValueScanner {
    /// The open brackets.
    open: Vec<char>,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

/// The deepest nesting of arguments.
const MAX_DEPTH: usize = 128;

/// Role of a character in a value.
enum ValuePart {
    Inside,
    Last,
    /// The value has ended before this character.
    Behind,
    Wrong,
}

impl ValueScanner {
    fn push(&mut self, c: char) -> ValuePart {
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if c == '\\' {
                self.escaped = true;
            } else if c == '"' {
                self.in_string = false;
                return if self.open.is_empty() { ValuePart::Last } else { ValuePart::Inside };
            }
            return ValuePart::Inside;
        }
        match c {
            '"' if self.begun && self.open.is_empty() => return ValuePart::Wrong,
            '"' => self.in_string = true,
            '{' | '[' if self.open.len() < MAX_DEPTH => self.open.push(c),
            '}' | ']' => match (self.open.pop(), c) {
                (None, _) => return ValuePart::Behind,
                (Some('{'), '}') | (Some('['), ']') if self.open.is_empty() => {
                    return ValuePart::Last;
                }
                (Some('{'), '}') | (Some('['), ']') => {}
                _ => return ValuePart::Wrong,
            },
            ',' if self.open.is_empty() => return ValuePart::Behind,
            ',' | ':' | '-' | '+' | '.' => {}
            c if c.is_ascii_alphanumeric() => {}
            c if c.is_ascii_whitespace() => {
                if self.open.is_empty() && self.begun {
                    return ValuePart::Behind;
                }
            }
            _ => return ValuePart::Wrong,
        }
        self.begun = true;
        ValuePart::Inside
    }
}

/// Reads one call: an object with `name` and `arguments` (or `parameters`).
#[derive(Debug, Clone)]
pub(super) struct CallObject {
    state: ObjectState,
    key: String,
    value: ValueScanner,
    raw: String,
    /// The name of the function, when it is known.
    pub(super) name: Option<String>,
    /// The text of the arguments so far.
    pub(super) arguments: String,
    complete: bool,
    /// Whether the arguments stand alone, without an object around them.
    bare: bool,
}

impl CallObject {
    pub(super) fn new() -> Self {
        Self {
            state: ObjectState::Start,
            key: String::new(),
            value: ValueScanner::default(),
            raw: String::new(),
            name: None,
            arguments: String::new(),
            complete: false,
            bare: false,
        }
    }

    /// An object that is nothing but the arguments of `name`.
    pub(super) fn of_arguments(name: &str) -> Self {
        let mut object = Self::new();
        object.name = Some(name.to_owned());
        object.key = "arguments".to_owned();
        object.bare = true;
        object.state = ObjectState::Value;
        object
    }

    pub(super) fn push(&mut self, c: char) -> CharacterStep {
        let blank = c.is_ascii_whitespace();
        match (self.state, c) {
            (ObjectState::InKey, '"') if !self.value.escaped => {
                let quoted = format!("\"{}\"", self.key);
                match serde_json::from_str(&quoted) {
                    Ok(key) => self.key = key,
                    Err(_) => return CharacterStep::Malformed,
                }
                self.state = ObjectState::Colon;
            }
            (ObjectState::InKey, _) => {
                self.value.escaped = c == '\\' && !self.value.escaped;
                self.key.push(c);
            }
            (ObjectState::InValue, _) => return self.push_value(c),
            (_, _) if blank => {}
            (ObjectState::Start, '{') => self.state = ObjectState::Key,
            (ObjectState::Key, '"') => {
                self.key.clear();
                self.value = ValueScanner::default();
                self.state = ObjectState::InKey;
            }
            (ObjectState::Colon, ':') => {
                self.value = ValueScanner::default();
                self.raw.clear();
                self.state = ObjectState::Value;
            }
            (ObjectState::Value, _) => {
                if self.is_arguments() && !matches!(c, '{' | '"') {
                    return CharacterStep::Malformed;
                }
                self.state = ObjectState::InValue;
                return self.push_value(c);
            }
            (ObjectState::Comma, ',') => self.state = ObjectState::Key,
            (ObjectState::Comma | ObjectState::Key, '}') => {
                self.state = ObjectState::End;
                return if self.name.is_some() && self.complete {
                    CharacterStep::Done
                } else {
                    CharacterStep::Malformed
                };
            }
            _ => return CharacterStep::Malformed,
        }
        CharacterStep::More
    }

    fn is_arguments(&self) -> bool {
        matches!(self.key.as_str(), "arguments" | "parameters")
    }

    fn push_value(&mut self, c: char) -> CharacterStep {
        match self.value.push(c) {
            ValuePart::Inside => self.keep(c),
            ValuePart::Last => {
                self.keep(c);
                return self.end_value();
            }
            ValuePart::Behind => {
                let step = self.end_value();
                return if step == CharacterStep::More { self.push(c) } else { step };
            }
            ValuePart::Wrong => return CharacterStep::Malformed,
        }
        CharacterStep::More
    }

    /// Arguments that are an object are told as they come; others wait for their end.
    fn keep(&mut self, c: char) {
        if self.is_arguments() && (!self.arguments.is_empty() || c == '{') && self.raw.is_empty() {
            self.arguments.push(c);
        } else {
            self.raw.push(c);
        }
    }

    fn end_value(&mut self) -> CharacterStep {
        self.state = ObjectState::Comma;
        if self.is_arguments() {
            if self.arguments.is_empty() {
                // Some models write the arguments as a string of JSON.
                let Ok(text) = serde_json::from_str::<String>(&self.raw) else {
                    return CharacterStep::Malformed;
                };
                self.arguments = text;
            }
            let parsed = serde_json::from_str::<serde_json::Map<_, _>>(&self.arguments);
            if parsed.is_err() || self.complete {
                return CharacterStep::Malformed;
            }
            self.complete = true;
        } else if serde_json::from_str::<serde_json::Value>(&self.raw).is_err() {
            return CharacterStep::Malformed;
        } else if self.key == "name" {
            match serde_json::from_str::<String>(&self.raw) {
                Ok(name) if !name.is_empty() && self.name.is_none() => self.name = Some(name),
                _ => return CharacterStep::Malformed,
            }
        }
        if self.bare { CharacterStep::Done } else { CharacterStep::More }
    }
}
