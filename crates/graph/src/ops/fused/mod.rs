//! Operators of domain `ai.galatea` that rewrites produce: several ONNX operators in one.

mod activation;
mod attention;
mod fused_mat_mul;

pub use activation::FusedActivation;
pub use attention::Attention;
pub use fused_mat_mul::FusedMatMul;

use crate::GALATEA_DOMAIN;
use crate::operator::{Arity, OpDef};

/// This family's operators.
pub const OPS: &[OpDef] = &[
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "FusedMatMul",
        since: 1,
        inputs: Arity::between(2, 4),
        outputs: Arity::exactly(1),
        parse: FusedMatMul::parse,
    },
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "Attention",
        since: 1,
        inputs: Arity::between(3, 4),
        outputs: Arity::exactly(1),
        parse: Attention::parse,
    },
];
