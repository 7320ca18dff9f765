//! Graphs as Core ML packages: for the Neural Engine on a Mac, and for Core ML everywhere.
//!
//! [`convert`] writes a graph as an ML program. [`rows`] has a row for each operator of a graph, which
//! adds operations to the program in the making ([`emit`]). Each operation is read as the interpreter
//! reads it while it is added, so that a program which is written is one that can be run.

#![forbid(unsafe_code)]

pub mod engine;

mod accuracy;
mod activations;
mod ane_layout;
mod ane_values;
mod calibrate;
mod claims;
mod compatibility_check;
mod convert;
mod convert_error;
mod convert_options;
mod cost_estimate;
mod early_scales;
mod emit;
mod fp32_keep_list;
mod guard;
mod halves;
mod lengths;
mod lost_numbers;
mod neural_engine;
mod planned_elsewhere;
mod plans;
mod prepared;
mod probe_samples;
mod provider;
mod ranges;
mod reshaped;
mod rows;
mod rules;
mod select;
mod settings;
mod shaped;
mod share;
mod state_slot;
mod states;
mod unwritable;
mod weights;

pub use calibrate::calibrate;
pub use convert::{NewFunction, convert, convert_functions};
pub use convert_error::{ConvertError, UnconvertedNode};
pub use convert_options::{ConvertOptions, Int8Activations};
pub use cost_estimate::{CostForecast, forecast};
pub use fp32_keep_list::{Fp32Keep, islands, named_islands};
pub use lost_numbers::first_lost;
pub use neural_engine::NeuralEngine;
pub use prepared::{node_names, prepared_nodes};
pub use provider::CoreMlProvider;
pub use rows::operators;
pub use settings::{CoreMlSettings, FloatType, NAME};
pub use states::NewState;
pub use weights::WeightCompression;
