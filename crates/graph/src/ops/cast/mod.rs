//! Conversions between element types.

mod bit_cast;
mod cast_like;
mod convert;
mod text;
mod to_type;

pub use bit_cast::BitCast;
pub use cast_like::CastLike;
pub use to_type::Cast;

use galatea_tensor::{DataType, NarrowingRule, Tensor};

use crate::error::OpError;
use crate::operator::{Arity, OpDef};

/// The elements in another type, as `Cast` makes them.
///
/// # Errors
/// Fails when there is no such conversion, or an element is no number.
pub fn converted(x: &Tensor, to: DataType) -> Result<Tensor, OpError> {
    convert::convert(x, to, NarrowingRule::default())
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Cast", 1, Arity::exactly(1), Arity::exactly(1), Cast::parse_name)
        .elementwise_of_first()
        .on_lengths()
        .converts(),
    OpDef::onnx("Cast", 6, Arity::exactly(1), Arity::exactly(1), Cast::parse)
        .elementwise_of_first()
        .on_lengths()
        .converts(),
    OpDef::onnx("CastLike", 15, Arity::exactly(2), Arity::exactly(1), CastLike::parse)
        .elementwise_of_first()
        .converts(),
    OpDef::onnx("BitCast", 26, Arity::exactly(1), Arity::exactly(1), BitCast::parse),
];
