//! Text to tokens and back, as vLLM's endpoints have it.

use std::sync::Arc;

use galatea_llm::chat::NO_TEMPLATE;
use galatea_llm::model::LanguageModel;
use galatea_llm::tokens::{SpecialText, Tokenizer};
use galatea_llm::tools::ToolDefinition;
use galatea_serving::backend::CheckpointHandle;
use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::ObjectFields;
use super::request::conversation;
use super::run::surround;

/// Contexts of a model that a text may have the tokens of.
const CONTEXTS: usize = 4;
/// Tokens that a text may have however short the context is.
const MIN_LIMIT: usize = 65_536;

/// Parts of a model that convert between texts and tokens.
#[derive(Debug)]
pub(crate) struct TokenizeModel {
    tokenizer: Arc<Tokenizer>,
    /// Language model, if the model may chat.
    language: Option<Arc<LanguageModel>>,
    context: usize,
}

impl From<&CheckpointHandle> for TokenizeModel {
    fn from(checkpoint: &CheckpointHandle) -> Self {
        match checkpoint {
            CheckpointHandle::Language(model) => Self {
                tokenizer: Arc::clone(model.tokenizer()),
                language: Some(Arc::clone(model)),
                context: model.context(),
            },
            CheckpointHandle::Encoder(engine) => Self {
                tokenizer: Arc::clone(engine.model().tokenizer()),
                language: None,
                context: engine.model().encoder().context(),
            },
        }
    }
}

impl TokenizeModel {
    /// Refuses a text that has many times the tokens of the context. Those a little beyond it have their tokens: that is
    /// how clients find out.
    fn check_length(&self, field: &str, text: &str) -> Result<(), ApiError> {
        let most = self.context.saturating_mul(CONTEXTS).max(MIN_LIMIT);
        if !self.tokenizer.exceeds(text, most)? {
            return Ok(());
        }
        let text =
            format!("more than {most} tokens found, the context of the model is {}", self.context);
        Err(ApiError::too_long(field, text))
    }
}

/// The tokens of a text or of a conversation.
///
/// # Errors
/// Fails for fields of a wrong form, and for messages that the chat template refuses.
pub(crate) fn tokenize(
    model: &TokenizeModel,
    fields: &ObjectFields<'_>,
) -> Result<Value, ApiError> {
    let tokenizer = &model.tokenizer;
    let tokens = if let Some(prompt) = fields.text("prompt")? {
        model.check_length("prompt", prompt)?;
        tokenizer.encode(prompt, surround(fields.flag_or("add_special_tokens", true)?))?
    } else if fields.get("messages").is_some() {
        let tools = ToolDefinition::from_request(fields.get("tools").unwrap_or(&Value::Null))?;
        let conversation = conversation(fields, &tools)?;
        let name = fields.text("model")?.unwrap_or_default();
        let Some(language) = &model.language else {
            let message = format!("the model '{name}' is an encoder, which has no chats");
            return Err(ApiError::field("messages", message));
        };
        let Some(template) = language.template() else {
            let message = format!("the model '{name}' {NO_TEMPLATE}");
            return Err(ApiError::field("messages", message));
        };
        let text = template.render(&conversation)?;
        model.check_length("messages", &text)?;
        tokenizer.encode(&text, surround(fields.flag_or("add_special_tokens", false)?))?
    } else {
        return Err(ApiError::field("prompt", "missing, and so is messages"));
    };
    let name = |id: &u32| tokenizer.id_to_token(*id);
    let names = fields
        .flag_or("return_token_strs", false)?
        .then(|| tokens.iter().map(name).collect::<Vec<_>>());
    Ok(json!({
        "count": tokens.len(), "max_model_len": model.context,
        "tokens": tokens, "token_strs": names,
    }))
}

/// The text of tokens.
///
/// # Errors
/// Fails without a list of tokens, and for tokens that the model does not have.
pub(crate) fn detokenize(
    model: &TokenizeModel,
    fields: &ObjectFields<'_>,
) -> Result<Value, ApiError> {
    let Some(tokens) = fields.tokens("tokens")? else { return Err(fields.missing("tokens")) };
    let tokenizer = &model.tokenizer;
    let known = |id: &u32| usize::try_from(*id).is_ok_and(|id| id < tokenizer.vocabulary_size());
    if let Some(unknown) = tokens.iter().find(|id| !known(id)) {
        let message =
            format!("{unknown} found, expected less than {}", tokenizer.vocabulary_size());
        return Err(ApiError::field("tokens", message));
    }
    Ok(json!({"prompt": tokenizer.decode(&tokens, SpecialText::Keep)}))
}
