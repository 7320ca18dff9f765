//! Operators that run subgraphs.

mod if_;
mod iterate;
mod loop_;
mod scan;
mod sequence_map;

pub use if_::If;
pub use loop_::Loop;
pub use scan::Scan;
pub use sequence_map::SequenceMap;

use crate::operator::{Arity, OpDef};

const ANY: Arity = Arity::at_least(0);
const SOME: Arity = Arity::at_least(1);

/// The family's operators.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("If", 1, Arity::exactly(1), ANY, If::parse),
    OpDef::onnx("Loop", 1, ANY, ANY, Loop::parse),
    OpDef::onnx("Scan", 8, Arity::at_least(2), SOME, Scan::parse_batched),
    OpDef::onnx("Scan", 9, SOME, SOME, Scan::parse),
    OpDef::onnx("SequenceMap", 17, SOME, SOME, SequenceMap::parse),
];
