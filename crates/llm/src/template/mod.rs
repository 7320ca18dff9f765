//! Chat templates: messages to the text that a model was trained to continue.
//!
//! Templates are Jinja2 as `transformers` runs it: blocks are trimmed, Python's methods exist, and
//! so do `raise_exception`, `strftime_now`, `tojson` with its arguments, `break` and `continue`.
//!
//! A template comes with a checkpoint that a stranger made. Libraries bound the steps of a template
//! at best; here everything has a bound: the tokens and the nesting of its source (`lexer`,
//! `parser`), the steps, the memory of values and the depth of a rendering (`meter`), and the depth
//! of values, none of which can hold itself (`value`). Chains of any length are lists, so that no
//! recursion is deeper than these bounds.

mod access;
mod arithmetic;
mod builder;
mod calls;
mod checks;
mod compare;
mod evaluate;
mod filters;
mod format;
mod functions;
mod given;
mod json;
mod lexer;
mod meter;
mod methods;
mod parser;
mod render;
mod scopes;
mod show;
mod source;
mod syntax;
mod terms;
mod value;

use std::path::Path;
use std::time::SystemTime;

use galatea_tensor::read_plain_text;
use serde_json::{Map, Value, json};

use self::meter::RenderFault;
use self::render::RenderVariables;
use self::syntax::TemplateSyntax;

use crate::error::{LlmError, LlmErrorKind, Result};

use given::TEMPLATE_FILE;
pub use given::is_template_text;
pub(crate) use given::{given_template, template_beside};

/// The longest template.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// The most named templates of one model.
pub const MAX_TEMPLATES: usize = 64;

/// The longest text that a template may make.
pub const MAX_TEXT_BYTES: usize = 64 << 20;

/// Template of conversations whose model has none.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + \
    (message.content if message.content is string else message.content \
    | selectattr('text', 'defined') | map(attribute='text') | join('')) + '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// How the text of a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GenerationPrompt {
    /// With the beginning of an answer, which the model continues.
    #[default]
    GenerationPrompt,
    /// Inside the last message, which the model continues.
    ContinueFinalMessage,
    /// Behind the last message.
    Complete,
}

