//! Programs of the Model Intermediate Language as values: what is in the file, decoded and checked
//! for form, before anything is known of what operators mean.

mod builder;
mod decode;
mod element;
mod encode;
mod same;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use builder::{Arg, Builder, Var};
pub(super) use decode::program;
pub use element::Element;
pub(super) use encode::{program as encoded, raw};
pub use same::{fingerprint, same_bytes};
pub use types::{TensorType, Type, Value};

/// A program: functions by name.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The functions.
    pub functions: BTreeMap<String, Function>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// What it is given, states included.
    pub inputs: Vec<(String, Type)>,
    /// The set of operators that it is written in, such as `CoreML7`.
    pub opset: String,
    /// Its operations.
    pub block: Block,
}

/// Operations in order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Values that the operation around the block gives.
    pub inputs: Vec<(String, Type)>,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Names of the values that the block gives.
    pub outputs: Vec<String>,
}

/// One application of an operator.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// The operator, such as `conv`.
    pub operator: String,
    /// What its inputs are bound to: several arguments where an operator takes any number.
    pub inputs: BTreeMap<String, Vec<Argument>>,
    /// Names and types of what it gives.
    pub outputs: Vec<(String, Type)>,
    /// Blocks that it runs.
    pub blocks: Vec<Block>,
    /// Its attributes; `name` is the operation's own.
    pub attributes: BTreeMap<String, Arc<Value>>,
}

/// What an input is bound to.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A value of the program.
    Name(String),
    /// A constant.
    Value(Arc<Value>),
}

impl Operation {
    /// What the operation is in messages: `'y' (conv)`.
    #[must_use]
    pub fn place(&self) -> String {
        let name = self.outputs.first().map_or("", |(name, _)| name.as_str());
        format!("operation '{name}' ({})", self.operator)
    }
}
