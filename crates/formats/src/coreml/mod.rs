//! Core ML models to [`Graph`]s and back: packages (`.mlpackage`) and single files (`.mlmodel`).
//!
//! [`load`] reads a model of any kind that is supported: programs of the Model Intermediate Language
//! (ML programs, specification 6 and newer), neural networks and pipelines. Each [`Function`] of a
//! model is a graph of ONNX's operators, so that any provider runs it; constants share the mapped
//! file of weights where they are stored as they are computed with. What is said about values is
//! compared with what the operators make of them: nothing is believed, nothing is skipped.
//!
//! Sources: the messages and operators of coremltools 9.0.

mod error;
mod feature;
pub mod mil;
pub mod proto;
mod weights;

pub use error::{CoreMlError, CoreMlErrorKind};
pub use feature::{Colors, Feature, FeatureType, Shapes};

use std::collections::BTreeMap;

use galatea_graph::Graph;

/// A model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Version of the format: 6 and above are programs.
    pub specification: i32,
    /// Its functions; a model that has one calls it `main`.
    pub functions: Vec<Function>,
    /// The position of the function that is run where none is named.
    pub default_function: usize,
    /// What the file says about itself.
    pub info: ModelInfo,
}

/// What a file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// What the model does.
    pub description: String,
    /// Its version.
    pub version: String,
    /// Who made it.
    pub author: String,
    /// Its licence.
    pub license: String,
    /// Free text by key.
    pub metadata: BTreeMap<String, String>,
}

/// A function of a model.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The computation. Its inputs are the function's, then its states; its outputs the function's,
    /// then its states as a run leaves them.
    pub graph: Graph,
    /// What a run is given.
    pub inputs: Vec<Feature>,
    /// What a run gives.
    pub outputs: Vec<Feature>,
    /// What a run finds and leaves: zeros before the first.
    pub states: Vec<Feature>,
    /// Of a classifier, the labels in the order of their probabilities.
    pub labels: Option<Labels>,
}

/// What a classifier tells apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The output that is the most probable label.
    pub predicted: String,
    /// The output with all probabilities.
    pub probabilities: String,
    /// The labels as texts.
    pub names: Vec<String>,
}
