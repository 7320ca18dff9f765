//! Requests for chats and completions, decoded.

use std::hash::{DefaultHasher, Hash, Hasher};

use galatea_llm::chat::GenerationSettings;
use galatea_llm::grammar::Grammar;
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::template::{Conversation, GenerationPrompt};
use galatea_llm::tools::{ToolChoice, ToolDefinition};
use galatea_serving::generate::AnswerForm;
use serde_json::Value;

use super::error::ApiError;
use super::fields::{ObjectFields, sampling, tokens, wrong};
use super::logprobs::TokenNaming;
use super::message::messages;
use super::structured;
use super::wire::unique;
use super::wire::{AnswerEnvelope, UsageObject};

/// The most alternatives of a token in a chat, as OpenAI has it.
const MAX_TOP_LOGPROBS: u32 = 20;
/// The most prompts of one request.
const MAX_PROMPTS: usize = 2048;
/// The most tokens of a completion whose request names no number.
const COMPLETION_TOKENS: u32 = 16;

/// Extras of a stream beside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    /// The counts of tokens, at the end.
    pub(crate) usage: bool,
    /// The counts of tokens, with each piece.
    pub(crate) continuous: bool,
}

/// Fields that requests for chats and for completions share.
#[derive(Debug, Clone)]
pub(crate) struct CommonFields {
    /// Settings of the generation.
    pub(crate) settings: GenerationSettings,
    /// The answer comes in pieces.
    pub(crate) stream: Option<StreamOptions>,
    /// Answers hold their tokens.
    pub(crate) token_ids: bool,
    /// Log-probabilities name tokens by their numbers.
    pub(crate) names_as_ids: bool,
}

impl CommonFields {
    /// Returns the number of answers to a prompt.
    pub(crate) fn answers(&self) -> usize {
        usize::try_from(self.settings.sampling.n).unwrap_or(1)
    }

    /// Returns the form in which the answers are sent.
    pub(crate) fn form(&self) -> AnswerForm {
        if self.stream.is_some() { AnswerForm::Pieces } else { AnswerForm::Whole }
    }

    /// Returns whether a stream ends with its counts of tokens.
    pub(crate) fn ends_with_usage(&self) -> bool {
        self.stream.is_some_and(|options| options.usage)
    }

    /// Returns the usage field of a stream's piece, given the present counts of tokens.
    pub(crate) fn usage_of_piece(&self, now: UsageObject) -> Option<Option<UsageObject>> {
        match self.stream? {
            StreamOptions { continuous: true, .. } => Some(Some(now)),
            StreamOptions { usage: true, .. } => Some(None),
            StreamOptions { .. } => None,
        }
    }

    /// Returns the names of a model's tokens for log-probabilities.
    pub(crate) fn names<'m>(&self, model: &'m LanguageModel) -> TokenNaming<'m> {
        TokenNaming { tokenizer: model.tokenizer(), as_ids: self.names_as_ids }
    }

    /// Makes the envelope of an answer.
    pub(crate) fn envelope(
        &self,
        prefix: &str,
        object: &'static str,
        model: &str,
    ) -> AnswerEnvelope {
        AnswerEnvelope::new(prefix, object, &self.settings.id, model)
    }
}

/// A request for a chat.
#[derive(Debug, Clone)]
pub(crate) struct ChatRequest {
    /// Fields shared with completions.
    pub(crate) common: CommonFields,
    /// Conversation from which the template makes a prompt.
    pub(crate) conversation: Conversation,
    /// The tokens around the prompt are added although the template has its own.
    pub(crate) add_special_tokens: bool,
    /// Tools.
    pub(crate) tools: Vec<ToolDefinition>,
    /// Choice of the tools that are to be called.
    pub(crate) choice: ToolChoice,
    /// Several calls in one answer are fine.
    pub(crate) parallel: bool,
    /// Answers hold the reasoning in front of them.
    pub(crate) reasoning: bool,
    /// Answers begin with the last message, where that is continued.
    pub(crate) echo: Option<String>,
}

/// Prompt that a completion continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionPrompt {
    /// Text.
    Text(String),
    /// Tokens.
    Tokens(Vec<u32>),
}

/// A request for completions.
#[derive(Debug, Clone)]
pub(crate) struct CompletionRequest {
    /// Fields shared with chats.
    pub(crate) common: CommonFields,
    /// Each prompt has its own answers.
    pub(crate) prompts: Vec<CompletionPrompt>,
    /// Answers begin with their prompt.
    pub(crate) echo: bool,
    /// Only the prompt is wanted back, with its log-probabilities.
    pub(crate) nothing_new: bool,
    /// The tokens around a text are added.
    pub(crate) add_special_tokens: bool,
}

