//! A call as a JSON object, read character by character: the name when it is complete, the
//! arguments as they come.

/// What a character brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to tell yet.
    More,
    /// The object is complete.
    Done,
    /// This is no call.
    Malformed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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

/// What a character is to a value.
enum Part {
    Inside,
    Last,
    /// The value has ended before this character.
    Behind,
    Wrong,
}

impl ValueScanner {
    fn push(&mut self, c: char) -> Part {
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if c == '\\' {
                self.escaped = true;
            } else if c == '"' {
                self.in_string = false;
                return if self.open.is_empty() { Part::Last } else { Part::Inside };
            }
            return Part::Inside;
        }
        match c {
            '"' if self.begun && self.open.is_empty() => return Part::Wrong,
            '"' => self.in_string = true,
            '{' | '[' if self.open.len() < MAX_DEPTH => self.open.push(c),
            '}' | ']' => match (self.open.pop(), c) {
                (None, _) => return Part::Behind,
                (Some('{'), '}') | (Some('['), ']') if self.open.is_empty() => return Part::Last,
                (Some('{'), '}') | (Some('['), ']') => {}
                _ => return Part::Wrong,
            },
            ',' if self.open.is_empty() => return Part::Behind,
            ',' | ':' | '-' | '+' | '.' => {}
            c if c.is_ascii_alphanumeric() => {}
            c if c.is_ascii_whitespace() => {
                if self.open.is_empty() && self.begun {
                    return Part::Behind;
                }
            }
            _ => return Part::Wrong,
        }
        self.begun = true;
        Part::Inside
    }
}

/// Reads one call: an object with `name` and `arguments` (or `parameters`).
#[derive(Debug, Clone)]
pub(super) struct CallObject {
    state: State,
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
            state: State::Start,
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
        object.state = State::Value;
        object
    }

    pub(super) fn push(&mut self, c: char) -> Step {
        let blank = c.is_ascii_whitespace();
        match (self.state, c) {
            (State::InKey, '"') if !self.value.escaped => {
                let quoted = format!("\"{}\"", self.key);
                match serde_json::from_str(&quoted) {
                    Ok(key) => self.key = key,
                    Err(_) => return Step::Malformed,
                }
                self.state = State::Colon;
            }
            (State::InKey, _) => {
                self.value.escaped = c == '\\' && !self.value.escaped;
                self.key.push(c);
            }
            (State::InValue, _) => return self.push_value(c),
            (_, _) if blank => {}
            (State::Start, '{') => self.state = State::Key,
            (State::Key, '"') => {
                self.key.clear();
                self.value = ValueScanner::default();
                self.state = State::InKey;
            }
            (State::Colon, ':') => {
                self.value = ValueScanner::default();
                self.raw.clear();
                self.state = State::Value;
            }
            (State::Value, _) => {
                if self.is_arguments() && !matches!(c, '{' | '"') {
                    return Step::Malformed;
                }
                self.state = State::InValue;
                return self.push_value(c);
            }
            (State::Comma, ',') => self.state = State::Key,
            (State::Comma | State::Key, '}') => {
                self.state = State::End;
                return if self.name.is_some() && self.complete {
                    Step::Done
                } else {
                    Step::Malformed
                };
            }
            _ => return Step::Malformed,
        }
        Step::More
    }

    fn is_arguments(&self) -> bool {
        matches!(self.key.as_str(), "arguments" | "parameters")
    }

    fn push_value(&mut self, c: char) -> Step {
        match self.value.push(c) {
            Part::Inside => self.keep(c),
            Part::Last => {
                self.keep(c);
                return self.end_value();
            }
            Part::Behind => {
                let step = self.end_value();
                return if step == Step::More { self.push(c) } else { step };
            }
            Part::Wrong => return Step::Malformed,
        }
        Step::More
    }

    /// Arguments that are an object are told as they come; others wait for their end.
    fn keep(&mut self, c: char) {
        if self.is_arguments() && (!self.arguments.is_empty() || c == '{') && self.raw.is_empty() {
            self.arguments.push(c);
        } else {
            self.raw.push(c);
        }
    }

    fn end_value(&mut self) -> Step {
        self.state = State::Comma;
        if self.is_arguments() {
            if self.arguments.is_empty() {
                // Some models write the arguments as a string of JSON.
                let Ok(text) = serde_json::from_str::<String>(&self.raw) else {
                    return Step::Malformed;
                };
                self.arguments = text;
            }
            let parsed = serde_json::from_str::<serde_json::Map<_, _>>(&self.arguments);
            if parsed.is_err() || self.complete {
                return Step::Malformed;
            }
            self.complete = true;
        } else if serde_json::from_str::<serde_json::Value>(&self.raw).is_err() {
            return Step::Malformed;
        } else if self.key == "name" {
            match serde_json::from_str::<String>(&self.raw) {
                Ok(name) if !name.is_empty() && self.name.is_none() => self.name = Some(name),
                _ => return Step::Malformed,
            }
        }
        if self.bare { Step::Done } else { Step::More }
    }
}
