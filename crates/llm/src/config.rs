//! Fields of a checkpoint's `config.json`, key by key.

use std::path::Path;

use galatea_tensor::read_plain_file;
use serde_json::{Map, Value};

use crate::error::{LlmError, LlmErrorKind, Result};

/// Most bytes of a `config.json`.
const MAX_BYTES: u64 = 1 << 20;

/// A JSON object whose getters name the key, what it holds and what was expected.
#[derive(Clone, Debug)]
pub struct JsonConfig {
    place: String,
    all: Map<String, Value>,
}

impl JsonConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too large or holds no JSON object.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let failed =
            |error: std::io::Error| LlmError::new(LlmErrorKind::Read, &place, error.to_string());
        let size = std::fs::metadata(path).map_err(failed)?.len();
        if size > MAX_BYTES {
            let text = format!("{size} bytes, expected at most {MAX_BYTES}");
            return Err(LlmError::new(LlmErrorKind::Config, place, text));
        }
        Self::parse(&place, &read_plain_file(path).map_err(failed)?)
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// When they are no JSON object.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self> {
        let wrong = |text: String| LlmError::new(LlmErrorKind::Config, place, text);
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(all)) => Ok(Self { place: place.to_owned(), all }),
            Ok(other) => Err(wrong(format!("{}, expected an object", sort(&other)))),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// The same with a value for a key that says nothing.
    #[must_use]
    pub(crate) fn or(mut self, key: &str, value: impl Into<Value>) -> Self {
        if self.get(key).is_none() {
            self.all.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Source of the fields, such as the path of a file.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// All of it.
    pub(crate) fn value(&self) -> Value {
        Value::Object(self.all.clone())
    }

    /// Keys that something else than a `config.json` says.
    pub(crate) fn of(place: String, all: Map<String, Value>) -> Self {
        Self { place, all }
    }

    /// Numbers.
    ///
    /// # Errors
    /// When it is something else.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let all: Option<Vec<f64>> =
            value.as_array().and_then(|all| all.iter().map(Value::as_f64).collect());
        all.map(Some).ok_or_else(|| self.wrong(key, format!("{value}, expected numbers")))
    }

    fn wrong(&self, key: &str, text: impl Into<String>) -> LlmError {
        LlmError::new(LlmErrorKind::Config, format!("{}: {key}", self.place), text)
    }

    /// The value of a key that is there and not null.
    fn get(&self, key: &str) -> Option<&Value> {
        self.all.get(key).filter(|value| !value.is_null())
    }

    fn missing(&self, key: &str) -> LlmError {
        self.wrong(key, "missing")
    }

    /// The error that a key's value is not one of those known.
    #[must_use]
    pub fn unknown(&self, key: &str, expected: &[&str]) -> LlmError {
        let found = self.get(key).map_or_else(|| "nothing".to_owned(), Value::to_string);
        self.wrong(key, format!("{found}, expected one of {}", expected.join(", ")))
    }

    /// A number from 1 up to 2³¹.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn length(&self, key: &str) -> Result<usize> {
        self.optional_length(key)?.ok_or_else(|| self.missing(key))
    }

    /// The same where the key may be missing.
    ///
    /// # Errors
    /// When it is something else.
    pub fn optional_length(&self, key: &str) -> Result<Option<usize>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let length = value.as_u64().filter(|length| (1..=1 << 31).contains(length));
        let length = length.and_then(|length| usize::try_from(length).ok());
        match length {
            Some(length) => Ok(Some(length)),
            None => Err(self.wrong(key, format!("{value}, expected a number from 1 on"))),
        }
    }

    /// A finite number.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_f64().filter(|number| number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(key, format!("{value}, expected a number"))),
        }
    }

    /// A number above 0, or the default.
    ///
    /// # Errors
    /// When it is something else.
    pub fn positive_or(&self, key: &str, default: f64) -> Result<f64> {
        let number = self.number(key)?.unwrap_or(default);
        if number > 0.0 {
            return Ok(number);
        }
        Err(self.wrong(key, format!("{number}, expected more than 0")))
    }

    /// True or false, or the default.
    ///
    /// # Errors
    /// When it is something else.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.wrong(key, format!("{value}, expected true or false")))
    }

    /// A text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = value.as_str();
        text.map(Some).ok_or_else(|| self.wrong(key, format!("{value}, expected a text")))
    }

    /// Texts.
    ///
    /// # Errors
    /// When it is something else.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let all: Option<Vec<&str>> =
            value.as_array().and_then(|all| all.iter().map(Value::as_str).collect());
        all.map(Some).ok_or_else(|| self.wrong(key, format!("{value}, expected texts")))
    }

    /// All keys, in the order of the file.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// The object that a key holds.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(&self, key: &str) -> Result<Option<Self>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let place = format!("{}: {key}", self.place);
        match value {
            Value::Object(all) => Ok(Some(Self { place, all: all.clone() })),
            other => Err(self.wrong(key, format!("{}, expected an object", sort(other)))),
        }
    }
}

/// Description of a value, for people.
fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let text = br#"{"a": 3, "b": "x", "c": -1, "d": null, "e": {"f": [1, "y"]}, "g": 0.5}"#;
        let config = JsonConfig::parse("config.json", text).unwrap();
        assert_eq!(config.length("a").unwrap(), 3);
        assert_eq!(config.optional_length("d").unwrap(), None);
        assert_eq!(config.text("b").unwrap(), Some("x"));
        assert_eq!(config.number("g").unwrap(), Some(0.5));
        let error = config.length("c").unwrap_err().to_string();
        assert_eq!(error, "config.json: c: -1, expected a number from 1 on");
        assert_eq!(config.length("d").unwrap_err().to_string(), "config.json: d: missing");
        let inner = config.object("e").unwrap().unwrap();
        let error = inner.texts("f").unwrap_err().to_string();
        assert_eq!(error, "config.json: e: f: [1,\"y\"], expected texts");
        assert!(config.object("a").unwrap_err().to_string().contains("a number"));
        assert!(config.unknown("b", &["y"]).to_string().contains("\"x\", expected one of y"));
        assert!(config.positive_or("c", 1.0).is_err() && config.flag("a", true).is_err());
        assert!(
            JsonConfig::parse("config.json", b"[1]").unwrap_err().to_string().contains("a list")
        );
    }
}
