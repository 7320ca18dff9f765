//! Random numbers.

mod draw;
mod generator;
mod random_fill;

pub use draw::{Bernoulli, Multinomial};
pub use generator::RandomSeed;
pub use random_fill::{RandomDistribution, RandomFill};

use crate::operator::{Arity, OpDef};

const NONE: Arity = Arity::exactly(0);
const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("RandomNormal", 1, NONE, ONE, |c| RandomFill::normal(c, false)),
    OpDef::onnx("RandomNormalLike", 1, ONE, ONE, |c| RandomFill::normal(c, true)),
    OpDef::onnx("RandomUniform", 1, NONE, ONE, |c| RandomFill::uniform(c, false)),
    OpDef::onnx("RandomUniformLike", 1, ONE, ONE, |c| RandomFill::uniform(c, true)),
    OpDef::onnx("Bernoulli", 15, ONE, ONE, Bernoulli::parse),
    OpDef::onnx("Multinomial", 7, ONE, ONE, Multinomial::parse),
];