/// Inputs of a rendering.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Messages with `role` and `content`, and whatever else the template knows.
    pub messages: Vec<Value>,
    /// Tools as JSON objects; none and an empty list differ for some templates.
    pub tools: Option<Vec<Value>>,
    /// Documents to answer from.
    pub documents: Option<Vec<Value>>,
    /// How the text ends.
    pub ending: GenerationPrompt,
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
    names: Vec<String>,
    /// Values of the names, in their order.
    templates: Vec<TemplateSyntax>,
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
    /// Errors of [`Self::new`], with the template's name.
    pub fn with_names(sources: &[(&str, &str)]) -> Result<Self> {
        if sources.len() > MAX_TEMPLATES {
            let message = format!("{} found, expected at most {MAX_TEMPLATES}", sources.len());
            return Err(LlmError::new(LlmErrorKind::Template, "chat_template", message));
        }
        let mut compiled = Self {
            names: Vec::new(),
            templates: Vec::new(),
            tokens: Map::new(),
            is_default: false,
        };
        let mut tokens_left = lexer::MAX_TOKENS;
        for (name, source) in sources {
            let place = format!("chat_template {name:?}");
            if source.len() > MAX_TEMPLATE_BYTES {
                let message =
                    format!("{} bytes, expected at most {MAX_TEMPLATE_BYTES}", source.len());
                return Err(LlmError::new(LlmErrorKind::Template, place, message));
            }
            let tokens = lexer::tokens(source, tokens_left).map_err(|e| failed(&place, e))?;
            tokens_left -= tokens.len();
            let template = parser::parse(tokens).map_err(|e| failed(&place, e))?;
            match compiled.names.iter().position(|known| known == name) {
                Some(at) => compiled.templates[at] = template,
                None => {
                    compiled.names.push((*name).to_owned());
                    compiled.templates.push(template);
                }
            }
        }
        Ok(compiled)
    }

    /// Reads the templates of a checkpoint: `chat_template.jinja`, or `chat_template` in
    /// `tokenizer_config.json`; ChatML where there is none. [`Self::is_default`] tells the last case.
    ///
    /// # Errors
    /// A file that cannot be read, and as for [`Self::new`].
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let file = read(&folder.join(TEMPLATE_FILE))?;
        Self::from_config(&tokenizer_config(folder)?, file.as_deref())
    }

    /// Compiles a template in the place of a checkpoint's own, with the special tokens of the checkpoint's folder.
    ///
    /// # Errors
    /// Errors of [`Self::from_folder`].
    pub fn in_folder(source: &str, folder: &Path) -> Result<Self> {
        Self::from_config(&tokenizer_config(folder)?, Some(source))
    }

    /// Whether a folder has a template of its own, which [`Self::from_folder`] then takes.
    ///
    /// # Errors
    /// Errors of [`Self::from_folder`].
    pub fn is_in(folder: &Path) -> Result<bool> {
        Self::from_folder(folder)?;
        if folder.join(TEMPLATE_FILE).exists() {
            return Ok(true);
        }
        let config = read(&folder.join("tokenizer_config.json"))?;
        let config: Value =
            config.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(config.get("chat_template").is_some_and(|template| !template.is_null()))
    }

    /// Makes what [`Self::from_folder`] does from the parsed `tokenizer_config.json` and the text of
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
                        LlmError::new(LlmErrorKind::Template, "chat_template", message)
                    })
                };
                Self::with_names(&list.iter().map(entry).collect::<Result<Vec<_>>>()?)?
            }
            (None, Some(_)) => {
                let message = "expected text or a list of templates";
                return Err(LlmError::new(LlmErrorKind::Template, "chat_template", message));
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
    /// Fails with what the template raises, a template that is not there, too many steps, values or a text that
    /// are too large, and a final message that cannot be continued.
    pub fn render(&self, conversation: &Conversation) -> Result<String> {
        self.render_unless(conversation, &|| false)
    }

    /// Renders like [`Self::render`], and ends soon after `stop` says that nobody wants the text any more.
    ///
    /// # Errors
    /// Errors of [`Self::render`], and when it was stopped.
    pub fn render_unless(
        &self,
        conversation: &Conversation,
        stop: &dyn Fn() -> bool,
    ) -> Result<String> {
        let name = self.choose(conversation)?;
        let place = format!("chat_template {name:?}");
        let at = self.names.iter().position(|known| known == name);
        let Some(template) = at.and_then(|at| self.templates.get(at)) else {
            return Err(LlmError::new(LlmErrorKind::Template, place, "there is no such template"));
        };
        let mut messages = conversation.messages.clone();
        let continued = match conversation.ending {
            GenerationPrompt::ContinueFinalMessage => {
                Some(source::tag_final_message(&mut messages)?)
            }
            _ => None,
        };
        let variables = ConversationVariables {
            tokens: &self.tokens,
            given: &conversation.variables,
            messages: Value::Array(messages),
            tools: json!(conversation.tools),
            documents: json!(conversation.documents),
            prompt: json!(conversation.ending == GenerationPrompt::GenerationPrompt),
        };
        let now = conversation.now.unwrap_or_else(SystemTime::now);
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let text =
            render::render(template, &variables, now, stop).map_err(|e| failed(&place, e))?;
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
                Err(LlmError::new(LlmErrorKind::Template, "chat_template", message))
            }
            None if conversation.tools.is_some() && has("tool_use") => Ok("tool_use"),
            None if has("default") => Ok("default"),
            None => self.names.first().map(String::as_str).ok_or_else(|| {
                LlmError::new(
                    LlmErrorKind::Template,
                    "chat_template",
                    "the list of templates is empty",
                )
            }),
        }
    }
}

/// Values that a template finds under names.
struct ConversationVariables<'a> {
    tokens: &'a Map<String, Value>,
    given: &'a Map<String, Value>,
    messages: Value,
    tools: Value,
    documents: Value,
    prompt: Value,
}

impl RenderVariables for ConversationVariables<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        match name {
            "messages" => Some(&self.messages),
            "tools" => Some(&self.tools),
            "documents" => Some(&self.documents),
            "add_generation_prompt" => Some(&self.prompt),
            _ => self.given.get(name).or_else(|| self.tokens.get(name)),
        }
    }
}

fn named(entry: &Value) -> Option<(&str, &str)> {
    Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))
}

/// An error with the place of the template and its line.
fn failed(place: &str, fault: RenderFault) -> LlmError {
    let place = match fault.line {
        Some(line) => format!("{place}, line {line}"),
        None => place.to_owned(),
    };
    LlmError::new(LlmErrorKind::Template, place, fault.message)
}

/// The `tokenizer_config.json` of a folder; null where there is none.
fn tokenizer_config(folder: &Path) -> Result<Value> {
    let Some(text) = read(&folder.join("tokenizer_config.json"))? else { return Ok(Value::Null) };
    serde_json::from_str(&text).map_err(|error| {
        LlmError::new(LlmErrorKind::Template, "tokenizer_config.json", error.to_string())
    })
}

/// A file that may be missing.
fn read(path: &Path) -> Result<Option<String>> {
    match read_plain_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(LlmError::new(LlmErrorKind::Read, path.display().to_string(), e.to_string())),
    }
}
