//! Quantisation.

mod grouping;
mod quantize_linear;

pub use grouping::ScaleGrouping;
pub use quantize_linear::{DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear};

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("QuantizeLinear", 10, Arity::between(2, 3), ONE, QuantizeLinear::parse)
        .rows_apart_from_weights(),
    OpDef::onnx("DequantizeLinear", 10, Arity::between(2, 3), ONE, DequantizeLinear::parse)
        .rows_apart_from_weights(),
    OpDef::onnx("DynamicQuantizeLinear", 11, ONE, Arity::exactly(3), DynamicQuantizeLinear::parse),
];
