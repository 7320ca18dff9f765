//! Values out of nothing, or out of a few numbers.

mod constant;
mod range;

pub use constant::{Constant, ConstantOfShape, EyeLike};
pub use range::Range;

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Constant", 1, Arity::exactly(0), ONE, Constant::parse),
    OpDef::onnx("ConstantOfShape", 9, ONE, ONE, ConstantOfShape::parse),
    OpDef::onnx("EyeLike", 9, ONE, ONE, EyeLike::parse),
    OpDef::onnx("Range", 11, Arity::exactly(3), ONE, Range::parse).transcendental(),
];
