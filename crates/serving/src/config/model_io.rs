//! Inputs and outputs that models have by themselves, from which configurations are completed.

use galatea_tensor::DataType;

/// An input or output that a model has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTensor {
    /// Name.
    pub name: String,
    /// Element type.
    pub datatype: DataType,
    /// Dimensions, the batch dimension included; -1 where any size fits.
    pub dims: Vec<i64>,
    /// Whether `dims` are known; if not, any number of dimensions fits.
    pub ranked: bool,
    /// Whether the model runs without it; inputs only.
    pub optional: bool,
}

/// Inputs and outputs that a model has by itself, in its own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelIo {
    /// Inputs.
    pub inputs: Vec<ModelTensor>,
    /// Outputs.
    pub outputs: Vec<ModelTensor>,
    /// Inputs that are what an output was in the run before, of models that keep states.
    pub states: Vec<StateBinding>,
    /// Whether a run takes only some lengths of the first dimension, so that requests are not put together where
    /// the configuration does not say so.
    pub picky: bool,
}

/// A state of a model: an input that the output of the run before becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateBinding {
    /// Name of the input.
    pub input: String,
    /// Name of the output.
    pub output: String,
    /// Element type.
    pub datatype: DataType,
    /// Dimensions.
    pub dims: Vec<i64>,
}
