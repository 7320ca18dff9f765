//! Errors in the form that OpenAI's clients read.

use galatea_llm::{LlmError as ModelError, LlmErrorKind};
use galatea_serving::ServingError as CoreError;
use galatea_serving::generate::GenerateError;
use serde_json::{Value, json};

use crate::access::AccessRefusal;
use crate::status;

/// Time that a client is asked to wait when a queue is full, in seconds.
const RETRY_SECONDS: u32 = 1;

/// An error of these endpoints: a status and OpenAI's error object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: u16,
    sort: &'static str,
    param: Option<String>,
    code: Option<&'static str>,
    message: String,
}

impl ApiError {
    fn new(status: u16, sort: &'static str, message: impl Into<String>) -> Self {
        Self { status, sort, param: None, code: None, message: message.into() }
    }

    /// The request is wrong as a whole.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    /// A field of the request is wrong; the message begins with its name.
    pub(crate) fn field(name: impl Into<String>, message: impl AsRef<str>) -> Self {
        let name = name.into();
        let message = format!("{name}: {}", message.as_ref());
        Self { param: Some(name), ..Self::invalid(message) }
    }

    /// The request as a whole is refused with a status of its own.
    pub(crate) fn refused(status: u16, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    /// The request comes without the right key, or its key has reached a limit.
    pub(crate) fn access(refusal: &AccessRefusal) -> Self {
        let (sort, code) = match refusal {
            AccessRefusal::NoKey | AccessRefusal::UnknownKey => {
                ("invalid_request_error", Some("invalid_api_key"))
            }
            AccessRefusal::ClosedGroup { .. } => ("permission_error", None),
            AccessRefusal::LimitReached { .. } => ("rate_limit_error", Some("rate_limit_exceeded")),
        };
        Self { code, ..Self::new(refusal.status(), sort, refusal.message()) }
    }

    /// The request lacks the header that its endpoint needs.
    pub(crate) fn restricted(header: &str) -> Self {
        let message =
            format!("This API is restricted, expecting header '{header}' with valid value");
        Self { code: Some("invalid_auth"), ..Self::new(401, "authentication_error", message) }
    }

    /// The body is longer than the limit.
    pub(crate) fn too_large(bytes: usize, limit: usize) -> Self {
        let message = format!(
            "Request size of {bytes} bytes exceeds the maximum allowed input size of {limit} bytes. Use \
             --http-max-input-size to increase the limit."
        );
        Self { code: Some("content_too_large"), ..Self::refused(413, message) }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "invalid_request_error", message)
    }

    /// There is no such model.
    pub(crate) fn no_model(name: &str) -> Self {
        let message = format!("The model '{name}' does not exist.");
        Self {
            param: Some("model".to_owned()),
            code: Some("model_not_found"),
            ..Self::not_found(message)
        }
    }

    /// A prompt and its answer are longer than the model's context.
    pub(crate) fn too_long(param: &str, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.to_owned()),
            code: Some("context_length_exceeded"),
            ..Self::invalid(message)
        }
    }

    /// A fault of the server.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "server_error", message)
    }

    /// Not now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "service_unavailable", message)
    }

    /// Too much at once.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Self { code: Some("rate_limit_exceeded"), ..Self::new(429, "rate_limit_error", message) }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Seconds until another attempt makes sense, where that is known.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        (self.status == 429).then_some(RETRY_SECONDS)
    }

    /// The words of the error.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// `{"error": {…}}`.
    pub(crate) fn to_json(&self) -> Value {
        json!({"error": {
            "message": self.message, "type": self.sort, "param": self.param, "code": self.code,
        }})
    }
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        match error.kind() {
            LlmErrorKind::Parameter
            | LlmErrorKind::Grammar
            | LlmErrorKind::Template
            | LlmErrorKind::Tokenizer => Self::field(error.place(), error.message()),
            LlmErrorKind::Overloaded => Self::overloaded(error.to_string()),
            LlmErrorKind::Unavailable => Self::unavailable(error.to_string()),
            _ => Self::internal(error.to_string()),
        }
    }
}

impl From<CoreError> for ApiError {
    fn from(error: CoreError) -> Self {
        match status::http(error.code) {
            400 => Self::invalid(error.message),
            404 => Self::not_found(error.message),
            503 => Self::unavailable(error.message),
            status => Self::new(status, "server_error", error.message),
        }
    }
}

impl From<GenerateError> for ApiError {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Engine(error) => error.into(),
            GenerateError::Serving(error) => error.into(),
        }
    }
}
