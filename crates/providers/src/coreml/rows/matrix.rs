//! Matrix products.

use galatea_formats::coreml::mil::{Arg, Var};
use galatea_graph::Node;
use galatea_graph::ops::matrix::Gemm;

use super::Row;
use super::elementwise::plain_integer;
use crate::coreml::emit::{Emit, Result, refuse};

pub(super) const ROWS: &[Row] = &[Row::onnx("MatMul", mat_mul), Row::onnx("Gemm", gemm)];

fn mat_mul(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let (a, b) = (emit.input(node, 0)?, emit.input(node, 1)?);
    let (rank_a, rank_b) = (emit.rank(a)?, emit.rank(b)?);
    let shape = emit.output_shape(node)?;
    let (mut x, mut y) = (emit.var(node, 0)?, emit.var(node, 1)?);
    // Vectors are matrices of one row or one column.
    if rank_a == 1 {
        let len = emit.shape(a)?;
        x = emit.reshape(&x, &[1, len.first().copied().unwrap_or(0)])?;
    }
    if rank_b == 1 {
        let len = emit.shape(b)?;
        y = emit.reshape(&y, &[len.first().copied().unwrap_or(0), 1])?;
    }
    let inputs = vec![
        ("x", Arg::Var(x)),
        ("y", Arg::Var(y)),
        ("transpose_x", Arg::Bool(false)),
        ("transpose_y", Arg::Bool(false)),
    ];
    let result = emit.op("matmul", inputs)?;
    Ok(vec![emit.reshape(&result, &shape)?])
}

/// With a constant matrix, and a vector of biases, this is `linear`.
fn gemm(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let Some(operator) = node.operator::<Gemm>() else {
        return refuse("a product of another kind");
    };
    let (alpha, beta) = (operator.alpha, operator.beta);
    let (trans_a, trans_b) = (operator.trans_a, operator.trans_b);
    let (x, y) = (emit.var(node, 0)?, emit.var(node, 1)?);
    let inputs = vec![
        ("x", Arg::Var(x)),
        ("y", Arg::Var(y)),
        ("transpose_x", Arg::Bool(trans_a)),
        ("transpose_y", Arg::Bool(trans_b)),
    ];
    let mut result = emit.op("matmul", inputs)?;
    if alpha != 1.0 {
        let alpha = emit.float(alpha);
        result = emit.op("mul", vec![("x", Arg::Var(result)), ("y", alpha)])?;
    }
    if let Some(mut bias) = emit.optional(node, 2)? {
        if beta != 1.0 {
            let beta = emit.float(beta);
            bias = emit.op("mul", vec![("x", Arg::Var(bias)), ("y", beta)])?;
        }
        result = emit.op("add", vec![("x", Arg::Var(result)), ("y", Arg::Var(bias))])?;
    }
    Ok(vec![result])
}
