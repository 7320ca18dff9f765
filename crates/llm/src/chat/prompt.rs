//! Prompts of chats, and requests for the engine.

use std::fmt;

use crate::LlmError;
use crate::engine::GenerationRequest;
use crate::grammar::Grammar;
use crate::model::LanguageModel;
use crate::reasoning::ReasoningOpening;
use crate::sampling::SamplingParameters;
use crate::template::Conversation;
use crate::tokens::SpecialTokens;
use crate::tools::{ToolChoice, ToolFormat};

use super::answer::AnswerReading;

/// Mark that opens reasoning in front of an answer.
const THINK: &str = "<think>";

/// End of the sentence that a model cannot chat, with what helps.
pub const NO_TEMPLATE: &str = "has no chat template, so it completes texts only; give it one as chat_template.jinja \
                               beside its file, by --chat-template FILE, or as chat_template in its model.json";

/// Settings of a generation beside its prompt.
#[derive(Debug, Clone, Default)]
pub struct GenerationSettings {
    /// Parameters of choosing tokens.
    pub sampling: SamplingParameters,
    /// Grammar that the answer must follow.
    pub grammar: Option<Grammar>,
    /// Priority; requests with lower values run first.
    pub priority: i32,
    /// Number of the client, so that steps are shared fairly.
    pub client: u64,
    /// Salt of the cache; requests of different salts share nothing.
    pub salt: u64,
    /// Name of the request for those who watch the engine; may be empty.
    pub id: String,
}

/// Settings of a chat beside its conversation.
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    /// True if the answer may call tools of the conversation.
    pub has_tools: bool,
    /// Choice of the tools that are to be called.
    pub choice: ToolChoice,
    /// True if an answer may make one call only.
    pub single_call: bool,
    /// True if answers tell the reasoning in front of them.
    pub reasoning: bool,
    /// True if the tokenizer's own tokens are put around the prompt, although the template has them.
    pub add_special_tokens: bool,
}

/// A chat that is ready for the engine.
#[derive(Debug, Clone)]
pub struct ChatPrompt {
    /// Tokens of the prompt.
    pub tokens: Vec<u32>,
    /// Rules for reading the answer.
    pub reading: AnswerReading,
}

/// Reason why there is no request for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptError {
    /// The model has no chat template.
    NoTemplate,
    /// The prompt has no token.
    Empty,
    /// The prompt and the answer are longer than the context.
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Largest number of tokens of the answer, if the request names one.
        answer: Option<usize>,
        /// Largest number of tokens of both.
        context: usize,
    },
    /// The text of the prompt alone has more tokens than the context; how many is not known.
    TextTooLong {
        /// Largest number of tokens of prompt and answer.
        context: usize,
    },
    /// The template, the tokenizer or the grammar refuses.
    Model(LlmError),
}

impl From<LlmError> for PromptError {
    fn from(error: LlmError) -> Self {
        Self::Model(error)
    }
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTemplate => write!(f, "the model {NO_TEMPLATE}"),
            Self::Empty => f.write_str("no tokens found, expected at least one"),
            Self::TooLong { prompt, answer: Some(answer), context } => write!(
                f,
                "the context is {context} tokens; the prompt has {prompt}, and {answer} are asked for"
            ),
            Self::TooLong { prompt, answer: None, context } => write!(
                f,
                "the context is {context} tokens; the prompt has {prompt}, and an answer needs at least one"
            ),
            Self::TextTooLong { context } => {
                write!(f, "the context is {context} tokens; the prompt has more")
            }
            Self::Model(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PromptError {}

impl ChatPrompt {
    /// Makes the prompt of a conversation. Calls of some models are marked by special tokens, which `settings` then
    /// keep.
    ///
    /// # Errors
    /// Fails when the model has no template, or the template refuses the messages.
    pub fn new(
        model: &LanguageModel,
        conversation: &Conversation,
        options: &ChatOptions,
        settings: &mut GenerationSettings,
    ) -> Result<Self, PromptError> {
        let template = model.template().ok_or(PromptError::NoTemplate)?;
        let text = template.render(conversation)?;
        let calls = match &options.choice {
            ToolChoice::None => None,
            ToolChoice::Auto => options.has_tools.then(|| model.tool_format()),
            ToolChoice::Required => Some(ToolFormat::List),
            ToolChoice::Named(tool) => Some(ToolFormat::Arguments(tool.clone())),
        };
        if calls == Some(ToolFormat::Mistral) {
            // The mark in front of calls is a special token.
            settings.sampling.skip_special_tokens = false;
        }
        // An answer that follows a grammar has no reasoning in front of it.
        let opened = text.trim_end().ends_with(THINK) && settings.grammar.is_none();
        let opening = if opened { ReasoningOpening::ByPrompt } else { ReasoningOpening::ByAnswer };
        let special = match options.add_special_tokens {
            true => SpecialTokens::Add,
            false => SpecialTokens::Omit,
        };
        Ok(Self {
            tokens: prompt_tokens(model, &text, special)?,
            reading: AnswerReading {
                opening,
                calls,
                single: options.single_call,
                reasoning: options.reasoning,
            },
        })
    }
}

/// Makes tokens of the text of a prompt.
///
/// # Errors
/// Fails when the text has more tokens than the context, and on text that the tokenizer cannot express.
pub fn prompt_tokens(
    model: &LanguageModel,
    text: &str,
    special: SpecialTokens,
) -> Result<Vec<u32>, PromptError> {
    let context = model.context();
    if model.tokenizer().exceeds(text, context)? {
        return Err(PromptError::TextTooLong { context });
    }
    Ok(model.tokenizer().encode(text, special)?)
}

/// Makes the request for the engine from the tokens of a prompt.
///
/// # Errors
/// Fails when the prompt is empty, when it and the answer are longer than the context, and for a grammar that cannot
/// be followed.
pub fn generation(
    model: &LanguageModel,
    settings: &GenerationSettings,
    prompt: Vec<u32>,
) -> Result<GenerationRequest, PromptError> {
    let context = model.context();
    let length = prompt.len();
    let answer =
        settings.sampling.max_tokens.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    if length == 0 {
        return Err(PromptError::Empty);
    }
    if length >= context || answer.is_some_and(|most| length.saturating_add(most) > context) {
        return Err(PromptError::TooLong { prompt: length, answer, context });
    }
    let constraint = match &settings.grammar {
        Some(grammar) => Some(model.grammars()?.compile(grammar)?),
        None => None,
    };
    Ok(GenerationRequest {
        prompt,
        sampling: settings.sampling.clone(),
        constraint,
        priority: settings.priority,
        client: settings.client,
        salt: settings.salt,
        id: settings.id.clone(),
    })
}
