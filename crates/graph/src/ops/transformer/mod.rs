//! Operators of transformers.

mod attention;
mod causal_conv_with_state;
mod flex_attention;
pub(crate) mod heads;
mod linear_attention;
mod rotary_embedding;
mod tensor_scatter;

pub use attention::Attention;
pub use causal_conv_with_state::CausalConvWithState;
pub use flex_attention::FlexAttention;
pub use heads::ScoreStage;
pub use linear_attention::LinearAttention;
pub use rotary_embedding::RotaryEmbedding;
pub use tensor_scatter::TensorScatter;

use crate::operator::{Arity, OpDef};
use crate::traits::OpTraits;

const ONE: Arity = Arity::exactly(1);
const ATTENTION: Arity = Arity::between(1, 4);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Attention", 23, Arity::between(3, 6), ATTENTION, Attention::parse).accumulating(),
    OpDef::onnx("Attention", 24, Arity::between(3, 7), ATTENTION, Attention::parse).accumulating(),
    OpDef::onnx("RotaryEmbedding", 23, Arity::between(3, 4), ONE, RotaryEmbedding::parse)
        .accumulating(),
    OpDef::onnx(
        "LinearAttention",
        27,
        Arity::between(3, 6),
        Arity::between(1, 2),
        LinearAttention::parse,
    )
    .accumulating(),
    OpDef::onnx(
        "CausalConvWithState",
        27,
        Arity::between(2, 4),
        Arity::between(1, 2),
        CausalConvWithState::parse,
    )
    .accumulating(),
    OpDef {
        domain: "ai.onnx.preview",
        name: "FlexAttention",
        since: 1,
        inputs: Arity::exactly(3),
        outputs: ONE,
        parse: FlexAttention::parse,
        traits: OpTraits::NONE,
    }
    .accumulating(),
    OpDef::onnx("TensorScatter", 24, Arity::between(2, 3), ONE, TensorScatter::parse),
];
