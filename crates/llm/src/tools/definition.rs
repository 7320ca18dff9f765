//! Tools as requests state them.

use serde_json::{Value, json};

use crate::error::{LlmError, LlmErrorKind, Result};
use crate::grammar::Grammar;

/// The most tools of a request.
const MAX_TOOLS: usize = 128;
/// The longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

fn wrong<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(LlmError::new(LlmErrorKind::Parameter, place, message))
}

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Description of its purpose.
    pub description: Option<String>,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

impl ToolDefinition {
    /// Reads the `tools` of an OpenAI request.
    ///
    /// # Errors
    /// A tool that is no function, a name that is missing, too long or there twice, and parameters
    /// that are no object, by their place.
    pub fn from_request(tools: &Value) -> Result<Vec<Self>> {
        let list = match tools {
            Value::Null => return Ok(Vec::new()),
            Value::Array(list) if list.len() <= MAX_TOOLS => list,
            _ => return wrong("tools", format!("expected a list of at most {MAX_TOOLS} tools")),
        };
        let mut found: Vec<Self> = Vec::new();
        for (i, tool) in list.iter().enumerate() {
            let tool = Self::from_json(tool, &format!("tools[{i}]"))?;
            if found.iter().any(|other| other.name == tool.name) {
                return wrong(
                    format!("tools[{i}].function.name"),
                    format!("{:?} is there twice", tool.name),
                );
            }
            found.push(tool);
        }
        Ok(found)
    }

    fn from_json(tool: &Value, place: &str) -> Result<Self> {
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            return wrong(format!("{place}.type"), "expected \"function\"");
        }
        let Some(function) = tool.get("function").and_then(Value::as_object) else {
            return wrong(format!("{place}.function"), "expected an object");
        };
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(allowed) {
            let message = format!(
                "{name:?} found, expected 1 to {MAX_NAME_BYTES} letters, digits, '_', '-' and '.'"
            );
            return wrong(format!("{place}.function.name"), message);
        }
        let parameters = match function.get("parameters") {
            None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(_) => return wrong(format!("{place}.function.parameters"), "expected an object"),
        };
        let description = function.get("description").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { name: name.to_owned(), description, parameters })
    }

    /// The tool as chat templates want it.
    pub fn to_json(&self) -> Value {
        let mut function = json!({"name": self.name});
        if let Some(description) = &self.description {
            function["description"] = json!(description);
        }
        function["parameters"] = self.parameters.clone();
        json!({"type": "function", "function": function})
    }
}

/// Which tools a request wants to be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// None; the model need not know the tools.
    None,
    /// The model decides.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

impl ToolChoice {
    /// Reads the `tool_choice` of an OpenAI request.
    ///
    /// # Errors
    /// A choice of another form, a required call without tools, and a name that no tool has.
    pub fn from_request(choice: &Value, tools: &[ToolDefinition]) -> Result<Self> {
        let expected = "expected \"none\", \"auto\", \"required\" or a function";
        let choice = match choice {
            Value::Null if tools.is_empty() => Self::None,
            Value::Null => Self::Auto,
            Value::String(word) => match word.as_str() {
                "none" => Self::None,
                "auto" => Self::Auto,
                "required" => Self::Required,
                _ => return wrong("tool_choice", format!("{word:?} found, {expected}")),
            },
            other => {
                match other.get("function").and_then(|f| f.get("name")).and_then(Value::as_str) {
                    Some(name) => Self::Named(name.to_owned()),
                    None => return wrong("tool_choice", expected),
                }
            }
        };
        match &choice {
            Self::Required if tools.is_empty() => {
                wrong("tool_choice", "there are no tools to call")
            }
            Self::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
                wrong("tool_choice.function.name", format!("no tool is called {name:?}"))
            }
            _ => Ok(choice),
        }
    }

    /// Grammar that makes an answer follow the choice: a list of calls, or the arguments
    /// of the named tool. [`super::ToolFormat::List`] and [`super::ToolFormat::Arguments`] read them.
    pub fn grammar(&self, tools: &[ToolDefinition]) -> Option<Grammar> {
        match self {
            Self::None | Self::Auto => None,
            Self::Named(name) => {
                let tool = tools.iter().find(|tool| tool.name == *name)?;
                Some(Grammar::JsonSchema(tool.parameters.clone()))
            }
            Self::Required => {
                let call = |tool: &ToolDefinition| {
                    json!({"type": "object", "required": ["name", "arguments"],
                           "additionalProperties": false,
                           "properties": {"name": {"const": tool.name}, "arguments": tool.parameters}})
                };
                let calls: Vec<Value> = tools.iter().map(call).collect();
                Some(Grammar::JsonSchema(
                    json!({"type": "array", "minItems": 1, "items": {"anyOf": calls}}),
                ))
            }
        }
    }
}
