//! Language models: everything between text and tokens, and the engine that generates.

#![forbid(unsafe_code)]

pub mod arch;
pub mod cache;
pub mod chat;
pub mod chunked;
pub mod config;
pub mod embed;
pub mod encoder_decoder;
pub mod engine;
pub mod error;
pub mod facts;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gguf;
pub mod grammar;
mod guarded;
pub mod model;
pub mod observe;
pub mod reasoning;
pub mod sampling;
pub mod schedule;
pub mod stop;
pub mod template;
pub mod tokens;
pub mod tools;
pub mod weights;

pub use error::{LlmError, LlmErrorKind};
