//! Strings.

mod re2;
mod regex_full_match;
mod string_concat;
mod string_normalizer;
mod tf_idf_vectorizer;

pub(crate) use re2::rust_syntax;
pub use regex_full_match::RegexFullMatch;
pub use string_concat::{StringConcat, StringSplit};
pub use string_normalizer::{CaseChange, StringNormalizer};
pub use tf_idf_vectorizer::{CountColumn, OccurrenceWeighting, TextItem, TfIdfVectorizer};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("StringNormalizer", 10, ONE, ONE, StringNormalizer::parse),
    OpDef::onnx("StringConcat", 20, Arity::exactly(2), ONE, StringConcat::parse),
    OpDef::onnx("StringSplit", 20, ONE, Arity::exactly(2), StringSplit::parse),
    OpDef::onnx("RegexFullMatch", 20, ONE, ONE, RegexFullMatch::parse),
    OpDef::onnx("TfIdfVectorizer", 9, ONE, ONE, TfIdfVectorizer::parse),
];
