//! Calls in what a model writes, whole and as it streams.

use super::object::{CallObject, CharacterStep};
use crate::reasoning::beginning_at_end;

/// How a model writes calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolFormat {
    /// LLaMA 3: the answer is `{"name": …, "parameters": …}`, several behind each other with `;`,
    /// perhaps behind `<|python_tag|>`.
    Llama,
    /// Hermes and Qwen: `<tool_call>{"name": …, "arguments": …}</tool_call>` inside of text.
    Hermes,
    /// Mistral: `[TOOL_CALLS][{"name": …, "arguments": …}, …]`, or `[TOOL_CALLS]name{…}` of newer
    /// models. The mark is a special token, whose text has to be kept.
    Mistral,
    /// The list that a required choice makes ([`super::ToolChoice::grammar`]).
    List,
    /// The arguments that a choice of this function makes.
    Arguments(String),
}

impl ToolFormat {
    /// The format that a chat template speaks of.
    pub fn of_template(source: &str) -> Option<Self> {
        if source.contains("<tool_call>") {
            Some(Self::Hermes)
        } else if source.contains("[TOOL_CALLS]") {
            Some(Self::Mistral)
        } else if source.contains("<|python_tag|>") || source.contains("ipython") {
            Some(Self::Llama)
        } else {
            None
        }
    }
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The function.
    pub name: String,
    /// Its arguments, the text of a JSON object as the model wrote it.
    pub arguments: String,
}

/// Addition of a piece of text to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolDelta {
    /// Text that belongs to no call.
    Text(String),
    /// A call begins.
    Begin {
        /// The number of the call, from 0.
        index: usize,
        /// The function.
        name: String,
    },
    /// A call's arguments go on.
    Arguments {
        /// The number of the call.
        index: usize,
        /// The next piece of their text.
        text: String,
    },
}

/// Reads a whole answer: its text and its calls. Where any call is malformed, all is text.
pub fn parse(format: &ToolFormat, text: &str) -> (String, Vec<ToolCall>) {
    let mut parser = ToolParser::new(format.clone());
    let mut deltas = parser.push(text);
    deltas.extend(parser.finish());
    if parser.is_malformed() {
        return (text.to_owned(), Vec::new());
    }
    let mut content = String::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    for delta in deltas {
        match delta {
            ToolDelta::Text(text) => content.push_str(&text),
            ToolDelta::Begin { name, .. } => {
                calls.push(ToolCall { name, arguments: String::new() });
            }
            ToolDelta::Arguments { text, .. } => {
                if let Some(call) = calls.last_mut() {
                    call.arguments.push_str(&text);
                }
            }
        }
    }
    (content, calls)
}

const PYTHON_TAG: &str = "<|python_tag|>";
const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const MARK: &str = "[TOOL_CALLS]";
const ARGUMENTS_MARK: &str = "[ARGS]";

/// The longest name of a function that stands in front of its arguments.
const MAX_NAME_BYTES: usize = 256;

#[derive(Debug, Clone)]
enum ToolCallState {
    /// At the beginning of the answer.
    Start,
    /// In text, where a tag may begin a call.
    Text,
    /// Where a call begins, or the next one.
    Between,
    /// In the name in front of arguments.
    Name,
    Call(Box<CallObject>),
    /// Behind a call, before what closes it.
    Close,
    /// All that follows is text.
    Plain,
}

/// Finds calls in a stream of text. A call is told when its name is complete; malformed calls become
/// text, as far as nothing of them was told.
#[derive(Debug, Clone)]
pub struct ToolParser {
    format: ToolFormat,
    state: ToolCallState,
    held: String,
    /// The text of the call that has not been told, in case that it is none.
    untold: String,
    /// Bytes of the current call's arguments that were told.
    told: usize,
    calls: usize,
    begun: bool,
    /// True behind a call, until text other than blanks comes.
    separates: bool,
    malformed: bool,
}

impl ToolParser {
    /// A parser in front of an answer.
    pub fn new(format: ToolFormat) -> Self {
        Self {
            format,
            state: ToolCallState::Start,
            held: String::new(),
            untold: String::new(),
            told: 0,
            calls: 0,
            begun: false,
            separates: false,
            malformed: false,
        }
    }

    /// How many calls have begun.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Whether a call was malformed or unfinished.
    pub fn is_malformed(&self) -> bool {
        self.malformed
    }

    /// Takes the next piece of text, and tells what is certain.
    pub fn push(&mut self, text: &str) -> Vec<ToolDelta> {
        self.held.push_str(text);
        let mut deltas = Vec::new();
        while self.step(&mut deltas) {}
        deltas
    }

