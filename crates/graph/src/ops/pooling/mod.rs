//! Pools.

mod average_pool;
mod global;
mod max_pool;
mod max_pool_with_mask;
mod max_unpool;
mod window;

pub use average_pool::{AveragePool, LpPool};
pub use global::{GlobalAveragePool, GlobalLpPool, GlobalMaxPool};
pub use max_pool::MaxPool;
pub use max_pool_with_mask::MaxPoolWithMask;
pub use max_unpool::MaxUnpool;
pub use window::PoolWindow;

use crate::GALATEA_DOMAIN;
use crate::error::OpError;
use crate::operator::{Arity, OpDef, ParseContext};
use crate::ops::AttributeParser;
use crate::traits::OpTraits;

const ONE: Arity = Arity::exactly(1);

/// The order of a norm, which was a float in version 1.
fn order(context: &mut ParseContext<'_>) -> Result<f64, OpError> {
    if context.opset < 2 {
        return Ok(context.attributes.float_or("p", 2.0)?.into());
    }
    Ok(context.attributes.int_or("p", 2)? as f64)
}

const fn channels_last(name: &'static str, parse: AttributeParser) -> OpDef {
    OpDef {
        domain: GALATEA_DOMAIN,
        name,
        since: 1,
        inputs: ONE,
        outputs: ONE,
        parse,
        traits: OpTraits::NONE,
    }
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("MaxPool", 1, ONE, Arity::between(1, 2), MaxPool::parse).rows_apart(),
    OpDef::onnx("MaxUnpool", 9, Arity::between(2, 3), ONE, MaxUnpool::parse),
    OpDef::onnx("AveragePool", 1, ONE, ONE, AveragePool::parse).rows_apart().accumulating(),
    OpDef::onnx("LpPool", 1, ONE, ONE, LpPool::parse).rows_apart().accumulating(),
    OpDef::onnx("GlobalMaxPool", 1, ONE, ONE, GlobalMaxPool::parse).rows_apart(),
    OpDef::onnx("GlobalAveragePool", 1, ONE, ONE, GlobalAveragePool::parse)
        .rows_apart()
        .accumulating(),
    OpDef::onnx("GlobalLpPool", 1, ONE, ONE, GlobalLpPool::parse).rows_apart().accumulating(),
    channels_last("MaxPoolNhwc", MaxPool::parse_channels_last),
    channels_last("AveragePoolNhwc", AveragePool::parse_channels_last),
    channels_last("GlobalAveragePoolNhwc", GlobalAveragePool::parse_channels_last),
];
