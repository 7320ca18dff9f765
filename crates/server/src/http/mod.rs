//! The HTTP front end: KServe v2 with Triton's extensions.
//!
//! A request goes through [`wire`] (bytes to head and body), [`tables`] (which endpoint), the endpoint's handler
//! (decode, one call on the core, encode) and back through the wire. The front ends for [`sagemaker`] and [`vertex_ai`] have
//! other paths to the same handlers.

mod ab_test;
mod compression;
mod cors;
mod decode;
mod dialect;
mod encode;
mod encoders;
pub mod endpoints;
mod framing;
mod front_ends;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod gate;
mod generate;
mod handlers;
mod head;
mod infer;
mod message;
mod metrics_door;
pub mod openai;
pub mod openai_front_end;
mod openai_models;
mod pace;
mod power;
mod profile;
mod repository;
pub mod sagemaker;
pub mod sagemaker_front_end;
mod serve;
mod settings;
mod shm;
mod tables;
mod target;
pub mod vertex_ai;
mod wire;

/// Header by which answers with metrics tell the run of the program.
pub const INSTANCE_HEADER: &str = "X-Galatea-Instance";

pub use message::{BodyPieces, ContentType, HttpHead, HttpMethod, HttpResponse};
pub use metrics_door::serve_metrics;
pub use serve::serve;
