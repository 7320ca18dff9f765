//! Chats without a wire: messages to the tokens of a prompt, and the text of an answer to a message.

mod answer;
mod prompt;

pub use answer::{AnswerMessage, AnswerPiece, AnswerReader, AnswerReading};
pub use prompt::{
    ChatOptions, ChatPrompt, GenerationSettings, NO_TEMPLATE, PromptError, generation,
    prompt_tokens,
};
