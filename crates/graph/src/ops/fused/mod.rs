//! Operators of domain `ai.galatea`: several ONNX operators in one, which rewrites produce, and what
//! language models need beside them.

mod activation;
mod attention;
mod block_mat_mul;
mod elementwise;
mod fused_mat_mul;
mod look_up;
mod paged_attention;
mod rotary;
mod rotary_pair;
mod widened;

pub use activation::FusedActivation;
pub use attention::FusedAttention;
pub use block_mat_mul::{BlockGather, BlockMatMul};
pub use elementwise::{ChainStepOperand, ElementFunction, ElementStep, FusedElementwise};
pub use fused_mat_mul::FusedMatMul;
pub use look_up::LookUp;
pub use paged_attention::{PagedAttention, PagedShapes, PagedSteps};
pub use rotary::FusedRotary;
pub use rotary_pair::RotaryPair;

use crate::GALATEA_DOMAIN;
use crate::operator::{Arity, OpDef};
use crate::traits::OpTraits;

/// This family's operators.
pub const OPS: &[OpDef] = &[
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "FusedMatMul",
        since: 1,
        inputs: Arity::between(2, 4),
        outputs: Arity::exactly(1),
        parse: FusedMatMul::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart()
    .accumulating(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "Attention",
        since: 1,
        inputs: Arity::between(3, 4),
        outputs: Arity::exactly(1),
        parse: FusedAttention::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart()
    .accumulating(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "BlockMatMul",
        since: 1,
        inputs: Arity::at_least(1),
        outputs: Arity::at_least(1),
        parse: BlockMatMul::parse,
        traits: OpTraits::NONE,
    },
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "BlockGather",
        since: 1,
        inputs: Arity::exactly(1),
        outputs: Arity::exactly(1),
        parse: BlockGather::parse,
        traits: OpTraits::NONE,
    }
    .moves_part(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "FusedElementwise",
        since: 1,
        inputs: Arity::at_least(1),
        outputs: Arity::exactly(1),
        parse: FusedElementwise::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "LookUp",
        since: 1,
        inputs: Arity::exactly(1),
        outputs: Arity::exactly(1),
        parse: LookUp::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "PagedAttention",
        since: 1,
        inputs: Arity::between(8, 10),
        outputs: Arity::between(1, 5),
        parse: PagedAttention::parse,
        traits: OpTraits::NONE,
    },
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "Rotary",
        since: 1,
        inputs: Arity::exactly(3),
        outputs: Arity::exactly(1),
        parse: FusedRotary::parse,
        traits: OpTraits::NONE,
    }
    .rows_apart(),
    OpDef {
        domain: GALATEA_DOMAIN,
        name: "RotaryPair",
        since: 1,
        inputs: Arity::exactly(5),
        outputs: Arity::exactly(2),
        parse: RotaryPair::parse,
        traits: OpTraits::NONE,
    },
];
