//! Triton's core without a wire: repository, configuration, schedulers, instances, statistics.
//!
//! [`Core`] is the whole of it for a front end: start it on model repositories with a set of backends, ask it for
//! metadata, configuration, statistics and the index, and hand it requests. A request goes through these stages:
//!
//! 1. [`Core::resolve`] finds the model version once, as a [`ModelHandle`]. [`ModelHandle::infer`] checks the request
//!    against its configuration ([`validate`]).
//! 2. The [`driver`] puts it into the version's scheduler ([`schedule`]), a state machine without thread, lock or
//!    clock, and hands the batches that the scheduler forms to instances.
//! 3. The instance's thread gathers the batch's inputs, runs the model and gives every request its share
//!    ([`batch`]), exactly once, also when the execution panics.
//! 4. The version's [`statistics`] count it.
//!
//! A request to an [`ensemble`] becomes such requests to the models that it is composed of, one after the other or
//! side by side, as its data flow says.

#![forbid(unsafe_code)]

pub mod ab_test;
pub mod backend;
pub mod batch;
pub mod cache;
pub mod cancel;
mod checkpoint_files;
pub mod config;
pub mod core;
pub mod custom_metrics;
pub mod driver;
pub mod ensemble;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod generate;
pub mod graph_model;
pub mod latency;
pub mod latency_target;
pub mod low_bits;
pub mod made_values;
mod md5;
mod model_answer;
pub mod model_cache;
mod payload;
mod prepared;
pub mod rate_limiter;
pub mod repository;
pub mod request;
pub mod samples;
pub mod schedule;
pub mod sequence;
mod sequence_tensors;
pub mod statistics;
pub mod temporary_folder;
pub mod trace;
mod traced_request;
mod traced_tensor;
pub mod validate;
pub mod waiting_models;

pub use crate::cancel::CancelToken;
pub use crate::config::ModelConfig;
pub use crate::core::{
    ControlMode, Core, CoreActivity, CoreOptions, ListedCheckpoint, ModelHandle, ServedCheckpoint,
    ShutdownReport, TunableVersion,
};
pub use crate::error::{ErrorCode, ServingError, text_beginning};
pub use crate::prepared::PreparedWork;
pub use crate::request::{
    CorrelationId, DistinctNames, InferenceRequest, InferenceResponse, InputData, InputTensor,
    OutputTensor, ParameterValue, ResponseSink, SinkAnswer, TokenMeter,
};
