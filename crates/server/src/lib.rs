//! The wire and the program: HTTP, gRPC, metrics, flags; hands providers to the core.
//!
//! [`cli`] reads the command line. For `serve` it starts a [`galatea_serving::Core`] on the model repositories and
//! opens the doors of a [`server::Server`]: [`http`], [`grpc`] and the metrics port. Everything asynchronous of
//! Galatea lives in this crate; the core answers on its own threads, and [`pending`] makes a future of an answer.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    reason = "numbers for people and for metrics are doubles on the wire"
)]

pub mod app;
mod background_tuning;
mod blocking;
pub mod browser;
pub mod chunks;
mod classification;
pub mod cli;
pub mod devices;
mod disabled;
pub mod flags;
pub mod forward;
mod gpus;
pub mod grpc;
mod host;
pub mod http;
pub mod in_flight;
pub mod json;
pub mod listen;
pub mod logging;
mod memory_limit;
pub mod metrics;
pub mod models;
mod openai;
pub mod overrides;
pub mod pending;
mod placement_file;
mod power;
pub mod profile;
pub mod restricted;
pub mod server;
mod shm;
pub mod startup;
pub mod status;
mod table;
pub mod tensor_wire;
pub mod tls;
pub mod trace;
mod tuning;
mod usage;
