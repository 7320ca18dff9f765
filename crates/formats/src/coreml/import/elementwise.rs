//! Operators on elements: arithmetic, comparisons, logic, functions of one number.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::Row;
use super::lowering::{Lowering, Result};
use super::operation::Op;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::Element;

pub(super) const ROWS: &[Row] = &[
    Row::new("add", |low, op| binary(low, op, "Add")),
    Row::new("sub", |low, op| binary(low, op, "Sub")),
    Row::new("mul", |low, op| binary(low, op, "Mul")),
    Row::new("maximum", |low, op| binary(low, op, "Max")),
    Row::new("minimum", |low, op| binary(low, op, "Min")),
    Row::new("pow", |low, op| binary(low, op, "Pow")),
    Row::new("real_div", real_div),
    Row::new("floor_div", floor_div),
    Row::new("mod", modulo),
    Row::new("equal", |low, op| binary(low, op, "Equal")),
    Row::new("not_equal", not_equal),
    Row::new("greater", |low, op| binary(low, op, "Greater")),
    Row::new("greater_equal", |low, op| binary(low, op, "GreaterOrEqual")),
    Row::new("less", |low, op| binary(low, op, "Less")),
    Row::new("less_equal", |low, op| binary(low, op, "LessOrEqual")),
    Row::new("logical_and", |low, op| binary(low, op, "And")),
    Row::new("logical_or", |low, op| binary(low, op, "Or")),
    Row::new("logical_xor", |low, op| binary(low, op, "Xor")),
    Row::new("logical_not", |low, op| unary(low, op, "Not")),
    Row::new("abs", |low, op| unary(low, op, "Abs")),
    Row::new("acos", |low, op| unary(low, op, "Acos")),
    Row::new("asin", |low, op| unary(low, op, "Asin")),
    Row::new("atan", |low, op| unary(low, op, "Atan")),
    Row::new("atanh", |low, op| unary(low, op, "Atanh")),
    Row::new("ceil", |low, op| unary(low, op, "Ceil")),
    Row::new("cos", |low, op| unary(low, op, "Cos")),
    Row::new("cosh", |low, op| unary(low, op, "Cosh")),
    Row::new("erf", |low, op| unary(low, op, "Erf")),
    Row::new("exp", |low, op| unary(low, op, "Exp")),
    Row::new("exp2", exp2),
    Row::new("floor", |low, op| unary(low, op, "Floor")),
    Row::new("identity", identity),
    Row::new("inverse", |low, op| behind_epsilon(low, op, 1e-4, &["Reciprocal"])),
    Row::new("log", |low, op| behind_epsilon(low, op, 1e-45, &["Log"])),
    Row::new("round", |low, op| unary(low, op, "Round")),
    Row::new("rsqrt", |low, op| behind_epsilon(low, op, 1e-12, &["Sqrt", "Reciprocal"])),
    Row::new("sign", |low, op| unary(low, op, "Sign")),
    Row::new("sin", |low, op| unary(low, op, "Sin")),
    Row::new("sinh", |low, op| unary(low, op, "Sinh")),
    Row::new("sqrt", |low, op| unary(low, op, "Sqrt")),
    Row::new("square", square),
    Row::new("tan", |low, op| unary(low, op, "Tan")),
    Row::new("tanh", |low, op| unary(low, op, "Tanh")),
    Row::new("cast", cast),
    Row::new("clip", clip),
    Row::new("threshold", threshold),
];

/// Both operands, in one type of elements: constants take that of the other.
fn operands(low: &mut Lowering, op: &Op<'_>) -> Result<[ValueId; 2]> {
    let (x, y) = (low.required(op, "x")?, low.required(op, "y")?);
    let (of_x, of_y) = (low.dtype(x)?, low.dtype(y)?);
    if of_x == of_y {
        return Ok([x, y]);
    }
    match (low.graph().constant(x).is_some(), low.graph().constant(y).is_some()) {
        (_, true) => Ok([x, low.cast(y, of_x)?]),
        (true, false) => Ok([low.cast(x, of_y)?, y]),
        (false, false) => {
            let text = format!("x is {of_x} and y is {of_y}, expected one type");
            Err(CoreMlError::invalid(text))
        }
    }
}

fn binary(low: &mut Lowering, op: &Op<'_>, operator: &str) -> Result<()> {
    let operands = operands(low, op)?;
    let result = low.plain(operator, &operands)?;
    low.give(op, &[result])
}

