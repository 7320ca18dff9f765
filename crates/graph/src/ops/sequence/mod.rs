//! Sequences of tensors and optional values.

mod concat_from_sequence;
mod construct;
mod edit;
mod optional;
mod split_to_sequence;

pub use concat_from_sequence::ConcatFromSequence;
pub use construct::{SequenceConstruct, SequenceEmpty};
pub use edit::{SequenceAt, SequenceErase, SequenceInsert, SequenceLength};
pub use optional::{Optional, OptionalGetElement, OptionalHasElement};
pub use split_to_sequence::SplitToSequence;

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);
const UP_TO_ONE: Arity = Arity::between(0, 1);

/// The family's operators.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("SequenceConstruct", 11, Arity::at_least(1), ONE, SequenceConstruct::parse),
    OpDef::onnx("SequenceEmpty", 11, Arity::exactly(0), ONE, SequenceEmpty::parse),
    OpDef::onnx("SequenceAt", 11, TWO, ONE, SequenceAt::parse),
    OpDef::onnx("SequenceErase", 11, Arity::between(1, 2), ONE, SequenceErase::parse),
    OpDef::onnx("SequenceInsert", 11, Arity::between(2, 3), ONE, SequenceInsert::parse),
    OpDef::onnx("SequenceLength", 11, ONE, ONE, SequenceLength::parse),
    OpDef::onnx("SplitToSequence", 11, Arity::between(1, 2), ONE, SplitToSequence::parse),
    OpDef::onnx("ConcatFromSequence", 11, ONE, ONE, ConcatFromSequence::parse),
    OpDef::onnx("Optional", 15, UP_TO_ONE, ONE, Optional::parse),
    OpDef::onnx("OptionalGetElement", 15, ONE, ONE, OptionalGetElement::parse),
    OpDef::onnx("OptionalHasElement", 15, UP_TO_ONE, ONE, OptionalHasElement::parse),
];

/// The input at a position.
pub(super) fn taken(
    inputs: &mut [Option<crate::Datum>],
    at: usize,
) -> Result<crate::Datum, crate::OpError> {
    let found = inputs.get_mut(at).and_then(Option::take);
    found.ok_or_else(|| crate::OpError::new(format!("input {at} is missing")))
}

/// The fact of a sequence at an input.
fn sequence_fact<'a>(
    inputs: crate::OperatorInputs<'a, crate::Fact>,
    at: usize,
) -> Result<&'a crate::Fact, crate::OpError> {
    let fact = inputs.required(at)?;
    if fact.kind == crate::FactKind::Sequence {
        return Ok(fact);
    }
    Err(crate::OpError::new(format!("input {at} is {fact}, expected a sequence")))
}
