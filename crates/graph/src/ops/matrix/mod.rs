//! Products of matrices.

mod det;
mod einsum;
mod gemm;
mod mat_mul;
mod mat_mul_integer;
mod mat_mul_integer16;
mod product;
mod q_linear_mat_mul;

pub use det::Det;
pub use einsum::{Einsum, EinsumTerms};
pub use gemm::Gemm;
pub use mat_mul::MatMul;
pub use mat_mul_integer::MatMulInteger;
pub use mat_mul_integer16::MatMulInteger16;
pub use q_linear_mat_mul::QLinearMatMul;

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("MatMul", 1, Arity::exactly(2), ONE, |_| Ok(Box::new(MatMul)))
        .rows_apart()
        .accumulating(),
    OpDef::onnx("Gemm", 1, Arity::exactly(3), ONE, |context| {
        // C broadcasts in any case.
        context.attributes.ignore("broadcast");
        Gemm::parse(context)
    })
    .rows_apart()
    .accumulating(),
    OpDef::onnx("Gemm", 7, Arity::exactly(3), ONE, Gemm::parse).rows_apart().accumulating(),
    OpDef::onnx("Gemm", 11, Arity::between(2, 3), ONE, Gemm::parse).rows_apart().accumulating(),
    OpDef::onnx("MatMulInteger", 10, Arity::between(2, 4), ONE, |_| Ok(Box::new(MatMulInteger))),
    OpDef::onnx("QLinearMatMul", 10, Arity::exactly(8), ONE, |_| Ok(Box::new(QLinearMatMul))),
    OpDef::onnx("Det", 11, ONE, ONE, |_| Ok(Box::new(Det))).accumulating(),
    OpDef::onnx("Einsum", 12, Arity::at_least(1), ONE, Einsum::parse).accumulating(),
];
