//! Convolutions.

mod activated_conv;
mod col2im;
mod conv;
mod conv_chain;
mod conv_integer;
mod conv_transpose;
mod conv_transpose_with_dynamic_pads;
mod deform_conv;
mod fused_conv;
mod q_linear_conv;
mod q_linear_conv_add;
mod window;

pub(crate) use conv::{list, to_channels_first, to_channels_last};
pub(crate) use window::SlidingWindow;

pub use activated_conv::ActivatedConv;
pub use col2im::Col2Im;
pub use conv::Conv;
pub use conv_chain::ConvChain;
pub use conv_integer::ConvInteger;
pub use conv_transpose::ConvTranspose;
pub use conv_transpose_with_dynamic_pads::ConvTransposeWithDynamicPads;
pub use deform_conv::DeformConv;
pub use fused_conv::FusedConv;
pub use q_linear_conv::QLinearConv;
pub use q_linear_conv_add::QLinearConvAdd;
pub use window::{ConvGeometry, WindowPadding};

use crate::GALATEA_DOMAIN;
use crate::operator::{Arity, OpDef};
use crate::traits::OpTraits;

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Conv", 1, Arity::between(2, 3), ONE, Conv::parse)
        .rows_apart_from_weights()
        .accumulating(),
    OpDef::onnx("ConvTranspose", 1, Arity::between(2, 3), ONE, ConvTranspose::parse)
        .rows_apart_from_weights()
        .accumulating(),
    OpDef::onnx("ConvInteger", 10, Arity::between(2, 4), ONE, ConvInteger::parse).accumulating(),
    OpDef::onnx("QLinearConv", 10, Arity::between(8, 9), ONE, QLinearConv::parse),
    OpDef::onnx("DeformConv", 19, Arity::between(3, 5), ONE, DeformConv::parse).accumulating(),
    OpDef::onnx("Col2Im", 18, Arity::exactly(3), ONE, Col2Im::parse),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "ConvNhwc",
        since: 1,
        inputs: Arity::between(2, 3),
        outputs: ONE,
        parse: Conv::parse_channels_last,
        traits: OpTraits::NONE,
    },
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "FusedConv",
        since: 1,
        inputs: Arity::between(2, 4),
        outputs: ONE,
        parse: FusedConv::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart_from_weights()
    .accumulating(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "QLinearConvAdd",
        since: 1,
        inputs: Arity::exactly(14),
        outputs: ONE,
        parse: QLinearConvAdd::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart_from_weights(),
];
