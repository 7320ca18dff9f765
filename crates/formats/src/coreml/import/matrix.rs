//! Matrix products and attention.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::Row;
use super::lowering::{Lowering, Result, attributes, text};
use super::operation::Op;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[Row] = &[
    Row::new("linear", linear),
    Row::new("matmul", matmul),
    Row::new("einsum", einsum),
    Row::since(8, "scaled_dot_product_attention", attention),
];

/// `x · weightᵀ + bias`, where the weight is `[outputs, inputs]`.
fn linear(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let weight = low.required(op, "weight")?;
    let weight = low.cast(weight, dtype)?;
    let bias = low.optional(op, "bias")?.map(|bias| low.cast(bias, dtype)).transpose()?;
    if low.rank(weight)? != 2 {
        let text = format!("the weight has {} axes, expected 2", low.rank(weight)?);
        return Err(CoreMlError::invalid(text));
    }
    let turned = low.transpose(weight, &[1, 0])?;
    let mut result = low.plain("MatMul", &[x, turned])?;
    if let Some(bias) = bias {
        result = low.plain("Add", &[result, bias])?;
    }
    low.give(op, &[result])
}

/// The value with its last two axes swapped.
fn turned(low: &mut Lowering, id: ValueId) -> Result<ValueId> {
    let rank = low.rank(id)?;
    if rank < 2 {
        return Ok(id);
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 1, rank - 2);
    low.transpose(id, &axes)
}

fn matmul(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let (mut x, mut y) = (low.required(op, "x")?, low.required(op, "y")?);
    let (of_x, of_y) = (low.dtype(x)?, low.dtype(y)?);
    if of_x != of_y {
        (x, y) = match low.graph().constant(x) {
            Some(_) => (low.cast(x, of_y)?, y),
            None => (x, low.cast(y, of_x)?),
        };
    }
    if low.flag(op, "transpose_x", false)? {
        x = turned(low, x)?;
    }
    if low.flag(op, "transpose_y", false)? {
        y = turned(low, y)?;
    }
    let result = product(low, x, y)?;
    low.give(op, &[result])
}

/// A product of two values. Those of integers are computed as integers of 32 bits.
fn product(low: &mut Lowering, x: ValueId, y: ValueId) -> Result<ValueId> {
    match low.dtype(x)? {
        DataType::Fp16 | DataType::Fp32 | DataType::Fp64 | DataType::Int32 => {
            low.plain("MatMul", &[x, y])
        }
        dtype => {
            let (x, y) = (low.cast(x, DataType::Int32)?, low.cast(y, DataType::Int32)?);
            let wide = low.plain("MatMul", &[x, y])?;
            low.cast(wide, dtype)
        }
    }
}

fn einsum(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let values = low.several(op, "values")?;
    let equation = low.word(op, "equation")?;
    let equation = equation.ok_or_else(|| CoreMlError::invalid("input 'equation' is missing"))?;
    let named = attributes([("equation", text(&equation))]);
    let result = low.node("Einsum", &named, &values)?;
    low.give(op, &[result])
}

/// `softmax(query · keyᵀ / √E + mask) · value`; a mask of truth values says which keys are seen.
fn attention(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let query = low.required(op, "query")?;
    let (key, value) = (low.required(op, "key")?, low.required(op, "value")?);
    let (dtype, rank) = (low.dtype(query)?, low.rank(query)?);
    if rank < 3 {
        let text = format!("the query has {rank} axes, expected 3 or more");
        return Err(CoreMlError::invalid(text));
    }
    let width = u32::try_from(low.known_len(query, rank - 1)?).unwrap_or(u32::MAX);
    let scale = low.number(1.0 / f64::from(width).sqrt(), dtype)?;
    let turned = turned(low, key)?;
    let scores = low.plain("MatMul", &[query, turned])?;
    let mut scores = low.plain("Mul", &[scores, scale])?;
    if let Some(mask) = low.optional(op, "attn_mask")? {
        scores = match low.dtype(mask)? {
            DataType::Bool => {
                let hidden = low.number(f64::NEG_INFINITY, dtype)?;
                low.node("Where", &Attributes::new(), &[mask, scores, hidden])?
            }
            _ => {
                let mask = low.cast(mask, dtype)?;
                low.plain("Add", &[scores, mask])?
            }
        };
    }
    let shares = low.node("Softmax", &attributes([("axis", (-1_i64).into())]), &[scores])?;
    let result = low.plain("MatMul", &[shares, value])?;
    low.give(op, &[result])
}
