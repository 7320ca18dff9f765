//! Images and regions of them.

mod affine_grid;
mod grid_sample;
mod image_decoder;
mod non_max_suppression;
mod pictures;
mod roi_align;

pub use affine_grid::AffineGrid;
pub use grid_sample::{AxisTaps, GridSample, SampleMode, SamplePadding};
pub use image_decoder::{ImageDecoder, PixelFormat};
pub use non_max_suppression::NonMaxSuppression;
pub use roi_align::{MaxRoiPool, RegionCells, RoiAlign};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("GridSample", 16, TWO, ONE, GridSample::parse).accumulating(),
    OpDef::onnx("AffineGrid", 20, TWO, ONE, AffineGrid::parse).accumulating(),
    OpDef::onnx("ImageDecoder", 20, ONE, ONE, ImageDecoder::parse),
    OpDef::onnx("RoiAlign", 10, Arity::exactly(3), ONE, RoiAlign::parse).accumulating(),
    OpDef::onnx("MaxRoiPool", 1, TWO, ONE, MaxRoiPool::parse),
    OpDef::onnx("NonMaxSuppression", 10, Arity::between(2, 5), ONE, NonMaxSuppression::parse),
];
