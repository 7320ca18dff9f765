//! Chat templates: messages to the text that a model was trained to continue.
//!
//! Templates are Jinja2 as `transformers` runs it: blocks are trimmed, Python's methods exist, and
//! so do `raise_exception`, `strftime_now`, `tojson` with its arguments, `break` and `continue`.

mod json;
mod source;

use std::path::Path;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{Environment, ErrorKind, State, UndefinedBehavior, Value as Any};
use serde_json::{Map, Value, json};

use crate::error::{Error, Kind, Result};

/// The longest template.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// The most named templates of one model.
pub const MAX_TEMPLATES: usize = 64;

/// The longest text that a template may make.
pub const MAX_TEXT_BYTES: usize = 64 << 20;

/// The instructions that a template may execute: a thousand messages take about a million.
const FUEL: u64 = 20_000_000;

/// Under which name templates find the time of the conversation.
const NOW: &str = "__now";

/// What a conversation without any template is written in.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + \
    (message.content if message.content is string else message.content \
    | selectattr('text', 'defined') | map(attribute='text') | join('')) + '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// How the text of a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// With the beginning of an answer, which the model continues.
    #[default]
    GenerationPrompt,
    /// Inside the last message, which the model continues.
    ContinueFinalMessage,
    /// Behind the last message.
    Complete,
}

/// What a template is rendered with.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Messages with `role` and `content`, and whatever else the template knows.
    pub messages: Vec<Value>,
    /// Tools as JSON objects; none and an empty list differ for some templates.
    pub tools: Option<Vec<Value>>,
    /// Documents to answer from.
    pub documents: Option<Vec<Value>>,
    /// How the text ends.
    pub ending: Ending,
    /// Further variables of the template, such as `enable_thinking`.
    pub variables: Map<String, Value>,
    /// Which of several templates; without a name, `tool_use` where there are tools and such a
    /// template, and `default` otherwise.
    pub template: Option<String>,
    /// The time that `strftime_now` tells; the present where it is `None`.
    pub now: Option<SystemTime>,
}

/// The templates of a model, compiled.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    names: Vec<String>,
    /// `bos_token` and its like, by name.
    tokens: Map<String, Value>,
    is_default: bool,
}

impl ChatTemplate {
    /// Compiles one template.
    ///
    /// # Errors
    /// A syntax error with its line, or a template that is too long.
    pub fn new(source: &str) -> Result<Self> {
        Self::with_names(&[("default", source)])
    }

    /// ChatML, for models without a template.
    ///
    /// # Errors
    /// None that can occur: the template is part of the program.
    pub fn chatml() -> Result<Self> {
        Ok(Self { is_default: true, ..Self::new(CHATML)? })
    }

    /// Compiles named templates.
    ///
    /// # Errors
    /// As for [`Self::new`], with the template's name.
    pub fn with_names(sources: &[(&str, &str)]) -> Result<Self> {
        if sources.len() > MAX_TEMPLATES {
            let message = format!("{} found, expected at most {MAX_TEMPLATES}", sources.len());
            return Err(Error::new(Kind::Template, "chat_template", message));
        }
        let mut environment = environment()?;
        let mut names = Vec::new();
        for (name, source) in sources {
            let place = format!("chat_template {name:?}");
            if source.len() > MAX_TEMPLATE_BYTES {
                let message =
                    format!("{} bytes, expected at most {MAX_TEMPLATE_BYTES}", source.len());
                return Err(Error::new(Kind::Template, place, message));
            }
            environment
                .add_template_owned((*name).to_owned(), source::prepare(source))
                .map_err(|e| failed(&place, &e))?;
            names.push((*name).to_owned());
        }
        Ok(Self { environment, names, tokens: Map::new(), is_default: false })
    }

