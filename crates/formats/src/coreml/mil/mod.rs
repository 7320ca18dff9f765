//! Programs of the Model Intermediate Language as values: what is in the file, decoded and checked
//! for form, before anything is known of what operators mean.

mod builder;
mod decode;
mod element;
mod encode;
mod same;
mod types;

use std::sync::Arc;

use galatea_tensor::OrderedMap;

pub use builder::{MilArg, MilBuilder, MilVar};
pub(super) use decode::program;
pub use element::MilElement;
pub(super) use encode::{program as encoded, raw};
pub use same::{fingerprint, same_bytes};
pub use types::{MilTensorType, MilType, MilValue};

/// A program: functions by name.
#[derive(Clone, Debug, Default)]
pub struct MilProgram {
    /// The functions.
    pub functions: OrderedMap<String, MilFunction>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct MilFunction {
    /// Its inputs, states included.
    pub inputs: Vec<(String, MilType)>,
    /// The set of operators that it is written in, such as `CoreML7`.
    pub opset: String,
    /// Its operations.
    pub block: MilBlock,
}

/// Operations in order.
#[derive(Clone, Debug, Default)]
pub struct MilBlock {
    /// Values that the operation around the block gives.
    pub inputs: Vec<(String, MilType)>,
    /// The operations.
    pub operations: Vec<MilOperation>,
    /// Names of the values that the block gives.
    pub outputs: Vec<String>,
}

/// One application of an operator.
#[derive(Clone, Debug, Default)]
pub struct MilOperation {
    /// The operator, such as `conv`.
    pub operator: String,
    /// The arguments of its inputs: several where an operator takes any number.
    pub inputs: OrderedMap<String, Vec<MilArgument>>,
    /// Names and types of what it gives.
    pub outputs: Vec<(String, MilType)>,
    /// Blocks that it runs.
    pub blocks: Vec<MilBlock>,
    /// Its attributes; `name` is the operation's own.
    pub attributes: OrderedMap<String, Arc<MilValue>>,
}

/// Value to which an input is bound.
#[derive(Clone, Debug)]
pub enum MilArgument {
    /// A value of the program.
    Name(String),
    /// A constant.
    Value(Arc<MilValue>),
}

impl MilOperation {
    /// Returns the operation's name in messages: `'y' (conv)`.
    #[must_use]
    pub fn place(&self) -> String {
        let name = self.outputs.first().map_or("", |(name, _)| name.as_str());
        format!("operation '{name}' ({})", self.operator)
    }
}
