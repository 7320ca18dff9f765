//! Messages of chats, and requests for their answers.

use galatea_llm::chat::{ChatOptions, GenerationSettings};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::template::Conversation;
use serde_json::{Value, json};

/// A message of a chat.
///
/// ```
/// use galatea::ChatMessage;
///
/// let chat = [ChatMessage::system("You are brief."), ChatMessage::user("Hello!")];
/// assert_eq!(chat[1].role, "user");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Role, such as `system`, `user` or `assistant`.
    pub role: String,
    /// Text.
    pub content: String,
}

impl ChatMessage {
    /// Makes a message of any role.
    ///
    /// ```
    /// let message = galatea::ChatMessage::new("tool", "42");
    /// assert_eq!(message.content, "42");
    /// ```
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// Makes a message that tells the model what it is.
    ///
    /// ```
    /// assert_eq!(galatea::ChatMessage::system("Be brief.").role, "system");
    /// ```
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// Makes a message of the user.
    ///
    /// ```
    /// assert_eq!(galatea::ChatMessage::user("Hello!").role, "user");
    /// ```
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// Makes a message of the model.
    ///
    /// ```
    /// assert_eq!(galatea::ChatMessage::assistant("Hi.").role, "assistant");
    /// ```
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    fn to_json(&self) -> Value {
        json!({"role": self.role, "content": self.content})
    }
}

/// Request for an answer: a conversation, and how tokens are chosen.
///
/// ```
/// use galatea::{ChatInput, ChatMessage};
///
/// let input = ChatInput::new(&[ChatMessage::user("Hello!")]).with_max_tokens(16);
/// assert_eq!(input.settings.sampling.max_tokens, Some(16));
/// ```
#[derive(Debug, Clone)]
pub struct ChatInput {
    /// Messages, and what the template may know beside them.
    pub conversation: Conversation,
    /// Tools and reasoning.
    pub options: ChatOptions,
    /// Choice of tokens, grammar and priority.
    pub settings: GenerationSettings,
}

impl ChatInput {
    /// Makes a request with the usual choice of tokens.
    ///
    /// ```
    /// let input = galatea::ChatInput::new(&[galatea::ChatMessage::user("Hello!")]);
    /// assert_eq!(input.conversation.messages.len(), 1);
    /// ```
    #[must_use]
    pub fn new(messages: &[ChatMessage]) -> Self {
        let messages = messages.iter().map(ChatMessage::to_json).collect();
        Self {
            conversation: Conversation { messages, ..Conversation::default() },
            options: ChatOptions { reasoning: true, ..ChatOptions::default() },
            settings: GenerationSettings::default(),
        }
    }

    /// The same request for an answer of at most so many tokens.
    ///
    /// ```
    /// let input = galatea::ChatInput::new(&[]).with_max_tokens(1);
    /// assert_eq!(input.settings.sampling.max_tokens, Some(1));
    /// ```
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.settings.sampling.max_tokens = Some(tokens);
        self
    }

    /// The same request with another choice of tokens.
    ///
    /// ```
    /// use galatea::{ChatInput, SamplingParameters};
    ///
    /// let greedy = SamplingParameters { temperature: 0.0, ..SamplingParameters::default() };
    /// let input = ChatInput::new(&[]).with_sampling(greedy);
    /// assert!(input.settings.sampling.is_greedy());
    /// ```
    #[must_use]
    pub fn with_sampling(mut self, sampling: SamplingParameters) -> Self {
        self.settings.sampling = sampling;
        self
    }
}
