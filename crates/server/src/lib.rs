//! The wire: HTTP, gRPC, OpenAI protocols, metrics and traces.
//!
//! A [`server::RunningServer`] opens the front ends of a [`galatea_serving::Core`] that [`options::ServerOptions`]
//! asks for: [`http`], [`grpc`] and the metrics port. Everything asynchronous of Galatea lives in this crate; the
//! core answers on its own threads, and [`pending`] makes a future of an answer.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    reason = "numbers for people and for metrics are doubles on the wire"
)]

pub mod access;
pub mod app;
mod blocking;
pub mod body_budget;
pub mod browser;
mod classification;
pub mod client_pace;
pub mod connection_count;
pub mod forward;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz_stream;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod hosted;
pub mod http;
pub mod in_flight;
pub mod json;
pub mod listen;
pub mod logging;
pub mod metrics;
pub mod openai;
pub mod options;
pub mod overrides;
pub mod pending;
pub mod restricted;
pub mod sagemaker;
pub mod secret_file;
pub mod server;
mod shm;
pub mod status;
mod tasks;
pub mod tensor_wire;
pub mod tls;
pub mod trace;
