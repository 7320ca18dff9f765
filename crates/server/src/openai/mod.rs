//! OpenAI's endpoints: requests decoded, answers encoded.
//!
//! [`request`] reads a body: OpenAI's fields and those of vLLM, unknown ones ignored, wrong ones refused by name.
//! [`answer`] reads what a model writes as reasoning, content and calls, and [`wire`] writes that as JSON, whole or in
//! pieces.

pub(crate) mod answer;
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