/// The model that a request names.
pub(crate) fn model<'a>(fields: &ObjectFields<'a>) -> Result<Option<&'a str>, ApiError> {
    fields.text("model")
}

/// A number for a text, the same each time.
pub(crate) fn number_of(text: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn common(
    fields: &ObjectFields<'_>,
    defaults: &SamplingParameters,
    caller: &str,
) -> Result<CommonFields, ApiError> {
    let options = fields.object("stream_options")?;
    let stream = fields.flag_or("stream", false)?;
    let stream = match (stream, options) {
        (false, None) => None,
        (false, Some(_)) => {
            let message = "only a request with \"stream\": true has it";
            return Err(ApiError::field("stream_options", message));
        }
        (true, None) => Some(StreamOptions { usage: false, continuous: false }),
        (true, Some(options)) => Some(StreamOptions {
            usage: options.flag_or("include_usage", false)?,
            continuous: options.flag_or("continuous_usage_stats", false)?,
        }),
    };
    let priority = fields.integer("priority")?.unwrap_or(0);
    let Ok(priority) = i32::try_from(priority) else {
        return Err(fields.wrong("priority", "a whole number of 32 bits"));
    };
    let user = fields.text("safety_identifier")?.or(fields.text("user")?);
    if fields.get("prompt_embeds").is_some() {
        return Err(ApiError::field("prompt_embeds", "prompts must be text or tokens"));
    }
    Ok(CommonFields {
        settings: GenerationSettings {
            sampling: sampling(fields, defaults)?,
            grammar: structured::grammar(fields)?,
            priority,
            client: number_of((caller, user)),
            salt: fields.text("cache_salt")?.map_or(0, number_of),
            id: fields.text("request_id")?.map_or_else(|| unique(""), str::to_owned),
        },
        stream,
        token_ids: fields.flag_or("return_token_ids", false)?,
        names_as_ids: fields.flag_or("return_tokens_as_token_ids", false)?,
    })
}

/// Reads how the prompt of a conversation ends.
fn ending(fields: &ObjectFields<'_>) -> Result<GenerationPrompt, ApiError> {
    let continues = fields.flag_or("continue_final_message", false)?;
    match (continues, fields.flag("add_generation_prompt")?) {
        (true, Some(true)) => {
            let message = "an answer cannot begin anew and continue the last message";
            Err(ApiError::field("continue_final_message", message))
        }
        (true, _) => Ok(GenerationPrompt::ContinueFinalMessage),
        (false, Some(false)) => Ok(GenerationPrompt::Complete),
        (false, _) => Ok(GenerationPrompt::GenerationPrompt),
    }
}

/// Reads a conversation with what its template may know beside the messages.
pub(crate) fn conversation(
    fields: &ObjectFields<'_>,
    tools: &[ToolDefinition],
) -> Result<Conversation, ApiError> {
    if fields.get("chat_template").is_some() {
        let message = "the template is the model's own, and none is taken from requests";
        return Err(ApiError::field("chat_template", message));
    }
    let mut variables = fields.map("chat_template_kwargs")?.cloned().unwrap_or_default();
    if let Some(effort) = fields.text("reasoning_effort")? {
        variables.entry("reasoning_effort").or_insert_with(|| Value::from(effort));
    }
    Ok(Conversation {
        messages: messages(fields)?,
        tools: (!tools.is_empty()).then(|| tools.iter().map(ToolDefinition::to_json).collect()),
        documents: fields.list("documents")?.cloned(),
        ending: ending(fields)?,
        variables,
        ..Conversation::default()
    })
}

impl ChatRequest {
    /// Decodes a request of `caller`.
    ///
    /// # Errors
    /// Fails for the first wrong field.
    pub(crate) fn decode(
        fields: &ObjectFields<'_>,
        defaults: &SamplingParameters,
        caller: &str,
    ) -> Result<Self, ApiError> {
        let mut common = common(fields, defaults, caller)?;
        let most = fields.count("max_completion_tokens")?.or(fields.count("max_tokens")?);
        common.settings.sampling.max_tokens = most.or(defaults.max_tokens);
        let top = fields.count("top_logprobs")?;
        if let Some(top) = top.filter(|top| *top > MAX_TOP_LOGPROBS) {
            let message = format!("{top} found, expected 0 to {MAX_TOP_LOGPROBS}");
            return Err(ApiError::field("top_logprobs", message));
        }
        let logprobs = fields.flag_or("logprobs", false)?;
        if top.is_some_and(|top| top > 0) && !logprobs {
            let message = "only a request with \"logprobs\": true has it";
            return Err(ApiError::field("top_logprobs", message));
        }
        common.settings.sampling.logprobs = logprobs.then(|| top.unwrap_or(0));
        let tools = ToolDefinition::from_request(fields.get("tools").unwrap_or(&Value::Null))?;
        let choice = fields.get("tool_choice").unwrap_or(&Value::Null);
        let choice = ToolChoice::from_request(choice, &tools)?;
        let parallel = fields.flag_or("parallel_tool_calls", true)?;
        let known = if choice == ToolChoice::None { &[] } else { tools.as_slice() };
        let conversation = conversation(fields, known)?;
        if let Some(grammar) = choice.grammar(&tools) {
            common.settings.grammar = Some(if parallel { grammar } else { one_call(grammar) });
        }
        let echo = fields.flag_or("echo", false)?
            && conversation.ending == GenerationPrompt::ContinueFinalMessage;
        let last = conversation.messages.last().and_then(|last| last.get("content"));
        let echo = last.and_then(Value::as_str).filter(|_| echo).map(str::to_owned);
        Ok(Self {
            common,
            conversation,
            add_special_tokens: fields.flag_or("add_special_tokens", false)?,
            tools,
            choice,
            parallel,
            reasoning: fields.flag_or("include_reasoning", true)?,
            echo,
        })
    }
}

/// The grammar of a required choice, for one call only.
fn one_call(grammar: Grammar) -> Grammar {
    match grammar {
        Grammar::JsonSchema(Value::Object(mut schema)) => {
            if schema.get("type").and_then(Value::as_str) == Some("array") {
                schema.insert("maxItems".to_owned(), Value::from(1));
            }
            Grammar::JsonSchema(Value::Object(schema))
        }
        other => other,
    }
}

impl CompletionRequest {
    /// Decodes a request of `caller`.
    ///
    /// # Errors
    /// Fails for the first wrong field.
    pub(crate) fn decode(
        fields: &ObjectFields<'_>,
        defaults: &SamplingParameters,
        caller: &str,
    ) -> Result<Self, ApiError> {
        let mut common = common(fields, defaults, caller)?;
        if fields.text("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
            return Err(ApiError::field("suffix", "models continue a prompt and fill no gap"));
        }
        let echo = fields.flag_or("echo", false)?;
        common.settings.sampling.logprobs = fields.count("logprobs")?;
        if echo && common.settings.sampling.prompt_logprobs.is_none() {
            common.settings.sampling.prompt_logprobs = common.settings.sampling.logprobs;
        }
        let most = fields.count("max_tokens")?.unwrap_or(COMPLETION_TOKENS);
        let nothing_new = echo && most == 0;
        // The prompt's log-probabilities come with the first token, which is not shown then.
        common.settings.sampling.max_tokens = Some(if nothing_new { 1 } else { most });
        Ok(Self {
            common,
            prompts: prompts(fields, "prompt")?,
            echo,
            nothing_new,
            add_special_tokens: fields.flag_or("add_special_tokens", true)?,
        })
    }
}

/// Texts or lists of tokens, one or several.
pub(crate) fn prompts(
    fields: &ObjectFields<'_>,
    key: &str,
) -> Result<Vec<CompletionPrompt>, ApiError> {
    let expected = "a text, a list of texts, a list of tokens, or a list of lists of tokens";
    let found = match fields.get(key) {
        None => return Err(fields.missing(key)),
        Some(Value::String(text)) => vec![CompletionPrompt::Text(text.clone())],
        Some(value @ Value::Array(all)) => match all.first() {
            None => return Err(wrong(key, value, expected)),
            Some(Value::Number(_)) => {
                vec![CompletionPrompt::Tokens(
                    tokens(value).ok_or_else(|| wrong(key, value, expected))?,
                )]
            }
            Some(_) => all
                .iter()
                .enumerate()
                .map(|(i, prompt)| match prompt {
                    Value::String(text) => Ok(CompletionPrompt::Text(text.clone())),
                    other => tokens(other).map(CompletionPrompt::Tokens).ok_or_else(|| {
                        wrong(&format!("{key}[{i}]"), other, "a text or a list of tokens")
                    }),
                })
                .collect::<Result<_, _>>()?,
        },
        Some(value) => return Err(wrong(key, value, expected)),
    };
    if found.len() > MAX_PROMPTS {
        let message = format!("{} texts found, expected at most {MAX_PROMPTS}", found.len());
        return Err(ApiError::field(key, message));
    }
    Ok(found)
}
