//! Model configurations: reading, checking, completing and showing them.
//!
//! The messages are generated from `proto/model_config.proto` (package `inference`) by `crates/serving/codegen`, and
//! committed. A gRPC service that imports that file maps the package to these types:
//! `extern_path(".inference.ModelConfig", "::galatea_serving::config::inference::ModelConfig")`.

#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated from proto/model_config.proto")]
#[rustfmt::skip]
pub mod inference;

pub use inference::ModelConfig;
