//! Images of another size.

#[allow(clippy::module_inception, reason = "the file is named by its operator")]
mod resize;
mod sampling;

pub use resize::{AspectRatio, Resize};
pub use sampling::{CoordinateMode, NearestMode, ResizeInterpolation, WeightedSample};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Upsample", 1, ONE, ONE, Resize::parse_upsample_1).accumulating(),
    OpDef::onnx("Upsample", 7, ONE, ONE, Resize::parse_upsample_attribute).accumulating(),
    OpDef::onnx("Upsample", 9, Arity::exactly(2), ONE, Resize::parse_upsample).accumulating(),
    OpDef::onnx("Resize", 10, Arity::exactly(2), ONE, Resize::parse_10).accumulating(),
    OpDef::onnx("Resize", 11, Arity::between(1, 4), ONE, Resize::parse).accumulating(),
];
