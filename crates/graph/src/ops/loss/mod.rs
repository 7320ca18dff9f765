//! Loss functions, which training minimises.

mod negative_log_likelihood;

pub use negative_log_likelihood::{LossReduction, NegativeLogLikelihoodLoss};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx(
        "NegativeLogLikelihoodLoss",
        12,
        Arity::between(2, 3),
        ONE,
        NegativeLogLikelihoodLoss::parse,
    )
    .accumulating(),
    OpDef::onnx(
        "SoftmaxCrossEntropyLoss",
        12,
        Arity::between(2, 3),
        Arity::between(1, 2),
        NegativeLogLikelihoodLoss::parse_softmax,
    )
    .accumulating(),
];