    /// Tells what was held back, as the answer has ended.
    pub fn finish(&mut self) -> Vec<ToolDelta> {
        let mut deltas = Vec::new();
        let inside = match &self.state {
            ToolCallState::Call(_) | ToolCallState::Name => true,
            // A tag without a call behind it.
            ToolCallState::Between => !self.untold.is_empty(),
            _ => false,
        };
        let held = std::mem::take(&mut self.held);
        if inside {
            self.malformed = true;
            self.untold.push_str(&held);
            let text = std::mem::take(&mut self.untold);
            if !self.begun {
                add_text(&mut deltas, &text);
            }
        } else if !matches!(self.state, ToolCallState::Close | ToolCallState::Between) {
            add_text(&mut deltas, &held);
        }
        self.state = ToolCallState::Plain;
        deltas
    }

    /// Takes one step; `false` where more text is needed.
    fn step(&mut self, deltas: &mut Vec<ToolDelta>) -> bool {
        match self.state {
            ToolCallState::Start => self.start(),
            ToolCallState::Text => self.text(deltas),
            ToolCallState::Between => self.between(deltas),
            ToolCallState::Name => self.name(deltas),
            ToolCallState::Call(_) => self.call(deltas),
            ToolCallState::Close => self.close(),
            ToolCallState::Plain => {
                add_text(deltas, &std::mem::take(&mut self.held));
                false
            }
        }
    }

    fn start(&mut self) -> bool {
        match &self.format {
            ToolFormat::Hermes | ToolFormat::Mistral => self.state = ToolCallState::Text,
            ToolFormat::List | ToolFormat::Arguments(_) => self.state = ToolCallState::Between,
            ToolFormat::Llama => {
                let text = self.held.trim_start();
                if text.is_empty() || text.len() < PYTHON_TAG.len() && PYTHON_TAG.starts_with(text)
                {
                    return false;
                }
                let call = text.starts_with('{') || text.starts_with(PYTHON_TAG);
                self.state = if call { ToolCallState::Between } else { ToolCallState::Plain };
            }
        }
        true
    }

    fn text(&mut self, deltas: &mut Vec<ToolDelta>) -> bool {
        let tag = if self.format == ToolFormat::Hermes { OPEN } else { MARK };
        if let Some(at) = self.held.find(tag) {
            let before: String = self.held.drain(..at).collect();
            // Line breaks in front of a call only separate it, and so does any blank between two calls.
            let blank = self.separates && before.trim().is_empty();
            add_text(deltas, if blank { "" } else { before.trim_end_matches('\n') });
            self.held.drain(..tag.len());
            self.untold = tag.to_owned();
            self.state = ToolCallState::Between;
            return true;
        }
        // Line breaks wait with the tag that may follow them.
        let waiting = beginning_at_end(&self.held, tag);
        let certain = self.held.len() - waiting;
        let certain = self.held.get(..certain).map_or(certain, |t| t.trim_end_matches('\n').len());
        let text = self.held.get(..certain).unwrap_or_default();
        if self.separates && text.trim().is_empty() {
            return false;
        }
        let text: String = self.held.drain(..certain).collect();
        self.separates = false;
        add_text(deltas, &text);
        false
    }

    /// Skips what stands in front of a call.
    fn between(&mut self, deltas: &mut Vec<ToolDelta>) -> bool {
        let first = self.calls == 0;
        let skipped = |c: char| {
            c.is_ascii_whitespace()
                || match self.format {
                    ToolFormat::Llama => !first && matches!(c, ';' | ','),
                    ToolFormat::Mistral | ToolFormat::List => c == if first { '[' } else { ',' },
                    _ => false,
                }
        };
        let rest = self.held.trim_start_matches(skipped).len();
        let blank: String = self.held.drain(..self.held.len() - rest).collect();
        self.untold.push_str(&blank);
        if self.format == ToolFormat::Llama && first {
            if let Some(rest) = self.held.strip_prefix(PYTHON_TAG) {
                self.held = rest.to_owned();
                self.untold.push_str(PYTHON_TAG);
                return true;
            }
            if !self.held.is_empty() && PYTHON_TAG.starts_with(self.held.as_str()) {
                return false;
            }
        }
        let Some(next) = self.held.chars().next() else { return false };
        let bare = match &self.format {
            ToolFormat::Arguments(name) => Some(CallObject::of_arguments(name)),
            _ => None,
        };
        match next {
            '{' => self.state = ToolCallState::Call(Box::new(bare.unwrap_or_else(CallObject::new))),
            ']' if !first && matches!(self.format, ToolFormat::Mistral | ToolFormat::List) => {
                self.held.remove(0);
                self.untold.clear();
                self.state = ToolCallState::Plain;
            }
            c if self.format == ToolFormat::Mistral && (c.is_alphabetic() || c == '_') => {
                self.state = ToolCallState::Name;
            }
            _ if !first && self.format == ToolFormat::Mistral && self.held.starts_with('[') => {
                // The mark again, in front of the next call.
                if let Some(rest) = self.held.strip_prefix(MARK) {
                    self.held = rest.to_owned();
                    return true;
                }
                if MARK.starts_with(self.held.as_str()) {
                    return false;
                }
                self.give_up(deltas);
            }
            _ => self.give_up(deltas),
        }
        true
    }

