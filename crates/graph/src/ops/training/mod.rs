//! The preview of training operators.
//!
//! `Gradient` is left out: it differentiates a part of the graph around it, so it is a rewrite of
//! the whole model rather than an operator on tensors, and a server does not train.

mod optimiser;

pub use optimiser::{Optimiser, UpdateRule};

use crate::operator::{Arity, OpDef};
use crate::ops::AttributeParser;
use crate::traits::OpTraits;

const fn step(name: &'static str, parse: AttributeParser) -> OpDef {
    OpDef {
        domain: "ai.onnx.preview.training",
        name,
        since: 1,
        inputs: Arity::at_least(3),
        outputs: Arity::at_least(1),
        parse,
        traits: OpTraits::NONE,
    }
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    step("Adagrad", Optimiser::adagrad).accumulating(),
    step("Adam", Optimiser::adam).accumulating(),
    step("Momentum", Optimiser::momentum).accumulating(),
];
