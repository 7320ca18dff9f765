//! Functions of single elements: activations, elementary functions, binary operators with the
//! broadcasts that models use.

mod binary;
mod chain;
mod unary;

pub use binary::{BinaryFunction, OperandBroadcast, binary, binary_inplace};
pub use chain::{ChainInput, ChainOperand, ChainSpread, ChainStep, FunctionChain, chain};
pub use unary::{ScalarFunction, activate, activate_inplace, unary, unary_inplace};

/// Elements per task: enough work to outweigh handing it to a thread.
const GRAIN: usize = 16_384;

/// Elements per task of functions that cost tens of operations each.
const COSTLY_GRAIN: usize = 4_096;

#[cfg(test)]
mod tests;
