//! Matrix products and attention.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("linear", linear),
    LoweringRow::new("matmul", matmul),
    LoweringRow::new("einsum", einsum),
    LoweringRow::since(8, "scaled_dot_product_attention", attention),
];

/// `x · weightᵀ + bias`, where the weight is `[outputs, inputs]`.
fn linear(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
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
fn turned(low: &mut ProgramLowering, id: ValueId) -> Result<ValueId> {
    let rank = low.rank(id)?;
    if rank < 2 {
        return Ok(id);
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 1, rank - 2);
    low.transpose(id, &axes)
}

fn matmul(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let mut x = low.required(op, "x")?;
    let mut y = low.required(op, "y")?;
    let of_x = low.dtype(x)?;
    let of_y = low.dtype(y)?;
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
fn product(low: &mut ProgramLowering, x: ValueId, y: ValueId) -> Result<ValueId> {
    match low.dtype(x)? {
        DataType::Fp16 | DataType::Fp32 | DataType::Fp64 | DataType::Int32 => {
            low.plain("MatMul", &[x, y])
        }
        dtype => {
            let x = low.cast(x, DataType::Int32)?;
            let y = low.cast(y, DataType::Int32)?;
            let wide = low.plain("MatMul", &[x, y])?;
            low.cast(wide, dtype)
        }
    }
}

fn einsum(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let values = low.several(op, "values")?;
    let equation = low.word(op, "equation")?;
    let equation = equation.ok_or_else(|| CoreMlError::invalid("input 'equation' is missing"))?;
    let result = match (values.as_slice(), AxisOrders::of(&equation)) {
        (&[x, y], Some(orders)) => {
            let x = reordered(low, x, &orders.x)?;
            let y = reordered(low, y, &orders.y)?;
            let result = low.plain("MatMul", &[x, y])?;
            reordered(low, result, &orders.result)?
        }
        _ => low.node("Einsum", &attributes([("equation", text(&equation))]), &values)?,
    };
    low.give(op, &[result])
}

/// How axes are brought into the order of a product of matrices.
#[derive(Debug, PartialEq, Eq)]
struct AxisOrders {
    x: Vec<usize>,
    y: Vec<usize>,
    result: Vec<usize>,
}

impl AxisOrders {
    /// Returns the orders of an equation that is a matrix multiplication, such as
    /// `nchw,nwhu->nchu`; `None` for others.
    fn of(equation: &str) -> Option<Self> {
        let plain: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (inputs, output) = plain.split_once("->")?;
        let (x, y) = inputs.split_once(',')?;
        let [x, y, output] = [x, y, output].map(|term| term.chars().collect::<Vec<char>>());
        let once = |term: &Vec<char>| {
            let same = |letter: &char| term.iter().filter(|other| *other == letter).count() == 1;
            term.iter().all(|letter| letter.is_alphabetic() && same(letter))
        };
        let all_known = output.iter().all(|letter| x.contains(letter) || y.contains(letter));
        if ![&x, &y, &output].into_iter().all(once) || !all_known {
            return None;
        }
        let those = |in_x: bool, in_y: bool, in_output: bool| -> Vec<char> {
            let all = x.iter().chain(y.iter().filter(|letter| !x.contains(letter)));
            let found = |letter: &&char| {
                (x.contains(letter), y.contains(letter), output.contains(letter))
                    == (in_x, in_y, in_output)
            };
            all.filter(found).copied().collect()
        };
        let batch = those(true, true, true);
        let inner = those(true, true, false);
        let rows = those(true, false, true);
        let columns = those(false, true, true);
        let lost = those(true, false, false).len() + those(false, true, false).len();
        if [inner.len(), rows.len(), columns.len()] != [1; 3] || lost > 0 {
            return None;
        }
        let order = |of: &[char], wanted: &[&[char]]| -> Option<Vec<usize>> {
            let places = wanted.concat().into_iter();
            places.map(|letter| of.iter().position(|own| *own == letter)).collect()
        };
        let product = [batch.as_slice(), &rows, &columns].concat();
        Some(Self {
            x: order(&x, &[&batch, &rows, &inner])?,
            y: order(&y, &[&batch, &inner, &columns])?,
            result: order(&product, &[&output])?,
        })
    }
}

/// The value with its axes in another order. Where only axes of length 1 move, elements stay where they
/// are.
fn reordered(low: &mut ProgramLowering, id: ValueId, axes: &[usize]) -> Result<ValueId> {
    if axes.is_sorted() {
        return Ok(id);
    }
    let dims = low.dims(id)?;
    let known: Option<Vec<i64>> = axes
        .iter()
        .map(|&axis| dims.get(axis)?.known().and_then(|len| i64::try_from(len).ok()))
        .collect();
    let long = axes.iter().filter(|&&axis| dims.get(axis) != Some(&galatea_graph::Dim::Known(1)));
    match known {
        Some(shape) if long.is_sorted() => low.reshape(id, &shape),
        _ => low.transpose(id, axes),
    }
}

/// `softmax(query · keyᵀ / √E + mask) · value`; a mask of truth values says which keys are seen.
fn attention(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let query = low.required(op, "query")?;
    let key = low.required(op, "key")?;
    let value = low.required(op, "value")?;
    let dtype = low.dtype(query)?;
    let rank = low.rank(query)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_of_matrices_are_products() {
        let found = AxisOrders::of("nchw, nwhu -> nchu").unwrap();
        assert_eq!((found.x, found.y), (vec![0, 2, 1, 3], vec![0, 2, 1, 3]));
        assert_eq!(found.result, [0, 2, 1, 3]);
        assert!(AxisOrders::of("chw,whr->chr").is_some());
        for other in ["ij,ij->ij", "ii,ij->j", "ij,jk->kz", "ij,kl->ijkl", "ij->ji", "...i,ij->j"] {
            assert_eq!(AxisOrders::of(other), None, "{other}");
        }
    }
}
