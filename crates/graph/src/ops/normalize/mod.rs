//! Normalisation: elements relative to the mean and spread of a group of them.

mod batch_normalization;
mod group_normalization;
mod instance_normalization;
mod layer_normalization;
mod lp_normalization;
mod lrn;
mod mean_variance_normalization;
mod moments;
mod rms_normalization;

pub use batch_normalization::BatchNormalization;
pub use group_normalization::GroupNormalization;
pub use instance_normalization::InstanceNormalization;
pub use layer_normalization::LayerNormalization;
pub use lp_normalization::LpNormalization;
pub use lrn::Lrn;
pub use mean_variance_normalization::MeanVarianceNormalization;
pub use rms_normalization::RmsNormalization;

use crate::error::OpError;
use crate::operator::{Arity, OpDef, ParseContext};

const ONE: Arity = Arity::exactly(1);

/// ONNX's number for `FP32`.
const STASH_FP32: i64 = 1;

/// Reads `stash_type`, the type that statistics are kept in. They are kept wider here, so it only
/// decides the type of the statistics that are outputs.
fn stash_type(context: &mut ParseContext<'_>) -> Result<(), OpError> {
    match context.attributes.int_or("stash_type", STASH_FP32)? {
        STASH_FP32 => Ok(()),
        other => Err(OpError::new(format!("stash_type is {other}, expected 1 (FP32)"))),
    }
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    // Version 1 is ONNX Runtime's, of before ONNX had it: its optimisers write it into models of any version.
    OpDef::onnx(
        "LayerNormalization",
        1,
        Arity::between(2, 3),
        Arity::between(1, 3),
        LayerNormalization::parse,
    )
    .accumulating(),
    OpDef::onnx(
        "LayerNormalization",
        17,
        Arity::between(2, 3),
        Arity::between(1, 3),
        LayerNormalization::parse,
    )
    .accumulating(),
    OpDef::onnx("RMSNormalization", 23, Arity::exactly(2), ONE, RmsNormalization::parse)
        .accumulating(),
    OpDef::onnx(
        "BatchNormalization",
        1,
        Arity::exactly(5),
        Arity::between(1, 5),
        BatchNormalization::parse,
    )
    .accumulating(),
    OpDef::onnx("InstanceNormalization", 1, Arity::exactly(3), ONE, InstanceNormalization::parse)
        .rows_apart_from_weights()
        .accumulating(),
    OpDef::onnx("GroupNormalization", 18, Arity::exactly(3), ONE, |context| {
        GroupNormalization::parse_per_group(context)
    })
    .accumulating(),
    OpDef::onnx("GroupNormalization", 21, Arity::exactly(3), ONE, |context| {
        GroupNormalization::parse_per_channel(context)
    })
    .accumulating(),
    OpDef::onnx("LpNormalization", 1, ONE, ONE, LpNormalization::parse).accumulating(),
    OpDef::onnx("LRN", 1, ONE, ONE, Lrn::parse).rows_apart_from_weights().accumulating(),
    OpDef::onnx("MeanVarianceNormalization", 1, ONE, ONE, MeanVarianceNormalization::parse_images)
        .accumulating(),
    OpDef::onnx("MeanVarianceNormalization", 9, ONE, ONE, MeanVarianceNormalization::parse)
        .accumulating(),
];