fn unary(low: &mut Lowering, op: &Op<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let result = low.plain(operator, &[x])?;
    low.give(op, &[result])
}

/// The same value: no node at all.
fn identity(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    low.give(op, &[x])
}

fn is_float(dtype: DataType) -> bool {
    matches!(dtype, DataType::Fp16 | DataType::Fp32 | DataType::Fp64)
}

/// Quotients of integers are rounded towards zero.
fn real_div(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    binary(low, op, "Div")
}

/// The largest whole number that is not above the quotient.
fn floor_div(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let [x, y] = operands(low, op)?;
    let result = match is_float(low.dtype(x)?) {
        true => {
            let quotient = low.plain("Div", &[x, y])?;
            low.plain("Floor", &[quotient])?
        }
        // Quotients round towards zero: one less where the signs differ and something is left. The dividend without
        // its remainder would be beyond the type near its ends.
        false => {
            let dtype = low.dtype(x)?;
            let zero = low.number(0.0, dtype)?;
            let quotient = low.plain("Div", &[x, y])?;
            let rest = low.plain("Mod", &[x, y])?;
            let even = low.plain("Equal", &[rest, zero])?;
            let signs = [low.plain("Less", &[x, zero])?, low.plain("Less", &[y, zero])?];
            let differ = low.plain("Xor", &signs)?;
            let left = low.plain("Not", &[even])?;
            let below = low.plain("And", &[differ, left])?;
            let one = low.cast(below, dtype)?;
            low.plain("Sub", &[quotient, one])?
        }
    };
    low.give(op, &[result])
}

/// The remainder with the sign of the divisor.
fn modulo(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let [x, y] = operands(low, op)?;
    let result = match is_float(low.dtype(x)?) {
        true => {
            let quotient = low.plain("Div", &[x, y])?;
            let floor = low.plain("Floor", &[quotient])?;
            let multiple = low.plain("Mul", &[y, floor])?;
            low.plain("Sub", &[x, multiple])?
        }
        false => low.plain("Mod", &[x, y])?,
    };
    low.give(op, &[result])
}

fn not_equal(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let operands = operands(low, op)?;
    let equal = low.plain("Equal", &operands)?;
    let result = low.plain("Not", &[equal])?;
    low.give(op, &[result])
}

fn exp2(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let two = low.number(2.0, dtype)?;
    let result = low.plain("Pow", &[two, x])?;
    low.give(op, &[result])
}

fn square(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let result = low.plain("Mul", &[x, x])?;
    low.give(op, &[result])
}

/// Functions of `x + epsilon`. In FP16 an epsilon that its least number exceeds is none at all.
fn behind_epsilon(low: &mut Lowering, op: &Op<'_>, default: f64, functions: &[&str]) -> Result<()> {
    let mut value = low.required(op, "x")?;
    let dtype = low.dtype(value)?;
    let epsilon = low.float(op, "epsilon")?.unwrap_or(default);
    if epsilon != 0.0 {
        let epsilon = low.number(epsilon, dtype)?;
        value = low.plain("Add", &[value, epsilon])?;
    }
    for function in functions {
        value = low.plain(function, &[value])?;
    }
    low.give(op, &[value])
}

/// The element type that a parameter names.
pub(super) fn named_type(
    low: &mut Lowering,
    op: &Op<'_>,
    name: &'static str,
) -> Result<Option<DataType>> {
    let Some(word) = low.word(op, name)? else { return Ok(None) };
    match Element::named(&word) {
        Some(element) if element.bits() >= 8 => Ok(Some(element.stored_as())),
        _ => Err(CoreMlError::invalid(format!("'{word}' is no type of elements"))),
    }
}

fn cast(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = named_type(low, op, "dtype")?;
    let dtype = dtype.ok_or_else(|| CoreMlError::invalid("input 'dtype' is missing"))?;
    let result = low.cast(x, dtype)?;
    low.give(op, &[result])
}

fn clip(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(f64::NEG_INFINITY);
    let beta = low.float(op, "beta")?.unwrap_or(f64::INFINITY);
    let (alpha, beta) = (low.number(alpha, dtype)?, low.number(beta, dtype)?);
    let result = low.node("Clip", &Attributes::new(), &[x, alpha, beta])?;
    low.give(op, &[result])
}

fn threshold(low: &mut Lowering, op: &Op<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(1.0);
    let alpha = low.number(alpha, dtype)?;
    let result = low.plain("Max", &[x, alpha])?;
    low.give(op, &[result])
}
