//! From one row of logits to one token.
//!
//! [`SamplingParameters`] say how, checked against their ranges; a [`TokenSampler`] keeps what a request
//! needs to remember between its tokens; [`SamplerScratch`] is the memory that all requests of an engine
//! share, so that a step allocates nothing.

mod logprobs;
mod parameters;
pub mod row;
mod sampler;
mod top;

pub use logprobs::{TokenLogprobs, logprobs};
pub use parameters::SamplingParameters;
pub use sampler::{SamplerScratch, TokenSampler};
pub use top::{LogitNeed, LogitRow, TOP, TopTokens};
