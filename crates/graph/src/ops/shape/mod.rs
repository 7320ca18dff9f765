//! Shapes and the movement of whole ranges.

mod center_crop_pad;
mod concat;
mod depth_to_space;
mod dropout;
mod expand;
mod flatten;
mod identity;
mod pad;
mod reshape;
mod reverse_sequence;
#[allow(clippy::module_inception, reason = "the file is named by its operator")]
mod shape;
mod slice;
mod split;
mod squeeze;
mod transpose;
mod trilu;

pub use center_crop_pad::CenterCropPad;
pub use concat::Concat;
pub(crate) use concat::join_tensors;
pub use depth_to_space::{DepthToSpace, SpaceToDepth};
pub use dropout::{Dropout, DropoutMode};
pub use expand::{Expand, Tile, TileAlong};
pub use flatten::Flatten;
pub use identity::Identity;
pub use pad::{Pad, PadMode};
pub use reshape::Reshape;
pub use reverse_sequence::ReverseSequence;
pub use shape::{Shape, Size};
pub use slice::{Slice, SliceAttributes, SliceRange};
pub use split::Split;
pub use squeeze::{Squeeze, Unsqueeze};
pub use transpose::Transpose;
pub use trilu::Trilu;

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Reshape", 1, ONE, ONE, Reshape::parse_attribute).rows_apart().keeps(),
    OpDef::onnx("Reshape", 5, TWO, ONE, Reshape::parse).rows_apart().keeps(),
    OpDef::onnx("Transpose", 1, ONE, ONE, Transpose::parse).rows_apart().moves(),
    OpDef::onnx("Squeeze", 1, ONE, ONE, Squeeze::parse_attribute).rows_apart().on_lengths().keeps(),
    OpDef::onnx("Squeeze", 13, Arity::between(1, 2), ONE, Squeeze::parse)
        .rows_apart()
        .on_lengths()
        .keeps(),
    OpDef::onnx("Unsqueeze", 1, ONE, ONE, Unsqueeze::parse_attribute)
        .rows_apart()
        .on_lengths()
        .keeps(),
    OpDef::onnx("Unsqueeze", 13, TWO, ONE, Unsqueeze::parse).rows_apart().on_lengths().keeps(),
    OpDef::onnx("Flatten", 1, ONE, ONE, Flatten::parse).rows_apart().keeps(),
    OpDef::onnx("Concat", 1, Arity::at_least(1), ONE, Concat::parse_1)
        .rows_apart()
        .on_lengths()
        .moves_several(),
    OpDef::onnx("Concat", 4, Arity::at_least(1), ONE, Concat::parse)
        .rows_apart()
        .on_lengths()
        .moves_several(),
    OpDef::onnx("Split", 1, Arity::between(1, 2), Arity::at_least(1), Split::parse_attribute)
        .rows_apart()
        .moves(),
    OpDef::onnx("Split", 2, ONE, Arity::at_least(1), Split::parse_attribute).rows_apart().moves(),
    OpDef::onnx("Split", 13, Arity::between(1, 2), Arity::at_least(1), Split::parse)
        .rows_apart()
        .moves(),
    OpDef::onnx("Slice", 1, ONE, ONE, Slice::parse_attribute).on_lengths().moves_part(),
    OpDef::onnx("Slice", 10, Arity::between(3, 5), ONE, Slice::parse).on_lengths().moves_part(),
    OpDef::onnx("Expand", 8, TWO, ONE, Expand::parse).rows_apart().moves(),
    OpDef::onnx("Tile", 1, Arity::exactly(3), ONE, |_| Ok(Box::new(TileAlong)))
        .rows_apart()
        .moves(),
    OpDef::onnx("Tile", 6, TWO, ONE, Tile::parse).rows_apart().moves(),
    OpDef::onnx("Pad", 1, ONE, ONE, Pad::parse_1).moves_several(),
    OpDef::onnx("Pad", 2, ONE, ONE, Pad::parse_attribute).moves_several(),
    OpDef::onnx("Pad", 11, Arity::between(2, 3), ONE, Pad::parse).moves_several(),
    OpDef::onnx("Pad", 18, Arity::between(2, 4), ONE, Pad::parse).moves_several(),
    OpDef::onnx("Shape", 1, ONE, ONE, Shape::parse),
    OpDef::onnx("Size", 1, ONE, ONE, Size::parse),
    OpDef::onnx("Identity", 1, ONE, ONE, Identity::parse)
        .elementwise_of_first()
        .on_lengths()
        .keeps(),
    OpDef::onnx("Dropout", 1, ONE, Arity::between(1, 2), Dropout::parse_1).converts(),
    OpDef::onnx("Dropout", 7, ONE, Arity::between(1, 2), Dropout::parse).converts(),
    OpDef::onnx("Dropout", 12, Arity::between(1, 3), Arity::between(1, 2), Dropout::parse_12)
        .converts(),
    OpDef::onnx("DepthToSpace", 1, ONE, ONE, DepthToSpace::parse).rows_apart().moves(),
    OpDef::onnx("SpaceToDepth", 1, ONE, ONE, SpaceToDepth::parse).rows_apart().moves(),
    OpDef::onnx("ReverseSequence", 10, TWO, ONE, ReverseSequence::parse).moves(),
    OpDef::onnx("Trilu", 14, Arity::between(1, 2), ONE, Trilu::parse).moves_several(),
    OpDef::onnx("CenterCropPad", 18, TWO, ONE, CenterCropPad::parse),
];
