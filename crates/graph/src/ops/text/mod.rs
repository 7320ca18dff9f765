//! Strings.

mod string_concat;
mod string_normalizer;

pub use string_concat::{StringConcat, StringSplit};
pub use string_normalizer::{CaseChange, StringNormalizer};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("StringNormalizer", 10, ONE, ONE, StringNormalizer::parse),
    OpDef::onnx("StringConcat", 20, Arity::exactly(2), ONE, StringConcat::parse),
    OpDef::onnx("StringSplit", 20, ONE, Arity::exactly(2), StringSplit::parse),
];
