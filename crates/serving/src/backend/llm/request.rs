//! Requests under the names of Triton's vLLM backend.

use galatea_llm::chat::{self, PromptError};
use galatea_llm::engine::GenerationRequest;
use galatea_llm::grammar::Grammar;
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::SpecialTokens;
use galatea_tensor::{ByteString, DataType, Tensor};
use serde_json::{Map, Value};

use super::of_model;
use crate::backend::ActiveRequest;
use crate::batch;
use crate::error::ServingError;
use crate::request::ParameterValue;

/// The input that a request must have.
pub(super) const TEXT: &str = "text_input";
/// Sampling parameters: JSON with vLLM's names.
const SAMPLING: &str = "sampling_parameters";

/// All inputs, of one element each.
pub(super) const INPUTS: &[(&str, DataType)] = &[
    (TEXT, DataType::Bytes),
    ("stream", DataType::Bool),
    (SAMPLING, DataType::Bytes),
    ("exclude_input_in_output", DataType::Bool),
    ("return_finish_reason", DataType::Bool),
    ("return_cumulative_logprob", DataType::Bool),
    ("return_logprobs", DataType::Bool),
    ("return_num_input_tokens", DataType::Bool),
    ("return_num_output_tokens", DataType::Bool),
];

/// Sampling fields that parameters of a request may have, as the generate endpoint hands them over.
const PARAMETERS: &[&str] = &[
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "n",
    "max_tokens",
    "min_tokens",
    "stop",
    "ignore_eos",
    "logprobs",
    "skip_special_tokens",
    "include_stop_str_in_output",
];

/// Content of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GenerationDemand {
    pub(super) text: String,
    /// A response for each piece of the answer.
    pub(super) stream: bool,
    /// The answer begins with the text.
    pub(super) prepend: bool,
    pub(super) finish_reason: bool,
    pub(super) cumulative_logprob: bool,
    pub(super) logprobs: bool,
    pub(super) input_tokens: bool,
    pub(super) output_tokens: bool,
    pub(super) sampling: SamplingParameters,
    grammar: Option<Grammar>,
}

/// The values of a request's inputs.
struct RequestInputs(Vec<(String, Tensor)>);

impl RequestInputs {
    fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.0.iter().find(|(input, _)| input == name).map(|(_, tensor)| tensor)
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, ServingError> {
        let Some(tensor) = self.tensor(name) else { return Ok(None) };
        Ok(tensor.contiguous()?.to_vec::<bool>()?.first().copied())
    }

    fn text(&self, name: &str) -> Result<Option<String>, ServingError> {
        let Some(tensor) = self.tensor(name) else { return Ok(None) };
        let texts = tensor.contiguous()?.to_vec::<ByteString>()?;
        let Some(text) = texts.first() else { return Ok(None) };
        match std::str::from_utf8(text.as_bytes()) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(error) => {
                Err(ServingError::invalid_arg(format!("input '{name}' is no UTF-8: {error}")))
            }
        }
    }
}

/// Reads a request.
///
/// # Errors
/// Says what is missing, has another form, or contradicts itself.
pub(super) fn read(request: &ActiveRequest) -> Result<GenerationDemand, ServingError> {
    let inputs = RequestInputs(batch::gather(request.config(), std::slice::from_ref(request))?);
    let Some(text) = inputs.text(TEXT)? else {
        return Err(ServingError::invalid_arg(format!(
            "input '{TEXT}' has no element, expected one"
        )));
    };
    let flag = |name: &str| Ok::<_, ServingError>(inputs.flag(name)?.unwrap_or(false));
    let stream = flag("stream")?;
    let exclude = inputs.flag("exclude_input_in_output")?;
    if stream && exclude == Some(false) {
        return Err(ServingError::invalid_arg(
            "When streaming, `exclude_input_in_output` = False is not allowed.",
        ));
    }
    let mut given = match inputs.text(SAMPLING)? {
        Some(text) if !text.trim().is_empty() => {
            serde_json::from_str(&text).map_err(|error| wrong(&error))?
        }
        _ => Map::new(),
    };
    for (name, value) in &request.request.parameters {
        if PARAMETERS.contains(&name.as_str()) && !given.contains_key(name) {
            given.insert(name.clone(), json(value));
        }
    }
    let grammar = grammar(&mut given)?;
    let cumulative_logprob = flag("return_cumulative_logprob")?;
    let mut sampling = sampling(given)?;
    if cumulative_logprob && sampling.logprobs.is_none() {
        sampling.logprobs = Some(0);
    }
    Ok(GenerationDemand {
        text,
        stream,
        prepend: !stream && !exclude.unwrap_or(false),
        finish_reason: flag("return_finish_reason")?,
        cumulative_logprob,
        logprobs: flag("return_logprobs")?,
        input_tokens: flag("return_num_input_tokens")?,
        output_tokens: flag("return_num_output_tokens")?,
        sampling,
        grammar,
    })
}

fn wrong(why: &dyn std::fmt::Display) -> ServingError {
    ServingError::invalid_arg(format!("'{SAMPLING}': {why}"))
}

fn json(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => Value::from(*value),
        ParameterValue::Int(value) => Value::from(*value),
        ParameterValue::Uint(value) => Value::from(*value),
        ParameterValue::Double(value) => Value::from(*value),
        ParameterValue::String(value) => Value::from(value.as_str()),
    }
}

