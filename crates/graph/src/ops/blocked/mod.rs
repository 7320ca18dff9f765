//! Operators of domain `com.microsoft.nchwc`: images whose channels lie in blocks.
//!
//! ONNX Runtime's optimiser writes them into the models that it saves. Blocks are a layout of its own kernels, so
//! images here keep the channels in one axis: `ReorderInput` only appends channels of zeros to the last block, and
//! `ReorderOutput` drops them. Only the weights of convolutions, which are in the file, have to be put in order.

mod blocked_conv;
mod reorder;

pub use blocked_conv::BlockedConv;
pub use reorder::{ReorderInput, ReorderOutput};

use crate::operator::{Arity, OpDef};
use crate::ops::AttributeParser;
use crate::ops::pooling::{AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool};
use crate::ops::resize::Resize;
use crate::traits::OpTraits;

/// The domain of these operators.
pub const BLOCKED_DOMAIN: &str = "com.microsoft.nchwc";

const ONE: Arity = Arity::exactly(1);

const fn row(name: &'static str, inputs: Arity, parse: AttributeParser) -> OpDef {
    OpDef {
        domain: BLOCKED_DOMAIN,
        name,
        since: 1,
        inputs,
        outputs: ONE,
        parse,
        traits: OpTraits::NONE,
    }
}

/// Channels of a block in a model that was saved on a machine like this one.
///
/// The file does not tell. ONNX Runtime takes 16 with AVX-512 and on ARM, 8 on other x86 processors.
#[must_use]
pub fn channel_block() -> usize {
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("avx512f") {
        return 8;
    }
    16
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    row("ReorderInput", ONE, ReorderInput::parse),
    row("ReorderOutput", ONE, ReorderOutput::parse),
    row("Conv", Arity::between(2, 4), BlockedConv::parse).accumulating(),
    row("MaxPool", ONE, MaxPool::parse_channels_first),
    row("AveragePool", ONE, |context| AveragePool::read(context, false)).accumulating(),
    row("GlobalMaxPool", ONE, |_| Ok(Box::new(GlobalMaxPool))),
    row("GlobalAveragePool", ONE, |_| Ok(Box::new(GlobalAveragePool { channels_last: false })))
        .accumulating(),
    row("Upsample", ONE, Resize::parse_blocked).accumulating(),
];
