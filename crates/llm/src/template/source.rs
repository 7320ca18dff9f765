//! Messages that a text ends within.

use serde_json::{Value, json};

use crate::error::{LlmError, LlmErrorKind, Result};

/// Marks where a final message ends that is to be continued.
const TAG: &str = "\u{E000}CONTINUE-FINAL-MESSAGE\u{E001} ";

/// Puts the tag behind the text of the last message, and gives that text.
pub(super) fn tag_final_message(messages: &mut [Value]) -> Result<String> {
    let refused =
        |message: &str| LlmError::new(LlmErrorKind::Template, "continue_final_message", message);
    let last = messages.last_mut().ok_or_else(|| refused("there is no message to continue"))?;
    let content = match last.get_mut("content") {
        Some(Value::Array(parts)) => {
            let text = parts.iter_mut().rev().find_map(|part| part.get_mut("text"));
            text.ok_or_else(|| refused("the final message has no text to continue"))?
        }
        Some(content) => content,
        None => return Err(refused("the final message has no content to continue")),
    };
    let Some(text) = content.as_str().map(str::to_owned) else {
        return Err(refused("the content of the final message is no text"));
    };
    *content = json!(format!("{text}{TAG}"));
    Ok(text)
}

/// Ends the text where the final message ends.
pub(super) fn cut_at_tag(mut text: String, message: &str) -> Result<String> {
    let bare = TAG.trim_end();
    let Some(at) = text.rfind(bare).filter(|_| text.contains(message.trim())) else {
        let message = "the template does not write the final message as it is";
        return Err(LlmError::new(LlmErrorKind::Template, "continue_final_message", message));
    };
    // A template that trims messages has trimmed the tag's space, and would have trimmed theirs.
    let kept = text.get(at..).is_some_and(|end| end.starts_with(TAG));
    text.truncate(at);
    if !kept {
        text.truncate(text.trim_end().len());
    }
    Ok(text)
}
