//! Operators that early versions of ONNX had as experimental ones and that later ones lack. Models of that time still
//! have them, and ONNX Runtime runs them.

mod crop;
mod image_scaler;
mod scaled_function;

pub use crop::ImageCrop;
pub use image_scaler::ScaledImages;
pub use scaled_function::{ScaledFunction, ScaledKind};

use crate::operator::{Arity, OpDef};
use crate::ops::AttributeParser;
use crate::ops::shape::Slice;

const ONE: Arity = Arity::exactly(1);

const fn row(name: &'static str, inputs: Arity, parse: AttributeParser) -> OpDef {
    OpDef::onnx(name, 1, inputs, ONE, parse)
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    row("Affine", ONE, ScaledFunction::affine).elementwise_of_first().accumulating(),
    row("Scale", ONE, ScaledFunction::scale).elementwise_of_first().accumulating(),
    row("ScaledTanh", ONE, ScaledFunction::tanh).elementwise_of_first().transcendental(),
    row("ParametricSoftplus", ONE, ScaledFunction::softplus)
        .elementwise_of_first()
        .transcendental(),
    row("ImageScaler", ONE, ScaledImages::parse).accumulating(),
    row("Crop", ONE, ImageCrop::parse).moves_part(),
    row("DynamicSlice", Arity::between(3, 4), Slice::parse).on_lengths().moves_part(),
];
