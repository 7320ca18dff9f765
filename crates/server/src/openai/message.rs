//! The messages of a conversation, in the form that chat templates expect.

use serde_json::{Map, Value};

use super::error::ApiError;
use super::fields::{ObjectFields, wrong};

/// The most messages of a conversation.
const MAX_MESSAGES: usize = 65_536;

/// Reads `messages`: content becomes one text, and the arguments of calls become objects.
///
/// # Errors
/// Fails for messages of another form and for content that is not text; the error names the path.
pub(crate) fn messages(fields: &ObjectFields<'_>) -> Result<Vec<Value>, ApiError> {
    let Some(list) = fields.list("messages")? else { return Err(fields.missing("messages")) };
    if list.is_empty() || list.len() > MAX_MESSAGES {
        let message = format!("{} messages found, expected 1 to {MAX_MESSAGES}", list.len());
        return Err(ApiError::field("messages", message));
    }
    list.iter().enumerate().map(|(i, message)| one(message, &format!("messages[{i}]"))).collect()
}

fn one(message: &Value, place: &str) -> Result<Value, ApiError> {
    let fields = ObjectFields::of(message, place)?;
    let role = match fields.text("role")? {
        None => return Err(fields.missing("role")),
        // The newer name of the same role, which templates do not know.
        Some("developer") => "system",
        Some(role) => role,
    };
    let mut found: Map<String, Value> = message.as_object().cloned().unwrap_or_default();
    found.insert("role".to_owned(), Value::from(role));
    let content = content(&fields)?;
    let calls = calls(&fields)?;
    if content.is_none() && calls.is_none() && role != "assistant" {
        return Err(fields.missing("content"));
    }
    // Templates that add contents up expect a text also beside calls.
    found.insert("content".to_owned(), Value::from(content.unwrap_or_default()));
    found.remove("refusal");
    match calls {
        Some(calls) => found.insert("tool_calls".to_owned(), Value::Array(calls)),
        None => found.remove("tool_calls"),
    };
    Ok(Value::Object(found))
}

fn content(fields: &ObjectFields<'_>) -> Result<Option<String>, ApiError> {
    let parts = match fields.get("content") {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text.clone())),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err(fields.wrong("content", "a text or a list of parts")),
    };
    let mut texts = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{}[{i}]", fields.path("content"));
        if let Value::String(text) = part {
            texts.push(text.as_str());
            continue;
        }
        let part = ObjectFields::of(part, &place)?;
        match part.text("type")? {
            None => return Err(part.missing("type")),
            Some("text" | "input_text" | "output_text") => {
                texts.push(part.text("text")?.ok_or_else(|| part.missing("text"))?);
            }
            Some("refusal") => {
                texts.push(part.text("refusal")?.ok_or_else(|| part.missing("refusal"))?);
            }
            Some(sort) => {
                let message = format!("{sort:?} found, but this model reads \"text\" only");
                return Err(ApiError::field(part.path("type"), message));
            }
        }
    }
    Ok(Some(texts.join("\n")))
}

fn calls(fields: &ObjectFields<'_>) -> Result<Option<Vec<Value>>, ApiError> {
    let Some(list) = fields.list("tool_calls")?.filter(|list| !list.is_empty()) else {
        return Ok(None);
    };
    let mut found = Vec::new();
    for (i, call) in list.iter().enumerate() {
        let place = format!("{}[{i}]", fields.path("tool_calls"));
        let of_call = ObjectFields::of(call, &place)?;
        let function = of_call.object("function")?.ok_or_else(|| of_call.missing("function"))?;
        if function.text("name")?.is_none() {
            return Err(function.missing("name"));
        }
        let arguments = match function.get("arguments") {
            None => Value::Object(Map::new()),
            Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| {
                ApiError::field(function.path("arguments"), format!("no JSON: {error}"))
            })?,
            Some(object @ Value::Object(_)) => object.clone(),
            Some(other) => return Err(wrong(&function.path("arguments"), other, "a text of JSON")),
        };
        let mut call = call.clone();
        if let Some(slot) = call.pointer_mut("/function").and_then(Value::as_object_mut) {
            slot.insert("arguments".to_owned(), arguments);
        }
        found.push(call);
    }
    Ok(Some(found))
}
