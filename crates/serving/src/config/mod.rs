//! Model configurations: reading, checking, completing and showing them.
//!
//! The messages are generated from `proto/model_config.proto` (package `inference`) by `crates/serving/codegen`, and
//! committed. A gRPC service that imports that file maps the package's messages to these types, for example with
//! `extern_path(".inference.ModelConfig", "::galatea_serving::config::inference::ModelConfig")`.
//!
//! A configuration goes through these steps: [`from_text`] or [`from_json`], [`complete`] with what the model says of
//! itself, [`normalise`], and [`validate`]. [`to_json`] shows the result.

mod complete;
mod idle_fields;
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated from proto/model_config.proto")]
#[rustfmt::skip]
pub mod inference;
mod json;
mod lenient_json;
pub mod metal;
mod model_io;
mod normalise;
mod shape_text;
mod validate;
mod wiring;

use std::sync::LazyLock;

use galatea_formats::prototext;
use galatea_tensor::DataType;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

pub use complete::{DEFAULT_MAX_BATCH_SIZE, complete};
pub use idle_fields::{IdleField, ServerAbilities, idle_fields, idle_here};
pub use inference::ModelConfig;
pub use json::{from_json, to_json};
pub(crate) use lenient_json::parse as parse_json;
pub use metal::MetalConfig;
pub use model_io::{ModelIo, ModelTensor, StateBinding};
pub use normalise::{BackendNames, InstanceDefaults, fill_backend, normalise, normalise_instances};
pub(crate) use shape_text::shape_text;
pub use validate::{validate, validate_instances, validate_tensors};

use crate::error::ServingError;

/// The descriptors of `model_config.proto`.
static DESCRIPTORS: LazyLock<Option<MessageDescriptor>> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(include_bytes!("model_config.bin").as_slice()).ok()?;
    pool.get_message_by_name("inference.ModelConfig")
});

fn descriptor() -> Result<MessageDescriptor, ServingError> {
    // The file is part of the program; a test reads it.
    DESCRIPTORS.clone().ok_or_else(|| {
        ServingError::internal("the descriptors of the model configuration do not decode")
    })
}

fn transcode(message: &DynamicMessage) -> Result<ModelConfig, ServingError> {
    message.transcode_to().map_err(|error| {
        ServingError::internal(format!("the model configuration is inconsistent: {error}"))
    })
}

/// Reads a configuration in text format, as `config.pbtxt` holds it.
///
/// # Errors
/// INVALID_ARG with all problems, one a line, each with line, column and field.
pub fn from_text(text: &str) -> Result<ModelConfig, ServingError> {
    let message = prototext::parse(text, &descriptor()?).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        ServingError::invalid_arg(lines.join("\n"))
    })?;
    transcode(&message)
}

/// The tensor type of a configuration's data type; `None` for TYPE_INVALID and unknown numbers.
#[must_use]
pub fn datatype(data_type: i32) -> Option<DataType> {
    let known = inference::DataType::try_from(data_type).ok()?;
    DataType::from_config_name(known.as_str_name())
}

/// The configuration's number of a tensor type.
#[must_use]
pub fn data_type_number(datatype: DataType) -> i32 {
    inference::DataType::from_str_name(datatype.config_name()).unwrap_or_default().into()
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
