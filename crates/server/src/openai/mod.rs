//! OpenAI's endpoints: requests decoded, answers encoded.
//!
//! [`request`] reads a body: OpenAI's fields and those of vLLM, unknown ones ignored, wrong ones refused by name.
//! `galatea_llm::chat` makes prompts and reads answers; [`wire`] writes these as JSON, whole or in pieces.

pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod encoding;
pub(crate) mod error;
pub(crate) mod fields;
mod logprobs;
mod message;
pub(crate) mod ranking;
pub(crate) mod request;
pub(crate) mod run;
mod structured;
#[cfg(test)]
mod tests;
pub(crate) mod tokenize;
pub(crate) mod wire;
