//! Operators on elements: arithmetic, comparisons, logic, functions of one number.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::MilElement;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("add", |low, op| binary(low, op, "Add")),
    LoweringRow::new("sub", |low, op| binary(low, op, "Sub")),
    LoweringRow::new("mul", |low, op| binary(low, op, "Mul")),
    LoweringRow::new("maximum", |low, op| binary(low, op, "Max")),
    LoweringRow::new("minimum", |low, op| binary(low, op, "Min")),
    LoweringRow::new("pow", |low, op| binary(low, op, "Pow")),
    LoweringRow::new("real_div", real_div),
    LoweringRow::new("floor_div", floor_div),
    LoweringRow::new("mod", modulo),
    LoweringRow::new("equal", |low, op| binary(low, op, "Equal")),
    LoweringRow::new("not_equal", not_equal),
    LoweringRow::new("greater", |low, op| binary(low, op, "Greater")),
    LoweringRow::new("greater_equal", |low, op| binary(low, op, "GreaterOrEqual")),
    LoweringRow::new("less", |low, op| binary(low, op, "Less")),
    LoweringRow::new("less_equal", |low, op| binary(low, op, "LessOrEqual")),
    LoweringRow::new("logical_and", |low, op| binary(low, op, "And")),
    LoweringRow::new("logical_or", |low, op| binary(low, op, "Or")),
    LoweringRow::new("logical_xor", |low, op| binary(low, op, "Xor")),
    LoweringRow::new("logical_not", |low, op| unary(low, op, "Not")),
    LoweringRow::new("abs", |low, op| unary(low, op, "Abs")),
    LoweringRow::new("acos", |low, op| unary(low, op, "Acos")),
    LoweringRow::new("asin", |low, op| unary(low, op, "Asin")),
    LoweringRow::new("atan", |low, op| unary(low, op, "Atan")),
    LoweringRow::new("atanh", |low, op| unary(low, op, "Atanh")),
    LoweringRow::new("ceil", |low, op| unary(low, op, "Ceil")),
    LoweringRow::new("cos", |low, op| unary(low, op, "Cos")),
    LoweringRow::new("cosh", |low, op| unary(low, op, "Cosh")),
    LoweringRow::new("erf", |low, op| unary(low, op, "Erf")),
    LoweringRow::new("exp", |low, op| unary(low, op, "Exp")),
    LoweringRow::new("exp2", exp2),
    LoweringRow::new("floor", |low, op| unary(low, op, "Floor")),
    LoweringRow::new("identity", identity),
    LoweringRow::new("inverse", |low, op| behind_epsilon(low, op, 1e-4, &["Reciprocal"])),
    LoweringRow::new("log", |low, op| behind_epsilon(low, op, 1e-45, &["Log"])),
    LoweringRow::new("round", |low, op| unary(low, op, "Round")),
    LoweringRow::new("rsqrt", |low, op| behind_epsilon(low, op, 1e-12, &["Sqrt", "Reciprocal"])),
    LoweringRow::new("sign", |low, op| unary(low, op, "Sign")),
    LoweringRow::new("sin", |low, op| unary(low, op, "Sin")),
    LoweringRow::new("sinh", |low, op| unary(low, op, "Sinh")),
    LoweringRow::new("sqrt", |low, op| unary(low, op, "Sqrt")),
    LoweringRow::new("square", square),
    LoweringRow::new("tan", |low, op| unary(low, op, "Tan")),
    LoweringRow::new("tanh", |low, op| unary(low, op, "Tanh")),
    LoweringRow::new("cast", cast),
    LoweringRow::new("clip", clip),
    LoweringRow::new("threshold", threshold),
];

/// Both operands, in one type of elements: constants take that of the other.
fn operands(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<[ValueId; 2]> {
    let x = low.required(op, "x")?;
    let y = low.required(op, "y")?;
    let of_x = low.dtype(x)?;
    let of_y = low.dtype(y)?;
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

fn binary(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
    let operands = operands(low, op)?;
    let result = low.plain(operator, &operands)?;
    low.give(op, &[result])
}

fn unary(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let result = low.plain(operator, &[x])?;
    low.give(op, &[result])
}

/// The same value: no node at all.
fn identity(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    low.give(op, &[x])
}

fn is_float(dtype: DataType) -> bool {
    matches!(dtype, DataType::Fp16 | DataType::Fp32 | DataType::Fp64)
}

/// Quotients of integers are rounded towards zero.
fn real_div(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    binary(low, op, "Div")
}

/// The largest whole number that is not above the quotient.
fn floor_div(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
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
fn modulo(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
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

fn not_equal(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let operands = operands(low, op)?;
    let equal = low.plain("Equal", &operands)?;
    let result = low.plain("Not", &[equal])?;
    low.give(op, &[result])
}

fn exp2(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let two = low.number(2.0, dtype)?;
    let result = low.plain("Pow", &[two, x])?;
    low.give(op, &[result])
}

fn square(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let result = low.plain("Mul", &[x, x])?;
    low.give(op, &[result])
}

/// Functions of `x + epsilon`. In FP16 an epsilon that its least number exceeds is none at all.
fn behind_epsilon(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    default: f64,
    functions: &[&str],
) -> Result<()> {
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
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<Option<DataType>> {
    let Some(word) = low.word(op, name)? else { return Ok(None) };
    match MilElement::named(&word) {
        Some(element) if element.bits() >= 8 => Ok(Some(element.stored_as())),
        _ => Err(CoreMlError::invalid(format!("'{word}' is no type of elements"))),
    }
}

fn cast(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = named_type(low, op, "dtype")?;
    let dtype = dtype.ok_or_else(|| CoreMlError::invalid("input 'dtype' is missing"))?;
    let result = low.cast(x, dtype)?;
    low.give(op, &[result])
}

fn clip(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(f64::NEG_INFINITY);
    let beta = low.float(op, "beta")?.unwrap_or(f64::INFINITY);
    let alpha = low.number(alpha, dtype)?;
    let beta = low.number(beta, dtype)?;
    let result = low.node("Clip", &Attributes::new(), &[x, alpha, beta])?;
    low.give(op, &[result])
}

fn threshold(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(1.0);
    let alpha = low.number(alpha, dtype)?;
    let result = low.plain("Max", &[x, alpha])?;
    low.give(op, &[result])
}
