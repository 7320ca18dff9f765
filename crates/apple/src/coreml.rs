//! Core ML: compiles packages, loads and runs models, and says where their operators would run.
//!
//! - [`compile`]: a package to the folder that this system loads.
//! - [`LoadedModel`]: a model in memory; [`LoadedModel::describe`], [`LoadedModel::predict`] and
//!   [`LoadedModel::submit`].
//! - [`MultiArray`]: what goes in and comes out, without a copy where its memory is fit for that.
//! - [`devices`] and [`plan`]: what there is, and which operator Core ML means to give to what.
//!
//! Core ML raises Objective-C exceptions where it is misused, and one that is raised on a thread of its own ends
//! the process. So names, data types, shapes and strides are checked here before it is asked. Every call is
//! guarded too: an exception that reaches it is an error with its name and reason. What is newer than macOS 13
//! is looked up when it is first needed: where it is missing, the error names the version that has it.
//!
//! Source: Apple, Core ML documentation and headers.

mod array;
mod check;
mod compile;
mod data_type;
mod device;
mod fault;
mod interface;
mod layout;
mod load_options;
mod model;
mod pages;
mod plan;
mod planned_operator;
mod request;
mod state;
#[cfg(any(target_os = "macos", apple_doubles))]
mod system;
#[cfg(not(any(target_os = "macos", apple_doubles)))]
#[path = "coreml/absent/mod.rs"]
mod system;

pub use array::MultiArray;
pub use compile::compile;
pub use data_type::ArrayDataType;
pub use device::CoreMlDevice;
pub use fault::{CoreMlFault, CoreMlFaultKind};
pub use interface::{
    ArrayFeature, DimensionRange, FeatureKind, InterfaceFeature, ModelInterface, ModelMetadata,
    PixelFormat, ShapeConstraint,
};
pub use load_options::{ComputeUnits, CoreMlLoadOptions};
pub use model::LoadedModel;
pub use plan::{devices, plan};
pub use planned_operator::{CoreMlPlannedOperator, EnclosingBlock};
pub use request::{
    CompletedPrediction, LabelKeyKind, Prediction, PredictionOutput, PredictionSubmission,
    SubmissionCallback,
};
pub use state::PredictionState;
