//! Constraints on an answer: OpenAI's `response_format`, and vLLM's `guided_*` and `structured_outputs`.

use galatea_llm::grammar::Grammar;
use serde_json::Value;

use super::error::ApiError;
use super::fields::ObjectFields;

/// Reads the grammar of a request.
///
/// # Errors
/// Fails for a field of a wrong form, an unknown format, and several grammars at once.
pub(crate) fn grammar(fields: &ObjectFields<'_>) -> Result<Option<Grammar>, ApiError> {
    let mut found: Vec<(String, Grammar)> = Vec::new();
    if let Some(format) = fields.object("response_format")?
        && let Some(grammar) = response_format(&format)?
    {
        found.push(("response_format".to_owned(), grammar));
    }
    collect(fields, "guided_", &mut found)?;
    if let Some(outputs) = fields.object("structured_outputs")? {
        if outputs.get("structural_tag").is_some() {
            let place = outputs.path("structural_tag");
            return Err(ApiError::field(place, "structural tags are not supported"));
        }
        collect(&outputs, "", &mut found)?;
    }
    if let [(first, _), (second, _), ..] = found.as_slice() {
        let message = format!("an answer cannot follow both this and {first}");
        return Err(ApiError::field(second, message));
    }
    Ok(found.pop().map(|(_, grammar)| grammar))
}

fn response_format(format: &ObjectFields<'_>) -> Result<Option<Grammar>, ApiError> {
    match format.text("type")? {
        None => Err(format.missing("type")),
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Grammar::JsonObject)),
        Some("json_schema") => {
            let Some(described) = format.object("json_schema")? else {
                return Err(format.missing("json_schema"));
            };
            match described.get("schema") {
                Some(schema @ Value::Object(_)) => Ok(Some(Grammar::JsonSchema(schema.clone()))),
                Some(_) => Err(described.wrong("schema", "an object")),
                None => Err(described.missing("schema")),
            }
        }
        Some(_) => Err(format.wrong("type", "\"text\", \"json_object\" or \"json_schema\"")),
    }
}

/// Reads the members that vLLM has for each sort of grammar, behind a prefix.
fn collect(
    fields: &ObjectFields<'_>,
    prefix: &str,
    found: &mut Vec<(String, Grammar)>,
) -> Result<(), ApiError> {
    let key = |name: &str| format!("{prefix}{name}");
    let mut add = |name: &str, grammar| found.push((fields.path(&key(name)), grammar));
    let schema = key("json");
    match fields.get(&schema) {
        None => {}
        Some(schema @ Value::Object(_)) => add("json", Grammar::JsonSchema(schema.clone())),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(schema @ Value::Object(_)) => add("json", Grammar::JsonSchema(schema)),
            Ok(_) => return Err(fields.wrong(&schema, "a JSON schema")),
            Err(error) => return Err(ApiError::field(fields.path(&schema), error.to_string())),
        },
        Some(_) => return Err(fields.wrong(&schema, "a JSON schema")),
    }
    if let Some(pattern) = fields.text(&key("regex"))? {
        add("regex", Grammar::Regex(pattern.to_owned()));
    }
    if let Some(choices) = fields.texts(&key("choice"))? {
        add("choice", Grammar::Choice(choices));
    }
    if let Some(grammar) = fields.text(&key("grammar"))? {
        add("grammar", Grammar::from_text(grammar.to_owned()));
    }
    if fields.flag_or(&key("json_object"), false)? {
        add("json_object", Grammar::JsonObject);
    }
    Ok(())
}