    /// Reads the templates of a checkpoint: `chat_template.jinja`, or `chat_template` in
    /// `tokenizer_config.json`; ChatML where there is none. [`Self::is_default`] tells the last case.
    ///
    /// # Errors
    /// A file that cannot be read, and as for [`Self::new`].
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let config = match read(&folder.join("tokenizer_config.json"))? {
            Some(text) => serde_json::from_str(&text)
                .map_err(|e| Error::new(Kind::Template, "tokenizer_config.json", e.to_string()))?,
            None => Value::Null,
        };
        let file = read(&folder.join("chat_template.jinja"))?;
        Self::from_config(&config, file.as_deref())
    }

    /// Whether a folder has a template of its own, which [`Self::from_folder`] then takes.
    ///
    /// # Errors
    /// As for [`Self::from_folder`].
    pub fn is_in(folder: &Path) -> Result<bool> {
        Self::from_folder(folder)?;
        if folder.join("chat_template.jinja").exists() {
            return Ok(true);
        }
        let config = read(&folder.join("tokenizer_config.json"))?;
        let config: Value =
            config.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(config.get("chat_template").is_some_and(|template| !template.is_null()))
    }

    /// As [`Self::from_folder`] from the parsed `tokenizer_config.json` and the text of
    /// `chat_template.jinja`, which has precedence.
    ///
    /// # Errors
    /// A `chat_template` of another form than text or a list of names and texts.
    pub fn from_config(config: &Value, file: Option<&str>) -> Result<Self> {
        let templates = match (file, config.get("chat_template")) {
            (Some(file), _) => Self::new(file)?,
            (None, None | Some(Value::Null)) => Self::chatml()?,
            (None, Some(Value::String(text))) => Self::new(text)?,
            (None, Some(Value::Array(list))) => {
                let entry = |entry| {
                    named(entry).ok_or_else(|| {
                        let message = "expected objects with `name` and `template`";
                        Error::new(Kind::Template, "chat_template", message)
                    })
                };
                Self::with_names(&list.iter().map(entry).collect::<Result<Vec<_>>>()?)?
            }
            (None, Some(_)) => {
                let message = "expected text or a list of templates";
                return Err(Error::new(Kind::Template, "chat_template", message));
            }
        };
        Ok(templates.with_tokens(config))
    }

    /// The same templates with the names of special tokens (`bos_token`, `eos_token`, …) as a
    /// `tokenizer_config.json` holds them.
    #[must_use]
    pub fn with_tokens(mut self, config: &Value) -> Self {
        for (key, value) in config.as_object().into_iter().flatten() {
            let text = value.as_str().or_else(|| value.get("content").and_then(Value::as_str));
            if let Some(text) = text.filter(|_| key.ends_with("_token")) {
                self.tokens.insert(key.clone(), json!(text));
            }
        }
        self
    }

    /// Whether the model has no template of its own.
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// The names of the templates.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// What the template raises, a template that is not there, too many steps, a text that is too
    /// long, and a final message that cannot be continued.
    pub fn render(&self, conversation: &Conversation) -> Result<String> {
        let name = self.choose(conversation)?;
        let place = format!("chat_template {name:?}");
        let template = self.environment.get_template(name).map_err(|e| failed(&place, &e))?;
        let mut messages = conversation.messages.clone();
        let continued = match conversation.ending {
            Ending::ContinueFinalMessage => Some(source::tag_final_message(&mut messages)?),
            _ => None,
        };
        let context = self.context(conversation, messages);
        let mut text = Bounded(Vec::new());
        template.render_captured_to(context, &mut text).map_err(|e| failed(&place, &e))?;
        let text = String::from_utf8(text.0)
            .map_err(|e| Error::new(Kind::Template, place.as_str(), e.to_string()))?;
        match continued {
            Some(message) => source::cut_at_tag(text, &message),
            None => Ok(text),
        }
    }

    fn choose<'a>(&'a self, conversation: &'a Conversation) -> Result<&'a str> {
        let has = |name: &str| self.names.iter().any(|n| n == name);
        match &conversation.template {
            Some(name) if has(name) => Ok(name),
            Some(name) => {
                let message = format!("{name:?} found, expected one of {}", self.names.join(", "));
                Err(Error::new(Kind::Template, "chat_template", message))
            }
            None if conversation.tools.is_some() && has("tool_use") => Ok("tool_use"),
            None if has("default") => Ok("default"),
            None => self.names.first().map(String::as_str).ok_or_else(|| {
                Error::new(Kind::Template, "chat_template", "the list of templates is empty")
            }),
        }
    }

    fn context(&self, conversation: &Conversation, messages: Vec<Value>) -> Any {
        let mut context = self.tokens.clone();
        context.extend(conversation.variables.clone());
        let now = conversation.now.unwrap_or_else(SystemTime::now);
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        context.insert(NOW.to_owned(), json!(seconds));
        context.insert("messages".to_owned(), Value::Array(messages));
        context.insert("tools".to_owned(), json!(conversation.tools));
        context.insert("documents".to_owned(), json!(conversation.documents));
        let prompt = conversation.ending == Ending::GenerationPrompt;
        context.insert("add_generation_prompt".to_owned(), json!(prompt));
        Any::from(Serde(context))
    }
}

fn named(entry: &Value) -> Option<(&str, &str)> {
    Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))
}

fn environment() -> Result<Environment<'static>> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|e| failed("syntax", &e))?);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_debug(false);
    environment.set_fuel(Some(FUEL));
    // Nested calls take the stack of the thread; templates nest a few deep.
    environment.set_recursion_limit(64);
    environment.add_function(
        "raise_exception",
        |message: String| -> std::result::Result<Any, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        },
    );
    environment.add_test("iterable", |value: &Any| {
        // Nothing is no list in Python, and an undefined value an empty one.
        !matches!(value.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number)
    });
    environment.add_function("strftime_now", strftime_now);
    environment
        .add_filter("tojson", |value: &Any, arguments: Kwargs| json::tojson(value, &arguments));
    Ok(environment)
}

fn strftime_now(
    state: &mut State,
    format: String,
) -> std::result::Result<String, minijinja::Error> {
    let seconds = state.lookup(NOW).and_then(|now| i64::try_from(now).ok()).unwrap_or(0);
    let invalid =
        |e: jiff::Error| minijinja::Error::new(ErrorKind::InvalidOperation, e.to_string());
    let now = jiff::Timestamp::from_second(seconds).map_err(invalid)?;
    let now = now.to_zoned(jiff::tz::TimeZone::system());
    jiff::fmt::strtime::format(&format, &now).map_err(invalid)
}

/// An error of the library with its line and its causes.
fn failed(place: &str, error: &minijinja::Error) -> Error {
    let place = match error.line() {
        Some(line) => format!("{place}, line {line}"),
        None => place.to_owned(),
    };
    let mut message = match error.detail() {
        Some(detail) if error.kind() == ErrorKind::InvalidOperation => detail.to_owned(),
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Error::new(Kind::Template, place, message)
}

/// Text up to [`MAX_TEXT_BYTES`].
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_TEXT_BYTES {
            let message = format!("the text is longer than {MAX_TEXT_BYTES} bytes");
            return Err(std::io::Error::other(message));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file that may be missing.
fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::new(Kind::Read, path.display().to_string(), e.to_string())),
    }
}