    /// The name in front of arguments ends where these begin.
    fn name(&mut self, deltas: &mut Vec<ToolDelta>) -> bool {
        let Some(at) = self.held.find('{') else {
            if self.held.len() > MAX_NAME_BYTES {
                self.give_up(deltas);
                return true;
            }
            return false;
        };
        let name: String = self.held.drain(..at).collect();
        self.untold.push_str(&name);
        let name = name.trim_end();
        let name = name.strip_suffix(ARGUMENTS_MARK).unwrap_or(name).trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) {
            self.give_up(deltas);
            return true;
        }
        self.state = ToolCallState::Call(Box::new(CallObject::of_arguments(name)));
        true
    }

    fn call(&mut self, deltas: &mut Vec<ToolDelta>) -> bool {
        let ToolCallState::Call(object) = &mut self.state else { return false };
        let mut used = 0;
        let mut step = CharacterStep::More;
        for c in self.held.chars() {
            step = object.push(c);
            if step == CharacterStep::Malformed {
                break;
            }
            used += c.len_utf8();
            if step == CharacterStep::Done {
                break;
            }
        }
        let taken: String = self.held.drain(..used).collect();
        self.untold.push_str(&taken);
        if step != CharacterStep::Malformed || self.begun {
            tell(object, self.calls, &mut self.begun, &mut self.told, deltas);
        }
        match step {
            CharacterStep::More => false,
            CharacterStep::Malformed => {
                self.give_up(deltas);
                true
            }
            CharacterStep::Done => {
                self.calls += 1;
                self.begun = false;
                self.told = 0;
                self.untold.clear();
                self.state = match self.format {
                    ToolFormat::Hermes => ToolCallState::Close,
                    ToolFormat::Arguments(_) => ToolCallState::Plain,
                    _ => ToolCallState::Between,
                };
                true
            }
        }
    }

    fn close(&mut self) -> bool {
        let text = self.held.trim_start();
        if text.len() < CLOSE.len() && CLOSE.starts_with(text) {
            return false;
        }
        if let Some(rest) = text.strip_prefix(CLOSE) {
            self.held = rest.to_owned();
        }
        self.separates = true;
        self.state = ToolCallState::Text;
        true
    }

    /// Makes text of a call that is none, as far as nothing of it was told.
    fn give_up(&mut self, deltas: &mut Vec<ToolDelta>) {
        self.malformed = true;
        let text = std::mem::take(&mut self.untold);
        if !self.begun {
            add_text(deltas, &text);
        }
        self.state = ToolCallState::Plain;
    }
}

/// Tells what is new of a call: its name as soon as it is known, then the arguments.
fn tell(
    object: &CallObject,
    index: usize,
    begun: &mut bool,
    told: &mut usize,
    deltas: &mut Vec<ToolDelta>,
) {
    let Some(name) = &object.name else { return };
    if object.arguments.is_empty() {
        // Without arguments it may still turn out to be something else.
        return;
    }
    if !std::mem::replace(begun, true) {
        deltas.push(ToolDelta::Begin { index, name: name.clone() });
    }
    if let Some(text) = object.arguments.get(*told..).filter(|text| !text.is_empty()) {
        deltas.push(ToolDelta::Arguments { index, text: text.to_owned() });
        *told = object.arguments.len();
    }
}

fn add_text(deltas: &mut Vec<ToolDelta>, text: &str) {
    if text.is_empty() {
        return;
    }
    match deltas.last_mut() {
        Some(ToolDelta::Text(last)) => last.push_str(text),
        _ => deltas.push(ToolDelta::Text(text.to_owned())),
    }
}
