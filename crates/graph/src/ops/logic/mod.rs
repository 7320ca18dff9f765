//! Truth values: comparisons, connectives and selection.

mod compare;
mod is_inf;
mod is_nan;
mod logical;
mod not;
mod where_;

pub use compare::{Compare, CompareKind};
pub use is_inf::IsInf;
pub use is_nan::IsNaN;
pub use logical::{Logical, LogicalKind};
pub use not::Not;
pub use where_::Where;

use crate::operator::{Arity, OpDef};
use crate::ops::legacy::AlongAxis;

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("And", 1, TWO, ONE, |c| AlongAxis::parse(c, Logical::boxed(LogicalKind::And)))
        .elementwise(),
    OpDef::onnx("And", 7, TWO, ONE, |_| Logical::boxed(LogicalKind::And)).elementwise(),
    OpDef::onnx("Or", 1, TWO, ONE, |c| AlongAxis::parse(c, Logical::boxed(LogicalKind::Or)))
        .elementwise(),
    OpDef::onnx("Or", 7, TWO, ONE, |_| Logical::boxed(LogicalKind::Or)).elementwise(),
    OpDef::onnx("Xor", 1, TWO, ONE, |c| AlongAxis::parse(c, Logical::boxed(LogicalKind::Xor)))
        .elementwise(),
    OpDef::onnx("Xor", 7, TWO, ONE, |_| Logical::boxed(LogicalKind::Xor)).elementwise(),
    OpDef::onnx("Not", 1, ONE, ONE, |_| Ok(Box::new(Not))).elementwise_of_first(),
    OpDef::onnx("Equal", 1, TWO, ONE, |c| AlongAxis::parse(c, Compare::boxed(CompareKind::Equal)))
        .elementwise(),
    OpDef::onnx("Equal", 7, TWO, ONE, |_| Compare::boxed(CompareKind::Equal)).elementwise(),
    OpDef::onnx("Greater", 1, TWO, ONE, |c| {
        AlongAxis::parse(c, Compare::boxed(CompareKind::Greater))
    })
    .elementwise(),
    OpDef::onnx("Greater", 7, TWO, ONE, |_| Compare::boxed(CompareKind::Greater)).elementwise(),
    OpDef::onnx("GreaterOrEqual", 12, TWO, ONE, |_| Compare::boxed(CompareKind::GreaterOrEqual))
        .elementwise(),
    OpDef::onnx("Less", 1, TWO, ONE, |c| AlongAxis::parse(c, Compare::boxed(CompareKind::Less)))
        .elementwise(),
    OpDef::onnx("Less", 7, TWO, ONE, |_| Compare::boxed(CompareKind::Less)).elementwise(),
    OpDef::onnx("LessOrEqual", 12, TWO, ONE, |_| Compare::boxed(CompareKind::LessOrEqual))
        .elementwise(),
    OpDef::onnx("Where", 9, Arity::exactly(3), ONE, |_| Ok(Box::new(Where)))
        .elementwise()
        .moves_several(),
    OpDef::onnx("IsNaN", 9, ONE, ONE, |_| Ok(Box::new(IsNaN))).elementwise_of_first(),
    OpDef::onnx("IsInf", 10, ONE, ONE, IsInf::parse).elementwise_of_first(),
];