/// Reads how tokens are chosen. Values may be texts of JSON, as the vLLM backend has them.
fn sampling(mut given: Map<String, Value>) -> Result<SamplingParameters, ServingError> {
    for (name, value) in &mut given {
        let Value::String(text) = &*value else { continue };
        let python = match text.as_str() {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            text => text,
        };
        let parsed: Option<Value> = serde_json::from_str(python).ok();
        if let Some(parsed) = parsed.filter(|parsed| name != "stop" || parsed.is_array()) {
            *value = parsed;
        }
    }
    serde_json::from_value(Value::Object(given)).map_err(|error| wrong(&error))
}

/// Takes what answers have to follow out of the parameters.
fn grammar(given: &mut Map<String, Value>) -> Result<Option<Grammar>, ServingError> {
    let mut wishes = Map::new();
    for name in ["guided_decoding", "structured_outputs"] {
        match given.remove(name) {
            None | Some(Value::Null) => {}
            Some(Value::Object(all)) => wishes.extend(all),
            Some(Value::String(text)) => {
                let all: Map<String, Value> = serde_json::from_str(&text)
                    .map_err(|error| wrong(&format!("{name}: {error}")))?;
                wishes.extend(all);
            }
            Some(_) => return Err(wrong(&format!("{name}: expected an object"))),
        }
    }
    for name in ["json", "regex", "choice", "grammar", "json_object"] {
        wishes.extend(given.remove(&format!("guided_{name}")).map(|wish| (name.to_owned(), wish)));
    }
    wishes.retain(|_, wish| !wish.is_null());
    let mut wishes = wishes.into_iter();
    let Some((name, wish)) = wishes.next() else { return Ok(None) };
    if let Some((other, _)) = wishes.next() {
        return Err(wrong(&format!("an answer cannot follow both {name} and {other}")));
    }
    one_grammar(&name, wish).map_err(|expected| wrong(&format!("{name}: expected {expected}")))
}

fn one_grammar(name: &str, wish: Value) -> Result<Option<Grammar>, &'static str> {
    Ok(Some(match (name, wish) {
        ("json", Value::String(text)) => {
            Grammar::JsonSchema(serde_json::from_str(&text).map_err(|_| "a JSON schema")?)
        }
        ("json", schema) => Grammar::JsonSchema(schema),
        ("regex", Value::String(pattern)) => Grammar::Regex(pattern),
        ("grammar", Value::String(text)) => Grammar::from_text(text),
        ("choice", Value::Array(all)) => {
            let texts = all.into_iter().map(|text| match text {
                Value::String(text) => Some(text),
                _ => None,
            });
            Grammar::Choice(texts.collect::<Option<_>>().ok_or("a list of texts")?)
        }
        ("json_object", Value::Bool(true)) => Grammar::JsonObject,
        ("json_object", Value::Bool(false)) => return Ok(None),
        ("json_object", _) => return Err("true or false"),
        ("choice", _) => return Err("a list of texts"),
        ("regex" | "grammar", _) => return Err("a text"),
        _ => return Err("json, regex, choice, grammar or json_object"),
    }))
}

impl GenerationDemand {
    /// The request for the engine, by the client's name.
    ///
    /// # Errors
    /// A text that the tokenizer cannot express, and a grammar that cannot be followed.
    pub(super) fn prepare(
        self,
        model: &LanguageModel,
        id: &str,
    ) -> Result<(Self, GenerationRequest), ServingError> {
        let encoded = chat::prompt_tokens(model, &self.text, SpecialTokens::Add);
        let constraint = match &self.grammar {
            None => None,
            Some(grammar) => {
                let made = model.grammars().and_then(|compiler| compiler.compile(grammar));
                Some(made.map_err(|error| of_model(&error))?)
            }
        };
        let generation = GenerationRequest {
            prompt: encoded.map_err(|error| match error {
                PromptError::Model(error) => of_model(&error),
                error => ServingError::invalid_arg(error.to_string()),
            })?,
            sampling: self.sampling.clone(),
            constraint,
            priority: 0,
            client: 0,
            salt: 0,
            id: id.to_owned(),
        };
        Ok((self, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<(SamplingParameters, Option<Grammar>), String> {
        let mut given = serde_json::from_str(text).unwrap();
        let grammar = grammar(&mut given).map_err(|error| error.message)?;
        Ok((sampling(given).map_err(|error| error.message)?, grammar))
    }

    #[test]
    fn values_may_be_texts_as_the_vllm_backend_has_them() {
        let (texts, none) = of(
            r#"{"temperature": "0.5", "max_tokens": "7", "ignore_eos": "True", "stop": "5", "seed": "None"}"#,
        )
        .unwrap();
        let plain = r#"{"temperature": 0.5, "max_tokens": 7, "ignore_eos": true, "stop": ["5"]}"#;
        assert_eq!((texts, none), of(plain).unwrap());
    }

    #[test]
    fn grammars_have_several_names() {
        let regex = Some(Grammar::Regex("a+".to_owned()));
        for text in [
            r#"{"guided_regex": "a+"}"#,
            r#"{"guided_decoding": {"regex": "a+"}}"#,
            r#"{"structured_outputs": "{\"regex\": \"a+\", \"json\": null}"}"#,
        ] {
            assert_eq!(of(text).unwrap().1, regex, "{text}");
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (text, why) in [
            (r#"{"temperature": "hot"}"#, "'sampling_parameters': invalid type"),
            (r#"{"beams": 4}"#, "unknown field `beams`"),
            (r#"{"guided_regex": "a", "guided_json": {}}"#, "cannot follow both"),
            (r#"{"guided_choice": [1]}"#, "choice: expected a list of texts"),
            (r#"{"structured_outputs": 5}"#, "structured_outputs: expected an object"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
