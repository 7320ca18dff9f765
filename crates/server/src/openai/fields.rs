//! Members of a request's JSON, read as one type each; what has another type is named with its path.

use galatea_llm::sampling::SamplingParameters;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ApiError;

/// Length of the part of a wrong value that an error shows, in bytes.
const SHOWN_BYTES: usize = 60;

/// The members of an object. A member that is null counts as absent, and unknown ones are ignored.
#[derive(Debug, Clone)]
pub(crate) struct ObjectFields<'a> {
    all: &'a Map<String, Value>,
    place: String,
}

impl<'a> ObjectFields<'a> {
    /// The members of a request.
    pub(crate) fn of_request(body: &'a Value) -> Result<Self, ApiError> {
        match body {
            Value::Object(all) => Ok(Self { all, place: String::new() }),
            other => {
                let found = shown(other);
                Err(ApiError::invalid(format!("{found} found, expected a JSON object")))
            }
        }
    }

    /// The members of the object at `place`.
    pub(crate) fn of(value: &'a Value, place: &str) -> Result<Self, ApiError> {
        match value {
            Value::Object(all) => Ok(Self { all, place: place.to_owned() }),
            other => Err(wrong(place, other, "an object")),
        }
    }

    /// The path of a member.
    pub(crate) fn path(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    /// A member that is there and not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.all.get(key).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match read(value) {
            Some(found) => Ok(Some(found)),
            None => Err(wrong(&self.path(key), value, expected)),
        }
    }

    /// True or false.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ApiError> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// True or false, or the default.
    pub(crate) fn flag_or(&self, key: &str, default: bool) -> Result<bool, ApiError> {
        Ok(self.flag(key)?.unwrap_or(default))
    }

    /// A number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f32>, ApiError> {
        self.read(key, "a number", |value| {
            value.is_number().then(|| f32::deserialize(value).ok()).flatten()
        })
    }

    /// A whole number.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, ApiError> {
        self.read(key, "a whole number", Value::as_i64)
    }

    /// A whole number from 0 on.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u32>, ApiError> {
        let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
        self.read(key, "a whole number from 0 on", count)
    }

    /// A text.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ApiError> {
        self.read(key, "a text", Value::as_str)
    }

    /// A list.
    pub(crate) fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, ApiError> {
        self.read(key, "a list", Value::as_array)
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, ApiError> {
        self.read(key, "a list of texts", |value| {
            let all = value.as_array()?.iter();
            all.map(|text| text.as_str().map(str::to_owned)).collect()
        })
    }

    /// A list of tokens.
    pub(crate) fn tokens(&self, key: &str) -> Result<Option<Vec<u32>>, ApiError> {
        self.read(key, "a list of tokens", tokens)
    }

    /// A text or several.
    pub(crate) fn one_or_many(&self, key: &str) -> Result<Option<Vec<String>>, ApiError> {
        self.read(key, "a text or a list of texts", |value| match value {
            Value::String(one) => Some(vec![one.clone()]),
            Value::Array(all) => all.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
            _ => None,
        })
    }

    /// An object.
    pub(crate) fn object(&self, key: &str) -> Result<Option<ObjectFields<'a>>, ApiError> {
        let all = self.read(key, "an object", Value::as_object)?;
        Ok(all.map(|all| ObjectFields { all, place: self.path(key) }))
    }

    /// An object with all its members.
    pub(crate) fn map(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, ApiError> {
        self.read(key, "an object", Value::as_object)
    }

    /// The error that a member has another form than expected.
    pub(crate) fn wrong(&self, key: &str, expected: &str) -> ApiError {
        wrong(&self.path(key), self.get(key).unwrap_or(&Value::Null), expected)
    }

    /// The error that a member is missing.
    pub(crate) fn missing(&self, key: &str) -> ApiError {
        ApiError::field(self.path(key), "missing")
    }
}

/// The tokens that a list holds, where it holds nothing else.
pub(crate) fn tokens(value: &Value) -> Option<Vec<u32>> {
    let token = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
    value.as_array()?.iter().map(token).collect()
}

/// The error that a value has another form than expected.
pub(crate) fn wrong(place: &str, value: &Value, expected: &str) -> ApiError {
    ApiError::field(place, format!("{} found, expected {expected}", shown(value)))
}

/// A value for people, who need not see all of a long one.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= SHOWN_BYTES {
        return text;
    }
    let end = (0..=SHOWN_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Reads how tokens are chosen. What the request leaves open is as in `defaults`, the answer's
/// length and its log-probabilities excepted: there the endpoints differ.
pub(crate) fn sampling(
    fields: &ObjectFields<'_>,
    defaults: &SamplingParameters,
) -> Result<SamplingParameters, ApiError> {
    let mut found = SamplingParameters { max_tokens: None, logprobs: None, ..defaults.clone() };
    for (name, field) in [
        ("temperature", &mut found.temperature),
        ("top_p", &mut found.top_p),
        ("min_p", &mut found.min_p),
        ("typical_p", &mut found.typical_p),
        ("repetition_penalty", &mut found.repetition_penalty),
        ("presence_penalty", &mut found.presence_penalty),
        ("frequency_penalty", &mut found.frequency_penalty),
    ] {
        if let Some(value) = fields.number(name)? {
            *field = value;
        }
    }
    for (name, field) in [
        ("include_stop_str_in_output", &mut found.include_stop_str_in_output),
        ("ignore_eos", &mut found.ignore_eos),
        ("skip_special_tokens", &mut found.skip_special_tokens),
    ] {
        *field = fields.flag_or(name, *field)?;
    }
    found.top_k = fields.integer("top_k")?.unwrap_or(found.top_k);
    // Any bits do for a seed, those of a negative number too.
    found.seed = fields.integer("seed")?.map(i64::cast_unsigned).or(found.seed);
    found.n = fields.count("n")?.unwrap_or(found.n);
    found.best_of = fields.count("best_of")?.or(found.best_of);
    found.prompt_logprobs = fields.count("prompt_logprobs")?;
    found.min_tokens = fields.count("min_tokens")?.unwrap_or(found.min_tokens);
    found.stop = fields.one_or_many("stop")?.unwrap_or(found.stop);
    found.stop_token_ids = fields.tokens("stop_token_ids")?.unwrap_or(found.stop_token_ids);
    for (token, bias) in fields.map("logit_bias")?.into_iter().flatten() {
        let place = format!("{}.{token}", fields.path("logit_bias"));
        let Ok(id) = token.parse() else {
            return Err(ApiError::field(
                fields.path("logit_bias"),
                format!("{token:?} is no token"),
            ));
        };
        let value = bias.is_number().then(|| f32::deserialize(bias).ok()).flatten();
        found.logit_bias.insert(id, value.ok_or_else(|| wrong(&place, bias, "a number"))?);
    }
    Ok(found)
}
